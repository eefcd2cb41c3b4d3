/*
 * known_root.c - adds roots of views to the list of a store (known_root.h).
 *
 * Threads: any.
 */
#include "engine/convert/view/known_root.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "engine/api/api_view_root.h"

/* Removes an entry whose root does not exist. */
static enum wal_status remove_gone(void *ctx, const char *dialect,
                                   const char *path)
{
    struct stat stat_now;

    if (stat(path, &stat_now) != 0 && (errno == ENOENT || errno == ENOTDIR)) {
        wal__store_remove_view_root(ctx, dialect, path);
    }
    return WAL_OK;
}

enum wal_status wal__view_root_add(struct wal_store *store,
                                   const struct wal__dialect *dialect,
                                   const char *root, bool syncs,
                                   struct wal_error *error)
{
    char path[PATH_MAX];
    bool is_new = false;
    enum wal_status status;

    if (realpath(root, path) == NULL) {
        return wal__view_fs_fail(error, root);
    }
    status = wal__store_add_view_root(store, dialect->name, path, syncs,
                                      &is_new, error);
    if (is_new || status == WAL_ELIMIT) {
        (void)!wal__store_list_view_roots(store, remove_gone, store, NULL);
    }
    if (status == WAL_ELIMIT) {
        status = wal__store_add_view_root(store, dialect->name, path, syncs,
                                          &is_new, error);
    }
    return status;
}
