/*
 * transfer.c - takes sessions of one store into another (agentwal/transfer.h):
 * the plan, then the records in the order of the log, then what only the end
 * shows; and reports.
 */
#include "engine/transfer/transfer.h"

#include <string.h>

#include "engine/api/api_check.h"
#include "engine/base/error.h"
#include "engine/base/struct_size.h"
#include "engine/store/input_text.h"

enum {
    ATTEMPTS_MAX = 8,  /* while `from` is being compacted */
    NAME_MAX_SIZE = 64 /* bytes of the name of a branch */
};

/* --- reports -------------------------------------------------------------- */

/* What became of a session. */
static uint32_t kind_of(const struct wal__transfer_session *session)
{
    switch (session->state) {
    case WAL__TRANSFER_NEW:
    case WAL__TRANSFER_INCOMPLETE:
        return session->trunk != NULL ? WAL_TRANSFER_BRANCHED
                                      : WAL_TRANSFER_CREATED;
    case WAL__TRANSFER_REFUSED:
        return WAL_TRANSFER_REFUSED;
    default:
        return session->entries + session->documents > 0
                   ? WAL_TRANSFER_CONTINUED
                   : WAL_TRANSFER_UNCHANGED;
    }
}

static void report_session(struct wal__transfer *transfer,
                           const struct wal__transfer_session *session)
{
    const struct wal_transfer_options *options = transfer->options;
    struct wal_transfer_result *result = &transfer->result;
    uint64_t *const counts[] = {
        [WAL_TRANSFER_CREATED] = &result->created,
        [WAL_TRANSFER_CONTINUED] = &result->continued,
        [WAL_TRANSFER_UNCHANGED] = &result->unchanged,
        [WAL_TRANSFER_REFUSED] = &result->refused,
        [WAL_TRANSFER_BRANCHED] = &result->branched,
    };
    struct wal_transfer_report report = {
        .struct_size = sizeof(report),
        .kind = kind_of(session),
        .status = session->why == NULL ? WAL_OK : session->why->status,
        .session_id = {session->id, strlen(session->id)},
        .entries = session->entries,
        .documents = session->documents,
        .error = session->why,
    };

    if (session->trunk != NULL && report.kind != WAL_TRANSFER_REFUSED) {
        report.branch_id =
            (struct wal_slice){session->copy_id, strlen(session->copy_id)};
    }
    if (!session->is_wanted && report.kind != WAL_TRANSFER_REFUSED) {
        return;
    }
    ++*counts[report.kind];
    if (options->report != NULL) {
        wal__transfer_check_answer(
            transfer, options->report(options->ctx, &report), "report");
    }
}

/* --- the copy ------------------------------------------------------------- */

static void report_progress(struct wal__transfer *transfer, size_t done,
                            size_t total)
{
    const struct wal_transfer_options *options = transfer->options;

    if (options->progress != NULL) {
        wal__transfer_check_answer(
            transfer, options->progress(options->ctx, done, total), "progress");
    }
}

static void repeat(struct wal__transfer *transfer,
                   const struct wal__transfer_event *event)
{
    struct wal__transfer_session *session = transfer->sessions[event->rank];

    if (!wal__transfer_goes_on(transfer, session)) {
        return;
    }
    switch (event->type) {
    case WAL__FRAME_ENTRY:
        wal__transfer_entry(transfer, session, event->position);
        break;
    case WAL__FRAME_DOC:
    case WAL__FRAME_DOC_DELETE:
        wal__transfer_document(transfer, session, event->position);
        break;
    default:
        wal__transfer_create(transfer, session);
        break;
    }
    session->left--;
    if (session->left > 0 || !wal__transfer_goes_on(transfer, session)) {
        return;
    }
    if (transfer->redactions.size == 0) {
        wal__transfer_complete(transfer, session);
    } else if (wal__buf_append(&transfer->waiting, &session->rank,
                               sizeof(session->rank)) != WAL_OK) {
        wal__transfer_fail(transfer, wal__no_memory(&transfer->error));
    }
}

static void repeat_all(struct wal__transfer *transfer)
{
    const struct wal__transfer_event *events =
        (const void *)transfer->events.data;
    size_t count = transfer->events.size / sizeof(*events);

    for (uint32_t i = 0; i < transfer->session_count; i++) {
        struct wal__transfer_session *session = transfer->sessions[i];

        /* One that an earlier transfer left incomplete. */
        if (session->trunk != NULL && session->handle != NULL &&
            wal__transfer_goes_on(transfer, session)) {
            wal__transfer_restore_branch(transfer, session);
        }
    }
    for (size_t i = 0; i < count && transfer->failed == WAL_OK; i++) {
        repeat(transfer, &events[i]);
        report_progress(transfer, i + 1, count);
    }
    wal__transfer_flush(transfer);
}

static void complete(struct wal__transfer *transfer, uint32_t rank)
{
    struct wal__transfer_session *session = transfer->sessions[rank];

    if (wal__transfer_goes_on(transfer, session) && !session->is_complete) {
        wal__transfer_complete(transfer, session);
    }
}

/* Hides what is hidden, completes the sessions that are not complete yet, in
 * the order of their last records, and deletes what only forks needed. */
static void finish(struct wal__transfer *transfer)
{
    for (uint32_t i = 0; i < transfer->session_count; i++) {
        wal__transfer_redact(transfer, transfer->sessions[i]);
    }
    for (size_t at = 0; at < transfer->waiting.size; at += sizeof(uint32_t)) {
        uint32_t rank;

        memcpy(&rank, transfer->waiting.data + at, sizeof(rank));
        complete(transfer, rank);
    }
    for (uint32_t i = 0; i < transfer->session_count; i++) {
        complete(transfer, i);
    }
    for (uint32_t i = 0; i < transfer->session_count; i++) {
        if (transfer->sessions[i]->is_temporary) {
            wal__transfer_remove(transfer, transfer->sessions[i]);
        }
    }
}

static void run(struct wal__transfer *transfer, bool with_documents)
{
    enum wal_status status;

    wal__transfer_plan(transfer);
    if (transfer->failed == WAL_OK) {
        repeat_all(transfer);
    }
    if (transfer->failed == WAL_OK) {
        finish(transfer);
    }
    if (transfer->failed == WAL_OK && with_documents) {
        wal__transfer_store_documents(transfer);
    }
    if (transfer->failed == WAL_OK) {
        status = wal_sync(transfer->to_store, &transfer->error);
        if (status != WAL_OK) {
            wal__transfer_fail(transfer, status);
        }
    }
    for (uint32_t i = 0;
         i < transfer->session_count && transfer->failed == WAL_OK; i++) {
        report_session(transfer, transfer->sessions[i]);
    }
}

/* --- the call ------------------------------------------------------------- */

/* *transfer is zero but for its stores and options. */
static void init(struct wal__transfer *transfer)
{
    const struct wal__heap *heap = transfer->heap;

    transfer->why.struct_size = sizeof(transfer->why);
    transfer->error.struct_size = sizeof(transfer->error);
    wal__spill_init(&transfer->spill, heap, transfer->to->env.root);
    transfer->large_heap =
        transfer->to->env.io == &wal__io_posix ? &transfer->spill.heap : heap;
    wal__hashmap_init(&transfer->session_map, heap);
    wal__buf_init(&transfer->events, heap);
    wal__buf_init(&transfer->redactions, heap);
    wal__buf_init(&transfer->waiting, heap);
    wal__buf_init(&transfer->from_records.items, heap);
    wal__buf_init(&transfer->from_records.hidden, heap);
    wal__buf_init(&transfer->to_records.items, heap);
    wal__buf_init(&transfer->to_records.hidden, heap);
    wal__buf_init(&transfer->trunk_records.items, heap);
    wal__buf_init(&transfer->trunk_records.hidden, heap);
    wal__buf_init(&transfer->restores, heap);
    wal__sha256_alg_init(&transfer->sha256);
    wal__record_buf_init(&transfer->scratch, heap);
    wal__record_buf_init(&transfer->to_scratch, heap);
    wal__buf_init(&transfer->batch.bytes, heap);
    wal__buf_init(&transfer->batch.parent_ids, heap);
    wal__buf_init(&transfer->batch.remains, heap);
}

static void deinit(struct wal__transfer *transfer)
{
    for (uint32_t i = 0; i < transfer->batch.count; i++) {
        wal__heap_free(transfer->large_heap, transfer->batch.payloads[i]);
    }
    wal__transfer_close_sessions(transfer);
    wal__hashmap_deinit(&transfer->session_map);
    wal__buf_deinit(&transfer->events);
    wal__buf_deinit(&transfer->redactions);
    wal__buf_deinit(&transfer->waiting);
    wal__buf_deinit(&transfer->from_records.items);
    wal__buf_deinit(&transfer->from_records.hidden);
    wal__buf_deinit(&transfer->to_records.items);
    wal__buf_deinit(&transfer->to_records.hidden);
    wal__buf_deinit(&transfer->trunk_records.items);
    wal__buf_deinit(&transfer->trunk_records.hidden);
    wal__buf_deinit(&transfer->restores);
    wal__sha256_alg_deinit(&transfer->sha256);
    wal__record_buf_deinit(&transfer->scratch);
    wal__record_buf_deinit(&transfer->to_scratch);
    wal__buf_deinit(&transfer->batch.bytes);
    wal__buf_deinit(&transfer->batch.parent_ids);
    wal__buf_deinit(&transfer->batch.remains);
    wal__spill_deinit(&transfer->spill);
}

enum wal_status wal__transfer_run(struct wal_store *from, struct wal_store *to,
                                  const struct wal_transfer_options *options,
                                  bool with_documents,
                                  struct wal_transfer_result *result,
                                  struct wal_error *error)
{
    const struct wal__heap *heap = to->core.env.heap;
    struct wal__content_guard guard = {NULL, 0};
    enum wal_status status = WAL_OK;
    struct wal__transfer *transfer;
    bool again = true;

    if (!from->core.env.read_only) {
        status = wal__committer_flush(&from->core.committer, error);
    }
    if (status == WAL_OK) {
        status = wal__content_guard_enter(&guard, &to->core.control, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    transfer = wal__heap_alloc(heap, sizeof(*transfer));
    if (transfer == NULL) {
        wal__content_guard_leave(&guard);
        return wal__no_memory(error);
    }
    for (int i = 0; i < ATTEMPTS_MAX && again; i++) {
        memset(transfer, 0, sizeof(*transfer));
        transfer->from = &from->core;
        transfer->to = &to->core;
        transfer->from_store = from;
        transfer->to_store = to;
        transfer->options = options;
        transfer->heap = heap;
        transfer->result = *result;
        init(transfer);
        (void)wal__core_look_again(transfer->from, &transfer->looked);
        run(transfer, with_documents);
        *result = transfer->result;
        status = transfer->failed;
        again = transfer->was_replaced;
        if (status != WAL_OK) {
            wal__error_copy(error, &transfer->why);
        }
        deinit(transfer);
    }
    wal__content_guard_leave(&guard);
    wal__heap_free(heap, transfer);
    return status;
}

/* Whether both are the same directory; copies of a store have the same uuid. */
static bool is_same_place(const struct wal__env *a, const struct wal__env *b)
{
    struct wal__io_stat x;
    struct wal__io_stat y;
    int err = 0;

    return a->io == b->io &&
           a->io->path_stat(a->io->ctx, a->root, &x, &err) == WAL_OK &&
           b->io->path_stat(b->io->ctx, b->root, &y, &err) == WAL_OK &&
           x.device == y.device && x.inode == y.inode;
}

enum wal_status wal__transfer_load(struct wal_transfer_options *own,
                                   const struct wal_transfer_options *options,
                                   const struct wal_transfer_result *result,
                                   struct wal_error *error)
{
    enum wal_status status = wal__struct_load(WAL__STRUCT(wal_transfer_options),
                                              own, options, error);
    struct wal__span name;

    if (status == WAL_OK) {
        status = wal__text_check(own->branch_name, NAME_MAX_SIZE,
                                 "branch's name", &name, error);
    }
    if (status == WAL_OK) {
        status = wal__struct_check_optional(WAL__STRUCT(wal_transfer_result),
                                            result, error);
    }
    return status == WAL_OK &&
                   ((own->flags & ~(uint32_t)WAL_TRANSFER_KEEP_BOTH) != 0 ||
                    (own->sessions == NULL && own->session_count > 0))
               ? wal__invalid(error, "the options of the transfer are not "
                                     "valid")
               : status;
}

enum wal_status wal_store_merge(struct wal_store *from, struct wal_store *to,
                                const struct wal_transfer_options *options,
                                struct wal_transfer_result *result,
                                struct wal_error *error)
{
    struct wal_transfer_result done = WAL_INIT(wal_transfer_result);
    struct wal_transfer_options own;
    enum wal_status status =
        wal__check_core(from == NULL ? NULL : &from->core, error);

    if (status == WAL_OK) {
        status = wal__check_writable(to == NULL ? NULL : &to->core, error);
    }
    if (status == WAL_OK) {
        status = wal__transfer_load(&own, options, result, error);
    }
    if (status == WAL_OK &&
        (from == to || is_same_place(&from->core.env, &to->core.env))) {
        status = wal__invalid(error, "a store cannot be merged with itself");
    }
    if (status != WAL_OK || from->core.noop || to->core.noop) {
        return status;
    }
    status =
        wal__transfer_run(from, to, &own, own.sessions == NULL, &done, error);
    wal__struct_store(WAL__STRUCT(wal_transfer_result), result, &done);
    return status;
}
