/*
 * test_sched_contents.c - schedules of two processes whose larger payloads are
 * out of line: what a record refers to can be read wherever the record can.
 */
#include "tests/sim/sched/sched.h"

int main(void)
{
    static const uint64_t known[] = {5194346};
    const struct sched_options options = {.known = known,
                                          .known_count =
                                              sizeof(known) / sizeof(known[0]),
                                          .seed = 5000000,
                                          .processes = 2,
                                          .few_switches = false,
                                          .append_heals = true,
                                          .with_blobs = true};

    return sched_main("test_sched_contents", &options);
}
