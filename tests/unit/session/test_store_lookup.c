/*
 * test_store_lookup.c - tests of reading one entry or one document without a
 * cursor, and of pinned slices (SPEC.md 5.5, 5.8).
 */
#include "tests/lib/kit/parts_kit.h"

enum {
    LARGE_SIZE = 300 * 1024 /* kept as a blob */
};

/* A JSON text of LARGE_SIZE bytes; until the next call. */
static const char *large_json(char fill)
{
    static char text[LARGE_SIZE + 1];

    memset(text, fill, LARGE_SIZE);
    text[0] = '"';
    text[LARGE_SIZE - 1] = '"';
    text[LARGE_SIZE] = '\0';
    return text;
}

static void append_large(struct wal_session *session, const char *id, char fill)
{
    const struct wal_entry entry = kit_entry(id, NULL, large_json(fill));

    assert_ok(wal_append(session, &entry, 1, NULL, NULL, NULL));
}

static struct wal_entry get(struct wal_session *session, const char *id,
                            enum wal_status expected)
{
    struct wal_entry entry = WAL_INIT(wal_entry);
    struct wal_error error = WAL_INIT(wal_error);

    assert_int_equal(wal_entry_get(session, kit_text(id), &entry, &error),
                     expected);
    assert_int_equal(error.status, expected);
    return entry;
}

KIT_TEST(entry_get__own_and_shared_entries)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_session *fork;
    struct wal_entry entry;

    kit_append_all(session, "a b");
    entry = get(session, "b", WAL_OK);
    assert_slice(entry.id, "b");
    assert_slice(entry.parent_id, "a");
    assert_int_equal(entry.depth, 1);
    (void)get(session, "z", WAL_ENOTFOUND);
    fork = kit_fork(session, "a", "f");
    kit_append(fork, "c", NULL);
    assert_slice(get(fork, "a", WAL_OK).id, "a");
    assert_slice(get(fork, "c", WAL_OK).parent_id, "a");
    (void)get(fork, "b", WAL_ENOTFOUND);
    wal_session_close(fork);
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(entry_get__large_redacted_and_deleted)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_entry entry;

    kit_append(session, "a", NULL);
    append_large(session, "b", 'x');
    entry = get(session, "b", WAL_OK);
    assert_int_equal(entry.payload.size, LARGE_SIZE);
    assert_memory_equal(entry.payload.data, large_json('x'), LARGE_SIZE);
    assert_ok(
        wal_session_redact(session, kit_text("a"), kit_text(""), NULL, NULL));
    (void)get(session, "a", WAL_EREDACTED);
    assert_ok(wal_session_delete(session, NULL));
    (void)get(session, "b", WAL_ENOTFOUND);
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(entry_get__misuse)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_entry entry = WAL_INIT(wal_entry);

    assert_int_equal(wal_entry_get(NULL, kit_text("a"), &entry, NULL),
                     WAL_EINVAL);
    assert_int_equal(wal_entry_get(session, kit_text("a"), NULL, NULL),
                     WAL_EINVAL);
    entry.struct_size--;
    assert_int_equal(wal_entry_get(session, kit_text("a"), &entry, NULL),
                     WAL_EINVAL);
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(doc_get__of_session_and_store)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_doc doc = WAL_INIT(wal_doc);
    struct wal_doc own = WAL_INIT(wal_doc);
    uint64_t first = kit_put(store, session, "k", "1");
    uint64_t second = kit_put(store, session, "k", "2");

    (void)kit_put(store, NULL, "k", "3");
    assert_ok(wal_doc_get(store, session, kit_text("k"), 0, &own, NULL));
    assert_ok(wal_doc_get(store, NULL, kit_text("k"), 0, &doc, NULL));
    assert_slice(own.value, "2");
    assert_int_equal(own.version, second);
    assert_slice(doc.value, "3");
    assert_ok(wal_doc_get(NULL, session, kit_text("k"), first, &own, NULL));
    assert_slice(own.value, "1");
    assert_int_equal(wal_doc_get(store, session, kit_text("z"), 0, &own, NULL),
                     WAL_ENOTFOUND);
    assert_slice(own.key, "k");
    assert_int_equal(wal_doc_get(NULL, NULL, kit_text("k"), 0, &own, NULL),
                     WAL_EINVAL);
    assert_int_equal(wal_doc_get(store, session, kit_text("k"), 0, NULL, NULL),
                     WAL_EINVAL);
    assert_ok(wal_session_delete(session, NULL));
    assert_int_equal(wal_doc_get(store, session, kit_text("k"), 0, &own, NULL),
                     WAL_ENOTFOUND);
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(append_one__parent_is_the_head)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_append_result result = WAL_INIT(wal_append_result);
    struct wal_entry entry;

    kit_append(session, "a", NULL);
    assert_ok(wal_append_one(session, WAL_TYPE_MESSAGE, WAL_STR("{}"), &result,
                             NULL));
    assert_int_equal(result.appended, 1);
    entry = get(session, result.last_id, WAL_OK);
    assert_slice(entry.parent_id, "a");
    assert_slice(entry.type, "message");
    assert_slice(entry.payload, "{}");
    assert_int_equal(wal_append_one(session, NULL, WAL_STR("{}"), NULL, NULL),
                     WAL_EINVAL);
    assert_int_equal(
        wal_append_one(session, WAL_TYPE_MESSAGE, WAL_STR("{"), NULL, NULL),
        WAL_EBADJSON);
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(pinned__slices_are_valid_until_the_cursor_is_closed)
{
    struct wal_entry_cursor_options options =
        WAL_INIT(wal_entry_cursor_options);
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_entry_cursor *cursor = NULL;
    struct wal_entry entries[4];
    struct wal_entry again = WAL_INIT(wal_entry);

    append_large(session, "a", 'x');
    append_large(session, "b", 'y');
    kit_append_all(session, "c d");
    for (int i = 0; i < 2; i++) {
        assert_ok(wal_session_redact(session, kit_text(&"c\0d"[2 * i]),
                                     kit_text(""), NULL, NULL));
    }
    options.flags = WAL_ENTRY_CURSOR_PINNED | WAL_ENTRY_CURSOR_REDACTED;
    assert_ok(wal_entry_cursor_open(session, &options, &cursor, NULL));
    for (int i = 0; i < 4; i++) {
        entries[i] = (struct wal_entry)WAL_INIT(wal_entry);
        assert_ok(wal_entry_cursor_next(cursor, &entries[i], NULL));
    }
    assert_ok(wal_entry_cursor_get(cursor, kit_text("a"), &again, NULL));
    assert_memory_equal(entries[0].payload.data, large_json('x'), LARGE_SIZE);
    assert_memory_equal(entries[1].payload.data, large_json('y'), LARGE_SIZE);
    assert_memory_equal(again.payload.data, large_json('x'), LARGE_SIZE);
    assert_slice(entries[2].id, "c");
    assert_memory_equal(entries[2].payload.data, "{\"redactedBy\":", 14);
    assert_memory_not_equal(entries[2].payload.data, entries[3].payload.data,
                            entries[2].payload.size);
    wal_entry_cursor_close(cursor);
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(pinned__is_refused_without_maps)
{
    struct wal_entry_cursor_options options =
        WAL_INIT(wal_entry_cursor_options);
    struct wal_error error = WAL_INIT(wal_error);
    struct wal_entry_cursor *cursor = NULL;
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");

    wal_session_close(session);
    kit_close(store);
    store = kit_open("store", WAL_OPEN_PREAD);
    session = kit_session(store, "s");
    options.flags = WAL_ENTRY_CURSOR_PINNED;
    assert_int_equal(wal_entry_cursor_open(session, &options, &cursor, &error),
                     WAL_EINVAL);
    assert_error(&error, WAL_EINVAL, "pinned");
    assert_null(cursor);
    wal_session_close(session);
    kit_close(store);
}
