/*
 * test_rotate.c - going on in a new segment while names are lost and processes die (SPEC.md 3.5,
 * 4.2): a preallocated segment that was found gets a durable name, and the content of the new
 * segment outlasts the process that published it.
 */
#include "agentwal/record.h"
#include "engine/session/session.h"
#include "tests/lib/test.h"
#include "tests/sim/recovery/recover_fixture.h"

static const struct sim_power_loss nothing_lands = {.landing = SIM_PERSIST_NONE};

static void add_fault(struct workload *w, uint32_t actor, enum sim_call call, const char *path,
                      enum sim_effect effect, uint64_t skip)
{
    sim_process_add_fault(
        w->actors[actor].process,
        &(struct sim_fault){
            .call = call, .path = path, .after = skip, .sys_errno = EIO, .effect = effect});
}

/* Appends more than the segment holds, so that the log rotates. */
static void rotate_until_dead(struct workload *w, uint32_t actor)
{
    w->died = false;
    if (setjmp(w->death) == 0) {
        (void)workload_append(w, actor, 0, WAL_DURABLE, 2 * MIB);
    }
    workload_kill(w, actor);
    workload_free_call(w);
}

/* A process names a preallocated segment and dies; the next one cannot make the name durable, and
 * the name is lost in memory: that a later sync of the directory succeeds says nothing of it. */
RECOVERY_TEST(rotate__preallocated_name_lost)
{
    struct workload *w = *state;

    add_fault(w, 0, SIM_RENAME, "log/0000000000000002.seg", SIM_KILL_AFTER, 0);
    rotate_until_dead(w, 0);
    assert_true(w->died);
    w->died = false;
    (void)workload_start(w, 0);
    add_fault(w, 0, SIM_SYNC_DIRECTORY, "/store/log", SIM_FAIL, 0);
    assert_int_equal(open_with(w, 0), WAL_EIO);
    sim_process_clear_faults(w->actors[0].process);
    assert_ok(workload_open(w, 0));
    assert_ok(workload_append(w, 0, 0, WAL_DURABLE, 2 * MIB));
    assert_ok(workload_append(w, 0, 1, WAL_DURABLE, 300));
    workload_crash(w, &nothing_lands, 0);
    (void)workload_recover(w, LEDGER_NO_LOSS, WORKLOAD_CLOSE);
}

/* The same, and the sync fails when the segment is taken. */
RECOVERY_TEST(rotate__preallocated_name_cannot_be_synced)
{
    struct workload *w = *state;

    assert_ok(workload_open(w, 1));
    add_fault(w, 0, SIM_RENAME, "log/0000000000000002.seg", SIM_KILL_AFTER, 0);
    rotate_until_dead(w, 0);
    assert_true(w->died);
    w->died = false;
    add_fault(w, 1, SIM_SYNC_DIRECTORY, "/store/log", SIM_FAIL, 0);
    assert_int_equal(workload_append(w, 1, 0, WAL_DURABLE, 2 * MIB), WAL_EIO);
    assert_ok(workload_append(w, 1, 1, WAL_DURABLE, 2 * MIB));
    workload_crash(w, &nothing_lands, 0);
    (void)workload_recover(w, LEDGER_NO_LOSS, WORKLOAD_CLOSE);
}

/* Killed at every call that renames a preallocated segment. */
TEST(rotate__killed_while_naming)
{
    for (uint64_t skip = 0; skip < 2; skip++) {
        for (int after = 0; after < 2; after++) {
            void *made = NULL;
            struct workload *w;

            assert_int_equal(set_up(&made), 0);
            w = made;
            ledger_set_context("rename %llu, %s", (unsigned long long)skip,
                               after != 0 ? "after" : "before");
            add_fault(w, 0, SIM_RENAME, "log/0000000000000002.seg", SIM_KILL_AFTER, 0);
            rotate_until_dead(w, 0);
            assert_true(w->died);
            w->died = false;
            assert_ok(workload_open(w, 0));
            add_fault(w, 0, SIM_RENAME, "0000000000000002.seg",
                      after != 0 ? SIM_KILL_AFTER : SIM_KILL_BEFORE, skip);
            rotate_until_dead(w, 0);
            assert_true(w->died);
            w->died = false;
            assert_ok(workload_open(w, 0));
            assert_ok(workload_append(w, 0, 0, WAL_DURABLE, 2 * MIB));
            workload_crash(w, &nothing_lands, 0);
            (void)workload_recover(w, LEDGER_NO_LOSS, WORKLOAD_CLOSE);
            tear_down(&made);
        }
    }
}

/* Another process follows, so that the publisher wakes it: there the publisher dies, between the
 * written end and the durable one. */
static void die_at_wake(struct workload *w)
{
    struct wal__control *control = &w->actors[0].store->core.control;
    const uint32_t *word;

    assert_ok(workload_open(w, 1));
    (void)wal__control_prepare_wait(control, 0, WAL__LOG_EVENT_WRITTEN, &word);
    add_fault(w, 1, SIM_WAKE, NULL, SIM_KILL_BEFORE, 0);
    rotate_until_dead(w, 1);
    assert_true(w->died);
    w->died = false;
}

/* The process that published the new segment dies before the durable end follows: what others then
 * write there outlasts a sync that fails. */
RECOVERY_TEST(rotate__killed_before_the_durable_end)
{
    struct workload *w = *state;
    const struct wal__control_log *shared = w->actors[0].store->core.log.shared;

    die_at_wake(w);
    assert_int_equal(wal__position_segment(atomic_load(&shared->written)), 2);
    assert_int_equal(wal__position_segment(atomic_load(&shared->durable)), 1);
    assert_ok(workload_append(w, 0, 0, WAL_WRITTEN, 300));
    assert_ok(workload_append(w, 0, 1, WAL_WRITTEN, 300));
    add_fault(w, 0, SIM_SYNC, ".seg", SIM_FAIL, 0);
    assert_ok(workload_append(w, 0, 1, WAL_DURABLE, 300));
    assert_ok(workload_append(w, 0, 0, WAL_DURABLE, 300));
    assert_true(workload_check(w, 0));
    workload_crash(w, &nothing_lands, 0);
    (void)workload_recover(w, LEDGER_NO_LOSS, WORKLOAD_CLOSE);
}

/* Looks at each call: a segment is published only when its OPEN is durable. */
static void check_published(void *arg, const struct sim_event *event)
{
    struct workload *w = arg;
    const struct wal__control_log *shared;
    uint64_t id;
    char path[128];

    if (w->actors[0].store == NULL) {
        return;
    }
    shared = w->actors[0].store->core.log.shared;
    id = wal__position_segment(atomic_load(&shared->written));
    (void)snprintf(path, sizeof(path), WORKLOAD_ROOT "/log/%016" PRIx64 ".seg", id);
    if (id != 0 && !sim_file_is_durable(w->disk, path, HEADER, OPEN_SIZE)) {
        ledger_fail("%s: segment %" PRIu64 " is published before its OPEN is "
                    "durable",
                    sim_call_name(event->call), id);
    }
}

RECOVERY_TEST(rotate__published_when_open_is_durable)
{
    struct workload *w = *state;

    sim_disk_on_call(w->disk, check_published, w);
    for (uint32_t i = 0; i < 4; i++) {
        assert_ok(workload_append(w, 0, i % 2, WAL_DURABLE, 2 * MIB));
        add_fault(w, 0, SIM_SYNC, ".seg", SIM_FAIL, i % 3);
        assert_ok(workload_append(w, 0, i % 2, WAL_DURABLE, 300));
        sim_process_clear_faults(w->actors[0].process);
    }
    sim_disk_on_call(w->disk, NULL, NULL);
}

/* A process dies in the sync of OPEN, which failed: a later sync succeeds and proves nothing, so
 * that recovery replaces the segment. */
RECOVERY_TEST(rotate__killed_in_the_failed_sync_of_open)
{
    struct workload *w = *state;

    add_fault(w, 0, SIM_SYNC, "log/0000000000000002.seg", SIM_KILL_FAILED, 1);
    rotate_until_dead(w, 0);
    assert_true(w->died);
    w->died = false;
    assert_ok(workload_open(w, 0));
    assert_ok(workload_append(w, 0, 0, WAL_DURABLE, 300));
    workload_crash(w, &nothing_lands, 0);
    (void)workload_recover(w, LEDGER_NO_LOSS, WORKLOAD_CLOSE);
}

/* The sync of OPEN fails, after the old segment was sealed; the process dies while it heals.
 * Another one joins, and finds a sealed tail. */
static void join_at_sealed_tail(struct workload *w, uint32_t pad)
{
    assert_ok(workload_open(w, 1));
    assert_ok(workload_append(w, 1, 0, WAL_WRITTEN, pad));
    add_fault(w, 1, SIM_SYNC, "log/0000000000000002.seg", SIM_FAIL, 1);
    add_fault(w, 1, SIM_OPEN, "0000000000000003.seg.new", SIM_KILL_AFTER, 0);
    rotate_until_dead(w, 1);
    assert_true(w->died);
    w->died = false;
    assert_ok(workload_open(w, 1));
    assert_true(w->actors[1].store->core.log.tail_segment->sealed);
}

/* The same, and that process or a third one heals the log. Returns where the index of the sealed
 * tail begins. */
static uint64_t heal_sealed_tail(uint32_t pad, uint32_t healer)
{
    void *made = NULL;
    struct workload *w;
    uint64_t begin;

    assert_int_equal(set_up(&made), 0);
    w = made;
    ledger_set_context("%u bytes, healed by process %u", pad, healer);
    join_at_sealed_tail(w, pad);
    begin = w->actors[1].store->core.log.tail_segment->trailer.index_offset;
    assert_ok(workload_append(w, healer, 0, WAL_DURABLE, 300));
    assert_int_equal(wal__log_newest_id(&w->actors[0].store->core.log), 3);
    assert_ok(workload_append(w, 1, 0, WAL_DURABLE, 300));
    assert_true(workload_check(w, 1));
    assert_true(workload_check(w, 0));
    workload_crash(w, &nothing_lands, 0);
    (void)workload_recover(w, LEDGER_NO_LOSS, WORKLOAD_CLOSE);
    tear_down(&made);
    return begin;
}

/* The index of the sealed tail is in use. Healing gives the rest of the segment back by pages, and
 * keeps the index: a page ends in each of its postings. */
TEST(rotate__sealed_tail_is_read_after_healing)
{
    const uint64_t page = 4096;
    const uint32_t pad = 100;
    uint64_t postings =
        heal_sealed_tail(pad, 0) + WAL__FRAME_SIZE + WAL__INDEX_HEADER_SIZE + 2 * WAL__SUMMARY_SIZE;

    for (uint32_t i = 0; i < 10; i++) {
        uint64_t middle = postings + i * WAL__POSTING_SIZE + 16;

        (void)heal_sealed_tail(pad + (uint32_t)(page - middle % page), 1);
    }
}

/* The number of records in the newest segment of a store. */
static uint32_t count_newest_records(struct wal_store *store)
{
    struct wal_record_cursor_options options = WAL_INIT(wal_record_cursor_options);
    struct wal_segment_info segment = WAL_INIT(wal_segment_info);
    struct wal_segment_cursor *segments = NULL;
    struct wal_record_cursor *records = NULL;
    struct wal_record record = WAL_INIT(wal_record);
    uint32_t count = 0;

    assert_ok(wal_segment_cursor_open(store, &segments, NULL));
    while (wal_segment_cursor_next(segments, &segment, NULL) == WAL_OK) {
        options.segment = segment.id;
        options.identity = segment.identity;
    }
    wal_segment_cursor_close(segments);
    assert_ok(wal_record_cursor_open(store, &options, &records, NULL));
    while (wal_record_cursor_next(records, &record, NULL) == WAL_OK) {
        count++;
    }
    wal_record_cursor_close(records);
    return count;
}

/* Its records are in its index; the index of the tail is empty. */
RECOVERY_TEST(rotate__records_of_a_sealed_tail)
{
    struct workload *w = *state;
    uint32_t count = count_newest_records(w->actors[0].store);

    assert_true(count > 0);
    join_at_sealed_tail(w, 100);
    assert_int_equal(count_newest_records(w->actors[1].store), count + 1);
    assert_int_equal(count_newest_records(w->actors[0].store), count + 1);
}

/* A preallocated segment that holds anything, the bytes of a torn OPEN, is not begun. */
RECOVERY_TEST(rotate__preallocated_segment_with_bytes_is_left)
{
    struct workload *w = *state;

    die_at_open(w, 30);
    w->died = false;
    assert_ok(workload_open(w, 0));
    assert_ok(workload_append(w, 0, 0, WAL_DURABLE, 2 * MIB));
    assert_int_equal(wal__log_newest_id(&w->actors[0].store->core.log), 3);
    assert_true(workload_check(w, 0));
    workload_crash(w, &nothing_lands, 0);
    (void)workload_recover(w, LEDGER_NO_LOSS, WORKLOAD_CLOSE);
}

/*
 * The power is cut at each call of a recovery that finds a poisoned log whose tail holds only OPEN:
 * a sector that is being written may turn to garbage, so the segment is not written again.
 */
static bool lose_power_while_recovering_open(uint64_t skip, uint64_t seed)
{
    const struct sim_power_loss kept = {.landing = SIM_PERSIST_ALL};
    const struct sim_power_loss loss = {.garbage = true, .unsafe_overwrite = true};
    void *made = NULL;
    struct workload *w;
    bool died;

    assert_int_equal(set_up(&made), 0);
    w = made;
    ledger_set_context("power lost at call %llu, seed %llu", (unsigned long long)skip,
                       (unsigned long long)seed);
    die_at_wake(w);
    workload_crash(w, &kept, seed);
    (void)workload_start(w, 0);
    add_fault(w, 0, SIM_SYNC, ".seg", SIM_FAIL, 0);
    assert_int_equal(open_with(w, 0), WAL_EIO);
    crash(w);
    (void)workload_start(w, 0);
    add_fault(w, 0, SIM_ANY, NULL, SIM_KILL_AFTER, skip);
    w->died = false;
    if (setjmp(w->death) == 0) {
        assert_ok(workload_open(w, 0));
    }
    died = w->died;
    w->died = false;
    workload_crash(w, &loss, seed);
    (void)workload_recover(w, LEDGER_POWER_LOSS, WORKLOAD_CLOSE);
    (void)workload_recover(w, LEDGER_NO_LOSS, WORKLOAD_CLOSE);
    tear_down(&made);
    return died;
}

TEST(rotate__power_lost_while_recovering_open)
{
    uint32_t cuts = 0;
    bool died = true;

    for (uint64_t skip = 0; skip < 400 && died; skip++) {
        for (uint64_t seed = 0; seed < 10; seed++) {
            died = lose_power_while_recovering_open(skip, seed);
            cuts += died;
        }
    }
    assert_in_range(cuts, 5, 4000);
}

/* --- inherit ------------------------------------------------------------- */

/*
 * An append after what a process that died has left at the end of the log (SPEC.md 4.3), where that
 * cannot be read: nothing is written over it.
 */

/* Two processes append, and the first one dies in the middle of a write. */
static void kill_in_a_write(struct workload *w)
{
    ledger_set_context("test_rotate");
    assert_ok(workload_open(w, 0));
    assert_ok(workload_add_session(w, 0));
    assert_ok(workload_open(w, 1));
    assert_ok(workload_append(w, 1, 0, WAL_DURABLE, 40));
    sim_process_add_fault(w->actors[0].process, &(struct sim_fault){.call = SIM_PWRITEV,
                                                                    .path = ".seg",
                                                                    .put = 500,
                                                                    .effect = SIM_KILL_BEFORE});
    if (setjmp(w->death) == 0) {
        (void)workload_append(w, 0, 0, WAL_DURABLE, 3000);
    }
    workload_kill(w, 0);
    workload_free_call(w);
    assert_true(w->died);
    w->died = false;
}

/* A process dies in the middle of a write; another cannot read what it left. */
TEST(inherit__unreadable_end_is_not_empty)
{
    struct workload *w = workload_create(
        &(struct workload_options){.seed = 1, .actors = 2, .open_flags = WAL_OPEN_PREAD});
    const struct sim_power_loss loss = {.landing = SIM_PERSIST_ALL};

    kill_in_a_write(w);
    sim_process_add_fault(w->actors[1].process,
                          &(struct sim_fault){.call = SIM_PREAD, .path = ".seg", .sys_errno = EIO});
    assert_int_equal(workload_append(w, 1, 0, WAL_DURABLE, 40), WAL_EIO);
    sim_process_clear_faults(w->actors[1].process);
    assert_ok(workload_append(w, 1, 0, WAL_DURABLE, 40));
    assert_true(workload_check(w, 1));
    workload_crash(w, &loss, 1);
    (void)workload_recover(w, LEDGER_NO_LOSS, WORKLOAD_CLOSE);
    workload_destroy(w);
}

/* A process dies in the middle of a write: another one leaves the segment with the torn group. */
TEST(inherit__torn_group_ends_the_segment)
{
    const struct sim_power_loss loss = {.landing = SIM_PERSIST_ALL};
    struct workload *w = workload_create(&(struct workload_options){.seed = 1, .actors = 2});
    struct wal_store_info info = {.struct_size = sizeof(info)};

    kill_in_a_write(w);
    assert_ok(workload_append(w, 1, 0, WAL_DURABLE, 40));
    assert_ok(wal_store_get_info(w->actors[1].store, &info, NULL));
    assert_int_equal(info.segments, 2);
    assert_true(workload_check(w, 1));
    workload_crash(w, &loss, 1);
    (void)workload_recover(w, LEDGER_NO_LOSS, WORKLOAD_CLOSE);
    workload_destroy(w);
}

/* --- full disk ----------------------------------------------------------- */

/*
 * A disk that is full, or nearly: how much of it can be used, what still works, and what errors say
 * (SPEC.md 3.5).
 */

enum {
    KIB = 1024,
    LEAST = 96 * KIB, /* of a segment for a group of 20 KiB */
    APPENDS_MAX = 1000,
    VICTIMS = 200
};

/* Leaves `size` bytes of the disk. */
static void leave_space(struct workload *w, uint64_t size)
{
    sim_disk_set_limit(w->disk, sim_disk_used_bytes(w->disk) + size);
}

/* Appends until the disk is full; returns the number of appends. */
static uint32_t fill_disk(struct workload *w, uint32_t size)
{
    uint32_t count = 0;

    while (count < APPENDS_MAX) {
        enum wal_status status = workload_append(w, 0, count % 2, WAL_DURABLE, size);

        if (status != WAL_OK) {
            assert_int_equal(status, WAL_ENOSPACE);
            return count;
        }
        count++;
    }
    fail_msg("the disk does not fill");
    return 0;
}

static enum wal_status append_note(struct workload *w, struct wal_error *error)
{
    struct wal_session *session = session_of(w, 0);
    char payload[8 * KIB];
    enum wal_status status;

    memset(payload, ' ', sizeof(payload));
    payload[0] = '1';
    *error = (struct wal_error){.struct_size = sizeof(*error)};
    status =
        wal_append_one(session, "note", (struct wal_slice){payload, sizeof(payload)}, NULL, error);
    wal_session_close(session);
    return status;
}

static void recover_with_space(struct workload *w)
{
    sim_disk_set_limit(w->disk, 0);
    expect_all(w);
}

/* --- how much can be used ------------------------------------------------- */

RECOVERY_TEST(full_disk__segments_become_smaller)
{
    struct workload *w = *state;
    uint64_t limit;

    /* The next one would have 2 MiB. */
    leave_space(w, 1500 * KIB);
    limit = sim_disk_used_bytes(w->disk) + 1500 * KIB;
    (void)fill_disk(w, 20 * KIB);
    assert_in_range(limit - sim_disk_used_bytes(w->disk), 0, LEAST + 4 * KIB);
    assert_in_range(status_of(w).segments, 3, 8);
    recover_with_space(w);
}

RECOVERY_TEST(full_disk__room_for_one_more_group)
{
    struct workload *w = *state;
    uint32_t count;

    leave_space(w, 0);
    (void)fill_disk(w, 20 * KIB);
    leave_space(w, LEAST);
    count = fill_disk(w, 20 * KIB);
    assert_in_range(count, 1, 2);
    recover_with_space(w);
}

RECOVERY_TEST(full_disk__error_says_what_is_needed_and_free)
{
    struct workload *w = *state;
    struct wal_error error = {.struct_size = sizeof(error)};

    leave_space(w, 12 * KIB);
    (void)fill_disk(w, 20 * KIB);
    (void)fill_disk(w, 9 * KIB);
    assert_int_equal(append_note(w, &error), WAL_ENOSPACE);
    assert_non_null(strstr(error.text, "it needs 77824 bytes"));
    assert_non_null(strstr(error.text, "and 12288 are free"));
    assert_int_equal(error.sys_errno, ENOSPC);
    recover_with_space(w);
}

/* --- the reserve ---------------------------------------------------------- */

/* Creates sessions that the ledger does not know. */
static void create_victims(struct workload *w)
{
    for (uint32_t i = 0; i < VICTIMS; i++) {
        struct wal_session_options options = {.struct_size = sizeof(options)};
        struct wal_error error = {.struct_size = sizeof(error)};
        struct wal_session *session = NULL;
        char id[16];

        (void)snprintf(id, sizeof(id), "victim%u", i);
        options.id = ledger_slice(id);
        assert_ok(wal_session_create(w->actors[0].store, &options, &session, &error));
        wal_session_close(session);
    }
}

/* Deletes them until one cannot be; returns their number. */
static uint32_t delete_victims(struct workload *w, enum wal_status *status)
{
    uint32_t count = 0;

    for (*status = WAL_OK; count < VICTIMS && *status == WAL_OK;) {
        struct wal_error error = {.struct_size = sizeof(error)};
        struct wal_session *session = NULL;
        char id[16];

        (void)snprintf(id, sizeof(id), "victim%u", count);
        assert_ok(wal_session_open(w->actors[0].store, ledger_slice(id), &session, &error));
        *status = wal_session_delete(session, &error);
        wal_session_close(session);
        count += *status == WAL_OK;
    }
    return count;
}

RECOVERY_TEST(full_disk__deletions_use_the_reserve)
{
    struct workload *w = *state;
    struct wal_error error;
    enum wal_status status;
    uint32_t count;

    create_victims(w);
    leave_space(w, 0);
    (void)fill_disk(w, 20 * KIB);
    (void)fill_disk(w, 100); /* nothing else fits */
    count = delete_victims(w, &status);
    assert_int_equal(status, WAL_ENOSPACE);
    assert_in_range(count, 20, VICTIMS - 1);
    assert_int_equal(append_note(w, &error), WAL_ENOSPACE);
    /* Deleted for good. */
    crash(w);
    sim_disk_set_limit(w->disk, 0);
    assert_ok(open_with(w, 0));
    assert_int_equal(status_of(w).sessions, 2 + VICTIMS - count);
    assert_ok(workload_append(w, 0, 0, WAL_DURABLE, 300));
}

RECOVERY_TEST(full_disk__redactions_use_the_reserve)
{
    struct workload *w = *state;
    struct wal_entry_cursor_options options = {.struct_size = sizeof(options),
                                               .mode = WAL_ENTRY_CURSOR_ALL};
    struct wal_error error = {.struct_size = sizeof(error)};
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_session *session = session_of(w, 0);
    struct wal_entry_cursor *cursor = NULL;

    leave_space(w, 0);
    (void)fill_disk(w, 20 * KIB);
    (void)fill_disk(w, 100);
    assert_ok(wal_entry_cursor_open(session, &options, &cursor, &error));
    assert_ok(wal_entry_cursor_next(cursor, &entry, &error));
    assert_ok(wal_session_redact(session, entry.id, ledger_slice("a key"), NULL, &error));
    wal_entry_cursor_close(cursor);
    wal_session_close(session);
}

/* What it comes with would use up the reserve. */
RECOVERY_TEST(full_disk__appends_with_a_redaction_are_refused)
{
    struct workload *w = *state;
    struct wal_error error = {.struct_size = sizeof(error)};
    struct wal_session *session = session_of(w, 0);
    struct wal_entry entries[3];

    for (size_t i = 0; i < 3; i++) {
        entries[i] = (struct wal_entry){.struct_size = sizeof(entries[i]),
                                        .type = ledger_slice("note"),
                                        .payload = ledger_slice("1")};
    }
    entries[2].id = ledger_slice("t");
    assert_ok(wal_append(session, &entries[2], 1, NULL, NULL, &error));
    entries[2].id = (struct wal_slice){NULL, 0};
    leave_space(w, 0);
    (void)fill_disk(w, 20 * KIB);
    (void)fill_disk(w, 100);
    entries[0].type = ledger_slice(WAL_TYPE_REDACTION);
    entries[0].payload = ledger_slice("{\"targetEntryId\":\"t\"}");
    assert_int_equal(wal_append(session, entries, 3, NULL, NULL, &error), WAL_ENOSPACE);
    wal_session_close(session);
}

/* --- healing -------------------------------------------------------------- */

static void add_fault_once(struct workload *w, enum sim_call call, const char *path, bool sticky)
{
    sim_process_add_fault(w->actors[0].process, &(struct sim_fault){
                                                    .call = call,
                                                    .path = path,
                                                    .sticky = sticky,
                                                    .sys_errno = EIO,
                                                });
}

/* Without space for the new segment the outcome is unknown, until there is. */
RECOVERY_TEST(full_disk__failed_sync_cannot_be_healed)
{
    struct workload *w = *state;
    struct wal_error error = {.struct_size = sizeof(error)};

    leave_space(w, 4 * KIB);
    assert_ok(workload_append(w, 0, 0, WAL_WRITTEN, 300));
    add_fault_once(w, SIM_SYNC, ".seg", false);
    assert_int_equal(wal_sync(w->actors[0].store, &error), WAL_EPOISONED);
    assert_non_null(strstr(error.text, "a sync of the log failed"));
    assert_non_null(strstr(error.text, "no space for a new segment"));
    assert_int_equal(append_note(w, &error), WAL_ENOSPACE);
    sim_disk_set_limit(w->disk, 0);
    assert_ok(wal_sync(w->actors[0].store, &error));
    assert_true(workload_check(w, 0));
    recover_with_space(w);
}

/* The store opens, and can be read, poisoned; the first append with space heals it. */
RECOVERY_TEST(full_disk__poisoned_store_opens)
{
    const struct sim_power_loss nothing = {.landing = SIM_PERSIST_NONE};
    struct workload *w = *state;

    add_fault_once(w, SIM_SYNC, ".seg", false);
    add_fault_once(w, SIM_OPEN, ".seg.new", true);
    assert_int_equal(workload_append(w, 0, 0, WAL_DURABLE, 300), WAL_EPOISONED);
    crash(w);
    w->actors[0].poisoned = false;
    leave_space(w, 4 * KIB);
    assert_ok(open_with(w, 0));
    assert_int_equal(status_of(w).status, WAL_EPOISONED);
    ledger_check(w->ledger, w->actors[0].store, LEDGER_NO_LOSS, NULL);
    assert_int_equal(workload_append(w, 0, 0, WAL_DURABLE, 300), WAL_ENOSPACE);
    sim_disk_set_limit(w->disk, 0);
    assert_ok(workload_append(w, 0, 0, WAL_DURABLE, 300));
    assert_ok(status_of(w).status);
    workload_crash(w, &nothing, 0);
    (void)workload_recover(w, LEDGER_POWER_LOSS, WORKLOAD_CLOSE);
}

/* Healing gives the rest of the former segment back. */
RECOVERY_TEST(full_disk__healing_takes_no_space)
{
    struct workload *w = *state;
    uint64_t used = sim_disk_used_bytes(w->disk);

    for (uint32_t i = 0; i < 20; i++) {
        add_fault_once(w, SIM_SYNC, ".seg", false);
        assert_ok(workload_append(w, 0, i % 2, WAL_DURABLE, 300));
        sim_process_clear_faults(w->actors[0].process);
    }
    assert_int_equal(status_of(w).segments, 21);
    assert_true(sim_disk_used_bytes(w->disk) < used + 20 * 16 * KIB);
    recover_with_space(w);
}
