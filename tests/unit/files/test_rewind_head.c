/*
 * test_rewind_head.c - tests of WAL_REWIND_HEAD (SPEC.md 5.15): files and the
 * head `main` are rewound, or neither, also when the process dies.
 */
#include "engine/base/heap.h"
#include "engine/base/io.h"
#include "engine/session/store.h"
#include "tests/lib/kit/rewind_kit.h"

static struct kit_rewind_result rewind_head(struct wal_session *session,
                                            const char *id, uint32_t flags)
{
    const struct wal_rewind_options options = {
        .struct_size = sizeof(options), .flags = flags | WAL_REWIND_HEAD};

    return kit_rewind_with(session, id, &options);
}

static void assert_heads(const struct kit_rewind_result *answer,
                         const char *previous, const char *new)
{
    assert_string_equal(answer->info.previous_head, previous);
    assert_string_equal(answer->info.new_head, new);
}

static void assert_main(struct wal_session *session, const char *expected)
{
    char id[WAL_ID_SIZE];

    assert_ok(wal_head_get(session, 0, kit_text(""), id, NULL));
    assert_string_equal(id, expected);
}

/* Checkpoint "c" at entry "e1" of files a and b, then both changed, and the
 * entries e2 and e3. */
static struct wal_session *make_changed(struct wal_store *store)
{
    struct wal_session *session = tree_session(store);

    tree_put("a", "a of the checkpoint\n");
    tree_put("b", "b of the checkpoint\n");
    kit_append_all(session, "e1");
    tree_checkpoint(session, "c", "a b");
    tree_put("a", "a before the rewind\n");
    tree_put("b", "b before the rewind\n");
    kit_append_all(session, "e2 e3");
    return session;
}

static void assert_before(struct wal_session *session)
{
    tree_assert_content("a", "a before the rewind\n");
    tree_assert_content("b", "b before the rewind\n");
    assert_main(session, "e3");
}

static void assert_after(struct wal_session *session)
{
    tree_assert_content("a", "a of the checkpoint\n");
    tree_assert_content("b", "b of the checkpoint\n");
    assert_main(session, "e1");
}

KIT_TEST(rewind_head__moves_with_the_files_and_back)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = make_changed(store);
    struct kit_rewind_result answer =
        rewind_head(session, "c", WAL_REWIND_DRY_RUN);

    assert_rewound(&answer, " a+1-1 b+1-1");
    assert_heads(&answer, "e3", "e1");
    assert_before(session);
    answer = rewind_head(session, "c", 0);
    assert_rewound(&answer, " a+1-1 b+1-1");
    assert_heads(&answer, "e3", "e1");
    assert_after(session);
    kit_append_all(session, "e4");
    assert_branch(session, "e1 e4");
    answer = rewind_head(session, answer.undo, 0);
    assert_rewound(&answer, " a+1-1 b+1-1");
    assert_heads(&answer, "e4", "e3");
    assert_before(session);
    assert_branch(session, "e1 e2 e3");
    answer = rewind_head(session, answer.undo, 0);
    assert_heads(&answer, "e3", "e4");
    wal_session_close(session);
    kit_close(store);
    store = kit_store();
    session = kit_session(store, "s");
    assert_main(session, "e4");
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(rewind_head__stays_without_the_flag)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = make_changed(store);
    struct kit_rewind_result answer = kit_rewind(session, "c");

    assert_rewound(&answer, " a+1-1 b+1-1");
    assert_heads(&answer, "", "");
    assert_main(session, "e3");
    wal_session_close(session);
    kit_close(store);
}

/* Only one of the two changes; nothing changes. */
KIT_TEST(rewind_head__only_head_only_files_or_neither)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = make_changed(store);
    struct kit_rewind_result answer = kit_rewind(session, "c");
    char undo[WAL_ID_SIZE];

    answer = rewind_head(session, "c", 0);
    assert_rewound(&answer, "");
    assert_heads(&answer, "e3", "e1");
    assert_after(session);
    memcpy(undo, answer.undo, sizeof(undo));
    tree_put("a", "a again\n");
    answer = rewind_head(session, "c", 0);
    assert_rewound(&answer, " a+1-1");
    assert_heads(&answer, "e1", "e1");
    answer = rewind_head(session, "c", 0);
    assert_rewound(&answer, "");
    assert_heads(&answer, "e1", "e1");
    assert_string_equal(answer.undo, "");
    answer = rewind_head(session, undo, WAL_REWIND_DRY_RUN);
    assert_heads(&answer, "e1", "e3");
    assert_string_equal(answer.undo, "");
    answer = rewind_head(session, undo, 0);
    assert_rewound(&answer, "");
    assert_main(session, "e3");
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(rewind_head__without_a_link_is_refused)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = tree_session(store);
    struct kit_rewind_result answer;

    tree_put("a", "a of the checkpoint\n");
    tree_checkpoint(session, "c", "a");
    tree_put("a", "a before the rewind\n");
    kit_append_all(session, "e1");
    for (uint32_t flags = 0; flags <= WAL_REWIND_DRY_RUN; flags++) {
        answer = rewind_head(session, "c", flags);
        assert_rewind_refused(&answer, WAL_ENOTFOUND, "linked with no entry");
        assert_heads(&answer, "", "");
    }
    tree_assert_content("a", "a before the rewind\n");
    assert_main(session, "e1");
    wal_session_close(session);
    kit_close(store);
}

/* A fork has the link where it has the entry. */
KIT_TEST(rewind_head__in_forks)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = make_changed(store);
    struct wal_session *fork = NULL;
    struct wal_session *older = NULL;
    struct kit_rewind_result answer;

    tree_checkpoint(session, "late", "a");
    assert_ok(wal_session_fork(session, kit_text(""), NULL, &fork, NULL));
    assert_ok(wal_session_fork(session, kit_text("e1"), NULL, &older, NULL));
    kit_append_all(fork, "f1");
    kit_append_all(older, "o1");
    answer = rewind_head(older, "late", 0);
    assert_rewind_refused(&answer, WAL_ENOTFOUND, "e3");
    answer = rewind_head(older, "c", WAL_REWIND_DRY_RUN);
    assert_heads(&answer, "o1", "e1");
    answer = rewind_head(fork, "c", 0);
    assert_heads(&answer, "f1", "e1");
    assert_after(fork);
    assert_main(session, "e3");
    assert_main(older, "o1");
    wal_session_close(older);
    wal_session_close(fork);
    wal_session_close(session);
    kit_close(store);
}

/* --- dying --------------------------------------------------------------- */

/* Dies at the call in a rewind of "c", then makes the next call. */
static struct wal_session *crash_and_recover(struct wal_store **store,
                                             enum tree_crash_point call,
                                             uint32_t nth,
                                             const char *continued)
{
    struct wal_session *session;
    struct kit_rewind_result answer;

    assert_int_equal(system("rm -rf tree store"), 0);
    *store = kit_store();
    wal_session_close(make_changed(*store));
    kit_close(*store);
    assert_true(tree_crash_rewind_flags("c", WAL_REWIND_HEAD, call, nth));
    *store = kit_store();
    session = kit_session(*store, "s");
    assert_main(session, "e3");
    kit_append_all(session, continued);
    answer = kit_rewind(session, "none such");
    assert_rewind_refused(&answer, WAL_ENOTFOUND, "none such");
    return session;
}

KIT_TEST(rewind_head__undone_when_no_file_was_moved)
{
    static const enum tree_crash_point calls[] = {TREE_WRITE, TREE_SYNC_ALL,
                                                  TREE_RENAME};
    struct wal_store *store;

    for (int i = 0; i < 3; i++) {
        struct wal_session *session =
            crash_and_recover(&store, calls[i], 0, "");

        assert_before(session);
        wal_session_close(session);
        kit_close(store);
    }
}

/* Dies between two files, and between the files and the head. */
KIT_TEST(rewind_head__finished_when_a_file_was_moved)
{
    struct wal_store *store;

    for (int i = 0; i < 2; i++) {
        struct wal_session *session = crash_and_recover(
            &store, i == 0 ? TREE_RENAME : TREE_SYNC_DIRECTORY, i == 0 ? 1 : 0,
            "");

        assert_after(session);
        wal_session_close(session);
        kit_close(store);
    }
}

/* The head is left where the program that went on has moved it. */
KIT_TEST(rewind_head__of_a_continued_session_stays)
{
    struct wal_store *store;
    struct wal_session *session =
        crash_and_recover(&store, TREE_SYNC_DIRECTORY, 0, "e4");

    tree_assert_content("a", "a of the checkpoint\n");
    tree_assert_content("b", "b of the checkpoint\n");
    assert_main(session, "e4");
    assert_branch(session, "e1 e2 e3 e4");
    wal_session_close(session);
    kit_close(store);
}

/* --- another handle ------------------------------------------------------ */

static struct wal_session *appender;

/* Appends before the last step of the rewind. */
static enum wal_status append_and_sync(void *ctx, struct wal__worktree *tree,
                                       const char *paths, size_t size,
                                       int *sys_errno)
{
    if (appender != NULL) {
        struct wal_session *session = appender;

        appender = NULL;
        kit_append_all(session, "meanwhile");
    }
    return wal__worktree_posix.sync_directories(ctx, tree, paths, size,
                                                sys_errno);
}

KIT_TEST(rewind_head__concurrent_move_undoes_the_files)
{
    const struct wal_open_options options = {.struct_size = sizeof(options)};
    struct wal__worktree_io tree = wal__worktree_posix;
    struct wal__io io = wal__io_posix;
    struct wal_store *store = kit_store();
    struct wal_session *session;
    struct kit_rewind_result answer;

    wal_session_close(make_changed(store));
    kit_close(store);
    tree.sync_directories = append_and_sync;
    io.worktree = &tree;
    assert_ok(
        wal__store_open("store", &options, &wal__heap_libc, &io, &store, NULL));
    session = kit_session(store, "s");
    appender = kit_session(store, "s");
    struct wal_session *other = appender;
    answer = rewind_head(session, "c", 0);
    assert_null(appender);
    assert_rewind_refused(&answer, WAL_ECHANGED, "moved during the rewind");
    tree_assert_content("a", "a before the rewind\n");
    tree_assert_content("b", "b before the rewind\n");
    assert_main(session, "meanwhile");
    answer = rewind_head(session, "c", 0);
    assert_heads(&answer, "meanwhile", "e1");
    assert_after(session);
    wal_session_close(other);
    wal_session_close(session);
    kit_close(store);
}
