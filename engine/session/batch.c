/*
 * batch.c - the public functions that write a batch (agentwal.h): entries, documents, heads and
 * metadata, together or one of them alone. A batch is loaded, whose structs may be of another
 * version of the library; committed, and waited for.
 *
 * WAL_CLUSTER is an operation that is durable, and then waited for until the process that ships the
 * store has stored it. Threads: any.
 */
#include <string.h>

#include "engine/base/error.h"
#include "engine/base/heap.h"
#include "engine/base/struct_size.h"
#include "engine/session/doc_cursor.h"
#include "engine/session/session.h"
#include "engine/session/write_batch.h"
#include "engine/store/core.h"

/* A batch and its options with the structs that this library knows. */
struct batch_request {
    struct wal_batch batch;
    struct wal_append_options options;
    struct wal_session_change change;
    /* Copies of arrays whose structs have another size. */
    struct wal__buf entries;
    struct wal__buf documents;
    struct wal__buf heads;
};

static void batch_request_deinit(struct batch_request *request)
{
    wal__buf_deinit(&request->entries);
    wal__buf_deinit(&request->documents);
    wal__buf_deinit(&request->heads);
}

static enum wal_status load_arrays(struct batch_request *request, struct wal_error *error)
{
    struct wal_batch *batch = &request->batch;
    const void *loaded = NULL;
    enum wal_status status =
        wal__struct_load_array(WAL__STRUCT(wal_entry), batch->entries, batch->entry_count,
                               &request->entries, &loaded, error);

    if (status != WAL_OK) {
        return status;
    }
    batch->entries = loaded;
    status = wal__struct_load_array(WAL__STRUCT(wal_doc), batch->documents, batch->document_count,
                                    &request->documents, &loaded, error);
    if (status != WAL_OK) {
        return status;
    }
    batch->documents = loaded;
    status = wal__struct_load_array(WAL__STRUCT(wal_head), batch->heads, batch->head_count,
                                    &request->heads, &loaded, error);
    if (status == WAL_OK) {
        batch->heads = loaded;
    }
    return status;
}

/* Loads a batch and its options, which may be NULL. The slices still point to the caller's bytes.
 * WAL_EINVAL, WAL_ENOMEM; batch_request_deinit is valid after success and failure. */
static enum wal_status batch_request_init(struct batch_request *request,
                                          const struct wal__heap *heap,
                                          const struct wal_batch *batch,
                                          const struct wal_append_options *options,
                                          struct wal_error *error)
{
    enum wal_status status;

    wal__buf_init(&request->entries, heap);
    wal__buf_init(&request->documents, heap);
    wal__buf_init(&request->heads, heap);
    status = wal__struct_load(WAL__STRUCT(wal_batch), &request->batch, batch, error);
    if (status == WAL_OK) {
        status =
            wal__struct_load(WAL__STRUCT(wal_append_options), &request->options, options, error);
    }
    if (status == WAL_OK && request->batch.change != NULL) {
        status = wal__struct_load(WAL__STRUCT(wal_session_change), &request->change,
                                  request->batch.change, error);
        request->batch.change = &request->change;
    }
    if (status == WAL_OK) {
        status = wal__batch_check_counts(&request->batch, error);
    }
    return status == WAL_OK ? load_arrays(request, error) : status;
}

/* Makes WAL_DURABLE of WAL_CLUSTER in the options, and sets *is_cluster when there is something to
 * wait for. WAL_EREMOTE: no process ships the store. */
static enum wal_status cluster_begin(struct wal__core *core, struct wal_append_options *options,
                                     bool *is_cluster, struct wal_error *error)
{
    *is_cluster = options->durability == WAL_CLUSTER && !core->env.io->forgets;
    if (options->durability == WAL_CLUSTER) {
        options->durability = WAL_DURABLE;
    }
    return *is_cluster ? wal__core_check_ships(core, error) : WAL_OK;
}

/* Whether result.sequence is the number of the operation's last record. */
static bool has_last_sequence(const struct wal__op *op)
{
    const struct wal__batch *batch = op->request;

    return op->result.sequence != 0 && op->result.duplicates == 0 && batch->doc_count == 0 &&
           batch->head_count == 0 && !batch->has_change;
}

/* Waits until the operation, which is done and durable, is stored; see wal__core_wait_shipped. */
static enum wal_status cluster_wait(struct wal__core *core, const struct wal__op *op,
                                    int64_t timeout_ms, struct wal_error *error)
{
    uint64_t sequence = 0;
    enum wal_status status = WAL_OK;

    if (has_last_sequence(op)) {
        sequence = op->result.sequence;
    } else {
        /* What was there before is durable, like the rest. */
        status = wal__core_wait(core, &sequence, true, 0, error);
    }
    if (status == WAL_OK) {
        sequence--;
        status = wal__core_wait_shipped(core, &sequence, timeout_ms, error);
    }
    return status;
}

enum { ATTEMPTS_MAX = 1000 };

static enum wal_status check_result(const struct wal_append_result *result, struct wal_error *error)
{
    return wal__struct_check_optional(WAL__STRUCT(wal_append_result), result, error);
}

static enum wal_status check_keys(const struct wal_batch *batch, struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    if (batch->documents == NULL) {
        return WAL_OK; /* refused for that */
    }
    for (uint32_t i = 0; i < batch->document_count && status == WAL_OK; i++) {
        status = wal__check_key(batch->documents[i].key, error);
    }
    return status;
}

/* Encodes and submits, the session being checked; *op is the caller's reference. has_ticket: the
 * caller has a ticket for the copy_result. */
static enum wal_status submit(struct wal_session *session, const struct batch_request *request,
                              bool has_ticket, struct wal__op **op, struct wal_error *error)
{
    const struct wal_batch *batch = &request->batch;
    const struct wal_append_options *options = &request->options;
    bool no_wait = (options->flags & WAL_APPEND_NO_WAIT) != 0;
    enum wal_status status = check_keys(batch, error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__batch_create(session, batch, options, WAL__BATCH_PLAIN, op, error);
    if (status == WAL_OK) {
        (*op)->async = has_ticket;
        (*op)->detached = !has_ticket && (*op)->durability == WAL_QUEUED;
        status = wal__committer_submit(&session->core->committer, *op, no_wait, error);
        if (status != WAL_OK) {
            wal__op_release(*op);
        }
    }
    return status;
}

/*
 * Fills the result of an operation, which may be null: with zeros when nothing is known to be
 * written, without last_id when what was written has not reached the durability that was asked for.
 * While the operation is queued only last_id is known.
 */
static void store_result(const struct wal__op *op, bool is_queued, bool is_reached,
                         struct wal_append_result *result)
{
    struct wal_append_result own = WAL_INIT(wal_append_result);

    if (op != NULL && !is_queued && op->status == WAL_OK) {
        memcpy(&own, &op->result, offsetof(struct wal_append_result, last_id));
        own.struct_size = sizeof(own);
    }
    if (is_reached) {
        WAL__ASSERT(op != NULL);
        memcpy(own.last_id, op->result.last_id, sizeof(own.last_id));
    }
    wal__struct_store(WAL__STRUCT(wal_append_result), result, &own);
}

/* Once; *op is the caller's reference when it was submitted. */
static enum wal_status try_commit(struct wal_session *session, const struct batch_request *request,
                                  struct wal__op **op, struct wal_error *error)
{
    enum wal_status status = submit(session, request, false, op, error);

    if (status != WAL_OK) {
        *op = NULL;
        return status;
    }
    if ((*op)->durability != WAL_QUEUED) {
        (void)!wal__committer_wait(&session->core->committer, *op, -1);
        status = (*op)->status;
        if (status != WAL_OK) {
            wal__error_copy(error, &(*op)->error);
        }
    }
    return status;
}

/* A change that expects nothing begins again when another came first. */
static bool should_retry(enum wal_status status, const struct wal__op *op, uint32_t attempt)
{
    const struct wal__batch *batch = op == NULL ? NULL : op->request;

    return status == WAL_ECONFLICT && batch != NULL && batch->stale_read &&
           op->error.expectation == WAL_EXPECTATION_METADATA && !batch->conditional &&
           attempt < ATTEMPTS_MAX;
}

/* Whether the batch sets fields of the session, whatever version they have. */
static bool sets_any_version(const struct batch_request *request)
{
    return request->batch.change != NULL && request->change.fields != WAL_CHANGE_EXPECT_SEQUENCE &&
           (request->change.fields & WAL_CHANGE_EXPECT) == 0;
}

/* Whether the batch may have to be made again: it is then waited for, since only the caller can do
 * that. */
static bool may_need_retry(const struct batch_request *request)
{
    return request->options.durability == WAL_QUEUED && sets_any_version(request);
}

/* The batch, and the operation it became, to be released; it may be null. */
static enum wal_status commit(struct wal_session *session, const struct wal_batch *batch,
                              const struct wal_append_options *options,
                              struct wal_append_result *result, struct wal__op **op,
                              struct wal_error *error)
{
    uint64_t looked = 0;
    bool is_cluster = false;
    struct batch_request request;
    enum wal_status status = check_result(result, error);

    if (status != WAL_OK) {
        return status;
    }
    store_result(NULL, false, false, result);
    status = wal__check_writable(session == NULL ? NULL : session->core, error);
    if (status != WAL_OK) {
        return status;
    }
    status = batch_request_init(&request, session->core->env.heap, batch, options, error);
    if (status == WAL_OK) {
        status = cluster_begin(session->core, &request.options, &is_cluster, error);
    }
    if (status == WAL_OK && may_need_retry(&request)) {
        request.options.durability = WAL_WRITTEN;
    }
    for (uint32_t attempt = 0; status == WAL_OK; attempt++) {
        status = try_commit(session, &request, op, error);
        if (!should_retry(status, *op, attempt) &&
            !wal__core_invalidate_derived(session->core, status, &looked)) {
            break;
        }
        wal__op_release(*op);
        *op = NULL;
        status = WAL_OK;
    }
    batch_request_deinit(&request);
    if (status == WAL_OK && is_cluster) {
        status = cluster_wait(session->core, *op, -1, error);
    }
    store_result(*op, *op != NULL && (*op)->durability == WAL_QUEUED, status == WAL_OK, result);
    return status;
}

enum wal_status wal_batch_commit(struct wal_session *session, const struct wal_batch *batch,
                                 const struct wal_append_options *options,
                                 struct wal_append_result *result, struct wal_error *error)
{
    struct wal__op *op = NULL;
    enum wal_status status;

    if (batch == NULL) {
        return wal__invalid(error, "the batch is null");
    }
    status = commit(session, batch, options, result, &op, error);
    wal__op_release(op);
    return status;
}

enum wal_status wal_batch_submit(struct wal_session *session, const struct wal_batch *batch,
                                 const struct wal_append_options *options,
                                 struct wal_ticket **ticket, struct wal_error *error)
{
    struct batch_request request;
    struct wal__op *op = NULL;
    bool is_cluster = false;
    enum wal_status status = wal__check_writable(session == NULL ? NULL : session->core, error);

    if (status != WAL_OK) {
        return status;
    }
    if (ticket == NULL || batch == NULL) {
        return wal__invalid(error, "the batch or the place for the ticket is null");
    }
    status = batch_request_init(&request, session->core->env.heap, batch, options, error);
    if (status == WAL_OK && sets_any_version(&request)) {
        status = wal__invalid(error, "the change expects no version");
    }
    if (status == WAL_OK) {
        status = cluster_begin(session->core, &request.options, &is_cluster, error);
    }
    if (status == WAL_OK) {
        status = submit(session, &request, true, &op, error);
    }
    batch_request_deinit(&request);
    if (status == WAL_OK) {
        struct wal__batch *made = op->request;

        made->ticket.core = session->core;
        made->ticket.op = op;
        made->ticket.is_cluster = is_cluster;
        wal__core_retain(session->core);
        *ticket = &made->ticket;
    }
    return status;
}

/* Of a ticket of WAL_CLUSTER whose operation is durable. */
static enum wal_status wait_cluster(const struct wal_ticket *ticket, int64_t timeout_ms,
                                    struct wal_error *error)
{
    enum wal_status status = wal__check_core(ticket->core, error);

    return status == WAL_OK ? cluster_wait(ticket->core, ticket->op, timeout_ms, error) : status;
}

enum wal_status wal_ticket_wait(struct wal_ticket *ticket, int64_t timeout_ms,
                                struct wal_append_result *result, struct wal_error *error)
{
    /* Also after wal_close, which has completed every operation. */
    enum wal_status status = wal__check_process(ticket == NULL ? NULL : ticket->core, error);

    if (status == WAL_OK) {
        status = check_result(result, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    status = wal__committer_wait(&ticket->core->committer, ticket->op, timeout_ms);
    if (atomic_load(&ticket->op->state) != WAL__OP_DONE) {
        return wal__fail(error, WAL_EBUSY, "the append is pending");
    }
    ticket->result_taken = true;
    status = ticket->op->status;
    if (status != WAL_OK) {
        wal__error_copy(error, &ticket->op->error);
    } else if (ticket->is_cluster) {
        status = wait_cluster(ticket, timeout_ms, error);
    }
    store_result(ticket->op, false, status == WAL_OK, result);
    return status;
}

void wal_ticket_destroy(struct wal_ticket *ticket)
{
    struct wal__core *core;

    if (ticket == NULL) {
        return;
    }
    core = ticket->core;
    /* What the parent process submitted is not this one's to report, and a closed store reports
     * nothing. */
    if (!ticket->result_taken && wal__check_core(core, NULL) == WAL_OK) {
        wal__async_errors_drop(&core->committer.async_errors, ticket->op);
    }
    wal__op_release(ticket->op);
    wal__core_release(core);
}

/* --- one part alone ------------------------------------------------------ */

static enum wal_status check_entries(const struct wal_entry *entries, uint32_t count,
                                     struct wal_error *error)
{
    return entries != NULL && count > 0 ? WAL_OK
                                        : wal__invalid(error, "there is nothing to append");
}

enum wal_status wal_append(struct wal_session *session, const struct wal_entry *entries,
                           uint32_t count, const struct wal_append_options *options,
                           struct wal_append_result *result, struct wal_error *error)
{
    const struct wal_batch batch = {
        .struct_size = sizeof(batch), .entries = entries, .entry_count = count};
    enum wal_status status = check_entries(entries, count, error);

    return status == WAL_OK ? wal_batch_commit(session, &batch, options, result, error) : status;
}

enum wal_status wal_append_one(struct wal_session *session, const char *type,
                               struct wal_slice payload, struct wal_append_result *result,
                               struct wal_error *error)
{
    struct wal_entry entry = {.struct_size = sizeof(entry), .payload = payload};

    if (type == NULL) {
        return wal__invalid(error, "the entry's type is null");
    }
    entry.type = (struct wal_slice){type, strlen(type)};
    return wal_append(session, &entry, 1, NULL, result, error);
}

enum wal_status wal_submit(struct wal_session *session, const struct wal_entry *entries,
                           uint32_t count, const struct wal_append_options *options,
                           struct wal_ticket **ticket, struct wal_error *error)
{
    const struct wal_batch batch = {
        .struct_size = sizeof(batch), .entries = entries, .entry_count = count};
    enum wal_status status = check_entries(entries, count, error);

    return status == WAL_OK ? wal_batch_submit(session, &batch, options, ticket, error) : status;
}

enum wal_status wal_head_move(struct wal_session *session, const struct wal_head *head,
                              char previous[256], struct wal_error *error)
{
    const struct wal_batch batch = {.struct_size = sizeof(batch), .heads = head, .head_count = 1};
    struct wal__op *op = NULL;
    enum wal_status status = commit(session, &batch, NULL, NULL, &op, error);

    if (status == WAL_OK && previous != NULL) {
        const struct wal__batch *done = op->request;

        memcpy(previous, done->previous_head, sizeof(done->previous_head));
    }
    wal__op_release(op);
    return status;
}

/* --- documents ----------------------------------------------------------- */

/* One document of the session, or with a null session of the store: which is written as a batch of
 * no session's entries. */
static enum wal_status commit_doc(struct wal_store *store, struct wal_session *session,
                                  const struct wal_doc *doc, uint32_t flags, uint64_t *version,
                                  struct wal_error *error)
{
    struct wal_session own = {.core = store == NULL ? NULL : &store->core,
                              .number = WAL__STORE_NUMBER,
                              .text_size = WAL__SUMMARY_TEXT_MAX};
    struct wal_doc request;
    const struct wal_batch batch = {
        .struct_size = sizeof(batch), .documents = &request, .document_count = 1};
    struct wal__op *op = NULL;
    enum wal_status status;

    if (doc == NULL) {
        return wal__invalid(error, "the document is null");
    }
    status = wal__struct_load(WAL__STRUCT(wal_doc), &request, doc, error);
    if (status != WAL_OK) {
        return status;
    }
    if ((request.flags & ~(uint32_t)WAL_DOC_EXPECT) != 0) {
        return wal__invalid(error, "the document has flags of a batch");
    }
    if (session != NULL && store != NULL && session->core != &store->core) {
        return wal__invalid(error, "the session is of another store");
    }
    request.flags |= flags | (session == NULL ? WAL_DOC_STORE : 0u);
    status =
        commit(session == NULL && store != NULL ? &own : session, &batch, NULL, NULL, &op, error);
    if (status == WAL_OK && version != NULL) {
        const struct wal__batch *done = op->request;

        *version = done->docs[0].version;
    }
    wal__op_release(op);
    return status;
}

enum wal_status wal_doc_put(struct wal_store *store, struct wal_session *session,
                            const struct wal_doc *doc, uint64_t *version, struct wal_error *error)
{
    return commit_doc(store, session, doc, 0, version, error);
}

enum wal_status wal_doc_delete(struct wal_store *store, struct wal_session *session,
                               const struct wal_doc *doc, uint64_t *version,
                               struct wal_error *error)
{
    return commit_doc(store, session, doc, WAL_DOC_DELETE, version, error);
}

/* --- entries of the library's own ---------------------------------------- */

enum {
    REDACT_ATTEMPTS = 1000 /* while others change the title */
};

/* Finds an entry; session 0: it is not there, or lost. */
static enum wal_status find_entry(struct wal_session *session, struct wal_slice entry_id,
                                  struct wal__entry_location *found, struct wal_error *error)
{
    const struct wal__span id = {entry_id.data, (size_t)entry_id.size};
    struct wal_error own = WAL_INIT(wal_error);
    struct wal__core *core = session->core;
    uint64_t looked = 0;
    enum wal_status status;

    do {
        status = wal__core_write_lock(core, error);
        if (status != WAL_OK) {
            return status;
        }
        status = wal__core_find_id(core, session->number, id, found, &own);
        wal__core_unlock(core);
    } while (wal__core_invalidate_derived(core, status, &looked));
    if (status == WAL_ENOTFOUND || status == WAL_ECORRUPT) {
        found->session = 0;
        return WAL_OK;
    }
    if (status != WAL_OK) {
        wal__error_copy(error, &own);
    }
    return status;
}

/* Redacts, and takes the session's title with it if the entry gave that. WAL_ECONFLICT with
 * WAL_EXPECTATION_METADATA: the title is another one now. */
static enum wal_status redact(struct wal_session *session, const struct wal__entry_location *found,
                              struct wal_slice payload, struct wal_append_result *result,
                              struct wal_error *error)
{
    const struct wal_entry entry = {
        .struct_size = sizeof(entry), .type = WAL_STR(WAL_TYPE_REDACTION), .payload = payload};
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_session_change change = {.struct_size = sizeof(change),
                                        .fields = WAL_CHANGE_TITLE | WAL_CHANGE_EXPECT};
    struct wal_batch batch = {.struct_size = sizeof(batch), .entries = &entry, .entry_count = 1};
    bool gives = false;

    if (found->session != 0 && wal_session_get_info(session, &info, NULL) == WAL_OK &&
        info.title.size > 0) {
        const struct wal__span title = {info.title.data, (size_t)info.title.size};
        enum wal_status status =
            wal__session_gives_title(session->core, found, title, &gives, error);

        if (status != WAL_OK) {
            return status;
        }
    }
    change.expected_version = info.metadata_version;
    batch.change = gives ? &change : NULL;
    return wal_batch_commit(session, &batch, NULL, result, error);
}

enum wal_status wal_session_redact(struct wal_session *session, struct wal_slice entry_id,
                                   struct wal_slice reason, struct wal_append_result *result,
                                   struct wal_error *error)
{
    enum wal_status status = wal__check_writable(session == NULL ? NULL : session->core, error);
    struct wal__entry_location found;
    struct wal__buf payload;

    if (status != WAL_OK) {
        return status;
    }
    wal__buf_init(&payload, session->core->env.heap);
    status = wal__payload_build_redaction(entry_id, reason, &payload, error);
    if (status == WAL_OK) {
        status = find_entry(session, entry_id, &found, error);
    }
    if (status == WAL_OK) {
        struct wal_error own = WAL_INIT(wal_error);
        int attempts = 0;

        do {
            status = redact(session, &found, (struct wal_slice){payload.data, payload.size}, result,
                            &own);
        } while (status == WAL_ECONFLICT && own.expectation == WAL_EXPECTATION_METADATA &&
                 ++attempts < REDACT_ATTEMPTS);
        if (status != WAL_OK) {
            wal__error_copy(error, &own);
        }
    }
    /* Of forks, and of the owner where the session is a fork. */
    if (status == WAL_OK && found.session != 0) {
        status = wal__session_forget_titles(session->core, found.session, found.stream,
                                            found.sequence, error);
    }
    wal__buf_deinit(&payload);
    return status;
}

static enum wal_status compact_in_place(struct wal_session *session,
                                        const struct wal_compact_options *options,
                                        struct wal_append_result *result, struct wal_error *error)
{
    struct wal__span first_kept;
    struct wal__buf payload;
    enum wal_status status;

    wal__buf_init(&payload, session->core->env.heap);
    status = wal__payload_build_compaction(options, &first_kept, &payload, error);
    if (status == WAL_OK) {
        status = wal_append_one(session, WAL_TYPE_COMPACTION_SUMMARY,
                                (struct wal_slice){payload.data, payload.size}, result, error);
    }
    wal__buf_deinit(&payload);
    return status;
}

static enum wal_status compact_into(struct wal_session *session,
                                    const struct wal_compact_options *options,
                                    struct wal_session **fork, struct wal_append_result *result,
                                    struct wal_error *error)
{
    uint64_t looked = 0;
    struct wal_append_result own = WAL_INIT(wal_append_result);
    enum wal_status status = WAL_OK;

    if (fork == NULL) {
        return wal__invalid(error, "the place for the handle is null");
    }
    for (bool again = status == WAL_OK; again;
         again = wal__core_invalidate_derived(session->core, status, &looked)) {
        status = wal__session_compact_into(session, options, fork, &own, error);
    }
    if (status == WAL_OK) {
        wal__struct_store(WAL__STRUCT(wal_append_result), result, &own);
    }
    return status;
}

enum wal_status wal_session_compact(struct wal_session *session,
                                    const struct wal_compact_options *options,
                                    struct wal_session **fork, struct wal_append_result *result,
                                    struct wal_error *error)
{
    uint64_t looked = 0;
    struct wal_compact_options own;
    struct wal_session_options into;
    enum wal_status status = wal__check_writable(session == NULL ? NULL : session->core, error);

    if (status == WAL_OK) {
        status = check_result(result, error);
    }
    if (status == WAL_OK && options == NULL) {
        status = wal__invalid(error, "the options are null");
    }
    if (status == WAL_OK) {
        status = wal__struct_load(WAL__STRUCT(wal_compact_options), &own, options, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    if (own.into != NULL) {
        status = wal__struct_load(WAL__STRUCT(wal_session_options), &into, own.into, error);
        own.into = &into;
        return status == WAL_OK ? compact_into(session, &own, fork, result, error) : status;
    }
    for (bool again = status == WAL_OK; again;
         again = wal__core_invalidate_derived(session->core, status, &looked)) {
        status = compact_in_place(session, &own, result, error);
    }
    return status;
}
