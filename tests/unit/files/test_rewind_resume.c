/*
 * test_rewind_resume.c - the next call after a rewind whose process died: a
 * test for each row of the table in SPEC.md 5.15. The rewinds change a, d/b and
 * n/c (whose directory is missing) and remove z.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "tests/lib/kit/rewind_kit.h"

/* Checkpoint "c", after which everything was changed; the store is closed. */
static void make_changed(void)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = tree_session(store);

    tree_directory("d");
    tree_directory("n");
    tree_put("a", "a of the checkpoint\n");
    tree_put("d/b", "b of the checkpoint\n");
    tree_put("n/c", "c of the checkpoint\n");
    tree_checkpoint(session, "c", "a d/b n/c z");
    tree_put("a", "a before the rewind\n");
    tree_put("d/b", "b before the rewind\n");
    tree_remove("n/c");
    tree_remove("n");
    tree_put("z", "z before the rewind\n");
    wal_session_close(session);
    kit_close(store);
}

static void check_before(void)
{
    tree_assert_content("a", "a before the rewind\n");
    tree_assert_content("d/b", "b before the rewind\n");
    tree_assert_content("z", "z before the rewind\n");
    assert_string_equal(tree_names(), "a d/ d/b z");
}

static void check_after(void)
{
    tree_assert_content("a", "a of the checkpoint\n");
    tree_assert_content("d/b", "b of the checkpoint\n");
    tree_assert_content("n/c", "c of the checkpoint\n");
    assert_string_equal(tree_names(), "a d/ d/b n/ n/c");
}

/* The next call: one with no work except to resume. */
static struct kit_rewind_result call_next(const char *id)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_session(store, id);
    struct kit_rewind_result answer = kit_rewind(session, "none such");

    wal_session_close(session);
    kit_close(store);
    return answer;
}

static void settle(void)
{
    struct kit_rewind_result answer = call_next("s");

    assert_rewind_refused(&answer, WAL_ENOTFOUND, "none such");
}

/* How many checkpoints the session has. */
static int count_checkpoints(void)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_session(store, "s");
    struct wal_checkpoint_info info = {.struct_size = sizeof(info)};
    struct wal_checkpoint_cursor *list = NULL;
    int count = 0;

    assert_ok(wal_checkpoint_cursor_open(session, &list, NULL));
    while (wal_checkpoint_cursor_next(list, &info, NULL) == WAL_OK) {
        count++;
    }
    wal_checkpoint_cursor_close(list);
    wal_session_close(session);
    kit_close(store);
    return count;
}

/* --- all as before, or all as after -------------------------------------- */

KIT_TEST(rewind_resume__undone_while_no_file_was_moved)
{
    make_changed();
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(tree_crash_rewind("c", TREE_WRITE, i));
        settle();
        check_before();
        assert_int_equal(count_checkpoints(), 1);
    }
    assert_true(tree_crash_rewind("c", TREE_SYNC_ALL, 0));
    assert_string_not_equal(tree_names(), "a d/ d/b z");
    settle();
    check_before();
    assert_true(tree_crash_rewind("c", TREE_RENAME, 0));
    settle();
    check_before();
    assert_int_equal(count_checkpoints(), 1);
}

KIT_TEST(rewind_resume__finished_when_a_file_was_moved)
{
    for (uint32_t i = 1; i < 3; i++) {
        make_changed();
        assert_true(tree_crash_rewind("c", TREE_RENAME, i));
        settle();
        check_after();
        /* The overwritten content is kept. */
        assert_int_equal(count_checkpoints(), 2);
        assert_int_equal(system("rm -r tree store"), 0);
    }
}

KIT_TEST(rewind_resume__finished_before_the_last_removal)
{
    make_changed();
    assert_true(tree_crash_rewind("c", TREE_UNLINK, 0));
    tree_assert_content("z", "z before the rewind\n");
    settle();
    check_after();
}

KIT_TEST(rewind_resume__nothing_left_to_do)
{
    make_changed();
    assert_true(tree_crash_rewind("c", TREE_SYNC_DIRECTORY, 0));
    check_after();
    settle();
    check_after();
    /* It is over: what is put back stays. */
    tree_put("a", "a before the rewind\n");
    settle();
    tree_assert_content("a", "a before the rewind\n");
}

KIT_TEST(rewind_resume__repeated_deaths)
{
    make_changed();
    assert_true(tree_crash_rewind("c", TREE_RENAME, 1));
    /* These calls finish the first rewind, and are killed meanwhile. */
    for (uint32_t i = 0; i < 2; i++) {
        assert_true(tree_crash_rewind("c", TREE_SYNC_ALL, 0));
        assert_true(tree_crash_rewind("c", TREE_WRITE, 1));
    }
    assert_true(tree_crash_rewind("c", TREE_RENAME, 1));
    settle();
    check_after();
}

KIT_TEST(rewind_resume__by_the_next_checkpoint)
{
    struct wal_session *session;
    struct wal_store *store;

    make_changed();
    assert_true(tree_crash_rewind("c", TREE_RENAME, 1));
    store = kit_store();
    session = kit_session(store, "s");
    tree_checkpoint(session, "next", "a");
    check_after();
    wal_session_close(session);
    kit_close(store);
}

/* A rewind that finds another begins from what that one comes to. */
KIT_TEST(rewind_resume__by_the_next_rewind)
{
    struct wal_session *session;
    struct kit_rewind_result answer;
    struct wal_store *store;

    make_changed();
    assert_true(tree_crash_rewind("c", TREE_RENAME, 1));
    store = kit_store();
    session = kit_session(store, "s");
    answer = kit_rewind(session, "c");
    assert_rewound(&answer, "");
    check_after();
    wal_session_close(session);
    kit_close(store);
}

/* --- changes by others meanwhile ----------------------------------------- */

KIT_TEST(rewind_resume__files_of_others_are_kept_and_reported)
{
    struct kit_rewind_result answer;

    make_changed();
    assert_true(tree_crash_rewind("c", TREE_RENAME, 1));
    tree_put("d/b", "somebody's b\n");
    tree_remove("z");
    tree_directory("z");
    answer = call_next("s");
    assert_rewind_refused(&answer, WAL_ENOTFOUND, "none such");
    assert_string_equal(answer.list, " d/b+0-0! z+0-0!");
    assert_int_equal(answer.info.changed_elsewhere, 2);
    tree_assert_content("a", "a of the checkpoint\n");
    tree_assert_content("d/b", "somebody's b\n");
    tree_assert_content("n/c", "c of the checkpoint\n");
    assert_string_equal(tree_names(), "a d/ d/b n/ n/c z/");
}

KIT_TEST(rewind_resume__the_checkpoint_was_deleted)
{
    struct wal_session *session;
    struct wal_store *store;

    make_changed();
    assert_true(tree_crash_rewind("c", TREE_RENAME, 1));
    store = kit_store();
    session = kit_session(store, "s");
    assert_ok(wal_checkpoint_delete(session, kit_text("c"), NULL));
    wal_session_close(session);
    kit_close(store);
    settle();
    check_after();
}

KIT_TEST(rewind_resume__missing_root)
{
    make_changed();
    assert_true(tree_crash_rewind("c", TREE_RENAME, 1));
    assert_int_equal(rename("tree", "moved"), 0);
    settle();
    assert_int_equal(rename("moved", "tree"), 0);
    tree_assert_content("a", "a of the checkpoint\n");
    tree_assert_content("d/b", "b before the rewind\n");
    settle();
    tree_assert_content("d/b", "b before the rewind\n");
}

/* --- damage -------------------------------------------------------------- */

/* Contents that lie in the pack as they are. */
static void fill(uint8_t data[4096], uint64_t seed)
{
    for (size_t i = 0; i < 4096; i++) {
        data[i] = (uint8_t)(kit_random(&seed) >> 56);
    }
}

static void make_filled(uint8_t before[2][4096], uint8_t after[2][4096])
{
    struct wal_store *store = kit_store();
    struct wal_session *session = tree_session(store);

    for (uint64_t i = 0; i < 2; i++) {
        fill(before[i], 10 + i);
        fill(after[i], 20 + i);
    }
    tree_put_bytes("a", after[0], 4096);
    tree_put_bytes("b", after[1], 4096);
    tree_checkpoint(session, "c", "a b");
    tree_put_bytes("a", before[0], 4096);
    tree_put_bytes("b", before[1], 4096);
    wal_session_close(session);
    kit_close(store);
}

static bool is_content(const char *path, const uint8_t content[4096])
{
    uint8_t data[4097];
    int fd = open(tree_path(path), O_RDONLY | O_CLOEXEC);
    ssize_t size = read(fd, data, sizeof(data));

    assert_int_equal(close(fd), 0);
    return size == 4096 && memcmp(data, content, 4096) == 0;
}

KIT_TEST(rewind_resume__undone_when_content_is_damaged)
{
    uint8_t before[2][4096];
    uint8_t after[2][4096];

    make_filled(before, after);
    assert_true(tree_crash_rewind("c", TREE_RENAME, 1));
    assert_true(is_content("a", after[0]));
    assert_int_equal(tree_flip_content(after[1], 4096), 1);
    settle();
    assert_true(is_content("a", before[0]));
    assert_true(is_content("b", before[1]));
    assert_string_equal(tree_names(), "a b");
}

KIT_TEST(rewind_resume__damage_of_both_contents_is_reported_once)
{
    uint8_t before[2][4096];
    uint8_t after[2][4096];
    struct kit_rewind_result answer;

    make_filled(before, after);
    assert_true(tree_crash_rewind("c", TREE_RENAME, 1));
    assert_int_equal(tree_flip_content(after[1], 4096), 1);
    assert_int_equal(tree_flip_content(before[0], 4096), 1);
    answer = call_next("s");
    assert_rewind_refused(&answer, WAL_ECORRUPT, "its content");
    assert_true(is_content("a", after[0]));
    assert_true(is_content("b", before[1]));
    assert_string_equal(tree_names(), "a b");
    settle();
}

/* --- forks --------------------------------------------------------------- */

static void fork_session(void)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_session(store, "s");
    struct wal_session *fork = kit_fork(session, NULL, "f");

    wal_session_close(fork);
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(rewind_resume__a_fork_finishes_what_it_inherits)
{
    struct kit_rewind_result answer;

    make_changed();
    assert_true(tree_crash_rewind("c", TREE_RENAME, 1));
    fork_session();
    answer = call_next("f");
    assert_rewind_refused(&answer, WAL_ENOTFOUND, "none such");
    check_after();
    /* For the source too. */
    tree_put("a", "a before the rewind\n");
    settle();
    tree_assert_content("a", "a before the rewind\n");
}

KIT_TEST(rewind_resume__a_fork_ignores_a_finished_one)
{
    struct kit_rewind_result answer;

    make_changed();
    assert_true(tree_crash_rewind("c", TREE_RENAME, 1));
    fork_session();
    settle();
    check_after();
    tree_put("a", "a before the rewind\n");
    answer = call_next("f");
    assert_rewind_refused(&answer, WAL_ENOTFOUND, "none such");
    tree_assert_content("a", "a before the rewind\n");
    assert_int_equal(answer.info.changed_elsewhere, 0);
}
