/*
 * test_heal_recovery.c - recovery of a log that an earlier process left
 * poisoned: it copies what it keeps to new ground, and writes nothing in place
 * (SPEC.md 3.4).
 */
#include "engine/session/session.h"
#include "tests/lib/test.h"
#include "tests/sim/recovery/recover_fixture.h"

enum {
    CALLS_MAX = 400
};

/* The next sync of a segment by this process fails. */
static void fail_sync(struct workload *w, uint32_t actor)
{
    sim_process_add_fault(w->actors[actor].process,
                          &(struct sim_fault){.call = SIM_SYNC,
                                              .path = ".seg",
                                              .sys_errno = EIO});
}

static int32_t store_state(struct workload *w, uint32_t actor)
{
    struct wal_store_info info = {.struct_size = sizeof(info)};

    assert_ok(wal_store_get_info(w->actors[actor].store, &info, NULL));
    return info.status;
}

/* An opening whose process may die at it. */
static void open_until_dead(struct workload *w, uint32_t actor)
{
    w->died = false;
    if (setjmp(w->death) == 0) {
        assert_ok(workload_open(w, actor));
    }
}

/* After whatever it was: all that was promised is there, also without power,
 * and a second recovery gives the same. */
static void settle(struct workload *w, uint64_t seed)
{
    const struct sim_power_loss loss = {.landing = SIM_PERSIST_ANY};

    workload_crash(w, &loss, seed);
    (void)workload_recover(w, LEDGER_POWER_LOSS, WORKLOAD_KILL);
    (void)workload_recover(w, LEDGER_NO_LOSS, WORKLOAD_CLOSE);
}

/*
 * Three faults: the power fails, and the control page forgets what is durable;
 * the recovery that follows fails to sync; the power fails again at each call
 * of the next one. What was acknowledged before may not be written in place.
 */
static bool lose_power_in_recovery(uint64_t skip, uint64_t seed)
{
    const struct sim_power_loss kept = {.landing = SIM_PERSIST_ALL};
    const struct sim_power_loss loss = {.garbage = true};
    struct wal_error error = {.struct_size = sizeof(error)};
    void *made = NULL;
    struct workload *w;
    bool died;

    assert_int_equal(set_up(&made), 0);
    w = made;
    ledger_set_context("power lost at call %llu, seed %llu",
                       (unsigned long long)skip, (unsigned long long)seed);
    workload_crash(w, &kept, seed);
    (void)workload_start(w, 0);
    fail_sync(w, 0);
    assert_int_equal(workload_open_raw(w, 0, 0, &error), WAL_EIO);
    workload_crash(w, NULL, 0);
    (void)workload_start(w, 0);
    sim_process_add_fault(w->actors[0].process,
                          &(struct sim_fault){.call = SIM_ANY,
                                              .after = skip,
                                              .effect = SIM_KILL_AFTER});
    open_until_dead(w, 0);
    died = w->died;
    w->died = false;
    workload_crash(w, &loss, seed);
    (void)workload_recover(w, LEDGER_POWER_LOSS, WORKLOAD_CLOSE);
    settle(w, seed);
    tear_down(&made);
    return died;
}

TEST(heal_recovery__power_lost_at_every_call)
{
    uint32_t cuts = 0;
    bool died = true;

    for (uint64_t skip = 0; skip < CALLS_MAX && died; skip++) {
        for (uint64_t seed = 0; seed < 20; seed++) {
            died = lose_power_in_recovery(skip, seed);
            cuts += died;
        }
    }
    assert_in_range(cuts, 5, CALLS_MAX * 20);
}

/* The next recovery does not rely on a sync whose outcome nobody knows. */
RECOVERY_TEST(heal_recovery__killed_in_its_failed_sync)
{
    const struct sim_power_loss nothing = {.landing = SIM_PERSIST_NONE};
    struct workload *w = *state;

    assert_ok(workload_append(w, 0, 0, WAL_WRITTEN, 300));
    crash(w);
    (void)workload_start(w, 0);
    sim_process_add_fault(w->actors[0].process,
                          &(struct sim_fault){.call = SIM_SYNC,
                                              .path = ".seg",
                                              .effect = SIM_KILL_FAILED,
                                              .sys_errno = EIO});
    open_until_dead(w, 0);
    assert_true(w->died);
    w->died = false;
    crash(w);
    assert_ok(open_with(w, 0));
    assert_ok(workload_append(w, 0, 1, WAL_DURABLE, 300));
    workload_crash(w, &nothing, 0);
    (void)workload_recover(w, LEDGER_NO_LOSS, WORKLOAD_CLOSE);
}

/* What recovery found remains known after it healed the log. */
RECOVERY_TEST(heal_recovery__reports_a_torn_tail)
{
    const struct sim_power_loss kept = {.landing = SIM_PERSIST_ALL};
    struct workload *w = *state;
    struct wal_store_info info;

    assert_ok(workload_append(w, 0, 0, WAL_WRITTEN, 300));
    write_torn_group(w);
    workload_crash(w, &kept, 1);
    (void)workload_start(w, 0);
    fail_sync(w, 0);
    assert_int_equal(open_with(w, 0), WAL_EIO);
    crash(w);
    info = expect_tail(w, WAL_TAIL_TORN);
    assert_int_equal(info.tail_segment, 1);
    assert_int_equal(info.segments, 2);
    expect_all(w);
}

/* Damage before the durable end does not keep recovery from copying what is
 * beyond it; the new segment lists the damage. */
RECOVERY_TEST(heal_recovery__of_a_damaged_tail)
{
    const struct sim_power_loss kept = {.landing = SIM_PERSIST_ALL};
    struct workload *w = *state;

    for (uint32_t i = 0; i < 6; i++) {
        assert_ok(workload_append(w, 0, i % 2, WAL_DURABLE, 300));
    }
    flip_frame(w, FIRST, find(w, FIRST, WAL__FRAME_ENTRY, 0));
    workload_crash(w, &kept, 1);
    (void)workload_start(w, 0);
    fail_sync(w, 0);
    assert_int_equal(open_with(w, 0), WAL_EIO);
    crash(w);
    assert_ok(open_with(w, 0));
    assert_int_equal(status_of(w).segments, 2);
    assert_ok(store_state(w, 0));
    assert_true(is_damaged(w, 0));
    assert_int_equal(count_entries(w, 1), 6);
}

/* The same while the power is cut at each call of that recovery: what was
 * acknowledged beyond the damage is not written in place. */
static bool lose_power_in_recovery_of_damage(uint64_t skip, uint64_t seed)
{
    const struct sim_power_loss kept = {.landing = SIM_PERSIST_ALL};
    const struct sim_power_loss loss = {.garbage = true};
    void *made = NULL;
    struct workload *w;
    bool died;

    assert_int_equal(set_up(&made), 0);
    w = made;
    ledger_set_context("power lost at call %llu, seed %llu",
                       (unsigned long long)skip, (unsigned long long)seed);
    for (uint32_t i = 0; i < 6; i++) {
        assert_ok(workload_append(w, 0, i % 2, WAL_DURABLE, 300));
    }
    flip_frame(w, FIRST, find(w, FIRST, WAL__FRAME_ENTRY, 0));
    workload_crash(w, &kept, seed);
    (void)workload_start(w, 0);
    fail_sync(w, 0);
    assert_int_equal(open_with(w, 0), WAL_EIO);
    crash(w);
    (void)workload_start(w, 0);
    sim_process_add_fault(w->actors[0].process,
                          &(struct sim_fault){.call = SIM_ANY,
                                              .after = skip,
                                              .effect = SIM_KILL_AFTER});
    open_until_dead(w, 0);
    died = w->died;
    w->died = false;
    workload_crash(w, &loss, seed);
    assert_ok(open_with(w, 0));
    assert_true(is_damaged(w, 0));
    assert_int_equal(count_entries(w, 1), 6);
    tear_down(&made);
    return died;
}

TEST(heal_recovery__power_lost_at_every_call_with_damage)
{
    uint32_t cuts = 0;
    bool died = true;

    for (uint64_t skip = 0; skip < CALLS_MAX && died; skip++) {
        for (uint64_t seed = 0; seed < 10; seed++) {
            died = lose_power_in_recovery_of_damage(skip, seed);
            cuts += died;
        }
    }
    assert_in_range(cuts, 5, CALLS_MAX * 10);
}
