/*
 * test_store_list.c - tests of listing sessions: filters, lineage, deletion,
 * and the fields of each session.
 */
#include "tests/lib/kit/store_kit.h"

/* The ids of a list on one line, valid until the next call. */
static const char *listed(struct wal_store *store,
                          const struct wal_session_cursor_options *options)
{
    static char text[4096];
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_session_cursor *list = NULL;
    enum wal_status status;

    text[0] = '\0';
    assert_ok(wal_session_cursor_open(store, options, &list, NULL));
    while ((status = wal_session_cursor_next(list, &info, NULL)) == WAL_OK) {
        size_t size = strlen(text);

        (void)snprintf(text + size, sizeof(text) - size, "%s%.*s",
                       size == 0 ? "" : " ", (int)info.id.size,
                       (const char *)info.id.data);
        assert_int_equal(info.metadata.size, 0);
    }
    assert_int_equal(status, WAL_END);
    assert_int_equal(wal_session_cursor_next(list, &info, NULL), WAL_END);
    wal_session_cursor_close(list);
    return text;
}

static void add(struct wal_store *store, const char *id, const char *cwd,
                const char *project, const char *source, const char *parent)
{
    struct wal_session_options options = {.struct_size = sizeof(options),
                                          .id = kit_text(id),
                                          .cwd = kit_text(cwd),
                                          .project = kit_text(project),
                                          .source = kit_text(source),
                                          .parent_id = kit_text(parent),
                                          .metadata = kit_text("{\"m\":1}")};
    struct wal_session *session = NULL;

    assert_ok(wal_session_create(store, &options, &session, NULL));
    wal_session_close(session);
}

static struct wal_store *reopen(struct wal_store *store)
{
    kit_close(store);
    return kit_open("store", 0);
}

KIT_TEST(list__of_an_empty_store)
{
    struct wal_store *store = kit_store();

    assert_string_equal(listed(store, NULL), "");
    store = reopen(store);
    assert_string_equal(listed(store, NULL), "");
    kit_close(store);
}

KIT_TEST(list__newest_first)
{
    struct wal_store *store = kit_store();
    struct wal_session *session;

    add(store, "a", "", "", "", "");
    add(store, "b", "", "", "", "");
    add(store, "c", "", "", "", "");
    assert_string_equal(listed(store, NULL), "c b a");
    session = kit_session(store, "a");
    kit_append(session, "e", NULL);
    assert_string_equal(listed(store, NULL), "a c b");
    wal_session_close(session);
    store = reopen(store);
    assert_string_equal(listed(store, NULL), "a c b");
    session = kit_session(store, "b");
    wal_session_close(kit_fork(session, NULL, "d"));
    assert_string_equal(listed(store, NULL), "d a c b");
    wal_session_close(session);
    kit_close(store);
}

static void check_filters(struct wal_store *store)
{
    struct wal_session_cursor_options cwd = {.struct_size = sizeof(cwd),
                                             .cwd = kit_text("/w")};
    struct wal_session_cursor_options project = {.struct_size = sizeof(project),
                                                 .project = kit_text("p")};
    struct wal_session_cursor_options prefix = {.struct_size = sizeof(prefix),
                                                .prefix = kit_text("ab")};
    struct wal_session_cursor_options source = {.struct_size = sizeof(source),
                                                .source = kit_text("x.jsonl")};
    struct wal_session_cursor_options parent = {.struct_size = sizeof(parent),
                                                .parent = kit_text("ab1")};
    struct wal_session_cursor_options all = {.struct_size = sizeof(all),
                                             .cwd = kit_text("/w"),
                                             .project = kit_text("p"),
                                             .prefix = kit_text("a"),
                                             .source = kit_text("x.jsonl")};

    assert_string_equal(listed(store, &cwd), "ab3 ab1");
    assert_string_equal(listed(store, &project), "b ab1");
    assert_string_equal(listed(store, &prefix), "ab3 ab2 ab1");
    assert_string_equal(listed(store, &source), "b ab1");
    assert_string_equal(listed(store, &parent), "ab3 ab2");
    assert_string_equal(listed(store, &all), "ab1");
    cwd.cwd = kit_text("/");
    assert_string_equal(listed(store, &cwd), "");
    prefix.prefix = kit_text("ab10");
    assert_string_equal(listed(store, &prefix), "");
}

KIT_TEST(list__every_filter)
{
    struct wal_store *store = kit_store();

    add(store, "ab1", "/w", "p", "x.jsonl", "");
    add(store, "ab2", "/w/x", "", "", "ab1");
    add(store, "ab3", "/w", "q", "y.jsonl", "ab1");
    add(store, "b", "", "p", "x.jsonl", "ab");
    check_filters(store);
    store = reopen(store);
    check_filters(store);
    kit_close(store);
}

KIT_TEST(list__describes_each_session)
{
    struct wal_store *store = kit_store();
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_session_info whole;
    struct wal_session *session;
    struct wal_session_cursor *list = NULL;

    add(store, "s", "/w", "p", "f", "q");
    session = kit_session(store, "s");
    kit_append_all(session, "a b");
    whole = kit_info(session);
    assert_ok(wal_session_cursor_open(store, NULL, &list, NULL));
    assert_ok(wal_session_cursor_next(list, &info, NULL));
    assert_slice(info.cwd, "/w");
    assert_slice(info.project, "p");
    assert_slice(info.source, "f");
    assert_slice(info.parent_id, "q");
    assert_slice(info.head, "b");
    assert_int_equal(info.number, whole.number);
    assert_int_equal(info.entries, 2);
    assert_int_equal(info.bytes, whole.bytes);
    assert_int_equal(info.created_ms, whole.created_ms);
    assert_int_equal(info.updated_ms, whole.updated_ms);
    assert_int_equal(info.last_sequence, whole.last_sequence);
    assert_int_equal(info.schema_version, whole.schema_version);
    assert_int_equal(info.schema_version, 1);
    assert_int_equal(info.documents, 0);
    assert_int_equal(info.metadata_version, 0);
    assert_int_equal(whole.metadata_version, 1);
    assert_slice(whole.metadata, "{\"m\":1}");
    wal_session_cursor_close(list);
    wal_session_close(session);
    kit_close(store);
}

/* The list is a snapshot: no session twice, none missing. */
KIT_TEST(list__while_appending)
{
    enum {
        COUNT = 40
    };
    struct wal_store *store = kit_store();
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_session_cursor *list = NULL;
    bool seen[COUNT] = {false};
    int count = 0;

    for (int i = 0; i < COUNT; i++) {
        char id[16];

        (void)snprintf(id, sizeof(id), "s%d", i);
        add(store, id, "", "", "", "");
        if (i == COUNT / 2) {
            store = reopen(store);
        }
    }
    assert_ok(wal_session_cursor_open(store, NULL, &list, NULL));
    while (wal_session_cursor_next(list, &info, NULL) == WAL_OK) {
        char id[16] = "";
        struct wal_session *session;
        int number;

        assert_in_range(info.id.size, 2, 3);
        memcpy(id, info.id.data, info.id.size);
        number = atoi(id + 1);
        assert_in_range(number, 0, COUNT - 1);
        assert_false(seen[number]);
        seen[number] = true;
        count++;
        (void)snprintf(id, sizeof(id), "s%d", (number * 7 + 3) % COUNT);
        session = kit_session(store, id);
        (void)snprintf(id, sizeof(id), "e%d", count);
        kit_append(session, id, NULL);
        wal_session_close(session);
        (void)snprintf(id, sizeof(id), "n%d", count);
        add(store, id, "", "", "", "");
    }
    assert_int_equal(count, COUNT);
    wal_session_cursor_close(list);
    kit_close(store);
}

KIT_TEST(list__misuse_is_refused)
{
    struct wal_store *store = kit_store();
    struct wal_session_cursor_options options = {.struct_size = 4};
    struct wal_session_info info = {.struct_size = 4};
    struct wal_session_cursor *list = NULL;
    char cursor[WAL_CURSOR_TEXT_SIZE];

    assert_int_equal(wal_session_cursor_open(store, &options, &list, NULL),
                     WAL_EINVAL);
    options.struct_size = sizeof(options);
    options.flags = 1;
    assert_int_equal(wal_session_cursor_open(store, &options, &list, NULL),
                     WAL_EINVAL);
    options.flags = 4;
    assert_int_equal(wal_session_cursor_open(store, &options, &list, NULL),
                     WAL_EINVAL);
    options.flags = 0;
    options.cwd = kit_text("\xff");
    assert_int_equal(wal_session_cursor_open(store, &options, &list, NULL),
                     WAL_EINVAL);
    assert_int_equal(wal_session_cursor_open(store, NULL, NULL, NULL),
                     WAL_EINVAL);
    assert_int_equal(wal_session_cursor_open(NULL, NULL, &list, NULL),
                     WAL_EINVAL);
    assert_null(list);
    assert_ok(wal_session_cursor_open(store, NULL, &list, NULL));
    assert_int_equal(wal_session_cursor_next(list, &info, NULL), WAL_EINVAL);
    assert_int_equal(wal_session_cursor_next(NULL, &info, NULL), WAL_EINVAL);
    assert_int_equal(wal_session_cursor_encode(list, NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_session_cursor_encode(NULL, cursor, NULL), WAL_EINVAL);
    wal_session_cursor_close(list);
    wal_session_cursor_close(NULL);
    kit_close(store);
}

/* -------------------------------------------------------------- lineage --- */

static const char *lineage(struct wal_store *store, const char *of)
{
    struct wal_session_cursor_options options = {.struct_size = sizeof(options),
                                                 .flags =
                                                     WAL_SESSION_CURSOR_LINEAGE,
                                                 .lineage_of = kit_text(of)};

    return listed(store, &options);
}

KIT_TEST(list__lineage_by_forks_and_parents)
{
    struct wal_store *store = kit_store();
    struct wal_session *session;
    struct wal_session *fork;

    add(store, "root", "", "", "", "nobody");
    add(store, "child", "", "", "", "root");
    session = kit_session(store, "child");
    kit_append(session, "e", NULL);
    fork = kit_fork(session, NULL, "fork");
    wal_session_close(kit_fork(fork, NULL, "again"));
    wal_session_close(fork);
    wal_session_close(session);
    for (int i = 0; i < 2; i++) {
        assert_string_equal(lineage(store, "again"), "fork child root");
        assert_string_equal(lineage(store, "fork"), "child root");
        assert_string_equal(lineage(store, "child"), "root");
        assert_string_equal(lineage(store, "root"), "");
        store = reopen(store);
    }
    kit_close(store);
}

KIT_TEST(list__lineage_ends_where_it_repeats)
{
    struct wal_store *store = kit_store();

    add(store, "a", "", "", "", "c");
    add(store, "b", "", "", "", "a");
    add(store, "c", "", "", "", "b");
    add(store, "self", "", "", "", "self");
    add(store, "d", "", "", "", "self");
    assert_string_equal(lineage(store, "a"), "c b");
    assert_string_equal(lineage(store, "self"), "");
    assert_string_equal(lineage(store, "d"), "self");
    kit_close(store);
}

KIT_TEST(list__lineage_of_an_unknown_session)
{
    struct wal_store *store = kit_store();
    struct wal_session_cursor_options options = {.struct_size = sizeof(options),
                                                 .flags =
                                                     WAL_SESSION_CURSOR_LINEAGE,
                                                 .lineage_of = kit_text("x")};
    struct wal_error error = KIT_ERROR;
    struct wal_session_cursor *list = NULL;

    assert_int_equal(wal_session_cursor_open(store, &options, &list, &error),
                     WAL_ENOTFOUND);
    assert_error(&error, WAL_ENOTFOUND, "\"x\"");
    add(store, "x", "", "", "", "");
    options.cwd = kit_text("/");
    assert_int_equal(wal_session_cursor_open(store, &options, &list, NULL),
                     WAL_EINVAL);
    options.cwd.size = 0;
    options.prefix = kit_text("a");
    assert_int_equal(wal_session_cursor_open(store, &options, &list, NULL),
                     WAL_EINVAL);
    options.prefix.size = 0;
    options.flags = 0;
    assert_int_equal(wal_session_cursor_open(store, &options, &list, NULL),
                     WAL_EINVAL);
    options.flags = WAL_SESSION_CURSOR_LINEAGE;
    options.lineage_of.size = 0;
    assert_int_equal(wal_session_cursor_open(store, &options, &list, NULL),
                     WAL_EINVAL);
    assert_null(list);
    kit_close(store);
}

/* ----------------------------------------------------------- first text --- */

static void append_message(struct wal_session *session, const char *id,
                           const char *text)
{
    char payload[128];
    struct wal_entry entry;

    (void)snprintf(payload, sizeof(payload),
                   "{\"role\":\"user\",\"content\":\"%s\"}", text);
    entry = kit_entry(id, NULL, payload);
    assert_ok(kit_try_append(session, &entry, NULL, NULL));
}

static void check_first_texts(struct wal_store *store)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_session *session;
    struct wal_session_cursor *list = NULL;

    assert_ok(wal_session_cursor_open(store, NULL, &list, NULL));
    for (int i = 0; i < 3; i++) {
        assert_ok(wal_session_cursor_next(list, &info, NULL));
        assert_slice(info.first_text, i == 0 ? "elsewhere" : "hello");
    }
    wal_session_cursor_close(list);
    session = kit_session(store, "late");
    info = kit_info(session);
    assert_slice(info.first_text, "hello");
    assert_slice(info.id, "late");
    wal_session_close(session);
}

/* A fork reports the entries that it shares. */
KIT_TEST(list__first_text_of_forks)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_session *fork;

    kit_append(session, "a", NULL);
    append_message(session, "b", "hello");
    append_message(session, "c", "again");
    fork = kit_fork(session, "c", "late");
    append_message(fork, "d", "more");
    wal_session_close(fork);
    fork = kit_fork(session, "a", "early");
    append_message(fork, "e", "elsewhere");
    wal_session_close(fork);
    wal_session_close(session);
    check_first_texts(store);
    store = reopen(store);
    check_first_texts(store);
    kit_close(store);
}

/* ------------------------------------------------------------- deletion --- */

static void add_many(struct wal_store *store, int count)
{
    for (int i = 0; i < count; i++) {
        char id[16];

        (void)snprintf(id, sizeof(id), "s%d", i);
        add(store, id, "", "", "", "");
    }
}

static void delete_session(struct wal_store *store, const char *id)
{
    struct wal_session *session = kit_session(store, id);
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_error error = KIT_ERROR;
    char expected[64];

    assert_ok(wal_session_delete(session, NULL));
    (void)snprintf(expected, sizeof(expected), "session \"%s\" was deleted",
                   id);
    assert_int_equal(wal_session_get_info(session, &info, &error),
                     WAL_ENOTFOUND);
    assert_error(&error, WAL_ENOTFOUND, expected);
    wal_session_close(session);
}

static void check_count(struct wal_store *store, uint64_t count)
{
    struct wal_store_info info = {.struct_size = sizeof(info)};

    assert_ok(wal_store_get_info(store, &info, NULL));
    assert_int_equal(info.sessions, count);
}

KIT_TEST(list__deleted_sessions_are_not_listed)
{
    struct wal_store *store = kit_store();

    add_many(store, 4);
    delete_session(store, "s2");
    assert_string_equal(listed(store, NULL), "s3 s1 s0");
    check_count(store, 3);
    add(store, "s2", "", "", "", "");
    assert_string_equal(listed(store, NULL), "s2 s3 s1 s0");
    delete_session(store, "s0");
    store = reopen(store);
    assert_string_equal(listed(store, NULL), "s2 s3 s1");
    check_count(store, 3);
    kit_close(store);
}

KIT_TEST(list__session_deleted_after_opening_is_omitted)
{
    struct wal_store *store = kit_store();
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_session_cursor *list = NULL;

    add_many(store, 4);
    assert_ok(wal_session_cursor_open(store, NULL, &list, NULL));
    assert_ok(wal_session_cursor_next(list, &info, NULL));
    delete_session(store, "s2");
    delete_session(store, "s0");
    assert_ok(wal_session_cursor_next(list, &info, NULL));
    assert_slice(info.id, "s1");
    assert_int_equal(wal_session_cursor_next(list, &info, NULL), WAL_END);
    wal_session_cursor_close(list);
    kit_close(store);
}

/* The lineage flags them as deleted; a fork still has their text. */
KIT_TEST(list__lineage_includes_deleted_sessions)
{
    struct wal_store *store = kit_store();
    struct wal_session_cursor_options options = {
        .struct_size = sizeof(options),
        .flags = WAL_SESSION_CURSOR_LINEAGE,
        .lineage_of = kit_text("fork")};
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_session *session = kit_create(store, "s");
    struct wal_session *fork;
    struct wal_session_cursor *list = NULL;

    append_message(session, "a", "hello");
    fork = kit_fork(session, "a", "fork");
    wal_session_close(session);
    delete_session(store, "s");
    add(store, "s", "", "", "", ""); /* another one */
    for (int i = 0; i < 2; i++) {
        assert_ok(wal_session_cursor_open(store, &options, &list, NULL));
        assert_ok(wal_session_cursor_next(list, &info, NULL));
        assert_slice(info.id, "s");
        assert_int_equal(info.number, 1);
        assert_int_equal(info.flags, WAL_SESSION_DELETED);
        assert_int_equal(wal_session_cursor_next(list, &info, NULL), WAL_END);
        wal_session_cursor_close(list);
        info = kit_info(fork);
        assert_int_equal(info.flags, WAL_SESSION_FORK);
        assert_slice(info.first_text, "hello");
        wal_session_close(fork);
        store = reopen(store);
        fork = kit_session(store, "fork");
    }
    wal_session_close(fork);
    kit_close(store);
}
