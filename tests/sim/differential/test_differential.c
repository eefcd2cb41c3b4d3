/*
 * test_differential.c - the engine against a plain model of the whole interface (reference.h): the
 * same random operations, closing, dying and losing power at random, and the same answers.
 *
 * AGENTWAL_SEED and AGENTWAL_STEPS repeat one run; AGENTWAL_LONG makes a million operations.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/test.h"
#include "tests/sim/differential/differential.h"

enum {
    OPERATIONS = 64,
    STEPS_OF_STORE = 2500 /* then a new store is begun */
};

/* The statuses that a run must cover: all that the operations can return. */
static const int statuses[] = {WAL_OK,        WAL_END,       WAL_EINVAL,    WAL_ENOTFOUND,
                               WAL_EEXISTS,   WAL_ECONFLICT, WAL_ETOOBIG,   WAL_EREADONLY,
                               WAL_ENOPARENT, WAL_EBADJSON,  WAL_ECALLBACK, WAL_ESCHEMA,
                               WAL_EREDACTED, WAL_ETRASHED};

/* Whether AGENTWAL_LONG asks for all that there is to try, not a sample. */
static bool is_long(void)
{
    const char *text = getenv("AGENTWAL_LONG");

    return text != NULL && *text != '\0' && strcmp(text, "0") != 0;
}

struct tally {
    struct differential_counts counts;
    uint64_t operations[OPERATIONS];
    uint64_t stores;
};

static uint32_t choose(struct differential *run)
{
    uint32_t total = 0;
    uint32_t roll;
    uint32_t i = 0;

    for (uint32_t j = 0; j < differential_operation_count; j++) {
        total += differential_operations[j].weight;
    }
    roll = differential_random(run, total);
    while (roll >= differential_operations[i].weight) {
        roll -= differential_operations[i].weight;
        i++;
    }
    return i;
}

/* One store from its making on. */
static void run_store(uint64_t seed, uint64_t steps, bool is_memory, struct tally *tally)
{
    struct differential *run = calloc(1, sizeof(*run));

    assert_non_null(run);
    differential_init(run, seed, is_memory, &tally->counts);
    for (run->step = 1; run->step <= steps; run->step++) {
        uint32_t i = choose(run);

        differential_begin(run, differential_operations[i].name);
        differential_operations[i].run(run);
        differential_end(run);
        tally->operations[i]++;
    }
    differential_deinit(run);
    free(run);
    tally->stores++;
}

/* Stores of the seeds from `seed` on. */
static void run_many(uint64_t seed, uint64_t steps, struct tally *tally)
{
    while (steps > 0) {
        uint64_t next = steps < STEPS_OF_STORE ? steps : STEPS_OF_STORE;

        run_store(seed, next, false, tally);
        steps -= next;
        seed += 1000;
    }
}

/* How often all went on, and what came of it. */
static void print_tally(const struct tally *tally)
{
    const struct differential_counts *counts = &tally->counts;

    for (uint32_t i = 0; i < differential_operation_count; i++) {
        print_message("%10" PRIu64 "  %s\n", tally->operations[i], differential_operations[i].name);
    }
    for (int i = 0; i < DIFFERENTIAL_STATUSES; i++) {
        if (counts->statuses[i] > 0) {
            print_message("%10" PRIu64 "  %s\n", counts->statuses[i], wal_status_text(WAL_END - i));
        }
    }
    print_message("%" PRIu64 " stores, %" PRIu64 " records at their ends, "
                  "%" PRIu64 " segments at most, %" PRIu64 " whole comparisons\n",
                  tally->stores, counts->records, counts->segments, counts->checks);
    print_message("%" PRIu64 " records lost with the power, %" PRIu64 " deaths in commits, %" PRIu64
                  " of which are there\n",
                  counts->lost, counts->deaths, counts->survived);
    print_message("%" PRIu64 " segments rewritten, %" PRIu64 " records dropped, %" PRIu64
                  " erased; %" PRIu64 " compactions failed, %" PRIu64 " killed\n",
                  counts->rewritten, counts->dropped, counts->erased, counts->failed,
                  counts->deaths_compacting);
}

/* Everything happened. */
static void check_tally(const struct tally *tally)
{
    for (uint32_t i = 0; i < differential_operation_count; i++) {
        if (tally->operations[i] == 0) {
            fail_msg("never: %s", differential_operations[i].name);
        }
    }
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        if (tally->counts.statuses[WAL_END - statuses[i]] == 0) {
            fail_msg("never answered: %s", wal_status_text(statuses[i]));
        }
    }
    assert_true(tally->counts.lost > 0);
    assert_true(tally->counts.survived > 0);
    assert_true(tally->counts.survived < tally->counts.deaths);
    assert_true(tally->counts.dropped > 0);
    assert_true(tally->counts.erased > 0);
    assert_true(tally->counts.dropped_deltas > 0);
    assert_true(tally->counts.failed > 0);
    assert_true(tally->counts.deaths_compacting > 0);
}

TEST(differential__engine_and_reference_agree)
{
    const char *seed = getenv("AGENTWAL_SEED");
    const char *steps = getenv("AGENTWAL_STEPS");
    uint64_t seeds = is_long() ? 10 : 4;
    uint64_t each = is_long() ? 100000 : 1500;
    struct tally tally = {0};

    if (steps != NULL && *steps != '\0') {
        each = strtoull(steps, NULL, 10);
    }
    if (seed != NULL && *seed != '\0') {
        run_many(strtoull(seed, NULL, 10), each, &tally);
        print_tally(&tally);
        return;
    }
    for (uint64_t i = 1; i <= seeds; i++) {
        print_message("seed %" PRIu64 ", %" PRIu64 " steps\n", i, each);
        run_many(i, each, &tally);
    }
    print_tally(&tally);
    check_tally(&tally);
}

/* The same operations on a store in memory, but for those that end its life. */
TEST(differential__store_in_memory_agrees)
{
    uint64_t seeds = is_long() ? 20 : 1;
    struct tally tally = {0};

    for (uint64_t seed = 1; seed <= seeds; seed++) {
        print_message("seed %" PRIu64 "\n", seed);
        run_store(seed, 1000, true, &tally);
    }
}
