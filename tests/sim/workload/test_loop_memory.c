/*
 * test_loop_memory.c - failing the Nth allocation, for every N: once, and from
 * then on. Each step of the script is run from a copy of the disk, opening
 * included, so that N stays small. A refusal must leave everything as it was,
 * in memory and in the log alike.
 */
#include <stddef.h>
#include <stdlib.h>

#include "tests/lib/test.h"
#include "tests/sim/workload/workload.h"

/* What the handle reads is what the next opening will find: nothing was
 * refused, or taken, in memory alone. */
static void compare_with_log(struct workload *workload, uint32_t number)
{
    struct ledger_view *seen;
    struct ledger_view *found;
    struct workload *copy;

    if (workload->actors[number].store == NULL) {
        return;
    }
    seen = malloc(sizeof(*seen));
    found = malloc(sizeof(*found));
    copy = workload_clone(workload);
    assert_non_null(seen);
    assert_non_null(found);
    ledger_check(workload->ledger, workload->actors[number].store,
                 LEDGER_NO_LOSS, seen);
    if (workload_open(copy, 0) != WAL_OK) {
        ledger_fail("the log cannot be opened next to its writer");
    }
    ledger_check(workload->ledger, copy->actors[0].store, LEDGER_NO_LOSS,
                 found);
    if (seen->digest != found->digest) {
        ledger_fail("the process and the log differ");
    }
    workload_destroy(copy);
    free(seen);
    free(found);
}

/* Runs the next step of a copy with the nth allocation failing; false when
 * there were fewer. */
static bool fail_nth(const struct workload *base, uint64_t nth, bool sticky)
{
    struct workload *copy = workload_clone(base);
    uint32_t number = workload_next_actor(copy);
    struct workload_actor *actor = workload_start(copy, number);
    bool struck;

    ledger_set_context("seed %llu, step %u, allocation %llu%s",
                       (unsigned long long)base->options.seed, base->step,
                       (unsigned long long)nth, sticky ? " and all after" : "");
    faulty_heap_fail(&actor->heap, nth, sticky);
    workload_step(copy);
    struck = actor->heap.failures > 0;
    faulty_heap_fail(&actor->heap, 0, false);
    if (struck && nth % 2 == 0) {
        compare_with_log(copy, number);
    }
    if (struck) {
        workload_run(copy, copy->step + 2);
        compare_with_log(copy, number);
    }
    if (struck) {
        workload_check_after_fault(copy, nth);
    }
    workload_destroy(copy);
    return struck;
}

static void run(const struct workload_options *options, uint32_t steps)
{
    struct workload *base = workload_create(options);
    uint64_t runs = 0;

    for (uint32_t i = 0; i < steps; i++) {
        for (uint32_t sticky = 0; sticky < 2; sticky++) {
            /* The sample: each allocation fails in one of the two ways. */
            uint64_t stride = workload_sample(2);
            uint64_t nth = 1 + (i + sticky) % stride;

            while (fail_nth(base, nth, sticky != 0)) {
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

TEST(loop_memory__every_allocation)
{
    run(&(struct workload_options){.seed = 11, .actors = 1, .large_every = 4},
        workload_is_long() ? 120 : 24);
}

TEST(loop_memory__two_processes)
{
    run(&(struct workload_options){.seed = 12, .actors = 2, .large_every = 4},
        workload_is_long() ? 120 : 24);
}

TEST(loop_memory__reading_by_pread)
{
    run(&(struct workload_options){.seed = 13,
                                   .actors = 1,
                                   .large_every = 4,
                                   .open_flags = WAL_OPEN_PREAD},
        workload_is_long() ? 60 : 16);
}

TEST(loop_memory__with_content)
{
    run(
        &(struct workload_options){
            .seed = 14, .actors = 2, .large_every = 6, .blobs_every = 1},
        workload_is_long() ? 60 : 8);
}
