/*
 * api_migrate.c - bringing a store to this library's format version
 * (agentwal.h, SPEC.md 7.1).
 *
 * Each session's record is written anew, as a separate record, into segments of
 * this version; what is older stays as it is, and can be read. The manifest
 * takes the new version last, by a rename: until then the store has the old
 * one, and refuses writes.
 */
#include <string.h>

#include "engine/api/api_store.h"
#include "engine/base/error.h"
#include "engine/store/session.h"
#include "engine/write/write_batch.h"

/* Version 0 to 1: sessions get a schema version, and their title is a field. */
static enum wal_status migrate_sessions(struct wal__core *core,
                                        uint64_t *changed,
                                        struct wal_error *error)
{
    const struct wal_session_cursor_options options = {.struct_size =
                                                           sizeof(options)};
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_session_cursor *list = NULL;
    enum wal_status status =
        wal__session_cursor_open(core, &options, &list, error);

    if (status != WAL_OK) {
        return status;
    }
    while (status == WAL_OK) {
        struct wal_migrate_result step = {.struct_size = sizeof(step)};
        struct wal_session *session = NULL;

        status = wal__session_cursor_next(list, &info, error);
        if (status != WAL_OK || info.schema_version > 0) {
            continue;
        }
        status = wal__session_open(core, info.number, &session, error);
        if (status == WAL_OK) {
            status = wal__session_migrate(session, 1, NULL, NULL, &step, error);
        }
        if (status == WAL_OK) {
            *changed += step.sessions;
        }
        wal__session_free(session);
    }
    wal__session_cursor_close(list);
    return status == WAL_END ? WAL_OK : status;
}

static enum wal_status migrate(struct wal__core *core,
                               struct wal_migrate_result *done,
                               struct wal_error *error)
{
    enum wal_status status = wal__check_writable(core, error);

    done->from = core->manifest.version;
    if (status == WAL_OK && done->from < WAL__FORMAT_VERSION) {
        status = migrate_sessions(core, &done->sessions, error);
        if (status == WAL_OK) {
            status = wal__manifest_upgrade(&core->env, &core->manifest, error);
        }
    }
    done->to = core->manifest.version;
    return status;
}

static enum wal_status check(const char *path,
                             const struct wal_open_options *options,
                             const struct wal_migrate_result *result,
                             struct wal_error *error)
{
    const uint32_t refused =
        WAL_OPEN_CREATE | WAL_OPEN_READ_ONLY | WAL_OPEN_MEMORY;

    if ((path == NULL && (options->flags & WAL_OPEN_NOOP) == 0) ||
        (options->flags & refused) != 0) {
        return wal__invalid(error,
                            "the path or the options for migrating are not "
                            "valid");
    }
    return wal__struct_check_optional(WAL__STRUCT(wal_migrate_result), result,
                                      error);
}

enum wal_status
wal__store_migrate(const char *path, const struct wal_open_options *options,
                   const struct wal__heap *heap, const struct wal__io *io,
                   struct wal_migrate_result *result, struct wal_error *error)
{
    struct wal__core_options core_options = {.heap = heap,
                                             .io = io,
                                             .request_size =
                                                 sizeof(struct wal__batch),
                                             .is_migration = true};
    struct wal_migrate_result done = {.struct_size = sizeof(done)};
    struct wal__core *core;
    struct wal_open_options *open = &core_options.open;
    enum wal_status status =
        wal__struct_load(WAL__STRUCT(wal_open_options), open, options, error);
    enum wal_status closed;

    if (status == WAL_OK) {
        status = check(path, open, result, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    if ((open->flags & WAL_OPEN_NOOP) != 0) {
        done.from = WAL__FORMAT_VERSION;
        done.to = WAL__FORMAT_VERSION;
        wal__struct_store(WAL__STRUCT(wal_migrate_result), result, &done);
        return WAL_OK;
    }
    core = wal__heap_zalloc(heap, sizeof(*core));
    if (core == NULL) {
        return wal__no_memory(error);
    }
    open->schema_version = 0;
    status = wal__core_init(core, path, &core_options, error);
    if (status == WAL_OK) {
        status = migrate(core, &done, error);
        closed =
            wal__core_shutdown(core, true, status == WAL_OK ? error : NULL);
        status = status == WAL_OK ? closed : status;
    }
    wal__core_detach(core);
    wal__core_deinit(core);
    wal__heap_free(heap, core);
    if (status == WAL_OK) {
        wal__struct_store(WAL__STRUCT(wal_migrate_result), result, &done);
    }
    return status;
}

enum wal_status wal_store_migrate(const char *path,
                                  const struct wal_open_options *options,
                                  struct wal_migrate_result *result,
                                  struct wal_error *error)
{
    return wal__store_migrate(path, options, &wal__heap_libc, &wal__io_posix,
                              result, error);
}
