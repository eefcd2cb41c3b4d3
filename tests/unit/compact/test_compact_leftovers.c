/*
 * test_compact_leftovers.c - a compaction fails or is killed while it replaces
 * segments. What was replaced stays as long as the new name may be lost, and
 * an erasing compaction by another process leaves nothing of it, also after a
 * power cut; a process that does not know the new files reads what is there
 * (SPEC.md 3.9).
 */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agentwal/admin.h"
#include "engine/session/session.h"
#include "engine/session/store.h"
#include "tests/lib/arena_heap.h"
#include "tests/lib/kit/store_kit.h"
#include "tests/lib/test.h"
#include "tests/sim/disk/sim.h"

enum {
    ENTRIES = 40,
    MUCH = 100 * 1024, /* bytes of an entry */
    LARGE = 300 * 1024
};

static jmp_buf death;

static struct wal_store *open_store_with(struct sim_process *process,
                                         const struct wal__heap *heap,
                                         uint32_t flags)
{
    struct wal_open_options options = {.struct_size = sizeof(options),
                                       .flags = WAL_OPEN_CREATE | flags};
    struct wal_error error = KIT_ERROR;
    struct wal_store *store = NULL;

    if (wal__store_open("/store", &options, heap, sim_process_io(process),
                        &store, &error) != WAL_OK) {
        fail_msg("%s", error.text);
    }
    return store;
}

static struct wal_store *open_store(struct sim_process *process)
{
    return open_store_with(process, &wal__heap_libc, 0);
}

static void append_half(struct wal_session *session, int first)
{
    for (int i = first; i < first + ENTRIES / 2; i++) {
        char id[16];

        (void)snprintf(id, sizeof(id), "e%d", i);
        kit_append(session, id, NULL);
    }
}

static enum wal_status compact(struct wal_store *store)
{
    const struct wal_store_compact_options options = {
        .struct_size = sizeof(options),
        .flags = WAL_STORE_COMPACT_ERASE,
        .rate = UINT64_MAX};

    return wal_store_compact(store, &options, NULL, NULL);
}

/* A store with a rewritten segment, and entries after it: the next compaction
 * makes one segment of both. */
static struct sim_disk *make_disk(void)
{
    struct sim_disk *disk = sim_disk_create(1);
    struct sim_process *process = sim_process_create(disk);
    struct wal_store *store = open_store(process);
    struct wal_session *session = kit_create(store, "s");

    append_half(session, 0);
    assert_ok(compact(store));
    append_half(session, ENTRIES / 2);
    wal_session_close(session);
    kit_close(store);
    sim_process_destroy(process);
    return disk;
}

/* Compacts while the sync of the log's directory fails, after some that do not.
 * False: it did not come to that one. */
static bool fail_to_compact(struct sim_disk *disk, uint64_t after)
{
    struct sim_process *process = sim_process_create(disk);
    struct wal_store *store = open_store(process);
    const struct sim_fault fault = {.call = SIM_SYNC_DIRECTORY,
                                    .path = "/store/log",
                                    .after = after,
                                    .sys_errno = EIO};
    bool struck;

    sim_process_add_fault(process, &fault);
    (void)!compact(store);
    struck = sim_process_counts(process)->faults > 0;
    sim_process_clear_faults(process);
    (void)!wal_close(store, NULL);
    sim_process_destroy(process);
    return struck;
}

/* How many entries a reader gets. */
static uint64_t count_read(struct wal_session *session, uint32_t flags,
                           uint32_t last)
{
    const struct wal_entry_cursor_options options = {
        .struct_size = sizeof(options), .flags = flags, .last = last};
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_entry_cursor *cursor = NULL;
    uint64_t count = 0;

    assert_ok(wal_entry_cursor_open(session, &options, &cursor, NULL));
    while (wal_entry_cursor_next(cursor, &entry, NULL) == WAL_OK) {
        count++;
    }
    wal_entry_cursor_close(cursor);
    return count;
}

static void open_and_check(struct sim_disk *disk)
{
    struct sim_process *process = sim_process_create(disk);
    struct wal_store *store = open_store(process);
    struct wal_session *session = kit_session(store, "s");

    assert_int_equal(kit_info(session).entries, ENTRIES);
    wal_session_close(session);
    (void)!wal_close(store, NULL);
    sim_process_destroy(process);
}

TEST(leftovers__name_that_may_be_lost)
{
    const struct sim_power_loss loss = {.landing = SIM_PERSIST_NONE};
    struct sim_disk *made = make_disk();
    uint32_t kept = 0; /* runs in which replaced segments had to stay */
    bool struck = true;

    for (uint64_t after = 0; struck; after++) {
        struct sim_disk *disk = sim_disk_clone(made);

        struck = fail_to_compact(disk, after);
        open_and_check(disk);
        kept += sim_file_exists(disk, "/store/log/0000000000000001.seg") &&
                sim_file_exists(disk, "/store/log/0000000000000003.seg");
        sim_disk_power_loss(disk, &loss, 1);
        open_and_check(disk);
        sim_disk_destroy(disk);
    }
    assert_true(kept > 0);
    sim_disk_destroy(made);
}

/* -------------------------------------------------------------- erasing --- */

/* Appends entries that make a segment so large that it is not merged with what
 * comes after it. */
static void append_much(struct wal_session *session, const char *prefix)
{
    char *payload = malloc(MUCH + 1);

    assert_non_null(payload);
    memset(payload, '1', MUCH);
    payload[MUCH] = '\0';
    for (int i = 0; i < ENTRIES / 2; i++) {
        char id[16];
        struct wal_entry entry;

        (void)snprintf(id, sizeof(id), "%s%d", prefix, i);
        entry = kit_entry(id, NULL, payload);
        assert_ok(kit_try_append(session, &entry, NULL, NULL));
    }
    free(payload);
}

/* A large rewritten segment, with large content in the pack, of which half is
 * deleted since, and entries after it. */
static struct sim_disk *make_disk_to_erase(void)
{
    struct sim_disk *disk = sim_disk_create(1);
    struct sim_process *process = sim_process_create(disk);
    struct wal_store *store = open_store(process);
    struct wal_session *session = kit_create(store, "s");
    struct wal_session *deleted = kit_create(store, "t");
    char *large = malloc(LARGE + 1);
    struct wal_entry entry = kit_entry("large", NULL, "{}");

    assert_non_null(large);
    memset(large, '1', LARGE);
    entry.payload = (struct wal_slice){large, LARGE};
    append_much(session, "s");
    append_much(deleted, "t");
    assert_ok(kit_try_append(deleted, &entry, NULL, NULL));
    free(large);
    assert_ok(compact(store));
    append_half(session, ENTRIES / 2);
    assert_ok(wal_session_delete(deleted, NULL));
    wal_session_close(deleted);
    wal_session_close(session);
    kit_close(store);
    sim_process_destroy(process);
    return disk;
}

static void on_death(void *arg)
{
    (void)arg;
    longjmp(death, 1);
}

/* A compaction by a process that the fault strikes. False: it did not. */
static bool compact_with_fault(struct sim_disk *disk,
                               const struct sim_fault *fault)
{
    struct sim_process *process = sim_process_create(disk);
    struct arena_heap arena;
    struct wal_store *store;
    bool struck;

    arena_heap_init(&arena);
    store = open_store_with(process, &arena.heap, 0);
    sim_process_on_death(process, on_death, NULL);
    sim_process_add_fault(process, fault);
    if (setjmp(death) == 0) {
        (void)!compact(store);
    }
    struck = sim_process_counts(process)->faults > 0;
    sim_process_destroy(process);
    arena_heap_deinit(&arena);
    return struck;
}

/* The files of a stream: segments that the chain does not have, and files that
 * a compaction was writing. */
static uint32_t count_leftovers(struct sim_disk *disk, const char *directory,
                                const uint64_t *ids, uint32_t count)
{
    uint32_t found = 0;

    for (uint64_t id = 1; id < 64; id++) {
        char path[64];
        bool is_live = false;

        for (uint32_t i = 0; i < count; i++) {
            is_live |= ids[i] == id;
        }
        (void)snprintf(path, sizeof(path), "/store/%s/%016" PRIx64 ".rewrite",
                       directory, id);
        found += sim_file_exists(disk, path);
        (void)snprintf(path, sizeof(path), "/store/%s/%016" PRIx64 ".seg",
                       directory, id);
        found += sim_file_exists(disk, path) && !is_live && id < ids[count - 1];
    }
    return found;
}

static void check_no_leftovers(struct sim_disk *disk, struct wal_store *store)
{
    struct wal__log *logs[] = {&store->core.log, &store->core.blobs.log};

    for (size_t k = 0; k < 2; k++) {
        uint64_t ids[64];
        uint32_t count = wal__log_segment_count(logs[k]);

        assert_in_range(count, 1, 64);
        for (uint32_t i = 0; i < count; i++) {
            ids[i] = wal__log_segment_at(logs[k], i)->id;
        }
        assert_int_equal(count_leftovers(disk, logs[k]->directory, ids, count),
                         0);
    }
}

/* What erasing would still find. */
static uint64_t count_dead_bytes(struct wal_store *store)
{
    const struct wal_store_compact_options options = {
        .struct_size = sizeof(options),
        .flags = WAL_STORE_COMPACT_DRY_RUN | WAL_STORE_COMPACT_ERASE};
    struct wal_store_compact_result result = {.struct_size = sizeof(result)};

    assert_ok(wal_store_compact(store, &options, &result, NULL));
    return result.dead_bytes;
}

static void erase_from(struct sim_disk *disk, struct wal_store *store)
{
    assert_ok(compact(store));
    check_no_leftovers(disk, store);
    assert_int_equal(count_dead_bytes(store), 0);
}

/* Erases as another process, which opens the store now. */
static void erase(struct sim_disk *disk)
{
    struct sim_process *process = sim_process_create(disk);
    struct wal_store *store = open_store(process);

    erase_from(disk, store);
    (void)!wal_close(store, NULL);
    sim_process_destroy(process);
}

/* A process has the store open all the time, so that none opens it alone. It
 * does not know of new files; it erases, or one that opens the store then. */
static bool erases_after(struct sim_disk *disk, const struct sim_fault *fault,
                         bool by_old)
{
    const struct sim_power_loss loss = {.landing = SIM_PERSIST_NONE};
    struct sim_process *process = sim_process_create(disk);
    struct wal_store *store =
        open_store_with(process, &wal__heap_libc, by_old ? WAL_OPEN_PREAD : 0);
    struct wal_session *session = kit_session(store, "s");
    bool struck;

    /* The indexes of the segments are loaded then. */
    assert_int_equal(count_read(session, 0, 0), ENTRIES);
    wal_session_close(session);
    struck = compact_with_fault(disk, fault);
    /* Then the next compaction makes a segment of another id. */
    wal_session_close(kit_create(store, "u"));
    if (by_old) {
        erase_from(disk, store);
    } else {
        erase(disk);
    }
    (void)!wal_close(store, NULL);
    sim_process_destroy(process);
    sim_disk_power_loss(disk, &loss, 1);
    process = sim_process_create(disk);
    store = open_store(process);
    assert_int_equal(count_dead_bytes(store), 0);
    check_no_leftovers(disk, store);
    kit_close(store);
    sim_process_destroy(process);
    open_and_check(disk);
    return struck;
}

static void erase_after_each(struct sim_fault fault)
{
    struct sim_disk *made = make_disk_to_erase();
    bool struck = true;

    for (fault.after = 0; struck; fault.after++) {
        for (int by_old = 0; by_old <= 1; by_old++) {
            struct sim_disk *disk = sim_disk_clone(made);

            struck = erases_after(disk, &fault, by_old != 0);
            sim_disk_destroy(disk);
        }
    }
    assert_true(fault.after > 3);
    sim_disk_destroy(made);
}

TEST(leftovers__erasing_after_a_killed_compaction)
{
    erase_after_each(
        (struct sim_fault){.call = SIM_ANY, .effect = SIM_KILL_AFTER});
}

TEST(leftovers__erasing_after_a_failed_sync)
{
    erase_after_each((struct sim_fault){
        .call = SIM_SYNC_DIRECTORY, .effect = SIM_FAIL, .sys_errno = EIO});
}

/* -------------------------------------------------------------- reading --- */

/* As make_disk; then a summary replaces the first entry. */
static struct sim_disk *make_summarised_disk(void)
{
    const struct wal_compact_options options = {.struct_size = sizeof(options),
                                                .first_kept = kit_text("e1"),
                                                .summary = kit_text("e0")};
    struct sim_disk *disk = make_disk();
    struct sim_process *process = sim_process_create(disk);
    struct wal_store *store = open_store(process);
    struct wal_session *session = kit_session(store, "s");

    assert_ok(wal_session_compact(session, &options, NULL, NULL, NULL));
    wal_session_close(session);
    kit_close(store);
    sim_process_destroy(process);
    return disk;
}

/* A process that reads by pread(2) and does not know that segments were
 * replaced finds what a compaction of the session kept. */
TEST(leftovers__kept_entries_of_a_replaced_segment)
{
    struct sim_fault fault = {.call = SIM_ANY, .effect = SIM_KILL_AFTER};
    struct sim_disk *made = make_summarised_disk();
    bool struck = true;

    for (fault.after = 0; struck; fault.after++) {
        struct sim_disk *disk = sim_disk_clone(made);
        struct sim_process *process = sim_process_create(disk);
        struct wal_store *store =
            open_store_with(process, &wal__heap_libc, WAL_OPEN_PREAD);
        struct wal_session *session = kit_session(store, "s");

        /* The branch is loaded then, the ids are not. */
        assert_int_equal(count_read(session, 0, 0), ENTRIES + 1);
        struck = compact_with_fault(disk, &fault);
        assert_int_equal(
            count_read(session, WAL_ENTRY_CURSOR_SINCE_COMPACTION, 0), ENTRIES);
        wal_session_close(session);
        (void)!wal_close(store, NULL);
        sim_process_destroy(process);
        sim_disk_destroy(disk);
    }
    assert_true(fault.after > 3);
    sim_disk_destroy(made);
}
