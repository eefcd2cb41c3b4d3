/*
 * api_async.c - the public functions for those who do not wait for each append
 * (agentwal.h): arguments are checked here, everything else is below.
 */
#include "engine/base/error.h"
#include "engine/store/session.h"

enum wal_status wal_flush(struct wal_store *store, struct wal_error *error)
{
    enum wal_status status =
        wal__check_writable(store == NULL ? NULL : &store->core, error);

    if (status != WAL_OK) {
        return status;
    }
    return wal__committer_flush(&store->core.committer, error);
}

enum wal_status wal_store_completion_fd(struct wal_store *store, uint32_t kind,
                                        int32_t *fd, struct wal_error *error)
{
    enum wal_status status =
        wal__check_core(store == NULL ? NULL : &store->core, error);

    if (status == WAL_OK && fd == NULL) {
        status = wal__invalid(error, "the place for the descriptor is null");
    }
    if (status == WAL_OK && kind > WAL_COMPLETION_SOCKET) {
        status = wal__invalid(error, "%u is no kind of descriptor", kind);
    }
    return status == WAL_OK ? wal__async_errors_completion_fd(
                                  &store->core.committer.async_errors,
                                  (enum wal_completion_kind)kind, fd, error)
                            : status;
}
