/*
 * test_store_restored.c - tests of redactions that were undone (SPEC.md 2.15, 5.7): what readers
 * see, in this process and in others, after a reopen, a compaction and an erasing one; and what
 * cannot be undone.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "agentwal/record.h"
#include "engine/session/session.h"
#include "format/segment/segment_fmt.h"
#include "tests/lib/kit/describe_kit.h"
#include "tests/lib/kit/reading_kit.h"

static void restore(struct wal_session *session, const char *id)
{
    assert_done(wal_session_unredact(session, kit_text(id), kit_error()));
}

static void refuse(struct wal_session *session, const char *id, enum wal_status status,
                   const char *text)
{
    assert_fails(wal_session_unredact(session, kit_text(id), kit_error()), status, text);
}

/* The reason of the redaction that hides an entry; "" when none does. */
static const char *reason_of(struct wal_session *session, const char *id, uint64_t last)
{
    static char reason[256];
    struct wal_entry_cursor_options options = {
        .struct_size = sizeof(options), .flags = WAL_ENTRY_CURSOR_REDACTED, .last = last};
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_entry_cursor *cursor = NULL;
    const char *at;

    assert_ok(wal_entry_cursor_open(session, &options, &cursor, NULL));
    do {
        assert_ok(wal_entry_cursor_next(cursor, &entry, NULL));
    } while (!kit_slice_is(entry.id, id));
    reason[0] = '\0';
    if ((entry.flags & WAL_ENTRY_REDACTED) != 0) {
        (void)snprintf(reason, sizeof(reason), "%.*s", (int)entry.payload.size,
                       (const char *)entry.payload.data);
        at = strstr(reason, "\"reason\":\"");
        assert_non_null(at);
        memmove(reason, at + 10, strlen(at + 10) + 1);
        reason[strcspn(reason, "\"")] = '\0';
    }
    wal_entry_cursor_close(cursor);
    return reason;
}

/* Redacts by an entry of another stream. */
static void hide(struct wal_session *session, const char *id, const char *reason)
{
    struct wal_entry entry;
    char payload[128];

    (void)snprintf(payload, sizeof(payload), "{\"targetEntryId\":\"%s\",\"reason\":\"%s\"}", id,
                   reason);
    entry = kit_entry(NULL, NULL, payload);
    entry.type = kit_text("redaction");
    entry.stream = 9;
    assert_done(kit_try_append(session, &entry, NULL, kit_error()));
}

static enum wal_status get(struct wal_session *session, const char *id)
{
    struct wal_entry entry = {.struct_size = sizeof(entry)};

    return wal_entry_get(session, kit_text(id), &entry, NULL);
}

/* The bits of ro_compat in MANIFEST. */
static uint32_t read_feature(void)
{
    struct wal__manifest manifest;
    size_t size = 0;
    char *bytes = test_file("store/MANIFEST", &size);
    enum wal__fmt fmt = wal__manifest_decode((const uint8_t *)bytes, &manifest);

    assert_int_equal(fmt, WAL__FMT_OK);
    return manifest.features.ro_compat;
}

/* --- what readers see ----------------------------------------------------- */

KIT_TEST(restore__entry_is_read_again)
{
    struct kit_bench bench = kit_bench("a b c");

    hide(bench.session, "b", "one");
    assert_branch(bench.session, "a c");
    assert_int_equal(get(bench.session, "b"), WAL_EREDACTED);
    assert_int_equal(read_feature(), 0);
    restore(bench.session, "b");
    assert_branch(bench.session, "a b c");
    assert_all_entries(bench.session, "a b c");
    assert_ok(get(bench.session, "b"));
    assert_parent(bench.session, "c", "b");
    assert_string_equal(reason_of(bench.session, "b", 0), "");
    assert_int_equal(read_feature(), WAL__RO_COMPAT_RESTORE);
    for (int i = 0; i < 2; i++) {
        kit_reopen(&bench, i == 0 ? 0 : WAL_OPEN_READ_ONLY);
        assert_branch(bench.session, "a b c");
    }
    kit_end(&bench);
    kit_check_sound("store");
}

/* Of those after the newest RESTORE the first one counts, whether the branch is loaded or the
 * records are passed backwards. */
KIT_TEST(restore__entry_can_be_redacted_again)
{
    struct kit_bench bench = kit_bench("a b c");

    hide(bench.session, "b", "one");
    hide(bench.session, "b", "two");
    restore(bench.session, "b");
    assert_string_equal(reason_of(bench.session, "b", 0), "");
    hide(bench.session, "b", "three");
    hide(bench.session, "b", "four");
    for (int i = 0; i < 3; i++) {
        kit_reopen(&bench, 0);
        assert_string_equal(reason_of(bench.session, "b", 3), "three");
        assert_string_equal(reason_of(bench.session, "b", 0), "three");
        if (i == 1) {
            kit_compact(bench.store, 0);
        }
    }
    restore(bench.session, "b");
    kit_reopen(&bench, 0);
    assert_string_equal(reason_of(bench.session, "b", 3), "");
    kit_end(&bench);
    kit_check_sound("store");
}

KIT_TEST(restore__indexes_that_are_made_anew)
{
    struct kit_bench bench = kit_bench("a b c");

    hide(bench.session, "a", "one");
    hide(bench.session, "b", "one");
    restore(bench.session, "a");
    kit_end(&bench);
    kit_remove_indexes();
    bench.store = kit_store();
    bench.session = kit_session(bench.store, "s");
    assert_branch(bench.session, "a c");
}

KIT_TEST(restore__fork_and_its_source)
{
    struct kit_bench bench = kit_bench("a b c");
    struct wal_session *fork = kit_fork(bench.session, "b", "f");

    kit_append(fork, "d", NULL);
    hide(bench.session, "a", "one");
    hide(fork, "b", "two");
    assert_branch(fork, "d");
    restore(fork, "a");
    assert_branch(fork, "a d");
    assert_branch(bench.session, "a c");
    assert_ok(wal_session_delete(bench.session, NULL));
    restore(fork, "b");
    assert_branch(fork, "a b d");
    kit_compact(bench.store, WAL_STORE_COMPACT_ERASE);
    assert_branch(fork, "a b d");
    wal_session_close(fork);
    kit_end(&bench);
    kit_check_sound("store");
}

KIT_TEST(restore__first_text_stays_away)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_entry entry = kit_entry("a", NULL, "{\"role\":\"user\",\"content\":\"hello\"}");

    assert_ok(kit_try_append(session, &entry, NULL, NULL));
    assert_slice(kit_info(session).first_text, "hello");
    hide(session, "a", "");
    restore(session, "a");
    assert_slice(kit_info(session).first_text, "");
    wal_session_close(session);
    kit_close(store);
    kit_check_sound("store");
}

/* --- open cursors --------------------------------------------------------- */

KIT_TEST(open_cursor__left_out_entry_stays_left_out)
{
    struct kit_bench bench = kit_bench("a b c d");

    for (uint64_t last = 0; last < 8; last += 4) {
        struct wal_entry_cursor_options options = {.struct_size = sizeof(options), .last = last};
        struct wal_entry entry = {.struct_size = sizeof(entry)};
        struct wal_entry_cursor *cursor = NULL;
        char ids[8] = "";

        hide(bench.session, "b", "");
        assert_ok(wal_entry_cursor_open(bench.session, &options, &cursor, NULL));
        hide(bench.session, "c", "");
        restore(bench.session, "b");
        restore(bench.session, "c");
        while (wal_entry_cursor_next(cursor, &entry, NULL) == WAL_OK) {
            (void)strncat(ids, entry.id.data, (size_t)entry.id.size);
            assert_int_equal(wal_entry_cursor_remaining(cursor), 3 - strlen(ids));
        }
        assert_string_equal(ids, "acd");
        wal_entry_cursor_close(cursor);
        assert_branch(bench.session, "a b c d");
    }
}

KIT_TEST(open_cursor__shows_what_it_had_not_returned)
{
    struct kit_bench bench = kit_bench("a b");
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_entry_cursor *cursor;

    hide(bench.session, "b", "");
    cursor = reading_open(bench.session, 0, WAL_ENTRY_CURSOR_REDACTED);
    assert_ok(wal_entry_cursor_next(cursor, &entry, NULL));
    restore(bench.session, "b");
    assert_ok(wal_entry_cursor_next(cursor, &entry, NULL));
    assert_slice(entry.payload, "{\"id\":\"b\"}");
    assert_int_equal(entry.flags & WAL_ENTRY_REDACTED, 0);
    reading_assert_end(cursor);
}

KIT_TEST(open_cursor__counts_what_was_undone)
{
    struct kit_bench bench = kit_bench("a b");
    struct wal_session *fork = kit_fork(bench.session, "b", "f");

    for (uint64_t i = 0; i < 3; i++) {
        struct wal_entry_cursor *cursor =
            reading_open(fork, WAL_ENTRY_CURSOR_ALL, WAL_ENTRY_CURSOR_REDACTED);

        assert_int_equal(wal_entry_cursor_restored(cursor), i);
        hide(bench.session, i == 0 ? "a" : "b", "");
        restore(bench.session, i == 0 ? "a" : "b");
        assert_int_equal(wal_entry_cursor_restored(cursor), i);
        wal_entry_cursor_close(cursor);
    }
    assert_int_equal(wal_entry_cursor_restored(NULL), 0);
}

/* Another handle of the store behaves like another process. */
KIT_TEST(restore__other_handles_see_it)
{
    struct kit_bench bench = kit_bench("a b c");
    struct wal_store *other = kit_open("store", 0);
    struct wal_session *session = kit_session(other, "s");

    hide(bench.session, "b", "");
    assert_branch(session, "a c");
    restore(session, "b");
    assert_branch(bench.session, "a b c");
    refuse(bench.session, "b", WAL_ENOTFOUND, "is not redacted");
    hide(session, "b", "");
    restore(bench.session, "b");
    assert_branch(session, "a b c");
}

/* --- compaction ----------------------------------------------------------- */

KIT_TEST(restore__compaction_keeps_both_records)
{
    struct kit_bench bench = kit_bench("a b c");

    hide(bench.session, "a", "");
    hide(bench.session, "b", "");
    restore(bench.session, "a");
    kit_compact(bench.store, 0);
    assert_branch(bench.session, "a c");
    restore(bench.session, "b");
    kit_compact(bench.store, WAL_STORE_COMPACT_ERASE);
    assert_branch(bench.session, "a b c");
    assert_ok(get(bench.session, "a"));
    kit_end(&bench);
    kit_check_sound("store");
}

KIT_TEST(restore__erased_content_is_gone)
{
    struct kit_bench bench = kit_bench("a b c");

    hide(bench.session, "a", "");
    hide(bench.session, "b", "");
    restore(bench.session, "b");
    kit_compact(bench.store, WAL_STORE_COMPACT_ERASE);
    refuse(bench.session, "a", WAL_EREDACTED, "the content of the entry \"a\" was erased");
    assert_branch(bench.session, "b c");
    hide(bench.session, "b", "");
    kit_compact(bench.store, WAL_STORE_COMPACT_ERASE);
    refuse(bench.session, "b", WAL_EREDACTED, "was erased");
    assert_branch(bench.session, "c");
    assert_int_equal(get(bench.session, "b"), WAL_EREDACTED);
    kit_end(&bench);
    kit_check_sound("store");
}

/* A title that a shown entry gives is no title of a redacted one. */
KIT_TEST(restore__title_that_was_given_again_survives_erasing)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create_titled(store, "s", "hello");
    struct wal_entry entry = kit_entry("a", NULL, "{\"role\":\"user\",\"content\":\"hello you\"}");
    struct wal_session_change change = WAL_INIT(wal_session_change);
    struct wal_batch batch = {.struct_size = sizeof(batch), .change = &change};

    assert_ok(kit_try_append(session, &entry, NULL, NULL));
    kit_redact(session, "a");
    assert_slice(kit_info(session).title, "");
    restore(session, "a");
    assert_slice(kit_info(session).title, "");
    change.fields = WAL_CHANGE_TITLE;
    change.title = kit_text("hello");
    assert_ok(wal_batch_commit(session, &batch, NULL, NULL, NULL));
    kit_compact(store, WAL_STORE_COMPACT_ERASE);
    assert_slice(kit_info(session).title, "hello");
}

/* A delta that is shown again may be gone at any time, as any other. */
KIT_TEST(restore__delta_is_dropped_when_it_is_complete)
{
    struct kit_bench bench = kit_bench("a");
    struct wal_entry delta = kit_entry("d", "a", "{}");
    struct wal_entry whole = kit_entry("b", "a", "{}");

    delta.type = kit_text(WAL_TYPE_MESSAGE_DELTA_BATCH);
    assert_ok(kit_try_append(bench.session, &delta, NULL, NULL));
    hide(bench.session, "d", "");
    restore(bench.session, "d");
    assert_ok(get(bench.session, "d"));
    assert_ok(kit_try_append(bench.session, &whole, NULL, NULL));
    kit_compact(bench.store, 0);
    assert_int_equal(get(bench.session, "d"), WAL_ENOTFOUND);
    refuse(bench.session, "d", WAL_ENOTFOUND, "no entry \"d\"");
    assert_branch(bench.session, "a b");
    kit_end(&bench);
    kit_check_sound("store");
}

static int32_t refuse_meanwhile(void *ctx, uint64_t done, uint64_t total)
{
    struct wal_session *session = ctx;

    (void)done;
    (void)total;
    refuse(session, "b", WAL_ELOCKED, "compacts the store");
    return 0;
}

/* By this process and by another handle, which is like another process. */
KIT_TEST(restore__refused_while_the_store_is_compacted)
{
    struct kit_bench bench = kit_bench("a b c");
    struct wal_store *other = kit_open("store", 0);
    struct wal_session *sessions[] = {bench.session, kit_session(other, "s")};
    struct wal_store_compact_options options = WAL_INIT(wal_store_compact_options);

    hide(bench.session, "b", "");
    for (size_t i = 0; i < 2; i++) {
        kit_append(bench.session, NULL, NULL);
        options.flags = 0;
        options.rate = UINT64_MAX;
        options.progress = refuse_meanwhile;
        options.ctx = sessions[i];
        assert_done(wal_store_compact(bench.store, &options, NULL, kit_error()));
    }
    restore(bench.session, "b");
}

enum {
    UNDONE = 60 /* entries that a process shows again while another one erases */
};

static void undo_all(void)
{
    struct wal_store *store = kit_open("store", 0);
    struct wal_session *session = kit_session(store, "s");
    char id[16];

    for (int i = 0; i < UNDONE; i++) {
        enum wal_status status;

        (void)snprintf(id, sizeof(id), "e%d", i);
        do {
            status = wal_session_unredact(session, kit_text(id), NULL);
        } while (status == WAL_ELOCKED);
        if (status != WAL_OK && status != WAL_EREDACTED) {
            _exit(1);
        }
        kit_pause_ms(1);
    }
    _exit(0);
}

/* What was erased is redacted, and what is shown has its content. */
KIT_TEST(restore__while_another_process_erases)
{
    struct kit_bench bench = kit_bench("");
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    pid_t child;
    int result = 1;
    char id[16];

    for (int i = 0; i < UNDONE; i++) {
        (void)snprintf(id, sizeof(id), "e%d", i);
        kit_append(bench.session, id, NULL);
        hide(bench.session, id, "");
    }
    child = kit_start_process();
    if (child == 0) {
        undo_all();
    }
    for (int i = 0; waitpid(child, &result, WNOHANG) == 0; i++) {
        struct wal_store_compact_options options = WAL_INIT(wal_store_compact_options);

        /* Erased are those that no process has undone before. */
        options.flags = i % 8 == 7 ? WAL_STORE_COMPACT_ERASE : 0;
        options.rate = UINT64_MAX;
        (void)!wal_store_compact(bench.store, &options, NULL, NULL);
        kit_pause_ms(1);
    }
    assert_int_equal(result, 0);
    for (int i = 0; i < UNDONE; i++) {
        (void)snprintf(id, sizeof(id), "e%d", i);
        if (wal_entry_get(bench.session, kit_text(id), &entry, NULL) == WAL_OK) {
            assert_int_equal(entry.payload.size, strlen(id) + strlen("{\"id\":\"\"}"));
        } else {
            refuse(bench.session, id, WAL_EREDACTED, "was erased");
        }
    }
    kit_end(&bench);
    kit_check_sound("store");
}

/* --- refusals ------------------------------------------------------------- */

KIT_TEST(restore__refusals)
{
    struct kit_bench bench = kit_bench("a b c");

    refuse(bench.session, "b", WAL_ENOTFOUND, "the entry \"b\" is not redacted");
    refuse(bench.session, "x", WAL_ENOTFOUND, "no entry \"x\"");
    refuse(bench.session, "", WAL_EINVAL, "is empty");
    assert_int_equal(wal_session_unredact(NULL, kit_text("b"), NULL), WAL_EINVAL);
    hide(bench.session, "b", "");
    assert_ok(wal_session_trash(bench.session, NULL));
    refuse(bench.session, "b", WAL_ETRASHED, "");
    assert_ok(wal_session_undelete(bench.store, kit_text("s"), NULL));
    kit_reopen(&bench, WAL_OPEN_READ_ONLY);
    refuse(bench.session, "b", WAL_EREADONLY, "");
    kit_reopen(&bench, 0);
    restore(bench.session, "b");
    hide(bench.session, "b", "");
    assert_ok(wal_session_delete(bench.session, NULL));
    refuse(bench.session, "b", WAL_ENOTFOUND, "");
}

KIT_TEST(restore__store_that_forgets)
{
    struct wal_store *store = kit_open(NULL, WAL_OPEN_NOOP);
    struct wal_session *session = kit_create(store, "s");

    assert_ok(wal_session_unredact(session, kit_text("a"), NULL));
}

/* --- records of a segment ------------------------------------------------- */

/* The records of the tail segment: the ids of entries, one that was restored in brackets. */
static const char *list_records(struct wal_store *store, uint32_t flags)
{
    static char listed[256];
    struct wal_segment_info segment = WAL_INIT(wal_segment_info);
    struct wal_segment_cursor *segments = NULL;
    struct wal_record_cursor_options options = WAL_INIT(wal_record_cursor_options);
    struct wal_record record = WAL_INIT(wal_record);
    struct wal_record read = WAL_INIT(wal_record);
    struct wal_record_cursor *cursor = NULL;
    size_t size = 0;

    assert_ok(wal_segment_cursor_open(store, &segments, NULL));
    while (wal_segment_cursor_next(segments, &segment, NULL) == WAL_OK) {
    }
    wal_segment_cursor_close(segments);
    options.segment = segment.id;
    options.identity = segment.identity;
    options.flags = flags;
    assert_ok(wal_record_cursor_open(store, &options, &cursor, NULL));
    listed[0] = '\0';
    while (wal_record_cursor_next(cursor, &record, NULL) == WAL_OK) {
        const char *form = record.kind == WAL_RECORD_RESTORED ? "[%.*s]" : "%.*s";

        if (record.entry == NULL || kit_slice_is(record.entry->type, "redaction")) {
            continue;
        }
        size += (size_t)snprintf(listed + size, sizeof(listed) - size, form,
                                 (int)record.entry->id.size, (const char *)record.entry->id.data);
        /* By its number it is the same. */
        assert_ok(
            wal_record_cursor_get(cursor, record.session_number, record.sequence, &read, NULL));
        assert_int_equal(read.kind, record.kind);
    }
    wal_record_cursor_close(cursor);
    return listed;
}

KIT_TEST(records__redacted_and_restored_ones)
{
    struct kit_bench bench = kit_bench("a b c d");

    hide(bench.session, "a", "");
    hide(bench.session, "b", "");
    hide(bench.session, "c", "");
    restore(bench.session, "b");
    restore(bench.session, "c");
    hide(bench.session, "c", "");
    assert_string_equal(list_records(bench.store, 0), "bd");
    assert_string_equal(list_records(bench.store, WAL_RECORD_CURSOR_REDACTED), "abcd");
    assert_string_equal(list_records(bench.store, WAL_RECORD_CURSOR_RESTORED), "bd[b]");
    restore(bench.session, "c");
    assert_string_equal(list_records(bench.store, WAL_RECORD_CURSOR_RESTORED), "bcd[b][c][c]");
}
