/*
 * session_create.c - creating and deleting sessions, and accepting damage: each
 * is one small operation (SPEC.md 5.4, 5.10). Any thread; the resolve functions
 * run in the leader, under the append lock and the state lock for writing.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/session/session_create.h"
#include "engine/store/input_text.h"
#include "engine/write/write_batch.h"
#include "format/bytes/assert.h"
#include "format/bytes/crc32.h"
#include "format/segment/segment_fmt.h"

enum wal_status wal__session_commit(struct wal__core *core, struct wal__op *op,
                                    struct wal_error *error)
{
    enum wal_status status =
        wal__committer_submit(&core->committer, op, false, error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__committer_wait(&core->committer, op, -1);
    if (status != WAL_OK) {
        wal__error_copy(error, &op->error);
    }
    return status;
}

enum wal_status wal__new_session_resolve(struct wal__core *core,
                                         struct wal__op *op, uint32_t *number)
{
    struct wal__session_record record;
    struct wal__summary summary;
    enum wal_status status;

    WAL__ASSERT(op->frame_count > 0);
    if (wal__session_record_decode(wal__batch_payload(op, 0),
                                   WAL__FORMAT_VERSION,
                                   &record) != WAL__FMT_OK) {
        return wal__invalid(&op->error, "the SESSION record is not valid");
    }
    status = wal__catalogue_find(&core->catalogue, record.id, &summary);
    if (status == WAL_OK && (summary.flags & WAL__SUMMARY_TRASHED) != 0) {
        (void)wal__session_fail_trashed(record.id, &op->error);
        wal__error_set_actual(&op->error, record.id.data, record.id.size);
        return WAL_ETRASHED;
    }
    if (status == WAL_OK) {
        wal__fail(&op->error, WAL_EEXISTS, "session \"%.*s\" already exists",
                  (int)record.id.size, (const char *)record.id.data);
        wal__error_set_actual(&op->error, record.id.data, record.id.size);
        return WAL_EEXISTS;
    }
    if (status != WAL_ENOTFOUND) {
        return wal__fail(&op->error, status, "cannot read the catalogue: %s",
                         wal_status_text(status));
    }
    if (core->catalogue.last_session == UINT32_MAX - 1) {
        return wal__fail(&op->error, WAL_ETOOBIG,
                         "the store has no free session number");
    }
    *number = core->catalogue.last_session + 1;
    for (uint32_t i = 0; i < op->frame_count; i++) {
        op->frames[i].frame.session = *number;
    }
    op->frames[0].frame.flags = WAL__FRAME_FIRST;
    op->frames[op->frame_count - 1].frame.flags |= WAL__FRAME_LAST;
    return WAL_OK;
}

/* WAL_EEXISTS when a session of the record's directory is listed. */
static enum wal_status check_only(const struct wal__core *core,
                                  struct wal__op *op)
{
    struct wal__catalogue_filter filter = {.is_trash = false};
    struct wal__catalogue_iter iter = {.heap = core->env.heap};
    struct wal__session_record record;
    struct wal__summary other;
    enum wal_status status;

    if (wal__session_record_decode(wal__batch_payload(op, 0),
                                   WAL__FORMAT_VERSION,
                                   &record) != WAL__FMT_OK) {
        return wal__invalid(&op->error, "the SESSION record is not valid");
    }
    filter.cwd = record.cwd;
    status = wal__catalogue_iter_init(&iter, &core->catalogue, &filter);
    if (status == WAL_OK) {
        status = wal__catalogue_iter_next(&iter, &core->catalogue, &other);
        wal__catalogue_iter_deinit(&iter);
    }
    if (status == WAL_OK) {
        return wal__fail(&op->error, WAL_EEXISTS,
                         "session \"%.*s\" already exists", (int)other.id.size,
                         (const char *)other.id.data);
    }
    return status == WAL_END
               ? WAL_OK
               : wal__fail(&op->error, status, "cannot read the catalogue: %s",
                           wal_status_text(status));
}

static enum wal_status resolve_create(void *ctx, struct wal__op *op)
{
    struct wal__new_session *new_session = op->request;
    enum wal_status status =
        new_session->is_only ? check_only(ctx, op) : WAL_OK;

    return status == WAL_OK
               ? wal__new_session_resolve(ctx, op, &new_session->number)
               : status;
}

enum wal_status
wal__new_session_init_record(const struct wal_session_options *options,
                             struct wal__session_record *record,
                             struct wal_error *error)
{
    const struct {
        const struct wal_slice *slice;
        struct wal__span *span;
        uint64_t max;
        const char *what;
    } texts[] = {
        {&options->id, &record->id, WAL__ID_MAX, "session's id"},
        {&options->cwd, &record->cwd, WAL__TEXT_MAX, "cwd"},
        {&options->project, &record->project, WAL__TEXT_MAX, "project id"},
        {&options->title, &record->title, WAL__TEXT_MAX, "title"},
        {&options->parent_id, &record->parent_id, WAL__ID_MAX, "parent id"},
        {&options->source, &record->source, WAL__TEXT_MAX, "source"},
    };
    enum wal_status status;

    if (options->id.size > WAL__ID_MAX) {
        return wal__invalid(error,
                            "the session's id has %" PRIu64
                            " bytes; the limits are 1 and %d",
                            options->id.size, WAL__ID_MAX);
    }
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        status = wal__text_check(*texts[i].slice, texts[i].max, texts[i].what,
                                 texts[i].span, error);
        if (status != WAL_OK) {
            return status;
        }
    }
    if (options->metadata.size > 0) {
        status =
            wal__text_check_json(options->metadata, WAL__METADATA_MAX, true,
                                 "metadata", &record->metadata, error);
        if (status != WAL_OK) {
            return status;
        }
    }
    if (options->id.size == 0 && options->id.data != NULL) {
        return wal__invalid(error, "the session's id is empty");
    }
    record->schema_version = options->schema_version;
    record->created_ms = options->created_ms;
    return WAL_OK;
}

static enum wal_status reject_schema(uint32_t requested, uint32_t required,
                                     struct wal_error *error)
{
    char actual[16];
    int size = snprintf(actual, sizeof(actual), "%" PRIu32, requested);

    WAL__ASSERT(size > 0 && (size_t)size < sizeof(actual));
    wal__fail(error, WAL_ESCHEMA,
              "the session would have schema version %s; this store was "
              "opened for version %" PRIu32,
              actual, required);
    wal__error_set_actual(error, actual, (size_t)size);
    return WAL_ESCHEMA;
}

enum wal_status
wal__new_session_set_defaults(const struct wal__core *core,
                              struct wal__session_record *record,
                              struct wal_error *error)
{
    if (record->created_ms == 0) {
        record->created_ms = core->env.io->now_ms(core->env.io->ctx);
    }
    if (record->schema_version == 0) {
        record->schema_version =
            core->schema_version != 0 ? core->schema_version : 1;
    }
    if (core->schema_version != 0 &&
        record->schema_version != core->schema_version) {
        return reject_schema(record->schema_version, core->schema_version,
                             error);
    }
    return WAL_OK;
}

enum wal_status
wal__new_session_create_op(struct wal__core *core,
                           const struct wal__session_record *record,
                           struct wal__new_session *new_session,
                           struct wal__op **op, struct wal_error *error)
{
    size_t size = wal__session_record_size(record);
    struct wal__op *created = wal__op_create(&core->ops);
    struct wal__op_frame *frame;
    uint8_t *payload;

    if (created == NULL || wal__op_add_frame(created, (uint32_t)size, &frame,
                                             &payload) != WAL_OK) {
        wal__op_release(created);
        return wal__no_memory(error);
    }
    WAL__ASSERT(size >= record->metadata.size);
    wal__session_record_encode(record, payload);
    frame->frame.type = WAL__FRAME_SESSION;
    frame->frame.id_hash = wal__id_hash(record->id.data, record->id.size);
    created->request = new_session;
    created->reservation.texts = size - record->metadata.size;
    *op = created;
    return WAL_OK;
}

/* The handle is allocated before the commit: after it, running out of memory
 * would report a failure of a session that exists. */
enum wal_status
wal__new_session_commit(struct wal__core *core, struct wal__op *op,
                        const struct wal__new_session *new_session,
                        struct wal_session **session, struct wal_error *error)
{
    struct wal_session *handle = wal__session_alloc(core);
    enum wal_status status;

    if (handle == NULL) {
        return wal__no_memory(error);
    }
    status = wal__session_commit(core, op, error);
    if (status != WAL_OK) {
        wal__session_free(handle);
        return status;
    }
    handle->number = new_session->number;
    handle->text_size = op->reservation.texts;
    handle->depth = new_session->depth;
    *session = handle;
    return WAL_OK;
}

enum wal_status wal__session_create(struct wal__core *core,
                                    const struct wal_session_options *options,
                                    bool is_only, struct wal_session **session,
                                    struct wal_error *error)
{
    const struct wal_session_options none = {.struct_size = sizeof(none)};
    struct wal__session_record record = {0};
    struct wal__new_session new_session = {.core = core, .is_only = is_only};
    char id[WAL__UUID_TEXT];
    struct wal__op *op = NULL;
    enum wal_status status;

    status = wal__new_session_init_record(options == NULL ? &none : options,
                                          &record, error);
    if (status != WAL_OK) {
        return status;
    }
    if (record.id.size == 0) {
        wal__text_uuid(&core->env, id);
        record.id.data = (const uint8_t *)id;
        record.id.size = sizeof(id);
    }
    status = wal__new_session_set_defaults(core, &record, error);
    if (status != WAL_OK) {
        return status;
    }
    status =
        wal__new_session_create_op(core, &record, &new_session, &op, error);
    if (status == WAL_OK) {
        op->resolve = resolve_create;
        wal__op_finish(op);
        op->reservation.texts += WAL__ID_MAX;
        status =
            wal__new_session_commit(core, op, &new_session, session, error);
    }
    wal__op_release(op);
    return status;
}

/* --- one record without a payload ---------------------------------------- */

static enum wal_status resolve_accept(void *ctx, struct wal__op *op)
{
    struct wal__op_frame *frame = &op->frames[0];
    struct wal__core *core = ctx;
    struct wal__summary summary;
    uint32_t number = frame->frame.session;
    enum wal_status status =
        number == WAL__STORE_NUMBER
            ? wal__catalogue_get(&core->catalogue, number, &summary)
            : wal__session_check_writable(core, number, true, &summary,
                                          &op->error);

    WAL__ASSERT(op->frame_count == 1);
    if (status == WAL_ENOTFOUND && number == WAL__STORE_NUMBER) {
        summary.flags = 0; /* the store has no documents */
        status = WAL_OK;
    }
    frame->frame.flags = WAL__FRAME_FIRST | WAL__FRAME_LAST;
    frame->skipped = (summary.flags & WAL__SUMMARY_DAMAGED) == 0;
    return status;
}

/* A damaged session can be deleted, and one in the trash. */
static enum wal_status resolve_delete(void *ctx, struct wal__op *op)
{
    const uint64_t *expected = op->request;
    struct wal__core *core = ctx;
    struct wal__summary summary;
    enum wal_status status = wal__session_check_writable(
        core, op->frames[0].frame.session, false, &summary, &op->error);

    WAL__ASSERT(op->frame_count == 1);
    if (status != WAL_OK && status != WAL_EDAMAGED && status != WAL_ETRASHED) {
        return status;
    }
    op->frames[0].frame.flags = WAL__FRAME_FIRST | WAL__FRAME_LAST;
    return expected == NULL
               ? WAL_OK
               : wal__session_check_sequence(&summary, *expected, &op->error);
}

/* expected: of a TOMBSTONE, or null. */
static enum wal_status commit_empty_record(struct wal__core *core,
                                           uint32_t number, uint64_t text_size,
                                           enum wal__frame_type type,
                                           const uint64_t *expected,
                                           struct wal_error *error)
{
    uint64_t sequence = expected != NULL ? *expected : 0;
    struct wal__op *op = wal__op_create(&core->ops);
    struct wal__op_frame *frame;
    enum wal_status status;
    uint8_t *payload;

    if (op == NULL || wal__op_add_frame(op, 0, &frame, &payload) != WAL_OK) {
        wal__op_release(op);
        return wal__no_memory(error);
    }
    frame->frame.type = (uint8_t)type;
    frame->frame.session = number;
    op->request = expected != NULL ? &sequence : NULL;
    op->resolve =
        type == WAL__FRAME_TOMBSTONE ? resolve_delete : resolve_accept;
    wal__op_finish(op);
    op->reservation.texts = text_size;
    status = wal__session_commit(core, op, error);
    wal__op_release(op);
    return status;
}

enum wal_status wal__session_accept_damage(struct wal__core *core,
                                           uint32_t number, uint64_t text_size,
                                           struct wal_error *error)
{
    return commit_empty_record(core, number, text_size, WAL__FRAME_ACCEPT, NULL,
                               error);
}

enum wal_status wal__session_delete(struct wal_session *session,
                                    const uint64_t *expected,
                                    struct wal_error *error)
{
    return commit_empty_record(session->core, session->number,
                               session->text_size, WAL__FRAME_TOMBSTONE,
                               expected, error);
}
