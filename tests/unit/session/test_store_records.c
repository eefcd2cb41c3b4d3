/*
 * test_store_records.c - tests of the segments of the log and their records (agentwal/record.h),
 * and of what readers skip: deltas, entries by their id, what compactions replaced, deleted
 * sessions.
 */
#include "agentwal/admin.h"
#include "agentwal/record.h"
#include "engine/base/io.h"
#include "engine/session/store.h"
#include "tests/lib/faulty_heap.h"
#include "tests/lib/kit/parts_kit.h"
#include "tests/lib/kit/reading_kit.h"

enum {
    LARGE_SIZE = 300 * 1024 /* kept as a blob */
};

/* The segments of the log, at most 8. */
struct segments {
    struct wal_segment_info items[8];
    size_t count;
};

static struct segments list(struct wal_store *store)
{
    struct segments segments = {.count = 0};
    struct wal_segment_cursor *cursor = NULL;
    struct wal_segment_info info = WAL_INIT(wal_segment_info);

    assert_ok(wal_segment_cursor_open(store, &cursor, NULL));
    while (wal_segment_cursor_next(cursor, &info, NULL) == WAL_OK) {
        assert_true(segments.count < 8);
        segments.items[segments.count++] = info;
    }
    wal_segment_cursor_close(cursor);
    return segments;
}

static struct wal_record_cursor *open_segment(struct wal_store *store,
                                              const struct wal_segment_info *info, uint32_t flags,
                                              uint64_t after)
{
    struct wal_record_cursor_options options = WAL_INIT(wal_record_cursor_options);
    struct wal_record_cursor *cursor = NULL;

    options.flags = flags;
    options.segment = info->id;
    options.identity = info->identity;
    options.after_sequence = after;
    assert_ok(wal_record_cursor_open(store, &options, &cursor, NULL));
    return cursor;
}

/* Describes a record as "ID", "KEY=VALUE" or "[TITLE]". */
static void describe(const struct wal_record *record, char *out, size_t size)
{
    switch (record->kind) {
    case WAL_RECORD_ENTRY:
        snprintf(out, size, "%.*s", WAL_ARG(record->entry->id));
        break;
    case WAL_RECORD_DOC:
        snprintf(out, size, "%.*s=%.*s", WAL_ARG(record->doc->key), WAL_ARG(record->doc->value));
        break;
    default:
        snprintf(out, size, "[%.*s]", WAL_ARG(record->session->title));
    }
}

/* The records of all segments; until the next call. */
static const char *records(struct wal_store *store, uint32_t flags, uint64_t after)
{
    static char text[1024];
    struct segments segments = list(store);

    text[0] = '\0';
    for (size_t i = 0; i < segments.count; i++) {
        struct wal_record record = WAL_INIT(wal_record);
        struct wal_record_cursor *cursor = open_segment(store, &segments.items[i], flags, after);

        while (wal_record_cursor_next(cursor, &record, NULL) == WAL_OK) {
            char one[100];

            describe(&record, one, sizeof(one));
            strcat(strcat(text, text[0] == '\0' ? "" : " "), one);
        }
        wal_record_cursor_close(cursor);
    }
    return text;
}

KIT_TEST(segments__new_store)
{
    struct wal_store *store = kit_store();
    struct wal_store_info info = WAL_INIT(wal_store_info);

    assert_true(list(store).count <= 1);
    assert_string_equal(records(store, 0, 0), "");
    assert_ok(wal_store_get_info(store, &info, NULL));
    assert_slice(info.path, "store");
    kit_close(store);
    store = kit_open(NULL, WAL_OPEN_MEMORY);
    assert_ok(wal_store_get_info(store, &info, NULL));
    assert_int_equal(info.path.size, 0);
}

KIT_TEST(records__of_two_sessions_by_session)
{
    struct wal_store *store = kit_store();
    struct wal_session *a = kit_create_titled(store, "a", "A");
    struct wal_session *b = kit_create_titled(store, "b", "B");
    struct wal_record record = WAL_INIT(wal_record);
    struct wal_record_cursor *cursor;
    struct segments segments;

    kit_append(a, "a1", NULL);
    kit_append(b, "b1", NULL);
    kit_append(a, "a2", NULL);
    (void)kit_put(store, b, "k", "7");
    (void)kit_put(store, NULL, "k", "8"); /* of the store */
    assert_string_equal(records(store, 0, 0), "[A] a1 a2 [B] b1 k=7");
    assert_string_equal(records(store, 0, 4), "a2 k=7");
    segments = list(store);
    assert_int_equal(segments.count, 1);
    assert_int_equal(segments.items[0].flags, WAL_SEGMENT_TAIL);
    assert_true(segments.items[0].last_sequence >= 7);
    cursor = open_segment(store, &segments.items[0], 0, 0);
    assert_ok(wal_record_cursor_get(cursor, 2, 4, &record, NULL));
    assert_slice(record.entry->id, "b1");
    assert_slice(record.entry->payload, "{\"id\":\"b1\"}");
    assert_slice(record.session_id, "b");
    assert_int_equal(record.session_number, 2);
    assert_int_equal(wal_record_cursor_get(cursor, 1, 4, &record, NULL), WAL_ENOTFOUND);
    assert_int_equal(wal_record_cursor_get(cursor, 0, 4, &record, NULL), WAL_EINVAL);
    assert_int_equal(wal_record_cursor_get(cursor, 99, 4, &record, NULL), WAL_ENOTFOUND);
    /* get does not move the cursor */
    assert_ok(wal_record_cursor_next(cursor, &record, NULL));
    assert_slice(record.session->title, "A");
    wal_record_cursor_close(cursor);
}

KIT_TEST(records__index_of_the_last_close_is_the_base)
{
    struct wal_store *store = kit_store();
    struct wal_session *a = kit_create_titled(store, "a", "A");

    kit_append_all(a, "a1 a2");
    wal_session_close(a);
    kit_close(store);
    store = kit_store();
    a = kit_session(store, "a");
    kit_append_all(a, "a3");
    assert_string_equal(records(store, 0, 0), "[A] a1 a2 a3");
}

KIT_TEST(records__redacted_also_after_opening)
{
    struct wal_store *store = kit_store();
    struct wal_session *a = kit_create_titled(store, "a", "A");
    struct wal_record record = WAL_INIT(wal_record);
    struct wal_record_cursor *cursor;
    struct segments segments;

    kit_append_all(a, "a1 a2 a3");
    segments = list(store);
    cursor = open_segment(store, &segments.items[0], 0, 0);
    for (int i = 0; i < 2; i++) { /* [A], a1 */
        assert_ok(wal_record_cursor_next(cursor, &record, NULL));
    }
    assert_ok(wal_session_redact(a, kit_text("a2"), kit_text(""), NULL, NULL));
    assert_ok(wal_record_cursor_next(cursor, &record, NULL));
    assert_slice(record.entry->id, "a3");
    assert_int_equal(wal_record_cursor_get(cursor, 1, 3, &record, NULL), WAL_EREDACTED);
    wal_record_cursor_close(cursor);
    kit_compact(store, WAL_STORE_COMPACT_ERASE);
    assert_non_null(strstr(records(store, 0, 0), "a1 a3 "));
    assert_null(strstr(records(store, 0, 0), " a2 "));
}

KIT_TEST(records__deleted_and_trashed_on_demand)
{
    struct wal_store *store = kit_store();
    struct wal_session *a = kit_create_titled(store, "a", "A");
    struct wal_session *b = kit_create_titled(store, "b", "B");
    struct wal_record record = WAL_INIT(wal_record);
    struct wal_record_cursor *cursor;
    struct segments segments;

    kit_append_all(a, "a1");
    kit_append_all(b, "b1");
    (void)kit_fork(a, NULL, "f");
    assert_ok(wal_session_delete(a, NULL));
    assert_ok(wal_session_trash(b, NULL));
    assert_null(strstr(records(store, 0, 0), "a1"));
    assert_null(strstr(records(store, 0, 0), "b1"));
    assert_non_null(strstr(records(store, WAL_RECORD_CURSOR_DELETED, 0), "a1"));
    assert_non_null(strstr(records(store, WAL_RECORD_CURSOR_DELETED, 0), "b1"));
    segments = list(store);
    cursor = open_segment(store, &segments.items[0], 0, 0);
    assert_int_equal(wal_record_cursor_get(cursor, 1, 3, &record, NULL), WAL_ENOTFOUND);
    wal_record_cursor_close(cursor);
    cursor = open_segment(store, &segments.items[0], WAL_RECORD_CURSOR_DELETED, 0);
    assert_ok(wal_record_cursor_get(cursor, 1, 3, &record, NULL));
    assert_int_equal(record.flags, WAL_RECORD_DELETED);
    assert_ok(wal_record_cursor_get(cursor, 2, 4, &record, NULL));
    assert_int_equal(record.flags, WAL_RECORD_TRASHED);
    wal_record_cursor_close(cursor);
}

KIT_TEST(records__large_payload_and_its_limit)
{
    static char json[LARGE_SIZE + 1];
    struct wal_store *store = kit_store();
    struct wal_session *a = kit_create_titled(store, "a", "A");
    struct wal_record_cursor_options options = WAL_INIT(wal_record_cursor_options);
    struct wal_record record = WAL_INIT(wal_record);
    struct wal_record_cursor *cursor = NULL;
    struct segments segments;
    struct wal_entry entry;

    memset(json, 'x', LARGE_SIZE);
    json[0] = json[LARGE_SIZE - 1] = '"';
    entry = kit_entry("large", NULL, json);
    assert_ok(wal_append(a, &entry, 1, NULL, NULL, NULL));
    segments = list(store);
    cursor = open_segment(store, &segments.items[0], 0, 1);
    assert_ok(wal_record_cursor_next(cursor, &record, NULL));
    assert_int_equal(record.entry->payload.size, LARGE_SIZE);
    assert_memory_equal(record.entry->payload.data, json, LARGE_SIZE);
    wal_record_cursor_close(cursor);
    options.segment = segments.items[0].id;
    options.identity = segments.items[0].identity;
    options.after_sequence = 1;
    options.payload_limit = LARGE_SIZE - 1;
    assert_ok(wal_record_cursor_open(store, &options, &cursor, NULL));
    assert_ok(wal_record_cursor_next(cursor, &record, NULL));
    assert_int_equal(record.entry->payload.size, 0);
    assert_int_equal(record.entry->payload_size, LARGE_SIZE);
    assert_true((record.entry->flags & WAL_ENTRY_OUT_OF_LINE) != 0);
    wal_record_cursor_close(cursor);
}

KIT_TEST(records__segment_that_was_replaced)
{
    struct wal_store *store = kit_store();
    struct wal_store *reader = kit_open("store", WAL_OPEN_READ_ONLY);
    struct wal_session *a = kit_create_titled(store, "a", "A");
    struct wal_record_cursor_options options = WAL_INIT(wal_record_cursor_options);
    struct wal_record_cursor *cursor = NULL;
    struct segments before;
    struct segments after;

    kit_append_all(a, "a1 a2");
    before = list(store);
    kit_compact(store, 0);
    after = list(store);
    assert_int_equal(after.count, 2);
    assert_int_equal(after.items[0].id, before.items[0].id);
    assert_true(after.items[0].identity != before.items[0].identity);
    assert_int_equal(after.items[0].flags, WAL_SEGMENT_REWRITTEN);
    assert_int_equal(after.items[0].last_sequence, 3);
    /* A handle of before sees it too. */
    assert_true(list(reader).items[0].identity == after.items[0].identity);
    assert_string_equal(records(store, 0, 0), "[A] a1 a2");
    assert_string_equal(records(reader, 0, 0), "[A] a1 a2");
    options.segment = before.items[0].id;
    options.identity = before.items[0].identity;
    assert_int_equal(wal_record_cursor_open(store, &options, &cursor, NULL), WAL_ENOTFOUND);
    assert_null(cursor);
}

KIT_TEST(records__misuse)
{
    struct wal_store *store = kit_store();
    struct wal_session *a = kit_create_titled(store, "a", "A");
    struct wal_record_cursor_options options = WAL_INIT(wal_record_cursor_options);
    struct wal_segment_cursor *segments = NULL;
    struct wal_record_cursor *cursor = NULL;
    struct wal_record record = WAL_INIT(wal_record);
    struct segments all = list(store);

    options.segment = all.items[0].id;
    options.identity = all.items[0].identity;
    options.flags = 8;
    assert_int_equal(wal_segment_cursor_open(NULL, &segments, NULL), WAL_EINVAL);
    assert_int_equal(wal_segment_cursor_open(store, NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_segment_cursor_next(NULL, NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_record_cursor_open(store, &options, &cursor, NULL), WAL_EINVAL);
    options.flags = 0;
    assert_int_equal(wal_record_cursor_open(store, &options, NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_record_cursor_next(NULL, &record, NULL), WAL_EINVAL);
    assert_ok(wal_record_cursor_open(store, &options, &cursor, NULL));
    assert_int_equal(wal_record_cursor_next(cursor, NULL, NULL), WAL_EINVAL);
    assert_ok(wal_segment_cursor_open(store, &segments, NULL));
    wal_session_close(a);
    assert_int_equal(wal_close(store, NULL), WAL_EBUSY);
    assert_int_equal(wal_record_cursor_next(cursor, &record, NULL), WAL_ECLOSED);
    assert_int_equal(wal_record_cursor_get(cursor, 1, 1, &record, NULL), WAL_ECLOSED);
    wal_record_cursor_close(cursor);
    wal_segment_cursor_close(segments);
    wal_record_cursor_close(NULL);
    wal_segment_cursor_close(NULL);
}

/* ------------------------------------------------------------ deltas --- */

KIT_TEST(deltas__beyond_the_durable_end)
{
    struct wal_open_options slow = {
        .struct_size = sizeof(slow), .flags = WAL_OPEN_CREATE, .idle_mark_ms = 600000};
    struct wal_entry_cursor_options options = {.struct_size = sizeof(options),
                                               .flags = WAL_ENTRY_CURSOR_DURABLE};
    struct reading reading;

    assert_ok(wal_open("store", &slow, &reading.store, NULL));
    (void)kit_keep(reading.store);
    reading.session = kit_create(reading.store, "s");
    kit_append_all(reading.session, "a");
    reading_deltas(reading.session, "1");
    kit_append_all(reading.session, "b");
    reading_deltas(reading.session, "2");
    assert_ok(wal_sync(reading.store, NULL));
    reading_deltas(reading.session, "3");
    kit_append_all(reading.session, "c");
    reading_deltas(reading.session, "4");
    for (uint32_t mode = 0; mode < 2; mode++) {
        options.mode = mode;
        options.flags = WAL_ENTRY_CURSOR_DURABLE;
        assert_string_equal(kit_list_ids(reading.session, &options), "a b");
        options.flags |= WAL_ENTRY_CURSOR_DELTAS;
        assert_string_equal(kit_list_ids(reading.session, &options), "a 1 b 2");
    }
    assert_branch(reading.session, "a b c");
}

KIT_TEST(get__of_hidden_entries)
{
    struct reading reading = reading_begin();
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_error error = KIT_ERROR;
    struct wal_entry_cursor *cursor;
    char reason[301];

    memset(reason, 'r', 159);
    (void)snprintf(reason + 159, sizeof(reason) - 159, "\xc3\xa9 and more");
    kit_append_all(reading.session, "a");
    reading_deltas(reading.session, "1 2");
    kit_append_all(reading.session, "b c");
    reading_redact(reading.session, "a", "a key");
    reading_redact(reading.session, "b", reason);
    cursor = reading_open(reading.session, 0, 0);
    assert_ok(wal_entry_cursor_get(cursor, kit_text("2"), &entry, NULL));
    assert_slice(entry.type, "message_delta_batch");
    assert_slice(entry.parent_id, "");
    assert_int_equal(entry.depth, 2);
    assert_fails(wal_entry_cursor_get(cursor, kit_text("a"), &entry, kit_error()), WAL_EREDACTED,
                 "\"xa\": a key");
    assert_slice(entry.id, "2");
    assert_int_equal(wal_entry_cursor_get(cursor, kit_text("b"), &entry, &error), WAL_EREDACTED);
    assert_int_equal(strlen(strchr(error.text, ':')), 2 + 159);
    assert_ok(wal_entry_cursor_get(cursor, kit_text("c"), &entry, NULL));
    assert_slice(entry.parent_id, "");
    wal_entry_cursor_close(cursor);
    cursor = reading_open(reading.session, 0, WAL_ENTRY_CURSOR_DELTAS | WAL_ENTRY_CURSOR_REDACTED);
    assert_ok(wal_entry_cursor_get(cursor, kit_text("c"), &entry, NULL));
    assert_slice(entry.parent_id, "b");
    assert_ok(wal_entry_cursor_get(cursor, kit_text("b"), &entry, NULL));
    assert_true((entry.flags & WAL_ENTRY_REDACTED) != 0);
    assert_slice(entry.parent_id, "2");
    wal_entry_cursor_close(cursor);
}

/* ------------------------------------------------------------- memory --- */

/* Repeats the open while it fails with WAL_ENOMEM, allowing one more allocation each time; then the
 * cursor returns everything. */
static void check_open(struct faulty_heap *faulty, struct wal_session *session, uint32_t mode,
                       uint32_t flags, uint64_t count)
{
    struct wal_entry_cursor_options options = {
        .struct_size = sizeof(options), .mode = mode, .flags = flags};
    enum wal_status status = WAL_ENOMEM;

    for (uint64_t nth = 1; status != WAL_OK; nth++) {
        struct wal_error error = KIT_ERROR;
        struct wal_entry_cursor *cursor = NULL;

        faulty_heap_fail(faulty, nth, true);
        status = wal_entry_cursor_open(session, &options, &cursor, &error);
        faulty_heap_fail(faulty, 0, false);
        assert_int_equal(error.status, status);
        if (status == WAL_OK) {
            assert_int_equal(wal_entry_cursor_remaining(cursor), count);
            wal_entry_cursor_close(cursor);
        } else {
            assert_int_equal(status, WAL_ENOMEM);
            assert_null(cursor);
        }
    }
}

KIT_TEST(open__without_memory_succeeds_or_fails_whole)
{
    struct wal_open_options options = {.struct_size = sizeof(options),
                                       .flags = WAL_OPEN_CREATE | WAL_OPEN_PREAD};
    struct faulty_heap faulty;
    struct reading reading;
    struct wal_session *fork;

    faulty_heap_init(&faulty, &wal__heap_libc);
    for (int round = 0; round < 5; round++) {
        assert_ok(
            wal__store_open("store", &options, &faulty.heap, &wal__io_posix, &reading.store, NULL));
        if (round == 0) {
            reading.session = kit_create(reading.store, "s");
            kit_append_all(reading.session, "a b c");
            reading_deltas(reading.session, "1 2");
            reading_append(reading.session, "k", NULL, "compaction",
                           "{\"firstKeptEntryId\":\"b\"}");
            kit_append_all(reading.session, "d");
            fork = kit_fork(reading.session, "d", "f");
            kit_append_all(fork, "e");
            reading_append(fork, "p", NULL, "message_delta_batch", "{}");
            reading_append(fork, "q", NULL, "message_delta_batch", "{}");
            reading_redact(fork, "c", "");
        } else {
            reading.session = kit_session(reading.store, "s");
            fork = kit_session(reading.store, "f");
            check_open(&faulty, fork, round % 2 == 1,
                       round == 2  ? WAL_ENTRY_CURSOR_SINCE_COMPACTION
                       : round > 2 ? WAL_ENTRY_CURSOR_DELTAS
                                   : 0,
                       round == 2  ? 4u
                       : round > 2 ? 9u
                                   : 5u);
        }
        wal_session_close(fork);
        reading_deinit(&reading);
        assert_int_equal(faulty.live, 0);
    }
    assert_true(faulty.failures > 0);
}
