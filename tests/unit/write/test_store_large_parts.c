/*
 * test_store_large_parts.c - tests of payloads out of line that are damaged,
 * that the engine parses, and that are redacted (SPEC.md 5.16).
 */
#include <signal.h>
#include <sys/wait.h>

#include "tests/lib/kit/large_kit.h"
#include "tests/lib/kit/reading_kit.h"

/* --- damage ------------------------------------------------------------- */

static void check_refused(struct wal_entry_cursor *cursor)
{
    struct wal_entry entry = {.struct_size = sizeof(entry), .depth = 77};
    struct wal_error error = KIT_ERROR;

    assert_int_equal(wal_entry_cursor_next(cursor, &entry, &error),
                     WAL_ECORRUPT);
    assert_int_equal(error.status, WAL_ECORRUPT);
    assert_int_equal(entry.depth, 77);
    assert_int_equal(wal_entry_cursor_get(cursor, kit_text("b"), &entry, NULL),
                     WAL_ECORRUPT);
    assert_int_equal(entry.depth, 77);
}

/* Reads "a b c", the payload of b being lost. */
static void check_around(struct wal_session *session)
{
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_entry_cursor *cursor =
        reading_open(session, WAL_ENTRY_CURSOR_BRANCH, 0);

    reading_assert_next(cursor, "a", "", 0);
    check_refused(cursor);
    reading_assert_next(cursor, "c", "b", 2);
    reading_assert_end(cursor);
    cursor = reading_open(session, WAL_ENTRY_CURSOR_BRANCH,
                          WAL_ENTRY_CURSOR_OUT_OF_LINE);
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
    free(payload);
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
    reading_deinit(&reading);
}

KIT_TEST(large__missing_loses_only_its_entry)
{
    struct reading reading = begin_three();

    assert_int_equal(rename("store/pack", "pack"), 0);
    open_again(&reading, WAL_OPEN_READ_ONLY);
    check_around(reading.session);
    reading_deinit(&reading);
}

/* --- members that the engine reads -------------------------------------- */

/* An object whose members follow 400 KB of padding. */
static char *padded(const char *members)
{
    const size_t size = 400000;
    char *text = malloc(size + strlen(members) + 20);

    assert_non_null(text);
    memcpy(text, "{\"pad\":\"", 8);
    memset(text + 8, 'x', size);
    (void)sprintf(text + 8 + size, "\",%s}", members);
    return text;
}

static enum wal_status try_padded(struct wal_session *session, const char *id,
                                  const char *type, const char *members,
                                  struct wal_error *error)
{
    char *payload = padded(members);
    struct wal_entry entry = kit_entry(id, NULL, payload);
    enum wal_status status;

    entry.type = kit_text(type);
    status = kit_try_append(session, &entry, NULL, error);
    free(payload);
    return status;
}

static void append_padded(struct wal_session *session, const char *id,
                          const char *type, const char *members)
{
    struct wal_error error = KIT_ERROR;

    if (try_padded(session, id, type, members, &error) != WAL_OK) {
        fail_msg("appending %s: %s", id, error.text);
    }
}

KIT_TEST(large__compaction_keeps_its_reference)
{
    struct reading reading = reading_begin();
    struct wal_error error = KIT_ERROR;

    kit_append_all(reading.session, "a b c");
    assert_int_equal(try_padded(reading.session, "k", "compaction_summary",
                                "\"firstKeptEntryId\":\"x\"", &error),
                     WAL_ENOTFOUND);
    assert_int_equal(try_padded(reading.session, "k", "compaction_summary",
                                "\"none\":0", &error),
                     WAL_EINVAL);
    assert_error(&error, WAL_EINVAL, "firstKeptEntryId");
    append_padded(reading.session, "k", "compaction_summary",
                  "\"firstKeptEntryId\":\"\\u0062\"");
    kit_append(reading.session, "d", NULL);
    for (int i = 0; i < 2; i++) {
        assert_string_equal(reading_ids(reading.session,
                                        WAL_ENTRY_CURSOR_BRANCH,
                                        WAL_ENTRY_CURSOR_SINCE_COMPACTION),
                            "b c k d");
        reading_reopen(&reading, 0);
    }
    reading_deinit(&reading);
}

KIT_TEST(large__branch_summary_names_its_source)
{
    struct reading reading = reading_begin();
    struct wal_error error = KIT_ERROR;

    kit_append_all(reading.session, "a b");
    assert_int_equal(
        try_padded(reading.session, "k", "branch_summary",
                   "\"sourceSessionId\":\"s\",\"sourceEntryId\":\"x\"", &error),
        WAL_ENOTFOUND);
    append_padded(reading.session, "k", "branch_summary",
                  "\"sourceSessionId\":\"s\",\"sourceEntryId\":\"b\"");
    reading_deinit(&reading);
}

static void check_redacted(struct wal_session *session, const char *payload)
{
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_entry_cursor *cursor =
        reading_open(session, WAL_ENTRY_CURSOR_ALL,
                     WAL_ENTRY_CURSOR_REDACTED | WAL_ENTRY_CURSOR_OUT_OF_LINE);

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
        check_redacted(reading.session,
                       "{\"redactedBy\":\"r\",\"reason\":\"a \\\"key\\\"\"}");
        reading_reopen(&reading, 0);
    }
    reading_deinit(&reading);
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
    reading_deinit(&reading);
    free(payload);
}

KIT_TEST(large__message_is_the_first_text)
{
    struct reading reading = reading_begin();

    append_padded(reading.session, "a", "message",
                  "\"role\":\"user\",\"content\":\"  say \\\"hi\\\"\\n to  "
                  "\\u00e9 \"");
    for (int i = 0; i < 3; i++) {
        assert_slice(kit_info(reading.session).first_text,
                     "say \"hi\" to \xc3\xa9");
        wal_session_close(reading.session);
        kit_close(reading.store);
        if (i == 1) {
            assert_int_equal(system("rm -r store/index"), 0);
        }
        open_again(&reading, 0);
    }
    reading_deinit(&reading);
}

/* The library's own compaction with a summary of 2 MB, here and in a fork. */
KIT_TEST(large__summary_of_a_compaction)
{
    struct reading reading = reading_begin();
    char *summary = large_json(31, 2000000);
    struct wal_session_options into = {.struct_size = sizeof(into),
                                       .id = kit_text("f")};
    struct wal_compact_options options = {.struct_size = sizeof(options),
                                          .first_kept = kit_text("b"),
                                          .summary = kit_text(summary)};
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_session *fork = NULL;
    struct wal_entry_cursor *cursor;

    kit_append_all(reading.session, "a b c");
    options.into = &into;
    assert_ok(
        wal_session_compact(reading.session, &options, &fork, NULL, NULL));
    options.into = NULL;
    assert_ok(wal_session_compact(reading.session, &options, NULL, NULL, NULL));
    for (int i = 0; i < 2; i++) {
        cursor = reading_open(i == 0 ? fork : reading.session,
                              WAL_ENTRY_CURSOR_BRANCH,
                              WAL_ENTRY_CURSOR_SINCE_COMPACTION);
        assert_int_equal(wal_entry_cursor_remaining(cursor), 3);
        reading_assert_next(cursor, "b", "a", 1);
        reading_assert_next(cursor, "c", "b", 2);
        assert_ok(wal_entry_cursor_next(cursor, &entry, NULL));
        assert_true(entry.payload.size > 2000000);
        reading_assert_end(cursor);
    }
    wal_session_close(fork);
    reading_deinit(&reading);
    free(summary);
}

/* --- deaths ------------------------------------------------------------- */

/* Appends large entries until it is killed. */
static _Noreturn void append_for_ever(uint32_t seed)
{
    struct wal_store *store = kit_open("store", 0);
    struct wal_session *session = kit_session(store, "s");

    for (;;) {
        char *payload = large_json(seed++, 700000);
        struct wal_entry entry = kit_entry(NULL, NULL, payload);

        if (kit_try_append(session, &entry, NULL, NULL) != WAL_OK) {
            _exit(1); /* a sync was cut short before: the next one heals it */
        }
        free(payload);
    }
}

/* Every entry of the session can be read. */
static void check_whole(struct wal_session *session)
{
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_entry_cursor *cursor =
        reading_open(session, WAL_ENTRY_CURSOR_ALL, 0);
    struct wal_error error = KIT_ERROR;
    uint64_t count = 0;
    enum wal_status status;

    while ((status = wal_entry_cursor_next(cursor, &entry, &error)) == WAL_OK) {
        assert_int_equal(entry.payload_size, 700000);
        count++;
    }
    if (status != WAL_END) {
        fail_msg("after %llu entries: %s: %s", (unsigned long long)count,
                 error.file, error.text);
    }
    assert_int_equal(count, kit_info(session).entries);
    wal_entry_cursor_close(cursor);
}

KIT_TEST(large__killed_writer_leaves_whole_entries)
{
    struct reading reading = reading_begin();
    char *payload = large_json(99, 700000);
    struct wal_entry entry = kit_entry("last", NULL, payload);

    for (uint32_t round = 0; round < 12; round++) {
        pid_t child = fork();

        if (child == 0) {
            append_for_ever(1000 * round);
        }
        assert_true(child > 0);
        usleep(5000 + round * 7000);
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, NULL, 0), child);
        check_whole(reading.session);
    }
    for (int i = 0;
         i < 3 && kit_try_append(reading.session, &entry, NULL, NULL) != WAL_OK;
         i++) {
    }
    large_check(reading.session, "last", payload, 0);
    reading_reopen(&reading, 0);
    check_whole(reading.session);
    reading_deinit(&reading);
    free(payload);
}
