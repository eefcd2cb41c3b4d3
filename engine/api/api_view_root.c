/*
 * api_view_root.c - the list of roots of views of an open store
 * (api_view_root.h).
 */
#include "engine/api/api_view_root.h"

#include <string.h>

#include "engine/api/api_check.h"
#include "engine/base/error.h"
#include "engine/store/view_roots.h"

static struct wal__span span_of(const char *text)
{
    return (struct wal__span){(const uint8_t *)text, strlen(text)};
}

/* A store in memory, or with persistence off, has no list. */
static bool has_list(const struct wal_store *store)
{
    return !store->core.noop && !store->core.env.io->in_memory;
}

enum wal_status wal__store_add_view_root(struct wal_store *store,
                                         const char *dialect, const char *path,
                                         bool syncs, bool *is_new,
                                         struct wal_error *error)
{
    const struct wal__view_root root = {span_of(dialect), span_of(path)};
    enum wal_status status =
        wal__check_core(store == NULL ? NULL : &store->core, error);

    *is_new = false;
    if (status != WAL_OK || !has_list(store)) {
        return status;
    }
    if (!wal__view_root_is_valid(&root)) {
        return wal__invalid(error, "the dialect or the path is too long, or "
                                   "the path is not absolute");
    }
    return wal__view_roots_add(&store->core.env, &root, syncs, is_new, error);
}

bool wal__store_is_writable(const struct wal_store *store)
{
    return has_list(store) && !store->core.env.read_only;
}

struct each {
    wal__view_root_fn *call;
    void *ctx;
};

static enum wal_status call_each(void *ctx, const struct wal__view_root *root)
{
    const struct each *each = ctx;
    char dialect[WAL__VIEW_ROOT_DIALECT_MAX + 1];
    char path[WAL__VIEW_ROOT_PATH_MAX + 1];

    memcpy(dialect, root->dialect.data, root->dialect.size);
    dialect[root->dialect.size] = '\0';
    memcpy(path, root->path.data, root->path.size);
    path[root->path.size] = '\0';
    return each->call(each->ctx, dialect, path);
}

enum wal_status wal__store_list_view_roots(struct wal_store *store,
                                           wal__view_root_fn *each, void *ctx,
                                           struct wal_error *error)
{
    struct each calls = {each, ctx};
    enum wal_status status =
        wal__check_core(store == NULL ? NULL : &store->core, error);

    return status == WAL_OK && has_list(store)
               ? wal__view_roots_list(&store->core.env, call_each, &calls,
                                      error)
               : status;
}

void wal__store_remove_view_root(struct wal_store *store, const char *dialect,
                                 const char *path)
{
    const struct wal__view_root root = {span_of(dialect), span_of(path)};

    if (has_list(store) && wal__view_root_is_valid(&root)) {
        wal__view_roots_remove(&store->core.env, &root);
    }
}
