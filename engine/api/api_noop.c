/*
 * api_noop.c - persistence off (SPEC.md 5.11): a handle knows what it was
 * given, everything else is empty. Invariant: arguments are refused as by a
 * store that keeps them, so that a program behaves alike with both. Readers are
 * made where the others are, and left empty. Any thread.
 */
#include "engine/api/api_noop.h"
#include "engine/write/payload_build.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/read/lookup.h"
#include "engine/session/session_create.h"
#include "engine/store/input_text.h"
#include "engine/write/write_batch.h"

/* A session's handle and info; the texts are in handle.info_texts. */
struct noop_session {
    struct wal_session handle; /* first: it is freed by wal__session_free */
    struct wal_session_info known;
};

/* --- store -------------------------------------------------------------- */

static void destroy_store(struct wal__core *core)
{
    wal__op_pool_deinit(&core->ops);
    wal__heap_free(core->env.heap, core);
}

enum wal_status wal__noop_open(const struct wal__heap *heap,
                               const struct wal__io *io,
                               const struct wal_open_options *options,
                               struct wal_store **store,
                               struct wal_error *error)
{
    struct wal_store *opened = wal__heap_zalloc(heap, sizeof(*opened));

    if (opened == NULL) {
        return wal__no_memory(error);
    }
    opened->core.noop = true;
    opened->core.destroy = destroy_store;
    atomic_init(&opened->core.references, 1);
    wal__lookup_init(&opened->lookup);
    opened->core.schema_version = options->schema_version;
    opened->core.env.heap = heap;
    opened->core.env.io = io; /* for the clock and made-up ids */
    /* Who waits for an operation, done though it is, asks them. */
    opened->core.log.env = &opened->core.env;
    opened->core.committer.log = &opened->core.log;
    wal__async_errors_init(&opened->core.committer.async_errors);
    wal__op_pool_init(&opened->core.ops, heap, sizeof(struct wal__batch));
    *store = opened;
    return WAL_OK;
}

void wal__noop_close(struct wal_store *store)
{
    wal__lookup_deinit(&store->lookup);
    wal__async_errors_deinit(&store->core.committer.async_errors);
}

void wal__noop_store_info(struct wal_store_info *info)
{
    *info = (struct wal_store_info){.struct_size = sizeof(*info)};
}

enum wal_status wal__noop_wait(const struct wal__core *core, int64_t timeout_ms,
                               struct wal_error *error)
{
    const struct wal__io *io = core->env.io;
    uint64_t start_ns = io->monotonic_ns(io->ctx);
    uint64_t limit_ns = timeout_ms < 0 || timeout_ms > INT32_MAX
                            ? 0
                            : (uint64_t)timeout_ms * 1000000;
    const uint32_t nothing = 0;
    uint64_t elapsed_ns = 0;

    while (elapsed_ns < limit_ns) {
        io->futex_wait(io->ctx, &nothing, 0, limit_ns - elapsed_ns);
        elapsed_ns = io->monotonic_ns(io->ctx) - start_ns;
    }
    return wal__fail(error, WAL_EBUSY,
                     "persistence is off: no record ever comes");
}

void wal__noop_migrate(uint32_t to, struct wal_migrate_result *result)
{
    if (result != NULL) {
        *result = (struct wal_migrate_result){
            .struct_size = sizeof(*result), .from = to, .to = to};
    }
}

enum wal_status wal__noop_not_found(struct wal_error *error)
{
    return wal__fail(error, WAL_ENOTFOUND,
                     "persistence is off: nothing was kept");
}

/* --- sessions ----------------------------------------------------------- */

static const struct wal_session_info *
noop_info(const struct wal_session *session)
{
    return &((const struct noop_session *)(const void *)session)->known;
}

/* Appends a text to the others; room was reserved. */
static struct wal_slice append_text(struct wal__buf *texts,
                                    struct wal__span text)
{
    struct wal_slice slice = {texts->data + texts->size, text.size};

    if (text.size > 0) {
        memcpy(texts->data + texts->size, text.data, text.size);
        texts->size += text.size;
    }
    return slice;
}

static enum wal_status copy_texts(struct noop_session *made,
                                  const struct wal__session_record *record)
{
    struct wal__buf *texts = &made->handle.info_texts;
    struct wal_session_info *known = &made->known;
    uint8_t *room;

    if (wal__buf_reserve(texts, wal__session_record_size(record), &room) !=
        WAL_OK) {
        return WAL_ENOMEM;
    }
    known->id = append_text(texts, record->id);
    known->cwd = append_text(texts, record->cwd);
    known->project = append_text(texts, record->project);
    known->title = append_text(texts, record->title);
    known->parent_id = append_text(texts, record->parent_id);
    known->source = append_text(texts, record->source);
    known->metadata = append_text(texts, record->metadata);
    known->schema_version = record->schema_version;
    known->created_ms = record->created_ms;
    known->updated_ms = record->created_ms;
    return WAL_OK;
}

/* A handle on what the record says, with an id made up where it has none. */
static enum wal_status create_handle(struct wal__core *core,
                                     struct wal__session_record *record,
                                     uint32_t flags,
                                     struct wal_session **session,
                                     struct wal_error *error)
{
    struct noop_session *made = wal__heap_zalloc(core->env.heap, sizeof(*made));
    char id[WAL__UUID_TEXT];

    if (made == NULL) {
        return wal__no_memory(error);
    }
    made->handle.core = core;
    wal__core_retain(core);
    pthread_mutex_init(&made->handle.info_mutex, NULL);
    wal__buf_init(&made->handle.info_texts, core->env.heap);
    wal__lookup_init(&made->handle.lookup);
    made->known.struct_size = sizeof(made->known);
    made->known.flags = flags;
    if (record->id.size == 0) {
        wal__text_uuid(&core->env, id);
        record->id.data = (const uint8_t *)id;
        record->id.size = sizeof(id);
    }
    if (copy_texts(made, record) != WAL_OK) {
        wal__session_free(&made->handle);
        return wal__no_memory(error);
    }
    *session = &made->handle;
    return WAL_OK;
}

/* The options as a record, checked; null: none. */
static enum wal_status decode_options(const struct wal_session_options *options,
                                      struct wal__session_record *record,
                                      struct wal_error *error)
{
    const struct wal_session_options none = {.struct_size = sizeof(none)};

    return wal__new_session_init_record(options == NULL ? &none : options,
                                        record, error);
}

enum wal_status
wal__noop_session_create(struct wal__core *core,
                         const struct wal_session_options *options,
                         struct wal_session **session, struct wal_error *error)
{
    struct wal__session_record record = {0};
    enum wal_status status = decode_options(options, &record, error);

    if (status == WAL_OK) {
        status = wal__new_session_set_defaults(core, &record, error);
    }
    return status == WAL_OK ? create_handle(core, &record, 0, session, error)
                            : status;
}

enum wal_status wal__noop_session_open(struct wal__core *core,
                                       struct wal__span id,
                                       struct wal_session **session,
                                       struct wal_error *error)
{
    struct wal__session_record record = {.id = id};
    enum wal_status status =
        wal__new_session_set_defaults(core, &record, error);

    if (status == WAL_OK && id.size == 0) {
        status = wal__noop_not_found(error);
    }
    return status == WAL_OK ? create_handle(core, &record, 0, session, error)
                            : status;
}

static void copy_if_empty(struct wal__span *text, struct wal_slice from)
{
    if (text->size == 0) {
        *text = (struct wal__span){from.data, (size_t)from.size};
    }
}

enum wal_status
wal__noop_session_fork(struct wal_session *source, struct wal_slice at,
                       const struct wal_session_options *options,
                       struct wal_session **fork, struct wal_error *error)
{
    const struct wal_session_info *from = noop_info(source);
    struct wal__session_record record = {0};
    struct wal__span ignored;
    enum wal_status status =
        wal__text_check(at, WAL__ID_MAX, "fork point's id", &ignored, error);

    if (status == WAL_OK) {
        status = decode_options(options, &record, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    copy_if_empty(&record.cwd, from->cwd);
    copy_if_empty(&record.project, from->project);
    copy_if_empty(&record.title, from->title);
    copy_if_empty(&record.metadata, from->metadata);
    record.parent_id = (struct wal__span){0};
    copy_if_empty(&record.parent_id, from->id);
    if (record.schema_version == 0) {
        record.schema_version = from->schema_version;
    }
    status = wal__new_session_set_defaults(source->core, &record, error);
    return status == WAL_OK ? create_handle(source->core, &record,
                                            WAL_SESSION_FORK, fork, error)
                            : status;
}

void wal__noop_session_info(const struct wal_session *session,
                            struct wal_session_info *info)
{
    *info = *noop_info(session);
}

/* What wal__batch_add_change checks without knowing the session. */
static enum wal_status check_change(const struct wal_session_change *change,
                                    struct wal_error *error)
{
    const uint32_t known = WAL_CHANGE_METADATA | WAL_CHANGE_TITLE |
                           WAL_CHANGE_CWD | WAL_CHANGE_PROJECT |
                           WAL_CHANGE_SCHEMA | WAL_CHANGE_EXPECT;
    const struct {
        uint32_t field;
        const struct wal_slice *text;
        const char *what;
    } texts[] = {
        {WAL_CHANGE_TITLE, &change->title, "title"},
        {WAL_CHANGE_CWD, &change->cwd, "cwd"},
        {WAL_CHANGE_PROJECT, &change->project, "project id"},
    };
    struct wal__span ignored;
    enum wal_status status = WAL_OK;

    if (change->struct_size != sizeof(*change) ||
        (change->fields & ~known) != 0 ||
        ((change->fields & WAL_CHANGE_SCHEMA) != 0 &&
         change->schema_version == 0)) {
        return wal__invalid(
            error, "the change's struct_size, fields or schema version "
                   "are not valid");
    }
    if ((change->fields & WAL_CHANGE_METADATA) != 0 &&
        change->metadata.size > 0) {
        status = wal__text_check_json(change->metadata, WAL__METADATA_MAX, true,
                                      "metadata", &ignored, error);
    }
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (status == WAL_OK && (change->fields & texts[i].field) != 0) {
            status = wal__text_check(*texts[i].text, WAL__TEXT_MAX,
                                     texts[i].what, &ignored, error);
        }
    }
    return status;
}

enum wal_status wal__noop_session_update(struct wal_session *session,
                                         wal_update_fn *fn, void *ctx,
                                         struct wal_error *error)
{
    struct wal_session_info now = *noop_info(session);
    struct wal_session_change change = {.struct_size = sizeof(change)};
    int32_t callback_result = fn(ctx, &now, &change);

    if (callback_result != 0) {
        return wal__fail_at(error, WAL_ECALLBACK, callback_result, NULL, 0,
                            "the caller's function answered %d",
                            callback_result);
    }
    return check_change(&change, error);
}

/* --- batches ------------------------------------------------------------ */

/* The batch without its change, which is one of a session that is there. */
static enum wal_status create_op(struct wal_session *session,
                                 const struct wal_batch *batch,
                                 const struct wal_append_options *options,
                                 struct wal__op **op, struct wal_error *error)
{
    struct wal_batch rest = *batch;
    enum wal_status status;

    if (batch->change == NULL || batch->entry_count > 0 ||
        batch->document_count > 0 || batch->head_count > 0) {
        rest.change = NULL;
        return wal__batch_create(session, &rest, options, WAL__BATCH_PLAIN, op,
                                 error);
    }
    *op = wal__batch_alloc_op(session->core, session->number, 0);
    status = *op == NULL ? wal__no_memory(error) : WAL_OK;
    return status;
}

enum wal_status wal__noop_submit(struct wal_session *session,
                                 const struct wal_batch *batch,
                                 const struct wal_append_options *options,
                                 bool has_ticket, struct wal__op **op,
                                 struct wal_error *error)
{
    enum wal_status status =
        batch->change == NULL ? WAL_OK : check_change(batch->change, error);

    if (status == WAL_OK) {
        status = create_op(session, batch, options, op, error);
    }
    if (status == WAL_OK) {
        wal__op_clear(*op);
        (*op)->durability = WAL_DURABLE;
        (*op)->result.appended = batch->entry_count;
        atomic_store(&(*op)->state, WAL__OP_DONE);
        if (has_ticket) {
            wal__async_errors_signal(&session->core->committer.async_errors);
        }
    }
    return status;
}

enum wal_status wal__noop_session_compact(
    struct wal_session *session, const struct wal_compact_options *options,
    struct wal_session **fork, struct wal_append_result *result,
    struct wal_error *error)
{
    const struct wal_slice head = {NULL, 0};
    struct wal__span first_kept;
    struct wal__buf payload;
    enum wal_status status;

    wal__buf_init(&payload, session->core->env.heap);
    status =
        wal__payload_build_compaction(options, &first_kept, &payload, error);
    wal__buf_deinit(&payload);
    if (status == WAL_OK) {
        status =
            wal__noop_session_fork(session, head, options->into, fork, error);
    }
    if (status == WAL_OK && result != NULL) {
        *result = (struct wal_append_result){.struct_size = sizeof(*result),
                                             .appended = 1};
        wal__text_uuid(&session->core->env, result->last_id);
    }
    return status;
}
