/*
 * put_unsynced.c - content without a sync (put_unsynced.h).
 */
#include "tests/lib/put_unsynced.h"

#include "engine/session/session.h"

enum wal_status put_unsynced(struct wal_store *store, struct wal__span content,
                             const struct wal__digest *base, enum wal__blob_owner owner,
                             struct wal__digest *digest, struct wal__blob_put_result *result,
                             struct wal_error *error)
{
    struct wal__core *core = &store->core;
    struct wal__content_guard guard = {NULL, 0};
    enum wal_status status = wal__content_guard_enter(&guard, &core->control, error);

    if (status == WAL_OK) {
        status = wal__blob_put(&core->blobs, content, base, owner, digest, result, error);
    }
    wal__content_guard_leave(&guard);
    return status;
}
