/*
 * test_replaced_files.c - tests of files that a compaction replaced: who keeps them, for how long,
 * and what closing the store releases (SPEC.md 3.9, 4.5, docs/keeping.md).
 */
#include <signal.h>
#include <sys/wait.h>

#include "agentwal/admin.h"
#include "tests/lib/kit/parts_kit.h"

enum {
    ROUNDS = 60,
    LOOKS = 200, /* for what another process does soon */
    LOOK_US = 50000
};

/* Counts the maps of the files of the store "store" of a process. */
static uint32_t count_maps(pid_t process, bool only_removed)
{
    char path[64];
    char line[4096];
    char root[2048];
    uint32_t count = 0;
    FILE *maps;

    assert_non_null(getcwd(root, sizeof(root) - 16));
    (void)strcat(root, "/store/");
    (void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)process);
    maps = fopen(path, "re");
    assert_non_null(maps);
    while (fgets(line, sizeof(line), maps) != NULL) {
        count +=
            strstr(line, root) != NULL && (!only_removed || strstr(line, " (deleted)") != NULL);
    }
    (void)fclose(maps);
    return count;
}

struct readers {
    uint32_t count;
    int32_t process; /* the last one */
    uint64_t bytes;
};

static void see_reader(void *ctx, int32_t process, uint64_t bytes)
{
    struct readers *readers = ctx;

    readers->count++;
    readers->process = process;
    readers->bytes = bytes;
}

static struct readers compact(struct wal_store *store, uint32_t flags)
{
    struct readers readers = {0};
    const struct wal_store_compact_options options = {
        .struct_size = sizeof(options),
        .flags = flags,
        .rate = UINT64_MAX,
        .reader = see_reader,
        .ctx = &readers,
    };

    assert_ok(wal_store_compact(store, &options, NULL, NULL));
    return readers;
}

static struct wal_entry_cursor *open_cursor(struct wal_session *session, uint32_t flags)
{
    const struct wal_entry_cursor_options options = {.struct_size = sizeof(options),
                                                     .flags = flags};
    struct wal_entry_cursor *cursor = NULL;

    assert_ok(wal_entry_cursor_open(session, &options, &cursor, NULL));
    return cursor;
}

static struct wal_entry read_entry(struct wal_entry_cursor *cursor)
{
    struct wal_entry entry = WAL_INIT(wal_entry);

    assert_ok(wal_entry_cursor_next(cursor, &entry, NULL));
    return entry;
}

/* --- this process ------------------------------------------------------- */

static void compact_often(uint32_t open_flags)
{
    struct wal_store *store = kit_open("store", WAL_OPEN_CREATE | open_flags);
    struct wal_session *session = kit_create(store, "s");

    for (int i = 0; i < ROUNDS; i++) {
        kit_append_as(session, WAL_WRITTEN);
        assert_int_equal(compact(store, 0).count, 0);
        assert_int_equal(count_maps(getpid(), true), 0);
    }
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(compact__own_replaced_files_are_closed)
{
    compact_often(0);
}

KIT_TEST(compact__own_replaced_files_are_closed_without_maps)
{
    compact_often(WAL_OPEN_PREAD);
}

KIT_TEST(compact__own_slice_keeps_its_file_and_is_named)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create_filled(store, "s", "a b");
    struct wal_entry_cursor *cursor;
    struct wal_entry entry;
    struct readers readers;

    cursor = open_cursor(session, 0);
    entry = read_entry(cursor);
    for (int i = 0; i < 3; i++) {
        kit_append(session, i == 0 ? "c" : i == 1 ? "d" : "e", NULL);
        readers = compact(store, 0);
        assert_int_equal(readers.count, 1);
        assert_int_equal(readers.process, getpid());
        assert_true(readers.bytes > 0);
        assert_int_equal(count_maps(getpid(), true), 1);
        assert_slice(entry.payload, "{\"id\":\"a\"}");
    }
    /* Its next call ends the slices. */
    assert_slice(read_entry(cursor).id, "b");
    assert_ok(wal_session_redact(session, kit_text("c"), kit_text(""), NULL, NULL));
    assert_int_equal(compact(store, WAL_STORE_COMPACT_ERASE).count, 1);
    wal_entry_cursor_close(cursor);
    assert_int_equal(compact(store, WAL_STORE_COMPACT_ERASE).count, 0);
    assert_int_equal(count_maps(getpid(), true), 0);
}

KIT_TEST(compact__cursor_at_its_end_keeps_nothing)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_entry_cursor *cursor;
    struct wal_entry entry = WAL_INIT(wal_entry);

    kit_append(session, "a", NULL);
    cursor = open_cursor(session, 0);
    (void)read_entry(cursor);
    assert_int_equal(wal_entry_cursor_next(cursor, &entry, NULL), WAL_END);
    assert_int_equal(compact(store, 0).count, 0);
    assert_int_equal(count_maps(getpid(), true), 0);
    wal_entry_cursor_close(cursor);
}

KIT_TEST(compact__pinned_slices_hold_through_many)
{
    const struct wal_store_compact_options only_end = {.struct_size = sizeof(only_end),
                                                       .max_bytes = 1};
    const char *const ids[] = {"a", "b", "c"};
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_entry_cursor *cursor;
    struct wal_entry entries[3];

    for (int i = 0; i < 3; i++) {
        kit_append(session, ids[i], NULL);
        /* Each in a segment, which is mapped: none is compressed. */
        assert_ok(wal_store_compact(store, &only_end, NULL, NULL));
    }
    cursor = open_cursor(session, WAL_ENTRY_CURSOR_PINNED);
    for (int i = 0; i < 3; i++) {
        entries[i] = read_entry(cursor);
    }
    for (int i = 0; i < 3; i++) {
        kit_append_as(session, WAL_WRITTEN);
        assert_int_equal(compact(store, 0).count, 1);
    }
    assert_int_equal(count_maps(getpid(), true), 3);
    assert_slice(entries[0].payload, "{\"id\":\"a\"}");
    assert_slice(entries[1].payload, "{\"id\":\"b\"}");
    assert_slice(entries[1].parent_id, "a");
    assert_slice(entries[2].payload, "{\"id\":\"c\"}");
    wal_entry_cursor_close(cursor);
    assert_int_equal(compact(store, WAL_STORE_COMPACT_ERASE).count, 0);
}

/* --- others ------------------------------------------------------------- */

/* A process that reads everything once it may, and then waits until it is killed. */
struct waiter {
    pid_t process;
    int go;   /* it may */
    int says; /* it has */
};

static void wait_for_byte(int from)
{
    char byte = 0;

    if (read(from, &byte, 1) != 1) {
        _exit(1);
    }
}

/* Starts it before this process opens the store: it would inherit maps. keeps: it waits with a
 * slice. */
static struct waiter start_waiter(uint32_t flags, bool keeps)
{
    struct waiter waiter;
    int go[2];
    int says[2];

    assert_int_equal(pipe(go), 0);
    assert_int_equal(pipe(says), 0);
    waiter.process = kit_start_process();
    if (waiter.process == 0) {
        struct wal_store *store;
        struct wal_session *session;

        wait_for_byte(go[0]);
        store = kit_open("store", flags);
        session = kit_session(store, "s");
        assert_branch(session, "a");
        if (keeps) {
            (void)read_entry(open_cursor(session, 0));
        }
        assert_int_equal(write(says[1], "r", 1), 1);
        for (;;) {
            (void)pause();
        }
    }
    (void)close(go[0]);
    (void)close(says[1]);
    waiter.go = go[1];
    waiter.says = says[0];
    return waiter;
}

static void have_it_read(const struct waiter *waiter)
{
    assert_int_equal(write(waiter->go, "g", 1), 1);
    wait_for_byte(waiter->says);
}

static void stop(const struct waiter *waiter)
{
    int how;

    assert_int_equal(kill(waiter->process, SIGKILL), 0);
    assert_int_equal(waitpid(waiter->process, &how, 0), waiter->process);
    (void)close(waiter->go);
    (void)close(waiter->says);
}

static void erase_concurrently(uint32_t flags)
{
    struct waiter waiter = start_waiter(flags, false);
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");

    kit_append(session, "a", NULL);
    have_it_read(&waiter);
    assert_int_equal(compact(store, WAL_STORE_COMPACT_ERASE).count, 0);
    assert_int_equal(count_maps(waiter.process, true), 0);
    stop(&waiter);
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(erase__waits_for_a_writer_that_only_waits)
{
    erase_concurrently(0);
}

KIT_TEST(erase__waits_for_a_reader_that_only_waits)
{
    erase_concurrently(WAL_OPEN_READ_ONLY);
}

KIT_TEST(erase__waits_for_a_process_without_maps)
{
    erase_concurrently(WAL_OPEN_PREAD);
}

/* It follows no process: none had the store open. */
KIT_TEST(erase__waits_for_a_reader_that_was_alone)
{
    struct waiter waiter = start_waiter(WAL_OPEN_READ_ONLY, false);
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");

    kit_append(session, "a", NULL);
    (void)compact(store, 0);
    wal_session_close(session);
    kit_close(store);
    have_it_read(&waiter);
    store = kit_store();
    session = kit_session(store, "s");
    assert_ok(wal_session_redact(session, kit_text("a"), kit_text(""), NULL, NULL));
    assert_int_equal(compact(store, WAL_STORE_COMPACT_ERASE).count, 0);
    assert_int_equal(count_maps(waiter.process, true), 0);
    stop(&waiter);
}

KIT_TEST(compact__waiting_process_lets_go_soon)
{
    struct waiter waiter = start_waiter(0, false);
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    uint32_t left = 1;

    kit_append(session, "a", NULL);
    have_it_read(&waiter);
    for (int i = 0; i < 5; i++) {
        kit_append_as(session, WAL_WRITTEN);
        (void)compact(store, 0);
    }
    for (int i = 0; i < LOOKS && left > 0; i++) {
        left = count_maps(waiter.process, true);
        (void)usleep(LOOK_US);
    }
    assert_int_equal(left, 0);
    stop(&waiter);
}

KIT_TEST(erase__names_the_process_that_keeps_a_slice)
{
    struct waiter waiter = start_waiter(0, true);
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct readers readers;

    kit_append(session, "a", NULL);
    have_it_read(&waiter);
    readers = compact(store, WAL_STORE_COMPACT_ERASE);
    assert_int_equal(readers.count, 1);
    assert_int_equal(readers.process, waiter.process);
    assert_true(readers.bytes > 0);
    stop(&waiter);
    kit_append(session, "b", NULL);
    assert_int_equal(compact(store, WAL_STORE_COMPACT_ERASE).count, 0);
}

/* --- lookups ------------------------------------------------------------ */

enum { LOOKUPS = 40, LOOKUP_ROUNDS = 4 };

static void put_doc(struct wal_store *store, const char *key, const char *value)
{
    struct wal_doc doc = WAL_INIT(wal_doc);

    doc.key = kit_text(key);
    doc.value = kit_text(value);
    assert_ok(wal_doc_put(store, NULL, &doc, NULL, NULL));
}

/* Looks each entry up: records of a log, and of blocks once it is compacted. */
static void assert_entries(struct wal_session *session, uint32_t count)
{
    char id[16];
    char payload[64];
    struct wal_entry entry = WAL_INIT(wal_entry);

    for (uint32_t i = 0; i < count; i++) {
        (void)snprintf(id, sizeof(id), "e%03u", i);
        (void)snprintf(payload, sizeof(payload), "{\"id\":\"%s\"}", id);
        assert_ok(wal_entry_get(session, kit_text(id), &entry, NULL));
        assert_slice(entry.id, id);
        assert_slice(entry.payload, payload);
    }
}

/* What lookups return, and what they read in vain, keeps no file, and holds. */
static void erase_after_lookups(uint32_t open_flags)
{
    struct wal_store *store = kit_open("store", WAL_OPEN_CREATE | open_flags);
    struct wal_session *session = kit_create(store, "s");
    struct wal_entry entry = WAL_INIT(wal_entry);
    struct wal_doc doc = WAL_INIT(wal_doc);
    char id[16];

    put_doc(store, "k", "\"the value\"");
    for (uint32_t i = 0; i < LOOKUPS; i++) {
        (void)snprintf(id, sizeof(id), "e%03u", i);
        kit_append(session, id, NULL);
    }
    for (uint32_t round = 0; round < LOOKUP_ROUNDS; round++) {
        kit_append_as(session, WAL_WRITTEN);
        assert_entries(session, LOOKUPS);
        assert_ok(wal_doc_get(store, NULL, kit_text("k"), 0, &doc, NULL));
        assert_ok(wal_entry_get(session, kit_text("e007"), &entry, NULL));
        assert_int_equal(compact(store, WAL_STORE_COMPACT_ERASE).count, 0);
        assert_int_equal(count_maps(getpid(), true), 0);
        assert_slice(entry.id, "e007");
        assert_slice(entry.parent_id, "e006");
        assert_slice(entry.type, "message");
        assert_slice(entry.payload, "{\"id\":\"e007\"}");
        assert_slice(doc.key, "k");
        assert_slice(doc.value, "\"the value\"");
    }
    assert_ok(wal_session_redact(session, kit_text("e007"), kit_text(""), NULL, NULL));
    assert_int_equal(wal_entry_get(session, kit_text("e007"), &entry, NULL), WAL_EREDACTED);
    assert_int_equal(compact(store, WAL_STORE_COMPACT_ERASE).count, 0);
    assert_int_equal(count_maps(getpid(), true), 0);
    assert_entries(session, 7);
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(erase__what_lookups_returned_keeps_no_file)
{
    erase_after_lookups(0);
}

KIT_TEST(erase__lookups_without_maps_keep_no_file)
{
    erase_after_lookups(WAL_OPEN_PREAD);
}

/* --- closing ------------------------------------------------------------ */

KIT_TEST(close__unmaps_what_no_slice_points_to)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_entry_cursor *cursor;
    struct wal_entry entry;

    kit_append(session, "a", NULL);
    (void)compact(store, 0);
    kit_append(session, "b", NULL);
    cursor = open_cursor(session, 0);
    entry = read_entry(cursor);
    entry = read_entry(cursor);
    assert_true(count_maps(getpid(), false) > 1);
    assert_int_equal(wal_close(store, NULL), WAL_EBUSY);
    assert_int_equal(count_maps(getpid(), false), 1);
    assert_slice(entry.payload, "{\"id\":\"b\"}");
    assert_slice(entry.parent_id, "a");
    wal_entry_cursor_close(cursor);
    wal_session_close(session);
    assert_int_equal(count_maps(getpid(), false), 0);
}

KIT_TEST(close__unmaps_all_while_a_session_is_open)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create_filled(store, "s", "a b");

    (void)compact(store, 0);
    assert_branch(session, "a b");
    assert_int_equal(wal_close(store, NULL), WAL_EBUSY);
    assert_int_equal(count_maps(getpid(), false), 0);
}
