/*
 * tree_kit.c - a root under test, and every call on it (tree_kit.h).
 */
#include "tests/lib/kit/tree_kit.h"

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

    assert_true(status == WAL_OK ||
                (st.kind == WAL__WORKTREE_OTHER && st.size == 99));
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
    enum wal_status status =
        io->create(io->ctx, tree, path, 0600, &file, sys_errno);

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
    enum wal_status status = io->read_link(io->ctx, tree, path, target,
                                           sizeof(target), &got, sys_errno);

    assert_true(status == WAL_OK ||
                (got == 99 && strcmp(target, "untouched") == 0));
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
    return io->sync_directories(io->ctx, tree, path, strlen(path) + 1,
                                sys_errno);
}

/* Those that change nothing where they fail, and all fail on the same paths. */
tree_call *const tree_calls[TREE_CALLS] = {
    tree_do_open,           tree_do_create,           tree_do_read_link,
    tree_do_make_link,      tree_do_rename_to,        tree_do_rename_from,
    tree_do_may_replace,    tree_do_unlink,           tree_do_stat,
    tree_do_make_directory, tree_do_remove_directory, tree_do_sync_directory,
};

void tree_assert_fails(tree_call *made, const char *path,
                       enum wal_status status)
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
