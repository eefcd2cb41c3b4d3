/*
 * test_loop_kill.c - killing a process before and after the Nth call that it makes, for every N,
 * also in the middle of a write, alone and with another process that goes on; and a sync that fails
 * and marks the pages clean, after which the same process or another one continues.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "tests/lib/test.h"
#include "tests/sim/workload/workload.h"

static const struct sim_fault deaths[] = {
    {.call = SIM_ANY, .effect = SIM_KILL_BEFORE},
    {.call = SIM_ANY, .effect = SIM_KILL_AFTER},
    {.call = SIM_PWRITEV, .effect = SIM_KILL_BEFORE, .put = 24},
    {.call = SIM_PWRITEV, .effect = SIM_KILL_BEFORE, .put = 200},
    {.call = SIM_PWRITEV, .effect = SIM_KILL_BEFORE, .put = 70000},
};

enum { DEATHS = sizeof(deaths) / sizeof(deaths[0]) };

/* After the death: the survivor goes on; the power goes; or a recovery is killed too. */
static void continue_workload(struct workload *copy, uint64_t seed)
{
    struct sim_power_loss loss = {.landing = SIM_PERSIST_ANY, .garbage = seed % 2 == 0};

    for (uint32_t i = 0; i < copy->options.actors; i++) {
        (void)workload_check(copy, i);
    }
    if (seed % 5 == 0) {
        workload_crash(copy, &loss, seed);
        (void)workload_recover(copy, LEDGER_POWER_LOSS, WORKLOAD_KILL);
    } else if (seed % 5 == 1) {
        workload_crash(copy, NULL, 0);
        (void)workload_recover(copy, LEDGER_NO_LOSS, WORKLOAD_KILL);
    } else if (seed % 5 == 2) {
        /* Records that a recovery returns are durable. */
        loss.landing = SIM_PERSIST_NONE;
        workload_crash(copy, NULL, 0);
        (void)workload_recover(copy, LEDGER_NO_LOSS, WORKLOAD_KILL);
        workload_crash(copy, &loss, seed);
        (void)workload_recover(copy, LEDGER_POWER_LOSS, WORKLOAD_CLOSE);
    } else {
        workload_run(copy, copy->step + (uint32_t)(seed % 5) - 2);
    }
    workload_check_after_fault(copy, seed);
}

/* Runs the next step of a copy with a death at the nth such call; false when there were fewer. */
static bool kill_at(const struct workload *base, uint32_t way, bool joins, uint64_t nth)
{
    struct workload *copy = workload_clone(base);
    struct sim_fault fault = deaths[way];
    struct workload_actor *actor;
    bool died;

    ledger_set_context("seed %llu, step %u, death %u of one that %s, call %llu",
                       (unsigned long long)base->options.seed, base->step, way,
                       joins ? "joins" : "is there", (unsigned long long)nth);
    for (uint32_t i = 0; i < copy->options.actors; i++) {
        if (copy->options.actors > 1 && (!joins || i != workload_next_actor(copy))) {
            (void)workload_open(copy, i);
        }
    }
    fault.after = nth;
    actor = workload_start(copy, workload_next_actor(copy));
    sim_process_add_fault(actor->process, &fault);
    workload_step(copy);
    died = copy->died;
    if (died) {
        continue_workload(copy, nth + way + base->step);
    }
    workload_destroy(copy);
    return died;
}

static void run(const struct workload_options *options, uint32_t steps, uint32_t every)
{
    struct workload *base = workload_create(options);
    uint64_t runs = 0;

    for (uint32_t i = 0; i < steps; i++) {
        for (uint32_t way = 0; way < DEATHS * options->actors; way++) {
            uint32_t stride = workload_stride(deaths[way % DEATHS].call, every);
            uint64_t nth = (i + way) % stride;

            while (kill_at(base, way % DEATHS, way >= DEATHS, nth)) {
                nth += stride;
                runs++;
            }
        }
        ledger_set_context("seed %llu, step %u", (unsigned long long)options->seed, base->step);
        workload_step(base);
    }
    assert_true(runs > 0);
    print_message("%llu deaths\n", (unsigned long long)runs);
    workload_destroy(base);
}

TEST(loop_kill__at_every_call)
{
    run(&(struct workload_options){.seed = 31, .actors = 1, .large_every = 4},
        workload_is_long() ? 150 : 28, workload_sample(4));
}

TEST(loop_kill__at_every_call_with_takeover)
{
    run(&(struct workload_options){.seed = 32, .actors = 2, .large_every = 4},
        workload_is_long() ? 150 : 28, workload_sample(4));
}

TEST(loop_kill__at_every_call_with_content)
{
    for (uint32_t actors = 1; actors <= 2; actors++) {
        run(
            &(struct workload_options){
                .seed = 35 + actors, .actors = actors, .large_every = 6, .blobs_every = 1},
            workload_is_long() ? 80 : 12, workload_sample(5));
    }
}

/* Recovery itself is killed at every call, again and again, and found to come to the same. */
static void kill_recovery(const struct workload *base, uint64_t seed)
{
    struct sim_power_loss loss = {.landing = SIM_PERSIST_ANY, .garbage = true};
    struct workload *crashed = workload_clone(base);
    struct workload *once;
    uint64_t found;

    if (seed % 2 == 0) {
        workload_crash(crashed, &loss, seed);
    }
    once = workload_clone(crashed);
    found =
        workload_recover(once, seed % 2 == 0 ? LEDGER_POWER_LOSS : LEDGER_NO_LOSS, WORKLOAD_KILL);
    for (uint64_t nth = 0;; nth++) {
        struct workload *copy = workload_clone(crashed);
        struct workload_actor *actor = workload_start(copy, 0);
        struct sim_fault death = {.call = SIM_ANY,
                                  .effect = nth % 2 == 0 ? SIM_KILL_AFTER : SIM_KILL_BEFORE,
                                  .after = nth / 2};
        bool died;

        ledger_set_context("seed %llu, step %u, recovery killed at call %llu",
                           (unsigned long long)base->options.seed, base->step,
                           (unsigned long long)nth);
        sim_process_add_fault(actor->process, &death);
        if (setjmp(copy->death) == 0) {
            (void)workload_open(copy, 0);
        }
        died = copy->died;
        workload_crash(copy, nth % 3 == 0 ? &loss : NULL, seed + nth);
        if (workload_recover(copy,
                             nth % 3 == 0 || seed % 2 == 0 ? LEDGER_POWER_LOSS : LEDGER_NO_LOSS,
                             WORKLOAD_KILL) != found &&
            (seed % 2 == 0 || nth % 3 != 0)) {
            ledger_fail("recovery comes to something else");
        }
        workload_destroy(copy);
        if (!died) {
            break;
        }
    }
    workload_destroy(once);
    workload_destroy(crashed);
}

TEST(loop_kill__recovery_at_every_call)
{
    struct workload *base =
        workload_create(&(struct workload_options){.seed = 33, .actors = 2, .large_every = 4});

    for (uint32_t i = 0; i < (workload_is_long() ? 150u : 28u); i++) {
        ledger_set_context("seed 33, step %u", base->step);
        workload_step(base);
        if (i % workload_sample(1) == 0) {
            kill_recovery(base, i);
        }
    }
    workload_destroy(base);
}

TEST(loop_kill__recovery_of_content_at_every_call)
{
    struct workload *base = workload_create(
        &(struct workload_options){.seed = 38, .actors = 2, .large_every = 6, .blobs_every = 1});

    for (uint32_t i = 0; i < (workload_is_long() ? 100u : 14u); i++) {
        ledger_set_context("seed 38, step %u", base->step);
        workload_step(base);
        if (i % workload_sample(1) == 0) {
            kill_recovery(base, i);
        }
    }
    workload_destroy(base);
}

/* --- syncs that fail ---------------------------------------------------- */

enum after { SAME_PROCESS, OTHER_PROCESS, EVERYBODY_OPENS_AGAIN, OTHER_AFTER_DEATH, AFTERS };

/* Appends where that is possible; poison refuses it. */
static void append(struct workload *workload, uint32_t actor)
{
    if (workload_open(workload, actor) == WAL_OK) {
        (void)workload_probe(workload, actor);
    }
}

static void fail_sync(const struct workload *base, uint64_t nth, enum after after, bool *struck)
{
    struct sim_power_loss loss = {.landing = SIM_PERSIST_NONE};
    struct workload *copy = workload_clone(base);
    uint32_t number = workload_next_actor(copy);
    struct sim_fault fault = {
        .call = SIM_SYNC, .path = ".seg", .after = nth, .sys_errno = EIO, .partial = nth % 2 == 1};

    ledger_set_context("seed %llu, step %u, sync %llu fails, after it %d",
                       (unsigned long long)base->options.seed, base->step, (unsigned long long)nth,
                       after);
    (void)workload_open(copy, 0);
    (void)workload_open(copy, 1);
    sim_process_add_fault(copy->actors[number].process, &fault);
    workload_step(copy);
    *struck = sim_process_counts(copy->actors[number].process)->faults > 0;
    sim_process_clear_faults(copy->actors[number].process);
    for (uint32_t i = 0; i < 2; i++) {
        (void)workload_check(copy, i);
    }
    switch (after) {
    case SAME_PROCESS:
        append(copy, number);
        break;
    case OTHER_PROCESS:
        append(copy, 1 - number);
        break;
    case OTHER_AFTER_DEATH:
        workload_kill(copy, number);
        append(copy, 1 - number);
        break;
    case EVERYBODY_OPENS_AGAIN:
        workload_crash(copy, NULL, 0);
        (void)workload_recover(copy, LEDGER_NO_LOSS, WORKLOAD_KEEP_OPEN);
        (void)workload_probe(copy, 0);
        break;
    case AFTERS:
        break;
    }
    workload_crash(copy, &loss, nth);
    (void)workload_recover(copy, LEDGER_POWER_LOSS, WORKLOAD_CLOSE);
    workload_check_after_fault(copy, nth);
    workload_destroy(copy);
}

TEST(loop_kill__failed_sync_is_never_retracted)
{
    struct workload *base = workload_create(
        &(struct workload_options){.seed = 34, .actors = 2, .large_every = 4, .blobs_every = 3});
    uint64_t runs = 0;

    for (uint32_t i = 0; i < (workload_is_long() ? 300u : 40u); i++) {
        for (int after = 0; after < AFTERS; after++) {
            bool struck = (i + (uint32_t)after) % workload_sample(1) == 0;

            for (uint64_t nth = 0; struck; nth++) {
                fail_sync(base, nth, (enum after)after, &struck);
                runs += struck;
            }
        }
        ledger_set_context("seed 34, step %u", base->step);
        workload_step(base);
    }
    assert_true(runs > 0);
    print_message("%llu syncs failed\n", (unsigned long long)runs);
    workload_destroy(base);
}
