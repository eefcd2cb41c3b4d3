/*
 * test_sched_three.c - schedules of three processes; who runs changes often.
 */
#include "tests/sim/sched.h"

int main(void)
{
    const struct sched_options options = {
        .seed = 3000000, .processes = 3, .few = false, .heals = true};

    return sched_main("test_sched_three", &options);
}
