/*
 * test_sched_three_few.c - schedules of three processes; who runs changes
 * seldom.
 */
#include "tests/sim/sched.h"

int main(void)
{
    const struct sched_options options = {
        .seed = 4000000, .processes = 3, .few = true, .heals = true};

    return sched_main("test_sched_three_few", &options);
}
