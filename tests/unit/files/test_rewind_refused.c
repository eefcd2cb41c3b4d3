/*
 * test_rewind_refused.c - rewinds that cannot be done: the error says why, no file is touched, none
 * is left over, no checkpoint is made. Rewinds in a hostile work tree: names and paths of the
 * greatest length, holes, hard links, and another process that makes links, removes permissions, or
 * fills the disk during the rewind.
 *
 * The next call after a rewind whose process died: a test for each row of the table in SPEC.md
 * 5.15. The rewinds change a, d/b and n/c (whose directory is missing) and remove z.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/heap.h"
#include "engine/base/io.h"
#include "engine/session/store.h"
#include "format/bytes/assert.h"
#include "tests/lib/kit/rewind_kit.h"

static int count_checkpoints(struct wal_session *session)
{
    struct wal_checkpoint_info info = {.struct_size = sizeof(info)};
    struct wal_checkpoint_cursor *list = NULL;
    int count = 0;

    assert_ok(wal_checkpoint_cursor_open(session, &list, NULL));
    while (wal_checkpoint_cursor_next(list, &info, NULL) == WAL_OK) {
        count++;
    }
    wal_checkpoint_cursor_close(list);
    return count;
}

/* Two files changed since checkpoint "c". */
static struct wal_session *make_changed(struct wal_store *store)
{
    struct wal_session *session = tree_session(store);

    tree_directory("d");
    tree_put("a", "old a\n");
    tree_put("d/b", "old b\n");
    tree_checkpoint(session, "c", "a d/b");
    tree_put("a", "new a\n");
    tree_put("d/b", "new b\n");
    return session;
}

static void check_untouched(struct wal_session *session)
{
    tree_assert_content("a", "new a\n");
    assert_int_equal(count_checkpoints(session), 1);
}

KIT_TEST(rewind_refused__unknown_checkpoint)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = make_changed(store);
    struct kit_rewind_result answer = kit_rewind(session, "none such");

    assert_rewind_refused(&answer, WAL_ENOTFOUND, "none such");
    check_untouched(session);
    tree_assert_content("d/b", "new b\n");
}

KIT_TEST(rewind_refused__checkpoints_off)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = make_changed(store);
    struct kit_rewind_result answer;

    assert_ok(wal_session_set_checkpointing(session, 0, NULL));
    answer = kit_rewind(session, "c");
    assert_rewind_refused(&answer, WAL_ENOTFOUND, "off");
    check_untouched(session);
    assert_ok(wal_session_set_checkpointing(session, 1, NULL));
    answer = kit_rewind(session, "c");
    assert_rewound(&answer, " a+1-1 d/b+1-1");
}

KIT_TEST(rewind_refused__persistence_off)
{
    struct wal_store *store = kit_open("store", WAL_OPEN_NOOP);
    struct wal_session *session = kit_create(store, "s");
    struct wal_rewind_options options = {.struct_size = sizeof(options),
                                         .root = kit_text("relative")};
    struct wal_file_change_cursor *changes = NULL;
    struct kit_rewind_result answer = kit_rewind(session, "c");

    assert_rewind_refused(&answer, WAL_ENOTFOUND, "no checkpoint \"c\"");
    assert_int_equal(wal_rewind(session, kit_text("c"), &options, NULL, &changes, kit_error()),
                     WAL_EINVAL);
}

KIT_TEST(rewind_refused__invalid_arguments)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = make_changed(store);
    struct wal_rewind_options options = {.struct_size = sizeof(options), .flags = 8};
    struct wal_file_change_cursor *changes = NULL;
    struct wal_rewind_result result = {.struct_size = sizeof(result)};

    assert_fails(wal_rewind(session, kit_text("c"), &options, NULL, &changes, kit_error()),
                 WAL_EINVAL, "flags");
    options.flags = 0;
    options.root = kit_text("not/absolute");
    assert_fails(wal_rewind(session, kit_text("c"), &options, NULL, &changes, kit_error()),
                 WAL_EINVAL, "absolute");
    options.root = kit_text("");
    options.struct_size--;
    assert_int_equal(wal_rewind(session, kit_text("c"), &options, NULL, &changes, kit_error()),
                     WAL_EINVAL);
    assert_int_equal(wal_rewind(session, kit_text(""), NULL, NULL, &changes, kit_error()),
                     WAL_EINVAL);
    assert_int_equal(wal_rewind(NULL, kit_text("c"), NULL, NULL, &changes, kit_error()),
                     WAL_EINVAL);
    result.struct_size--;
    assert_int_equal(wal_rewind(session, kit_text("c"), NULL, &result, &changes, kit_error()),
                     WAL_EINVAL);
    assert_null(changes);
    check_untouched(session);
}

/* --- contents ------------------------------------------------------------ */

/* Bytes that no compression makes smaller. */
static void fill(uint8_t *data, size_t size, uint64_t seed)
{
    for (size_t i = 0; i < size; i++) {
        data[i] = (uint8_t)(kit_random(&seed) >> 56);
    }
}

KIT_TEST(rewind_refused__damaged_content_changes_nothing)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = tree_session(store);
    struct kit_rewind_result answer;
    uint8_t first[4096];
    uint8_t second[4096];

    fill(first, sizeof(first), 1);
    fill(second, sizeof(second), 2);
    tree_put_bytes("a", first, sizeof(first));
    tree_put_bytes("b", second, sizeof(second));
    tree_put("c", "c\n");
    tree_checkpoint(session, "c", "a b c");
    tree_put("a", "new a\n");
    tree_put("b", "new b\n");
    wal_session_close(session);
    kit_close(store);
    assert_int_equal(tree_flip_content(second, sizeof(second)), 1);

    store = kit_store();
    session = kit_session(store, "s");
    answer = kit_rewind(session, "c");
    assert_rewind_refused(&answer, WAL_ECORRUPT, "b: its content ");
    /* SHA-256 of what `b` held, as sha256sum says it. */
    assert_non_null(strstr(answer.error, tree_digest(second, sizeof(second))));
    tree_assert_content("a", "new a\n");
    tree_assert_content("b", "new b\n");
    assert_string_equal(tree_names(), "a b c");
    assert_int_equal(count_checkpoints(session), 1);
    /* It is no obstacle to what does not need it. */
    tree_remove("b");
    tree_put_bytes("b", second, sizeof(second));
    answer = kit_rewind(session, "c");
    assert_int_equal(answer.info.can_rewind, 1);
}

/* --- places -------------------------------------------------------------- */

KIT_TEST(rewind_refused__directory_in_place_of_a_file)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = make_changed(store);
    struct kit_rewind_result answer;

    tree_remove("d/b");
    tree_directory("d/b");
    answer = kit_rewind(session, "c");
    assert_rewind_refused(&answer, WAL_ENOTFILE, "d/b");
    check_untouched(session);
    assert_string_equal(tree_names(), "a d/ d/b/");
}

KIT_TEST(rewind_refused__parent_is_a_file)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = make_changed(store);
    struct kit_rewind_result answer;

    tree_remove("d/b");
    tree_remove("d");
    tree_put("d", "in the way\n");
    answer = kit_rewind(session, "c");
    assert_rewind_refused(&answer, WAL_ENOTFILE, "d/b");
    check_untouched(session);
    tree_assert_content("d", "in the way\n");
}

KIT_TEST(rewind_refused__parent_is_a_link)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = make_changed(store);
    struct kit_rewind_result answer;

    assert_int_equal(mkdir("outside", 0777), 0);
    tree_remove("d/b");
    tree_remove("d");
    tree_link("d", "../outside");
    answer = kit_rewind(session, "c");
    assert_rewind_refused(&answer, WAL_EOUTSIDE, "d/b");
    check_untouched(session);
    assert_int_equal(rmdir("outside"), 0);
}

KIT_TEST(rewind_refused__pipe_in_place_of_a_file)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = make_changed(store);
    struct kit_rewind_result answer;

    tree_remove("d/b");
    assert_int_equal(mkfifo(tree_path("d/b"), 0666), 0);
    answer = kit_rewind(session, "c");
    assert_rewind_refused(&answer, WAL_ENOTFILE, "d/b");
    check_untouched(session);
}

KIT_TEST(rewind_refused__missing_root)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = make_changed(store);
    struct kit_rewind_result answer;

    assert_int_equal(rename("tree", "moved"), 0);
    answer = kit_rewind(session, "c");
    assert_rewind_refused(&answer, WAL_ENOTFOUND, "tree");
    assert_int_equal(rename("moved", "tree"), 0);
    check_untouched(session);
}

/* Whether a superuser is bound by permission bits as others are. */
static void be_bound(bool bound)
{
    const uint32_t powers = 1u << CAP_DAC_OVERRIDE | 1u << CAP_DAC_READ_SEARCH;
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];

    assert_int_equal(syscall(SYS_capget, &head, data), 0);
    if (bound) {
        data[0].effective &= ~powers;
    } else {
        data[0].effective |= data[0].permitted & powers;
    }
    assert_int_equal(syscall(SYS_capset, &head, data), 0);
}

KIT_TEST(rewind_refused__directory_without_write_permission)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = make_changed(store);
    struct kit_rewind_result answer;

    be_bound(true);
    tree_chmod("d", 0555);
    answer = kit_rewind(session, "c");
    assert_rewind_refused(&answer, WAL_EACCESS, "d/b");
    check_untouched(session);
    tree_chmod("d", 0777);
    tree_chmod("d/b", 0);
    answer = kit_rewind(session, "c");
    assert_rewind_refused(&answer, WAL_EACCESS, "d/b");
    check_untouched(session);
    assert_string_equal(tree_names(), "a d/ d/b");
    tree_chmod("d/b", 0644);
    answer = kit_rewind(session, "c");
    assert_rewound(&answer, " a+1-1 d/b+1-1");
    wal_session_close(session);
    kit_close(store);
    be_bound(false);
}

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
}

/* Creates the directories of a path of `size` bytes, `last` of them in its last component, and the
 * file; returns its directory, to be closed. */
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
        WAL__ASSERT(mkdirat(directory, path + at, 0777) == 0 || errno == EEXIST);
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

    WAL__ASSERT(fd >= 0 && write(fd, content, strlen(content)) == (ssize_t)strlen(content));
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

static enum wal_status checkpoint_one(struct wal_session *session, const char *id, const char *path)
{
    struct wal_checkpoint_options options = {.struct_size = sizeof(options), .id = kit_text(id)};
    const struct wal_slice slice = kit_text(path);

    return wal_checkpoint_create(session, &slice, 1, &options, NULL, NULL);
}

/* The longest path that the system accepts, and one that leaves no room for the name of a temporary
 * file in its directory: then nothing is touched. */
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
            assert_rewind_refused(&answer, WAL_ETOOBIG, "replacing the file");
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

        if (bytes[i] != (i >= middle && i < middle + 6 ? "middle"[i - middle] : 0)) {
            fail_msg("byte %zu is %d", i, bytes[i]);
        }
    }
}

/* Two names of one file are two files of one content; the name that is not of the checkpoint keeps
 * what it had. */
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
}

/* --- concurrent changes -------------------------------------------------- */

/* What happens right before the Nth call, from 0, that puts a file in place or writes one. */
static struct {
    void (*act)(void);
    uint32_t renames;
    uint32_t writes;
    enum wal_status fails; /* instead of the call */
} strike;

static enum wal_status intervene(uint32_t *left)
{
    if (*left == UINT32_MAX || (*left)-- != 0) {
        return WAL_OK;
    }
    *left = UINT32_MAX;
    if (strike.act != NULL) {
        strike.act();
    }
    return strike.fails;
}

static enum wal_status watch_rename(void *ctx, struct wal__worktree *tree, const char *from,
                                    const char *to, int *sys_errno)
{
    enum wal_status status = intervene(&strike.renames);

    *sys_errno = EACCES;
    return status == WAL_OK ? wal__worktree_posix.rename(ctx, tree, from, to, sys_errno) : status;
}

static enum wal_status watch_write(void *ctx, struct wal__worktree_file *file, const void *data,
                                   size_t size, uint64_t offset, size_t *put, int *sys_errno)
{
    enum wal_status status = intervene(&strike.writes);

    *sys_errno = ENOSPC;
    return status == WAL_OK
               ? wal__worktree_posix.write(ctx, file, data, size, offset, put, sys_errno)
               : status;
}

/* A store whose rewinds go file by file, and are watched. */
static struct wal_store *open_watched_store(void)
{
    struct wal_store *store = NULL;
    static struct wal__worktree_io tree;
    static struct wal__io io;
    struct wal_open_options options = {.struct_size = sizeof(options), .flags = WAL_OPEN_CREATE};

    tree = wal__worktree_posix;
    tree.rename = watch_rename;
    tree.write = watch_write;
    io = wal__io_posix;
    io.worktree = &tree;
    io.threads = false;
    memset(&strike, 0, sizeof(strike));
    strike.renames = UINT32_MAX;
    strike.writes = UINT32_MAX;
    assert_ok(wal__store_open("store", &options, &wal__heap_libc, &io, &store, NULL));
    return store;
}

static struct wal_session *open_watched(struct wal_store **store)
{
    *store = open_watched_store();
    return tree_session(*store);
}

static void make_three_changed(struct wal_session *session)
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

        make_three_changed(session);
        assert_int_equal(mkdir("outside", 0777), 0);
        strike.act = swap_parent;
        strike.renames = nth;
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

        make_three_changed(session);
        strike.fails = WAL_EACCESS;
        strike.renames = nth;
        answer = kit_rewind(session, "c");
        assert_rewind_refused(&answer, WAL_EACCESS, "replacing the file");
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

        make_three_changed(session);
        strike.fails = WAL_ENOSPACE;
        strike.writes = nth;
        answer = kit_rewind(session, "c");
        assert_rewind_refused(&answer, WAL_ENOSPACE, "writing the file");
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

    make_three_changed(session);
    strike.act = change_a;
    strike.writes = 2;
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

    make_three_changed(session);
    strike.act = change_a_and_set_its_time_back;
    strike.writes = 2;
    answer = kit_rewind(session, "c");
    assert_rewind_refused(&answer, WAL_ECHANGED, "another program changed");
    tree_assert_content("a", "x2\n");
    tree_assert_content("d/b", "b2\n");
    close_watched(store, session);
}

/* A file that was put in place is written to before a later one fails. */
KIT_TEST(rewind_hostile__file_changes_before_it_is_brought_back)
{
    struct wal_store *store;
    struct wal_session *session = open_watched(&store);

    make_three_changed(session);
    strike.act = change_a;
    strike.fails = WAL_EACCESS;
    strike.renames = 1;
    assert_fails(wal_rewind(session, kit_text("c"), NULL, NULL, NULL, kit_error()), WAL_EACCESS,
                 "the rewind is incomplete");
    tree_assert_content("a", "somebody's\n");
    (void)kit_rewind(session, "none such");
    tree_assert_content("a", "somebody's\n");
    tree_assert_content("d/b", "b2\n");
    tree_assert_content("d/c", "c2\n");
    assert_string_equal(tree_names(), "a d/ d/b d/c");
    assert_int_equal(count_checkpoints(session), 2);
    close_watched(store, session);
}

/* Checkpoint "c", after which everything was changed; the store is closed. */
static void make_all_changed(void)
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
static int count_in_store(void)
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
    make_all_changed();
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(tree_crash_rewind("c", TREE_WRITE, i));
        settle();
        check_before();
        assert_int_equal(count_in_store(), 1);
    }
    assert_true(tree_crash_rewind("c", TREE_SYNC_ALL, 0));
    assert_string_not_equal(tree_names(), "a d/ d/b z");
    settle();
    check_before();
    assert_true(tree_crash_rewind("c", TREE_RENAME, 0));
    settle();
    check_before();
    assert_int_equal(count_in_store(), 1);
}

KIT_TEST(rewind_resume__finished_when_a_file_was_moved)
{
    for (uint32_t i = 1; i < 3; i++) {
        make_all_changed();
        assert_true(tree_crash_rewind("c", TREE_RENAME, i));
        settle();
        check_after();
        /* The overwritten content is kept. */
        assert_int_equal(count_in_store(), 2);
        assert_int_equal(system("rm -r tree store"), 0);
    }
}

KIT_TEST(rewind_resume__finished_before_the_last_removal)
{
    make_all_changed();
    assert_true(tree_crash_rewind("c", TREE_UNLINK, 0));
    tree_assert_content("z", "z before the rewind\n");
    settle();
    check_after();
}

KIT_TEST(rewind_resume__nothing_left_to_do)
{
    make_all_changed();
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
    make_all_changed();
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

    make_all_changed();
    assert_true(tree_crash_rewind("c", TREE_RENAME, 1));
    store = kit_store();
    session = kit_session(store, "s");
    tree_checkpoint(session, "next", "a");
    check_after();
}

/* A rewind that finds another begins from what that one comes to. */
KIT_TEST(rewind_resume__by_the_next_rewind)
{
    struct wal_session *session;
    struct kit_rewind_result answer;
    struct wal_store *store;

    make_all_changed();
    assert_true(tree_crash_rewind("c", TREE_RENAME, 1));
    store = kit_store();
    session = kit_session(store, "s");
    answer = kit_rewind(session, "c");
    assert_rewound(&answer, "");
    check_after();
}

/* --- changes by others meanwhile ----------------------------------------- */

KIT_TEST(rewind_resume__files_of_others_are_kept_and_reported)
{
    struct kit_rewind_result answer;

    make_all_changed();
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

/* What another program makes of "z", which is gone. */
static void make_again(void)
{
    tree_put("z", "somebody's z\n");
}

static void make_again_with_other_bits(void)
{
    tree_put("z", "z before the rewind\n");
    tree_chmod("z", 0600);
}

static void make_link(void)
{
    tree_link("z", "a");
}

static void make_directory(void)
{
    tree_directory("z");
}

static void make_pipe(void)
{
    assert_int_equal(mkfifo(tree_path("z"), 0600), 0);
}

/* The id of the checkpoint other than "c"; until the next call. */
static const char *undo_in_store(void)
{
    static char id[WAL_ID_SIZE];
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_session(store, "s");
    struct wal_checkpoint_info info = {.struct_size = sizeof(info)};
    struct wal_checkpoint_cursor *list = NULL;

    id[0] = '\0';
    assert_ok(wal_checkpoint_cursor_open(session, &list, NULL));
    while (wal_checkpoint_cursor_next(list, &info, NULL) == WAL_OK) {
        if (info.id.size > 1) {
            memcpy(id, info.id.data, info.id.size);
            id[info.id.size] = '\0';
        }
    }
    wal_checkpoint_cursor_close(list);
    wal_session_close(session);
    kit_close(store);
    return id;
}

static void rewind_in_store(const char *id)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_session(store, "s");
    struct kit_rewind_result answer = kit_rewind(session, id);

    assert_int_equal(answer.info.can_rewind, 1);
    wal_session_close(session);
    kit_close(store);
}

/* No file is as the rewind made it. What it removed is only in its undo checkpoint. */
KIT_TEST(rewind_resume__content_that_others_replaced_stays_in_the_undo)
{
    void (*const makes[])(void) = {make_again, make_again_with_other_bits, make_link,
                                   make_directory, make_pipe};

    for (size_t i = 0; i < sizeof(makes) / sizeof(makes[0]); i++) {
        struct wal_store *store = kit_store();
        struct wal_session *session = tree_session(store);
        const char *names;

        tree_put("a", "a\n");
        tree_checkpoint(session, "c", "z");
        tree_put("z", "z before the rewind\n");
        wal_session_close(session);
        kit_close(store);
        assert_true(tree_crash_rewind("c", TREE_SYNC_DIRECTORY, 0));
        tree_assert_content("z", NULL);
        makes[i]();
        names = tree_names();
        settle();
        assert_string_equal(tree_names(), names);
        assert_int_equal(count_in_store(), 2);
        tree_remove("z");
        rewind_in_store(undo_in_store());
        tree_assert_content("z", "z before the rewind\n");
        assert_int_equal(system("rm -r tree store"), 0);
    }
}

/* The call that resumes found it as before. */
static void change_b(void)
{
    tree_put("d/b", "somebody's b\n");
}

KIT_TEST(rewind_resume__file_changes_while_the_rewind_is_finished)
{
    struct wal_session *session;
    struct wal_store *store;
    struct kit_rewind_result answer;

    make_all_changed();
    assert_true(tree_crash_rewind("c", TREE_RENAME, 1));
    store = open_watched_store();
    session = kit_session(store, "s");
    strike.act = change_b;
    strike.writes = 0;
    answer = kit_rewind(session, "none such");
    assert_rewind_refused(&answer, WAL_ECHANGED, "d/b: another program changed the file");
    tree_assert_content("d/b", "somebody's b\n");
    tree_assert_content("z", "z before the rewind\n");
    answer = kit_rewind(session, "none such");
    assert_rewind_refused(&answer, WAL_ENOTFOUND, "none such");
    assert_string_equal(answer.list, " d/b+0-0!");
    tree_assert_content("d/b", "somebody's b\n");
    tree_assert_content("n/c", "c of the checkpoint\n");
    assert_string_equal(tree_names(), "a d/ d/b n/ n/c");
    close_watched(store, session);
}

/* A file is in the place of a directory that no list names. */
KIT_TEST(rewind_resume__directory_became_a_file)
{
    struct kit_rewind_result answer;

    make_all_changed();
    assert_true(tree_crash_rewind("c", TREE_RENAME, 1));
    assert_int_equal(system("rm -r tree/n"), 0);
    tree_put("n", "somebody's\n");
    answer = call_next("s");
    assert_rewind_refused(&answer, WAL_ENOTFOUND, "none such");
    tree_assert_content("n", "somebody's\n");
    tree_assert_content("a", "a of the checkpoint\n");
    tree_assert_content("d/b", "b of the checkpoint\n");
    assert_string_equal(tree_names(), "a d/ d/b n");
}

KIT_TEST(rewind_resume__the_checkpoint_was_deleted)
{
    struct wal_session *session;
    struct wal_store *store;

    make_all_changed();
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
    make_all_changed();
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

static void make_filled(uint8_t before[2][4096], uint8_t after[2][4096])
{
    struct wal_store *store = kit_store();
    struct wal_session *session = tree_session(store);

    for (uint64_t i = 0; i < 2; i++) {
        fill(before[i], 4096, 10 + i);
        fill(after[i], 4096, 20 + i);
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

/* A third file, which was replaced, is another program's since. */
KIT_TEST(rewind_resume__undone_without_the_files_of_others)
{
    uint8_t before[2][4096];
    uint8_t after[2][4096];
    struct wal_store *store;
    struct wal_session *session;

    make_filled(before, after);
    store = kit_store();
    session = kit_session(store, "s");
    tree_put("0", "0 of the checkpoint\n");
    tree_checkpoint(session, "c", "0");
    tree_put("0", "0 before the rewind\n");
    wal_session_close(session);
    kit_close(store);
    assert_true(tree_crash_rewind("c", TREE_RENAME, 2));
    tree_assert_content("0", "0 of the checkpoint\n");
    tree_put("0", "somebody's\n");
    assert_int_equal(tree_flip_content(after[1], 4096), 1);
    settle();
    assert_true(is_content("a", before[0]));
    assert_true(is_content("b", before[1]));
    tree_assert_content("0", "somebody's\n");
    rewind_in_store(undo_in_store());
    tree_assert_content("0", "0 before the rewind\n");
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

    make_all_changed();
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

    make_all_changed();
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
