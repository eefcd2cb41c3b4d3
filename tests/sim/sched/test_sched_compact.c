/*
 * test_sched_compact.c - schedules of two processes that also compact the
 * store: while one replaces segments, the other appends, reads, recovers,
 * heals and dies.
 */
#include "tests/sim/sched/sched.h"

int main(void)
{
    const struct sched_options options = {.seed = 6000000,
                                          .processes = 2,
                                          .few_switches = false,
                                          .append_heals = true,
                                          .compacts = true};

    return sched_main("test_sched_compact", &options);
}
