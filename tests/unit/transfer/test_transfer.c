/*
 * test_transfer.c - tests of wal_store_merge on the real system: what is in the other store, what a
 * repeated call adds, and what is refused.
 */
#include "agentwal/admin.h"
#include "agentwal/checkpoint.h"
#include "agentwal/transfer.h"
#include "engine/care/transfer.h"
#include "engine/session/store.h"
#include "tests/lib/kit/blob_kit.h"
#include "tests/lib/kit/checkpoint_kit.h"
#include "tests/lib/kit/describe_kit.h"
#include "tests/lib/kit/parts_kit.h"
#include "tests/lib/store_bytes.h"

enum {
    LARGE = 300 * 1024, /* a payload that is stored as a blob */
    TEXT_SIZE = 4096,
    LOCK_MS = 200
};

static struct {
    struct wal_store *from;
    struct wal_store *to;
} stores;

/* Each test begins with two empty stores. */
static int set_up(void **state)
{
    int result = kit_set_up(state);

    stores.from = kit_open("from", WAL_OPEN_CREATE);
    stores.to = kit_open("to", WAL_OPEN_CREATE);
    return result;
}

#define MERGE_TEST(name) TEST_WITH(name, set_up, kit_tear_down)

/* The stores are empty again. */
static void begin_again(void)
{
    kit_close(stores.from);
    kit_close(stores.to);
    assert_int_equal(system("rm -rf from to"), 0);
    stores.from = kit_open("from", WAL_OPEN_CREATE);
    stores.to = kit_open("to", WAL_OPEN_CREATE);
}

/* --- the call ------------------------------------------------------------- */

/* What a merge reported: "KIND SESSION;" of each session in the order of their reports, "document
 * KEY;" of a document. */
static struct {
    char text[TEXT_SIZE];
    struct wal_error error; /* of the last refusal */
    struct wal_transfer_result result;
    uint64_t calls;
    uint64_t stop_at; /* this call of progress returns 7; 0: none */
} seen;

static int32_t add_report(void *ctx, const struct wal_transfer_report *report)
{
    static const char *const kinds[] = {"created", "continued", "unchanged", "refused", "document"};
    size_t used = strlen(seen.text);

    (void)ctx;
    assert_int_equal(report->struct_size, sizeof(*report));
    assert_true((report->status == WAL_OK) == (report->error == NULL));
    if (report->error != NULL) {
        seen.error = *report->error;
    }
    snprintf(seen.text + used, TEXT_SIZE - used, "%s %.*s%.*s;", kinds[report->kind],
             WAL_ARG(report->session_id), WAL_ARG(report->key));
    return 0;
}

static int32_t count_calls(void *ctx, uint64_t done, uint64_t total)
{
    (void)ctx;
    assert_true(done <= total);
    seen.calls++;
    return seen.calls == seen.stop_at ? 7 : 0;
}

/* Merges these sessions, separated by a blank, or all, and stops at this call of progress. The
 * error is that of the kit. */
static enum wal_status try_merge(const char *ids, uint64_t stop_at)
{
    struct wal_slice sessions[8];
    struct wal_transfer_options options = {
        .struct_size = sizeof(options),
        .progress = count_calls,
        .report = add_report,
    };

    while (ids != NULL && *ids != '\0') {
        size_t size = strcspn(ids, " ");

        sessions[options.session_count++] = (struct wal_slice){ids, size};
        options.sessions = sessions;
        ids += size + (ids[size] == ' ');
    }
    memset(&seen, 0, sizeof(seen));
    seen.stop_at = stop_at;
    seen.result.struct_size = sizeof(seen.result);
    return wal_store_merge(stores.from, stores.to, &options, &seen.result, kit_error());
}

/* The merge succeeds with these reports. */
static void merge(const char *ids, const char *expected)
{
    assert_done(try_merge(ids, 0));
    if (strcmp(seen.text, expected) != 0) {
        fail_msg("%s: %s", seen.text, seen.error.text);
    }
}

/* All of "to", into "from". */
static void merge_back(const char *expected)
{
    struct wal_store *from = stores.from;

    stores.from = stores.to;
    stores.to = from;
    merge(NULL, expected);
    stores.to = stores.from;
    stores.from = from;
}

/* Merging again adds nothing, byte for byte of the log's end. */
static void assert_idempotent(const char *ids, const char *expected)
{
    uint64_t before = kit_store_info(stores.to).last_sequence;

    merge(ids, expected);
    assert_int_equal(seen.result.entries, 0);
    assert_int_equal(seen.result.documents, 0);
    assert_int_equal(kit_store_info(stores.to).last_sequence, before);
}

/* --- content -------------------------------------------------------------- */

static void put(struct wal_store *store, struct wal_session *session, const char *key,
                const char *value)
{
    const struct wal_doc doc = {
        .struct_size = sizeof(doc), .key = kit_text(key), .value = kit_text(value)};

    assert_ok(wal_doc_put(store, session, &doc, NULL, NULL));
}

static void move_head(struct wal_session *session, const char *name, const char *entry,
                      const char *note)
{
    const struct wal_head head = {.struct_size = sizeof(head),
                                  .name = kit_text(name),
                                  .entry_id = kit_text(entry),
                                  .note = kit_text(note)};

    assert_ok(wal_head_move(session, &head, NULL, NULL));
}

static void append_to(struct wal_session *session, uint32_t stream, const char *id,
                      const char *payload)
{
    struct wal_entry entry = kit_entry(id, NULL, payload);

    entry.stream = stream;
    entry.run_id = WAL_STR("run");
    entry.meta = WAL_STR("{\"m\":1}");
    entry.timestamp = WAL_STR("2026-01-31T23:59:59.123Z");
    assert_ok(wal_append(session, &entry, 1, NULL, NULL, NULL));
}

static void rename_session(struct wal_session *session, const char *title)
{
    const struct wal_session_change change = {
        .struct_size = sizeof(change),
        .fields = WAL_CHANGE_TITLE | WAL_CHANGE_METADATA,
        .title = kit_text(title),
        .metadata = WAL_STR("{\"a\":[1,2]}"),
    };
    const struct wal_batch batch = {.struct_size = sizeof(batch), .change = &change};

    assert_ok(wal_batch_commit(session, &batch, NULL, NULL, NULL));
}

static void delete_session(struct wal_session *session)
{
    assert_ok(wal_session_delete(session, NULL));
}

static void redact(struct wal_session *session, const char *id)
{
    assert_ok(wal_session_redact(session, kit_text(id), WAL_STR("a secret"), NULL, NULL));
}

/* The session s with branches, streams, heads, documents and texts. */
static struct wal_session *make_session(struct wal_store *store, const char *id)
{
    struct wal_session *session = kit_create(store, id);

    kit_append_all(session, "a b c d");
    put(NULL, session, "notes", "{\"v\":1}");
    kit_append(session, "e", "b");
    append_to(session, 1, "t1", "{\"line\":1}");
    append_to(session, 1, "t2", "{\"line\":2}");
    append_to(session, 3, "u1", "[]");
    put(NULL, session, "notes", "{\"v\":2}");
    put(NULL, session, "gone", "1");
    assert_ok(wal_doc_delete(
        NULL, session,
        &(struct wal_doc){.struct_size = sizeof(struct wal_doc), .key = WAL_STR("gone")}, NULL,
        NULL));
    move_head(session, "try", "e", "another way");
    move_head(session, "main", "c", "");
    rename_session(session, "A title");
    return session;
}

/* --- whole stores --------------------------------------------------------- */

MERGE_TEST(merge__empty_store_gets_everything)
{
    make_session(stores.from, "s");
    put(stores.from, NULL, "config", "{\"x\":1}");
    put(stores.from, NULL, "config", "{\"x\":2}");
    merge(NULL, "created s;");
    assert_int_equal(seen.result.created, 1);
    assert_int_equal(seen.result.entries, 8);
    assert_int_equal(seen.result.documents, 6);
    assert_same_stores(stores.from, stores.to);
    assert_idempotent(NULL, "unchanged s;");
}

MERGE_TEST(merge__result_is_whole_after_a_reopen)
{
    make_session(stores.from, "s");
    merge(NULL, "created s;");
    kit_close(stores.to);
    stores.to = kit_open("to", 0);
    assert_same_stores(stores.from, stores.to);
    assert_idempotent(NULL, "unchanged s;");
}

MERGE_TEST(merge__grown_session_is_continued)
{
    struct wal_session *s = make_session(stores.from, "s");

    merge(NULL, "created s;");
    kit_append_all(s, "f g");
    put(NULL, s, "notes", "{\"v\":3}");
    move_head(s, "try", "f", "");
    merge(NULL, "continued s;");
    assert_int_equal(seen.result.continued, 1);
    assert_int_equal(seen.result.entries, 2);
    assert_int_equal(seen.result.documents, 1);
    assert_same_stores(stores.from, stores.to);
    assert_idempotent(NULL, "unchanged s;");
}

/* The last entries move the head, which was then put before the first. */
MERGE_TEST(merge__removed_head_is_removed)
{
    struct wal_session *s = kit_create_filled(stores.from, "s", "a b");
    const struct wal_head head = {.struct_size = sizeof(head)};

    merge(NULL, "created s;");
    kit_append_all(s, "c d");
    assert_ok(wal_head_move(s, &head, NULL, NULL));
    merge(NULL, "continued s;");
    assert_same_stores(stores.from, stores.to);
    wal_session_close(s);
    s = kit_create(stores.from, "t");
    kit_append_all(s, "a b");
    assert_ok(wal_head_move(s, &head, NULL, NULL));
    merge(NULL, "unchanged s;created t;");
    assert_same_stores(stores.from, stores.to);
}

MERGE_TEST(merge__removed_note_is_removed)
{
    struct wal_session *s = kit_create_filled(stores.from, "s", "a b");

    move_head(s, "try", "a", "a note");
    merge(NULL, "created s;");
    move_head(s, "try", "b", "");
    move_head(s, "try", "a", "");
    kit_append_all(s, "c");
    merge(NULL, "continued s;");
    assert_same_stores(stores.from, stores.to);
    assert_idempotent(NULL, "unchanged s;");
}

MERGE_TEST(merge__session_that_is_ahead_is_left)
{
    struct wal_session *copy;

    make_session(stores.from, "s");
    merge(NULL, "created s;");
    copy = kit_session(stores.to, "s");
    kit_append_all(copy, "x y");
    move_head(copy, "try", "x", "");
    assert_idempotent(NULL, "unchanged s;");
    assert_branch(copy, "a b c x y");
}

MERGE_TEST(merge__other_content_is_refused_by_name)
{
    char *before;
    char *after;

    make_session(stores.from, "s");
    make_session(stores.from, "t");
    kit_append_all(kit_create(stores.to, "s"), "a z");
    before = kit_describe_session(stores.to, "s");
    merge(NULL, "refused s;created t;");
    assert_error(&seen.error, WAL_EEXISTS, "other entries");
    assert_int_equal(seen.result.refused, 1);
    after = kit_describe_session(stores.to, "s");
    assert_string_equal(before, after);
    assert_same_session(stores.from, stores.to, "t");
    free(before);
    free(after);
}

MERGE_TEST(merge__other_payload_is_refused)
{
    struct wal_session *s = kit_create(stores.from, "s");
    struct wal_session *other = kit_create(stores.to, "s");

    append_to(s, 0, "a", "{\"v\":1}");
    append_to(other, 0, "a", "{\"v\":2}");
    merge(NULL, "refused s;");
}

MERGE_TEST(merge__other_parent_is_refused)
{
    struct wal_session *s = kit_create(stores.from, "s");
    struct wal_session *other = kit_create(stores.to, "s");
    struct wal_entry entry = kit_entry("c", "a", "{}");

    entry.timestamp = WAL_STR("2026-01-31T23:59:59.123Z");
    append_to(s, 0, "a", "{}");
    append_to(s, 0, "b", "{}");
    append_to(other, 0, "a", "{}");
    append_to(other, 0, "b", "{}");
    assert_ok(wal_append(s, &entry, 1, NULL, NULL, NULL));
    entry.parent_id = WAL_STR("b");
    assert_ok(wal_append(other, &entry, 1, NULL, NULL, NULL));
    merge(NULL, "refused s;");
}

MERGE_TEST(merge__document_changed_on_both_sides_is_refused)
{
    struct wal_session *s = make_session(stores.from, "s");
    struct wal_session *copy;

    merge(NULL, "created s;");
    copy = kit_session(stores.to, "s");
    put(NULL, s, "notes", "\"here\"");
    put(NULL, copy, "notes", "\"there\"");
    kit_append_all(s, "f");
    merge(NULL, "refused s;");
    assert_error(&seen.error, WAL_EEXISTS, "changed on both sides");
    assert_branch(copy, "a b c");
}

MERGE_TEST(merge__documents_of_the_store_are_added_not_changed)
{
    struct wal_doc doc = WAL_INIT(wal_doc);

    put(stores.from, NULL, "same", "1");
    put(stores.from, NULL, "missing", "1");
    put(stores.from, NULL, "missing", "2");
    put(stores.from, NULL, "differs", "1");
    put(stores.to, NULL, "same", "1");
    put(stores.to, NULL, "differs", "5");
    put(stores.to, NULL, "own", "6");
    merge(NULL, "document differs;");
    assert_int_equal(seen.result.differing_documents, 1);
    assert_int_equal(seen.result.documents, 2);
    assert_ok(wal_doc_get(stores.to, NULL, WAL_STR("differs"), 0, &doc, NULL));
    assert_slice(doc.value, "5");
    assert_ok(wal_doc_get(stores.to, NULL, WAL_STR("missing"), 0, &doc, NULL));
    assert_slice(doc.value, "2");
    assert_idempotent(NULL, "document differs;");
}

MERGE_TEST(merge__missing_session_is_reported_by_id)
{
    make_session(stores.from, "s");
    assert_fails(try_merge("s none", 0), WAL_ENOTFOUND, "none");
    assert_int_equal(kit_store_info(stores.to).sessions, 0);
}

MERGE_TEST(merge__one_store_twice_is_refused)
{
    struct wal_store *again = kit_open("from", 0);

    assert_int_equal(wal_store_merge(stores.from, stores.from, NULL, NULL, kit_error()),
                     WAL_EINVAL);
    assert_fails(wal_store_merge(stores.from, again, NULL, NULL, kit_error()), WAL_EINVAL,
                 "with itself");
}

static enum wal_status late_lock(void *ctx, struct wal__file *file, uint64_t offset,
                                 enum wal__io_lock mode, int *sys_errno)
{
    if (offset == WAL__LOCK_APPEND && mode == WAL__IO_LOCK_EXCLUSIVE) {
        kit_pause_ms(LOCK_MS);
    }
    return wal__io_posix.lock(ctx, file, offset, mode, sys_errno);
}

/* What the handle of `from` has queued, and waits for the append lock with, is written first. */
MERGE_TEST(merge__of_queued_entries_has_them)
{
    const struct wal_append_options queued = {.struct_size = sizeof(queued),
                                              .durability = WAL_QUEUED};
    const struct wal_open_options options = {.struct_size = sizeof(options)};
    const struct wal_entry entry = kit_entry("a", NULL, "{}");
    static struct wal__io io;
    struct wal_session *s = kit_create(stores.from, "s");

    wal_session_close(s);
    kit_close(stores.from);
    io = wal__io_posix;
    io.lock = late_lock;
    assert_ok(wal__store_open("from", &options, &wal__heap_libc, &io, &stores.from, NULL));
    s = kit_session(stores.from, "s");
    assert_ok(wal_append(s, &entry, 1, &queued, NULL, NULL));
    merge("s", "created s;");
    assert_int_equal(seen.result.entries, 1);
    wal_session_close(s);
    kit_close(stores.from);
    stores.from = kit_open("from", 0);
}

/* --- forks ---------------------------------------------------------------- */

/* s with a to f; f1 forks s at c; f2 forks f1 at its x; documents change before and after each
 * fork. */
static void make_forks(struct wal_store *store)
{
    struct wal_session *s = kit_create_filled(store, "s", "a b c d");
    struct wal_session *f1;
    struct wal_session *f2;

    put(NULL, s, "notes", "1");
    f1 = kit_fork(s, "c", "f1");
    put(NULL, s, "notes", "2");
    put(NULL, s, "late", "true");
    kit_append_all(s, "e f");
    kit_append_all(f1, "x y z");
    put(NULL, f1, "notes", "\"f1\"");
    f2 = kit_fork(f1, "x", "f2");
    put(NULL, f1, "notes", "\"f1 later\"");
    kit_append_all(f2, "p q");
    rename_session(f2, "The fork of a fork");
    wal_session_close(f2);
    wal_session_close(f1);
    wal_session_close(s);
}

MERGE_TEST(merge__forks_of_forks_are_forks)
{
    make_forks(stores.from);
    merge(NULL, "created s;created f1;created f2;");
    assert_same_stores(stores.from, stores.to);
    assert_idempotent(NULL, "unchanged s;unchanged f1;unchanged f2;");
}

/* f forks s at c, and g forks f at a, which s has. */
static void make_fork_before_a_fork_point(struct wal_store *store)
{
    struct wal_session *s = kit_create_filled(store, "s", "a b c");
    struct wal_session *f;
    struct wal_session *g;

    (void)usleep(2000); /* lists are in the order of milliseconds */
    f = kit_fork(s, "c", "f");
    kit_append_all(f, "x");
    (void)usleep(2000);
    g = kit_fork(f, "a", "g");
    kit_append_all(g, "p");
    wal_session_close(g);
    wal_session_close(f);
    wal_session_close(s);
}

static void delete_and_erase(struct wal_store *store, const char *ids)
{
    const struct wal_store_compact_options options = {
        .struct_size = sizeof(options), .flags = WAL_STORE_COMPACT_ERASE, .rate = UINT64_MAX};

    for (; *ids != '\0'; ids++) {
        const char id[2] = {*ids, '\0'};
        struct wal_session *session = kit_session(store, id);

        delete_session(session);
        wal_session_close(session);
    }
    assert_ok(wal_store_compact(store, &options, NULL, NULL));
}

/* A compaction drops of a deleted source what the fork does not see. A redaction of what it sees,
 * which followed that, stays in a segment that has too little to drop and is too large to be
 * rewritten as a neighbour. */
MERGE_TEST(merge__redaction_in_a_deleted_source_follows_a_dropped_entry)
{
    enum { PART = 100 * 1000 }; /* more than the least segment */
    static char payload[PART];
    const struct wal_store_compact_options options = {.struct_size = sizeof(options),
                                                      .rate = UINT64_MAX};
    char id[] = "x ";
    struct wal_entry entry = kit_entry(id, NULL, payload);
    struct wal_session *s = kit_create(stores.from, "s");
    struct wal_session *fork;

    memset(payload, 'x', sizeof(payload) - 1);
    payload[0] = '"';
    payload[sizeof(payload) - 2] = '"';
    entry.payload.size = sizeof(payload) - 1;
    kit_append_all(s, "a b");
    for (int i = 0; i < 20; i++) {
        id[1] = (char)('a' + i);
        assert_ok(wal_append(s, &entry, 1, NULL, NULL, NULL));
    }
    fork = kit_fork(s, "b", "f");
    assert_ok(wal_store_compact(stores.from, &options, NULL, NULL));
    redact(s, "a");
    for (int i = 0; i < 6; i++) {
        id[1] = (char)('A' + i);
        assert_ok(wal_append(fork, &entry, 1, NULL, NULL, NULL));
    }
    assert_ok(wal_store_compact(stores.from, &options, NULL, NULL));
    wal_session_close(fork);
    delete_session(s);
    wal_session_close(s);
    assert_ok(wal_store_compact(stores.from, &options, NULL, NULL));
    merge("f", "created f;");
    assert_same_session(stores.from, stores.to, "f");
    assert_idempotent("f", "unchanged f;");
}

/* The source is there, as a fork at its own fork point. */
MERGE_TEST(merge__fork_before_the_fork_point_joins_its_source)
{
    struct wal_session *f;

    make_fork_before_a_fork_point(stores.from);
    merge("f", "created f;");
    merge("g", "created g;");
    assert_same_session(stores.from, stores.to, "f");
    assert_same_session(stores.from, stores.to, "g");
    delete_and_erase(stores.from, "sf");
    assert_idempotent("g", "unchanged g;");
    f = kit_session(stores.to, "f");
    assert_branch(f, "a b c x");
}

/* The other store has the source, which does not see what the fork needs. */
MERGE_TEST(merge__fork_of_a_source_with_another_point_refused)
{
    struct wal_session *o = kit_create_filled(stores.to, "o", "n");

    (void)kit_fork(o, "n", "f");
    make_fork_before_a_fork_point(stores.from);
    merge("g", "refused g;refused f;");
}

/* f forks s while the head of s is before its first entry, and sees none. */
static void make_fork_before_all_entries(struct wal_store *store)
{
    struct wal_session *s = kit_create_filled(store, "s", "a b");
    struct wal_session *f;

    put(NULL, s, "notes", "1");
    move_head(s, "main", "", "");
    (void)usleep(2000); /* lists are in the order of milliseconds */
    f = kit_fork(s, "", "f");
    move_head(s, "main", "b", "");
    put(NULL, s, "notes", "2");
    assert_branch(f, "");
    kit_append_all(f, "x");
    wal_session_close(f);
    wal_session_close(s);
}

MERGE_TEST(merge__fork_before_all_entries_of_its_source)
{
    make_fork_before_all_entries(stores.from);
    merge(NULL, "created s;created f;");
    assert_same_stores(stores.from, stores.to);
    assert_idempotent(NULL, "unchanged s;unchanged f;");
}

MERGE_TEST(merge__fork_before_all_entries_joins_its_source)
{
    struct wal_doc doc = WAL_INIT(wal_doc);
    struct wal_session *f;

    make_fork_before_all_entries(stores.from);
    merge("s", "created s;");
    merge("f", "created f;");
    assert_same_session(stores.from, stores.to, "s");
    f = kit_session(stores.to, "f");
    assert_branch(f, "x");
    assert_all_entries(f, "x");
    assert_ok(wal_doc_get(NULL, f, WAL_STR("notes"), 0, &doc, NULL));
    assert_slice(doc.value, "1");
    wal_session_close(f);
    assert_idempotent(NULL, "unchanged s;unchanged f;");
}

MERGE_TEST(merge__fork_before_all_entries_alone)
{
    make_fork_before_all_entries(stores.from);
    delete_and_erase(stores.from, "s");
    merge("f", "created f;");
    assert_same_session(stores.from, stores.to, "f");
    assert_idempotent("f", "unchanged f;");
}

/* f forks s at b, and g forks f while its head is before all entries: it sees none, of f or of s,
 * but a document of s. */
static void make_fork_of_nothing_of_a_fork(struct wal_store *store)
{
    struct wal_session *s = kit_create_filled(store, "s", "a b");
    struct wal_session *f;
    struct wal_session *g;

    put(NULL, s, "notes", "1");
    (void)usleep(2000); /* lists are in the order of milliseconds */
    f = kit_fork(s, "b", "f");
    kit_append_all(f, "x");
    move_head(f, "main", "", "");
    (void)usleep(2000);
    g = kit_fork(f, "", "g");
    kit_append_all(g, "p");
    wal_session_close(g);
    wal_session_close(f);
    wal_session_close(s);
}

/* The source of the fork, and the source of that, are there, deleted or erased. */
MERGE_TEST(merge__fork_before_the_fork_point_of_its_source)
{
    static void (*const makes[])(struct wal_store *) = {make_fork_before_a_fork_point,
                                                        make_fork_of_nothing_of_a_fork};
    static const char *const rows[][2] = {
        {"", "created s;created f;unchanged g;"},
        {"f", "created s;unchanged g;"},
        {"s", "created f;unchanged g;"},
        {"sf", "unchanged g;"},
    };

    for (size_t i = 0; i < 8; i++) {
        begin_again();
        makes[i / 4](stores.from);
        delete_and_erase(stores.from, rows[i % 4][0]);
        merge("g", "created g;");
        assert_same_session(stores.from, stores.to, "g");
        assert_idempotent("g", "unchanged g;");
        merge(NULL, rows[i % 4][1]);
        assert_same_stores(stores.from, stores.to);
    }
}

/* The source is there, as a fork at its own fork point. */
MERGE_TEST(merge__fork_of_nothing_joins_its_source)
{
    make_fork_of_nothing_of_a_fork(stores.from);
    merge("f", "created f;");
    delete_and_erase(stores.from, "sf");
    merge("g", "created g;");
    assert_same_session(stores.from, stores.to, "g");
    assert_idempotent("g", "unchanged g;");
}

MERGE_TEST(merge__deleted_source_stays_deleted)
{
    make_forks(stores.from);
    delete_session(kit_session(stores.from, "s"));
    merge(NULL, "created f1;created f2;");
    assert_same_stores(stores.from, stores.to);
    assert_idempotent(NULL, "unchanged f1;unchanged f2;");
}

MERGE_TEST(merge__fork_joins_a_source_that_is_there)
{
    struct wal_session *f1;

    make_forks(stores.from);
    merge("s", "created s;");
    merge("f1", "created f1;");
    assert_int_equal(seen.result.entries, 3);
    assert_int_equal(kit_store_info(stores.to).sessions, 2);
    f1 = kit_session(stores.to, "f1");
    assert_branch(f1, "a b c x y z");
}

/* A fork sees the documents of its source as they were, also when the source has gone on in the
 * other store. */
MERGE_TEST(merge__fork_of_a_present_source_sees_what_it_saw)
{
    struct wal_doc doc = WAL_INIT(wal_doc);
    struct wal_session *f2;

    make_forks(stores.from);
    merge("s", "created s;");
    merge("f2", "created f2;");
    f2 = kit_session(stores.to, "f2");
    assert_ok(wal_doc_get(NULL, f2, WAL_STR("notes"), 0, &doc, NULL));
    assert_slice(doc.value, "\"f1\"");
    assert_int_equal(wal_doc_get(NULL, f2, WAL_STR("late"), 0, &doc, NULL), WAL_ENOTFOUND);
    assert_branch(f2, "a b c x p q");
    assert_idempotent("f2", "unchanged f2;");
}

/* The fork has a version there that it does not have here: what it saw. */
MERGE_TEST(merge__document_of_such_a_fork_is_continued)
{
    struct wal_doc doc = WAL_INIT(wal_doc);
    struct wal_session *f1;

    make_forks(stores.from);
    merge("s", "created s;");
    merge("f1", "created f1;");
    f1 = kit_session(stores.from, "f1");
    put(NULL, f1, "notes", "\"third\"");
    wal_session_close(f1);
    merge("f1", "continued f1;");
    f1 = kit_session(stores.to, "f1");
    assert_ok(wal_doc_get(NULL, f1, WAL_STR("notes"), 0, &doc, NULL));
    assert_slice(doc.value, "\"third\"");
    assert_idempotent("f1", "unchanged f1;");
}

/* A process died before it deleted the source of a complete fork. */
MERGE_TEST(merge__source_that_was_left_is_deleted)
{
    const struct wal_session_options options = {
        .struct_size = sizeof(options),
        .id = WAL_STR("s"),
        .metadata = WAL_STR("{\"agentwalTransfer\":\"source\"}"),
    };
    struct wal_session *s = NULL;

    make_forks(stores.from);
    merge("f1", "created f1;");
    s = kit_create_with(stores.to, &options);
    wal_session_close(s);
    merge("f1", "unchanged f1;");
    assert_int_equal(kit_store_info(stores.to).sessions, 1);
}

MERGE_TEST(merge__fork_of_a_refused_source_is_refused)
{
    struct wal_session *s;

    make_forks(stores.from);
    s = kit_create(stores.to, "s");
    kit_append_all(s, "q");
    merge(NULL, "refused s;refused f1;refused f2;");
    assert_int_equal(kit_store_info(stores.to).sessions, 1);
}

MERGE_TEST(merge__id_used_again_after_a_deletion)
{
    struct wal_session *s;

    make_forks(stores.from);
    delete_session(kit_session(stores.from, "s"));
    s = kit_create(stores.from, "s");
    kit_append_all(s, "a new one");
    wal_session_close(s);
    merge(NULL, "created f1;created f2;created s;");
    assert_same_stores(stores.from, stores.to);
    assert_idempotent(NULL, "unchanged f1;unchanged f2;unchanged s;");
}

/* --- the trash ------------------------------------------------------------ */

static void trash(struct wal_store *store, const char *id)
{
    assert_ok(wal_session_trash(kit_session(store, id), NULL));
}

MERGE_TEST(merge__session_in_the_trash_is_left_out)
{
    make_forks(stores.from);
    trash(stores.from, "s");
    merge(NULL, "created f1;created f2;");
    assert_int_equal(kit_store_info(stores.to).sessions, 2);
    assert_same_session(stores.from, stores.to, "f1");
    assert_idempotent(NULL, "unchanged f1;unchanged f2;");
}

MERGE_TEST(merge__session_in_the_trash_there_is_refused)
{
    make_forks(stores.from);
    merge(NULL, "created s;created f1;created f2;");
    trash(stores.to, "f1");
    merge(NULL, "unchanged s;refused f1;unchanged f2;");
    assert_int_equal(seen.error.status, WAL_ETRASHED);
}

/* --- redactions ----------------------------------------------------------- */

static void assert_hidden(struct wal_store *store, const char *id, const char *entry_id)
{
    struct wal_session *session = kit_session(store, id);
    struct wal_entry entry = WAL_INIT(wal_entry);

    assert_int_equal(wal_entry_get(session, kit_text(entry_id), &entry, NULL), WAL_EREDACTED);
    wal_session_close(session);
}

/* Whether a file of the log of "to" has these bytes. */
static bool log_has(const char *text)
{
    char command[256];

    snprintf(command, sizeof(command), "grep -rqa '%s' to/log", text);
    return system(command) == 0;
}

MERGE_TEST(merge__redacted_content_is_left_out)
{
    struct wal_session *s = kit_create(stores.from, "s");

    append_to(s, 0, "a", "{\"v\":\"plain\"}");
    append_to(s, 0, "b", "{\"v\":\"the-password\"}");
    append_to(s, 0, "c", "{\"v\":\"after\"}");
    redact(s, "b");
    merge(NULL, "created s;");
    assert_hidden(stores.to, "s", "b");
    assert_same_stores(stores.from, stores.to);
    assert_false(log_has("the-password"));
    assert_true(log_has("plain"));
    assert_idempotent(NULL, "unchanged s;");
}

MERGE_TEST(merge__later_redaction_hides_what_was_merged)
{
    struct wal_session *s = make_session(stores.from, "s");

    merge(NULL, "created s;");
    redact(s, "b");
    merge(NULL, "continued s;");
    assert_hidden(stores.to, "s", "b");
    assert_same_stores(stores.from, stores.to);
}

MERGE_TEST(merge__redaction_in_a_fork_hides_without_it)
{
    struct wal_session *s = kit_create(stores.from, "s");
    struct wal_session *f;

    append_to(s, 0, "a", "{\"v\":\"the-password\"}");
    append_to(s, 0, "b", "{}");
    f = kit_fork(s, "b", "f");
    redact(f, "a");
    merge("s", "created s;");
    assert_hidden(stores.to, "s", "a");
    assert_false(log_has("the-password"));
    assert_idempotent("s", "unchanged s;");
    merge(NULL, "unchanged s;created f;");
    assert_same_session(stores.from, stores.to, "f");
    assert_idempotent(NULL, "unchanged s;unchanged f;");
}

/* Redacts an entry; *id: of the redaction. */
static void redact_as(struct wal_session *session, const char *target, const char *reason,
                      char id[WAL_ID_SIZE])
{
    struct wal_append_result result = WAL_INIT(wal_append_result);

    assert_ok(wal_session_redact(session, kit_text(target), kit_text(reason), &result, NULL));
    memcpy(id, result.last_id, WAL_ID_SIZE);
}

/* What a reader that asks for redacted entries gets of one. */
static void assert_redacted_by(struct wal_store *store, const char *id, const char *entry_id,
                               const char *by, const char *reason)
{
    const struct wal_entry_cursor_options options = {.struct_size = sizeof(options),
                                                     .flags = WAL_ENTRY_CURSOR_REDACTED};
    struct wal_session *session = kit_session(store, id);
    struct wal_entry entry = WAL_INIT(wal_entry);
    struct wal_entry_cursor *cursor;
    char expected[2 * WAL_ID_SIZE];

    snprintf(expected, sizeof(expected), "{\"redactedBy\":\"%s\",\"reason\":\"%s\"}", by, reason);
    assert_ok(wal_entry_cursor_open(session, &options, &cursor, NULL));
    assert_ok(wal_entry_cursor_get(cursor, kit_text(entry_id), &entry, NULL));
    assert_slice(entry.payload, expected);
    wal_entry_cursor_close(cursor);
    wal_session_close(session);
}

MERGE_TEST(merge__redacted_redaction_hides_as_itself)
{
    const struct wal_store_compact_options erase = {.struct_size = sizeof(erase),
                                                    .flags = WAL_STORE_COMPACT_ERASE};

    for (int i = 0; i < 2; i++) {
        struct wal_session *s;
        char first[WAL_ID_SIZE];
        char second[WAL_ID_SIZE];

        begin_again();
        s = kit_create(stores.from, "s");
        kit_append_all(s, "a b");
        redact_as(s, "a", "first", first);
        redact_as(s, first, "second", second);
        redact_as(s, "a", "third", second);
        if (i == 1) {
            assert_ok(wal_store_compact(stores.from, &erase, NULL, NULL));
        }
        merge(NULL, "created s;");
        assert_redacted_by(stores.from, "s", "a", first, "first");
        assert_redacted_by(stores.to, "s", "a", first, "first");
        assert_idempotent(NULL, "unchanged s;");
        kit_append_all(s, "c");
        merge(NULL, "continued s;");
        wal_session_close(s);
    }
}

/* The redaction is copied as an entry that hides nothing, also from a copy, and by a redaction that
 * is redacted itself. */
MERGE_TEST(merge__undone_redaction_hides_nothing)
{
    struct wal_session *s = kit_create(stores.from, "s");
    struct wal_session *f;
    struct wal_store *third;
    char first[WAL_ID_SIZE];
    char second[WAL_ID_SIZE];

    kit_append_all(s, "a b c");
    f = kit_fork(s, "c", "f");
    redact_as(s, "a", "first", first);
    redact_as(f, "b", "", second);
    assert_ok(wal_session_unredact(f, kit_text("a"), NULL));
    assert_ok(wal_session_unredact(s, kit_text("b"), NULL));
    redact_as(s, first, "", second);
    redact_as(s, "c", "again", second);
    assert_ok(wal_session_unredact(s, kit_text("c"), NULL));
    redact_as(s, "c", "last", second);
    merge(NULL, "created s;created f;");
    assert_redacted_by(stores.to, "s", "c", second, "last");
    assert_same_stores(stores.from, stores.to);
    assert_idempotent(NULL, "unchanged s;unchanged f;");
    third = stores.from;
    stores.from = stores.to;
    stores.to = kit_open("third", WAL_OPEN_CREATE);
    merge(NULL, "created s;created f;");
    assert_same_stores(third, stores.to);
}

/* A copy that was made before stays redacted; what comes later is added. */
MERGE_TEST(merge__copy_that_was_made_before_stays_redacted)
{
    struct wal_session *s = make_session(stores.from, "s");
    struct wal_session *f = kit_fork(s, "b", "f");

    redact(s, "b");
    redact(f, "a");
    merge("s", "created s;");
    assert_ok(wal_session_unredact(s, kit_text("b"), NULL));
    assert_ok(wal_session_unredact(s, kit_text("a"), NULL));
    kit_append_all(s, "later");
    merge("s", "continued s;");
    assert_hidden(stores.to, "s", "a");
    assert_hidden(stores.to, "s", "b");
    assert_idempotent("s", "unchanged s;");
}

/* What a compaction leaves is kept for each of one batch. */
MERGE_TEST(merge__redacted_compactions_keep_their_first_entry)
{
    struct wal_session *s = kit_create_filled(stores.from, "s", "a b c");
    const char *const kept[] = {"b", "c"};
    char made[2][WAL_ID_SIZE];

    for (size_t i = 0; i < 2; i++) {
        const struct wal_compact_options options = {.struct_size = sizeof(options),
                                                    .first_kept = kit_text(kept[i]),
                                                    .summary = WAL_STR("so far")};
        struct wal_append_result result = WAL_INIT(wal_append_result);

        assert_ok(wal_session_compact(s, &options, NULL, &result, NULL));
        memcpy(made[i], result.last_id, WAL_ID_SIZE);
    }
    redact(s, made[0]);
    redact(s, made[1]);
    merge(NULL, "created s;");
    assert_same_stores(stores.from, stores.to);
}

/* The entry a of the session is redacted, unless the session is marked as incomplete or not
 * there. */
static void assert_not_bare(struct wal_store *store, const char *id)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_session *session = NULL;

    if (wal_session_open(store, kit_text(id), &session, NULL) != WAL_OK) {
        return;
    }
    assert_ok(wal_session_get_info(session, &info, NULL));
    if (memmem(info.metadata.data, info.metadata.size, "agentwalTransfer", 16) == NULL) {
        assert_hidden(store, id, "a");
    }
    wal_session_close(session);
}

/* The entries arrive before the redaction, which another session holds. */
MERGE_TEST(merge__stopped_before_a_redaction_leaves_a_mark)
{
    static const char *const merged[] = {"s", "g", NULL};

    for (size_t i = 0; i < 3; i++) {
        uint64_t at = 1;
        bool is_stopped = true;

        for (; is_stopped; at++) {
            struct wal_session *s;
            struct wal_session *f;
            struct wal_session *g;

            begin_again();
            s = kit_create(stores.from, "s");
            kit_append_all(s, "a b");
            f = kit_fork(s, "b", "f");
            g = kit_fork(s, "b", "g");
            kit_append_all(g, "p");
            kit_append_all(s, "c");
            redact(f, "a");
            is_stopped = try_merge(merged[i], at) == WAL_ECALLBACK;
            assert_not_bare(stores.to, "s");
            assert_not_bare(stores.to, "f");
            assert_not_bare(stores.to, "g");
            assert_ok(try_merge(merged[i], 0));
            assert_int_equal(seen.result.refused, 0);
            assert_hidden(stores.to, merged[i] == NULL ? "f" : merged[i], "a");
            wal_session_close(g);
            wal_session_close(f);
            wal_session_close(s);
        }
        assert_true(at > 4);
    }
}

static const char dead[] = "Vt8kQz03LwXe";

static void append_dead(struct wal_session *session, size_t size)
{
    char *payload = malloc(size + 64);
    struct wal_entry entry;
    int length;

    assert_non_null(payload);
    length = snprintf(payload, size + 64, "{\"x\":\"%s", dead);
    memset(payload + length, 'y', size);
    memcpy(payload + (size_t)length + size, "\"}", 3);
    entry = kit_entry("dead", NULL, payload);
    assert_ok(kit_try_append(session, &entry, NULL, NULL));
    free(payload);
}

static void count_dead_in(void *ctx, const char *file, const uint8_t *bytes, size_t size)
{
    int *count = ctx;

    (void)file;
    *count += memmem(bytes, size, dead, sizeof(dead) - 1) != NULL;
}

static int count_dead(const char *directory)
{
    int count = 0;

    store_bytes_visit_directory(directory, count_dead_in, &count);
    return count;
}

MERGE_TEST(merge__erased_entry_is_hidden)
{
    const struct wal_store_compact_options options = {.struct_size = sizeof(options),
                                                      .flags = WAL_STORE_COMPACT_ERASE};
    struct wal_session *s = make_session(stores.from, "s");

    redact(s, "b");
    assert_ok(wal_store_compact(stores.from, &options, NULL, NULL));
    merge(NULL, "created s;");
    assert_same_stores(stores.from, stores.to);
    assert_idempotent(NULL, "unchanged s;");
}

/* An older copy of the session, with what was redacted and erased since, is merged back, as it was
 * or continued: the redaction stays, and nothing of what it hides comes back. */
MERGE_TEST(merge__older_copy_does_not_bring_back_what_was_erased)
{
    const struct wal_store_compact_options options = {.struct_size = sizeof(options),
                                                      .flags = WAL_STORE_COMPACT_ERASE};

    for (int is_large = 0; is_large < 2; is_large++) {
        struct wal_session *here = make_session(stores.from, "s");
        struct wal_entry entry = WAL_INIT(wal_entry);
        struct wal_session *copy;

        append_dead(here, is_large != 0 ? LARGE : 0);
        merge(NULL, "created s;");
        redact(here, "dead");
        assert_ok(wal_store_compact(stores.from, &options, NULL, NULL));
        assert_int_equal(count_dead("from"), 0);
        assert_true(count_dead("to") > 0);
        merge_back("unchanged s;");
        copy = kit_session(stores.to, "s");
        assert_ok(wal_entry_get(copy, WAL_STR("dead"), &entry, NULL));
        wal_session_close(copy);
        assert_int_equal(wal_entry_get(here, WAL_STR("dead"), &entry, NULL), WAL_EREDACTED);
        assert_int_equal(count_dead("from"), 0);
        merge(NULL, "continued s;"); /* hidden there too */
        copy = kit_session(stores.to, "s");
        assert_int_equal(wal_entry_get(copy, WAL_STR("dead"), &entry, NULL), WAL_EREDACTED);
        kit_append_all(copy, "n");
        wal_session_close(copy);
        merge_back("continued s;");
        assert_int_equal(wal_entry_get(here, WAL_STR("dead"), &entry, NULL), WAL_EREDACTED);
        assert_int_equal(count_dead("from"), 0);
        wal_session_close(here);
        begin_again();
    }
}

/* What was erased is the version at its place, and no other one. */
MERGE_TEST(merge__erased_version_is_none_at_another_place)
{
    const struct wal__transfer_version erased = {.is_deletion = true, .is_erased = true};
    const struct wal__transfer_version deleted = {.is_deletion = true};
    const struct wal__transfer_version p = {.digest = {.bytes = {1}}};
    const struct wal__transfer_version q = {.digest = {.bytes = {2}}};
    const struct wal__transfer_version n = {.digest = {.bytes = {3}}};
    const struct wal__transfer_version from[] = {p, erased, deleted, n};

    assert_true(wal__transfer_count_present(from, 4, &q, 1) == SIZE_MAX);
    assert_true(wal__transfer_count_present(&q, 1, from, 4) == SIZE_MAX);
    assert_int_equal(wal__transfer_count_present(from + 1, 3, &q, 1), 1);
    assert_int_equal(wal__transfer_count_present(&q, 1, from + 1, 3), 1);
    assert_int_equal(wal__transfer_count_present(from, 4, &n, 1), 4);
}

/* --- content out of line -------------------------------------------------- */

MERGE_TEST(merge__checkpoints_come_with_their_files)
{
    struct kit_work work = kit_work_begin(0);
    struct kit_work other = work;
    struct wal_session *copy;

    stores.from = work.store;
    kit_append_all(work.session, "a b");
    kit_write(&work, "x.txt", "one\n");
    kit_write(&work, "y.txt", "two\n");
    (void)kit_checkpoint(&work, "c1", "x.txt y.txt none.txt");
    kit_write(&work, "x.txt", "one and a half\n");
    (void)kit_checkpoint(&work, "c2", "x.txt");
    assert_ok(wal_checkpoint_delete(work.session, WAL_STR("c2"), NULL));
    (void)kit_checkpoint(&work, "c3", "x.txt");
    merge(NULL, "created s;");
    assert_same_stores(stores.from, stores.to);
    copy = kit_session(stores.to, "s");
    other.store = stores.to;
    other.session = copy;
    assert_string_equal(kit_checkpoints(copy), "c1 c3");
    assert_string_equal(kit_files(&other, copy, "c1"), "none.txt- x.txt=one\n y.txt=two\n");
    assert_idempotent(NULL, "unchanged s;");
}

/* --- texts that are replaced ------------------------------------------------ */

/* Copies a text with each 's' that begins "secret" as 'S', if it has one. */
static void hide(struct wal_slice *text, char **copy)
{
    char *at;

    free(*copy);
    *copy = calloc(1, text->size + 1);
    assert_non_null(*copy);
    memcpy(*copy, text->size > 0 ? text->data : "", text->size);
    if (strstr(*copy, "secret") == NULL) {
        return;
    }
    for (at = *copy; (at = strstr(at, "secret")) != NULL; at++) {
        *at = 'S';
    }
    text->data = *copy;
}

static void rewrite(void *ctx, struct wal_slice *text, struct wal_slice *second)
{
    char **copies = ctx;

    hide(text, &copies[0]);
    hide(second, &copies[1]);
}

static int32_t set_texts(void *ctx, const struct wal_session_info *now,
                         struct wal_session_change *change)
{
    (void)ctx;
    (void)now;
    change->fields = WAL_CHANGE_TITLE | WAL_CHANGE_METADATA;
    change->title = WAL_STR("the secret");
    change->metadata = WAL_STR("{\"m\":\"secret\"}");
    return 0;
}

static void assert_no_secret(void *ctx, const char *file, const uint8_t *bytes, size_t size)
{
    (void)ctx;
    (void)file;
    assert_null(memmem(bytes, size, "secret", 6));
}

/* Payloads, those out of line too, meta, documents, titles and metadata; no other text changes, and
 * checkpoints stay out. A store with the originals refuses the copy. */
MERGE_TEST(merge__texts_are_replaced)
{
    static char large[LARGE];
    char *copies[2] = {NULL, NULL};
    const struct wal_transfer_options options = {
        .struct_size = sizeof(options), .rewrite = rewrite, .rewrite_ctx = copies};
    struct kit_work work = kit_work_begin(0);
    struct wal_entry entries[3];
    struct wal_transfer_result result = WAL_INIT(wal_transfer_result);
    struct wal_session *copy;
    struct wal_entry found = WAL_INIT(wal_entry);

    (void)snprintf(large, sizeof(large), "\"%*s secret\"", LARGE - 16, "x");
    entries[0] = kit_entry("a", NULL, "{\"text\":\"a secret\"}");
    entries[1] = kit_entry("b", NULL, "{\"text\":\"plain\"}");
    entries[1].meta = WAL_STR("{\"k\":\"secret\"}");
    entries[2] = kit_entry("c", NULL, large);
    assert_ok(wal_append(work.session, entries, 3, NULL, NULL, NULL));
    (void)kit_put(work.store, work.session, "d", "{\"v\":\"secret\"}");
    assert_ok(wal_session_update(work.session, set_texts, NULL, NULL));
    kit_write(&work, "x.txt", "secret\n");
    (void)kit_checkpoint(&work, "c1", "x.txt");

    assert_done(wal_store_merge(work.store, stores.to, &options, &result, kit_error()));
    assert_int_equal(result.entries, 3);
    assert_int_equal(result.documents, 1);
    copy = kit_session(stores.to, "s");
    assert_string_equal(kit_checkpoints(copy), "");
    assert_string_equal(kit_docs(stores.to, copy, 0, ""), "d={\"v\":\"Secret\"}");
    assert_memory_equal(kit_info(copy).title.data, "the Secret", 10);
    assert_memory_equal(kit_info(copy).metadata.data, "{\"m\":\"Secret\"}", 14);
    assert_ok(wal_entry_get(copy, WAL_STR("a"), &found, NULL));
    assert_memory_equal(found.payload.data, "{\"text\":\"a Secret\"}", found.payload.size);
    assert_ok(wal_entry_get(copy, WAL_STR("b"), &found, NULL));
    assert_memory_equal(found.payload.data, "{\"text\":\"plain\"}", found.payload.size);
    assert_memory_equal(found.meta.data, "{\"k\":\"Secret\"}", found.meta.size);
    assert_ok(wal_entry_get(copy, WAL_STR("c"), &found, NULL));
    assert_int_equal(found.payload_size, strlen(large));
    wal_session_close(copy);
    store_bytes_visit_directory("to", assert_no_secret, NULL);

    memset(&seen, 0, sizeof(seen));
    stores.from = stores.to;
    stores.to = work.store;
    merge(NULL, "refused s;");
    free(copies[0]);
    free(copies[1]);
}

/* --- interruption --------------------------------------------------------- */

/* Merges with a stop at each record in turn, and then to the end: the result is the same. */
MERGE_TEST(merge__stopped_anywhere_is_continued)
{
    bool stopped = true;

    make_session(stores.from, "r");
    make_forks(stores.from);
    delete_session(kit_session(stores.from, "s"));
    for (uint64_t at = 1; stopped; at++) {
        kit_close(stores.to);
        assert_int_equal(system("rm -rf to"), 0);
        stores.to = kit_open("to", WAL_OPEN_CREATE);
        stopped = try_merge(NULL, at) != WAL_OK;
        if (stopped) {
            assert_int_equal(kit_last_error()->status, WAL_ECALLBACK);
            assert_int_equal(kit_last_error()->sys_errno, 7);
            assert_ok(try_merge(NULL, 0));
        }
        assert_same_stores(stores.from, stores.to);
        assert_idempotent(NULL, "unchanged r;unchanged f1;unchanged f2;");
    }
}
