/*
 * test_sched_two_few.c - schedules of two processes; who runs changes seldom.
 */
#include "tests/sim/sched.h"

int main(void)
{
    const struct sched_options options = {
        .seed = 2000000, .processes = 2, .few = true, .heals = true};

    return sched_main("test_sched_two_few", &options);
}
