/*
 * transfer_present.c - what becomes of a session that `to` may have: it is new,
 * continued, left as it is, refused, or becomes a branch (transfer.h).
 */
#include "engine/transfer/transfer.h"

/* Marks all records but those of a new session as present. */
static void mark_documents(struct wal__transfer *transfer)
{
    struct wal__transfer_record *items =
        (void *)transfer->from_records.items.data;

    for (size_t i = 0; i < transfer->from_records.items.size / sizeof(*items);
         i++) {
        items[i].is_present |= items[i].type == WAL__FRAME_DOC ||
                               items[i].type == WAL__FRAME_DOC_DELETE;
    }
}

/* Both went on with the session. */
static void part(struct wal__transfer *transfer,
                 struct wal__transfer_session *session,
                 const struct wal__transfer_entries *found, const char *why)
{
    if (wal__transfer_keeps_both(transfer)) {
        wal__transfer_branch(transfer, session, found);
    } else {
        wal__transfer_refuse(transfer, session, WAL_EEXISTS, "%s", why);
    }
}

static void compare_present(struct wal__transfer *transfer,
                            struct wal__transfer_session *session,
                            enum wal__transfer_mark mark)
{
    struct wal__transfer_entries found;
    bool is_marked = mark != WAL__TRANSFER_UNMARKED;
    bool same = false;
    enum wal_status status =
        wal__transfer_compare_forks(transfer, session, &same);

    if (!wal__transfer_try(transfer, session, status)) {
        return;
    }
    if (!same) {
        wal__transfer_refuse(transfer, session, WAL_EEXISTS,
                             "the session has another fork point there");
        return;
    }
    status = wal__transfer_compare_entries(transfer, session, 0, &found);
    if (!wal__transfer_try(transfer, session, status)) {
        return;
    }
    if (found.has_other) {
        part(transfer, session, &found, "the session has other entries there");
        return;
    }
    if (found.has_more) {
        session->state = WAL__TRANSFER_AHEAD;
        mark_documents(transfer);
        return;
    }
    session->state =
        is_marked ? WAL__TRANSFER_INCOMPLETE : WAL__TRANSFER_PRESENT;
    session->is_continued = found.missing > 0;
    status = wal__transfer_compare_versions(
        transfer, is_marked ? WAL__TRANSFER_REPEAT : WAL__TRANSFER_REFUSE,
        &transfer->error);
    if (status == WAL_EEXISTS && wal__transfer_keeps_both(transfer)) {
        wal__transfer_branch(transfer, session, &found);
    } else {
        (void)wal__transfer_try(transfer, session, status);
    }
}

void wal__transfer_compare(struct wal__transfer *transfer,
                           struct wal__transfer_session *session)
{
    enum wal__transfer_mark mark = WAL__TRANSFER_UNMARKED;
    enum wal_status status =
        wal__transfer_open(transfer, session->copy_id, &session->handle);

    if (status == WAL_ENOTFOUND) {
        session->state = WAL__TRANSFER_NEW;
        return;
    }
    if (status == WAL_OK) {
        status = wal__transfer_read_mark(transfer, session->handle, &mark);
    }
    if (status == WAL_OK) {
        status = wal__transfer_collect(transfer->to, session->handle->number,
                                       &transfer->to_records, &transfer->error);
    }
    transfer->from_id.sequence = 0;
    transfer->to_id.sequence = 0;
    session->is_temporary =
        !session->is_wanted && mark == WAL__TRANSFER_MARKED_SOURCE;
    if (wal__transfer_try(transfer, session, status)) {
        compare_present(transfer, session, mark);
    }
}
