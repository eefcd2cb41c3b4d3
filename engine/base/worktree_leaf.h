/*
 * worktree_leaf.h - the last component of a path, and the open directory that
 * contains it (SPEC.md 5.14). For worktree*.c alone. Any thread.
 */
#ifndef AGENTWAL_ENGINE_BASE_WORKTREE_LEAF_H
#define AGENTWAL_ENGINE_BASE_WORKTREE_LEAF_H

#include "engine/base/worktree.h"
#include "engine/base/worktree_resolve.h"

/* An open root. */
struct wal__worktree {
    struct wal__worktree_resolver resolver;
    dev_t device; /* of the root */
};

/* Each stores the errno and returns its status: of a call on a name, and of
 * resolving the path to its parent. */
enum wal_status wal__worktree_report_errno(int *sys_errno, int error);
enum wal_status wal__worktree_report_resolve_errno(int *sys_errno, int error);

/* A name in a directory that was opened for this call alone. `name` points into
 * the path. */
struct wal__worktree_leaf {
    int parent;
    const char *name;
};

enum wal_status wal__worktree_leaf_open(struct wal__worktree *tree,
                                        const char *path,
                                        struct wal__worktree_leaf *leaf,
                                        int *sys_errno) WAL_MUST_USE;
/* Preserves errno. */
void wal__worktree_leaf_close(const struct wal__worktree_leaf *leaf);

/* The same in a cached directory, for calls that only read. Release the parent
 * with wal__worktree_dir_release. */
struct wal__worktree_cached_leaf {
    struct wal__worktree_dir *parent;
    const char *name;
};

enum wal_status
wal__worktree_cached_leaf_open(struct wal__worktree *tree, const char *path,
                               struct wal__worktree_cached_leaf *leaf,
                               int *sys_errno) WAL_MUST_USE;

#endif
