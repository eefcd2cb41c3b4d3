/*
 * api_claim.c - the public functions on claims of sessions
 * (agentwal/admin.h): arguments are checked here, everything else is below.
 */
#include "engine/base/error.h"
#include "engine/read/claim_list.h"
#include "engine/store/session.h"

enum wal_status wal_session_claim(struct wal_session *session,
                                  struct wal_error *error)
{
    enum wal_status status =
        wal__check_writable(session == NULL ? NULL : session->core, error);

    if (status != WAL_OK) {
        return status;
    }
    return wal__core_claim(session->core, &session->claim, session->number,
                           error);
}

enum wal_status wal_session_unclaim(struct wal_session *session,
                                    struct wal_error *error)
{
    enum wal_status status = wal__check_session(session, error);

    if (status == WAL_OK) {
        wal__core_release_claim(session->core, &session->claim);
    }
    return status;
}

/* --- the list ------------------------------------------------------------ */

enum wal_status wal_claim_cursor_open(struct wal_store *store,
                                      struct wal_claim_cursor **cursor,
                                      struct wal_error *error)
{
    enum wal_status status =
        wal__check_core(store == NULL ? NULL : &store->core, error);

    if (status == WAL_OK && cursor == NULL) {
        status = wal__invalid(error, "the place for the cursor is null");
    }
    return status == WAL_OK
               ? wal__claim_cursor_open(&store->core, cursor, error)
               : status;
}

enum wal_status wal_claim_cursor_next(struct wal_claim_cursor *cursor,
                                      struct wal_claim *claim,
                                      struct wal_error *error)
{
    struct wal_claim own = WAL_INIT(wal_claim);
    enum wal_status status;

    if (cursor == NULL) {
        return wal__invalid(error, "the handle is null");
    }
    status = wal__core_check_open(wal__claim_cursor_core(cursor), error);
    if (status == WAL_OK) {
        status = wal__struct_check_output(WAL__STRUCT(wal_claim), claim, error);
    }
    if (status == WAL_OK) {
        status = wal__claim_cursor_next(cursor, &own);
    }
    if (status == WAL_OK) {
        wal__struct_store(WAL__STRUCT(wal_claim), claim, &own);
    }
    return status;
}

void wal_claim_cursor_close(struct wal_claim_cursor *cursor)
{
    wal__claim_cursor_close(cursor);
}
