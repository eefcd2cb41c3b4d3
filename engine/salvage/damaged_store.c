/*
 * damaged_store.c - opens and closes the damaged store (SPEC.md 2.1).
 */
#include "engine/salvage/damaged_store.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/store/manifest.h"

/* --- the store ------------------------------------------------------------ */

/* Whether a directory without a valid MANIFEST may hold a store. */
static bool has_log(const struct wal__env *env)
{
    char path[WAL__PATH_MAX];
    struct wal__io_stat stat;
    int err = 0;
    int size = snprintf(path, sizeof(path), "%s/log", env->root);

    return size > 0 && size < (int)sizeof(path) &&
           env->io->path_stat(env->io->ctx, path, &stat, &err) == WAL_OK &&
           stat.is_directory;
}

static enum wal_status read_manifest(struct wal__damaged_store *store,
                                     struct wal_error *error)
{
    const struct wal__env *env = &store->env;
    struct wal__manifest manifest;
    bool read_only;
    enum wal_status status =
        wal__manifest_read(env, &manifest, &read_only, error);

    if (status == WAL_OK) {
        store->uuid_known = true;
        memcpy(store->uuid, manifest.uuid, sizeof(store->uuid));
        store->format_version = manifest.version;
        store->group_align = manifest.group_align;
        store->has_shadows = manifest.has_shadows;
        return WAL_OK;
    }
    if (status == WAL_EREADONLY) {
        return wal__fail_at(error, WAL_EACCESS, EACCES, env->root, 0,
                            "cannot read the manifest");
    }
    if (status == WAL_EVERSION || status == WAL_ENOMEM || has_log(env)) {
        return status == WAL_EVERSION || status == WAL_ENOMEM ? status : WAL_OK;
    }
    return wal__fail_at(error, WAL_ENOTSTORE, 0, env->root, 0,
                        "is not a store: it has no valid MANIFEST, and no "
                        "directory log/");
}

enum wal_status wal__damaged_open(struct wal__damaged_store *store,
                                  const struct wal__env *env,
                                  struct wal_error *error)
{
    enum wal_status status;

    memset(store, 0, sizeof(*store));
    store->env = *env;
    store->format_version = WAL__FORMAT_VERSION;
    status = read_manifest(store, error);
    if (status != WAL_OK) {
        return status;
    }
    status = wal__damaged_link(store, &store->log);
    if (status == WAL_OK) {
        status = wal__damaged_link(store, &store->pack);
    }
    if (status != WAL_OK) {
        status = status == WAL_EREADONLY ? WAL_EACCESS : status;
        return wal__fail_at(error, status, 0, env->root, 0,
                            "cannot list the segments");
    }
    if (!store->uuid_known) {
        return wal__fail_at(error, WAL_ENOTSTORE, 0, env->root, 0,
                            "is not a store: it has no valid MANIFEST, and no "
                            "segment with a valid header");
    }
    return WAL_OK;
}

static void close_stream(const struct wal__heap *heap,
                         struct wal__damaged_stream *stream)
{
    for (uint32_t i = 0; i < stream->count; i++) {
        wal__heap_free(heap, stream->items[i]);
    }
    wal__heap_free(heap, stream->items);
}

void wal__damaged_close(struct wal__damaged_store *store)
{
    const struct wal__heap *heap = store->env.heap;

    close_stream(heap, &store->log);
    close_stream(heap, &store->pack);
    for (uint32_t i = 0; i < store->damage_count; i++) {
        wal__heap_free(heap, store->damages[i].sessions);
    }
    wal__heap_free(heap, store->damages);
}
