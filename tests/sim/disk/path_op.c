/*
 * path_op.c - calls on paths below a work tree's root as steps of a simulated
 * process (sim_act.h). Invariant: no directory between the root and the last
 * name is a link. One thread at a time.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/sim/disk/path_op.h"

enum {
    may_search = 0100,
    may_change = 0300
};

/* A directory on the way. */
int sim__path_open_root(struct sim_disk *disk, const char *path,
                        struct sim_file **directory)
{
    int error = sim__resolve(disk, path, directory);

    if (error != 0) {
        return error;
    }
    if ((*directory)->target != NULL) {
        return ELOOP;
    }
    if (!(*directory)->is_directory) {
        return ENOTDIR;
    }
    return ((*directory)->mode & may_search) == 0 ? EACCES : 0;
}

/* The parent of spot->path, whose first `root` bytes are the tree's root. */
static int walk(struct sim_disk *disk, size_t root, struct sim_path *spot)
{
    size_t at = root;
    int error = 0;

    while (error == 0) {
        char *slash = strchr(spot->path + at, '/');

        if (slash == NULL) {
            break;
        }
        *slash = '\0';
        error = sim__path_open_root(disk, spot->path, &spot->parent);
        *slash = '/';
        at = (size_t)(slash - spot->path) + 1;
    }
    return error;
}

int sim__path_lookup(struct sim_disk *disk, const struct wal__worktree *tree,
                     const char *path, struct sim_path *spot)
{
    struct wal__worktree_path place;
    int error = wal__worktree_path_split(path, &place);
    int size;

    if (error != 0) {
        return error;
    }
    size = snprintf(spot->path, sizeof(spot->path), "%s/%s", tree->root, path);
    if (size < 0 || (size_t)size >= sizeof(spot->path) - 2) {
        return ENAMETOOLONG;
    }
    error = walk(disk, strlen(tree->root), spot);
    if (error == 0 && sim__resolve(disk, spot->path, &spot->file) != 0) {
        spot->file = NULL;
    }
    return error;
}

/* The path as faults and traces see it is whole where it can be. */
void sim__path_op_begin(struct sim_path_op *act, void *ctx, enum sim_call call,
                        const struct wal__worktree *tree, const char *path)
{
    struct sim_path found = {.file = NULL};
    int error = 0;

    *act = (struct sim_path_op){.process = ctx};
    if (!act->process->is_dead) {
        error = sim__path_lookup(act->process->disk, tree, path, &found);
    }
    act->at = found;
    act->step = sim__op_begin(
        ctx,
        (struct sim_event){
            .call = call, .path = found.path[0] == '\0' ? path : act->at.path});
    if (act->step.error == 0) {
        act->step.error = error;
        act->failed_in_parent = error != 0;
    }
}

enum wal_status sim__path_op_finish(struct sim_path_op *act, int *sys_errno)
{
    if (sim__op_finish(&act->step, sys_errno) == WAL_OK) {
        return WAL_OK;
    }
    return act->failed_in_parent ? wal__worktree_resolve_status(*sys_errno)
                                 : wal__worktree_status(*sys_errno);
}

/* Whether names in the directory may change. */
int sim__check_parent(const struct sim_process *process,
                      const struct sim_file *parent)
{
    int error = sim__check_writable(process);

    if (error == 0 && (parent->mode & may_change) != may_change) {
        error = EACCES;
    }
    return error == 0 && parent->is_immutable ? EPERM : error;
}

/* A new name; *made is null on failure. */
void sim__path_op_create(struct sim_path_op *act, bool is_directory,
                         struct sim_file **made)
{
    *made = NULL;
    if (act->step.error == 0 && act->at.file != NULL) {
        act->step.error = EEXIST;
    }
    if (act->step.error == 0) {
        act->step.error = sim__check_parent(act->process, act->at.parent);
    }
    if (act->step.error == 0) {
        act->step.error =
            sim__create(act->process->disk, act->at.path, is_directory, made);
    }
}
