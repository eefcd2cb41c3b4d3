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

    assert_int_equal(wal_session_create(store, &options, &session, NULL),
                     WAL_OK);
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

static struct wal_resume_options by_id(const char *id, uint32_t how,
                                       const char *at)
{
    struct wal_resume_options options = {.struct_size = sizeof(options),
                                         .from = WAL_RESUME_ID,
                                         .mode = how,
                                         .id = kit_text(id),
                                         .at = kit_text(at)};

    return options;
}

static struct wal_resume_options by_cwd(const char *cwd, uint32_t how,
                                        const char *at)
{
    struct wal_resume_options options = {.struct_size = sizeof(options),
                                         .from = WAL_RESUME_LATEST,
                                         .mode = how,
                                         .cwd = kit_text(cwd),
                                         .at = kit_text(at)};

    return options;
}

static struct wal_session *resume(struct bench *bench,
                                  struct wal_resume_options options)
{
    struct wal_error error = KIT_ERROR;
    struct wal_session *session = NULL;

    if (wal_session_resume(bench->store, &options, &session, &error) !=
        WAL_OK) {
        fail_msg("%d: %s", error.status, error.text);
    }
    assert_non_null(session);
    return session;
}

static void refused(struct bench *bench, struct wal_resume_options options,
                    enum wal_status status)
{
    uint64_t last = kit_last_sequence(bench->store);
    struct wal_error error = KIT_ERROR;
    struct wal_session *session = NULL;

    assert_int_equal(
        wal_session_resume(bench->store, &options, &session, &error), status);
    assert_int_equal(error.status, status);
    assert_null(session);
    assert_int_equal(kit_last_sequence(bench->store), last);
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
    assert_int_equal(status, WAL_OK);
    info = kit_info(session);
    (void)snprintf(id, sizeof(id), "%.*s", (int)info.id.size,
                   (const char *)info.id.data);
    wal_session_close(session);
    return id;
}

static void test_latest__is_the_one_written_last(void **state)
{
    (void)state;
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
    (void)kit_put(bench.store, one, "k", "1");
    assert_string_equal(latest(&bench, NULL), "one");
    assert_string_equal(latest(&bench, "/x"), "one");
    assert_int_equal(wal_session_delete(one, NULL), WAL_OK);
    assert_string_equal(latest(&bench, "/x"), "two");
    wal_session_close(one);
    kit_close(bench.store);
}

static void test_latest__of_an_empty_store(void **state)
{
    (void)state;
    struct bench bench = {.store = kit_store()};

    assert_string_equal(latest(&bench, NULL), "");
    (void)kit_put(bench.store, NULL, "k", "1");
    assert_string_equal(latest(&bench, NULL), "");
    assert_int_equal(
        wal_session_open_latest(bench.store, kit_text(NULL), NULL, NULL),
        WAL_EINVAL);
    kit_close(bench.store);
}

static void test_resume__in_place_by_id(void **state)
{
    (void)state;
    struct bench bench = begin();
    uint64_t last = kit_last_sequence(bench.store);
    struct wal_session *session =
        resume(&bench, by_id("one", WAL_RESUME_IN_PLACE, NULL));

    assert_int_equal(kit_last_sequence(bench.store), last);
    assert_branch(session, "a b c");
    wal_session_close(session);
    session = resume(&bench, by_id("one", WAL_RESUME_IN_PLACE, "c"));
    assert_int_equal(kit_last_sequence(bench.store), last);
    wal_session_close(session);
    session = resume(&bench, by_id("one", WAL_RESUME_IN_PLACE, "a"));
    assert_branch(session, "a");
    assert_all_entries(session, "a b c");
    kit_append(session, "d", NULL);
    assert_branch(session, "a d");
    wal_session_close(session);
    kit_close(bench.store);
    bench.store = kit_store();
    session = resume(&bench, by_id("one", WAL_RESUME_IN_PLACE, "c"));
    assert_branch(session, "a b c");
    assert_all_entries(session, "a b c d");
    wal_session_close(session);
    kit_close(bench.store);
}

static void test_resume__in_place_the_latest(void **state)
{
    (void)state;
    struct bench bench = begin();
    struct wal_session *session =
        resume(&bench, by_cwd("/x", WAL_RESUME_IN_PLACE, "b"));

    assert_slice(kit_info(session).id, "two");
    assert_branch(session, "a b");
    wal_session_close(session);
    session = resume(&bench, by_cwd(NULL, WAL_RESUME_IN_PLACE, NULL));
    assert_slice(kit_info(session).id, "two");
    wal_session_close(session);
    session = resume(&bench, by_cwd("/y", WAL_RESUME_IN_PLACE, NULL));
    assert_slice(kit_info(session).id, "three");
    wal_session_close(session);
    kit_close(bench.store);
}

static void test_resume__in_a_fork(void **state)
{
    (void)state;
    struct bench bench = begin();
    struct wal_session_options named = {.struct_size = sizeof(named),
                                        .id = kit_text("fork"),
                                        .title = kit_text("T")};
    struct wal_resume_options options = by_id("one", WAL_RESUME_FORK, "b");
    struct wal_session *source = kit_session(bench.store, "one");
    struct wal_session *fork;

    options.fork = &named;
    fork = resume(&bench, options);
    assert_branch(fork, "a b");
    assert_slice(kit_info(fork).id, "fork");
    assert_slice(kit_info(fork).title, "T");
    assert_slice(kit_info(fork).cwd, "/x");
    assert_slice(kit_info(fork).parent_id, "one");
    kit_append(fork, "f", NULL);
    assert_branch(source, "a b c");
    wal_session_close(fork);
    refused(&bench, options, WAL_EEXISTS);
    fork = resume(&bench, by_cwd("/y", WAL_RESUME_FORK, NULL));
    assert_branch(fork, "a b c");
    assert_slice(kit_info(fork).parent_id, "three");
    assert_int_equal(kit_info(fork).id.size, 36);
    wal_session_close(fork);
    wal_session_close(source);
    kit_close(bench.store);
}

static void test_resume__what_is_not_there(void **state)
{
    (void)state;
    struct bench bench = begin();
    struct wal_session *one = kit_session(bench.store, "one");

    refused(&bench, by_id("four", WAL_RESUME_IN_PLACE, NULL), WAL_ENOTFOUND);
    refused(&bench, by_id(NULL, WAL_RESUME_IN_PLACE, NULL), WAL_ENOTFOUND);
    refused(&bench, by_cwd("/z", WAL_RESUME_FORK, NULL), WAL_ENOTFOUND);
    refused(&bench, by_id("one", WAL_RESUME_IN_PLACE, "z"), WAL_ENOTFOUND);
    refused(&bench, by_id("one", WAL_RESUME_FORK, "z"), WAL_ENOTFOUND);
    assert_int_equal(wal_session_delete(one, NULL), WAL_OK);
    wal_session_close(one);
    refused(&bench, by_id("one", WAL_RESUME_IN_PLACE, NULL), WAL_ENOTFOUND);
    kit_close(bench.store);
}

static void test_resume__wrong_use_has_no_default(void **state)
{
    (void)state;
    struct bench bench = begin();
    struct wal_resume_options options = by_id("one", 0, NULL);
    struct wal_session *session = NULL;

    refused(&bench, options, WAL_EINVAL);
    options.mode = 3;
    refused(&bench, options, WAL_EINVAL);
    options.mode = WAL_RESUME_IN_PLACE;
    options.from = 0;
    refused(&bench, options, WAL_EINVAL);
    options.from = 3;
    refused(&bench, options, WAL_EINVAL);
    options.from = WAL_RESUME_ID;
    options.struct_size--;
    refused(&bench, options, WAL_EINVAL);
    options.struct_size++;
    assert_int_equal(wal_session_resume(bench.store, NULL, &session, NULL),
                     WAL_EINVAL);
    assert_int_equal(wal_session_resume(bench.store, &options, NULL, NULL),
                     WAL_EINVAL);
    assert_int_equal(wal_session_resume(NULL, &options, &session, NULL),
                     WAL_EINVAL);
    kit_close(bench.store);
}

static void test_resume__store_open_for_reading(void **state)
{
    (void)state;
    struct bench bench = begin();
    struct wal_session *session;

    kit_close(bench.store);
    bench.store = kit_open("store", WAL_OPEN_READ_ONLY);
    session = resume(&bench, by_id("one", WAL_RESUME_IN_PLACE, NULL));
    assert_branch(session, "a b c");
    wal_session_close(session);
    refused(&bench, by_id("one", WAL_RESUME_IN_PLACE, "a"), WAL_EREADONLY);
    refused(&bench, by_id("one", WAL_RESUME_FORK, NULL), WAL_EREADONLY);
    kit_close(bench.store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        KIT_TEST(test_latest__is_the_one_written_last),
        KIT_TEST(test_latest__of_an_empty_store),
        KIT_TEST(test_resume__in_place_by_id),
        KIT_TEST(test_resume__in_place_the_latest),
        KIT_TEST(test_resume__in_a_fork),
        KIT_TEST(test_resume__what_is_not_there),
        KIT_TEST(test_resume__wrong_use_has_no_default),
        KIT_TEST(test_resume__store_open_for_reading),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
