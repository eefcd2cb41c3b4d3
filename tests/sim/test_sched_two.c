/*
 * test_sched_two.c - schedules of two processes; who runs changes often.
 */
#include "tests/sim/sched.h"

int main(void)
{
    const struct sched_options options = {
        .seed = 1000000, .processes = 2, .few = false, .heals = true};

    return sched_main("test_sched_two", &options);
}
