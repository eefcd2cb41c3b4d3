/*
 * test_sched_replace_compact.c - schedules of two processes that also remove
 * a session which the other one appends to, and compact the store; erasing
 * empties the trash.
 */
#include "tests/sim/sched/sched.h"

int main(void)
{
    const struct sched_options options = {.seed = 9000000,
                                          .processes = 2,
                                          .few_switches = false,
                                          .append_heals = true,
                                          .compacts = true,
                                          .replaces = true};

    return sched_main("test_sched_replace_compact", &options);
}
