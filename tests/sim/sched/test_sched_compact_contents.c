/*
 * test_sched_compact_contents.c - schedules of two processes that also compact
 * the store, whose larger payloads are out of line: the pack is compacted too,
 * while the other process is about to name what it holds.
 */
#include "tests/sim/sched/sched.h"

int main(void)
{
    static const uint64_t known[] = {7004651, 7007272, 7009673, 7011356,
                                     7027142};
    const struct sched_options options = {.known = known,
                                          .known_count =
                                              sizeof(known) / sizeof(known[0]),
                                          .seed = 7000000,
                                          .processes = 2,
                                          .few_switches = false,
                                          .append_heals = true,
                                          .with_blobs = true,
                                          .compacts = true};

    return sched_main("test_sched_compact_contents", &options);
}
