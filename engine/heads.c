/*
 * heads.c - the public functions that read named heads (agentwal.h):
 * arguments are checked here, everything else is below.
 */
#include "engine/session/heads.h"
#include "engine/base/error.h"
#include "engine/check.h"
#include "engine/noop.h"
#include "engine/session/text.h"

enum wal_status wal_head_get(struct wal_session *session, uint32_t stream,
                             struct wal_slice name, char entry_id[256],
                             struct wal_error *error)
{
    struct wal__span span;
    enum wal_status status = wal__check_session(session, error);

    if (status == WAL_OK && (entry_id == NULL || stream > 255)) {
        status =
            wal__fail(error, WAL_EINVAL, 0, NULL, 0,
                      entry_id == NULL ? "the place for the entry id is null"
                                       : "a stream has a number up to 255");
    }
    if (status == WAL_OK) {
        status =
            wal__text_check(name, WAL__ID_MAX, "head's name", &span, error);
    }
    if (status == WAL_OK && session->core->noop) {
        return wal__noop_not_found(error);
    }
    while (status == WAL_OK) {
        status = wal__head_get(session, stream, span, entry_id, error);
        if (!wal__core_distrust(session->core, status)) {
            break;
        }
        status = WAL_OK;
    }
    return status;
}

enum wal_status wal_heads_open(struct wal_session *session,
                               struct wal_heads **heads,
                               struct wal_error *error)
{
    enum wal_status status = wal__check_session(session, error);

    if (status == WAL_OK && heads == NULL) {
        status = wal__fail(error, WAL_EINVAL, 0, NULL, 0,
                           "the place for the list is null");
    }
    while (status == WAL_OK) {
        status = wal__heads_open(session, heads, error);
        if (!wal__core_distrust(session->core, status)) {
            break;
        }
        status = WAL_OK;
    }
    return status;
}

enum wal_status wal_heads_next(struct wal_heads *heads, struct wal_head *head,
                               struct wal_error *error)
{
    enum wal_status status;

    if (heads == NULL) {
        return wal__fail(error, WAL_EINVAL, 0, NULL, 0, "the handle is null");
    }
    status = wal__check_struct(head, head == NULL ? 0 : head->struct_size,
                               sizeof(*head), error);
    return status == WAL_OK ? wal__heads_next(heads, head) : status;
}

void wal_heads_close(struct wal_heads *heads)
{
    wal__heads_close(heads);
}
