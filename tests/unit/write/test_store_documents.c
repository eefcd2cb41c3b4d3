/*
 * test_store_documents.c - tests of documents of a session and of the store, across forks,
 * segments, processes, and damage (SPEC.md 5.8).
 */
#include <fcntl.h>
#include <sys/stat.h>

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

/* The session may be passed without its store. */
KIT_TEST(document__of_a_session_needs_no_store)
{
    struct kit_bench bench = kit_bench("");

    (void)kit_put(NULL, bench.session, "k", "1");
    assert_string_equal(kit_docs(NULL, bench.session, 0, NULL), "k=1");
}

/* --- hostile ones --------------------------------------------------------- */

KIT_TEST(document__hostile_keys_are_unchanged)
{
    static const struct wal_slice keys[] = {
        {"\x01", 1}, {"a\0", 2}, {"a\0b", 3}, {"..", 2}, {"/", 1},
        {"\n", 1},   {" ", 1},   {"\"", 1},   {"%s", 2}, {"\xf0\x9f\x98\x80", 4}};
    enum { COUNT = sizeof(keys) / sizeof(keys[0]) };
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

KIT_TEST(document__invalid_values_are_refused)
{
    static const char *const bad[] = {"", " ", "{", "nul", "{\"a\":1,}", "1 2", "\"\xff\""};
    struct kit_bench bench = kit_bench("");
    struct wal_doc doc;
    char *text = test_memory(16 * 1024 * 1024 + 2);

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(attempt(&bench, kit_doc("k", bad[i]), false, NULL, kit_error()),
                         WAL_EBADJSON);
    }
    assert_int_equal(attempt(&bench, kit_doc("k", NULL), false, NULL, kit_error()), WAL_EBADJSON);
    memset(text, ' ', 16 * 1024 * 1024 + 1);
    text[0] = '1';
    text[16 * 1024 * 1024 + 1] = '\0';
    doc = kit_doc("k", text);
    assert_int_equal(attempt(&bench, doc, false, NULL, kit_error()), WAL_ETOOBIG);
    doc.value.size--;
    assert_ok(attempt(&bench, doc, false, NULL, kit_error()));
    text[16 * 1024 * 1024] = '\0';
    assert_string_equal(kit_value(bench.store, bench.session, "k", 0), text);
}

KIT_TEST(document__misuse_is_refused)
{
    struct kit_bench bench = kit_bench("");
    struct wal_store *other = kit_open("other", WAL_OPEN_CREATE);
    struct wal_doc doc = kit_doc("k", "1");
    struct wal_doc_cursor_options options = {.struct_size = sizeof(options)};
    struct wal_doc_cursor *docs = NULL;

    assert_int_equal(wal_doc_put(other, bench.session, &doc, NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_doc_cursor_open(other, bench.session, NULL, &docs, NULL), WAL_EINVAL);
    assert_int_equal(wal_doc_put(NULL, NULL, &doc, NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_doc_put(bench.store, NULL, NULL, NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_doc_cursor_open(NULL, NULL, NULL, &docs, NULL), WAL_EINVAL);
    assert_int_equal(wal_doc_cursor_open(bench.store, bench.session, NULL, NULL, NULL), WAL_EINVAL);
    doc.flags = WAL_DOC_DELETE;
    assert_int_equal(attempt(&bench, doc, false, NULL, kit_error()), WAL_EINVAL);
    doc.flags = WAL_DOC_STORE;
    assert_int_equal(attempt(&bench, doc, false, NULL, kit_error()), WAL_EINVAL);
    doc.flags = 0;
    doc.struct_size--;
    assert_int_equal(attempt(&bench, doc, false, NULL, kit_error()), WAL_EINVAL);
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
