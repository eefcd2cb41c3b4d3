/*
 * test_sched_compact.c - schedules of two processes that also compact the
 * store: while one replaces segments, the other appends, reads, recovers,
 * heals and dies.
 */
#include "tests/sim/sched/sched.h"

int main(void)
{
    static const uint64_t known[] = {6005506, 6007374, 6153234, 6184248,
                                     6228824, 6139335, 6101193};
    const struct sched_options options = {.known = known,
                                          .known_count =
                                              sizeof(known) / sizeof(known[0]),
                                          .seed = 6000000,
                                          .processes = 2,
                                          .few_switches = false,
                                          .append_heals = true,
                                          .compacts = true};

    return sched_main("test_sched_compact", &options);
}
