/*
 * tree_cases.c - a root under test, every call on it, and what every table of tree.h does
 * (tree_cases.h): each test begins with an empty root.
 */
#include "tests/lib/tree_cases.h"

#include <errno.h>
#include <string.h>

static const struct tree_backend *world;
static const struct wal__worktree_io *io;
static struct wal__worktree *tree;

void tree_case_set_up(const struct tree_backend *used)
{
    int sys_errno = 0;

    world = used;
    io = used->io;
    assert_ok(io->open_root(io->ctx, used->root, &tree, &sys_errno));
}

void tree_case_tear_down(void)
{
    io->close_root(io->ctx, tree);
    tree = NULL;
}

const struct tree_backend *tree_case_backend(void)
{
    return world;
}

struct wal__worktree *tree_case_root(void)
{
    return tree;
}

struct wal__worktree *tree_case_swap_root(struct wal__worktree *other)
{
    struct wal__worktree *before = tree;

    tree = other;
    return before;
}

void tree_case_put(const char *path, const char *content)
{
    struct wal__worktree_file *file = NULL;
    size_t size = strlen(content);
    size_t put = 0;
    int sys_errno = 0;

    assert_ok(io->create(io->ctx, tree, path, 0644, &file, &sys_errno));
    assert_ok(io->write(io->ctx, file, content, size, 0, &put, &sys_errno));
    assert_int_equal(put, size);
    io->close(io->ctx, file);
}

void tree_case_directory(const char *path)
{
    int sys_errno = 0;

    assert_ok(io->make_directory(io->ctx, tree, path, &sys_errno));
}

void tree_case_link(const char *path, const char *target)
{
    int sys_errno = 0;

    assert_ok(io->make_link(io->ctx, tree, path, target, &sys_errno));
}

struct wal__worktree_stat tree_case_stat(const char *path)
{
    struct wal__worktree_stat st = {.kind = WAL__WORKTREE_OTHER};
    int sys_errno = 0;

    assert_ok(io->stat(io->ctx, tree, path, &st, &sys_errno));
    assert_int_equal(sys_errno, 0);
    return st;
}

void tree_case_assert_content(const char *path, const char *content)
{
    struct wal__worktree_file *file = NULL;
    char data[512];
    size_t got = 0;
    int sys_errno = 0;

    assert_ok(io->open(io->ctx, tree, path, &file, &sys_errno));
    assert_ok(io->read(io->ctx, file, data, sizeof(data), 0, &got, &sys_errno));
    io->close(io->ctx, file);
    assert_int_equal(got, strlen(content));
    assert_memory_equal(data, content, got);
}

enum wal_status tree_do_may_replace(const char *path, int *sys_errno)
{
    return io->check_replace(io->ctx, tree, path, sys_errno);
}

/* -------------------------------------------------------- every call --- */

enum wal_status tree_do_stat(const char *path, int *sys_errno)
{
    struct wal__worktree_stat st = {.kind = WAL__WORKTREE_OTHER, .size = 99};
    enum wal_status status = io->stat(io->ctx, tree, path, &st, sys_errno);

    assert_true(status == WAL_OK || (st.kind == WAL__WORKTREE_OTHER && st.size == 99));
    return status;
}

enum wal_status tree_do_open(const char *path, int *sys_errno)
{
    struct wal__worktree_file *file = NULL;
    enum wal_status status = io->open(io->ctx, tree, path, &file, sys_errno);

    assert_true((status == WAL_OK) == (file != NULL));
    if (file != NULL) {
        io->close(io->ctx, file);
    }
    return status;
}

enum wal_status tree_do_create(const char *path, int *sys_errno)
{
    struct wal__worktree_file *file = NULL;
    enum wal_status status = io->create(io->ctx, tree, path, 0600, &file, sys_errno);

    assert_true((status == WAL_OK) == (file != NULL));
    if (file != NULL) {
        io->close(io->ctx, file);
    }
    return status;
}

enum wal_status tree_do_read_link(const char *path, int *sys_errno)
{
    char target[16] = "untouched";
    size_t got = 99;
    enum wal_status status =
        io->read_link(io->ctx, tree, path, target, sizeof(target), &got, sys_errno);

    assert_true(status == WAL_OK || (got == 99 && strcmp(target, "untouched") == 0));
    return status;
}

enum wal_status tree_do_make_link(const char *path, int *sys_errno)
{
    return io->make_link(io->ctx, tree, path, "target", sys_errno);
}

enum wal_status tree_do_rename_from(const char *path, int *sys_errno)
{
    return io->rename(io->ctx, tree, path, "renamed", sys_errno);
}

/* From a file that is there, and stays when the call fails. */
enum wal_status tree_do_rename_to(const char *path, int *sys_errno)
{
    enum wal_status status;
    int ignored;

    assert_ok(tree_do_create("here", &ignored));
    status = io->rename(io->ctx, tree, "here", path, sys_errno);
    assert_int_equal(io->unlink(io->ctx, tree, "here", &ignored),
                     status == WAL_OK ? WAL_ENOTFOUND : WAL_OK);
    return status;
}

enum wal_status tree_do_unlink(const char *path, int *sys_errno)
{
    return io->unlink(io->ctx, tree, path, sys_errno);
}

enum wal_status tree_do_make_directory(const char *path, int *sys_errno)
{
    return io->make_directory(io->ctx, tree, path, sys_errno);
}

enum wal_status tree_do_remove_directory(const char *path, int *sys_errno)
{
    return io->remove_directory(io->ctx, tree, path, sys_errno);
}

enum wal_status tree_do_sync_directory(const char *path, int *sys_errno)
{
    return io->sync_directories(io->ctx, tree, path, strlen(path) + 1, sys_errno);
}

/* Those that change nothing where they fail, and all fail on the same paths. */
tree_call *const tree_calls[TREE_CALLS] = {
    tree_do_open,      tree_do_create,         tree_do_read_link,        tree_do_make_link,
    tree_do_rename_to, tree_do_rename_from,    tree_do_may_replace,      tree_do_unlink,
    tree_do_stat,      tree_do_make_directory, tree_do_remove_directory, tree_do_sync_directory,
};

void tree_assert_fails(tree_call *made, const char *path, enum wal_status status)
{
    int sys_errno = 0;

    if (made(path, &sys_errno) != status || sys_errno == 0) {
        print_message("path %s, errno %d\n", path, sys_errno);
    }
    sys_errno = 0;
    assert_int_equal(made(path, &sys_errno), status);
    assert_int_not_equal(sys_errno, 0);
}

void tree_assert_all_fail(const char *path, enum wal_status status)
{
    for (size_t i = 0; i < TREE_CALLS; i++) {
        /* An empty path is the root there. */
        if (tree_calls[i] != tree_do_sync_directory || path[0] != '\0') {
            tree_assert_fails(tree_calls[i], path, status);
        }
    }
}

void tree_case_assert_outside(void)
{
    char content[8] = "";

    world->read_outside(content);
    assert_string_equal(content, "outside");
}

enum { name_max = 255 };

/* ------------------------------------------------------- containment --- */

static void test_tree__a_path_that_leaves_the_root_is_refused(void **state)
{
    (void)state;
    tree_case_directory("d");
    tree_assert_all_fail("..", WAL_EOUTSIDE);
    tree_assert_all_fail("../outside", WAL_EOUTSIDE);
    tree_assert_all_fail("d/..", WAL_EOUTSIDE);
    tree_assert_all_fail("d/../../outside", WAL_EOUTSIDE);
    tree_assert_all_fail("d/../d/x", WAL_EOUTSIDE);
    tree_assert_all_fail("missing/../x", WAL_EOUTSIDE);
    tree_assert_all_fail("/", WAL_EOUTSIDE);
    tree_assert_all_fail("/etc/passwd", WAL_EOUTSIDE);
    tree_assert_all_fail(tree_case_backend()->root, WAL_EOUTSIDE);
    tree_case_assert_outside();
}

static void test_tree__unnormalised_path_is_refused(void **state)
{
    (void)state;
    tree_case_directory("d");
    tree_assert_all_fail("", WAL_EINVAL);
    tree_assert_all_fail(".", WAL_EINVAL);
    tree_assert_all_fail("./x", WAL_EINVAL);
    tree_assert_all_fail("d/", WAL_EINVAL);
    tree_assert_all_fail("d//x", WAL_EINVAL);
    tree_assert_all_fail("d/./x", WAL_EINVAL);
    tree_assert_all_fail("d/.", WAL_EINVAL);
    /* Names that only look like those. */
    tree_case_put("...", "dots");
    tree_case_put("..x", "dots");
    tree_case_put("d/.x", "dot");
    tree_case_assert_content("...", "dots");
}

static void test_tree__a_parent_that_is_a_link_is_refused(void **state)
{
    (void)state;
    tree_case_directory("d");
    tree_case_directory("d/e");
    tree_case_put("d/x", "inside");
    tree_case_put("d/e/x", "inside");
    tree_case_link("within", "d");
    tree_case_link("d/up", "..");
    tree_case_link("out", "../");
    tree_case_link("absolute", tree_case_backend()->root);
    tree_case_link("dangling", "nowhere");
    tree_case_link("loop", "loop");
    tree_assert_all_fail("within/x", WAL_EOUTSIDE);
    tree_assert_all_fail("within/missing", WAL_EOUTSIDE);
    tree_assert_all_fail("within/e/x", WAL_EOUTSIDE);
    tree_assert_all_fail("d/up/outside", WAL_EOUTSIDE);
    tree_assert_all_fail("out/outside", WAL_EOUTSIDE);
    tree_assert_all_fail("absolute/d/x", WAL_EOUTSIDE);
    tree_assert_all_fail("dangling/x", WAL_EOUTSIDE);
    tree_assert_all_fail("loop/x", WAL_EOUTSIDE);
    tree_assert_fails(tree_do_sync_directory, "within", WAL_EOUTSIDE);
    tree_assert_fails(tree_do_sync_directory, "out", WAL_EOUTSIDE);
    tree_case_assert_content("d/x", "inside");
    tree_case_assert_outside();
}

static void test_tree__a_link_at_the_name_is_not_followed(void **state)
{
    (void)state;
    int sys_errno = 0;
    struct wal__worktree_stat st;

    tree_case_link("link", "../outside");
    st = tree_case_stat("link");
    assert_int_equal(st.kind, WAL__WORKTREE_SYMLINK);
    assert_int_equal(st.size, strlen("../outside"));
    tree_assert_fails(tree_do_open, "link", WAL_ENOTFILE);
    tree_assert_fails(tree_do_create, "link", WAL_EEXISTS);
    tree_assert_fails(tree_do_make_link, "link", WAL_EEXISTS);
    tree_assert_fails(tree_do_make_directory, "link", WAL_EEXISTS);
    assert_ok(tree_do_may_replace("link", &sys_errno));

    /* The link goes, not what it leads to. */
    assert_ok(tree_do_rename_to("link", &sys_errno));
    assert_int_equal(tree_case_stat("link").kind, WAL__WORKTREE_REGULAR);
    tree_case_link("another", "../outside");
    assert_ok(tree_do_unlink("another", &sys_errno));
    assert_int_equal(tree_case_stat("another").kind, WAL__WORKTREE_ABSENT);
    tree_case_assert_outside();
}

/* ------------------------------------------------------------- files --- */

static void test_tree__written_bytes_are_read(void **state)
{
    (void)state;
    struct wal__worktree_file *file = NULL;
    struct wal__worktree_stat st = {0};
    char data[16] = "";
    size_t count = 0;
    int sys_errno = 0;

    assert_ok(io->create(io->ctx, tree_case_root(), "a", 0600, &file, &sys_errno));
    assert_ok(io->write(io->ctx, file, "two", 3, 5, &count, &sys_errno));
    assert_int_equal(count, 3);
    assert_ok(io->file_stat(io->ctx, file, &st, &sys_errno));
    assert_int_equal(st.kind, WAL__WORKTREE_REGULAR);
    assert_int_equal(st.size, 8);
    io->close(io->ctx, file);

    assert_ok(io->open(io->ctx, tree_case_root(), "a", &file, &sys_errno));
    assert_ok(io->read(io->ctx, file, data, sizeof(data), 0, &count, &sys_errno));
    assert_int_equal(count, 8);
    assert_memory_equal(data, "\0\0\0\0\0two", 8);
    assert_ok(io->read(io->ctx, file, data, 4, 8, &count, &sys_errno));
    assert_int_equal(count, 0);
    count = 99;
    assert_int_equal(io->write(io->ctx, file, "x", 1, 0, &count, &sys_errno), WAL_EIO);
    assert_int_equal(count, 99);

    /* What is open stays, whatever becomes of its name. */
    assert_ok(tree_do_unlink("a", &sys_errno));
    assert_int_equal(tree_case_stat("a").kind, WAL__WORKTREE_ABSENT);
    assert_ok(io->read(io->ctx, file, data, 3, 5, &count, &sys_errno));
    assert_memory_equal(data, "two", 3);
    io->close(io->ctx, file);
}

static void test_tree__modes_are_exactly_those_set(void **state)
{
    (void)state;
    static const uint32_t modes[] = {0600, 0777, 0755, 0640, 0444, 0111, 0, 0666, 04755};
    struct wal__worktree_file *file = NULL;
    int sys_errno = 0;

    assert_ok(io->create(io->ctx, tree_case_root(), "a", 0600, &file, &sys_errno));
    assert_int_equal(tree_case_stat("a").mode, 0600);
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        struct wal__worktree_stat st = {0};

        assert_ok(io->set_mode(io->ctx, file, modes[i], &sys_errno));
        assert_int_equal(tree_case_stat("a").mode, modes[i]);
        assert_ok(io->file_stat(io->ctx, file, &st, &sys_errno));
        assert_int_equal(st.mode, modes[i]);
    }
    io->close(io->ctx, file);
}

static void test_tree__links_keep_any_target(void **state)
{
    (void)state;
    char target[64] = "";
    size_t got = 0;
    int sys_errno = 0;
    const char *text = "a/../\n\xff/..";

    tree_case_link("link", text);
    assert_ok(
        io->read_link(io->ctx, tree_case_root(), "link", target, strlen(text), &got, &sys_errno));
    assert_int_equal(got, strlen(text));
    assert_memory_equal(target, text, got);
    got = 99;
    assert_int_equal(io->read_link(io->ctx, tree_case_root(), "link", target, strlen(text) - 1,
                                   &got, &sys_errno),
                     WAL_ETOOBIG);
    assert_int_equal(got, 99);

    tree_case_put("file", "x");
    tree_assert_fails(tree_do_read_link, "file", WAL_ENOTFILE);
    tree_assert_fails(tree_do_read_link, "missing", WAL_ENOTFOUND);
}

static void test_tree__rename_replaces_its_target(void **state)
{
    (void)state;
    struct wal__worktree_stat before;
    struct wal__worktree_stat after;
    int sys_errno = 0;

    tree_case_directory("d");
    tree_case_put("d/old", "old");
    tree_case_put("new", "new");
    before = tree_case_stat("new");
    assert_int_not_equal(before.inode, tree_case_stat("d/old").inode);
    assert_ok(io->rename(io->ctx, tree_case_root(), "new", "d/old", &sys_errno));
    after = tree_case_stat("d/old");
    assert_int_equal(after.inode, before.inode);
    assert_int_equal(after.device, before.device);
    assert_int_equal(after.mtime_ns, before.mtime_ns);
    tree_case_assert_content("d/old", "new");
    assert_int_equal(tree_case_stat("new").kind, WAL__WORKTREE_ABSENT);
    tree_assert_fails(tree_do_rename_from, "new", WAL_ENOTFOUND);
}

static void test_tree__a_change_is_not_older_than_the_clock(void **state)
{
    (void)state;
    struct wal__worktree_file *file = NULL;
    struct wal__worktree_stat first;
    struct wal__worktree_stat st;
    int64_t before = io->now_ns(io->ctx);
    size_t put;
    int sys_errno = 0;

    tree_case_put("a", "x");
    first = tree_case_stat("a");
    assert_true(first.mtime_ns >= before && first.ctime_ns >= before);

    /* Time goes on, and a change shows it. */
    assert_ok(io->create(io->ctx, tree_case_root(), "b", 0600, &file, &sys_errno));
    do {
        assert_ok(io->write(io->ctx, file, "x", 1, 0, &put, &sys_errno));
        assert_ok(io->file_stat(io->ctx, file, &st, &sys_errno));
    } while (st.mtime_ns <= first.mtime_ns);
    first = st;
    do {
        assert_ok(io->set_mode(io->ctx, file, 0640, &sys_errno));
        assert_ok(io->file_stat(io->ctx, file, &st, &sys_errno));
    } while (st.ctime_ns <= first.ctime_ns);
    assert_int_equal(st.mtime_ns, first.mtime_ns);
    io->close(io->ctx, file);
    while (io->now_ns(io->ctx) <= before) {
    }
}

/* ------------------------------------------------------------- names --- */

static void test_tree__impossible_path_is_absent(void **state)
{
    (void)state;
    char name[name_max + 4];

    tree_case_put("file", "x");
    assert_int_equal(tree_case_stat("missing").kind, WAL__WORKTREE_ABSENT);
    assert_int_equal(tree_case_stat("missing/x").kind, WAL__WORKTREE_ABSENT);
    assert_int_equal(tree_case_stat("file/x").kind, WAL__WORKTREE_ABSENT);
    assert_int_equal(tree_case_stat("file/x/y").kind, WAL__WORKTREE_ABSENT);
    memset(name, 'n', sizeof(name));
    name[name_max + 1] = '\0';
    assert_int_equal(tree_case_stat(name).kind, WAL__WORKTREE_ABSENT);
    memcpy(name + name_max + 1, "/x", 3);
    assert_int_equal(tree_case_stat(name).kind, WAL__WORKTREE_ABSENT);
}

static void test_tree__a_missing_parent_is_not_found(void **state)
{
    (void)state;
    int sys_errno = 0;

    tree_case_put("file", "x");
    for (size_t i = 0; i < TREE_CALLS; i++) {
        if (tree_calls[i] == tree_do_stat) {
            continue;
        }
        tree_assert_fails(tree_calls[i], "missing/x", WAL_ENOTFOUND);
        tree_assert_fails(tree_calls[i], "file/x",
                          tree_calls[i] == tree_do_may_replace ? WAL_ENOTFILE : WAL_ENOTFOUND);
        tree_assert_fails(tree_calls[i], "file/x/y",
                          tree_calls[i] == tree_do_may_replace ? WAL_ENOTFILE : WAL_ENOTFOUND);
    }
    tree_assert_fails(tree_do_open, "missing", WAL_ENOTFOUND);
    tree_assert_fails(tree_do_unlink, "missing", WAL_ENOTFOUND);
    tree_assert_fails(tree_do_sync_directory, "missing", WAL_ENOTFOUND);
    tree_assert_fails(tree_do_sync_directory, "file", WAL_ENOTFOUND);
    assert_ok(tree_do_may_replace("missing", &sys_errno));
    assert_int_equal(tree_case_stat("missing").kind, WAL__WORKTREE_ABSENT);
}

static void test_tree__directory_is_not_a_file(void **state)
{
    (void)state;
    tree_case_directory("d");
    assert_int_equal(tree_case_stat("d").kind, WAL__WORKTREE_DIRECTORY);
    tree_assert_fails(tree_do_open, "d", WAL_ENOTFILE);
    tree_assert_fails(tree_do_unlink, "d", WAL_ENOTFILE);
    tree_assert_fails(tree_do_rename_to, "d", WAL_ENOTFILE);
    tree_assert_fails(tree_do_read_link, "d", WAL_ENOTFILE);
    tree_assert_fails(tree_do_may_replace, "d", WAL_ENOTFILE);
    tree_assert_fails(tree_do_create, "d", WAL_EEXISTS);
    tree_assert_fails(tree_do_make_link, "d", WAL_EEXISTS);
    tree_assert_fails(tree_do_make_directory, "d", WAL_EEXISTS);
    assert_int_equal(tree_case_stat("d").kind, WAL__WORKTREE_DIRECTORY);
}

static void test_tree__pipe_is_refused_without_blocking(void **state)
{
    (void)state;
    tree_case_backend()->make_pipe("pipe");
    assert_int_equal(tree_case_stat("pipe").kind, WAL__WORKTREE_OTHER);
    tree_assert_fails(tree_do_open, "pipe", WAL_ENOTFILE);
    tree_assert_fails(tree_do_read_link, "pipe", WAL_ENOTFILE);
    tree_assert_fails(tree_do_may_replace, "pipe", WAL_ENOTFILE);
    tree_assert_fails(tree_do_create, "pipe", WAL_EEXISTS);
}

static void test_tree__names_are_any_bytes(void **state)
{
    (void)state;
    static const char *const names[] = {
        "a\nb", " ", "\\", "\"'`$(x)", "-rf", "*", "\x01\x7f", "\x80\xfe\xff", "na\xc3\xafve", "\t",
    };
    char path[64];
    int sys_errno = 0;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        size_t size = strlen(names[i]);

        tree_case_directory(names[i]);
        memcpy(path, names[i], size);
        path[size] = '/';
        memcpy(path + size + 1, names[i], size + 1);
        tree_case_put(path, names[i]);
        assert_ok(tree_do_may_replace(path, &sys_errno));
        assert_ok(tree_do_sync_directory(names[i], &sys_errno));
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        size_t size = strlen(names[i]);

        memcpy(path, names[i], size);
        path[size] = '/';
        memcpy(path + size + 1, names[i], size + 1);
        tree_case_assert_content(path, names[i]);
        assert_ok(tree_do_unlink(path, &sys_errno));
    }
}

static void test_tree__names_and_paths_are_bounded(void **state)
{
    (void)state;
    char name[name_max + 2];
    char path[900] = "";
    size_t size = 0;

    memset(name, 'n', sizeof(name));
    name[name_max] = '\0';
    tree_case_put(name, "longest");
    tree_case_assert_content(name, "longest");
    name[name_max] = 'n';
    name[name_max + 1] = '\0';
    tree_assert_fails(tree_do_open, name, WAL_ETOOBIG);
    tree_assert_fails(tree_do_create, name, WAL_ETOOBIG);
    tree_assert_fails(tree_do_make_directory, name, WAL_ETOOBIG);
    tree_assert_fails(tree_do_make_link, name, WAL_ETOOBIG);
    tree_assert_fails(tree_do_rename_to, name, WAL_ETOOBIG);
    tree_assert_fails(tree_do_may_replace, name, WAL_ETOOBIG);

    while (size + 60 < sizeof(path)) {
        memset(path + size, 'd', 50);
        path[size + 50] = '\0';
        tree_case_directory(path);
        path[size + 50] = '/';
        size += 51;
    }
    memcpy(path + size, "file", 5);
    tree_case_put(path, "deep");
    tree_case_assert_content(path, "deep");
    assert_int_equal(tree_case_stat(path).size, 4);
}

/* ------------------------------------------------------------ denied --- */

static void test_tree__denied_access_is_reported(void **state)
{
    (void)state;
    int sys_errno = 0;
    struct wal__worktree_file *file = NULL;

    tree_case_directory("d");
    tree_case_directory("d/e");
    tree_case_put("d/x", "x");
    assert_ok(io->create(io->ctx, tree_case_root(), "none", 0, &file, &sys_errno));
    assert_ok(io->set_mode(io->ctx, file, 0, &sys_errno));
    io->close(io->ctx, file);

    tree_case_backend()->set_mode("d", 0555);
    tree_case_backend()->drop(true);
    tree_assert_fails(tree_do_open, "none", WAL_EACCESS);
    tree_assert_fails(tree_do_create, "d/new", WAL_EACCESS);
    tree_assert_fails(tree_do_make_link, "d/new", WAL_EACCESS);
    tree_assert_fails(tree_do_make_directory, "d/new", WAL_EACCESS);
    tree_assert_fails(tree_do_unlink, "d/x", WAL_EACCESS);
    tree_assert_fails(tree_do_remove_directory, "d/e", WAL_EACCESS);
    tree_assert_fails(tree_do_may_replace, "d/x", WAL_EACCESS);
    tree_assert_fails(tree_do_may_replace, "d/new", WAL_EACCESS);
    tree_case_assert_content("d/x", "x");
    tree_case_backend()->drop(false);

    /* It can be written, but its names cannot be synced. */
    tree_case_backend()->set_mode("d", 0333);
    tree_case_backend()->drop(true);
    tree_assert_fails(tree_do_may_replace, "d/x", WAL_EACCESS);
    assert_int_equal(tree_case_stat("d/x").kind, WAL__WORKTREE_REGULAR);
    tree_case_backend()->drop(false);

    tree_case_backend()->set_mode("d", 0);
    tree_case_backend()->drop(true);
    tree_assert_fails(tree_do_stat, "d/x", WAL_EACCESS);
    tree_assert_fails(tree_do_open, "d/x", WAL_EACCESS);
    tree_case_backend()->drop(false);

    tree_case_backend()->set_mode("d", 0777);
    tree_case_backend()->drop(true);
    assert_ok(tree_do_may_replace("d/x", &sys_errno));
    tree_case_put("d/new", "x");
    tree_case_backend()->drop(false);
}

/* ------------------------------------------------------------- roots --- */

static void test_tree__a_root_must_be_a_directory(void **state)
{
    (void)state;
    struct wal__worktree *other = NULL;
    struct wal__worktree *kept;
    char path[512];
    size_t size = strlen(tree_case_backend()->root);
    int sys_errno = 0;

    assert_true(size + 16 < sizeof(path));
    memcpy(path, tree_case_backend()->root, size);
    memcpy(path + size, "/missing", 9);
    assert_int_equal(io->open_root(io->ctx, path, &other, &sys_errno), WAL_ENOTFOUND);
    memcpy(path + size, "/../outside", 12);
    assert_int_equal(io->open_root(io->ctx, path, &other, &sys_errno), WAL_ENOTFOUND);
    assert_null(other);

    /* The way to it may lead through links. */
    tree_case_directory("d");
    tree_case_put("d/x", "through");
    memcpy(path + size, "/d", 3);
    tree_case_link("link", path);
    memcpy(path + size, "/link", 6);
    assert_ok(io->open_root(io->ctx, path, &other, &sys_errno));
    kept = tree_case_swap_root(other);
    tree_case_assert_content("x", "through");
    io->close_root(io->ctx, tree_case_swap_root(kept));
}

static void test_tree__only_an_empty_directory_is_removed(void **state)
{
    (void)state;
    int sys_errno = 0;

    tree_case_directory("d");
    tree_case_put("d/x", "x");
    tree_case_link("link", "d");
    tree_assert_fails(tree_do_remove_directory, "d", WAL_EEXISTS);
    tree_assert_fails(tree_do_remove_directory, "d/x", WAL_ENOTFOUND);
    tree_assert_fails(tree_do_remove_directory, "link", WAL_ENOTFOUND);
    tree_assert_fails(tree_do_remove_directory, "missing", WAL_ENOTFOUND);
    tree_case_assert_content("d/x", "x");
    assert_ok(tree_do_unlink("d/x", &sys_errno));
    assert_ok(tree_do_remove_directory("d", &sys_errno));
    assert_int_equal(tree_case_stat("d").kind, WAL__WORKTREE_ABSENT);
    assert_int_equal(tree_case_stat("link").kind, WAL__WORKTREE_SYMLINK);
}

static enum wal_status count_name(void *arg, const char *name)
{
    int *counts = arg;

    assert_true(strlen(name) == 1 && name[0] >= 'x' && name[0] <= 'z');
    counts[name[0] - 'x']++;
    return counts[3] != 0 ? WAL_EIO : WAL_OK;
}

static void test_tree__the_names_in_a_directory_are_listed(void **state)
{
    (void)state;
    int counts[4] = {0};
    int sys_errno = 0;

    tree_case_directory("d");
    tree_case_put("d/x", "x");
    tree_case_directory("d/y");
    tree_case_put("d/y/below", "");
    tree_case_link("d/z", "d");
    assert_ok(io->list(io->ctx, tree, "d", count_name, counts, &sys_errno));
    assert_true(counts[0] == 1 && counts[1] == 1 && counts[2] == 1);
    counts[3] = 1;
    sys_errno = 1;
    assert_int_equal(io->list(io->ctx, tree, "d", count_name, counts, &sys_errno), WAL_EIO);
    assert_int_equal(sys_errno, 0);
    assert_int_equal(counts[0] + counts[1] + counts[2], 4);
    assert_int_equal(io->list(io->ctx, tree, "d/x", count_name, counts, &sys_errno), WAL_ENOTFOUND);
    assert_int_equal(io->list(io->ctx, tree, "none", count_name, counts, &sys_errno),
                     WAL_ENOTFOUND);
}

static void test_tree__syncs_succeed(void **state)
{
    (void)state;
    int sys_errno = 0;

    tree_case_directory("d");
    tree_case_put("d/x", "x");
    assert_ok(io->sync_all(io->ctx, tree_case_root(), &sys_errno));
    assert_ok(tree_do_sync_directory("d", &sys_errno));
    assert_ok(tree_do_sync_directory("", &sys_errno));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, enter, leave)

int tree_cases_run(const char *group, CMFixtureFunction enter, CMFixtureFunction leave)
{
    const struct CMUnitTest tests[] = {
        CASE(test_tree__a_path_that_leaves_the_root_is_refused),
        CASE(test_tree__unnormalised_path_is_refused),
        CASE(test_tree__a_parent_that_is_a_link_is_refused),
        CASE(test_tree__a_link_at_the_name_is_not_followed),
        CASE(test_tree__written_bytes_are_read),
        CASE(test_tree__modes_are_exactly_those_set),
        CASE(test_tree__links_keep_any_target),
        CASE(test_tree__rename_replaces_its_target),
        CASE(test_tree__a_change_is_not_older_than_the_clock),
        CASE(test_tree__impossible_path_is_absent),
        CASE(test_tree__a_missing_parent_is_not_found),
        CASE(test_tree__directory_is_not_a_file),
        CASE(test_tree__pipe_is_refused_without_blocking),
        CASE(test_tree__names_are_any_bytes),
        CASE(test_tree__names_and_paths_are_bounded),
        CASE(test_tree__denied_access_is_reported),
        CASE(test_tree__a_root_must_be_a_directory),
        CASE(test_tree__only_an_empty_directory_is_removed),
        CASE(test_tree__the_names_in_a_directory_are_listed),
        CASE(test_tree__syncs_succeed),
    };

    return cmocka_run_group_tests_name(group, tests, NULL, NULL);
}
