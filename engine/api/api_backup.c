/*
 * api_backup.c - the public function on backups (agentwal/admin.h): arguments
 * are checked here, everything else is below.
 */
#include "agentwal/admin.h"

#include "engine/api/api_check.h"
#include "engine/api/api_store.h"
#include "engine/backup/backup.h"
#include "engine/base/error.h"

enum wal_status wal_store_backup(struct wal_store *store, const char *path,
                                 struct wal_backup_result *result,
                                 struct wal_error *error)
{
    struct wal_backup_result done = {.struct_size = sizeof(done)};
    struct wal__backup_result backup;
    enum wal_status status =
        wal__check_writable(store == NULL ? NULL : &store->core, error);

    if (status == WAL_OK && path == NULL) {
        status = wal__invalid(error, "the path of the copy is null");
    }
    if (status == WAL_OK) {
        status = wal__struct_check_optional(WAL__STRUCT(wal_backup_result),
                                            result, error);
    }
    if (status == WAL_OK &&
        (store->core.noop || store->core.env.io->in_memory)) {
        status = wal__invalid(error, "the store is in memory");
    }
    if (status != WAL_OK) {
        return status;
    }
    status = wal__backup(&store->core, path, &backup, error);
    done.segments = backup.segments;
    done.copied = backup.copied;
    done.bytes = backup.bytes;
    done.last_sequence = backup.last_sequence;
    wal__struct_store(WAL__STRUCT(wal_backup_result), result, &done);
    return status;
}
