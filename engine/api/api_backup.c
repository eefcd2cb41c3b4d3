/*
 * api_backup.c - the public function on backups (agentwal/admin.h): arguments
 * are checked here, everything else is below.
 */
#include "agentwal/admin.h"

#include "engine/api/api_check.h"
#include "engine/api/api_store.h"
#include "engine/backup/backup.h"
#include "engine/base/error.h"

/* Of the callback. */
struct caller {
    const struct wal_store_backup_options *options;
    int32_t stopped; /* what it returned last */
};

static bool on_progress(void *ctx, uint64_t done, uint64_t total)
{
    struct caller *caller = ctx;

    caller->stopped =
        caller->options->progress(caller->options->ctx, done, total);
    return caller->stopped == 0;
}

static enum wal_status check(const struct wal_store *store, const char *path,
                             const struct wal_store_backup_options *options,
                             struct wal_error *error)
{
    if (path == NULL) {
        return wal__invalid(error, "the path of the copy is null");
    }
    if (options->flags != 0) {
        return wal__invalid(error, "the options for a backup are not valid");
    }
    if (store->core.noop || store->core.env.io->in_memory) {
        return wal__invalid(error, "the store has no files");
    }
    return WAL_OK;
}

enum wal_status wal_store_backup(struct wal_store *store, const char *path,
                                 const struct wal_store_backup_options *options,
                                 struct wal_store_backup_result *result,
                                 struct wal_error *error)
{
    struct wal_store_backup_options own;
    struct wal_store_backup_result done = {.struct_size = sizeof(done)};
    struct caller caller = {&own, 0};
    struct wal__backup_options backup = {.ctx = &caller};
    struct wal__backup_result copied;
    enum wal_status status = wal__struct_load(
        WAL__STRUCT(wal_store_backup_options), &own, options, error);

    if (status == WAL_OK) {
        status = wal__check_core(store == NULL ? NULL : &store->core, error);
    }
    if (status == WAL_OK) {
        status = check(store, path, &own, error);
    }
    if (status == WAL_OK) {
        status = wal__struct_check_optional(
            WAL__STRUCT(wal_store_backup_result), result, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    backup.progress = own.progress == NULL ? NULL : on_progress;
    status = wal__backup(&store->core, path, &backup, &copied, error);
    if (caller.stopped != 0 && error != NULL) {
        error->sys_errno = caller.stopped;
    }
    if (status != WAL_OK) {
        return status;
    }
    done.segments = copied.segments;
    done.copied = copied.copied;
    done.removed = copied.removed;
    done.bytes = copied.bytes;
    done.shared_bytes = copied.shared;
    done.last_sequence = copied.last_sequence;
    wal__struct_store(WAL__STRUCT(wal_store_backup_result), result, &done);
    return WAL_OK;
}
