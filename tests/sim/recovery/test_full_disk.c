/*
 * test_full_disk.c - a disk that is full, or nearly: how much of it can be
 * used, what still works, and what errors say (SPEC.md 3.5).
 */
#include "engine/session/session.h"
#include "tests/sim/recovery/recover_fixture.h"

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
        enum wal_status status =
            workload_append(w, 0, count % 2, WAL_DURABLE, size);

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
    status = wal_append_one(session, "note",
                            (struct wal_slice){payload, sizeof(payload)}, NULL,
                            error);
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
        assert_ok(
            wal_session_create(w->actors[0].store, &options, &session, &error));
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
        assert_ok(wal_session_open(w->actors[0].store, ledger_slice(id),
                                   &session, &error));
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
    assert_ok(wal_session_redact(session, entry.id, ledger_slice("a key"), NULL,
                                 &error));
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
    assert_int_equal(wal_append(session, entries, 3, NULL, NULL, &error),
                     WAL_ENOSPACE);
    wal_session_close(session);
}

/* --- healing -------------------------------------------------------------- */

static void add_fault(struct workload *w, enum sim_call call, const char *path,
                      bool sticky)
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
    add_fault(w, SIM_SYNC, ".seg", false);
    assert_int_equal(wal_sync(w->actors[0].store, &error), WAL_EPOISONED);
    assert_non_null(strstr(error.text, "a sync of the log failed"));
    assert_non_null(strstr(error.text, "no space for a new segment"));
    assert_int_equal(append_note(w, &error), WAL_ENOSPACE);
    sim_disk_set_limit(w->disk, 0);
    assert_ok(wal_sync(w->actors[0].store, &error));
    assert_true(workload_check(w, 0));
    recover_with_space(w);
}

/* The store opens, and can be read, poisoned; the first append with space heals
 * it. */
RECOVERY_TEST(full_disk__poisoned_store_opens)
{
    const struct sim_power_loss nothing = {.landing = SIM_PERSIST_NONE};
    struct workload *w = *state;

    add_fault(w, SIM_SYNC, ".seg", false);
    add_fault(w, SIM_OPEN, ".seg.new", true);
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
        add_fault(w, SIM_SYNC, ".seg", false);
        assert_ok(workload_append(w, 0, i % 2, WAL_DURABLE, 300));
        sim_process_clear_faults(w->actors[0].process);
    }
    assert_int_equal(status_of(w).segments, 21);
    assert_true(sim_disk_used_bytes(w->disk) < used + 20 * 16 * KIB);
    recover_with_space(w);
}
