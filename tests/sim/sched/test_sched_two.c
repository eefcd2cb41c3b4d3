/*
 * test_sched_two.c - schedules of two processes; who runs changes often.
 */
#include "tests/sim/sched/sched.h"

int main(void)
{
    static const uint64_t known[] = {1000710, 1033164};
    const struct sched_options options = {.known = known,
                                          .known_count =
                                              sizeof(known) / sizeof(known[0]),
                                          .seed = 1000000,
                                          .processes = 2,
                                          .few_switches = false,
                                          .append_heals = true};

    return sched_main("test_sched_two", &options);
}
