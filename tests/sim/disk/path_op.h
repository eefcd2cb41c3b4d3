/*
 * path_op.h - calls on paths below a work tree's root, shared by the files
 * that implement engine/base/worktree.h over a simulated disk.
 */
#ifndef AGENTWAL_TESTS_SIM_DISK_PATH_OP_H
#define AGENTWAL_TESTS_SIM_DISK_PATH_OP_H

#include "tests/sim/disk/internal.h"

struct wal__worktree {
    struct wal__worktree *next; /* of the process's */
    char root[SIM_PATH_MAX];
};

/* Where a path below a tree's root leads. */
struct sim_path {
    char path[SIM_PATH_MAX]; /* from the disk's root */
    struct sim_file *parent;
    struct sim_file *file; /* null: there is none */
};

/* A call under way on a path. */
struct sim_path_op {
    struct sim_op step;
    struct sim_process *process;
    struct sim_path at;
    bool failed_in_parent; /* it failed before the last name */
};

/* errno, or 0. A directory that is no link and may be searched; what a path
 * below the root leads to; whether names in a directory may change. */
int sim__path_open_root(struct sim_disk *disk, const char *path,
                        struct sim_file **directory);
int sim__path_lookup(struct sim_disk *disk, const struct wal__worktree *tree,
                     const char *path, struct sim_path *spot);
int sim__check_parent(const struct sim_process *process,
                      const struct sim_file *parent);

/* As sim__op_begin and sim__op_finish, with the path looked up. */
void sim__path_op_begin(struct sim_path_op *act, void *ctx, enum sim_call call,
                        const struct wal__worktree *tree, const char *path);
enum wal_status sim__path_op_finish(struct sim_path_op *act, int *sys_errno);
/* Makes the name, where all has gone well so far; else *made is null. */
void sim__path_op_create(struct sim_path_op *act, bool is_directory,
                         struct sim_file **made);

/* sim_tree_names.c */
enum wal_status sim__tree_read_link(void *ctx, struct wal__worktree *tree,
                                    const char *path, void *data, size_t size,
                                    size_t *got, int *sys_errno);
enum wal_status sim__tree_make_link(void *ctx, struct wal__worktree *tree,
                                    const char *path, const char *target,
                                    int *sys_errno);
enum wal_status sim__tree_make_directory(void *ctx, struct wal__worktree *tree,
                                         const char *path, int *sys_errno);
enum wal_status sim__tree_rename(void *ctx, struct wal__worktree *tree,
                                 const char *from, const char *to,
                                 int *sys_errno);
enum wal_status sim__tree_unlink(void *ctx, struct wal__worktree *tree,
                                 const char *path, int *sys_errno);
enum wal_status sim__tree_remove_directory(void *ctx,
                                           struct wal__worktree *tree,
                                           const char *path, int *sys_errno);
enum wal_status sim__tree_may_replace(void *ctx, struct wal__worktree *tree,
                                      const char *path, int *sys_errno);
enum wal_status sim__tree_sync_all(void *ctx, struct wal__worktree *tree,
                                   int *sys_errno);
enum wal_status sim__tree_sync_directories(void *ctx,
                                           struct wal__worktree *tree,
                                           const char *paths, size_t size,
                                           int *sys_errno);

#endif
