/*
 * test_sched_three_few.c - schedules of three processes; who runs changes
 * seldom.
 */
#include "tests/sim/sched/sched.h"

int main(void)
{
    static const uint64_t known[] = {4218201, 4227379, 4012610, 4094981,
                                     4106841};
    const struct sched_options options = {.known = known,
                                          .known_count =
                                              sizeof(known) / sizeof(known[0]),
                                          .seed = 4000000,
                                          .processes = 3,
                                          .few_switches = true,
                                          .append_heals = true};

    return sched_main("test_sched_three_few", &options);
}
