/*
 * test_rewind.c - files restored to a checkpoint: every kind of change, its report, undoing, forks,
 * and concurrent changes by other programs. WAL_REWIND_HEAD (SPEC.md 5.15): files and the head
 * `main` are rewound, or neither, also when the process dies. Rewinds of several threads: one at a
 * time, so that each finds all files as the one before left them.
 */
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/base/heap.h"
#include "engine/base/io.h"
#include "engine/session/store.h"
#include "format/bytes/assert.h"
#include "tests/lib/kit/rewind_kit.h"

static struct wal_rewind_options options_of(uint32_t flags)
{
    struct wal_rewind_options options = {.struct_size = sizeof(options), .flags = flags};

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
}

/* A text that LZ4 does not make smaller. */
static char restored[4097];

/* Damages the content in the store when the first file is staged. */
static enum wal_status damage_and_create(void *ctx, struct wal__worktree *tree, const char *path,
                                         uint32_t mode, struct wal__worktree_file **file,
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
    assert_ok(wal__store_open("store", &options, &wal__heap_libc, &io, &store, NULL));
    session = kit_session(store, "s");
    answer = kit_rewind(session, "c");
    assert_int_equal(answer.info.can_rewind, 1);
    tree_assert_content("a", restored);
    wal_session_close(session);
    kit_close(store);
}

static struct kit_rewind_result rewind_head(struct wal_session *session, const char *id,
                                            uint32_t flags)
{
    const struct wal_rewind_options options = {.struct_size = sizeof(options),
                                               .flags = flags | WAL_REWIND_HEAD};

    return kit_rewind_with(session, id, &options);
}

static void assert_heads(const struct kit_rewind_result *answer, const char *previous,
                         const char *new)
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

/* Checkpoint "c" at entry "e1" of files a and b, then both changed, and the entries e2 and e3. */
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

KIT_TEST(rewind_head__stays_without_the_flag)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = make_changed(store);
    struct kit_rewind_result answer = kit_rewind(session, "c");

    assert_rewound(&answer, " a+1-1 b+1-1");
    assert_heads(&answer, "", "");
    assert_main(session, "e3");
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
}

/* --- dying --------------------------------------------------------------- */

/* Dies at the call in a rewind of "c", then makes the next call. */
static struct wal_session *crash_and_recover(struct wal_store **store, enum tree_crash_point call,
                                             uint32_t nth, const char *continued)
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
    static const enum tree_crash_point calls[] = {TREE_WRITE, TREE_SYNC_ALL, TREE_RENAME};
    struct wal_store *store;

    for (int i = 0; i < 3; i++) {
        struct wal_session *session = crash_and_recover(&store, calls[i], 0, "");

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
            &store, i == 0 ? TREE_RENAME : TREE_SYNC_DIRECTORY, i == 0 ? 1 : 0, "");

        assert_after(session);
        wal_session_close(session);
        kit_close(store);
    }
}

/* The head is left where the program that went on has moved it. */
KIT_TEST(rewind_head__of_a_continued_session_stays)
{
    struct wal_store *store;
    struct wal_session *session = crash_and_recover(&store, TREE_SYNC_DIRECTORY, 0, "e4");

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
static enum wal_status append_and_sync(void *ctx, struct wal__worktree *tree, const char *paths,
                                       size_t size, int *sys_errno)
{
    if (appender != NULL) {
        struct wal_session *session = appender;

        appender = NULL;
        kit_append_all(session, "meanwhile");
    }
    return wal__worktree_posix.sync_directories(ctx, tree, paths, size, sys_errno);
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
    assert_ok(wal__store_open("store", &options, &wal__heap_libc, &io, &store, NULL));
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

enum { THREADS = 4, ROUNDS = 12 };

struct worker {
    struct wal_store *store;
    unsigned number;
};

static void *work(void *arg)
{
    const struct worker *worker = arg;
    struct wal_session *session = NULL;

    WAL__ASSERT(wal_session_open(worker->store, kit_text("s"), &session, NULL) == WAL_OK);
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct wal_rewind_result info = {.struct_size = sizeof(info)};
        const char *id = (worker->number + i) % 2 == 0 ? "c0" : "c1";

        WAL__ASSERT(wal_rewind(session, kit_text(id), NULL, &info, NULL, NULL) == WAL_OK);
        /* All or none of the three were in the other state. */
        WAL__ASSERT(info.can_rewind == 1 && (info.files_changed == 0 || info.files_changed == 3));
    }
    wal_session_close(session);
    return NULL;
}

static void make_states(struct wal_session *session)
{
    tree_put("a", "0\n");
    tree_put("b", "0\n");
    tree_checkpoint(session, "c0", "a b c");
    tree_put("a", "1\n");
    tree_put("b", "1\n");
    tree_put("c", "1\n");
    tree_checkpoint(session, "c1", "a b c");
}

KIT_TEST(rewind_threads__one_at_a_time)
{
    struct wal_store *stores[2] = {kit_store(), NULL};
    struct wal_session *session = tree_session(stores[0]);
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    struct kit_rewind_result answer;

    make_states(session);
    stores[1] = kit_store();
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){stores[i % 2], i / 2};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    answer = kit_rewind(session, "c0");
    assert_int_equal(answer.info.can_rewind, 1);
    tree_assert_content("a", "0\n");
    tree_assert_content("b", "0\n");
    assert_string_equal(tree_names(), "a b");
}
