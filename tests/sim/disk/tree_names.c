/*
 * tree_names.c - the calls of engine/base/worktree.h on names and on all of
 * a tree, over a simulated disk. One thread at a time.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/disk/path_op.h"

/* ------------------------------------------------------------- names --- */

enum wal_status sim__tree_read_link(void *ctx, struct wal__worktree *tree,
                                    const char *path, void *data, size_t size,
                                    size_t *got, int *sys_errno)
{
    struct sim_path_op act;
    bool is_link;
    enum wal_status status;

    sim__path_op_begin(&act, ctx, SIM_READ_LINK, tree, path);
    is_link = act.at.file != NULL && act.at.file->target != NULL;
    if (act.step.error == 0 && act.at.file == NULL) {
        act.step.error = ENOENT;
    } else if (act.step.error == 0 && !is_link) {
        act.step.error = ENXIO;
    } else if (act.step.error == 0 && strlen(act.at.file->target) > size) {
        act.step.error = ENAMETOOLONG;
    }
    status = sim__path_op_finish(&act, sys_errno);
    if (status == WAL_OK) {
        *got = strlen(act.at.file->target);
        memcpy(data, act.at.file->target, *got);
    }
    return status;
}

enum wal_status sim__tree_make_link(void *ctx, struct wal__worktree *tree,
                                    const char *path, const char *target,
                                    int *sys_errno)
{
    struct sim_path_op act;
    struct sim_file *made;

    sim__path_op_begin(&act, ctx, SIM_MAKE_LINK, tree, path);
    sim__path_op_create(&act, false, &made);
    if (made != NULL) {
        made->mode = 0777;
        made->target = strdup(target);
        WAL__ASSERT(made->target != NULL);
    }
    return sim__path_op_finish(&act, sys_errno);
}

enum wal_status sim__tree_make_directory(void *ctx, struct wal__worktree *tree,
                                         const char *path, int *sys_errno)
{
    struct sim_path_op act;
    struct sim_file *made;

    sim__path_op_begin(&act, ctx, SIM_MAKE_DIRECTORY, tree, path);
    sim__path_op_create(&act, true, &made);
    return sim__path_op_finish(&act, sys_errno);
}

/* A name that is to go. */
static int check_removal(const struct sim_path_op *act)
{
    int error;

    if (act->at.file == NULL) {
        return ENOENT;
    }
    error = sim__check_parent(act->process, act->at.parent);
    return error == 0 && act->at.file->is_immutable ? EPERM : error;
}

enum wal_status sim__tree_rename(void *ctx, struct wal__worktree *tree,
                                 const char *from, const char *to,
                                 int *sys_errno)
{
    struct sim_path_op act;
    struct sim_disk *disk;
    struct sim_path other = {.file = NULL};

    sim__path_op_begin(&act, ctx, SIM_RENAME, tree, from);
    disk = act.process->disk;
    act.step.event.to = to;
    if (act.step.error == 0) {
        act.step.error = sim__path_lookup(disk, tree, to, &other);
        act.failed_in_parent = act.step.error != 0;
    }
    if (act.step.error == 0) {
        act.step.error = check_removal(&act);
    }
    if (act.step.error == 0) {
        act.step.error = other.file != NULL && other.file->is_immutable
                             ? EPERM
                             : sim__check_parent(act.process, other.parent);
    }
    if (act.step.error == 0) {
        act.step.error = sim__rename(disk, act.at.path, other.path);
    }
    if (act.step.error == 0) {
        sim__file_update_ctime(act.at.file);
    }
    return sim__path_op_finish(&act, sys_errno);
}

enum wal_status sim__tree_unlink(void *ctx, struct wal__worktree *tree,
                                 const char *path, int *sys_errno)
{
    struct sim_path_op act;

    sim__path_op_begin(&act, ctx, SIM_UNLINK, tree, path);
    if (act.step.error == 0) {
        act.step.error = check_removal(&act);
    }
    if (act.step.error == 0) {
        act.step.error = sim__unlink(act.process->disk, act.at.path);
    }
    return sim__path_op_finish(&act, sys_errno);
}

enum wal_status sim__tree_remove_directory(void *ctx,
                                           struct wal__worktree *tree,
                                           const char *path, int *sys_errno)
{
    struct sim_path_op act;

    sim__path_op_begin(&act, ctx, SIM_UNLINK, tree, path);
    if (act.step.error == 0) {
        act.step.error = check_removal(&act);
    }
    if (act.step.error == 0) {
        act.step.error = sim__remove_directory(act.process->disk, act.at.path);
    }
    return sim__path_op_finish(&act, sys_errno);
}

static int check_replace(const struct sim_path_op *act)
{
    int error = sim__check_parent(act->process, act->at.parent);

    if (error == 0 && (act->at.parent->mode & 0400) == 0) {
        error = EACCES;
    }
    if (error != 0 || act->at.file == NULL) {
        return error;
    }
    if (act->at.file->is_directory) {
        return EISDIR;
    }
    if (act->at.file->is_pipe) {
        return ENXIO;
    }
    return act->at.file->is_immutable ? EPERM : 0;
}

enum wal_status sim__tree_may_replace(void *ctx, struct wal__worktree *tree,
                                      const char *path, int *sys_errno)
{
    struct sim_path_op act;
    enum wal_status status;

    sim__path_op_begin(&act, ctx, SIM_MAY_REPLACE, tree, path);
    if (act.step.error == 0) {
        act.step.error = check_replace(&act);
    }
    status = sim__path_op_finish(&act, sys_errno);
    return status != WAL_OK && *sys_errno == ENOTDIR ? WAL_ENOTFILE : status;
}

/* ----------------------------------------------------------- syncing --- */

/* Syncs the tree alone: other files of the disk stay as durable as before. */
static void sync_tree(struct sim_disk *disk, const struct sim_file *root,
                      const struct sim_fault *fault)
{
    for (size_t i = 0; i < disk->name_count; i++) {
        struct sim_name *name = &disk->names[i];

        if (name->file->is_directory ||
            !sim__is_below(disk, name->directory, root)) {
            continue;
        }
        if (fault == NULL) {
            sim__file_sync(name->file);
        } else {
            sim__file_fail_sync(name->file, fault->partial);
        }
    }
}

enum wal_status sim__tree_sync_all(void *ctx, struct wal__worktree *tree,
                                   int *sys_errno)
{
    struct sim_process *process = ctx;
    struct sim_op step = sim__op_begin(
        process, (struct sim_event){.call = SIM_SYNC_ALL, .path = tree->root});
    struct sim_file *root = NULL;

    if (!process->is_dead && !(step.error != 0 && sim__op_kills(&step)) &&
        sim__resolve(process->disk, tree->root, &root) == 0) {
        sync_tree(process->disk, root, step.error == 0 ? NULL : step.fault);
    }
    return sim__op_finish(&step, sys_errno) == WAL_OK
               ? WAL_OK
               : wal__worktree_status(*sys_errno);
}

static enum wal_status sync_directory(void *ctx, struct wal__worktree *tree,
                                      const char *path, int *sys_errno)
{
    struct sim_path_op act;
    struct sim_disk *disk;
    struct sim_file *directory = NULL;
    /* Of the root: of its name, as a part that is looked for. */
    const char *name = path[0] == '\0' ? "root" : path;

    sim__path_op_begin(&act, ctx, SIM_SYNC_DIRECTORY, tree, name);
    disk = act.process->disk;
    if (path[0] == '\0') {
        directory = act.at.parent;
    } else if (act.step.error == 0) {
        act.step.error = sim__path_open_root(disk, act.at.path, &directory);
        act.failed_in_parent = act.step.error != 0;
    }
    if (act.step.error == 0 && (directory->mode & 0400) == 0) {
        act.step.error = EACCES;
    }
    if (act.step.error == 0) {
        sim__names_sync(disk, directory);
    } else if (act.step.fault != NULL && !sim__op_kills(&act.step) &&
               (directory != NULL ||
                sim__path_open_root(disk, act.at.path, &directory) == 0)) {
        sim__names_fail_sync(disk, directory);
    }
    return sim__path_op_finish(&act, sys_errno);
}

/* One after the other, each a step of the process. */
enum wal_status sim__tree_sync_directories(void *ctx,
                                           struct wal__worktree *tree,
                                           const char *paths, size_t size,
                                           int *sys_errno)
{
    enum wal_status result = WAL_OK;
    int result_errno = 0;

    for (size_t at = 0; at < size; at += strlen(paths + at) + 1) {
        int error = 0;
        enum wal_status status = sync_directory(ctx, tree, paths + at, &error);

        if (status != WAL_OK) {
            result = status;
            result_errno = error;
        }
        if (status != WAL_OK && status != WAL_ENOTFOUND &&
            status != WAL_ENOTFILE && status != WAL_EOUTSIDE) {
            break;
        }
    }
    if (result != WAL_OK) {
        *sys_errno = result_errno;
    }
    return result;
}
