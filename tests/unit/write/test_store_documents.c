/*
 * test_store_documents.c - tests of documents of a session and of the store
 * (SPEC.md 5.8).
 */
#include "tests/lib/kit/parts_kit.h"

struct bench {
    struct wal_store *store;
    struct wal_session *session;
};

static struct bench begin(void)
{
    struct bench bench = {.store = kit_store()};

    bench.session = kit_create(bench.store, "s");
    return bench;
}

static void end(struct bench *bench)
{
    wal_session_close(bench->session);
    kit_close(bench->store);
}

static void reopen(struct bench *bench, uint32_t flags)
{
    end(bench);
    bench->store = kit_open("store", flags);
    bench->session = kit_session(bench->store, "s");
}

/* Puts or deletes, and returns the library's status; a refusal changes
 * nothing. */
static enum wal_status attempt(struct bench *bench, struct wal_doc doc,
                               bool deletes, uint64_t *version,
                               struct wal_error *error)
{
    char *before = kit_snapshot(bench->store, bench->session);
    uint64_t kept = 77;
    enum wal_status status;

    *error = KIT_ERROR;
    status =
        deletes
            ? wal_doc_delete(bench->store, bench->session, &doc, &kept, error)
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
    struct bench bench = begin();
    uint64_t version = kit_put(bench.store, bench.session, "k", "{\"a\":1}");

    assert_int_equal(version, kit_last_sequence(bench.store));
    assert_string_equal(kit_value(bench.store, bench.session, "k", 0),
                        "{\"a\":1}");
    assert_string_equal(kit_value(bench.store, bench.session, "k", version),
                        "{\"a\":1}");
    assert_string_equal(kit_value(bench.store, bench.session, "j", 0), "");
    assert_string_equal(kit_value(bench.store, bench.session, "k", 1), "");
    assert_int_equal(kit_info(bench.session).documents, 1);
    reopen(&bench, 0);
    assert_string_equal(kit_value(bench.store, bench.session, "k", version),
                        "{\"a\":1}");
    end(&bench);
}

/* The session may be passed without its store. */
KIT_TEST(document__of_a_session_needs_no_store)
{
    struct bench bench = begin();

    (void)kit_put(NULL, bench.session, "k", "1");
    assert_string_equal(kit_docs(NULL, bench.session, 0, NULL), "k=1");
    end(&bench);
}

KIT_TEST(document__same_value_writes_nothing)
{
    struct bench bench = begin();
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
    end(&bench);
}

KIT_TEST(document__conflicting_version_is_stale)
{
    struct bench bench = begin();
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
    end(&bench);
}

KIT_TEST(document__deleted_one_keeps_its_versions)
{
    struct bench bench = begin();
    uint64_t first = kit_put(bench.store, bench.session, "k", "1");
    uint64_t second = kit_put(bench.store, bench.session, "k", "2");
    uint64_t gone = kit_delete(bench.store, bench.session, "k");
    struct wal_error error;

    assert_int_equal(attempt(&bench, kit_doc("k", NULL), true, NULL, &error),
                     WAL_ENOTFOUND);
    for (int i = 0; i < 2; i++) {
        assert_string_equal(kit_docs(bench.store, bench.session, 0, NULL), "");
        assert_string_equal(
            kit_docs(bench.store, bench.session, WAL_DOC_CURSOR_HISTORY, NULL),
            "k- k=2 k=1");
        assert_string_equal(
            kit_docs(bench.store, bench.session,
                     WAL_DOC_CURSOR_HISTORY | WAL_DOC_CURSOR_KEYS, NULL),
            "k- k= k=");
        assert_string_equal(kit_value(bench.store, bench.session, "k", 0), "");
        assert_string_equal(kit_value(bench.store, bench.session, "k", gone),
                            "");
        assert_string_equal(kit_value(bench.store, bench.session, "k", second),
                            "2");
        assert_string_equal(kit_value(bench.store, bench.session, "k", first),
                            "1");
        reopen(&bench, i == 0 ? WAL_OPEN_PREAD : 0);
    }
    (void)kit_put(bench.store, bench.session, "k", "2");
    assert_string_equal(
        kit_docs(bench.store, bench.session, WAL_DOC_CURSOR_HISTORY, NULL),
        "k=2 k- k=2 k=1");
    end(&bench);
}

KIT_TEST(document__list_is_in_the_order_of_the_keys_bytes)
{
    static const char *const keys[] = {"b",  "a/2", "B", "a",    "\xc3\xa9",
                                       "a/", "~",   "!", "a/10", "ab"};
    struct bench bench = begin();

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        (void)kit_put(bench.store, bench.session, keys[i], "1");
    }
    (void)kit_delete(bench.store, bench.session, "ab");
    for (int i = 0; i < 2; i++) {
        assert_string_equal(kit_docs(bench.store, bench.session, 0, NULL),
                            "!=1 B=1 a=1 a/=1 a/10=1 a/2=1 b=1 ~=1 "
                            "\xc3\xa9=1");
        assert_string_equal(kit_docs(bench.store, bench.session, 0, "a"),
                            "a=1 a/=1 a/10=1 a/2=1");
        assert_string_equal(kit_docs(bench.store, bench.session, 0, "a/"),
                            "a/=1 a/10=1 a/2=1");
        assert_string_equal(kit_docs(bench.store, bench.session, 0, "a/2"),
                            "a/2=1");
        assert_string_equal(kit_docs(bench.store, bench.session, 0, "a/20"),
                            "");
        reopen(&bench, WAL_OPEN_PREAD);
    }
    end(&bench);
}

KIT_TEST(document__list_is_a_snapshot_of_its_opening)
{
    struct bench bench = begin();
    struct wal_doc doc = {.struct_size = sizeof(doc)};
    struct wal_doc_cursor *docs = NULL;

    (void)kit_put(bench.store, bench.session, "a", "1");
    (void)kit_put(bench.store, bench.session, "b", "1");
    assert_ok(
        wal_doc_cursor_open(bench.store, bench.session, NULL, &docs, NULL));
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
    assert_int_equal(wal_doc_cursor_get(docs, kit_text("b"), 0, &doc, NULL),
                     WAL_ENOTFOUND);
    wal_doc_cursor_close(docs);
    end(&bench);
}

KIT_TEST(document__of_the_store_is_in_no_session)
{
    struct bench bench = begin();
    struct wal_store_info info = {.struct_size = sizeof(info)};
    struct wal_session *named = kit_create(bench.store, "store");

    (void)kit_put(bench.store, NULL, "k", "\"store\"");
    (void)kit_put(bench.store, bench.session, "k", "\"s\"");
    (void)kit_put(bench.store, named, "k", "\"named\"");
    for (int i = 0; i < 2; i++) {
        assert_string_equal(kit_docs(bench.store, NULL, 0, NULL),
                            "k=\"store\"");
        assert_string_equal(kit_docs(bench.store, bench.session, 0, NULL),
                            "k=\"s\"");
        assert_string_equal(kit_docs(bench.store, named, 0, NULL),
                            "k=\"named\"");
        assert_ok(wal_store_get_info(bench.store, &info, NULL));
        assert_int_equal(info.sessions, 2);
        wal_session_close(named);
        reopen(&bench, 0);
        named = kit_session(bench.store, "store");
    }
    assert_ok(wal_session_delete(named, NULL));
    wal_session_close(named);
    assert_int_equal(
        wal_session_open(bench.store, kit_text("store"), &named, NULL),
        WAL_ENOTFOUND);
    (void)kit_delete(bench.store, NULL, "k");
    assert_string_equal(
        kit_docs(bench.store, NULL, WAL_DOC_CURSOR_HISTORY, NULL),
        "k- k=\"store\"");
    end(&bench);
}

KIT_TEST(document__store_without_any)
{
    struct bench bench = begin();
    struct wal_doc doc = kit_doc("k", NULL);

    assert_string_equal(kit_docs(bench.store, NULL, 0, NULL), "");
    assert_string_equal(kit_value(bench.store, NULL, "k", 0), "");
    assert_int_equal(wal_doc_delete(bench.store, NULL, &doc, NULL, NULL),
                     WAL_ENOTFOUND);
    assert_string_equal(kit_docs(bench.store, bench.session, 0, NULL), "");
    end(&bench);
}

/* --- hostile ones --------------------------------------------------------- */

KIT_TEST(document__hostile_keys_are_unchanged)
{
    static const struct wal_slice keys[] = {
        {"\x01", 1}, {"a\0", 2},
        {"a\0b", 3}, {"..", 2},
        {"/", 1},    {"\n", 1},
        {" ", 1},    {"\"", 1},
        {"%s", 2},   {"\xf0\x9f\x98\x80", 4}};
    enum {
        COUNT = sizeof(keys) / sizeof(keys[0])
    };
    struct bench bench = begin();
    struct wal_doc doc;
    struct wal_doc_cursor *docs = NULL;

    for (size_t i = 0; i < COUNT; i++) {
        char value[8];

        (void)snprintf(value, sizeof(value), "%zu", i);
        doc = kit_doc(NULL, value);
        doc.key = keys[i];
        assert_ok(wal_doc_put(bench.store, bench.session, &doc, NULL, NULL));
    }
    reopen(&bench, WAL_OPEN_PREAD);
    assert_ok(
        wal_doc_cursor_open(bench.store, bench.session, NULL, &docs, NULL));
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
    end(&bench);
}

KIT_TEST(document__invalid_keys_are_refused)
{
    struct bench bench = begin();
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
    reopen(&bench, 0);
    text[1024] = '\0';
    assert_string_equal(kit_value(bench.store, bench.session, text, 0), "1");
    end(&bench);
}

KIT_TEST(document__invalid_values_are_refused)
{
    static const char *const bad[] = {"",           " ",   "{",       "nul",
                                      "{\"a\":1,}", "1 2", "\"\xff\""};
    struct bench bench = begin();
    struct wal_error error;
    struct wal_doc doc;
    char *text = malloc(16 * 1024 * 1024 + 2);

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(
            attempt(&bench, kit_doc("k", bad[i]), false, NULL, &error),
            WAL_EBADJSON);
    }
    assert_int_equal(attempt(&bench, kit_doc("k", NULL), false, NULL, &error),
                     WAL_EBADJSON);
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
    end(&bench);
}

KIT_TEST(document__misuse_is_refused)
{
    struct bench bench = begin();
    struct wal_store *other = kit_open("other", WAL_OPEN_CREATE);
    struct wal_doc doc = kit_doc("k", "1");
    struct wal_doc_cursor_options options = {.struct_size = sizeof(options)};
    struct wal_doc_cursor *docs = NULL;
    struct wal_error error;

    assert_int_equal(wal_doc_put(other, bench.session, &doc, NULL, NULL),
                     WAL_EINVAL);
    assert_int_equal(
        wal_doc_cursor_open(other, bench.session, NULL, &docs, NULL),
        WAL_EINVAL);
    assert_int_equal(wal_doc_put(NULL, NULL, &doc, NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_doc_put(bench.store, NULL, NULL, NULL, NULL),
                     WAL_EINVAL);
    assert_int_equal(wal_doc_cursor_open(NULL, NULL, NULL, &docs, NULL),
                     WAL_EINVAL);
    assert_int_equal(
        wal_doc_cursor_open(bench.store, bench.session, NULL, NULL, NULL),
        WAL_EINVAL);
    doc.flags = WAL_DOC_DELETE;
    assert_int_equal(attempt(&bench, doc, false, NULL, &error), WAL_EINVAL);
    doc.flags = WAL_DOC_STORE;
    assert_int_equal(attempt(&bench, doc, false, NULL, &error), WAL_EINVAL);
    doc.flags = 0;
    doc.struct_size--;
    assert_int_equal(attempt(&bench, doc, false, NULL, &error), WAL_EINVAL);
    options.flags = 1u << 7;
    assert_int_equal(
        wal_doc_cursor_open(bench.store, bench.session, &options, &docs, NULL),
        WAL_EINVAL);
    options.flags = 0;
    options.struct_size = 1;
    assert_int_equal(
        wal_doc_cursor_open(bench.store, bench.session, &options, &docs, NULL),
        WAL_EINVAL);
    assert_null(docs);
    assert_ok(
        wal_doc_cursor_open(bench.store, bench.session, NULL, &docs, NULL));
    doc = (struct wal_doc){.struct_size = 3};
    assert_int_equal(wal_doc_cursor_next(docs, &doc, NULL), WAL_EINVAL);
    assert_int_equal(wal_doc_cursor_next(docs, NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_doc_cursor_get(docs, kit_text("k"), 0, &doc, NULL),
                     WAL_EINVAL);
    assert_int_equal(wal_doc_cursor_next(NULL, &doc, NULL), WAL_EINVAL);
    wal_doc_cursor_close(docs);
    wal_doc_cursor_close(NULL);
    kit_close(other);
    end(&bench);
}

KIT_TEST(document__store_open_for_reading)
{
    struct bench bench = begin();
    struct wal_doc doc = kit_doc("k", "2");

    (void)kit_put(bench.store, bench.session, "k", "1");
    reopen(&bench, WAL_OPEN_READ_ONLY);
    assert_string_equal(kit_docs(bench.store, bench.session, 0, NULL), "k=1");
    assert_int_equal(wal_doc_put(bench.store, bench.session, &doc, NULL, NULL),
                     WAL_EREADONLY);
    assert_int_equal(wal_doc_put(bench.store, NULL, &doc, NULL, NULL),
                     WAL_EREADONLY);
    end(&bench);
}
