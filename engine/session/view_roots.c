/*
 * view_roots.c - the list of roots of views that a store keeps (agentwal/admin.h, view_roots.h).
 */
#include "engine/session/view_roots.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agentwal/admin.h"
#include "engine/base/error.h"
#include "engine/base/heap.h"
#include "engine/session/session.h"
#include "format/bytes/assert.h"

enum {
    NAME_SIZE = WAL__VIEW_ROOT_NAME + 1,
    /* Of a temporary file: the entry's name, '.', 8 digits, ".tmp". */
    TEMPORARY_SIZE = WAL__VIEW_ROOT_NAME + 1 + 8 + 4 + 1
};

/* The path of the list, or with a name that of a file in it. */
static void list_path(const struct wal__env *env, const char *name, char out[WAL__PATH_MAX])
{
    wal__env_path(env, out, "views%s%s", name[0] != '\0' ? "/" : "", name);
}

/* WAL_ENOTFOUND: there is no list. A symbolic link is not followed. */
static enum wal_status check_directory(const struct wal__env *env, struct wal_error *error)
{
    const struct wal__io *io = env->io;
    char path[WAL__PATH_MAX];
    struct wal__file *file = NULL;
    enum wal_status status;
    int err = 0;

    list_path(env, "", path);
    status = io->open(io->ctx, path, 0, &file, &err);
    if (status == WAL_OK) {
        io->close(io->ctx, file);
        return wal__fail_at(error, WAL_EIO, 0, path, 0, "a file is in place of the directory");
    }
    if (err == EISDIR) {
        return WAL_OK;
    }
    if (status == WAL_ENOTFOUND) {
        return wal__fail_at(error, status, err, path, 0, "there is no list");
    }
    return wal__fail_at(error, status, err, path, 0,
                        "no directory is in place of the list of views");
}

/* ------------------------------------------------------------- reading --- */

/* Reads the entry with a name into `bytes`; false: there is no valid one. */
static bool read_entry(const struct wal__env *env, const char *name,
                       uint8_t bytes[WAL__VIEW_ROOT_SIZE_MAX + 1], struct wal__view_root *root)
{
    const struct wal__io *io = env->io;
    char path[WAL__PATH_MAX];
    char expected[NAME_SIZE];
    struct wal__file *file = NULL;
    enum wal_status status;
    size_t size = 0;
    int err = 0;

    list_path(env, name, path);
    if (io->open(io->ctx, path, 0, &file, &err) != WAL_OK) {
        return false;
    }
    status = wal__io_read_full(io, file, bytes, WAL__VIEW_ROOT_SIZE_MAX + 1, 0, &size, &err);
    io->close(io->ctx, file);
    if (status != WAL_OK ||
        wal__view_root_decode((struct wal__span){bytes, size}, root) != WAL__FMT_OK) {
        return false;
    }
    wal__view_root_name(root, expected);
    return strcmp(name, expected) == 0;
}

struct listing {
    struct wal__buf names;      /* NAME_SIZE bytes each */
    const struct wal__env *env; /* with `prefix`: to remove temporary files */
    const char *prefix;         /* name of the entry that is written; or NULL */
};

static enum wal_status collect_name(void *ctx, const char *name)
{
    struct listing *listing = ctx;
    char path[WAL__PATH_MAX];
    int err = 0;

    if (wal__view_root_is_name(name)) {
        return listing->names.size / NAME_SIZE == WAL__VIEW_ROOTS_MAX
                   ? WAL_OK
                   : wal__buf_append(&listing->names, name, NAME_SIZE);
    }
    /* A process that died has left it. One that lives, and writes the same entry, fails to rename
     * it, and finds ours. */
    if (listing->prefix != NULL && strlen(name) == TEMPORARY_SIZE - 1 &&
        strncmp(name, listing->prefix, WAL__VIEW_ROOT_NAME) == 0) {
        list_path(listing->env, name, path);
        (void)!listing->env->io->unlink(listing->env->io->ctx, path, &err);
    }
    return WAL_OK;
}

static enum wal_status collect_names(const struct wal__env *env, struct listing *listing,
                                     struct wal_error *error)
{
    const struct wal__io *io = env->io;
    char path[WAL__PATH_MAX];
    enum wal_status status;
    int err = 0;

    wal__buf_init(&listing->names, env->heap);
    list_path(env, "", path);
    status = io->list(io->ctx, path, collect_name, listing, &err);
    if (status == WAL_ENOMEM) {
        return wal__no_memory(error);
    }
    return status == WAL_OK
               ? WAL_OK
               : wal__fail_at(error, status, err, path, 0, "cannot list the directory");
}

enum wal_status wal__view_roots_list(const struct wal__env *env,
                                     enum wal_status (*each)(void *ctx,
                                                             const struct wal__view_root *root),
                                     void *ctx, struct wal_error *error)
{
    uint8_t bytes[WAL__VIEW_ROOT_SIZE_MAX + 1];
    struct listing listing = {.env = env};
    enum wal_status status = check_directory(env, error);

    if (status == WAL_ENOTFOUND) {
        return WAL_OK;
    }
    if (status == WAL_OK) {
        status = collect_names(env, &listing, error);
    }
    for (size_t at = 0; at < listing.names.size && status == WAL_OK; at += NAME_SIZE) {
        struct wal__view_root root;

        if (read_entry(env, (const char *)listing.names.data + at, bytes, &root)) {
            status = each(ctx, &root);
        }
    }
    wal__buf_deinit(&listing.names);
    return status;
}

/* ------------------------------------------------------------- writing --- */

static enum wal_status make_directory(const struct wal__env *env, struct wal_error *error)
{
    const struct wal__io *io = env->io;
    char path[WAL__PATH_MAX];
    enum wal_status status = check_directory(env, error);
    int err = 0;

    if (status != WAL_ENOTFOUND) {
        return status;
    }
    list_path(env, "", path);
    status = io->make_directory(io->ctx, path, &err);
    return status == WAL_OK || status == WAL_EEXISTS
               ? WAL_OK
               : wal__fail_at(error, status, err, path, 0, "cannot create the directory");
}

/* Writes a temporary file, and renames it when it is durable. */
static enum wal_status replace(const struct wal__env *env, const char *name, const uint8_t *bytes,
                               size_t size, int *err)
{
    const struct wal__io *io = env->io;
    struct iovec iov = {(void *)(uintptr_t)bytes, size};
    char temporary[TEMPORARY_SIZE];
    char paths[2][WAL__PATH_MAX];
    struct wal__file *file = NULL;
    enum wal_status status;
    uint32_t random = 0;
    int ignored = 0;

    wal__random_bytes(env->random, io, &random, sizeof(random));
    (void)snprintf(temporary, sizeof(temporary), "%s.%08" PRIx32 ".tmp", name, random);
    list_path(env, temporary, paths[0]);
    list_path(env, name, paths[1]);
    status =
        io->open(io->ctx, paths[0], WAL__IO_WRITE | WAL__IO_CREATE | WAL__IO_EXCLUSIVE, &file, err);
    if (status != WAL_OK) {
        return status;
    }
    status = wal__io_write_full(io, file, &iov, 1, 0, err);
    if (status == WAL_OK) {
        status = io->sync(io->ctx, file, err);
    }
    io->close(io->ctx, file);
    if (status == WAL_OK) {
        status = io->rename(io->ctx, paths[0], paths[1], err);
    }
    if (status != WAL_OK) {
        (void)!io->unlink(io->ctx, paths[0], &ignored);
    }
    return status;
}

/* Makes the entry and the list itself durable: another process may have created the directory, and
 * have died before it synced it. */
static enum wal_status sync_names(const struct wal__env *env, int *err)
{
    const struct wal__io *io = env->io;
    char path[WAL__PATH_MAX];
    enum wal_status status;

    list_path(env, "", path);
    status = io->sync_directory(io->ctx, path, err);
    return status == WAL_OK ? io->sync_directory(io->ctx, env->root, err) : status;
}

/* Counts the entries, and removes what processes left that died while they wrote this one.
 * WAL_ELIMIT: there is no place for another. */
static enum wal_status clean(const struct wal__env *env, const char *name, struct wal_error *error)
{
    struct listing listing = {.env = env, .prefix = name};
    enum wal_status status = collect_names(env, &listing, error);
    bool is_full = listing.names.size / NAME_SIZE == WAL__VIEW_ROOTS_MAX;

    wal__buf_deinit(&listing.names);
    return status == WAL_OK && is_full
               ? wal__fail(error, WAL_ELIMIT, "the store knows of %d roots of views already",
                           (int)WAL__VIEW_ROOTS_MAX)
               : status;
}

/* Removes an entry. Best effort, and not durable. */
static void view_roots_remove(const struct wal__env *env, const struct wal__view_root *root)
{
    char path[WAL__PATH_MAX];
    char name[NAME_SIZE];
    int err = 0;

    wal__view_root_name(root, name);
    list_path(env, name, path);
    (void)!env->io->unlink(env->io->ctx, path, &err);
}

/* After a sync of names that failed a later one may succeed without them: they are made again by
 * the next call. */
static void undo(const struct wal__env *env, const struct wal__view_root *root)
{
    char path[WAL__PATH_MAX];
    int err = 0;

    view_roots_remove(env, root);
    list_path(env, "", path);
    (void)!env->io->remove_directory(env->io->ctx, path, &err);
}

enum wal_status wal__view_roots_add(const struct wal__env *env, const struct wal__view_root *root,
                                    bool syncs, bool *is_new, struct wal_error *error)
{
    uint8_t bytes[WAL__VIEW_ROOT_SIZE_MAX + 1];
    struct wal__view_root found;
    char name[NAME_SIZE];
    enum wal_status status;
    bool exists;
    int err = 0;

    *is_new = false;
    wal__view_root_name(root, name);
    status = make_directory(env, error);
    exists = status == WAL_OK && read_entry(env, name, bytes, &found);
    if (status != WAL_OK || (exists && !syncs)) {
        return status;
    }
    if (!exists) {
        status = clean(env, name, error);
        if (status != WAL_OK) {
            return status;
        }
        status = replace(env, name, bytes, wal__view_root_encode(root, bytes), &err);
    }
    if (status == WAL_OK) {
        status = sync_names(env, &err);
        if (status != WAL_OK) {
            undo(env, root);
        }
    }
    *is_new = status == WAL_OK && !exists;
    return status == WAL_OK ? WAL_OK
                            : wal__fail_at(error, status, err, name, 0,
                                           "cannot add the root to the list of views");
}

enum { KNOWN_FLAGS = WAL_STORE_VIEW_ROOT_SYNC | WAL_STORE_VIEW_ROOT_WRITER };

static struct wal__span span_of(struct wal_slice text)
{
    return (struct wal__span){text.data, text.data == NULL ? 0 : (size_t)text.size};
}

/* A store in memory has no list. */
static bool has_list(const struct wal_store *store)
{
    return !store->core.env.io->in_memory;
}

static enum wal_status check_view_root(const struct wal_store *store,
                                       const struct wal__view_root *root, struct wal_error *error)
{
    enum wal_status status = wal__check_core(store == NULL ? NULL : &store->core, error);

    return status != WAL_OK || wal__view_root_is_valid(root)
               ? status
               : wal__invalid(error, "the dialect or the path is empty or too "
                                     "long, or the path is not absolute");
}

enum wal_status wal_store_add_view_root(struct wal_store *store, struct wal_slice dialect,
                                        struct wal_slice root, uint32_t flags, int32_t *is_new,
                                        struct wal_error *error)
{
    const struct wal__view_root entry = {span_of(dialect), span_of(root)};
    enum wal_status status = check_view_root(store, &entry, error);
    bool is_added = false;

    if (status == WAL_OK && (flags & ~(uint32_t)KNOWN_FLAGS) != 0) {
        status = wal__invalid(error, "unknown flags: 0x%x", flags & ~(uint32_t)KNOWN_FLAGS);
    }
    if (status == WAL_OK && has_list(store)) {
        if ((flags & WAL_STORE_VIEW_ROOT_WRITER) != 0) {
            status = wal__check_writable(&store->core, error);
        }
        if (status == WAL_OK) {
            status = wal__view_roots_add(&store->core.env, &entry,
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
    answer = each->call(each->ctx, (struct wal_slice){dialect, root->dialect.size},
                        (struct wal_slice){path, root->path.size});
    return answer == 0 ? WAL_OK
                       : wal__fail_at(each->error, WAL_ECALLBACK, answer, NULL, 0,
                                      "the callback stopped the listing");
}

enum wal_status wal_store_list_view_roots(struct wal_store *store, wal_store_view_root_fn *each,
                                          void *ctx, struct wal_error *error)
{
    struct each calls = {each, ctx, error};
    enum wal_status status = wal__check_core(store == NULL ? NULL : &store->core, error);

    if (status == WAL_OK && each == NULL) {
        status = wal__invalid(error, "the callback is null");
    }
    return status == WAL_OK && has_list(store)
               ? wal__view_roots_list(&store->core.env, call_each, &calls, error)
               : status;
}

enum wal_status wal_store_remove_view_root(struct wal_store *store, struct wal_slice dialect,
                                           struct wal_slice root, struct wal_error *error)
{
    const struct wal__view_root entry = {span_of(dialect), span_of(root)};
    enum wal_status status = check_view_root(store, &entry, error);

    if (status == WAL_OK && has_list(store)) {
        view_roots_remove(&store->core.env, &entry);
    }
    return status;
}
