/*
 * entries.c - the public functions that append and read (agentwal.h):
 * arguments are checked here, everything else is below.
 */
#include <string.h>

#include "engine/base/error.h"
#include "engine/check.h"
#include "engine/session/iter.h"
#include "engine/session/text.h"

/* --- appending ---------------------------------------------------------- */

static enum wal_status check_result(const struct wal_append_result *result,
                                    struct wal_error *error)
{
    return result == NULL ? WAL_OK
                          : wal__check_struct(result, result->struct_size,
                                              sizeof(*result), error);
}

/* Checks, encodes and submits; *op is the caller's reference. asked: the
 * caller will ask for the answer. */
static enum wal_status submit(struct wal_session *session,
                              const struct wal_entry *entries, uint32_t count,
                              const struct wal_append_options *options,
                              bool asked, struct wal__op **op,
                              struct wal_error *error)
{
    bool no_wait =
        options != NULL && (options->flags & WAL_APPEND_NO_WAIT) != 0;
    enum wal_status status =
        wal__check_writable(session == NULL ? NULL : session->core, error);

    if (status == WAL_OK) {
        status =
            wal__append_create(session, entries, count, options, op, error);
    }
    if (status == WAL_OK) {
        (*op)->apart = asked;
        (*op)->unheard = !asked && (*op)->durability == WAL_QUEUED;
        status = wal__committer_submit(&session->core->committer, *op, no_wait,
                                       error);
        if (status != WAL_OK) {
            wal__op_release(*op);
        }
    }
    return status;
}

static enum wal_status answer(const struct wal__op *op,
                              struct wal_append_result *result,
                              struct wal_error *error)
{
    if (result != NULL) {
        *result = op->result;
    }
    if (op->status != WAL_OK) {
        wal__error_copy(error, &op->error);
    }
    return op->status;
}

static enum wal_status append(struct wal_session *session,
                              const struct wal_entry *entries, uint32_t count,
                              const struct wal_append_options *options,
                              struct wal_append_result *result,
                              struct wal_error *error)
{
    struct wal__op *op = NULL;
    enum wal_status status =
        submit(session, entries, count, options, false, &op, error);

    if (status != WAL_OK) {
        return status;
    }
    if (op->durability == WAL_QUEUED) {
        if (result != NULL) {
            *result =
                (struct wal_append_result){.struct_size = sizeof(*result)};
            memcpy(result->last_id, op->result.last_id,
                   sizeof(result->last_id));
        }
    } else {
        (void)!wal__committer_wait(&session->core->committer, op, -1);
        status = answer(op, result, error);
    }
    wal__op_release(op);
    return status;
}

enum wal_status wal_append(struct wal_session *session,
                           const struct wal_entry *entries, uint32_t count,
                           const struct wal_append_options *options,
                           struct wal_append_result *result,
                           struct wal_error *error)
{
    enum wal_status status = check_result(result, error);

    if (status == WAL_OK) {
        status = wal__check_session(session, error);
    }
    while (status == WAL_OK) {
        status = append(session, entries, count, options, result, error);
        if (!wal__core_distrust(session->core, status)) {
            break;
        }
        status = WAL_OK;
    }
    return status;
}

enum wal_status wal_submit(struct wal_session *session,
                           const struct wal_entry *entries, uint32_t count,
                           const struct wal_append_options *options,
                           struct wal_ticket **ticket, struct wal_error *error)
{
    struct wal_ticket *created;
    struct wal__op *op = NULL;
    enum wal_status status = wal__check_session(session, error);

    if (status != WAL_OK) {
        return status;
    }
    if (ticket == NULL) {
        return wal__fail(error, WAL_EINVAL, 0, NULL, 0,
                         "the place for the ticket is null");
    }
    created = wal__heap_zalloc(session->core->env.heap, sizeof(*created));
    if (created == NULL) {
        return wal__fail(error, WAL_ENOMEM, 0, NULL, 0, "no memory");
    }
    status = submit(session, entries, count, options, true, &op, error);
    if (status != WAL_OK) {
        wal__heap_free(session->core->env.heap, created);
        return status;
    }
    created->core = session->core;
    created->op = op;
    *ticket = created;
    return WAL_OK;
}

enum wal_status wal_ticket_wait(struct wal_ticket *ticket, int64_t timeout_ms,
                                struct wal_append_result *result,
                                struct wal_error *error)
{
    enum wal_status status =
        wal__check_core(ticket == NULL ? NULL : ticket->core, error);

    if (status == WAL_OK) {
        status = check_result(result, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    status =
        wal__committer_wait(&ticket->core->committer, ticket->op, timeout_ms);
    if (atomic_load(&ticket->op->state) != WAL__OP_DONE) {
        return wal__fail(error, WAL_EBUSY, 0, NULL, 0, "the append is pending");
    }
    return answer(ticket->op, result, error);
}

void wal_ticket_destroy(struct wal_ticket *ticket)
{
    if (ticket == NULL) {
        return;
    }
    wal__op_release(ticket->op);
    wal__heap_free(ticket->core->env.heap, ticket);
}

/* --- reading ------------------------------------------------------------ */

enum wal_status wal_iter_open(struct wal_session *session,
                              const struct wal_iter_options *options,
                              struct wal_iter **iter, struct wal_error *error)
{
    enum wal_status status = wal__check_session(session, error);

    if (status == WAL_OK && iter == NULL) {
        status = wal__fail(error, WAL_EINVAL, 0, NULL, 0,
                           "the place for the iterator is null");
    }
    while (status == WAL_OK) {
        status = wal__iter_open(session, options, iter, error);
        if (!wal__core_distrust(session->core, status)) {
            break;
        }
        status = WAL_OK;
    }
    return status;
}

uint64_t wal_iter_remaining(const struct wal_iter *iter)
{
    return iter == NULL ? 0 : iter->remaining;
}

/* Reading needs neither locks nor threads, so that a child may go on with it;
 * and asking for the process id would cost as much as the entry. */
static enum wal_status check_read(const struct wal_iter *iter,
                                  const struct wal_entry *entry,
                                  struct wal_error *error)
{
    if (iter == NULL) {
        return wal__fail(error, WAL_EINVAL, 0, NULL, 0, "the handle is null");
    }
    return wal__check_struct(entry, entry == NULL ? 0 : entry->struct_size,
                             sizeof(*entry), error);
}

enum wal_status wal_iter_next(struct wal_iter *iter, struct wal_entry *entry,
                              struct wal_error *error)
{
    enum wal_status status = check_read(iter, entry, error);

    return status == WAL_OK ? wal__iter_next(iter, entry, error) : status;
}

enum wal_status wal_iter_get(struct wal_iter *iter, struct wal_slice id,
                             struct wal_entry *entry, struct wal_error *error)
{
    struct wal__span span;
    enum wal_status status = check_read(iter, entry, error);

    if (status == WAL_OK) {
        status = wal__text_check(id, WAL__ID_MAX, "entry's id", &span, error);
    }
    return status == WAL_OK ? wal__iter_get(iter, span, entry, error) : status;
}

void wal_iter_close(struct wal_iter *iter)
{
    wal__iter_close(iter);
}
