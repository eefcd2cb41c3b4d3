/*
 * test_loop_fault.c - failing the Nth call to the system, for every N: once
 * and from then on; EIO, ENOSPC, a write that stops short, a sync that marks
 * pages clean. Each step of the script is run from a copy of the disk, opening
 * included.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "tests/lib/test.h"
#include "tests/sim/workload/workload.h"

static const struct sim_fault ways[] = {
    {.call = SIM_ANY, .sys_errno = EIO},
    {.call = SIM_ANY, .sys_errno = EIO, .sticky = true},
    {.call = SIM_ANY, .sys_errno = ENOSPC},
    {.call = SIM_ANY, .sys_errno = ENOSPC, .sticky = true},
    {.call = SIM_PWRITEV, .sys_errno = 0, .put = 100},
    {.call = SIM_PWRITEV, .sys_errno = EIO, .put = 100},
    {.call = SIM_PWRITEV, .sys_errno = ENOSPC, .put = 5000, .sticky = true},
    {.call = SIM_PWRITEV, .sys_errno = EIO, .put = 1u << 30},
    {.call = SIM_SYNC, .sys_errno = EIO},
    {.call = SIM_SYNC, .sys_errno = EIO, .partial = true},
    {.call = SIM_SYNC_DIRECTORY, .sys_errno = EIO},
    {.call = SIM_ALLOCATE, .sys_errno = ENOSPC},
};

enum {
    WAYS = sizeof(ways) / sizeof(ways[0])
};

/* After the step the same process continues, all continue, or power is lost. */
static void continue_workload(struct workload *copy, uint64_t seed)
{
    struct sim_power_loss loss = {.landing = SIM_PERSIST_ANY,
                                  .garbage = seed % 2 == 0};

    for (uint32_t i = 0; i < LEDGER_ACTORS; i++) {
        (void)workload_check(copy, i);
    }
    if (seed % 3 == 0 && !copy->names_unsynced) {
        workload_crash(copy, &loss, seed);
        (void)workload_recover(copy, LEDGER_POWER_LOSS, WORKLOAD_KILL);
    } else {
        workload_run(copy, copy->step + (uint32_t)(seed % 3) * 2);
    }
    workload_check_after_fault(copy, seed);
}

/* Runs the next step of a copy with the nth such call failing; false when
 * there were fewer. */
static bool fail_nth(const struct workload *base, uint32_t way, uint64_t nth)
{
    struct workload *copy = workload_clone(base);
    struct workload_actor *actor =
        workload_start(copy, workload_next_actor(copy));
    struct sim_fault fault = ways[way];
    bool struck;

    ledger_set_context("seed %llu, step %u, way %u, call %llu",
                       (unsigned long long)base->options.seed, base->step, way,
                       (unsigned long long)nth);
    fault.after = nth;
    sim_process_add_fault(actor->process, &fault);
    if (copy->options.actors > 1) {
        (void)workload_open(copy, 0);
        (void)workload_open(copy, 1);
    }
    workload_step(copy);
    struck = sim_process_counts(actor->process)->faults > 0;
    sim_process_clear_faults(actor->process);
    if (struck) {
        continue_workload(copy, nth + way + base->step);
    }
    workload_destroy(copy);
    return struck;
}

static void run(const struct workload_options *options, uint32_t steps,
                uint32_t every)
{
    struct workload *base = workload_create(options);
    uint64_t runs = 0;

    for (uint32_t i = 0; i < steps; i++) {
        for (uint32_t way = 0; way < WAYS; way++) {
            uint32_t stride =
                ways[way].call == SIM_ANY ? every : (every + 1) / 2;
            uint64_t nth = (i + way) % stride;

            while (fail_nth(base, way, nth)) {
                nth += stride;
                runs++;
            }
        }
        ledger_set_context("seed %llu, step %u",
                           (unsigned long long)options->seed, base->step);
        workload_step(base);
    }
    assert_true(runs > 0);
    print_message("%llu failures\n", (unsigned long long)runs);
    workload_destroy(base);
}

TEST(loop_fault__every_call)
{
    run(&(struct workload_options){.seed = 21, .actors = 1, .large_every = 4},
        workload_is_long() ? 150 : 24, workload_sample(9));
}

TEST(loop_fault__every_call_of_two_processes)
{
    run(&(struct workload_options){.seed = 22, .actors = 2, .large_every = 4},
        workload_is_long() ? 150 : 24, workload_sample(9));
}

TEST(loop_fault__every_call_reading_by_pread)
{
    run(&(struct workload_options){.seed = 23,
                                   .actors = 1,
                                   .large_every = 4,
                                   .open_flags = WAL_OPEN_PREAD},
        workload_is_long() ? 80 : 12, workload_sample(7));
}

/* With content, steps and checks are expensive, and more so with every step
 * before them: several short scripts try more calls than a long one. */
TEST(loop_fault__every_call_with_content)
{
    const uint32_t scripts = workload_is_long() ? 4 : 2;

    for (uint32_t script = 1; script <= scripts; script++) {
        run(&(struct workload_options){.seed = 23 + script,
                                       .actors = 2 - script % 2,
                                       .large_every = 6,
                                       .blobs_every = 1},
            workload_is_long() ? 20 : 10, workload_sample(9));
    }
}
