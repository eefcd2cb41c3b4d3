/*
 * worktree_leaf.c - splits a path and opens the parent of its last component
 * (worktree_leaf.h; SPEC.md 5.14). Any thread.
 */
#include "engine/base/worktree_leaf.h"

#include <errno.h>
#include <unistd.h>

#include "format/bytes/assert.h"

enum wal_status wal__worktree_report_errno(int *sys_errno, int error)
{
    *sys_errno = error;
    return wal__worktree_status(error);
}

enum wal_status wal__worktree_report_resolve_errno(int *sys_errno, int error)
{
    *sys_errno = error;
    return wal__worktree_resolve_status(error);
}

enum wal_status wal__worktree_leaf_open(struct wal__worktree *tree,
                                        const char *path,
                                        struct wal__worktree_leaf *leaf,
                                        int *sys_errno)
{
    struct wal__worktree_path split;
    int error = wal__worktree_path_split(path, &split);

    if (error != 0) {
        return wal__worktree_report_resolve_errno(sys_errno, error);
    }
    leaf->parent =
        wal__worktree_resolve(&tree->resolver, path, split.parent_size);
    leaf->name = split.name;
    return leaf->parent < 0
               ? wal__worktree_report_resolve_errno(sys_errno, errno)
               : WAL_OK;
}

void wal__worktree_leaf_close(const struct wal__worktree_leaf *leaf)
{
    int error = errno;

    WAL__ASSERT(leaf->parent >= 0);
    (void)close(leaf->parent);
    errno = error;
}

enum wal_status
wal__worktree_cached_leaf_open(struct wal__worktree *tree, const char *path,
                               struct wal__worktree_cached_leaf *leaf,
                               int *sys_errno)
{
    struct wal__worktree_path split;
    int error = wal__worktree_path_split(path, &split);

    if (error != 0) {
        return wal__worktree_report_resolve_errno(sys_errno, error);
    }
    leaf->parent =
        wal__worktree_dir_acquire(&tree->resolver, path, split.parent_size);
    leaf->name = split.name;
    return leaf->parent == NULL
               ? wal__worktree_report_resolve_errno(sys_errno, errno)
               : WAL_OK;
}
