/*
 * transfer_branch.c - a session that both stores went on with becomes a branch
 * in the other one: a fork of the session there, the trunk, at the last entry
 * of the conversation that both have (agentwal/transfer.h,
 * WAL_TRANSFER_KEEP_BOTH). A fork sees what is before that entry in all
 * streams; what other streams have after it is copied.
 *
 * The branch of the session ID is "ID@NAME", or "ID@NAME-2" and so on where
 * that id is taken by another session, also one of `from`, or by a branch that
 * was itself continued in `to` while `from` went on.
 *
 * Invariant: a session of `to` is continued as a branch only if it is a fork
 * of the trunk at that entry, and its entries are a beginning of those here.
 */
#include <string.h>

#include "engine/base/error.h"
#include "engine/transfer/transfer.h"

/* --- an earlier branch ---------------------------------------------------- */

/* Reads the summary of a session of `to`; without its texts. */
static enum wal_status read_numbers(struct wal__transfer *transfer,
                                    uint32_t number,
                                    struct wal__summary *summary)
{
    struct wal__core *core = transfer->to;
    enum wal_status status = wal__core_read_lock(core, &transfer->error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__catalogue_get(&core->catalogue, number, summary);
    wal__core_unlock(core);
    return status == WAL_OK ? WAL_OK
                            : wal__fail(&transfer->error, status,
                                        "the catalogue cannot be read: %s",
                                        wal_status_text(status));
}

/* What a branch of the trunk is. */
struct place {
    uint32_t trunk;
    uint64_t fork_sequence; /* 0: a session by itself */
};

/* Finds the entry where a branch leaves the trunk, and its id. */
static enum wal_status find_place(struct wal__transfer *transfer,
                                  struct wal__transfer_session *session,
                                  const struct wal__transfer_entries *found,
                                  struct place *place)
{
    struct wal__fork_record fork = {0};
    struct wal__summary trunk;
    enum wal_status status =
        read_numbers(transfer, session->trunk->number, &trunk);

    if (status != WAL_OK) {
        return status;
    }
    place->trunk = session->trunk->number;
    place->fork_sequence = found->last != 0 ? found->last : trunk.fork_sequence;
    session->branch_point[0] = '\0';
    if (place->fork_sequence == 0) {
        return WAL_OK;
    }
    if (found->last != 0) {
        struct wal__entry_record record;
        struct wal__frame frame;

        status = wal__transfer_read_entry(transfer->to, found->last_position,
                                          &transfer->to_scratch, &frame,
                                          &record, &transfer->error);
        if (status == WAL_OK) {
            wal__transfer_copy_id(session->branch_point, record.id);
        }
        return status;
    }
    status =
        wal__transfer_read_fork(transfer->from, session->fork_position,
                                &transfer->scratch, &fork, &transfer->error);
    if (status == WAL_OK) {
        wal__transfer_copy_id(session->branch_point, fork.entry_id);
    }
    return status;
}

/* Compares the session of `to` with the records after the common ones. Sets its
 * state; WAL_EEXISTS: it is not the branch, or went on otherwise. */
static enum wal_status try_branch(struct wal__transfer *transfer,
                                  struct wal__transfer_session *session,
                                  const struct place *place, size_t first)
{
    enum wal__transfer_mark mark = WAL__TRANSFER_UNMARKED;
    struct wal__transfer_entries found;
    struct wal__summary summary;
    enum wal_status status =
        read_numbers(transfer, session->handle->number, &summary);

    if (status == WAL_OK) {
        status = wal__transfer_read_mark(transfer, session->handle, &mark);
    }
    if (status == WAL_OK) {
        status = wal__transfer_collect(transfer->to, session->handle->number,
                                       &transfer->to_records, &transfer->error);
    }
    if (status != WAL_OK) {
        return status;
    }
    if (summary.fork_sequence != place->fork_sequence ||
        (place->fork_sequence != 0 && summary.fork_source != place->trunk)) {
        return WAL_EEXISTS;
    }
    transfer->from_id.sequence = 0;
    transfer->to_id.sequence = 0;
    status = wal__transfer_compare_entries(transfer, session, first, &found);
    if (status == WAL_OK &&
        (found.has_other || (place->fork_sequence == 0 && found.common == 0 &&
                             mark == WAL__TRANSFER_UNMARKED))) {
        status = WAL_EEXISTS;
    }
    if (status == WAL_OK) {
        status = wal__transfer_compare_branch_versions(
            transfer, session,
            place->fork_sequence == 0 ? 0 : summary.fork_record,
            mark != WAL__TRANSFER_UNMARKED);
    }
    if (status != WAL_OK) {
        return status;
    }
    session->state = mark != WAL__TRANSFER_UNMARKED ? WAL__TRANSFER_INCOMPLETE
                     : found.has_more               ? WAL__TRANSFER_AHEAD
                                                    : WAL__TRANSFER_PRESENT;
    session->is_continued = found.missing > 0;
    session->is_temporary =
        !session->is_wanted && mark == WAL__TRANSFER_MARKED_SOURCE;
    return WAL_OK;
}

/* --- the branch ----------------------------------------------------------- */

/* Marks what the trunk has of the session as present, and the rest as not. */
static void mark_common(struct wal__transfer *transfer, size_t first)
{
    struct wal__transfer_record *items =
        (void *)transfer->from_records.items.data;

    for (size_t i = 0; i < transfer->from_records.items.size / sizeof(*items);
         i++) {
        items[i].is_present = items[i].type == WAL__FRAME_ENTRY && i < first;
    }
}

/* Keeps the records of the trunk while those of branches are compared. */
static void keep_trunk_records(struct wal__transfer *transfer)
{
    struct wal__transfer_records kept = transfer->trunk_records;

    transfer->trunk_records = transfer->to_records;
    transfer->to_records = kept;
}

/* Plans a branch whose id is free. */
static enum wal_status plan_new(struct wal__transfer *transfer,
                                struct wal__transfer_session *session,
                                const struct place *place)
{
    transfer->to_records.items.size = 0;
    transfer->to_records.hidden.size = 0;
    session->state = WAL__TRANSFER_NEW;
    return wal__transfer_compare_branch_versions(
        transfer, session, place->fork_sequence == 0 ? 0 : UINT64_MAX, false);
}

/* Whether a session of `from` has the id; it may be taken along. */
static enum wal_status is_taken(struct wal__transfer *transfer, const char *id,
                                bool *taken)
{
    const struct wal_slice slice = {id, strlen(id)};
    struct wal_session *session = NULL;
    enum wal_status status = wal_session_open(transfer->from_store, slice,
                                              &session, &transfer->error);

    *taken = status == WAL_OK || status == WAL_ETRASHED;
    wal_session_close(session);
    return *taken || status == WAL_ENOTFOUND ? WAL_OK : status;
}

static enum wal_status find_branch(struct wal__transfer *transfer,
                                   struct wal__transfer_session *session,
                                   const struct place *place, size_t first)
{
    const struct wal__span id = {(const uint8_t *)session->id,
                                 strlen(session->id)};
    const size_t restores = transfer->restores.size;

    for (uint32_t i = 1; i <= WAL__TRANSFER_BRANCHES; i++) {
        enum wal_status status;

        wal_session_close(session->handle);
        session->handle = NULL;
        transfer->restores.size = restores;
        mark_common(transfer, first);
        wal__transfer_branch_id(transfer, id, i, session->copy_id);
        status =
            wal__transfer_open(transfer, session->copy_id, &session->handle);
        if (status == WAL_ENOTFOUND) {
            bool taken = false;

            status = is_taken(transfer, session->copy_id, &taken);
            if (status != WAL_OK || !taken) {
                return status == WAL_OK ? plan_new(transfer, session, place)
                                        : status;
            }
            status = WAL_EEXISTS;
        } else if (status == WAL_OK) {
            status = try_branch(transfer, session, place, first);
        }
        if (status != WAL_EEXISTS && status != WAL_ETRASHED) {
            return status;
        }
    }
    return wal__fail(&transfer->error, WAL_EEXISTS,
                     "the session has %d branches of this name there",
                     (int)WAL__TRANSFER_BRANCHES);
}

void wal__transfer_branch(struct wal__transfer *transfer,
                          struct wal__transfer_session *session,
                          const struct wal__transfer_entries *found)
{
    struct place place = {.trunk = 0};
    enum wal_status status;

    session->trunk = session->handle;
    session->handle = NULL;
    session->is_continued = false;
    session->is_temporary = false;
    keep_trunk_records(transfer);
    status = find_place(transfer, session, found, &place);
    if (status == WAL_OK) {
        status = find_branch(transfer, session, &place, found->next);
    }
    (void)wal__transfer_try(transfer, session, status);
}
