/*
 * test_loop_power.c - losing power after the Nth call that a store makes, for every N: the script
 * runs once, and at each call a copy of the disk loses power in every way, is recovered, and
 * compared with what was promised.
 */
#include <stddef.h>
#include <stdlib.h>

#include "engine/session/store.h"
#include "tests/lib/test.h"
#include "tests/sim/workload/workload.h"

/* A run, and how much of it is tried. */
struct cuts {
    struct workload *workload;
    uint64_t calls;
    uint64_t tried;
    uint32_t every;   /* one call in N */
    uint32_t each;    /* losses at such a call */
    uint64_t choices; /* losses in all */
    bool writes;      /* after writes and syncs of segments alone */
    bool unsafe;      /* sectors may be torn: groups are aligned */
};

static uint64_t seed_of(const struct cuts *cuts, uint32_t choice)
{
    return cuts->workload->options.seed * 1000003u + cuts->calls * 64 + choice;
}

/* A loss, its recovery and what may follow: recovery again, after a kill or
 * a clean close; appends, and another loss. */
static void lose(const struct cuts *cuts, uint32_t choice)
{
    uint64_t seed = seed_of(cuts, choice);
    struct sim_power_loss loss = {.landing =
                                      choice < SIM_PERSISTENCES - 1
                                          ? (enum sim_persistence)(SIM_PERSIST_NONE + (int)choice)
                                          : SIM_PERSIST_ANY,
                                  .garbage = seed % 3 == 0,
                                  .unsafe_overwrite = cuts->unsafe};
    struct sim_power_loss again = {.landing = SIM_PERSIST_ANY, .garbage = seed % 2 == 0};
    struct workload *copy = workload_clone(cuts->workload);
    uint64_t first;

    ledger_set_context("seed %llu, call %llu, step %u, choice %u",
                       (unsigned long long)cuts->workload->options.seed,
                       (unsigned long long)cuts->calls, cuts->workload->step, choice);
    workload_crash(copy, &loss, seed);
    first =
        workload_recover(copy, LEDGER_POWER_LOSS, seed % 4 == 0 ? WORKLOAD_CLOSE : WORKLOAD_KILL);
    if (seed % 4 < 2) {
        workload_crash(copy, seed % 8 < 4 ? &again : NULL, seed + 1);
        if (workload_recover(copy, LEDGER_POWER_LOSS, WORKLOAD_KEEP_OPEN) != first) {
            ledger_fail("a second recovery finds something else");
        }
    } else if (seed % 4 == 2) {
        (void)workload_open(copy, 0);
        (void)workload_probe(copy, 0);
        workload_crash(copy, &again, seed + 2);
        (void)workload_recover(copy, LEDGER_POWER_LOSS, WORKLOAD_CLOSE);
    }
    workload_destroy(copy);
}

static void on_call(void *arg, const struct sim_event *event)
{
    struct cuts *cuts = arg;

    cuts->calls++;
    if (event->call >= SIM_CLOSE || cuts->every == 0 || cuts->calls % cuts->every != 0 ||
        (cuts->writes && event->call != SIM_PWRITEV && event->call != SIM_SYNC)) {
        return;
    }
    for (uint32_t i = 0; i < cuts->each; i++) {
        uint32_t choice =
            cuts->each < SIM_PERSISTENCES ? (uint32_t)(cuts->tried % SIM_PERSISTENCES) : i;

        lose(cuts, choice);
        cuts->tried++;
        cuts->choices++;
    }
}

static void run(struct cuts *cuts, const struct workload_options *options, uint32_t steps)
{
    struct workload *workload = workload_create(options);

    cuts->workload = workload;
    cuts->calls = 0;
    sim_disk_on_call(workload->disk, on_call, cuts);
    workload_run(workload, steps);
    sim_disk_on_call(workload->disk, NULL, NULL);
    ledger_set_context("seed %llu, end", (unsigned long long)options->seed);
    workload_crash(workload, NULL, 0);
    (void)workload_recover(workload, LEDGER_NO_LOSS, WORKLOAD_CLOSE);
    workload_destroy(workload);
}

TEST(loop_power__every_call_every_landing)
{
    struct cuts cuts = {.every = workload_sample(1), .each = SIM_PERSISTENCES};

    for (uint64_t seed = 1; seed <= (workload_is_long() ? 24u : 2u); seed++) {
        run(&cuts,
            &(struct workload_options){.seed = seed, .actors = 1 + seed % 2, .large_every = 12},
            workload_is_long() ? 60 : 18);
    }
    assert_true(cuts.choices > 0);
    print_message("%llu losses\n", (unsigned long long)cuts.choices);
}

TEST(loop_power__long_runs_with_rotation)
{
    struct cuts cuts = {.every = workload_is_long() ? 2 : workload_sample(11), .each = 1};

    for (uint64_t seed = 101; seed <= (workload_is_long() ? 160u : 104u); seed++) {
        run(&cuts,
            &(struct workload_options){.seed = seed,
                                       .actors = 1 + seed % 2,
                                       .large_every = 6,
                                       .huge_every = seed % 4 == 0 ? 30 : 0,
                                       .open_flags = seed % 3 == 0 ? WAL_OPEN_PREAD : 0},
            160);
    }
    assert_true(cuts.choices > 0);
    print_message("%llu losses\n", (unsigned long long)cuts.choices);
}

TEST(loop_power__with_content)
{
    struct cuts cuts = {.every = workload_sample(6), .each = 1};

    for (uint64_t seed = 501; seed <= (workload_is_long() ? 540u : 503u); seed++) {
        run(&cuts,
            &(struct workload_options){.seed = seed,
                                       .actors = 1 + seed % 2,
                                       .large_every = 12,
                                       .blobs_every = 2,
                                       .open_flags = seed % 3 == 0 ? WAL_OPEN_PREAD : 0},
            60);
    }
    assert_true(cuts.choices > 0);
    print_message("%llu losses\n", (unsigned long long)cuts.choices);
}

TEST(loop_power__rotations_and_marks)
{
    struct cuts cuts = {
        .every = workload_sample(1), .each = workload_is_long() ? 5 : 2, .writes = true};

    for (uint64_t seed = 201; seed <= (workload_is_long() ? 230u : 206u); seed++) {
        run(&cuts, &(struct workload_options){.seed = seed, .actors = 1, .large_every = 2}, 24);
    }
    assert_true(cuts.choices > 0);
    print_message("%llu losses\n", (unsigned long long)cuts.choices);
}

/* What SEAL, the trailer or a mark say to be durable must be it by then. */
TEST(loop_power__after_written_but_unsynced_groups)
{
    struct wal_error error = {.struct_size = sizeof(error)};
    struct cuts cuts = {.every = 1, .each = workload_count(40, 16), .writes = true};

    for (int marks = 0; marks < 2; marks++) {
        struct workload *workload =
            workload_create(&(struct workload_options){.seed = 401, .actors = 1});

        cuts.workload = workload;
        assert_ok(workload_open(workload, 0));
        assert_ok(workload_add_session(workload, 0));
        for (uint32_t i = 0; i < 6; i++) {
            assert_ok(workload_append(workload, 0, 0, i < 3 ? WAL_DURABLE : WAL_WRITTEN, 700));
        }
        sim_disk_on_call(workload->disk, on_call, &cuts);
        if (marks == 0) {
            assert_ok(workload_append(workload, 0, 0, WAL_DURABLE, 2000000));
        } else {
            assert_ok(wal__store_commit_mark(workload->actors[0].store, &error));
        }
        sim_disk_on_call(workload->disk, NULL, NULL);
        workload_destroy(workload);
    }
    assert_true(cuts.choices > 0);
    print_message("%llu losses\n", (unsigned long long)cuts.choices);
}

TEST(loop_power__aligned_groups_survive_torn_sectors)
{
    struct cuts cuts = {.every = workload_sample(3), .each = 1, .unsafe = true};

    for (uint64_t seed = 301; seed <= (workload_is_long() ? 340u : 302u); seed++) {
        run(&cuts,
            &(struct workload_options){.seed = seed,
                                       .actors = 1,
                                       .large_every = 10,
                                       .group_align = seed % 2 == 0 ? 512 : 4096},
            60);
    }
    assert_true(cuts.choices > 0);
    print_message("%llu losses\n", (unsigned long long)cuts.choices);
}
