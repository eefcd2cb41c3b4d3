/*
 * api_move.c - the public functions on sessions that move to other stores
 * (agentwal/admin.h): arguments are checked here, everything else is below.
 */
#include <string.h>

#include "engine/base/error.h"
#include "engine/session/session_move.h"
#include "engine/store/session.h"

/* Whether the host is terminated and printable, and the number one. */
static bool is_valid(const struct wal_session_move *move)
{
    const char *end = memchr(move->host, 0, sizeof(move->host));

    for (const char *at = move->host; end != NULL && at < end; at++) {
        if (*at < 0x20 || *at > 0x7e) {
            return false;
        }
    }
    return end != NULL && move->number > 0 && move->number <= INT64_MAX &&
           (move->flags & ~(uint32_t)WAL_SESSION_MOVE_AWAY) == 0;
}

enum wal_status wal_session_set_move(struct wal_session *session,
                                     const struct wal_session_move *move,
                                     struct wal_error *error)
{
    struct wal_session_move own;
    enum wal_status status =
        wal__check_writable(session == NULL ? NULL : session->core, error);

    if (status == WAL_OK && move == NULL) {
        status = wal__invalid(error, "the move is null");
    }
    if (status == WAL_OK) {
        status =
            wal__struct_load(WAL__STRUCT(wal_session_move), &own, move, error);
    }
    if (status == WAL_OK && !is_valid(&own)) {
        status = wal__invalid(error, "the move of the session is not valid");
    }
    if (status != WAL_OK) {
        return status;
    }
    return wal__session_set_move(session, &own, error);
}

enum wal_status wal_session_get_move(struct wal_session *session,
                                     struct wal_session_move *move,
                                     struct wal_error *error)
{
    struct wal_session_move own = WAL_INIT(wal_session_move);
    enum wal_status status = wal__check_session(session, error);

    if (status == WAL_OK) {
        status = wal__struct_check_output(WAL__STRUCT(wal_session_move), move,
                                          error);
    }
    if (status == WAL_OK) {
        status = wal__session_get_move(session, &own, error);
    }
    if (status == WAL_OK) {
        wal__struct_store(WAL__STRUCT(wal_session_move), move, &own);
    }
    return status;
}
