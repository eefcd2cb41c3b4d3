/*
 * move.c - the public functions of libagentwal-remote on sessions that move
 * (agentwal/remote.h): arguments are checked here, everything else is below.
 */
#include "agentwal/remote.h"

#include <string.h>

#include "engine/base/error.h"
#include "engine/base/struct_size.h"
#include "remote/move/move.h"

static enum wal_status check(const struct wal_remote *remote,
                             const struct wal_store *store,
                             struct wal_slice session, struct wal_error *error)
{
    if (remote == NULL || store == NULL) {
        return wal__invalid(error, remote == NULL ? "the remote is null"
                                                  : "the store is null");
    }
    return session.size == 0 || session.size >= WAL_ID_SIZE ||
                   memchr(session.data, 0, (size_t)session.size) != NULL
               ? wal__invalid(error, "the id of the session is not valid")
               : WAL_OK;
}

enum wal_status
wal_remote_resume(struct wal_remote *remote, struct wal_store *store,
                  const struct wal_remote_resume_options *options,
                  struct wal_remote_resume_result *result,
                  struct wal_error *error)
{
    struct wal_remote_resume_result found = WAL_INIT(wal_remote_resume_result);
    struct wal_remote_resume_options own;
    enum wal_status status;

    if (options == NULL) {
        return wal__invalid(error, "the options are null");
    }
    status = wal__struct_load(WAL__STRUCT(wal_remote_resume_options), &own,
                              options, error);
    if (status == WAL_OK) {
        status = wal__struct_check_optional(
            WAL__STRUCT(wal_remote_resume_result), result, error);
    }
    if (status == WAL_OK &&
        (own.flags & ~(uint32_t)WAL_REMOTE_RESUME_TAKE_OVER) != 0) {
        status = wal__invalid(error, "the flags of the resume are not valid");
    }
    if (status == WAL_OK) {
        status = check(remote, store, own.session, error);
    }
    if (status == WAL_OK) {
        status = wal__resume(remote, store, &own, &found, error);
    }
    if (status == WAL_OK) {
        wal__struct_store(WAL__STRUCT(wal_remote_resume_result), result,
                          &found);
    }
    return status;
}

enum wal_status wal_remote_handoff(struct wal_remote *remote,
                                   struct wal_store *store,
                                   struct wal_slice session,
                                   struct wal_error *error)
{
    enum wal_status status = check(remote, store, session, error);

    return status == WAL_OK ? wal__handoff(remote, store, session, error)
                            : status;
}

enum wal_status wal_remote_take_back(struct wal_remote *remote,
                                     struct wal_store *store,
                                     struct wal_slice session,
                                     struct wal_error *error)
{
    enum wal_status status = check(remote, store, session, error);

    return status == WAL_OK ? wal__take_back(remote, store, session, error)
                            : status;
}

enum wal_status wal_remote_put_sessions(struct wal_remote *remote,
                                        struct wal_store *store,
                                        struct wal_error *error)
{
    return remote == NULL || store == NULL
               ? wal__invalid(error, remote == NULL ? "the remote is null"
                                                    : "the store is null")
               : wal__sessions_put(remote, store, error);
}

enum wal_status wal_remote_list_sessions(struct wal_remote *remote,
                                         const uint8_t *uuid,
                                         wal_remote_session_fn *each, void *ctx,
                                         struct wal_error *error)
{
    return remote == NULL || each == NULL
               ? wal__invalid(error, remote == NULL ? "the remote is null"
                                                    : "the callback is null")
               : wal__sessions_list(remote, uuid, each, ctx, error);
}

struct wal_remote_moves {
    struct wal_remote *remote;
    struct wal_store *store;
    struct wal__moves moves;
};

enum wal_status wal_remote_moves_open(struct wal_remote *remote,
                                      struct wal_store *store,
                                      struct wal_remote_moves **moves,
                                      struct wal_error *error)
{
    struct wal_remote_moves *opened;

    if (remote == NULL || store == NULL || moves == NULL) {
        return wal__invalid(error, "the remote, the store or the place for the "
                                   "handle is null");
    }
    opened = wal__heap_zalloc(&wal__heap_libc, sizeof(*opened));
    if (opened == NULL) {
        return wal__no_memory(error);
    }
    opened->remote = remote;
    opened->store = store;
    *moves = opened;
    return WAL_OK;
}

enum wal_status wal_remote_moves_check(struct wal_remote_moves *moves,
                                       wal_remote_moved_fn *moved, void *ctx,
                                       struct wal_error *error)
{
    return moves == NULL ? wal__invalid(error, "the handle is null")
                         : wal__moves_check(moves->remote, moves->store,
                                            &moves->moves, moved, ctx, error);
}

void wal_remote_moves_close(struct wal_remote_moves *moves)
{
    if (moves != NULL) {
        wal__moves_deinit(&moves->moves);
        wal__heap_free(&wal__heap_libc, moves);
    }
}
