/*
 * test_store_large.c - tests of payloads that are too large for a record: they are written to the
 * blob stream, read back in line, damaged, parsed by the engine, and redacted (SPEC.md 2.6, 5.16).
 */
#include <sys/mman.h>

#include "tests/lib/kit/large_kit.h"
#include "tests/lib/kit/reading_kit.h"

/* --- where they are ----------------------------------------------------- */

static uint64_t pack_bytes(struct wal_store *store)
{
    return kit_store_info(store).pack_bytes;
}

static void check_threshold(uint32_t flags)
{
    struct reading reading = reading_begin();

    for (uint32_t over = 0; over < 3; over++) {
        char id[8];
        char *payload = large_json(over, LARGE_MIN - 2 + over);

        (void)snprintf(id, sizeof(id), "e%u", over);
        large_append(reading.session, id, payload, flags);
        assert_int_equal(pack_bytes(reading.store) > 0, over == 2);
        large_check(reading.session, id, payload, flags);
        large_check_location(reading.store, reading.session, id, payload, over == 2);
    }
    reading_deinit(&reading);
}

KIT_TEST(large__above_256_kib_is_out_of_line)
{
    check_threshold(0);
}

KIT_TEST(large__line_above_256_kib_is_out_of_line)
{
    check_threshold(WAL_ENTRY_LINE);
}

static void check_ten(struct wal_session *session, char *const payloads[2])
{
    large_check(session, "a", payloads[0], 0);
    large_check(session, "b", payloads[1], WAL_ENTRY_LINE);
    assert_branch(session, "a b");
    assert_parent(session, "b", "a");
}

KIT_TEST(large__of_10_mb_round_trip)
{
    static const uint32_t flags[] = {0, WAL_OPEN_PREAD, WAL_OPEN_READ_ONLY,
                                     WAL_OPEN_READ_ONLY | WAL_OPEN_PREAD};
    struct reading reading = reading_begin();
    char *payloads[2] = {large_json(1, 10000000), large_json(2, 10000001)};

    memcpy(payloads[1], "no JSON", 7);
    large_append(reading.session, "a", payloads[0], 0);
    large_append(reading.session, "b", payloads[1], WAL_ENTRY_LINE);
    check_ten(reading.session, payloads);
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        reading_reopen(&reading, flags[i]);
        check_ten(reading.session, payloads);
    }
}

KIT_TEST(large__in_a_store_in_memory)
{
    struct wal_store *store = kit_open(NULL, WAL_OPEN_MEMORY);
    struct wal_session *session = kit_create(store, "s");
    char *payload = large_json(3, 3000000);

    large_append(session, "a", payload, 0);
    large_check(session, "a", payload, 0);
}

KIT_TEST(large__with_persistence_off)
{
    struct wal_store *store = kit_open(NULL, WAL_OPEN_NOOP);
    struct wal_session *session = kit_create(store, "s");
    char *payload = large_json(3, 300000);
    struct wal_entry entry = kit_entry("a", NULL, payload);

    large_append(session, "a", payload, 0);
    payload[299999] = ' ';
    assert_int_equal(kit_try_append(session, &entry, NULL, NULL), WAL_EBADJSON);
}

/* --- appending ---------------------------------------------------------- */

KIT_TEST(large__sent_again_is_a_duplicate)
{
    struct reading reading = reading_begin();
    char *payload = large_json(5, 700000);
    struct wal_entry entry = kit_entry("a", NULL, payload);
    struct wal_append_result result = {.struct_size = sizeof(result)};
    uint64_t bytes;

    large_append(reading.session, "a", payload, 0);
    reading_reopen(&reading, 0);
    bytes = pack_bytes(reading.store);
    assert_ok(kit_try_append(reading.session, &entry, &result, NULL));
    assert_int_equal(result.duplicates, 1);
    large_append(reading.session, "b", payload, 0);
    assert_int_equal(pack_bytes(reading.store), bytes);
    payload[350000] ^= 1;
    assert_fails(kit_try_append(reading.session, &entry, NULL, kit_error()), WAL_EEXISTS,
                 "other content");
    payload[350000] ^= 1;
    entry.flags = WAL_ENTRY_LINE;
    assert_int_equal(kit_try_append(reading.session, &entry, NULL, NULL), WAL_EEXISTS);
    entry.flags = 0;
    entry.payload.size = 100000;
    payload[99998] = '"';
    payload[99999] = '}';
    assert_int_equal(kit_try_append(reading.session, &entry, NULL, NULL), WAL_EEXISTS);
}

KIT_TEST(large__several_in_a_batch)
{
    struct reading reading = reading_begin();
    char *payloads[3] = {large_json(6, 20000000), large_json(7, 19000000), large_json(8, 300000)};
    struct wal_entry entries[5] = {kit_entry("a", NULL, payloads[0]), kit_entry("b", "a", "{}"),
                                   kit_entry("c", "b", payloads[1]),
                                   kit_entry("d", "c", payloads[2]),
                                   kit_entry("c", "b", payloads[1])};
    struct wal_append_result result = {.struct_size = sizeof(result)};
    struct wal_store_info before;

    kit_append(reading.session, "z", NULL);
    before = kit_store_info(reading.store);
    assert_ok(wal_append(reading.session, entries, 5, NULL, &result, NULL));
    assert_int_equal(result.appended, 4);
    assert_int_equal(result.duplicates, 1);
    /* In the log they take only a few bytes. */
    assert_in_range(kit_store_info(reading.store).log_bytes - before.log_bytes, 400, 2000);
    large_check(reading.session, "a", payloads[0], 0);
    large_check(reading.session, "c", payloads[1], 0);
    large_check(reading.session, "d", payloads[2], 0);
    assert_all_entries(reading.session, "z a b c d");
    reading_deinit(&reading);
    for (int i = 0; i < 3; i++) {
    }
}

KIT_TEST(large__is_json_or_is_refused)
{
    struct reading reading = reading_begin();
    char *payload = large_json(10, 3000000);
    struct wal_entry entry = kit_entry("a", NULL, payload);

    payload[2000000] = '\x01';
    assert_fails(kit_try_append(reading.session, &entry, NULL, kit_error()), WAL_EBADJSON,
                 "at byte 2000000");
    assert_int_equal(pack_bytes(reading.store), 0);
    assert_all_entries(reading.session, "");
}

KIT_TEST(large__size_limits_are_1_and_32_gib)
{
    struct reading reading = reading_begin();
    struct wal_entry entry = kit_entry("a", NULL, "");
    size_t size = ((size_t)32 << 30) + 1;
    void *zeros = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    assert_ptr_not_equal(zeros, MAP_FAILED);
    entry.payload = (struct wal_slice){zeros, ((size_t)1 << 30) + 1};
    assert_fails(kit_try_append(reading.session, &entry, NULL, kit_error()), WAL_ETOOBIG,
                 "limit is 1073741824");
    entry.flags = WAL_ENTRY_LINE;
    entry.payload.size = size;
    assert_fails(kit_try_append(reading.session, &entry, NULL, kit_error()), WAL_ETOOBIG,
                 "limit is 34359738368");
    assert_int_equal(munmap(zeros, size), 0);
}

/* --- damage ------------------------------------------------------------- */

static void check_refused(struct wal_entry_cursor *cursor)
{
    struct wal_entry entry = {.struct_size = sizeof(entry), .depth = 77};
    struct wal_error error = KIT_ERROR;

    assert_int_equal(wal_entry_cursor_next(cursor, &entry, &error), WAL_ECORRUPT);
    assert_int_equal(error.status, WAL_ECORRUPT);
    assert_int_equal(entry.depth, 77);
    assert_int_equal(wal_entry_cursor_get(cursor, kit_text("b"), &entry, NULL), WAL_ECORRUPT);
    assert_int_equal(entry.depth, 77);
}

/* Reads "a b c", the payload of b being lost. */
static void check_around(struct wal_session *session)
{
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_entry_cursor *cursor = reading_open(session, WAL_ENTRY_CURSOR_BRANCH, 0);

    reading_assert_next(cursor, "a", "", 0);
    check_refused(cursor);
    reading_assert_next(cursor, "c", "b", 2);
    reading_assert_end(cursor);
    cursor = reading_open(session, WAL_ENTRY_CURSOR_BRANCH, WAL_ENTRY_CURSOR_OUT_OF_LINE);
    reading_assert_next(cursor, "a", "", 0);
    reading_assert_next(cursor, "b", "a", 1);
    assert_ok(wal_entry_cursor_get(cursor, kit_text("b"), &entry, NULL));
    assert_int_equal(entry.payload_size, 3000000);
    reading_assert_next(cursor, "c", "b", 2);
    reading_assert_end(cursor);
}

static struct reading begin_three(void)
{
    struct reading reading = reading_begin();
    char *payload = large_json(30, 3000000);

    kit_append(reading.session, "a", NULL);
    large_append(reading.session, "b", payload, 0);
    kit_append(reading.session, "c", NULL);
    wal_session_close(reading.session);
    kit_close(reading.store);
    return reading;
}

static void open_again(struct reading *reading, uint32_t flags)
{
    reading->store = kit_open("store", flags);
    reading->session = kit_session(reading->store, "s");
}

KIT_TEST(large__damaged_loses_only_its_entry)
{
    static const uint32_t flags[] = {0, WAL_OPEN_PREAD, WAL_OPEN_READ_ONLY};
    struct reading reading = begin_three();

    large_flip_chunk();
    open_again(&reading, 0);
    check_around(reading.session);
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        reading_reopen(&reading, flags[i]);
        check_around(reading.session);
    }
    reading_reopen(&reading, 0);
    kit_append(reading.session, "d", NULL);
    assert_parent(reading.session, "d", "c");
}

KIT_TEST(large__missing_loses_only_its_entry)
{
    struct reading reading = begin_three();

    assert_int_equal(rename("store/pack", "pack"), 0);
    open_again(&reading, WAL_OPEN_READ_ONLY);
    check_around(reading.session);
}

/* --- members that the engine reads -------------------------------------- */

/* An object whose members follow 400 KB of padding. */
static char *padded(const char *members)
{
    const size_t size = 400000;
    char *text = test_memory(size + strlen(members) + 20);

    memcpy(text, "{\"pad\":\"", 8);
    memset(text + 8, 'x', size);
    (void)sprintf(text + 8 + size, "\",%s}", members);
    return text;
}

static enum wal_status try_padded(struct wal_session *session, const char *id, const char *type,
                                  const char *members, struct wal_error *error)
{
    char *payload = padded(members);
    struct wal_entry entry = kit_entry(id, NULL, payload);
    enum wal_status status;

    entry.type = kit_text(type);
    status = kit_try_append(session, &entry, NULL, error);
    return status;
}

static void append_padded(struct wal_session *session, const char *id, const char *type,
                          const char *members)
{
    assert_done(try_padded(session, id, type, members, kit_error()));
}

KIT_TEST(large__branch_summary_names_its_source)
{
    struct reading reading = reading_begin();

    kit_append_all(reading.session, "a b");
    assert_int_equal(try_padded(reading.session, "k", "branch_summary",
                                "\"sourceSessionId\":\"s\",\"sourceEntryId\":\"x\"", kit_error()),
                     WAL_ENOTFOUND);
    append_padded(reading.session, "k", "branch_summary",
                  "\"sourceSessionId\":\"s\",\"sourceEntryId\":\"b\"");
}

static void check_redacted(struct wal_session *session, const char *payload)
{
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_entry_cursor *cursor = reading_open(
        session, WAL_ENTRY_CURSOR_ALL, WAL_ENTRY_CURSOR_REDACTED | WAL_ENTRY_CURSOR_OUT_OF_LINE);

    assert_ok(wal_entry_cursor_get(cursor, kit_text("a"), &entry, NULL));
    assert_slice(entry.payload, payload);
    assert_int_equal(entry.payload_size, strlen(payload));
    assert_int_equal(entry.flags & (WAL_ENTRY_REDACTED | WAL_ENTRY_OUT_OF_LINE),
                     WAL_ENTRY_REDACTED);
    wal_entry_cursor_close(cursor);
}

/* Both the hidden entry and the one that hides it. */
KIT_TEST(large__redacts_and_is_redacted)
{
    struct reading reading = reading_begin();

    append_padded(reading.session, "a", "message", "\"role\":\"user\"");
    kit_append(reading.session, "b", NULL);
    append_padded(reading.session, "r", "redaction",
                  "\"targetEntryId\":\"a\",\"reason\":\"a \\\"key\\\"\"");
    for (int i = 0; i < 2; i++) {
        assert_branch(reading.session, "b r");
        check_redacted(reading.session, "{\"redactedBy\":\"r\",\"reason\":\"a \\\"key\\\"\"}");
        reading_reopen(&reading, 0);
    }
}

/* An imported redaction has its members one object further in. */
KIT_TEST(large__line_redacts)
{
    struct reading reading = reading_begin();
    char *payload = padded("\"payload\":{\"targetEntryId\":\"a\"}");
    struct wal_entry entry = kit_entry("r", NULL, payload);

    kit_append_all(reading.session, "a b");
    entry.type = kit_text("redaction");
    entry.flags = WAL_ENTRY_LINE;
    assert_ok(kit_try_append(reading.session, &entry, NULL, NULL));
    assert_branch(reading.session, "b r");
    check_redacted(reading.session, "{\"redactedBy\":\"r\",\"reason\":\"\"}");
}

/* The library's own compaction with a summary of 2 MB, here and in a fork. */
KIT_TEST(large__summary_of_a_compaction)
{
    struct reading reading = reading_begin();
    char *summary = large_json(31, 2000000);
    struct wal_session_options into = {.struct_size = sizeof(into), .id = kit_text("f")};
    struct wal_compact_options options = {
        .struct_size = sizeof(options), .first_kept = kit_text("b"), .summary = kit_text(summary)};
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_session *fork = NULL;
    struct wal_entry_cursor *cursor;

    kit_append_all(reading.session, "a b c");
    options.into = &into;
    assert_ok(wal_session_compact(reading.session, &options, &fork, NULL, NULL));
    options.into = NULL;
    assert_ok(wal_session_compact(reading.session, &options, NULL, NULL, NULL));
    for (int i = 0; i < 2; i++) {
        cursor = reading_open(i == 0 ? fork : reading.session, WAL_ENTRY_CURSOR_BRANCH,
                              WAL_ENTRY_CURSOR_SINCE_COMPACTION);
        assert_int_equal(wal_entry_cursor_remaining(cursor), 3);
        reading_assert_next(cursor, "b", "a", 1);
        reading_assert_next(cursor, "c", "b", 2);
        assert_ok(wal_entry_cursor_next(cursor, &entry, NULL));
        assert_true(entry.payload.size > 2000000);
        reading_assert_end(cursor);
    }
    wal_session_close(fork);
}
