/*
 * test_rewind.c - files restored to a checkpoint: every kind of change, its
 * report, undoing, forks, and concurrent changes by other programs.
 */
#include <string.h>
#include <sys/stat.h>

#include "engine/base/heap.h"
#include "engine/base/io.h"
#include "engine/session/store.h"
#include "tests/lib/kit/rewind_kit.h"

static struct wal_rewind_options options_of(uint32_t flags)
{
    struct wal_rewind_options options = {.struct_size = sizeof(options),
                                         .flags = flags};

    return options;
}

/* A tree with a file of each kind, and checkpoint "c" of it. */
static struct wal_session *make_all(struct wal_store *store)
{
    struct wal_session *session = tree_session(store);

    tree_directory("d");
    tree_put("a", "one\ntwo\nthree\n");
    tree_put("d/b", "same\n");
    tree_put("empty", "");
    tree_put_bytes("binary", "a\0b", 3);
    tree_put("script", "#!/bin/sh\n");
    tree_chmod("script", 0755);
    tree_link("link", "a");
    tree_checkpoint(session, "c", "a d/b empty binary script link new d/new");
    return session;
}

/* All of them changed. */
static void change_all(void)
{
    tree_put("a", "one\n2\nthree\nfour\n");
    tree_remove("empty");
    tree_put_bytes("binary", "a\0c", 3);
    tree_chmod("script", 0644);
    tree_remove("link");
    tree_put("link", "not a link\n");
    tree_put("new", "made since\n");
    tree_put("d/new", "made too\nsince\n");
}

static const char all_changes[] = " a+1-2 binary+0-0* d/new+0-2 empty+0-0"
                                  " link+1-1 new+0-1 script+0-0";

static void check_all_restored(void)
{
    tree_assert_content("a", "one\ntwo\nthree\n");
    tree_assert_content("d/b", "same\n");
    tree_assert_content("empty", "");
    tree_assert_content("script", "#!/bin/sh\n");
    tree_assert_mode("script", 0755);
    tree_assert_link("link", "a");
    assert_string_equal(tree_names(), "a binary d/ d/b empty link script");
}

static void check_all_changed(void)
{
    tree_assert_content("a", "one\n2\nthree\nfour\n");
    tree_assert_content("link", "not a link\n");
    tree_assert_content("new", "made since\n");
    tree_assert_content("d/new", "made too\nsince\n");
    tree_assert_mode("script", 0644);
    assert_string_equal(tree_names(), "a binary d/ d/b d/new link new script");
}

KIT_TEST(rewind__every_kind_of_file_is_restored)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = make_all(store);
    struct kit_rewind_result answer;
    uint64_t inode = tree_inode("d/b");

    change_all();
    answer = kit_rewind(session, "c");
    assert_rewound(&answer, all_changes);
    assert_int_equal(answer.info.files_changed, 7);
    assert_int_equal(answer.info.insertions, 2);
    assert_int_equal(answer.info.deletions, 6);
    assert_int_equal(answer.info.binary, 1);
    assert_int_equal(answer.info.changed_elsewhere, 0);
    check_all_restored();
    /* Files that already match are not touched. */
    assert_int_equal(tree_inode("d/b"), inode);
    answer = kit_rewind(session, "c");
    assert_rewound(&answer, "");
    assert_string_equal(answer.undo, "");
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(rewind__undone_and_undone_again)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = make_all(store);
    struct kit_rewind_result first;
    struct kit_rewind_result second;
    struct kit_rewind_result third;

    change_all();
    first = kit_rewind(session, "c");
    check_all_restored();
    second = kit_rewind(session, first.undo);
    assert_int_equal(second.info.files_changed, 7);
    assert_int_equal(second.info.insertions, first.info.deletions);
    assert_int_equal(second.info.deletions, first.info.insertions);
    check_all_changed();
    third = kit_rewind(session, second.undo);
    assert_rewound(&third, all_changes);
    check_all_restored();
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(rewind__dry_run_reports_the_same_and_changes_nothing)
{
    const struct wal_rewind_options dry = options_of(WAL_REWIND_DRY_RUN);
    struct wal_store *store = kit_store();
    struct wal_session *session = make_all(store);
    struct wal_store_info before = {.struct_size = sizeof(before)};
    struct wal_store_info after = {.struct_size = sizeof(after)};
    struct kit_rewind_result answer;

    change_all();
    assert_ok(wal_store_get_info(store, &before, NULL));
    answer = kit_rewind_with(session, "c", &dry);
    assert_ok(wal_store_get_info(store, &after, NULL));
    assert_rewound(&answer, all_changes);
    assert_int_equal(answer.info.insertions, 2);
    assert_int_equal(answer.info.deletions, 6);
    assert_string_equal(answer.undo, "");
    check_all_changed();
    assert_int_equal(before.last_sequence, after.last_sequence);
    assert_int_equal(before.pack_bytes, after.pack_bytes);
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(rewind__missing_directories_are_created)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = tree_session(store);
    struct kit_rewind_result answer;

    tree_directory("d");
    tree_directory("d/e");
    tree_directory("d/e/f");
    tree_put("d/e/f/x", "x\n");
    tree_put("d/e/y", "y\n");
    tree_put("z", "z\n");
    tree_checkpoint(session, "c", "d/e/f/x d/e/y z");
    tree_remove("d/e/f/x");
    tree_remove("d/e/f");
    tree_remove("d/e/y");
    tree_remove("d/e");
    tree_remove("d");
    answer = kit_rewind(session, "c");
    assert_rewound(&answer, " d/e/f/x+1-0 d/e/y+1-0");
    tree_assert_content("d/e/f/x", "x\n");
    tree_assert_content("d/e/y", "y\n");
    answer = kit_rewind(session, answer.undo);
    assert_rewound(&answer, " d/e/f/x+0-1 d/e/y+0-1");
    tree_assert_content("d/e/f/x", NULL);
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(rewind__names_and_modes_of_every_kind)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = tree_session(store);
    struct kit_rewind_result answer;

    tree_put("-n\xff\n\"x", "odd\n");
    tree_put("setuid", "s\n");
    tree_chmod("setuid", 04711);
    tree_put("secret", "s\n");
    tree_chmod("secret", 0400);
    tree_link("dangling", "../nowhere at all");
    tree_checkpoint(session, "c", "-n\xff\n\"x setuid secret dangling");
    tree_remove("-n\xff\n\"x");
    tree_put("setuid", "changed\n");
    tree_chmod("setuid", 0644);
    tree_chmod("secret", 0666);
    tree_remove("dangling");
    tree_link("dangling", "elsewhere");
    answer = kit_rewind(session, "c");
    assert_int_equal(answer.info.files_changed, 4);
    tree_assert_content("-n\xff\n\"x", "odd\n");
    tree_assert_mode("setuid", 04711);
    tree_assert_mode("secret", 0400);
    tree_assert_link("dangling", "../nowhere at all");
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(rewind__into_another_root)
{
    struct wal_rewind_options options = options_of(0);
    struct wal_store *store = kit_store();
    struct wal_session *session = make_all(store);
    struct kit_rewind_result answer;
    char root[4096];

    assert_int_equal(rename("tree", "moved"), 0);
    assert_int_equal(mkdir("tree", 0777), 0);
    answer = kit_rewind(session, "c");
    assert_int_equal(answer.info.files_changed, 6);
    check_all_restored();
    assert_int_equal(rename("tree", "tree2"), 0);
    assert_int_equal(rename("moved", "tree"), 0);
    change_all();
    assert_int_equal(rename("tree", "moved"), 0);
    (void)snprintf(root, sizeof(root), "%s", tree_path(""));
    (void)snprintf(strrchr(root, '/'), 8, "/moved");
    options.root = kit_text(root);
    answer = kit_rewind_with(session, "c", &options);
    assert_rewound(&answer, all_changes);
    assert_int_equal(rename("moved", "tree"), 0);
    check_all_restored();
    /* Its undo restores the former position. */
    assert_int_equal(rename("tree", "moved"), 0);
    answer = kit_rewind(session, answer.undo);
    assert_int_equal(rename("moved", "tree"), 0);
    check_all_changed();
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(rewind__forks_keep_their_checkpoints)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = tree_session(store);
    struct wal_session *fork;
    struct kit_rewind_result answer;

    tree_put("a", "1\n");
    tree_checkpoint(session, "c1", "a");
    kit_append_all(session, "e1 e2");
    fork = kit_fork(session, "e1", "f");
    tree_put("a", "2\n");
    tree_checkpoint(fork, "c2", "a");
    tree_put("a", "3\n");
    answer = kit_rewind(fork, "c1");
    assert_rewound(&answer, " a+1-1");
    tree_assert_content("a", "1\n");
    /* The conversation stays where it is; the source knows nothing of c2. */
    assert_branch(session, "e1 e2");
    answer = kit_rewind(session, "c2");
    assert_rewind_refused(&answer, WAL_ENOTFOUND, "c2");
    assert_ok(wal_session_delete(session, NULL));
    answer = kit_rewind(fork, "c2");
    assert_rewound(&answer, " a+1-1");
    answer = kit_rewind(fork, "c1");
    assert_rewound(&answer, " a+1-1");
    wal_session_close(fork);
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(rewind__with_a_store_in_memory)
{
    struct wal_store *store = kit_open("memory", WAL_OPEN_MEMORY);
    struct wal_session *session = make_all(store);
    struct kit_rewind_result answer;

    change_all();
    answer = kit_rewind(session, "c");
    assert_rewound(&answer, all_changes);
    check_all_restored();
    answer = kit_rewind(session, answer.undo);
    check_all_changed();
    wal_session_close(session);
    kit_close(store);
}

/* --- what was expected --------------------------------------------------- */

KIT_TEST(rewind__file_changed_by_others_is_refused_unless_forced)
{
    struct wal_rewind_options options = options_of(0);
    struct wal_store *store = kit_store();
    struct wal_session *session = tree_session(store);
    struct kit_rewind_result answer;

    tree_put("a", "1\n");
    tree_put("b", "1\n");
    tree_put("same", "1\n");
    tree_checkpoint(session, "old", "a b same");
    tree_put("a", "2\n");
    tree_put("b", "2\n");
    tree_checkpoint(session, "mine", "a b same");
    options.expected = kit_text("mine");
    tree_put("b", "somebody's\n");
    answer = kit_rewind_with(session, "old", &options);
    assert_rewind_refused(&answer, WAL_ECHANGED, "b");
    assert_string_equal(answer.list, " b+0-0!");
    assert_int_equal(answer.info.changed_elsewhere, 1);
    tree_assert_content("a", "2\n");
    tree_assert_content("b", "somebody's\n");
    options.flags = WAL_REWIND_DRY_RUN;
    answer = kit_rewind_with(session, "old", &options);
    assert_rewind_refused(&answer, WAL_ECHANGED, "b");
    options.flags = WAL_REWIND_FORCE;
    answer = kit_rewind_with(session, "old", &options);
    assert_rewound(&answer, " a+1-1 b+1-1 b+0-0!");
    assert_int_equal(answer.info.files_changed, 2);
    assert_int_equal(answer.info.changed_elsewhere, 1);
    tree_assert_content("a", "1\n");
    tree_assert_content("b", "1\n");
    answer = kit_rewind(session, answer.undo);
    tree_assert_content("b", "somebody's\n");
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(rewind__files_in_the_expected_state_are_replaced)
{
    struct wal_rewind_options options = options_of(0);
    struct wal_store *store = kit_store();
    struct wal_session *session = tree_session(store);
    struct kit_rewind_result answer;

    tree_put("a", "1\n");
    tree_put("b", "1\n");
    tree_checkpoint(session, "old", "a b");
    tree_put("a", "2\n");
    tree_checkpoint(session, "mine", "a b other");
    /* Not to be changed, or not of this checkpoint. */
    tree_put("other", "somebody's\n");
    options.expected = kit_text("mine");
    answer = kit_rewind_with(session, "old", &options);
    assert_rewound(&answer, " a+1-1");
    options.expected = kit_text("none such");
    answer = kit_rewind_with(session, "old", &options);
    assert_rewind_refused(&answer, WAL_ENOTFOUND, "none such");
    wal_session_close(session);
    kit_close(store);
}

/* A text that LZ4 does not make smaller. */
static char restored[4097];

/* Damages the content in the store when the first file is staged. */
static enum wal_status damage_and_create(void *ctx, struct wal__worktree *tree,
                                         const char *path, uint32_t mode,
                                         struct wal__worktree_file **file,
                                         int *sys_errno)
{
    assert_int_equal(tree_flip_content(restored, strlen(restored)), 1);
    return wal__worktree_posix.create(ctx, tree, path, mode, file, sys_errno);
}

KIT_TEST(rewind__verified_content_is_not_read_again)
{
    const struct wal_open_options options = {.struct_size = sizeof(options)};
    struct wal__worktree_io tree = wal__worktree_posix;
    struct wal__io io = wal__io_posix;
    struct wal_store *store = kit_store();
    struct wal_session *session = tree_session(store);
    struct kit_rewind_result answer;
    uint64_t seed = 1;

    for (size_t i = 0; i + 1 < sizeof(restored); i++) {
        restored[i] = (char)(kit_random(&seed) >> 57 | 1);
    }
    tree_put("a", restored);
    tree_checkpoint(session, "c", "a");
    tree_put("a", "new a\n");
    wal_session_close(session);
    kit_close(store);
    tree.create = damage_and_create;
    io.worktree = &tree;
    assert_ok(
        wal__store_open("store", &options, &wal__heap_libc, &io, &store, NULL));
    session = kit_session(store, "s");
    answer = kit_rewind(session, "c");
    assert_int_equal(answer.info.can_rewind, 1);
    tree_assert_content("a", restored);
    wal_session_close(session);
    kit_close(store);
}
