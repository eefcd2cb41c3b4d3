/*
 * worktree_path.c - splits paths below a work tree's root, and maps errnos to
 * statuses (worktree.h). It implements SPEC.md 5.14. Invariant: a path that was
 * split names nothing above the root unless a component is a link. Any thread.
 */
#include "engine/base/worktree.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "format/bytes/assert.h"

/* 0, or an errno for a component that a plain path cannot have. */
static int check_component(const char *component, size_t size)
{
    if (size == 0 || (size == 1 && component[0] == '.')) {
        return EINVAL;
    }
    if (size == 2 && component[0] == '.' && component[1] == '.') {
        return EXDEV;
    }
    return size > NAME_MAX ? ENAMETOOLONG : 0;
}

int wal__worktree_path_split(const char *path, struct wal__worktree_path *split)
{
    const char *component = path;
    int error = path[0] == '/' ? EXDEV : 0;
    int too_long = 0;

    /* ENAMETOOLONG is reported only if the path is plain otherwise. */
    while (error == 0) {
        size_t size = strcspn(component, "/");

        error = check_component(component, size);
        if (error == ENAMETOOLONG) {
            too_long = error;
            error = 0;
        }
        if (component[size] == '\0') {
            break;
        }
        component += size + 1;
    }
    if (error == 0 && strlen(path) > PATH_MAX) {
        too_long = ENAMETOOLONG;
    }
    if (error != 0 || too_long != 0) {
        return error != 0 ? error : too_long;
    }
    split->parent_size = component == path ? 0 : (size_t)(component - path) - 1;
    split->name = component;
    WAL__ASSERT(split->parent_size < PATH_MAX);
    return 0;
}

enum wal_status wal__worktree_status(int sys_errno)
{
    switch (sys_errno) {
    case 0:
        return WAL_OK;
    case ENOENT:
    case ENOTDIR:
        return WAL_ENOTFOUND;
    case EEXIST:
    case ENOTEMPTY:
        return WAL_EEXISTS;
    case EACCES:
    case EPERM:
    case EROFS:
    case EBUSY:
        return WAL_EACCESS;
    case EISDIR:
    case ELOOP:
    case ENODEV:
    case ENXIO:
        return WAL_ENOTFILE;
    case ENAMETOOLONG:
        return WAL_ETOOBIG;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return WAL_ENOSPACE;
    case ENOMEM:
        return WAL_ENOMEM;
    default:
        return WAL_EIO;
    }
}

enum wal_status wal__worktree_resolve_status(int sys_errno)
{
    switch (sys_errno) {
    case ELOOP:
    case EXDEV:
        return WAL_EOUTSIDE;
    case EINVAL:
        return WAL_EINVAL;
    default:
        return wal__worktree_status(sys_errno);
    }
}
