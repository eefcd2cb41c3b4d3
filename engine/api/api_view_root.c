/*
 * api_view_root.c - the public functions on the list of roots of views
 * (agentwal/admin.h): arguments are checked here, everything else is below.
 */
#include <string.h>

#include "agentwal/admin.h"
#include "engine/base/error.h"
#include "engine/store/session.h"
#include "engine/store/view_roots.h"

enum {
    KNOWN_FLAGS = WAL_STORE_VIEW_ROOT_SYNC | WAL_STORE_VIEW_ROOT_WRITER
};

static struct wal__span span_of(struct wal_slice text)
{
    return (struct wal__span){text.data,
                              text.data == NULL ? 0 : (size_t)text.size};
}

/* A store in memory has no list. */
static bool has_list(const struct wal_store *store)
{
    return !store->core.env.io->in_memory;
}

static enum wal_status check(const struct wal_store *store,
                             const struct wal__view_root *root,
                             struct wal_error *error)
{
    enum wal_status status =
        wal__check_core(store == NULL ? NULL : &store->core, error);

    return status != WAL_OK || wal__view_root_is_valid(root)
               ? status
               : wal__invalid(error, "the dialect or the path is empty or too "
                                     "long, or the path is not absolute");
}

enum wal_status wal_store_add_view_root(struct wal_store *store,
                                        struct wal_slice dialect,
                                        struct wal_slice root, uint32_t flags,
                                        int32_t *is_new,
                                        struct wal_error *error)
{
    const struct wal__view_root entry = {span_of(dialect), span_of(root)};
    enum wal_status status = check(store, &entry, error);
    bool is_added = false;

    if (status == WAL_OK && (flags & ~(uint32_t)KNOWN_FLAGS) != 0) {
        status = wal__invalid(error, "unknown flags: 0x%x",
                              flags & ~(uint32_t)KNOWN_FLAGS);
    }
    if (status == WAL_OK && has_list(store)) {
        if ((flags & WAL_STORE_VIEW_ROOT_WRITER) != 0) {
            status = wal__check_writable(&store->core, error);
        }
        if (status == WAL_OK) {
            status = wal__view_roots_add(
                &store->core.env, &entry,
                (flags & WAL_STORE_VIEW_ROOT_SYNC) != 0, &is_added, error);
        }
    }
    if (status == WAL_OK && is_new != NULL) {
        *is_new = is_added;
    }
    return status;
}

struct each {
    wal_store_view_root_fn *call;
    void *ctx;
    struct wal_error *error;
};

static enum wal_status call_each(void *ctx, const struct wal__view_root *root)
{
    const struct each *each = ctx;
    char dialect[WAL__VIEW_ROOT_DIALECT_MAX + 1];
    char path[WAL__VIEW_ROOT_PATH_MAX + 1];
    int32_t answer;

    memcpy(dialect, root->dialect.data, root->dialect.size);
    dialect[root->dialect.size] = '\0';
    memcpy(path, root->path.data, root->path.size);
    path[root->path.size] = '\0';
    answer =
        each->call(each->ctx, (struct wal_slice){dialect, root->dialect.size},
                   (struct wal_slice){path, root->path.size});
    return answer == 0 ? WAL_OK
                       : wal__fail_at(each->error, WAL_ECALLBACK, answer, NULL,
                                      0, "the callback stopped the listing");
}

enum wal_status wal_store_list_view_roots(struct wal_store *store,
                                          wal_store_view_root_fn *each,
                                          void *ctx, struct wal_error *error)
{
    struct each calls = {each, ctx, error};
    enum wal_status status =
        wal__check_core(store == NULL ? NULL : &store->core, error);

    if (status == WAL_OK && each == NULL) {
        status = wal__invalid(error, "the callback is null");
    }
    return status == WAL_OK && has_list(store)
               ? wal__view_roots_list(&store->core.env, call_each, &calls,
                                      error)
               : status;
}

enum wal_status wal_store_remove_view_root(struct wal_store *store,
                                           struct wal_slice dialect,
                                           struct wal_slice root,
                                           struct wal_error *error)
{
    const struct wal__view_root entry = {span_of(dialect), span_of(root)};
    enum wal_status status = check(store, &entry, error);

    if (status == WAL_OK && has_list(store)) {
        wal__view_roots_remove(&store->core.env, &entry);
    }
    return status;
}
