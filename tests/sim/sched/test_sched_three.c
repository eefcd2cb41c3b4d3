/*
 * test_sched_three.c - schedules of three processes; who runs changes often.
 */
#include "tests/sim/sched/sched.h"

int main(void)
{
    static const uint64_t known[] = {3012348, 3194041, 3146345};
    const struct sched_options options = {.known = known,
                                          .known_count =
                                              sizeof(known) / sizeof(known[0]),
                                          .seed = 3000000,
                                          .processes = 3,
                                          .few_switches = false,
                                          .append_heals = true};

    return sched_main("test_sched_three", &options);
}
