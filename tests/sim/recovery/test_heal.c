/*
 * test_heal.c - a store that a failed write or sync has poisoned, while its processes live: the
 * next append heals it (SPEC.md 4.2).
 */
#include "agentwal/blob.h"
#include "engine/session/session.h"
#include "tests/lib/test.h"
#include "tests/sim/recovery/recover_fixture.h"

enum { CALLS_MAX = 400, FAILURES = 100 };

/* The next sync of a segment by this process fails. */
static void fail_sync(struct workload *w, uint32_t actor)
{
    sim_process_add_fault(w->actors[actor].process,
                          &(struct sim_fault){.call = SIM_SYNC, .path = ".seg", .sys_errno = EIO});
}

/* Healing by this process fails until its faults are cleared. */
static void fail_healing(struct workload *w, uint32_t actor)
{
    sim_process_add_fault(w->actors[actor].process, &(struct sim_fault){.call = SIM_OPEN,
                                                                        .path = ".seg.new",
                                                                        .sticky = true,
                                                                        .sys_errno = EIO});
}

static void poison(struct workload *w)
{
    fail_sync(w, 0);
    fail_healing(w, 0);
    assert_int_equal(workload_append(w, 0, 0, WAL_DURABLE, 300), WAL_EPOISONED);
    sim_process_clear_faults(w->actors[0].process);
    w->actors[0].poisoned = false; /* it stays open */
}

static int32_t store_state(struct workload *w, uint32_t actor)
{
    struct wal_store_info info = {.struct_size = sizeof(info)};

    assert_ok(wal_store_get_info(w->actors[actor].store, &info, NULL));
    return info.status;
}

static enum wal_status put(struct workload *w, uint32_t actor, uint32_t size)
{
    struct ledger *ledger = w->ledger;
    uint32_t number = ledger_add_blob(ledger, ledger->blob_count, size, 0);
    struct ledger_blob *blob = &ledger->blobs[number];
    uint8_t *bytes = ledger_blob_bytes(blob);
    struct wal_error error = {.struct_size = sizeof(error)};
    uint8_t digest[WAL_DIGEST_SIZE];
    enum wal_status status =
        wal_blob_put(w->actors[actor].store, (struct wal_slice){bytes, size}, digest, &error);

    if (status == WAL_OK) {
        blob->state = LEDGER_DURABLE;
    }
    free(bytes);
    return status;
}

/* An append whose process may die at it. */
static void append_until_dead(struct workload *w, uint32_t actor, uint32_t session)
{
    if (setjmp(w->death) == 0) {
        (void)workload_append(w, actor, session, WAL_DURABLE, 300);
    }
    workload_kill(w, actor);
    workload_free_call(w);
}

/* After whatever it was: all that was promised is there, also without power, and a second recovery
 * gives the same. */
static void settle(struct workload *w, uint64_t seed)
{
    const struct sim_power_loss loss = {.landing = SIM_PERSIST_ANY};

    workload_crash(w, &loss, seed);
    (void)workload_recover(w, LEDGER_POWER_LOSS, WORKLOAD_KILL);
    (void)workload_recover(w, LEDGER_NO_LOSS, WORKLOAD_CLOSE);
}

RECOVERY_TEST(heal__next_append_heals)
{
    struct workload *w = *state;

    poison(w);
    assert_int_equal(store_state(w, 0), WAL_EPOISONED);
    assert_true(workload_check(w, 0));
    assert_ok(workload_append(w, 0, 1, WAL_DURABLE, 300));
    assert_ok(store_state(w, 0));
    assert_true(workload_check(w, 0));
    assert_ok(workload_append(w, 0, 0, WAL_DURABLE, 300));
    settle(w, 1);
}

/* The process that began the segment died after it published OPEN, before it raised the durable
 * end: that is in the segment before. */
RECOVERY_TEST(heal__durable_end_is_before_the_tail)
{
    struct workload *w = *state;
    struct wal__control_log *shared = w->actors[0].store->core.log.shared;
    uint64_t before = atomic_load(&shared->durable);

    assert_ok(workload_append(w, 0, 0, WAL_WRITTEN, 2 * MIB));
    assert_true(sim_file_exists(w->disk, SECOND));
    atomic_store(&shared->durable, before);
    fail_sync(w, 0);
    assert_ok(workload_append(w, 0, 1, WAL_DURABLE, 300));
    assert_true(workload_check(w, 0));
    settle(w, 1);
}

/* Whether a fork, in the store of an actor, has the inherited entry. */
static enum wal_status find_inherited(struct workload *w, uint32_t actor)
{
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_session *fork = NULL;
    struct wal_entry_cursor *cursor = NULL;
    enum wal_status status;

    assert_ok(wal_session_open(w->actors[actor].store, ledger_slice("fork"), &fork, NULL));
    assert_ok(wal_entry_cursor_open(fork, NULL, &cursor, NULL));
    status = wal_entry_cursor_get(cursor, ledger_slice("shared"), &entry, NULL);
    wal_entry_cursor_close(cursor);
    wal_session_close(fork);
    return status;
}

/* Another process has looked for them before: the entries are elsewhere now. */
RECOVERY_TEST(heal__inherited_entries_are_found_by_their_ids)
{
    struct workload *w = *state;
    const struct wal_append_options options = {.struct_size = sizeof(options),
                                               .durability = WAL_WRITTEN};
    const struct wal_entry entry = {.struct_size = sizeof(entry),
                                    .type = ledger_slice("note"),
                                    .id = ledger_slice("shared"),
                                    .payload = ledger_slice("1")};
    struct wal_session_options named = {.struct_size = sizeof(named), .id = ledger_slice("fork")};
    struct wal_session *source = session_of(w, 0);
    struct wal_session *fork = NULL;

    assert_ok(workload_open(w, 1));
    assert_ok(wal_append(source, &entry, 1, &options, NULL, NULL));
    fail_sync(w, 0);
    fail_healing(w, 0);
    assert_int_equal(wal_session_fork(source, ledger_slice("shared"), &named, &fork, NULL),
                     WAL_EPOISONED);
    wal_session_close(source);
    assert_ok(find_inherited(w, 1));
    sim_process_clear_faults(w->actors[0].process);
    assert_ok(workload_append(w, 0, 1, WAL_DURABLE, 300));
    assert_ok(find_inherited(w, 1));
}

RECOVERY_TEST(heal__is_done_once)
{
    struct workload *w = *state;
    struct wal_store_info before = {.struct_size = sizeof(before)};
    struct wal_store_info after = {.struct_size = sizeof(after)};

    poison(w);
    assert_ok(wal_store_get_info(w->actors[0].store, &before, NULL));
    for (int i = 0; i < 5; i++) {
        assert_ok(workload_append(w, 0, 1, WAL_DURABLE, 300));
    }
    assert_ok(wal_store_get_info(w->actors[0].store, &after, NULL));
    assert_int_equal(after.segments, before.segments + 1);
    settle(w, 2);
}

RECOVERY_TEST(heal__by_another_process)
{
    struct workload *w = *state;

    assert_ok(workload_open(w, 1));
    assert_true(workload_check(w, 1));
    poison(w);
    assert_int_equal(store_state(w, 1), WAL_EPOISONED);
    assert_ok(workload_append(w, 1, 1, WAL_DURABLE, 300));
    assert_true(workload_check(w, 0));
    assert_ok(store_state(w, 0));
    assert_ok(workload_append(w, 0, 0, WAL_DURABLE, 300));
    assert_true(workload_check(w, 1));
    settle(w, 3);
}

RECOVERY_TEST(heal__written_groups_are_kept)
{
    struct workload *w = *state;

    for (uint32_t i = 0; i < 20; i++) {
        assert_ok(workload_append(w, 0, i % 2, WAL_WRITTEN, 500));
    }
    poison(w);
    assert_ok(workload_append(w, 0, 1, WAL_DURABLE, 300));
    workload_crash(w, NULL, 0);
    (void)workload_recover(w, LEDGER_NO_LOSS, WORKLOAD_CLOSE);
    settle(w, 4);
}

/* The caller that waits for the sync heals, and its append succeeds. */
RECOVERY_TEST(heal__failed_sync_is_healed_by_who_waits)
{
    struct workload *w = *state;

    for (uint32_t i = 0; i < 4; i++) {
        fail_sync(w, 0);
        assert_ok(workload_append(w, 0, i % 2, WAL_DURABLE, 300));
        assert_ok(store_state(w, 0));
    }
    assert_ok(put(w, 0, 4000));
    fail_sync(w, 0);
    assert_ok(put(w, 0, 5000));
    workload_crash(w, NULL, 0);
    (void)workload_recover(w, LEDGER_NO_LOSS, WORKLOAD_CLOSE);
    settle(w, 13);
}

/* The error names the failed sync once, and why healing failed. */
RECOVERY_TEST(heal__unknown_outcome_names_its_cause)
{
    struct workload *w = *state;
    struct wal_error error = {.struct_size = sizeof(error)};

    assert_ok(workload_append(w, 0, 0, WAL_WRITTEN, 300));
    fail_sync(w, 0);
    fail_healing(w, 0);
    assert_int_equal(wal_sync(w->actors[0].store, &error), WAL_EPOISONED);
    assert_int_equal(error.sys_errno, EIO);
    assert_non_null(strstr(error.text, "a sync of the log failed"));
    assert_non_null(strstr(error.text, "cannot create a segment"));
    assert_non_null(strstr(error.text, "send it again with the same ids"));
    sim_process_clear_faults(w->actors[0].process);
    assert_ok(wal_sync(w->actors[0].store, &error));
    settle(w, 14);
}

/* What a sync has covered is durable, whatever poisons the log afterwards. */
RECOVERY_TEST(heal__durable_position_is_a_success_on_a_poisoned_log)
{
    struct workload *w = *state;
    struct wal__log *log = &w->actors[0].store->core.log;
    uint64_t durable = atomic_load(&log->shared->durable);

    poison(w);
    assert_true(atomic_load(&log->shared->poison) != 0);
    assert_ok(wal__log_sync(log, durable, NULL));
    assert_int_equal(wal__log_sync(log, durable + 8, NULL), WAL_EPOISONED);
    assert_ok(workload_append(w, 0, 0, WAL_DURABLE, 300));
}

/* The sync lock is taken over in the middle of a sync, and the process goes on: it raises no
 * durable end, which others may have moved since. */
static void lose_sync_lock(void *arg, const struct sim_event *event)
{
    struct wal__control_log *shared = arg;

    if (event->call == SIM_SYNC) {
        atomic_store(&shared->syncing_pid, 0);
    }
}

RECOVERY_TEST(heal__sync_that_was_taken_over_raises_nothing)
{
    struct workload *w = *state;
    struct wal__log *log = &w->actors[0].store->core.log;
    uint64_t durable = atomic_load(&log->shared->durable);

    assert_ok(workload_append(w, 0, 0, WAL_WRITTEN, 300));
    sim_disk_on_call(w->disk, lose_sync_lock, log->shared);
    assert_int_equal(wal__log_sync(log, atomic_load(&log->end), NULL), WAL_EPOISONED);
    sim_disk_on_call(w->disk, NULL, NULL);
    assert_int_equal(atomic_load(&log->shared->durable), durable);
    wal__log_set_durable(log, durable - 8);
    assert_int_equal(atomic_load(&log->shared->durable), durable);
    assert_ok(workload_append(w, 0, 0, WAL_DURABLE, 300));
    settle(w, 15);
}

RECOVERY_TEST(heal__failed_write)
{
    struct workload *w = *state;

    sim_process_add_fault(
        w->actors[0].process,
        &(struct sim_fault){.call = SIM_PWRITEV, .path = ".seg", .sys_errno = EIO, .put = 100});
    assert_ok(workload_append(w, 0, 0, WAL_DURABLE, 300));
    assert_ok(workload_append(w, 0, 1, WAL_DURABLE, 300));
    assert_true(workload_check(w, 0));
    settle(w, 5);
}

/* A process dies while it holds the sync lock; the next append heals. */
RECOVERY_TEST(heal__sync_leader_died)
{
    struct workload *w = *state;

    assert_ok(workload_open(w, 1));
    sim_process_add_fault(
        w->actors[1].process,
        &(struct sim_fault){.call = SIM_SYNC, .path = ".seg", .effect = SIM_KILL_BEFORE});
    append_until_dead(w, 1, 1);
    assert_true(w->died);
    w->died = false;
    assert_ok(workload_append(w, 0, 0, WAL_DURABLE, 300));
    assert_true(workload_check(w, 0));
    settle(w, 6);
}

RECOVERY_TEST(heal__failed_sync_of_a_new_segment)
{
    struct workload *w = *state;

    /* Large ones, until a rotation's sync of OPEN is the one that fails. */
    for (uint64_t skip = 0; skip < 8; skip++) {
        sim_process_add_fault(
            w->actors[0].process,
            &(struct sim_fault){.call = SIM_SYNC, .path = ".seg", .after = skip, .sys_errno = EIO});
        for (uint32_t i = 0; i < 8; i++) {
            (void)workload_append(w, 0, i % 2, WAL_DURABLE, 300 * 1024);
            w->actors[0].poisoned = false;
        }
        sim_process_clear_faults(w->actors[0].process);
        assert_ok(workload_append(w, 0, 0, WAL_DURABLE, 300));
        assert_true(workload_check(w, 0));
    }
    settle(w, 7);
}

/* --- trouble while healing ------------------------------------------------ */

TEST(heal__every_call_fails)
{
    uint32_t refused = 0;

    for (uint64_t skip = 0; skip < FAILURES; skip++) {
        void *made = NULL;
        struct workload *w;
        enum wal_status status;
        bool again;

        assert_int_equal(set_up(&made), 0);
        w = made;
        ledger_set_context("call %llu fails", (unsigned long long)skip);
        assert_ok(workload_append(w, 0, 0, WAL_WRITTEN, 300));
        poison(w);
        sim_process_add_fault(w->actors[0].process,
                              &(struct sim_fault){.call = SIM_ANY,
                                                  .after = skip,
                                                  .sys_errno = skip % 2 == 0 ? EIO : ENOSPC});
        status = workload_append(w, 0, 1, WAL_DURABLE, 300);
        again = status != WAL_OK;
        sim_process_clear_faults(w->actors[0].process);
        w->actors[0].poisoned = false;
        for (int i = 0; i < 2 && status != WAL_OK; i++) {
            status = workload_append(w, 0, 1, WAL_DURABLE, 300);
            w->actors[0].poisoned = false;
        }
        assert_ok(status);
        assert_true(workload_check(w, 0));
        settle(w, skip);
        tear_down(&made);
        refused += again;
    }
    /* Others fail without harm, or are none of healing's. */
    assert_in_range(refused, 5, FAILURES - 1);
}

TEST(heal__killed_at_every_call)
{
    uint32_t deaths = 0;
    bool died = true;

    for (uint64_t skip = 0; skip < CALLS_MAX && died; skip++) {
        void *made = NULL;
        struct workload *w;

        assert_int_equal(set_up(&made), 0);
        w = made;
        ledger_set_context("killed at call %llu", (unsigned long long)skip);
        assert_ok(workload_open(w, 1));
        assert_ok(workload_append(w, 0, 0, WAL_WRITTEN, 300));
        poison(w);
        sim_process_add_fault(
            w->actors[0].process,
            &(struct sim_fault){.call = SIM_ANY,
                                .after = skip,
                                .effect = skip % 2 == 0 ? SIM_KILL_BEFORE : SIM_KILL_AFTER});
        append_until_dead(w, 0, 1);
        died = w->died;
        deaths += died;
        w->died = false;
        assert_ok(workload_append(w, 1, 0, WAL_DURABLE, 300));
        assert_true(workload_check(w, 1));
        settle(w, skip);
        tear_down(&made);
    }
    assert_in_range(deaths, 5, CALLS_MAX - 1);
}

TEST(heal__power_lost_at_every_call)
{
    uint32_t cuts = 0;
    bool died = true;

    for (uint64_t skip = 0; skip < CALLS_MAX && died; skip++) {
        for (enum sim_persistence landing = SIM_PERSIST_NONE; landing < SIM_PERSISTENCES;
             landing++) {
            const struct sim_power_loss loss = {.landing = landing};
            void *made = NULL;
            struct workload *w;

            assert_int_equal(set_up(&made), 0);
            w = made;
            ledger_set_context("power lost at call %llu, landing %d", (unsigned long long)skip,
                               (int)landing);
            poison(w);
            sim_process_add_fault(
                w->actors[0].process,
                &(struct sim_fault){.call = SIM_ANY, .after = skip, .effect = SIM_KILL_AFTER});
            append_until_dead(w, 0, 1);
            died = w->died;
            cuts += died;
            w->died = false;
            workload_crash(w, &loss, skip);
            (void)workload_recover(w, LEDGER_POWER_LOSS, WORKLOAD_CLOSE);
            settle(w, skip);
            tear_down(&made);
        }
    }
    assert_in_range(cuts, 5, CALLS_MAX * SIM_PERSISTENCES);
}

/* --- content ------------------------------------------------------------ */

/* A put that fails to sync poisons content, and not the log; the next one heals it, by whichever
 * process. */
RECOVERY_TEST(heal__next_put_heals_content)
{
    struct workload *w = *state;

    for (uint32_t by = 0; by < 2; by++) {
        assert_ok(workload_open(w, by));
        assert_ok(put(w, 0, 5000));
        fail_sync(w, 0);
        fail_healing(w, 0);
        assert_int_equal(put(w, 0, 6000), WAL_EPOISONED);
        sim_process_clear_faults(w->actors[0].process);
        assert_ok(workload_append(w, 0, 0, WAL_DURABLE, 300));
        assert_true(workload_check(w, by));
        assert_ok(put(w, by, 7000));
        assert_true(workload_check(w, 0));
        assert_true(workload_check(w, by));
        assert_ok(put(w, 0, 8000));
        assert_true(workload_check(w, by));
    }
    settle(w, 11);
}

/* The same content again heals too: it is found, and was only written. */
RECOVERY_TEST(heal__the_same_content_again_heals)
{
    struct workload *w = *state;

    assert_ok(put(w, 0, 3000));
    fail_sync(w, 0);
    fail_healing(w, 0);
    assert_int_equal(put(w, 0, 90000), WAL_EPOISONED);
    sim_process_clear_faults(w->actors[0].process);
    w->ledger->blob_count--;
    assert_ok(put(w, 0, 90000));
    assert_true(workload_check(w, 0));
    settle(w, 12);
}

/* --- heal recovery ------------------------------------------------------- */

/*
 * Recovery of a log that an earlier process left poisoned: it copies what it keeps to new ground,
 * and writes nothing in place (SPEC.md 3.4).
 */

enum { CALLS_MAX_HEAL_RECOVERY = 400 };

/* An opening whose process may die at it. */
static void open_until_dead(struct workload *w, uint32_t actor)
{
    w->died = false;
    if (setjmp(w->death) == 0) {
        assert_ok(workload_open(w, actor));
    }
}

/*
 * Three faults: the power fails, and the control page forgets what is durable; the recovery that
 * follows fails to sync; the power fails again at each call of the next one. What was acknowledged
 * before may not be written in place.
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
    ledger_set_context("power lost at call %llu, seed %llu", (unsigned long long)skip,
                       (unsigned long long)seed);
    workload_crash(w, &kept, seed);
    (void)workload_start(w, 0);
    fail_sync(w, 0);
    assert_int_equal(workload_open_raw(w, 0, 0, &error), WAL_EIO);
    workload_crash(w, NULL, 0);
    (void)workload_start(w, 0);
    sim_process_add_fault(
        w->actors[0].process,
        &(struct sim_fault){.call = SIM_ANY, .after = skip, .effect = SIM_KILL_AFTER});
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

    for (uint64_t skip = 0; skip < CALLS_MAX_HEAL_RECOVERY && died; skip++) {
        for (uint64_t seed = 0; seed < 20; seed++) {
            died = lose_power_in_recovery(skip, seed);
            cuts += died;
        }
    }
    assert_in_range(cuts, 5, CALLS_MAX_HEAL_RECOVERY * 20);
}

/* The next recovery does not rely on a sync whose outcome nobody knows. */
RECOVERY_TEST(heal_recovery__killed_in_its_failed_sync)
{
    const struct sim_power_loss nothing = {.landing = SIM_PERSIST_NONE};
    struct workload *w = *state;

    assert_ok(workload_append(w, 0, 0, WAL_WRITTEN, 300));
    crash(w);
    (void)workload_start(w, 0);
    sim_process_add_fault(w->actors[0].process, &(struct sim_fault){.call = SIM_SYNC,
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

/* Damage before the durable end does not keep recovery from copying what is beyond it; the new
 * segment lists the damage. */
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

/* The same while the power is cut at each call of that recovery: what was acknowledged beyond the
 * damage is not written in place. */
static bool lose_power_in_recovery_of_damage(uint64_t skip, uint64_t seed)
{
    const struct sim_power_loss kept = {.landing = SIM_PERSIST_ALL};
    const struct sim_power_loss loss = {.garbage = true};
    void *made = NULL;
    struct workload *w;
    bool died;

    assert_int_equal(set_up(&made), 0);
    w = made;
    ledger_set_context("power lost at call %llu, seed %llu", (unsigned long long)skip,
                       (unsigned long long)seed);
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
    sim_process_add_fault(
        w->actors[0].process,
        &(struct sim_fault){.call = SIM_ANY, .after = skip, .effect = SIM_KILL_AFTER});
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

    for (uint64_t skip = 0; skip < CALLS_MAX_HEAL_RECOVERY && died; skip++) {
        for (uint64_t seed = 0; seed < 10; seed++) {
            died = lose_power_in_recovery_of_damage(skip, seed);
            cuts += died;
        }
    }
    assert_in_range(cuts, 5, CALLS_MAX_HEAL_RECOVERY * 10);
}
