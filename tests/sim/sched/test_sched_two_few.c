/*
 * test_sched_two_few.c - schedules of two processes; who runs changes seldom.
 */
#include "tests/sim/sched/sched.h"

int main(void)
{
    static const uint64_t known[] = {2153492, 2203581};
    const struct sched_options options = {.known = known,
                                          .known_count =
                                              sizeof(known) / sizeof(known[0]),
                                          .seed = 2000000,
                                          .processes = 2,
                                          .few_switches = true,
                                          .append_heals = true};

    return sched_main("test_sched_two_few", &options);
}
