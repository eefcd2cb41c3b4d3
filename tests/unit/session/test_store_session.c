/*
 * test_store_session.c - tests of creating, opening, describing, finding and continuing sessions
 * (SPEC.md 5.4), and of reading one entry or one document without a cursor, and of pinned slices
 * (SPEC.md 5.5, 5.8).
 */
#include <ctype.h>

#include "agentwal/admin.h"
#include "tests/lib/kit/parts_kit.h"
#include "tests/lib/kit/store_kit.h"

struct both {
    struct wal_store *store;
    struct wal_error error;
};

static enum wal_status try_create(struct both *both, const struct wal_session_options *options)
{
    struct wal_session *session = NULL;
    enum wal_status status;

    both->error = KIT_ERROR;
    status = wal_session_create(both->store, options, &session, &both->error);
    if (status == WAL_OK) {
        wal_session_close(session);
    } else {
        assert_null(session);
    }
    return status;
}

/* Sessions that are only written share a sync. Other syncs, of new segments and of an idle store,
 * are few. */
KIT_TEST(create__without_a_sync)
{
    struct wal_store *store = kit_store();
    struct wal_store_info before = {.struct_size = sizeof(before)};
    struct wal_store_info after = {.struct_size = sizeof(after)};
    struct wal_session_options options = {.struct_size = sizeof(options),
                                          .durability = WAL_WRITTEN};
    struct wal_session *first = kit_create(store, "first");
    struct wal_session *fork = NULL;

    assert_ok(wal_store_get_info(store, &before, NULL));
    for (unsigned i = 0; i < 25; i++) {
        wal_session_close(kit_create_with(store, &options));
        assert_ok(wal_session_fork(first, kit_text(""), &options, &fork, NULL));
        wal_session_close(fork);
    }
    assert_ok(wal_store_get_info(store, &after, NULL));
    assert_true(after.syncs - before.syncs < 20);
    assert_ok(wal_sync(store, NULL));
    wal_session_close(first);
    kit_close(store);
    store = kit_open("store", 0);
    assert_ok(wal_store_get_info(store, &after, NULL));
    assert_int_equal(after.sessions, 51);
}

KIT_TEST(create__durability_that_is_no_session_s)
{
    struct both both = {.store = kit_store()};
    struct wal_session_options options = {.struct_size = sizeof(options)};

    for (options.durability = WAL_QUEUED; options.durability <= WAL_CLUSTER + 1;
         options.durability++) {
        assert_int_equal(try_create(&both, &options), WAL_EINVAL);
    }
}

KIT_TEST(create__without_options_makes_a_uuid_of_version_7)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = NULL;
    char last[37] = "";

    for (int i = 0; i < 50; i++) {
        struct wal_session_info info;
        char id[37] = "";

        session = kit_create_with(store, NULL);
        info = kit_info(session);
        assert_int_equal(info.id.size, 36);
        assert_int_equal(info.schema_version, 1);
        memcpy(id, info.id.data, 36);
        for (int k = 0; k < 36; k++) {
            if (k == 8 || k == 13 || k == 18 || k == 23) {
                assert_int_equal(id[k], '-');
            } else {
                assert_true(isxdigit((unsigned char)id[k]));
                assert_false(isupper((unsigned char)id[k]));
            }
        }
        assert_int_equal(id[14], '7');
        assert_non_null(strchr("89ab", id[19]));
        assert_string_not_equal(id, last);
        memcpy(last, id, sizeof(last));
        wal_session_close(session);
    }
    assert_int_equal(kit_store_info(store).sessions, 50);
}

KIT_TEST(create__ids_have_1_to_255_bytes_of_utf8)
{
    struct both both = {.store = kit_store()};
    struct wal_session_options options = {.struct_size = sizeof(options)};
    struct wal_session *session;
    char id[257];
    static const char *const bad[] = {"\xff", "a\xc0\x80", "\xed\xa0\x80", "\xe4\xb8"};

    memset(id, 'x', 256);
    id[256] = '\0';
    options.id = kit_text(id);
    assert_int_equal(try_create(&both, &options), WAL_EINVAL);
    assert_error(&both.error, WAL_EINVAL, "255");
    options.id.size = 0;
    assert_int_equal(try_create(&both, &options), WAL_EINVAL);
    assert_error(&both.error, WAL_EINVAL, "empty");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        options.id = kit_text(bad[i]);
        assert_int_equal(try_create(&both, &options), WAL_EINVAL);
        assert_error(&both.error, WAL_EINVAL, "UTF-8");
    }
    options.id.data = NULL;
    options.id.size = 3;
    assert_int_equal(try_create(&both, &options), WAL_EINVAL);
    id[255] = '\0';
    session = kit_create(both.store, id);
    assert_slice(kit_info(session).id, id);
    wal_session_close(session);
    wal_session_close(kit_session(both.store, id));
}

KIT_TEST(create__texts_are_bounded)
{
    struct both both = {.store = kit_store()};
    char *text = test_memory(1024 * 1024 + 8);
    struct wal_session *session = NULL;
    struct wal_session_info info;

    memset(text, ' ', 1024 * 1024 + 8);
    text[0] = '{';
    text[1] = '}';
    for (int i = 0; i < 5; i++) {
        struct wal_session_options options = {.struct_size = sizeof(options)};
        struct wal_slice *const fields[] = {&options.cwd, &options.project, &options.title,
                                            &options.source, &options.metadata};
        uint64_t most = i == 4 ? 1024 * 1024 : 4096;

        fields[i]->data = text;
        fields[i]->size = most + 1;
        assert_int_equal(try_create(&both, &options), WAL_ETOOBIG);
        fields[i]->size = most;
        assert_ok(try_create(&both, &options));
    }
    struct wal_session_options all = {.struct_size = sizeof(all),
                                      .cwd = {text, 4096},
                                      .project = {text, 4096},
                                      .title = {text, 4096},
                                      .source = {text, 4096},
                                      .metadata = {text, 1024 * 1024}};

    session = kit_create_with(both.store, &all);
    info = kit_info(session);
    assert_int_equal(info.metadata.size, 1024 * 1024);
    assert_memory_equal(info.metadata.data, text, 1024 * 1024);
    assert_int_equal(info.title.size, 4096);
    assert_memory_equal(info.title.data, text, 4096);
}

KIT_TEST(create__misuse_is_refused)
{
    struct both both = {.store = kit_store()};
    struct wal_session_options options = {.struct_size = sizeof(options) - 1};
    struct wal_session *session = NULL;

    assert_int_equal(try_create(&both, &options), WAL_EINVAL);
    assert_error(&both.error, WAL_EINVAL, "struct_size");
    assert_int_equal(wal_session_create(both.store, NULL, NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_session_create(NULL, NULL, &session, NULL), WAL_EINVAL);
    assert_null(session);
}

KIT_TEST(open__missing_session)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = NULL;
    struct wal_error error = KIT_ERROR;

    assert_int_equal(wal_session_open(store, kit_text("s"), &session, &error), WAL_ENOTFOUND);
    assert_null(session);
    assert_error(&error, WAL_ENOTFOUND, "\"s\"");
    assert_string_equal(error.file, "store");
    assert_int_equal(wal_session_open(store, kit_text(NULL), &session, NULL), WAL_ENOTFOUND);
    assert_int_equal(wal_session_open(store, kit_text("s"), NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_session_open(NULL, kit_text("s"), &session, NULL), WAL_EINVAL);
}

KIT_TEST(session_info__follows_appends)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_session *other = kit_session(store, "s");
    struct wal_entry transcript = kit_entry("t", NULL, "1");
    struct wal_session_info before = kit_info(session);
    struct wal_session_info info;

    kit_append_all(session, "a b c");
    transcript.stream = 1;
    assert_ok(kit_try_append(session, &transcript, NULL, NULL));
    info = kit_info(other);
    assert_int_equal(info.entries, 3);
    assert_slice(info.head, "c");
    assert_int_equal(info.last_sequence, 5);
    assert_true(info.bytes > before.bytes + 4 * 48);
    assert_true(info.updated_ms >= before.updated_ms);
    assert_int_equal(info.created_ms, before.created_ms);
    wal_session_close(session);
    wal_session_close(other);
    kit_close(store);
    store = kit_open("store", 0);
    session = kit_session(store, "s");
    other = kit_session(store, "s");
    assert_int_equal(kit_info(session).bytes, info.bytes);
    assert_int_equal(kit_info(session).updated_ms, info.updated_ms);
    assert_slice(kit_info(session).head, "c");
}

KIT_TEST(session_info__slices_are_valid_until_the_next_call)
{
    struct wal_store *store = kit_store();
    struct wal_session *one = kit_create(store, "one");
    struct wal_session *two = kit_create(store, "two");
    struct wal_session_info info = kit_info(one);

    (void)kit_info(two);
    kit_append_all(one, "a b c d e f g h");
    assert_slice(info.id, "one");
    assert_slice(info.head, "");
}

KIT_TEST(session_info__misuse_is_refused)
{
    struct wal_session *session = kit_create(kit_store(), "s");
    struct wal_session_info info = {.struct_size = 7};

    assert_int_equal(wal_session_get_info(session, &info, NULL), WAL_EINVAL);
    assert_int_equal(wal_session_get_info(session, NULL, NULL), WAL_EINVAL);
    info.struct_size = sizeof(info);
    assert_int_equal(wal_session_get_info(NULL, &info, NULL), WAL_EINVAL);
}

KIT_TEST(accept__intact_session_is_unchanged)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");

    kit_append(session, "a", NULL);
    assert_ok(wal_session_accept_damage(session, NULL));
    kit_append(session, "b", NULL);
    assert_branch(session, "a b");
    assert_int_equal(kit_info(session).flags, 0);
    wal_session_close(session);
    kit_close(store);
    store = kit_open("store", 0);
    session = kit_session(store, "s");
    assert_branch(session, "a b");
}

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

static struct wal_entry get(struct wal_session *session, const char *id, enum wal_status expected)
{
    struct wal_entry entry = WAL_INIT(wal_entry);
    struct wal_error error = WAL_INIT(wal_error);

    assert_int_equal(wal_entry_get(session, kit_text(id), &entry, &error), expected);
    assert_int_equal(error.status, expected);
    return entry;
}

KIT_TEST(entry_get__large_redacted_and_deleted)
{
    struct wal_session *session = kit_create(kit_store(), "s");
    struct wal_entry entry;

    kit_append(session, "a", NULL);
    append_large(session, "b", 'x');
    entry = get(session, "b", WAL_OK);
    assert_int_equal(entry.payload.size, LARGE_SIZE);
    assert_memory_equal(entry.payload.data, large_json('x'), LARGE_SIZE);
    assert_ok(wal_session_redact(session, kit_text("a"), kit_text(""), NULL, NULL));
    (void)get(session, "a", WAL_EREDACTED);
    assert_ok(wal_session_delete(session, NULL));
    (void)get(session, "b", WAL_ENOTFOUND);
}

KIT_TEST(entry_get__misuse)
{
    struct wal_session *session = kit_create(kit_store(), "s");
    struct wal_entry entry = WAL_INIT(wal_entry);

    assert_int_equal(wal_entry_get(NULL, kit_text("a"), &entry, NULL), WAL_EINVAL);
    assert_int_equal(wal_entry_get(session, kit_text("a"), NULL, NULL), WAL_EINVAL);
    entry.struct_size--;
    assert_int_equal(wal_entry_get(session, kit_text("a"), &entry, NULL), WAL_EINVAL);
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
    assert_int_equal(wal_doc_get(store, session, kit_text("z"), 0, &own, NULL), WAL_ENOTFOUND);
    assert_slice(own.key, "k");
    assert_int_equal(wal_doc_get(NULL, NULL, kit_text("k"), 0, &own, NULL), WAL_EINVAL);
    assert_int_equal(wal_doc_get(store, session, kit_text("k"), 0, NULL, NULL), WAL_EINVAL);
    assert_ok(wal_session_delete(session, NULL));
    assert_int_equal(wal_doc_get(store, session, kit_text("k"), 0, &own, NULL), WAL_ENOTFOUND);
}

KIT_TEST(append_one__parent_is_the_head)
{
    struct wal_session *session = kit_create(kit_store(), "s");
    struct wal_append_result result = WAL_INIT(wal_append_result);
    struct wal_entry entry;

    kit_append(session, "a", NULL);
    assert_ok(wal_append_one(session, WAL_TYPE_MESSAGE, WAL_STR("{}"), &result, NULL));
    assert_int_equal(result.appended, 1);
    entry = get(session, result.last_id, WAL_OK);
    assert_slice(entry.parent_id, "a");
    assert_slice(entry.type, "message");
    assert_slice(entry.payload, "{}");
    assert_int_equal(wal_append_one(session, NULL, WAL_STR("{}"), NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_append_one(session, WAL_TYPE_MESSAGE, WAL_STR("{"), NULL, NULL),
                     WAL_EBADJSON);
}

KIT_TEST(pinned__slices_are_valid_until_the_cursor_is_closed)
{
    struct wal_entry_cursor_options options = WAL_INIT(wal_entry_cursor_options);
    struct wal_session *session = kit_create(kit_store(), "s");
    struct wal_entry_cursor *cursor = NULL;
    struct wal_entry entries[4];
    struct wal_entry again = WAL_INIT(wal_entry);

    append_large(session, "a", 'x');
    append_large(session, "b", 'y');
    kit_append_all(session, "c d");
    for (int i = 0; i < 2; i++) {
        assert_ok(wal_session_redact(session, kit_text(&"c\0d"[2 * i]), kit_text(""), NULL, NULL));
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
}

KIT_TEST(pinned__is_refused_without_maps)
{
    struct wal_entry_cursor_options options = WAL_INIT(wal_entry_cursor_options);
    struct wal_error error = WAL_INIT(wal_error);
    struct wal_entry_cursor *cursor = NULL;
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");

    wal_session_close(session);
    kit_close(store);
    store = kit_open("store", WAL_OPEN_PREAD);
    session = kit_session(store, "s");
    options.flags = WAL_ENTRY_CURSOR_PINNED;
    assert_int_equal(wal_entry_cursor_open(session, &options, &cursor, &error), WAL_EINVAL);
    assert_error(&error, WAL_EINVAL, "pinned");
    assert_null(cursor);
}

struct bench {
    struct wal_store *store;
};

static void create_in(struct wal_store *store, const char *id, const char *cwd)
{
    struct wal_session_options options = {
        .struct_size = sizeof(options), .id = kit_text(id), .cwd = kit_text(cwd)};
    struct wal_session *session = NULL;

    session = kit_create_with(store, &options);
    kit_append_all(session, "a b c");
    wal_session_close(session);
}

/* one and two are of /x, three of /y. */
static struct bench begin(void)
{
    struct bench bench = {.store = kit_store()};

    create_in(bench.store, "one", "/x");
    create_in(bench.store, "two", "/x");
    create_in(bench.store, "three", "/y");
    return bench;
}

static const char *latest(struct bench *bench, const char *cwd)
{
    static char id[256];
    struct wal_session *session = NULL;
    enum wal_status status = wal_session_open_latest(bench->store, kit_text(cwd), &session, NULL);
    struct wal_session_info info;

    if (status == WAL_ENOTFOUND) {
        assert_null(session);
        return "";
    }
    assert_ok(status);
    info = kit_info(session);
    (void)snprintf(id, sizeof(id), "%.*s", (int)info.id.size, (const char *)info.id.data);
    wal_session_close(session);
    return id;
}

KIT_TEST(latest__of_an_empty_store)
{
    struct bench bench = {.store = kit_store()};

    assert_string_equal(latest(&bench, NULL), "");
    (void)kit_put(bench.store, NULL, "k", "1");
    assert_string_equal(latest(&bench, NULL), "");
    assert_int_equal(wal_session_open_latest(bench.store, kit_text(NULL), NULL, NULL), WAL_EINVAL);
}

/* --- open or create ------------------------------------------------------ */

KIT_TEST(open_or_create__null_options_and_null_flag)
{
    struct bench bench = begin();
    struct wal_session *session = NULL;

    assert_ok(wal_session_open_or_create(bench.store, NULL, &session, NULL, NULL));
    assert_slice(kit_info(session).id, "three");
    wal_session_close(session);
}

KIT_TEST(open_or_create__misuse_and_store_open_for_reading)
{
    struct bench bench = begin();
    struct wal_session_options options = {.struct_size = sizeof(options), .id = kit_text("four")};
    struct wal_error error = KIT_ERROR;
    struct wal_session *session = NULL;
    int32_t created = -1;

    assert_int_equal(wal_session_open_or_create(NULL, &options, &session, &created, &error),
                     WAL_EINVAL);
    assert_int_equal(wal_session_open_or_create(bench.store, &options, NULL, &created, &error),
                     WAL_EINVAL);
    options.struct_size--;
    assert_int_equal(wal_session_open_or_create(bench.store, &options, &session, &created, &error),
                     WAL_EINVAL);
    options.struct_size++;
    kit_close(bench.store);
    bench.store = kit_open("store", WAL_OPEN_READ_ONLY);
    assert_int_equal(wal_session_open_or_create(bench.store, &options, &session, &created, &error),
                     WAL_EREADONLY);
    assert_int_equal(error.status, WAL_EREADONLY);
    assert_null(session);
    assert_int_equal(created, -1);
}
