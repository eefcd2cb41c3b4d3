/*
 * test_model.c - rounds of several processes on one store, compared with the
 * reference (model.h).
 *
 * Runs rounds for some seconds from a seed of the time; with AGENTWAL_LONG
 * 2,000 rounds of 2,000 operations. AGENTWAL_SEED runs that round alone;
 * AGENTWAL_ROUNDS that many from it on; AGENTWAL_STEPS sets their length. The
 * stores of rounds that fail are kept in AGENTWAL_KEEP.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/model/model.h"

enum {
    SHORT_SECONDS = 12,
    SHORT_STEPS = 400,
    LONG_ROUNDS = 2000,
    LONG_STEPS = 2000
};

/* A number of the environment, or the fallback. */
static uint64_t setting(const char *name, uint64_t fallback)
{
    const char *text = getenv(name);

    return text != NULL && *text != '\0' ? strtoull(text, NULL, 0) : fallback;
}

static double now(void)
{
    struct timespec time;

    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void print_tally(const struct model_tally *tally, double seconds)
{
    print_message("%" PRIu64 " rounds, %" PRIu64 " operations, %" PRIu64
                  " rounds with a difference, %.1f s\n",
                  tally->rounds, tally->operations, tally->failures, seconds);
    print_message(
        "%" PRIu64 " kills, %" PRIu64 " times several at once, %" PRIu64
        " compactions, %" PRIu64 " backups, %" PRIu64
        " bundles and merges, %" PRIu64 " sessions refused\n",
        tally->kills, tally->concurrent,
        tally->tasks[MODEL_COMPACT] + tally->tasks[MODEL_COMPACT_SHARED],
        tally->tasks[MODEL_BACKUP], tally->tasks[MODEL_TRANSFER],
        tally->refused);
    print_message("%" PRIu64 " times erased: %" PRIu64
                  " canaries searched for; %" PRIu64 " whole comparisons\n",
                  tally->erasures, tally->canaries, tally->counts.checks);
}

static void test_model__processes_and_reference_agree(void **state)
{
    bool is_long = setting("AGENTWAL_LONG", 0) != 0;
    uint64_t seed = setting("AGENTWAL_SEED", 0);
    uint64_t rounds =
        setting("AGENTWAL_ROUNDS", seed != 0 ? 1 : (is_long ? LONG_ROUNDS : 0));
    uint32_t steps =
        (uint32_t)setting("AGENTWAL_STEPS", is_long ? LONG_STEPS : SHORT_STEPS);
    const char *keep = getenv("AGENTWAL_KEEP");
    struct model *model;
    double begin = now();

    (void)state;
    if (seed == 0) {
        seed = (uint64_t)time(NULL) * 10000;
    }
    if (keep != NULL && *keep != '\0') {
        assert_int_equal(chdir(keep), 0);
    }
    print_message("AGENTWAL_SEED=%" PRIu64 " AGENTWAL_STEPS=%u\n", seed, steps);
    common_heap_init((size_t)16 << 30);
    model = common_alloc(1, sizeof(*model));
    for (uint64_t i = 0;
         rounds != 0 ? i < rounds : i == 0 || now() - begin < SHORT_SECONDS;
         i++) {
        (void)model_run_round(model, seed + i, steps);
        if (is_long && i % 50 == 49) {
            print_tally(&model->tally, now() - begin);
        }
    }
    print_tally(&model->tally, now() - begin);
    assert_int_equal(model->tally.failures, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model__processes_and_reference_agree),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
