/*
 * test_rewind_hostile.c - rewinds in a hostile work tree: names and paths of
 * the greatest length, holes, hard links, and another process that makes links,
 * removes permissions, or fills the disk during the rewind.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/heap.h"
#include "engine/base/io.h"
#include "engine/session/store.h"
#include "format/bytes/assert.h"
#include "tests/lib/kit/rewind_kit.h"

/* --- the tree's files ---------------------------------------------------- */

KIT_TEST(rewind_hostile__names_of_255_bytes)
{
    struct wal_store *store = kit_open("store", WAL_OPEN_CREATE);
    struct wal_session *session = tree_session(store);
    struct kit_rewind_result answer;
    char name[256];
    char list[300];

    memset(name, 'n', 255);
    name[255] = '\0';
    tree_put(name, "1\n");
    tree_checkpoint(session, "c", name);
    tree_put(name, "2\n");
    answer = kit_rewind(session, "c");
    (void)snprintf(list, sizeof(list), " %s+1-1", name);
    assert_rewound(&answer, list);
    tree_assert_content(name, "1\n");
    wal_session_close(session);
    kit_close(store);
}

/* Creates the directories of a path of `size` bytes, `last` of them in its last
 * component, and the file; returns its directory, to be closed. */
static int make_deep(char *path, size_t size, size_t last, const char *content)
{
    int directory = open(tree_path(""), O_RDONLY | O_DIRECTORY);
    size_t at = 0;

    memset(path, 'd', size);
    path[size] = '\0';
    while (size - last - at > 1) {
        size_t part = size - last - 1 - at < 200 ? size - last - 1 - at : 200;
        int next;

        path[at + part] = '\0';
        WAL__ASSERT(mkdirat(directory, path + at, 0777) == 0 ||
                    errno == EEXIST);
        next = openat(directory, path + at, O_RDONLY | O_DIRECTORY);
        WAL__ASSERT(next >= 0 && close(directory) == 0);
        directory = next;
        path[at + part] = '/';
        at += part + 1;
        if (size - last - at == 1) {
            WAL__ASSERT(false); /* no room for a part */
        }
        if (at == size - last) {
            break;
        }
    }
    int fd = openat(directory, path + at, O_WRONLY | O_CREAT | O_TRUNC, 0644);

    WAL__ASSERT(fd >= 0 && write(fd, content, strlen(content)) ==
                               (ssize_t)strlen(content));
    WAL__ASSERT(close(fd) == 0);
    return directory;
}

static void expect_content(int directory, const char *name, const char *content)
{
    char found[16] = "";
    int fd = openat(directory, name, O_RDONLY);

    assert_true(fd >= 0);
    assert_true(read(fd, found, sizeof(found) - 1) >= 0);
    assert_int_equal(close(fd), 0);
    assert_string_equal(found, content);
}

static enum wal_status checkpoint_one(struct wal_session *session,
                                      const char *id, const char *path)
{
    struct wal_checkpoint_options options = {.struct_size = sizeof(options),
                                             .id = kit_text(id)};
    const struct wal_slice slice = kit_text(path);

    return wal_checkpoint_create(session, &slice, 1, &options, NULL, NULL);
}

/* The longest path that the system accepts, and one that leaves no room for
 * the name of a temporary file in its directory: then nothing is touched. */
KIT_TEST(rewind_hostile__paths_of_4095_bytes)
{
    static const size_t lasts[] = {200, 1};
    char path[4096];

    for (size_t i = 0; i < 2; i++) {
        struct wal_store *store = kit_open("store", WAL_OPEN_CREATE);
        struct wal_session *session = tree_session(store);
        const char *name = path + 4095 - lasts[i];
        struct kit_rewind_result answer;
        int directory = make_deep(path, 4095, lasts[i], "1\n");

        assert_ok(checkpoint_one(session, "c", path));
        WAL__ASSERT(close(directory) == 0);
        directory = make_deep(path, 4095, lasts[i], "two\n");
        answer = kit_rewind(session, "c");
        if (lasts[i] == 200) {
            assert_int_equal(answer.info.can_rewind, 1);
            assert_int_equal(answer.info.files_changed, 1);
            expect_content(directory, name, "1\n");
        } else {
            assert_rewind_refused(&answer, WAL_ETOOBIG,
                                  "cannot replace the file");
            expect_content(directory, name, "two\n");
        }
        WAL__ASSERT(close(directory) == 0);
        wal_session_close(session);
        kit_close(store);
        assert_int_equal(system("rm -r tree store"), 0);
    }
}

KIT_TEST(rewind_hostile__holes_are_zeros)
{
    struct wal_store *store = kit_open("store", WAL_OPEN_CREATE);
    struct wal_session *session = tree_session(store);
    static char bytes[3 * 1024 * 1024];
    struct kit_rewind_result answer;
    int fd;

    fd = open(tree_path("sparse"), O_RDWR | O_CREAT, 0644);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, sizeof(bytes)), 0);
    assert_int_equal(pwrite(fd, "middle", 6, sizeof(bytes) / 2), 6);
    tree_checkpoint(session, "c", "sparse");
    assert_int_equal(pwrite(fd, "x", 1, 5), 1);
    assert_int_equal(ftruncate(fd, 100), 0);
    assert_int_equal(close(fd), 0);
    answer = kit_rewind(session, "c");
    assert_rewound(&answer, " sparse+0-0*");
    fd = open(tree_path("sparse"), O_RDONLY);
    assert_int_equal(read(fd, bytes, sizeof(bytes)), sizeof(bytes));
    assert_int_equal(close(fd), 0);
    for (size_t i = 0; i < sizeof(bytes); i++) {
        size_t middle = sizeof(bytes) / 2;

        if (bytes[i] !=
            (i >= middle && i < middle + 6 ? "middle"[i - middle] : 0)) {
            fail_msg("byte %zu is %d", i, bytes[i]);
        }
    }
    wal_session_close(session);
    kit_close(store);
}

/* Two names of one file are two files of one content; the name that is not of
 * the checkpoint keeps what it had. */
KIT_TEST(rewind_hostile__other_hard_links_are_unchanged)
{
    struct wal_store *store = kit_open("store", WAL_OPEN_CREATE);
    struct wal_session *session = tree_session(store);
    struct kit_rewind_result answer;

    tree_put("a", "1\n");
    assert_int_equal(link(tree_path("a"), tree_path("b")), 0);
    assert_int_equal(link(tree_path("a"), tree_path("other")), 0);
    tree_checkpoint(session, "c", "a b");
    tree_put("a", "2\n"); /* and so the others */
    tree_assert_content("other", "2\n");
    answer = kit_rewind(session, "c");
    assert_rewound(&answer, " a+1-1 b+1-1");
    tree_assert_content("a", "1\n");
    tree_assert_content("b", "1\n");
    tree_assert_content("other", "2\n");
    wal_session_close(session);
    kit_close(store);
}

/* --- concurrent changes -------------------------------------------------- */

/* What happens right before the Nth call, from 0, that puts a file in place or
 * writes one. */
static struct {
    void (*act)(void);
    uint32_t renames;
    uint32_t writes;
    enum wal_status fails; /* instead of the call */
} before;

static enum wal_status intervene(uint32_t *left)
{
    if (*left == UINT32_MAX || (*left)-- != 0) {
        return WAL_OK;
    }
    *left = UINT32_MAX;
    if (before.act != NULL) {
        before.act();
    }
    return before.fails;
}

static enum wal_status watch_rename(void *ctx, struct wal__worktree *tree,
                                    const char *from, const char *to,
                                    int *sys_errno)
{
    enum wal_status status = intervene(&before.renames);

    *sys_errno = EACCES;
    return status == WAL_OK
               ? wal__worktree_posix.rename(ctx, tree, from, to, sys_errno)
               : status;
}

static enum wal_status watch_write(void *ctx, struct wal__worktree_file *file,
                                   const void *data, size_t size,
                                   uint64_t offset, size_t *put, int *sys_errno)
{
    enum wal_status status = intervene(&before.writes);

    *sys_errno = ENOSPC;
    return status == WAL_OK ? wal__worktree_posix.write(ctx, file, data, size,
                                                        offset, put, sys_errno)
                            : status;
}

/* A store whose rewinds go file by file, and are watched. */
static struct wal_session *open_watched(struct wal_store **store)
{
    static struct wal__worktree_io tree;
    static struct wal__io io;
    struct wal_open_options options = {.struct_size = sizeof(options),
                                       .flags = WAL_OPEN_CREATE};

    tree = wal__worktree_posix;
    tree.rename = watch_rename;
    tree.write = watch_write;
    io = wal__io_posix;
    io.worktree = &tree;
    io.threads = false;
    memset(&before, 0, sizeof(before));
    before.renames = UINT32_MAX;
    before.writes = UINT32_MAX;
    assert_ok(
        wal__store_open("store", &options, &wal__heap_libc, &io, store, NULL));
    return tree_session(*store);
}

static void make_changed(struct wal_session *session)
{
    tree_directory("d");
    tree_put("a", "a1\n");
    tree_put("d/b", "b1\n");
    tree_put("d/c", "c1\n");
    tree_checkpoint(session, "c", "a d/b d/c");
    tree_put("a", "a2\n");
    tree_put("d/b", "b2\n");
    tree_put("d/c", "c2\n");
}

static void close_watched(struct wal_store *store, struct wal_session *session)
{
    wal_session_close(session);
    kit_close(store);
}

/* The parent is a link to elsewhere from now on. */
static void swap_parent(void)
{
    assert_int_equal(rename(tree_path("d"), tree_path("moved")), 0);
    assert_int_equal(symlink("../outside", tree_path("d")), 0);
}

KIT_TEST(rewind_hostile__parent_becomes_a_link_during_the_rewind)
{
    for (uint32_t nth = 0; nth < 3; nth++) {
        struct wal_store *store;
        struct wal_session *session = open_watched(&store);

        make_changed(session);
        assert_int_equal(mkdir("outside", 0777), 0);
        before.act = swap_parent;
        before.renames = nth;
        /* The files below cannot be brought back either: they are gone. */
        (void)!wal_rewind(session, kit_text("c"), NULL, NULL, NULL, NULL);
        assert_int_equal(rmdir("outside"), 0); /* nothing was put there */
        /* Once the directory is back, the next call completes the rewind. */
        assert_int_equal(unlink(tree_path("d")), 0);
        assert_int_equal(rename(tree_path("moved"), tree_path("d")), 0);
        (void)kit_rewind(session, "none such");
        (void)kit_rewind(session, "c");
        tree_assert_content("a", "a1\n");
        tree_assert_content("d/b", "b1\n");
        tree_assert_content("d/c", "c1\n");
        assert_string_equal(tree_names(), "a d/ d/b d/c");
        close_watched(store, session);
        assert_int_equal(system("rm -r tree store"), 0);
    }
}

static void expect_untouched(void)
{
    tree_assert_content("a", "a2\n");
    tree_assert_content("d/b", "b2\n");
    tree_assert_content("d/c", "c2\n");
    assert_string_equal(tree_names(), "a d/ d/b d/c");
}

KIT_TEST(rewind_hostile__permission_is_denied_in_the_middle)
{
    for (uint32_t nth = 0; nth < 3; nth++) {
        struct wal_store *store;
        struct wal_session *session = open_watched(&store);
        struct kit_rewind_result answer;

        make_changed(session);
        before.fails = WAL_EACCESS;
        before.renames = nth;
        answer = kit_rewind(session, "c");
        assert_rewind_refused(&answer, WAL_EACCESS, "cannot replace the file");
        expect_untouched();
        close_watched(store, session);
        assert_int_equal(system("rm -r tree store"), 0);
    }
}

KIT_TEST(rewind_hostile__no_space_for_restored_files)
{
    for (uint32_t nth = 0; nth < 3; nth++) {
        struct wal_store *store;
        struct wal_session *session = open_watched(&store);
        struct kit_rewind_result answer;

        make_changed(session);
        before.fails = WAL_ENOSPACE;
        before.writes = nth;
        answer = kit_rewind(session, "c");
        assert_rewind_refused(&answer, WAL_ENOSPACE, "cannot write the file");
        expect_untouched();
        close_watched(store, session);
        assert_int_equal(system("rm -r tree store"), 0);
    }
}

/* A file is overwritten between the check and the rename. */
static void change_a(void)
{
    tree_put("a", "somebody's\n");
}

KIT_TEST(rewind_hostile__file_changes_during_the_rewind)
{
    struct wal_store *store;
    struct wal_session *session = open_watched(&store);
    struct kit_rewind_result answer;

    make_changed(session);
    before.act = change_a;
    before.writes = 2;
    answer = kit_rewind(session, "c");
    assert_rewind_refused(&answer, WAL_ECHANGED, "another program changed");
    tree_assert_content("a", "somebody's\n");
    tree_assert_content("d/b", "b2\n");
    tree_assert_content("d/c", "c2\n");
    assert_string_equal(tree_names(), "a d/ d/b d/c");
    close_watched(store, session);
}

/* With the same size, and with the time of modification that it had. */
static void change_a_and_set_its_time_back(void)
{
    const struct timespec pause = {0, 20000000};
    struct timespec times[2];
    struct stat stat;
    int fd = open(tree_path("a"), O_WRONLY | O_CLOEXEC);

    (void)nanosleep(&pause, NULL);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &stat), 0);
    assert_int_equal(pwrite(fd, "x2\n", 3, 0), 3);
    times[0] = stat.st_atim;
    times[1] = stat.st_mtim;
    assert_int_equal(futimens(fd, times), 0);
    close(fd);
}

KIT_TEST(rewind_hostile__changed_file_has_its_old_time)
{
    struct wal_store *store;
    struct wal_session *session = open_watched(&store);
    struct kit_rewind_result answer;

    make_changed(session);
    before.act = change_a_and_set_its_time_back;
    before.writes = 2;
    answer = kit_rewind(session, "c");
    assert_rewind_refused(&answer, WAL_ECHANGED, "another program changed");
    tree_assert_content("a", "x2\n");
    tree_assert_content("d/b", "b2\n");
    close_watched(store, session);
}
