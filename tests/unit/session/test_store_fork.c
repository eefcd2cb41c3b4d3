/*
 * test_store_fork.c - tests of wal_session_fork and of reading through a
 * lineage.
 */
#include "tests/lib/kit/store_kit.h"

static enum wal_status try_fork(struct wal_session *session, const char *at,
                                const struct wal_session_options *options,
                                struct wal_error *error)
{
    struct wal_session *fork = NULL;
    enum wal_status status =
        wal_session_fork(session, kit_text(at), options, &fork, error);

    if (status == WAL_OK) {
        wal_session_close(fork);
    } else {
        assert_null(fork);
    }
    return status;
}

KIT_TEST(fork__at_the_head)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_session *fork;
    struct wal_session_info info;

    kit_append_all(session, "a b c");
    fork = kit_fork(session, NULL, "f");
    info = kit_info(fork);
    assert_int_equal(info.flags, WAL_SESSION_FORK);
    assert_int_equal(info.entries, 3);
    assert_int_equal(info.inherited, 3);
    assert_slice(info.parent_id, "s");
    assert_slice(info.head, "c");
    kit_append_all(fork, "d e");
    kit_append_all(session, "x");
    assert_branch(fork, "a b c d e");
    assert_branch(session, "a b c x");
    assert_all_entries(fork, "a b c d e");
    assert_parent(fork, "d", "c");
    assert_int_equal(kit_info(fork).entries, 5);
    wal_session_close(fork);
    wal_session_close(session);
    kit_close(store);
    store = kit_open("store", 0);
    fork = kit_session(store, "f");
    assert_branch(fork, "a b c d e");
    assert_int_equal(kit_info(fork).inherited, 3);
    wal_session_close(fork);
    kit_close(store);
}

KIT_TEST(fork__at_an_entry)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_session *fork;
    struct wal_entry entry;

    kit_append_all(session, "a b c");
    fork = kit_fork(session, "b", "f");
    assert_branch(fork, "a b");
    assert_slice(kit_info(fork).head, "b");
    assert_int_equal(kit_info(fork).inherited, 2);
    entry = kit_entry("n", "c", "1");
    assert_int_equal(kit_try_append(fork, &entry, NULL, NULL), WAL_ENOPARENT);
    kit_append(fork, "c", NULL);
    kit_append(fork, "d", "a");
    assert_branch(fork, "a b c");
    assert_all_entries(fork, "a b c d");
    assert_parent(fork, "d", "a");
    wal_session_close(fork);
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(fork__at_an_entry_off_the_branch)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_session *fork;

    kit_append_all(session, "a b c");
    kit_append(session, "x", "a");
    kit_append(session, "y", "x");
    assert_branch(session, "a b c");
    fork = kit_fork(session, "y", "f");
    assert_branch(fork, "a x y");
    assert_int_equal(kit_info(fork).inherited, 3);
    wal_session_close(fork);
    wal_session_close(session);
    kit_close(store);
}

/* Its entry is the child of a shared entry that is older than the fork
 * point. */
KIT_TEST(fork__at_an_entry_after_the_fork_point)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_session *fork;
    struct wal_session *second;

    kit_append_all(session, "a b c d");
    fork = kit_fork(session, "d", "f");
    kit_append(fork, "x", "b");
    kit_append(fork, "y", "x");
    assert_parent(fork, "x", "b");
    second = kit_fork(fork, "y", "g");
    assert_branch(second, "a b x y");
    assert_int_equal(kit_info(second).inherited, 4);
    assert_int_equal(kit_info(second).entries, 4);
    kit_append_all(second, "z");
    assert_branch(second, "a b x y z");
    wal_session_close(second);
    wal_session_close(fork);
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(fork__of_an_empty_session)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_session *fork = kit_fork(session, NULL, "f");
    struct wal_session *second;

    kit_append_all(session, "a");
    assert_branch(fork, "");
    kit_append_all(fork, "a b");
    assert_branch(fork, "a b");
    assert_int_equal(kit_info(fork).entries, 2);
    assert_int_equal(kit_info(fork).inherited, 0);
    assert_int_equal(kit_info(fork).flags, WAL_SESSION_FORK);
    second = kit_fork(fork, NULL, "g");
    assert_branch(second, "a b");
    wal_session_close(second);
    wal_session_close(fork);
    wal_session_close(session);
    kit_close(store);
    store = kit_open("store", 0);
    second = kit_session(store, "g");
    assert_branch(second, "a b");
    wal_session_close(second);
    kit_close(store);
}

KIT_TEST(fork__at_an_entry_of_the_lineage)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_session *fork;
    struct wal_session *second;

    kit_append_all(session, "a b c");
    fork = kit_fork(session, "c", "f");
    kit_append_all(fork, "d");
    kit_append_all(session, "x");
    second = kit_fork(fork, "b", "g");
    assert_branch(second, "a b");
    kit_append_all(second, "d x");
    assert_branch(second, "a b d x");
    assert_slice(kit_info(second).parent_id, "f");
    wal_session_close(second);
    assert_int_equal(try_fork(fork, "x", NULL, NULL), WAL_ENOTFOUND);
    wal_session_close(fork);
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(fork__unknown_entry_and_misuse)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_session_options options = {.struct_size = sizeof(options),
                                          .id = kit_text("s")};
    struct wal_error error = KIT_ERROR;
    char id[257];

    kit_append(session, "a", NULL);
    assert_int_equal(try_fork(session, "none", NULL, &error), WAL_ENOTFOUND);
    assert_error(&error, WAL_ENOTFOUND, "\"none\"");
    assert_int_equal(try_fork(session, "a", &options, &error), WAL_EEXISTS);
    options.id = kit_text("f");
    options.metadata = kit_text("[]");
    assert_int_equal(try_fork(session, "a", &options, &error), WAL_EBADJSON);
    options.metadata = kit_text(NULL);
    memset(id, 'i', 256);
    id[256] = '\0';
    options.id = kit_text(id);
    assert_int_equal(try_fork(session, "a", &options, &error), WAL_EINVAL);
    options.struct_size = 0;
    assert_int_equal(try_fork(session, "a", &options, &error), WAL_EINVAL);
    assert_int_equal(try_fork(NULL, "a", NULL, &error), WAL_EINVAL);
    assert_int_equal(
        wal_session_fork(session, kit_text("a"), NULL, NULL, &error),
        WAL_EINVAL);
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(fork__inherits_fields_of_the_source)
{
    struct wal_store *store = kit_store();
    struct wal_session_options options = {.struct_size = sizeof(options),
                                          .schema_version = 3,
                                          .id = kit_text("s"),
                                          .cwd = kit_text("/w"),
                                          .project = kit_text("p"),
                                          .title = kit_text("t"),
                                          .metadata = kit_text("{\"m\":1}"),
                                          .source = kit_text("file")};
    struct wal_session_options other = {.struct_size = sizeof(other),
                                        .schema_version = 4,
                                        .title = kit_text("u"),
                                        .parent_id = kit_text("q"),
                                        .metadata = kit_text("{}")};
    struct wal_session *session = NULL;
    struct wal_session *fork = NULL;
    struct wal_session_info info;
    struct wal_slice head = {NULL, 0};

    assert_ok(wal_session_create(store, &options, &session, NULL));
    assert_ok(wal_session_fork(session, head, NULL, &fork, NULL));
    info = kit_info(fork);
    assert_int_equal(info.id.size, 36);
    assert_int_equal(info.schema_version, 3);
    assert_slice(info.cwd, "/w");
    assert_slice(info.project, "p");
    assert_slice(info.title, "t");
    assert_slice(info.metadata, "{\"m\":1}");
    assert_slice(info.source, "");
    assert_slice(info.parent_id, "s");
    wal_session_close(fork);
    fork = NULL;
    assert_ok(wal_session_fork(session, head, &other, &fork, NULL));
    info = kit_info(fork);
    assert_int_equal(info.schema_version, 4);
    assert_slice(info.cwd, "/w");
    assert_slice(info.title, "u");
    assert_slice(info.metadata, "{}");
    assert_slice(info.parent_id, "s");
    wal_session_close(fork);
    wal_session_close(session);
    kit_close(store);
}

static void check_chain(struct wal_store *store, uint32_t depth)
{
    struct wal_session *session;
    char id[16];

    (void)snprintf(id, sizeof(id), "f%u", depth);
    session = kit_session(store, id);

    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_entry_cursor *cursor = NULL;

    assert_int_equal(kit_info(session).entries, depth + 1);
    assert_ok(wal_entry_cursor_open(session, NULL, &cursor, NULL));
    assert_int_equal(wal_entry_cursor_remaining(cursor), depth + 1);
    for (uint32_t i = 0; i <= depth; i++) {
        char before[16] = "";

        assert_ok(wal_entry_cursor_next(cursor, &entry, NULL));
        (void)snprintf(id, sizeof(id), "e%u", i);
        if (i > 0) {
            (void)snprintf(before, sizeof(before), "e%u", i - 1);
        }
        assert_slice(entry.id, id);
        assert_slice(entry.parent_id, before);
        assert_int_equal(entry.depth, i);
    }
    assert_int_equal(wal_entry_cursor_next(cursor, &entry, NULL), WAL_END);
    for (uint32_t i = 0; i <= depth; i++) {
        (void)snprintf(id, sizeof(id), "e%u", i);
        assert_ok(wal_entry_cursor_get(cursor, kit_text(id), &entry, NULL));
        assert_slice(entry.id, id);
        assert_int_equal(entry.depth, i);
    }
    wal_entry_cursor_close(cursor);
    wal_session_close(session);
}

KIT_TEST(fork__of_a_fork_two_hundred_deep)
{
    enum {
        DEPTH = 200
    };
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "f0");

    kit_append(session, "e0", NULL);
    for (uint32_t i = 1; i <= DEPTH; i++) {
        char id[16];
        struct wal_session *fork;

        (void)snprintf(id, sizeof(id), "f%u", i);
        fork = kit_fork(session, NULL, id);
        wal_session_close(session);
        session = fork;
        (void)snprintf(id, sizeof(id), "e%u", i);
        kit_append(session, id, NULL);
    }
    wal_session_close(session);
    for (int round = 0; round < 2; round++) {
        check_chain(store, DEPTH);
        check_chain(store, DEPTH / 2);
        check_chain(store, 0);
        kit_close(store);
        store = kit_open("store", round == 0 ? 0 : WAL_OPEN_PREAD);
    }
    check_chain(store, DEPTH);
    kit_close(store);
}

KIT_TEST(fork__of_a_fork_takes_constant_space)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_session *fork;

    for (int i = 0; i < 2000; i++) {
        char id[16];

        (void)snprintf(id, sizeof(id), "e%d", i);
        kit_append(session, id, NULL);
    }
    fork = kit_fork(session, NULL, "f");
    assert_int_equal(kit_info(fork).entries, 2000);
    assert_in_range(kit_info(fork).bytes, 1, 400);
    wal_session_close(fork);
    wal_session_close(session);
    kit_close(store);
}

/* Ids are unique among shared and own entries; later entries of the source do
 * not count. */
KIT_TEST(fork__ids_of_shared_entries_are_duplicates)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_append_result result = {.struct_size = sizeof(result)};
    struct wal_session *fork;
    struct wal_entry entry;

    kit_append_all(session, "a b");
    fork = kit_fork(session, "b", "f");
    kit_append_all(session, "c");
    entry = kit_entry("a", NULL, "\"other\"");
    assert_int_equal(kit_try_append(fork, &entry, NULL, NULL), WAL_EEXISTS);
    entry = kit_entry("a", NULL, "{\"id\":\"a\"}");
    assert_ok(kit_try_append(fork, &entry, &result, NULL));
    assert_int_equal(result.duplicates, 1);
    assert_int_equal(result.appended, 0);
    entry = kit_entry("c", NULL, "\"other\"");
    assert_ok(kit_try_append(fork, &entry, &result, NULL));
    assert_int_equal(result.appended, 1);
    assert_branch(fork, "a b c");
    wal_session_close(fork);
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(fork__in_the_transcript)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_entry_cursor_options options = {.struct_size = sizeof(options),
                                               .stream = 1};
    struct wal_session *fork;
    struct wal_entry entry = kit_entry("t1", NULL, "1");

    kit_append_all(session, "a b");
    entry.stream = 1;
    assert_ok(kit_try_append(session, &entry, NULL, NULL));
    entry.id = kit_text("t2");
    assert_ok(kit_try_append(session, &entry, NULL, NULL));
    fork = kit_fork(session, "t1", "f");
    assert_string_equal(kit_list_ids(fork, &options), "t1");
    entry.id = kit_text("t3");
    assert_ok(kit_try_append(fork, &entry, NULL, NULL));
    assert_string_equal(kit_list_ids(fork, &options), "t1 t3");
    wal_session_close(fork);
    wal_session_close(session);
    kit_close(store);
}
