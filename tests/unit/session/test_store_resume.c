/*
 * test_store_resume.c - tests of finding a session and continuing it (SPEC.md
 * 5.4).
 */
#include "tests/lib/kit/parts_kit.h"

struct bench {
    struct wal_store *store;
};

static void create_in(struct wal_store *store, const char *id, const char *cwd)
{
    struct wal_session_options options = {.struct_size = sizeof(options),
                                          .id = kit_text(id),
                                          .cwd = kit_text(cwd)};
    struct wal_session *session = NULL;

    assert_ok(wal_session_create(store, &options, &session, NULL));
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
    enum wal_status status =
        wal_session_open_latest(bench->store, kit_text(cwd), &session, NULL);
    struct wal_session_info info;

    if (status == WAL_ENOTFOUND) {
        assert_null(session);
        return "";
    }
    assert_ok(status);
    info = kit_info(session);
    (void)snprintf(id, sizeof(id), "%.*s", (int)info.id.size,
                   (const char *)info.id.data);
    wal_session_close(session);
    return id;
}

KIT_TEST(latest__is_the_last_written_session)
{
    struct bench bench = begin();
    struct wal_session *one = kit_session(bench.store, "one");

    for (int i = 0; i < 2; i++) {
        assert_string_equal(latest(&bench, NULL), "three");
        assert_string_equal(latest(&bench, "/x"), "two");
        assert_string_equal(latest(&bench, "/y"), "three");
        assert_string_equal(latest(&bench, "/"), "");
        assert_string_equal(latest(&bench, "/x/"), "");
        wal_session_close(one);
        kit_close(bench.store);
        bench.store = kit_store();
        one = kit_session(bench.store, "one");
    }
    kit_append(one, "now", NULL);
    assert_string_equal(latest(&bench, NULL), "one");
    assert_string_equal(latest(&bench, "/x"), "one");
    assert_ok(wal_session_delete(one, NULL));
    assert_string_equal(latest(&bench, "/x"), "two");
    wal_session_close(one);
    kit_close(bench.store);
}

KIT_TEST(latest__of_an_empty_store)
{
    struct bench bench = {.store = kit_store()};

    assert_string_equal(latest(&bench, NULL), "");
    (void)kit_put(bench.store, NULL, "k", "1");
    assert_string_equal(latest(&bench, NULL), "");
    assert_int_equal(
        wal_session_open_latest(bench.store, kit_text(NULL), NULL, NULL),
        WAL_EINVAL);
    kit_close(bench.store);
}

/* Opens the session, or with a null id the latest of cwd, and moves its head to
 * an entry, if one is given. */
static enum wal_status try_resume(struct bench *bench, const char *id,
                                  const char *cwd, const char *at,
                                  struct wal_session **session)
{
    const struct wal_head head = {.struct_size = sizeof(head),
                                  .entry_id = kit_text(at)};
    enum wal_status status =
        id != NULL ? wal_session_open(bench->store, kit_text(id), session, NULL)
                   : wal_session_open_latest(bench->store, kit_text(cwd),
                                             session, NULL);

    if (status == WAL_OK && at != NULL) {
        status = wal_head_move(*session, &head, NULL, NULL);
    }
    return status;
}

static struct wal_session *resume(struct bench *bench, const char *id,
                                  const char *cwd, const char *at)
{
    struct wal_session *session = NULL;

    assert_ok(try_resume(bench, id, cwd, at, &session));
    return session;
}

KIT_TEST(resume__in_place_by_id)
{
    struct bench bench = begin();
    uint64_t last = kit_last_sequence(bench.store);
    struct wal_session *session = resume(&bench, "one", NULL, NULL);

    assert_int_equal(kit_last_sequence(bench.store), last);
    assert_branch(session, "a b c");
    wal_session_close(session);
    session = resume(&bench, "one", NULL, "c");
    assert_int_equal(kit_last_sequence(bench.store), last);
    wal_session_close(session);
    session = resume(&bench, "one", NULL, "a");
    assert_branch(session, "a");
    assert_all_entries(session, "a b c");
    kit_append(session, "d", NULL);
    assert_branch(session, "a d");
    wal_session_close(session);
    kit_close(bench.store);
    bench.store = kit_store();
    session = resume(&bench, "one", NULL, "c");
    assert_branch(session, "a b c");
    assert_all_entries(session, "a b c d");
    wal_session_close(session);
    kit_close(bench.store);
}

KIT_TEST(resume__in_place_the_latest)
{
    struct bench bench = begin();
    struct wal_session *session = resume(&bench, NULL, "/x", "b");

    assert_slice(kit_info(session).id, "two");
    assert_branch(session, "a b");
    kit_append(session, "d", NULL);
    wal_session_close(session);
    session = resume(&bench, NULL, NULL, NULL);
    assert_slice(kit_info(session).id, "two");
    wal_session_close(session);
    session = resume(&bench, NULL, "/y", NULL);
    assert_slice(kit_info(session).id, "three");
    wal_session_close(session);
    kit_close(bench.store);
}

KIT_TEST(resume__in_a_fork)
{
    struct bench bench = begin();
    struct wal_session_options named = {.struct_size = sizeof(named),
                                        .id = kit_text("fork"),
                                        .title = kit_text("T")};
    struct wal_session *source = resume(&bench, "one", NULL, NULL);
    struct wal_session *latest_of_y = resume(&bench, NULL, "/y", NULL);
    struct wal_session *fork = NULL;
    struct wal_session *other = NULL;

    assert_ok(wal_session_fork(source, kit_text("b"), &named, &fork, NULL));
    assert_branch(fork, "a b");
    assert_slice(kit_info(fork).id, "fork");
    assert_slice(kit_info(fork).title, "T");
    assert_slice(kit_info(fork).cwd, "/x");
    assert_slice(kit_info(fork).parent_id, "one");
    kit_append(fork, "f", NULL);
    assert_branch(source, "a b c");
    wal_session_close(fork);
    assert_int_equal(
        wal_session_fork(source, kit_text("b"), &named, &other, NULL),
        WAL_EEXISTS);
    assert_null(other);
    assert_ok(wal_session_fork(latest_of_y, kit_text(NULL), NULL, &fork, NULL));
    assert_branch(fork, "a b c");
    assert_slice(kit_info(fork).parent_id, "three");
    assert_int_equal(kit_info(fork).id.size, 36);
    wal_session_close(fork);
    wal_session_close(latest_of_y);
    wal_session_close(source);
    kit_close(bench.store);
}

KIT_TEST(resume__unknown_session)
{
    struct bench bench = begin();
    struct wal_session *one = kit_session(bench.store, "one");
    struct wal_session *session = NULL;

    assert_int_equal(try_resume(&bench, "four", NULL, NULL, &session),
                     WAL_ENOTFOUND);
    assert_int_equal(try_resume(&bench, NULL, "/z", NULL, &session),
                     WAL_ENOTFOUND);
    assert_int_equal(try_resume(&bench, "", NULL, NULL, &session),
                     WAL_ENOTFOUND);
    assert_null(session);
    assert_int_equal(try_resume(&bench, "one", NULL, "z", &session),
                     WAL_ENOTFOUND);
    assert_branch(session, "a b c");
    wal_session_close(session);
    assert_ok(wal_session_delete(one, NULL));
    wal_session_close(one);
    assert_int_equal(try_resume(&bench, "one", NULL, NULL, &session),
                     WAL_ENOTFOUND);
    kit_close(bench.store);
}

KIT_TEST(resume__store_open_for_reading)
{
    struct bench bench = begin();
    struct wal_session *session;

    kit_close(bench.store);
    bench.store = kit_open("store", WAL_OPEN_READ_ONLY);
    session = resume(&bench, "one", NULL, NULL);
    assert_branch(session, "a b c");
    wal_session_close(session);
    assert_int_equal(try_resume(&bench, "one", NULL, "a", &session),
                     WAL_EREADONLY);
    wal_session_close(session);
    kit_close(bench.store);
}

/* --- open or create ------------------------------------------------------ */

static struct wal_session *open_or_create(struct bench *bench, const char *id,
                                          const char *cwd, int32_t expected)
{
    const struct wal_session_options options = {.struct_size = sizeof(options),
                                                .id = kit_text(id),
                                                .cwd = kit_text(cwd)};
    struct wal_error error = KIT_ERROR;
    struct wal_session *session = NULL;
    int32_t created = -1;

    if (wal_session_open_or_create(bench->store, &options, &session, &created,
                                   &error) != WAL_OK) {
        fail_msg("%d: %s", error.status, error.text);
    }
    assert_int_equal(created, expected);
    return session;
}

KIT_TEST(open_or_create__by_id)
{
    struct bench bench = begin();
    uint64_t last = kit_last_sequence(bench.store);
    struct wal_session *session = open_or_create(&bench, "one", "/z", 0);

    assert_branch(session, "a b c");
    assert_slice(kit_info(session).cwd, "/x");
    assert_int_equal(kit_last_sequence(bench.store), last);
    wal_session_close(session);
    for (int32_t created = 1; created >= 0; created--) {
        session = open_or_create(&bench, "four", "/z", created);
        assert_slice(kit_info(session).id, "four");
        assert_slice(kit_info(session).cwd, "/z");
        wal_session_close(session);
    }
    kit_close(bench.store);
}

KIT_TEST(open_or_create__the_latest_of_a_directory)
{
    struct bench bench = begin();
    struct wal_session *session = open_or_create(&bench, NULL, "/x", 0);
    char id[WAL_ID_SIZE];

    assert_slice(kit_info(session).id, "two");
    wal_session_close(session);
    session = open_or_create(&bench, NULL, "/z", 1);
    (void)snprintf(id, sizeof(id), "%.*s", (int)kit_info(session).id.size,
                   (const char *)kit_info(session).id.data);
    assert_int_equal(strlen(id), 36);
    wal_session_close(session);
    session = open_or_create(&bench, NULL, "/z", 0);
    assert_slice(kit_info(session).id, id);
    wal_session_close(session);
    kit_close(bench.store);
}

KIT_TEST(open_or_create__null_options_and_null_flag)
{
    struct bench bench = begin();
    struct wal_session *session = NULL;

    assert_ok(
        wal_session_open_or_create(bench.store, NULL, &session, NULL, NULL));
    assert_slice(kit_info(session).id, "three");
    wal_session_close(session);
    kit_close(bench.store);
}

KIT_TEST(open_or_create__misuse_and_store_open_for_reading)
{
    struct bench bench = begin();
    struct wal_session_options options = {.struct_size = sizeof(options),
                                          .id = kit_text("four")};
    struct wal_error error = KIT_ERROR;
    struct wal_session *session = NULL;
    int32_t created = -1;

    assert_int_equal(
        wal_session_open_or_create(NULL, &options, &session, &created, &error),
        WAL_EINVAL);
    assert_int_equal(wal_session_open_or_create(bench.store, &options, NULL,
                                                &created, &error),
                     WAL_EINVAL);
    options.struct_size--;
    assert_int_equal(wal_session_open_or_create(bench.store, &options, &session,
                                                &created, &error),
                     WAL_EINVAL);
    options.struct_size++;
    kit_close(bench.store);
    bench.store = kit_open("store", WAL_OPEN_READ_ONLY);
    assert_int_equal(wal_session_open_or_create(bench.store, &options, &session,
                                                &created, &error),
                     WAL_EREADONLY);
    assert_int_equal(error.status, WAL_EREADONLY);
    assert_null(session);
    assert_int_equal(created, -1);
    wal_session_close(open_or_create(&bench, "one", NULL, 0));
    kit_close(bench.store);
}
