/*
 * tree_path.c - paths below a work tree's root, and what an errno means there
 * (tree.h). It implements SPEC.md 5.14. Invariant: a path that is cut names
 * nothing above the root, whatever the file system holds, links apart. Any
 * thread.
 */
#include "engine/io/tree.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

/* 0, or the errno of a part that no plain path has. */
static int check_part(const char *part, size_t size)
{
    if (size == 0 || (size == 1 && part[0] == '.')) {
        return EINVAL;
    }
    if (size == 2 && part[0] == '.' && part[1] == '.') {
        return EXDEV;
    }
    return size > NAME_MAX ? ENAMETOOLONG : 0;
}

int wal__tree_path_cut(const char *path, struct wal__tree_place *place)
{
    const char *part = path;
    int error = path[0] == '/' ? EXDEV : 0;
    int long_part = 0;

    /* That a part is too long counts only when the path is plain. */
    while (error == 0) {
        size_t size = strcspn(part, "/");

        error = check_part(part, size);
        if (error == ENAMETOOLONG) {
            long_part = error;
            error = 0;
        }
        if (part[size] == '\0') {
            break;
        }
        part += size + 1;
    }
    if (error == 0 && strlen(path) > PATH_MAX) {
        long_part = ENAMETOOLONG;
    }
    if (error != 0 || long_part != 0) {
        return error != 0 ? error : long_part;
    }
    place->parent_size = part == path ? 0 : (size_t)(part - path) - 1;
    place->name = part;
    return 0;
}

enum wal_status wal__tree_status(int error)
{
    switch (error) {
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

enum wal_status wal__tree_way_status(int error)
{
    switch (error) {
    case ELOOP:
    case EXDEV:
        return WAL_EOUTSIDE;
    case EINVAL:
        return WAL_EINVAL;
    default:
        return wal__tree_status(error);
    }
}
