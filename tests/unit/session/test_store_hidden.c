/*
 * test_store_hidden.c - tests of what readers skip: deltas, entries by their
 * id, what compactions replaced, deleted sessions.
 */
#include "engine/base/io.h"
#include "engine/session/store.h"
#include "tests/lib/faulty_heap.h"
#include "tests/lib/kit/reading_kit.h"

/* ------------------------------------------------------------ deltas --- */

KIT_TEST(deltas__are_omitted_by_default)
{
    struct reading reading = reading_begin();
    struct wal_entry_cursor_options options = {.struct_size = sizeof(options)};

    reading_deltas(reading.session, "1 2");
    kit_append_all(reading.session, "a b");
    reading_deltas(reading.session, "3 4 5");
    kit_append_all(reading.session, "c");
    reading_deltas(reading.session, "6");
    for (int round = 0; round < 3; round++) {
        assert_branch(reading.session, "a b c");
        assert_all_entries(reading.session, "a b c");
        assert_string_equal(
            reading_ids(reading.session, 0, WAL_ENTRY_CURSOR_DELTAS),
            "1 2 a b 3 4 5 c 6");
        assert_string_equal(
            reading_ids(reading.session, 1, WAL_ENTRY_CURSOR_DELTAS),
            "1 2 a b 3 4 5 c 6");
        options.skip = 2;
        options.up_to = kit_text("c");
        assert_string_equal(kit_list_ids(reading.session, &options), "c");
        options.up_to = kit_text("4");
        options.skip = 1;
        assert_string_equal(kit_list_ids(reading.session, &options), "b");
        options.up_to = kit_text("2");
        assert_string_equal(kit_list_ids(reading.session, &options), "");
        reading_reopen(&reading, round == 0 ? 0 : WAL_OPEN_PREAD);
    }
    reading_deinit(&reading);
}

KIT_TEST(deltas__parents_and_depths_around_them)
{
    struct reading reading = reading_begin();
    struct wal_entry_cursor *cursor;

    reading_deltas(reading.session, "1");
    kit_append_all(reading.session, "a");
    reading_deltas(reading.session, "2 3");
    kit_append_all(reading.session, "b");
    kit_append(reading.session, "c", "2");
    kit_append(reading.session, "d", "1");
    for (uint32_t mode = 0; mode < 2; mode++) {
        cursor = reading_open(reading.session, mode, 0);
        assert_int_equal(wal_entry_cursor_remaining(cursor), mode == 0 ? 2 : 4);
        reading_assert_next(cursor, "a", "", 1);
        reading_assert_next(cursor, "b", "a", 4);
        if (mode == 1) {
            reading_assert_next(cursor, "c", "a", 3);
            reading_assert_next(cursor, "d", "", 1);
        }
        reading_assert_end(cursor);
        reading_reopen(&reading, WAL_OPEN_PREAD);
    }
    reading_deinit(&reading);
}

KIT_TEST(deltas__of_another_stream_hide_nothing)
{
    struct reading reading = reading_begin();
    struct wal_entry_cursor_options options = {.struct_size = sizeof(options),
                                               .stream = 1};
    char expected[64] = "";

    for (int i = 0; i < 12; i++) {
        struct wal_entry delta = kit_entry(NULL, NULL, "{}");
        char id[8];

        (void)snprintf(id, sizeof(id), "%s%c", i == 0 ? "" : " ", 'a' + i);
        kit_append(reading.session, id + (i > 0), NULL);
        (void)strcat(expected, id);
        delta.type = kit_text("message_delta_batch");
        delta.flags = WAL_ENTRY_LINE;
        delta.stream = 1;
        for (int k = 0; k < i % 3; k++) {
            assert_ok(kit_try_append(reading.session, &delta, NULL, NULL));
        }
    }
    assert_branch(reading.session, expected);
    assert_all_entries(reading.session, expected);
    assert_string_equal(kit_list_ids(reading.session, &options), "");
    reading_deinit(&reading);
}

KIT_TEST(deltas__beyond_the_durable_end)
{
    struct wal_open_options slow = {.struct_size = sizeof(slow),
                                    .flags = WAL_OPEN_CREATE,
                                    .idle_mark_ms = 600000};
    struct wal_entry_cursor_options options = {
        .struct_size = sizeof(options), .flags = WAL_ENTRY_CURSOR_DURABLE};
    struct reading reading;

    assert_ok(wal_open("store", &slow, &reading.store, NULL));
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
    reading_deinit(&reading);
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
    assert_int_equal(
        wal_entry_cursor_get(cursor, kit_text("a"), &entry, &error),
        WAL_EREDACTED);
    assert_error(&error, WAL_EREDACTED, "\"xa\": a key");
    assert_slice(entry.id, "2");
    assert_int_equal(
        wal_entry_cursor_get(cursor, kit_text("b"), &entry, &error),
        WAL_EREDACTED);
    assert_int_equal(strlen(strchr(error.text, ':')), 2 + 159);
    assert_ok(wal_entry_cursor_get(cursor, kit_text("c"), &entry, NULL));
    assert_slice(entry.parent_id, "");
    wal_entry_cursor_close(cursor);
    cursor = reading_open(reading.session, 0,
                          WAL_ENTRY_CURSOR_DELTAS | WAL_ENTRY_CURSOR_REDACTED);
    assert_ok(wal_entry_cursor_get(cursor, kit_text("c"), &entry, NULL));
    assert_slice(entry.parent_id, "b");
    assert_ok(wal_entry_cursor_get(cursor, kit_text("b"), &entry, NULL));
    assert_true((entry.flags & WAL_ENTRY_REDACTED) != 0);
    assert_slice(entry.parent_id, "2");
    wal_entry_cursor_close(cursor);
    reading_deinit(&reading);
}

KIT_TEST(compaction__around_hidden_entries)
{
    struct reading reading = reading_begin();
    const uint32_t since = WAL_ENTRY_CURSOR_SINCE_COMPACTION;
    struct wal_entry_cursor *cursor;
    struct wal_entry_cursor_options options = {
        .struct_size = sizeof(options), .flags = since, .skip = 1};

    kit_append_all(reading.session, "a");
    reading_deltas(reading.session, "1 2");
    kit_append_all(reading.session, "b c");
    reading_append(reading.session, "k", NULL, "compaction",
                   "{\"firstKeptEntryId\":\"2\"}");
    kit_append_all(reading.session, "d");
    assert_string_equal(reading_ids(reading.session, 0, since), "b c k d");
    cursor = reading_open(reading.session, 0, since);
    reading_assert_next(cursor, "b", "a", 3);
    reading_assert_next(cursor, "c", "b", 4);
    wal_entry_cursor_close(cursor);
    assert_string_equal(kit_list_ids(reading.session, &options), "c k d");
    reading_redact(reading.session, "b", "");
    assert_string_equal(reading_ids(reading.session, 0, since), "c k d");
    reading_redact(reading.session, "k", "");
    assert_string_equal(reading_ids(reading.session, 0, since), "c d");
    assert_string_equal(
        reading_ids(reading.session, 0, since | WAL_ENTRY_CURSOR_REDACTED),
        "b c k d");
    assert_string_equal(
        reading_ids(reading.session, 0, since | WAL_ENTRY_CURSOR_DELTAS),
        "2 c d");
    reading_deinit(&reading);
}

/* ------------------------------------------------------------- memory --- */

/* Repeats the open while it fails with WAL_ENOMEM, allowing one more allocation
 * each time; then the cursor returns everything. */
static void check_open(struct faulty_heap *faulty, struct wal_session *session,
                       uint32_t mode, uint32_t flags, uint64_t count)
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
                                       .flags =
                                           WAL_OPEN_CREATE | WAL_OPEN_PREAD};
    struct faulty_heap faulty;
    struct reading reading;
    struct wal_session *fork;

    faulty_heap_init(&faulty, &wal__heap_libc);
    for (int round = 0; round < 5; round++) {
        assert_ok(wal__store_open("store", &options, &faulty.heap,
                                  &wal__io_posix, &reading.store, NULL));
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

/* ------------------------------------------------------------ deleted --- */

KIT_TEST(deleted__open_cursor_continues_and_new_one_fails)
{
    struct reading reading = reading_begin();
    struct wal_entry_cursor_options options = {.struct_size = sizeof(options)};
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_entry_cursor *cursor;
    struct wal_entry_cursor *none = NULL;

    kit_append_all(reading.session, "a b");
    cursor = reading_open(reading.session, 0, 0);
    assert_ok(wal_session_delete(reading.session, NULL));
    assert_int_equal(
        wal_entry_cursor_open(reading.session, &options, &none, NULL),
        WAL_ENOTFOUND);
    options.mode = WAL_ENTRY_CURSOR_ALL;
    assert_int_equal(
        wal_entry_cursor_open(reading.session, &options, &none, NULL),
        WAL_ENOTFOUND);
    assert_null(none);
    reading_assert_next(cursor, "a", "", 0);
    reading_assert_next(cursor, "b", "a", 1);
    assert_ok(wal_entry_cursor_get(cursor, kit_text("b"), &entry, NULL));
    reading_assert_end(cursor);
    reading_deinit(&reading);
}
