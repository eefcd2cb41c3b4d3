/*
 * test_store_documents.c - tests of documents of a session and of the store, across forks,
 * segments, processes, and damage (SPEC.md 5.8).
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "format/bytes/assert.h"
#include "tests/lib/kit/parts_kit.h"

/* Puts or deletes, and returns the library's status; a refusal changes nothing. */
static enum wal_status attempt(struct kit_bench *bench, struct wal_doc doc, bool deletes,
                               uint64_t *version, struct wal_error *error)
{
    char *before = kit_snapshot(bench->store, bench->session);
    uint64_t kept = 77;
    enum wal_status status;

    *error = KIT_ERROR;
    status = deletes ? wal_doc_delete(bench->store, bench->session, &doc, &kept, error)
                     : wal_doc_put(bench->store, bench->session, &doc, &kept, error);
    if (status == WAL_OK) {
        free(before);
    } else {
        assert_int_equal(kept, 77);
        assert_int_equal(error->status, status);
        assert_unchanged(bench->store, bench->session, before);
    }
    if (version != NULL) {
        *version = kept;
    }
    return status;
}

KIT_TEST(document__is_readable_after_put)
{
    struct kit_bench bench = kit_bench("");
    uint64_t version = kit_put(bench.store, bench.session, "k", "{\"a\":1}");

    assert_int_equal(version, kit_store_info(bench.store).last_sequence);
    assert_string_equal(kit_value(bench.store, bench.session, "k", 0), "{\"a\":1}");
    assert_string_equal(kit_value(bench.store, bench.session, "k", version), "{\"a\":1}");
    assert_string_equal(kit_value(bench.store, bench.session, "j", 0), "");
    assert_string_equal(kit_value(bench.store, bench.session, "k", 1), "");
    assert_int_equal(kit_info(bench.session).documents, 1);
    kit_reopen(&bench, 0);
    assert_string_equal(kit_value(bench.store, bench.session, "k", version), "{\"a\":1}");
}

/* The session may be passed without its store. */
KIT_TEST(document__of_a_session_needs_no_store)
{
    struct kit_bench bench = kit_bench("");

    (void)kit_put(NULL, bench.session, "k", "1");
    assert_string_equal(kit_docs(NULL, bench.session, 0, NULL), "k=1");
}

KIT_TEST(document__same_value_writes_nothing)
{
    struct kit_bench bench = kit_bench("");
    uint64_t version = kit_put(bench.store, bench.session, "k", "[1]");
    char *before = kit_snapshot(bench.store, bench.session);
    struct wal_doc doc = kit_doc("k", "[1]");
    struct wal_error error;
    uint64_t actual = 0;

    assert_int_equal(kit_put(bench.store, bench.session, "k", "[1]"), version);
    doc.flags = WAL_DOC_EXPECT;
    assert_ok(attempt(&bench, doc, false, &actual, &error));
    assert_int_equal(actual, version);
    assert_unchanged(bench.store, bench.session, before);
    assert_true(kit_put(bench.store, bench.session, "k", "[1] ") > version);
}

KIT_TEST(document__conflicting_version_is_stale)
{
    struct kit_bench bench = kit_bench("");
    uint64_t first = kit_put(bench.store, bench.session, "k", "1");
    uint64_t second = kit_put(bench.store, bench.session, "k", "2");
    struct wal_doc doc = kit_doc("k", "3");
    struct wal_error error;
    uint64_t third = 0;
    char text[24];

    (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)second);
    doc.flags = WAL_DOC_EXPECT;
    doc.version = first;
    assert_int_equal(attempt(&bench, doc, false, NULL, &error), WAL_ECONFLICT);
    assert_string_equal(error.actual, text);
    assert_int_equal(attempt(&bench, doc, true, NULL, &error), WAL_ECONFLICT);
    assert_string_equal(error.actual, text);
    doc.version = 0;
    assert_int_equal(attempt(&bench, doc, false, NULL, &error), WAL_ECONFLICT);
    doc.version = second;
    assert_ok(attempt(&bench, doc, false, &third, &error));
    assert_true(third > second);
    doc.version = third;
    assert_ok(attempt(&bench, doc, true, NULL, &error));
    assert_int_equal(attempt(&bench, doc, false, NULL, &error), WAL_ECONFLICT);
    assert_string_equal(error.actual, "0");
    doc.version = 0;
    assert_ok(attempt(&bench, doc, false, NULL, &error));
    doc = kit_doc("new", "1");
    doc.flags = WAL_DOC_EXPECT;
    doc.version = 1;
    assert_int_equal(attempt(&bench, doc, false, NULL, &error), WAL_ECONFLICT);
    assert_string_equal(error.actual, "0");
    doc.version = 0;
    assert_int_equal(attempt(&bench, doc, true, NULL, &error), WAL_ENOTFOUND);
    assert_ok(attempt(&bench, doc, false, NULL, &error));
}

KIT_TEST(document__deleted_one_keeps_its_versions)
{
    struct kit_bench bench = kit_bench("");
    uint64_t first = kit_put(bench.store, bench.session, "k", "1");
    uint64_t second = kit_put(bench.store, bench.session, "k", "2");
    uint64_t gone = kit_delete(bench.store, bench.session, "k");
    struct wal_error error;

    assert_int_equal(attempt(&bench, kit_doc("k", NULL), true, NULL, &error), WAL_ENOTFOUND);
    for (int i = 0; i < 2; i++) {
        assert_string_equal(kit_docs(bench.store, bench.session, 0, NULL), "");
        assert_string_equal(kit_docs(bench.store, bench.session, WAL_DOC_CURSOR_HISTORY, NULL),
                            "k- k=2 k=1");
        assert_string_equal(kit_docs(bench.store, bench.session,
                                     WAL_DOC_CURSOR_HISTORY | WAL_DOC_CURSOR_KEYS, NULL),
                            "k- k= k=");
        assert_string_equal(kit_value(bench.store, bench.session, "k", 0), "");
        assert_string_equal(kit_value(bench.store, bench.session, "k", gone), "");
        assert_string_equal(kit_value(bench.store, bench.session, "k", second), "2");
        assert_string_equal(kit_value(bench.store, bench.session, "k", first), "1");
        kit_reopen(&bench, i == 0 ? WAL_OPEN_PREAD : 0);
    }
    (void)kit_put(bench.store, bench.session, "k", "2");
    assert_string_equal(kit_docs(bench.store, bench.session, WAL_DOC_CURSOR_HISTORY, NULL),
                        "k=2 k- k=2 k=1");
}

KIT_TEST(document__list_is_in_the_order_of_the_keys_bytes)
{
    static const char *const keys[] = {"b",  "a/2", "B", "a",    "\xc3\xa9",
                                       "a/", "~",   "!", "a/10", "ab"};
    struct kit_bench bench = kit_bench("");

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        (void)kit_put(bench.store, bench.session, keys[i], "1");
    }
    (void)kit_delete(bench.store, bench.session, "ab");
    for (int i = 0; i < 2; i++) {
        assert_string_equal(kit_docs(bench.store, bench.session, 0, NULL),
                            "!=1 B=1 a=1 a/=1 a/10=1 a/2=1 b=1 ~=1 "
                            "\xc3\xa9=1");
        assert_string_equal(kit_docs(bench.store, bench.session, 0, "a"), "a=1 a/=1 a/10=1 a/2=1");
        assert_string_equal(kit_docs(bench.store, bench.session, 0, "a/"), "a/=1 a/10=1 a/2=1");
        assert_string_equal(kit_docs(bench.store, bench.session, 0, "a/2"), "a/2=1");
        assert_string_equal(kit_docs(bench.store, bench.session, 0, "a/20"), "");
        kit_reopen(&bench, WAL_OPEN_PREAD);
    }
}

KIT_TEST(document__list_is_a_snapshot_of_its_opening)
{
    struct kit_bench bench = kit_bench("");
    struct wal_doc doc = {.struct_size = sizeof(doc)};
    struct wal_doc_cursor *docs = NULL;

    (void)kit_put(bench.store, bench.session, "a", "1");
    (void)kit_put(bench.store, bench.session, "b", "1");
    assert_ok(wal_doc_cursor_open(bench.store, bench.session, NULL, &docs, NULL));
    (void)kit_put(bench.store, bench.session, "a", "2");
    (void)kit_put(bench.store, bench.session, "aa", "2");
    (void)kit_delete(bench.store, bench.session, "b");
    assert_ok(wal_doc_cursor_next(docs, &doc, NULL));
    assert_slice(doc.value, "1");
    assert_ok(wal_doc_cursor_next(docs, &doc, NULL));
    assert_slice(doc.key, "b");
    assert_int_equal(wal_doc_cursor_next(docs, &doc, NULL), WAL_END);
    /* A single get returns the present value. */
    assert_ok(wal_doc_cursor_get(docs, kit_text("a"), 0, &doc, NULL));
    assert_slice(doc.value, "2");
    assert_int_equal(wal_doc_cursor_get(docs, kit_text("b"), 0, &doc, NULL), WAL_ENOTFOUND);
    wal_doc_cursor_close(docs);
}

KIT_TEST(document__of_the_store_is_in_no_session)
{
    struct kit_bench bench = kit_bench("");
    struct wal_store_info info = {.struct_size = sizeof(info)};
    struct wal_session *named = kit_create(bench.store, "store");

    (void)kit_put(bench.store, NULL, "k", "\"store\"");
    (void)kit_put(bench.store, bench.session, "k", "\"s\"");
    (void)kit_put(bench.store, named, "k", "\"named\"");
    for (int i = 0; i < 2; i++) {
        assert_string_equal(kit_docs(bench.store, NULL, 0, NULL), "k=\"store\"");
        assert_string_equal(kit_docs(bench.store, bench.session, 0, NULL), "k=\"s\"");
        assert_string_equal(kit_docs(bench.store, named, 0, NULL), "k=\"named\"");
        assert_ok(wal_store_get_info(bench.store, &info, NULL));
        assert_int_equal(info.sessions, 2);
        wal_session_close(named);
        kit_reopen(&bench, 0);
        named = kit_session(bench.store, "store");
    }
    assert_ok(wal_session_delete(named, NULL));
    wal_session_close(named);
    assert_int_equal(wal_session_open(bench.store, kit_text("store"), &named, NULL), WAL_ENOTFOUND);
    (void)kit_delete(bench.store, NULL, "k");
    assert_string_equal(kit_docs(bench.store, NULL, WAL_DOC_CURSOR_HISTORY, NULL),
                        "k- k=\"store\"");
}

KIT_TEST(document__store_without_any)
{
    struct kit_bench bench = kit_bench("");
    struct wal_doc doc = kit_doc("k", NULL);

    assert_string_equal(kit_docs(bench.store, NULL, 0, NULL), "");
    assert_string_equal(kit_value(bench.store, NULL, "k", 0), "");
    assert_int_equal(wal_doc_delete(bench.store, NULL, &doc, NULL, NULL), WAL_ENOTFOUND);
    assert_string_equal(kit_docs(bench.store, bench.session, 0, NULL), "");
}

/* --- hostile ones --------------------------------------------------------- */

KIT_TEST(document__hostile_keys_are_unchanged)
{
    static const struct wal_slice keys[] = {
        {"\x01", 1}, {"a\0", 2}, {"a\0b", 3}, {"..", 2}, {"/", 1},
        {"\n", 1},   {" ", 1},   {"\"", 1},   {"%s", 2}, {"\xf0\x9f\x98\x80", 4}};
    enum {
        COUNT = sizeof(keys) / sizeof(keys[0])
    };
    struct kit_bench bench = kit_bench("");
    struct wal_doc doc;
    struct wal_doc_cursor *docs = NULL;

    for (size_t i = 0; i < COUNT; i++) {
        char value[8];

        (void)snprintf(value, sizeof(value), "%zu", i);
        doc = kit_doc(NULL, value);
        doc.key = keys[i];
        assert_ok(wal_doc_put(bench.store, bench.session, &doc, NULL, NULL));
    }
    kit_reopen(&bench, WAL_OPEN_PREAD);
    assert_ok(wal_doc_cursor_open(bench.store, bench.session, NULL, &docs, NULL));
    doc = (struct wal_doc){.struct_size = sizeof(doc)};
    for (size_t i = 0; i < COUNT; i++) {
        char value[8];

        (void)snprintf(value, sizeof(value), "%zu", i);
        assert_ok(wal_doc_cursor_get(docs, keys[i], 0, &doc, NULL));
        assert_int_equal(doc.key.size, keys[i].size);
        assert_memory_equal(doc.key.data, keys[i].data, keys[i].size);
        assert_slice(doc.value, value);
        assert_ok(wal_doc_cursor_next(docs, &doc, NULL));
    }
    assert_int_equal(wal_doc_cursor_next(docs, &doc, NULL), WAL_END);
    wal_doc_cursor_close(docs);
}

KIT_TEST(document__invalid_keys_are_refused)
{
    struct kit_bench bench = kit_bench("");
    struct wal_error error;
    char text[1026];
    struct wal_doc doc = kit_doc(NULL, "1");

    memset(text, 'k', sizeof(text));
    assert_int_equal(attempt(&bench, doc, false, NULL, &error), WAL_EINVAL);
    doc.key = (struct wal_slice){text, 1025};
    assert_int_equal(attempt(&bench, doc, false, NULL, &error), WAL_ETOOBIG);
    doc.key = (struct wal_slice){"\xc3", 1};
    assert_int_equal(attempt(&bench, doc, false, NULL, &error), WAL_EINVAL);
    doc.key = (struct wal_slice){NULL, 3};
    assert_int_equal(attempt(&bench, doc, false, NULL, &error), WAL_EINVAL);
    doc.key = (struct wal_slice){text, 1024};
    assert_ok(attempt(&bench, doc, false, NULL, &error));
    kit_reopen(&bench, 0);
    text[1024] = '\0';
    assert_string_equal(kit_value(bench.store, bench.session, text, 0), "1");
}

KIT_TEST(document__invalid_values_are_refused)
{
    static const char *const bad[] = {"", " ", "{", "nul", "{\"a\":1,}", "1 2", "\"\xff\""};
    struct kit_bench bench = kit_bench("");
    struct wal_error error;
    struct wal_doc doc;
    char *text = malloc(16 * 1024 * 1024 + 2);

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(attempt(&bench, kit_doc("k", bad[i]), false, NULL, &error), WAL_EBADJSON);
    }
    assert_int_equal(attempt(&bench, kit_doc("k", NULL), false, NULL, &error), WAL_EBADJSON);
    assert_non_null(text);
    memset(text, ' ', 16 * 1024 * 1024 + 1);
    text[0] = '1';
    text[16 * 1024 * 1024 + 1] = '\0';
    doc = kit_doc("k", text);
    assert_int_equal(attempt(&bench, doc, false, NULL, &error), WAL_ETOOBIG);
    doc.value.size--;
    assert_ok(attempt(&bench, doc, false, NULL, &error));
    text[16 * 1024 * 1024] = '\0';
    assert_string_equal(kit_value(bench.store, bench.session, "k", 0), text);
    free(text);
}

KIT_TEST(document__misuse_is_refused)
{
    struct kit_bench bench = kit_bench("");
    struct wal_store *other = kit_open("other", WAL_OPEN_CREATE);
    struct wal_doc doc = kit_doc("k", "1");
    struct wal_doc_cursor_options options = {.struct_size = sizeof(options)};
    struct wal_doc_cursor *docs = NULL;
    struct wal_error error;

    assert_int_equal(wal_doc_put(other, bench.session, &doc, NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_doc_cursor_open(other, bench.session, NULL, &docs, NULL), WAL_EINVAL);
    assert_int_equal(wal_doc_put(NULL, NULL, &doc, NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_doc_put(bench.store, NULL, NULL, NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_doc_cursor_open(NULL, NULL, NULL, &docs, NULL), WAL_EINVAL);
    assert_int_equal(wal_doc_cursor_open(bench.store, bench.session, NULL, NULL, NULL), WAL_EINVAL);
    doc.flags = WAL_DOC_DELETE;
    assert_int_equal(attempt(&bench, doc, false, NULL, &error), WAL_EINVAL);
    doc.flags = WAL_DOC_STORE;
    assert_int_equal(attempt(&bench, doc, false, NULL, &error), WAL_EINVAL);
    doc.flags = 0;
    doc.struct_size--;
    assert_int_equal(attempt(&bench, doc, false, NULL, &error), WAL_EINVAL);
    options.flags = 1u << 7;
    assert_int_equal(wal_doc_cursor_open(bench.store, bench.session, &options, &docs, NULL),
                     WAL_EINVAL);
    options.flags = 0;
    options.struct_size = 1;
    assert_int_equal(wal_doc_cursor_open(bench.store, bench.session, &options, &docs, NULL),
                     WAL_EINVAL);
    assert_null(docs);
    assert_ok(wal_doc_cursor_open(bench.store, bench.session, NULL, &docs, NULL));
    doc = (struct wal_doc){.struct_size = 3};
    assert_int_equal(wal_doc_cursor_next(docs, &doc, NULL), WAL_EINVAL);
    assert_int_equal(wal_doc_cursor_next(docs, NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_doc_cursor_get(docs, kit_text("k"), 0, &doc, NULL), WAL_EINVAL);
    assert_int_equal(wal_doc_cursor_next(NULL, &doc, NULL), WAL_EINVAL);
    wal_doc_cursor_close(docs);
    wal_doc_cursor_close(NULL);
}

KIT_TEST(document__store_open_for_reading)
{
    struct kit_bench bench = kit_bench("");
    struct wal_doc doc = kit_doc("k", "2");

    (void)kit_put(bench.store, bench.session, "k", "1");
    kit_reopen(&bench, WAL_OPEN_READ_ONLY);
    assert_string_equal(kit_docs(bench.store, bench.session, 0, NULL), "k=1");
    assert_int_equal(wal_doc_put(bench.store, bench.session, &doc, NULL, NULL), WAL_EREADONLY);
    assert_int_equal(wal_doc_put(bench.store, NULL, &doc, NULL, NULL), WAL_EREADONLY);
}

/* A value that does not fit into the first segment with others. */
static void fill_segment(struct wal_store *store, struct wal_session *session)
{
    size_t size = 1200 * 1024;
    char *text = malloc(size + 1);

    assert_non_null(text);
    memset(text, ' ', size);
    text[0] = '0';
    text[size] = '\0';
    (void)kit_put(store, session, "filler", text);
    (void)kit_delete(store, session, "filler");
    free(text);
}

KIT_TEST(document__fork_inherits_versions_at_the_fork_point)
{
    struct wal_store *store = kit_store();
    struct wal_session *source = kit_create(store, "s");
    struct wal_session *fork;
    struct wal_session *deep;
    uint64_t first;
    uint64_t inherited;

    kit_append_all(source, "a b");
    (void)kit_put(store, source, "k", "1");
    first = kit_put(store, source, "gone", "1");
    (void)kit_delete(store, source, "gone");
    (void)kit_put(store, source, "both", "1");
    fork = kit_fork(source, "a", "f");
    inherited = kit_put(store, source, "k", "2");
    (void)kit_put(store, source, "late", "1");
    (void)kit_delete(store, source, "both");
    (void)kit_put(store, fork, "k", "3");
    (void)kit_put(store, fork, "own", "1");
    deep = kit_fork(fork, NULL, "g");
    (void)kit_put(store, fork, "k", "4");
    (void)kit_delete(store, deep, "own");
    for (int i = 0; i < 3; i++) {
        assert_string_equal(kit_docs(store, source, 0, NULL), "k=2 late=1");
        assert_string_equal(kit_docs(store, fork, 0, NULL), "both=1 k=4 own=1");
        assert_string_equal(kit_docs(store, deep, 0, NULL), "both=1 k=3");
        assert_string_equal(kit_docs(store, deep, WAL_DOC_CURSOR_HISTORY, NULL),
                            "both=1 gone- gone=1 k=3 k=1 own- own=1");
        assert_string_equal(kit_value(store, deep, "gone", first), "1");
        assert_string_equal(kit_value(store, deep, "k", inherited), "");
        assert_int_equal(kit_info(source).documents, 7);
        assert_int_equal(kit_info(fork).documents, 3);
        assert_int_equal(kit_info(deep).documents, 1);
        wal_session_close(source);
        wal_session_close(fork);
        wal_session_close(deep);
        kit_close(store);
        if (i == 1) {
            kit_remove_indexes();
        }
        store = kit_open("store", i == 1 ? WAL_OPEN_PREAD : 0);
        source = kit_session(store, "s");
        fork = kit_session(store, "f");
        deep = kit_session(store, "g");
    }
    /* A later version of the source does not count for the fork. */
    struct wal_doc doc = kit_doc("late", "9");

    doc.flags = WAL_DOC_EXPECT;
    assert_ok(wal_doc_put(store, deep, &doc, NULL, NULL));
}

KIT_TEST(document__fork_keeps_documents_of_a_deleted_source)
{
    struct wal_store *store = kit_store();
    struct wal_session *source = kit_create(store, "s");
    struct wal_session *fork;
    uint64_t version;
    struct wal_error error = KIT_ERROR;
    struct wal_doc doc = kit_doc("k", "5");
    struct wal_doc_cursor *docs = NULL;

    version = kit_put(store, source, "k", "1");
    fork = kit_fork(source, NULL, "f");
    (void)kit_put(store, source, "k", "2");
    assert_ok(wal_doc_cursor_open(store, source, NULL, &docs, NULL));
    assert_ok(wal_session_delete(source, NULL));
    assert_int_equal(wal_doc_cursor_get(docs, kit_text("k"), 0, &doc, &error), WAL_ENOTFOUND);
    wal_doc_cursor_close(docs);
    assert_int_equal(wal_doc_cursor_open(store, source, NULL, &docs, &error), WAL_ENOTFOUND);
    doc = kit_doc("k", "5");
    assert_int_equal(wal_doc_put(store, source, &doc, NULL, &error), WAL_ENOTFOUND);
    assert_int_equal(wal_doc_delete(store, source, &doc, NULL, &error), WAL_ENOTFOUND);
    wal_session_close(source);
    source = kit_create(store, "s");
    for (int i = 0; i < 2; i++) {
        assert_string_equal(kit_docs(store, source, 0, NULL), "");
        assert_string_equal(kit_docs(store, fork, 0, NULL), "k=1");
        assert_string_equal(kit_value(store, fork, "k", version), "1");
        assert_string_equal(kit_value(store, source, "k", version), "");
        wal_session_close(source);
        wal_session_close(fork);
        kit_close(store);
        kit_remove_indexes();
        store = kit_store();
        source = kit_session(store, "s");
        fork = kit_session(store, "f");
    }
}

/* More sessions in use than are kept in memory. */
KIT_TEST(document__of_many_sessions_in_turn)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s0");
    char id[16];
    char value[16];

    (void)kit_put(store, session, "root", "0");
    for (int i = 1; i < 150; i++) {
        struct wal_session *fork;

        (void)snprintf(id, sizeof(id), "s%d", i);
        (void)snprintf(value, sizeof(value), "%d", i);
        fork = kit_fork(session, NULL, id);
        wal_session_close(session);
        session = fork;
        (void)kit_put(store, session, "k", value);
    }
    wal_session_close(session);
    for (int i = 1; i < 150; i++) {
        char expected[40];

        (void)snprintf(id, sizeof(id), "s%d", i);
        (void)snprintf(expected, sizeof(expected), "k=%d root=0", i);
        session = kit_session(store, id);
        assert_string_equal(kit_docs(store, session, 0, NULL), expected);
        wal_session_close(session);
    }
}

KIT_TEST(document__versions_in_several_segments)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    uint64_t versions[4];

    for (int i = 0; i < 4; i++) {
        char value[8];

        (void)snprintf(value, sizeof(value), "%d", i);
        versions[i] = kit_put(store, session, "k", value);
        (void)kit_put(store, NULL, "k", value);
        fill_segment(store, session);
    }
    assert_true(kit_store_info(store).segments > 2);
    for (int round = 0; round < 4; round++) {
        assert_string_equal(kit_docs(store, session, 0, NULL), "k=3");
        assert_string_equal(kit_docs(store, session, WAL_DOC_CURSOR_HISTORY, "k"),
                            "k=3 k=2 k=1 k=0");
        assert_string_equal(kit_docs(store, NULL, WAL_DOC_CURSOR_HISTORY, NULL), "k=3 k=2 k=1 k=0");
        for (int i = 0; i < 4; i++) {
            char value[8];

            (void)snprintf(value, sizeof(value), "%d", i);
            assert_string_equal(kit_value(store, session, "k", versions[i]), value);
        }
        wal_session_close(session);
        kit_close(store);
        if (round == 1) {
            kit_remove_indexes();
        }
        store = kit_open("store", round % 2 == 0 ? WAL_OPEN_PREAD : 0);
        session = kit_session(store, "s");
    }
}

KIT_TEST(document__handles_see_each_others_documents)
{
    struct wal_store *one = kit_store();
    struct wal_session *a = kit_create(one, "s");
    struct wal_store *two = kit_store();
    struct wal_session *b = kit_session(two, "s");
    struct wal_doc doc = kit_doc("k", "9");
    struct wal_error error = KIT_ERROR;
    uint64_t version = kit_put(one, a, "k", "1");

    assert_string_equal(kit_docs(two, b, 0, NULL), "k=1");
    assert_string_equal(kit_docs(one, a, 0, NULL), "k=1");
    (void)kit_put(two, b, "k", "2");
    (void)kit_put(two, NULL, "shared", "2");
    assert_string_equal(kit_docs(one, a, WAL_DOC_CURSOR_HISTORY, NULL), "k=2 k=1");
    assert_string_equal(kit_docs(one, NULL, 0, NULL), "shared=2");
    doc.flags = WAL_DOC_EXPECT;
    doc.version = version;
    assert_int_equal(wal_doc_put(one, a, &doc, NULL, &error), WAL_ECONFLICT);
    assert_ok(wal_session_delete(b, NULL));
    doc.flags = 0;
    assert_int_equal(wal_doc_put(one, a, &doc, NULL, &error), WAL_ENOTFOUND);
}

enum {
    PROCESSES = 3,
    PUTS = 40
};

/* Each process increments a private document, and one that all share. */
static int run_process(int number)
{
    struct wal_open_options options = {.struct_size = sizeof(options), .lock_timeout_ms = 60000};
    struct wal_session *session = NULL;
    struct wal_store *store = NULL;
    char key[16];

    (void)snprintf(key, sizeof(key), "p%d", number);
    if (wal_open("store", &options, &store, NULL) != WAL_OK ||
        wal_session_open(store, kit_text("s"), &session, NULL) != WAL_OK) {
        return 1;
    }
    for (int i = 1; i <= PUTS; i++) {
        struct wal_doc docs[2];
        struct wal_batch batch = {
            .struct_size = sizeof(batch), .documents = docs, .document_count = 2};
        char value[32];

        (void)snprintf(value, sizeof(value), "[%d,%d]", number, i);
        docs[0] = kit_doc(key, value);
        docs[1] = kit_doc("all", value);
        docs[1].flags = WAL_DOC_STORE;
        if (wal_batch_commit(session, &batch, NULL, NULL, NULL) != WAL_OK) {
            return 2;
        }
    }
    wal_session_close(session);
    return wal_close(store, NULL) == WAL_OK ? 0 : 3;
}

KIT_TEST(document__put_by_several_processes)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    pid_t children[PROCESSES];
    struct wal_doc_cursor_options history = {.struct_size = sizeof(history),
                                             .flags = WAL_DOC_CURSOR_HISTORY};
    struct wal_doc doc = {.struct_size = sizeof(doc)};
    struct wal_doc_cursor *docs = NULL;
    uint64_t before = UINT64_MAX;
    int count = 0;

    wal_session_close(session);
    kit_close(store);
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        WAL__ASSERT(children[i] >= 0);
        if (children[i] == 0) {
            _exit(run_process(i));
        }
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status = 0;

        WAL__ASSERT(waitpid(children[i], &status, 0) == children[i]);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
    store = kit_store();
    session = kit_session(store, "s");
    assert_string_equal(kit_docs(store, session, 0, NULL), "p0=[0,40] p1=[1,40] p2=[2,40]");
    assert_ok(wal_doc_cursor_open(store, NULL, &history, &docs, NULL));
    while (wal_doc_cursor_next(docs, &doc, NULL) == WAL_OK) {
        assert_true(doc.version < before);
        before = doc.version;
        count++;
    }
    assert_int_equal(count, PROCESSES * PUTS);
    wal_doc_cursor_close(docs);
}

/* --- damage --------------------------------------------------------------- */

/* Flips a bit of each occurrence of the text in the first segment. */
static void flip_in(const char *path, const char *text)
{
    int file = open(path, O_RDWR | O_CLOEXEC);
    size_t size = strlen(text);
    struct stat stat;
    char *bytes;
    int count = 0;

    assert_true(file >= 0);
    assert_int_equal(fstat(file, &stat), 0);
    bytes = malloc((size_t)stat.st_size);
    assert_non_null(bytes);
    assert_int_equal(pread(file, bytes, (size_t)stat.st_size, 0), stat.st_size);
    for (size_t at = 0; at + size <= (size_t)stat.st_size; at++) {
        if (memcmp(bytes + at, text, size) == 0) {
            char flipped = (char)(bytes[at + size - 1] ^ 1);

            assert_int_equal(pwrite(file, &flipped, 1, (off_t)(at + size - 1)), 1);
            count++;
        }
    }
    assert_int_equal(count, 1);
    free(bytes);
    (void)close(file);
}

static void flip(const char *text)
{
    flip_in("store/log/0000000000000001.seg", text);
}

/* The undamaged versions of the document and all others are read. The cursor reports the damaged
 * one at its position; it may be put again. */
static void damaged_one(uint32_t flags)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_doc doc = {.struct_size = sizeof(doc)};
    struct wal_error error = KIT_ERROR;
    struct wal_doc_cursor *docs = NULL;
    uint64_t version;

    (void)kit_put(store, session, "a", "1");
    version = kit_put(store, session, "bad", "\"unmistakable one\"");
    (void)kit_put(store, session, "old", "\"unmistakable two\"");
    (void)kit_put(store, session, "z", "1");
    fill_segment(store, session);
    (void)kit_put(store, session, "old", "2");
    wal_session_close(session);
    kit_close(store);
    flip("unmistakable one");
    flip("unmistakable two");
    store = kit_open("store", flags);
    session = kit_session(store, "s");
    assert_ok(wal_doc_cursor_open(store, session, NULL, &docs, &error));
    assert_ok(wal_doc_cursor_next(docs, &doc, &error));
    assert_slice(doc.key, "a");
    assert_int_equal(wal_doc_cursor_next(docs, &doc, &error), WAL_ECORRUPT);
    assert_ok(wal_doc_cursor_next(docs, &doc, &error));
    assert_slice(doc.key, "old");
    assert_slice(doc.value, "2");
    assert_ok(wal_doc_cursor_next(docs, &doc, &error));
    assert_slice(doc.key, "z");
    assert_int_equal(wal_doc_cursor_next(docs, &doc, &error), WAL_END);
    error = KIT_ERROR;
    assert_int_equal(wal_doc_cursor_get(docs, kit_text("bad"), 0, &doc, &error), WAL_ECORRUPT);
    assert_int_equal(error.status, WAL_ECORRUPT);
    assert_ok(wal_doc_cursor_get(docs, kit_text("z"), 0, &doc, &error));
    wal_doc_cursor_close(docs);
    /* Its version is known; a put or a deletion replaces it. */
    doc = kit_doc("bad", "\"unmistakable one\"");
    doc.flags = WAL_DOC_EXPECT;
    doc.version = version + 1;
    assert_int_equal(wal_doc_put(store, session, &doc, NULL, NULL), WAL_ECONFLICT);
    doc.version = version;
    assert_ok(wal_doc_put(store, session, &doc, NULL, NULL));
    assert_string_equal(kit_docs(store, session, 0, NULL),
                        "a=1 bad=\"unmistakable one\" old=2 z=1");
    wal_session_close(session);
    kit_close(store);
}

/* A document whose key is damaged comes first, whatever the prefix; also where the damage is met by
 * a search in an order that was built before. */
KIT_TEST(document__damaged_key_comes_first)
{
    for (int is_ordered = 0; is_ordered < 2; is_ordered++) {
        const char *root = is_ordered != 0 ? "ordered" : "store";
        struct wal_doc_cursor_options options = {.struct_size = sizeof(options),
                                                 .prefix = kit_text("m")};
        struct wal_store *store = kit_open(root, WAL_OPEN_CREATE);
        struct wal_session *session = kit_create(store, "s");
        struct wal_doc doc = {.struct_size = sizeof(doc)};
        struct wal_doc_cursor *docs = NULL;

        (void)kit_put(store, session, "a", "1");
        (void)kit_put(store, session, "m 1", "1");
        (void)kit_put(store, session, "m unmistakable", "1");
        (void)kit_put(store, session, "m z", "1");
        (void)kit_put(store, session, "z", "1");
        fill_segment(store, session);
        if (is_ordered != 0) {
            assert_string_equal(kit_docs(store, session, 0, "m"), "m 1=1 m unmistakable=1 m z=1");
        }
        flip_in(is_ordered != 0 ? "ordered/log/0000000000000001.seg"
                                : "store/log/0000000000000001.seg",
                "m unmistakable");
        assert_ok(wal_doc_cursor_open(store, session, &options, &docs, NULL));
        assert_int_equal(wal_doc_cursor_next(docs, &doc, NULL), WAL_ECORRUPT);
        assert_ok(wal_doc_cursor_next(docs, &doc, NULL));
        assert_slice(doc.key, "m 1");
        assert_ok(wal_doc_cursor_next(docs, &doc, NULL));
        assert_slice(doc.key, "m z");
        assert_int_equal(wal_doc_cursor_next(docs, &doc, NULL), WAL_END);
        wal_doc_cursor_close(docs);
        wal_session_close(session);
        kit_close(store);
    }
}

KIT_TEST(document__damaged_one_does_not_affect_others)
{
    damaged_one(0);
}

KIT_TEST(document__damaged_one_read_without_maps)
{
    damaged_one(WAL_OPEN_PREAD);
}

/* A head whose record is damaged keeps its target, and may be moved. */
KIT_TEST(document__damaged_note_of_a_head)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_head head = kit_head("mark", "a", NULL);

    kit_append_all(session, "a b");
    head.note = kit_text("unmistakable");
    assert_ok(wal_head_move(session, &head, NULL, NULL));
    fill_segment(store, session);
    wal_session_close(session);
    kit_close(store);
    flip("unmistakable");
    store = kit_store();
    session = kit_session(store, "s");
    head = kit_head("mark", "b", "a");
    assert_ok(wal_head_move(session, &head, NULL, NULL));
    assert_string_equal(kit_heads(session), "main=b mark=b");
}
