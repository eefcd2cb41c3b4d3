/*
 * known_root.c - adds roots of views to the list of a store (known_root.h).
 *
 * Threads: any.
 */
#include "convert/view/known_root.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "agentwal/admin.h"

/* Removes an entry whose root does not exist. */
static int32_t remove_gone(void *ctx, struct wal_slice dialect,
                           struct wal_slice root)
{
    struct stat stat_now;

    if (stat(root.data, &stat_now) != 0 &&
        (errno == ENOENT || errno == ENOTDIR)) {
        (void)!wal_store_remove_view_root(ctx, dialect, root, NULL);
    }
    return 0;
}

enum wal_status wal__view_root_add(struct wal_store *store,
                                   const struct wal__dialect *dialect,
                                   const char *root, uint32_t flags,
                                   struct wal_error *error)
{
    const struct wal_slice name = wal__slice_from_text(dialect->name);
    struct wal_slice place;
    char path[PATH_MAX];
    int32_t is_new = 0;
    enum wal_status status;

    if (realpath(root, path) == NULL) {
        return wal__view_fs_fail(error, root);
    }
    place = wal__slice_from_text(path);
    status = wal_store_add_view_root(store, name, place, flags, &is_new, error);
    if (is_new != 0 || status == WAL_ELIMIT) {
        (void)!wal_store_list_view_roots(store, remove_gone, store, NULL);
    }
    if (status == WAL_ELIMIT) {
        status =
            wal_store_add_view_root(store, name, place, flags, NULL, error);
    }
    return status;
}
