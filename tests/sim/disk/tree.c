/*
 * tree.c - the table of engine/base/worktree.h over a simulated disk: roots
 * and files; sim_tree_names.c has the calls on names. Invariant: every call is
 * one step of the process, and a file that is open is one of its handles, as
 * the store's are. One thread at a time.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/disk/path_op.h"

/* ------------------------------------------------------------- roots --- */

enum {
    links_max = 8
};

/* Follows a link at the end, to an absolute path. */
static int find_root(struct sim_disk *disk, const char *path,
                     const char **found)
{
    for (int i = 0; i < links_max; i++) {
        struct sim_file *file = NULL;
        int error = sim__resolve(disk, path, &file);

        if (error != 0) {
            return error;
        }
        if (file->target == NULL) {
            *found = path;
            return file->is_directory ? 0 : ENOTDIR;
        }
        path = file->target;
    }
    return ELOOP;
}

static struct wal__worktree *add_tree(struct sim_process *process,
                                      const char *root)
{
    struct wal__worktree *tree = calloc(1, sizeof(*tree));
    int size;

    WAL__ASSERT(tree != NULL);
    size = snprintf(tree->root, sizeof(tree->root), "%s", root);
    WAL__ASSERT(size > 0 && (size_t)size < sizeof(tree->root));
    tree->next = process->trees;
    process->trees = tree;
    return tree;
}

static enum wal_status tree_open_root(void *ctx, const char *path,
                                      struct wal__worktree **tree,
                                      int *sys_errno)
{
    struct sim_process *process = ctx;
    struct sim_op step = sim__op_begin(
        process, (struct sim_event){.call = SIM_OPEN, .path = path});
    struct wal__worktree *made = NULL;
    const char *root = NULL;

    if (step.error == 0) {
        step.error = find_root(process->disk, path, &root);
    }
    if (step.error == 0) {
        made = add_tree(process, root);
    }
    if (sim__op_finish(&step, sys_errno) != WAL_OK) {
        return wal__worktree_status(*sys_errno);
    }
    *tree = made;
    return WAL_OK;
}

static void tree_close_root(void *ctx, struct wal__worktree *tree)
{
    struct sim_process *process = ctx;
    struct wal__worktree **link = &process->trees;
    struct sim_op step = sim__op_begin(
        process, (struct sim_event){.call = SIM_CLOSE, .path = tree->root});
    int ignored;

    (void)sim__op_finish(&step, &ignored);
    /* A dead process's trees stay until it is destroyed. */
    if (process->is_dead) {
        return;
    }
    while (*link != tree) {
        WAL__ASSERT(*link != NULL);
        link = &(*link)->next;
    }
    *link = tree->next;
    free(tree);
}

void sim__trees_free(struct sim_process *process)
{
    while (process->trees != NULL) {
        struct wal__worktree *tree = process->trees;

        process->trees = tree->next;
        free(tree);
    }
}

/* ------------------------------------------------------------- files --- */

static enum wal_status tree_stat(void *ctx, struct wal__worktree *tree,
                                 const char *path,
                                 struct wal__worktree_stat *out, int *sys_errno)
{
    struct sim_path_op act;
    struct wal__worktree_stat stat = {.kind = WAL__WORKTREE_ABSENT};
    enum wal_status status;

    sim__path_op_begin(&act, ctx, SIM_PATH_STAT, tree, path);
    if (act.failed_in_parent &&
        (act.step.error == ENOENT || act.step.error == ENOTDIR ||
         act.step.error == ENAMETOOLONG)) {
        act.step.error = 0;
    } else if (act.step.error == 0 && act.at.file != NULL) {
        stat = sim__tree_stat_of(act.at.file);
    }
    status = sim__path_op_finish(&act, sys_errno);
    if (status == WAL_OK) {
        *out = stat;
    }
    return status;
}

/* 0, or why it cannot be opened to be read. */
static int check_open(const struct sim_file *file)
{
    if (file == NULL) {
        return ENOENT;
    }
    if (file->target != NULL) {
        return ELOOP;
    }
    if (file->is_directory) {
        return EISDIR;
    }
    if ((file->mode & 0400) == 0) {
        return EACCES;
    }
    return file->is_pipe ? ENXIO : 0;
}

static enum wal_status tree_open(void *ctx, struct wal__worktree *tree,
                                 const char *path,
                                 struct wal__worktree_file **file,
                                 int *sys_errno)
{
    struct sim_path_op act;
    struct wal__file *handle = NULL;
    enum wal_status status;

    sim__path_op_begin(&act, ctx, SIM_OPEN, tree, path);
    if (act.step.error == 0) {
        act.step.error = check_open(act.at.file);
    }
    if (act.step.error == 0) {
        handle = sim__handle_add(ctx, act.at.file, act.at.path, false);
    }
    status = sim__path_op_finish(&act, sys_errno);
    if (status == WAL_OK) {
        *file = (struct wal__worktree_file *)handle;
    }
    return status;
}

static enum wal_status tree_create(void *ctx, struct wal__worktree *tree,
                                   const char *path, uint32_t mode,
                                   struct wal__worktree_file **file,
                                   int *sys_errno)
{
    struct sim_path_op act;
    struct sim_file *made;
    struct wal__file *handle = NULL;
    enum wal_status status;

    sim__path_op_begin(&act, ctx, SIM_OPEN, tree, path);
    sim__path_op_create(&act, false, &made);
    if (made != NULL) {
        made->mode = mode & 07777;
        handle = sim__handle_add(ctx, made, act.at.path, true);
    }
    status = sim__path_op_finish(&act, sys_errno);
    if (status == WAL_OK) {
        *file = (struct wal__worktree_file *)handle;
    }
    return status;
}

static void tree_close(void *ctx, struct wal__worktree_file *file)
{
    sim__io_table.close(ctx, (struct wal__file *)file);
}

static enum wal_status tree_file_stat(void *ctx,
                                      struct wal__worktree_file *file,
                                      struct wal__worktree_stat *out,
                                      int *sys_errno)
{
    const struct wal__file *handle = (struct wal__file *)file;
    struct wal__worktree_stat stat = {0};
    struct sim_op step = sim__op_begin(
        ctx, (struct sim_event){.call = SIM_STAT, .path = handle->path});

    if (step.error == 0) {
        stat = sim__tree_stat_of(handle->file);
    }
    if (sim__op_finish(&step, sys_errno) != WAL_OK) {
        return wal__worktree_status(*sys_errno);
    }
    *out = stat;
    return WAL_OK;
}

static enum wal_status tree_read(void *ctx, struct wal__worktree_file *file,
                                 void *data, size_t size, uint64_t offset,
                                 size_t *got, int *sys_errno)
{
    enum wal_status status = sim__io_table.pread(
        ctx, (struct wal__file *)file, data, size, offset, got, sys_errno);

    return status == WAL_OK ? WAL_OK : wal__worktree_status(*sys_errno);
}

static enum wal_status tree_write(void *ctx, struct wal__worktree_file *file,
                                  const void *data, size_t size,
                                  uint64_t offset, size_t *put, int *sys_errno)
{
    struct iovec iov = {.iov_base = (void *)(uintptr_t)data, .iov_len = size};
    enum wal_status status = sim__io_table.pwritev(
        ctx, (struct wal__file *)file, &iov, 1, offset, put, sys_errno);

    return status == WAL_OK ? WAL_OK : wal__worktree_status(*sys_errno);
}

static enum wal_status tree_set_mode(void *ctx, struct wal__worktree_file *file,
                                     uint32_t mode, int *sys_errno)
{
    const struct wal__file *handle = (struct wal__file *)file;
    struct sim_op step = sim__op_begin(
        ctx, (struct sim_event){.call = SIM_SET_MODE, .path = handle->path});

    if (step.error == 0) {
        step.error = sim__check_writable(ctx);
    }
    if (step.error == 0) {
        sim__file_set_mode(handle->file, mode & 07777);
    }
    return sim__op_finish(&step, sys_errno) == WAL_OK
               ? WAL_OK
               : wal__worktree_status(*sys_errno);
}

static int64_t tree_now_ns(void *ctx)
{
    const struct sim_process *process = ctx;

    return sim__clock_ns(process->disk);
}

const struct wal__worktree_io sim__tree_table = {
    .open_root = tree_open_root,
    .close_root = tree_close_root,
    .stat = tree_stat,
    .open = tree_open,
    .create = tree_create,
    .close = tree_close,
    .file_stat = tree_file_stat,
    .read = tree_read,
    .write = tree_write,
    .set_mode = tree_set_mode,
    .read_link = sim__tree_read_link,
    .make_link = sim__tree_make_link,
    .rename = sim__tree_rename,
    .unlink = sim__tree_unlink,
    .remove_directory = sim__tree_remove_directory,
    .make_directory = sim__tree_make_directory,
    .check_replace = sim__tree_may_replace,
    .sync_all = sim__tree_sync_all,
    .sync_directories = sim__tree_sync_directories,
    .now_ns = tree_now_ns,
};
