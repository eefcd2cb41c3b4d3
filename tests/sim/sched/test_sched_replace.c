/*
 * test_sched_replace.c - schedules of three processes that also remove a
 * session which the others append to: an importer that deletes it and creates
 * it again, and a retainer that moves it to the trash.
 */
#include "tests/sim/sched/sched.h"

int main(void)
{
    const struct sched_options options = {.seed = 8000000,
                                          .processes = 3,
                                          .few_switches = false,
                                          .append_heals = true,
                                          .replaces = true};

    return sched_main("test_sched_replace", &options);
}
