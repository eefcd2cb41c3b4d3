/*
 * create.c - new sessions, forks, and accepting damage: each one small batch
 * of records (SPEC.md 5.3, 5.4).
 */
#include <inttypes.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/session/session.h"
#include "engine/session/text.h"
#include "format/crc32.h"

/* What a fork is decided from, under the lease. */
struct fork_request {
    struct wal__core *core;
    uint32_t source;
    struct wal__span at; /* empty: the head */
    uint32_t number;     /* given to the new session */
};

static struct wal__span frame_payload(const struct wal__op *op, uint32_t item)
{
    struct wal__span span = {op->bytes.data + op->frames[item].offset +
                                 WAL__FRAME_SIZE,
                             op->frames[item].frame.stored_size};

    return span;
}

enum wal_status wal__session_commit(struct wal__core *core, struct wal__op *op,
                                    struct wal_error *error)
{
    enum wal_status status =
        wal__committer_submit(&core->committer, op, false, error);

    if (status == WAL_OK) {
        status = wal__committer_wait(&core->committer, op, -1);
        if (status != WAL_OK) {
            wal__error_copy(error, &op->error);
        }
    }
    return status;
}

/* Gives the new session its number; its id must be free. */
static enum wal_status resolve_new(struct wal__core *core, struct wal__op *op,
                                   uint32_t *number)
{
    struct wal__session_record record;
    struct wal__summary summary;
    enum wal_status status;

    if (wal__session_record_decode(frame_payload(op, 0), &record) !=
        WAL__FMT_OK) {
        return wal__fail(&op->error, WAL_EINVAL, 0, NULL, 0,
                         "the session's record is not valid");
    }
    status = wal__catalogue_find(&core->catalogue, record.id, &summary);
    if (status == WAL_OK) {
        return wal__fail(&op->error, WAL_EEXISTS, 0, NULL, 0,
                         "there is a session \"%.*s\" already",
                         (int)record.id.size, (const char *)record.id.data);
    }
    if (status != WAL_ENOTFOUND) {
        return wal__fail(&op->error, status, 0, NULL, 0, "the catalogue: %s",
                         wal_status_text(status));
    }
    if (core->catalogue.last_session == UINT32_MAX - 1) {
        return wal__fail(&op->error, WAL_ETOOBIG, 0, NULL, 0,
                         "the store has no more session numbers");
    }
    *number = core->catalogue.last_session + 1;
    for (uint32_t i = 0; i < op->frame_count; i++) {
        op->frames[i].frame.session = *number;
    }
    op->frames[0].frame.flags = WAL__FRAME_FIRST;
    op->frames[op->frame_count - 1].frame.flags |= WAL__FRAME_LAST;
    return WAL_OK;
}

static enum wal_status resolve_create(void *ctx, struct wal__op *op)
{
    struct fork_request *request = op->subject;

    return resolve_new(ctx, op, &request->number);
}

static enum wal_status check_record(const struct wal_session_options *options,
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
    enum wal_status status = WAL_OK;

    if (options->struct_size != sizeof(*options)) {
        return wal__fail(error, WAL_EINVAL, 0, NULL, 0,
                         "the session options' struct_size is %u; it must be "
                         "%zu",
                         options->struct_size, sizeof(*options));
    }
    if (options->id.size > WAL__ID_MAX) {
        return wal__fail(error, WAL_EINVAL, 0, NULL, 0,
                         "the session's id has %" PRIu64
                         " bytes; 1 to %d are possible",
                         options->id.size, WAL__ID_MAX);
    }
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (status == WAL_OK) {
            status = wal__text_check(*texts[i].slice, texts[i].max,
                                     texts[i].what, texts[i].span, error);
        }
    }
    if (status == WAL_OK && options->metadata.size > 0) {
        status =
            wal__text_check_json(options->metadata, WAL__METADATA_MAX, true,
                                 "metadata", &record->metadata, error);
    }
    if (status == WAL_OK && options->id.size == 0 && options->id.data != NULL) {
        status = wal__fail(error, WAL_EINVAL, 0, NULL, 0,
                           "the session's id is empty");
    }
    record->schema_version =
        options->schema_version != 0 ? options->schema_version : 1;
    return status;
}

/* An operation whose first frame is the session's record. */
static enum wal_status create_op(struct wal__core *core,
                                 const struct wal__session_record *record,
                                 struct fork_request *request,
                                 struct wal__op **op, struct wal_error *error)
{
    size_t size = wal__session_record_size(record);
    struct wal__op *created = wal__op_create(core->env.heap);
    struct wal__op_frame *frame;
    uint8_t *payload;

    if (created == NULL ||
        wal__op_add(created, (uint32_t)size, &frame, &payload) != WAL_OK) {
        wal__op_release(created);
        return wal__fail(error, WAL_ENOMEM, 0, NULL, 0, "no memory");
    }
    wal__session_record_encode(record, payload);
    frame->frame.type = WAL__FRAME_SESSION;
    frame->frame.id_hash = wal__id_hash(record->id.data, record->id.size);
    created->subject = request;
    created->demand.texts = size;
    *op = created;
    return WAL_OK;
}

/* Commits what makes the session, and gives a handle on it: which is there
 * before anything is written, so that a refusal means what it says. */
static enum wal_status commit_new(struct wal__core *core, struct wal__op *op,
                                  const struct fork_request *request,
                                  struct wal_session **session,
                                  struct wal_error *error)
{
    struct wal_session *handle = wal__session_alloc(core);
    enum wal_status status;

    if (handle == NULL) {
        return wal__fail(error, WAL_ENOMEM, 0, NULL, 0, "no memory");
    }
    status = wal__session_commit(core, op, error);
    if (status != WAL_OK) {
        wal__session_free(handle);
        return status;
    }
    handle->number = request->number;
    handle->text_size = op->demand.texts;
    *session = handle;
    return WAL_OK;
}

enum wal_status wal__session_create(struct wal__core *core,
                                    const struct wal_session_options *options,
                                    struct wal_session **session,
                                    struct wal_error *error)
{
    const struct wal_session_options none = {.struct_size = sizeof(none)};
    struct wal__session_record record = {0};
    struct fork_request request = {.core = core};
    char id[WAL__UUID_TEXT];
    struct wal__op *op = NULL;
    enum wal_status status;

    status = check_record(options == NULL ? &none : options, &record, error);
    if (status != WAL_OK) {
        return status;
    }
    if (record.id.size == 0) {
        wal__text_uuid(&core->env, id);
        record.id.data = (const uint8_t *)id;
        record.id.size = sizeof(id);
    }
    record.created_ms = core->env.io->now_ms(core->env.io->ctx);
    status = create_op(core, &record, &request, &op, error);
    if (status == WAL_OK) {
        op->resolve = resolve_create;
        wal__op_finish(op);
        op->demand.texts += WAL__ID_MAX;
        status = commit_new(core, op, &request, session, error);
    }
    wal__op_release(op);
    return status;
}

/* --- forks -------------------------------------------------------------- */

/* Who owns the fork point, and how deep it lies. */
static enum wal_status find_point(struct fork_request *request,
                                  struct wal__found *found, uint64_t *depth,
                                  uint32_t *sessions, struct wal_error *error)
{
    struct wal__core *core = request->core;
    struct wal__summary summary;
    struct wal__branch_slot *slot;
    enum wal_status status;

    *depth = 0;
    *sessions = 0;
    memset(found, 0, sizeof(*found));
    status = wal__core_branch(core, request->source, &slot, error);
    if (status != WAL_OK) {
        return status;
    }
    if (request->at.size > 0) {
        status =
            wal__core_find_id(core, request->source, request->at, found, error);
    } else if (wal__branch_head(&slot->branch, 0) != 0) {
        status = wal__core_find_sequence(core, request->source, 0,
                                         wal__branch_head(&slot->branch, 0),
                                         found, error);
    } else {
        return WAL_OK; /* an empty session: nothing is shared */
    }
    if (status == WAL_OK) {
        status = wal__catalogue_get(&core->catalogue, found->session, &summary);
    }
    if (status == WAL_OK) {
        *sessions = summary.depth + 1;
        status = wal__core_depth(core, found->session, found->stream,
                                 found->sequence, depth, error);
        *depth += status == WAL_OK;
    }
    return status;
}

/* The FORK record is written in full only now: its owner and depth are those
 * of this moment. Room for the longest texts was kept. */
static enum wal_status resolve_fork(void *ctx, struct wal__op *op)
{
    struct fork_request *request = op->subject;
    struct wal__op_frame *frame = &op->frames[1];
    struct wal__fork_record record = {0};
    struct wal__entry_record entry;
    struct wal__summary owner = {0};
    struct wal__summary source;
    struct wal__found found;
    struct wal__frame point;
    struct wal__span payload;
    struct wal__buf scratch;
    enum wal_status status;
    uint8_t *at = op->bytes.data + frame->offset;

    wal__buf_init(&scratch, op->heap);
    status = resolve_new(ctx, op, &request->number);
    if (status == WAL_OK) {
        status = find_point(request, &found, &record.inherited, &record.depth,
                            &op->error);
    }
    if (status == WAL_OK) {
        status = wal__catalogue_get(&request->core->catalogue, request->source,
                                    &source);
        owner = source;
    }
    if (status == WAL_OK && found.sequence != 0) {
        status = wal__catalogue_get(&request->core->catalogue, found.session,
                                    &owner);
        if (status == WAL_OK) {
            status = wal__log_read(&request->core->log, found.position,
                                   &scratch, &point, &payload, &op->error);
        }
        if (status == WAL_OK &&
            wal__entry_record_decode(payload, &entry) != WAL__FMT_OK) {
            status = WAL_ECORRUPT;
        }
        record.entry_id = entry.id;
    }
    if (status == WAL_OK && record.depth > WAL__LINEAGE_MAX) {
        status = wal__fail(&op->error, WAL_ETOOBIG, 0, NULL, 0,
                           "the lineage has %u sessions; %d are possible",
                           record.depth, WAL__LINEAGE_MAX);
    }
    if (status == WAL_OK) {
        record.stream = (uint8_t)found.stream;
        record.source_id = source.id;
        record.owner_id = owner.id;
        frame->frame.stored_size = (uint32_t)wal__fork_record_size(&record);
        frame->frame.raw_size = frame->frame.stored_size;
        frame->frame.parent = found.sequence;
        frame->frame.stream = record.stream;
        memset(at, 0, wal__frame_span(frame->frame.stored_size));
        wal__fork_record_encode(&record, at + WAL__FRAME_SIZE);
        frame->frame.data_crc =
            wal__crc32(0, at + WAL__FRAME_SIZE, frame->frame.stored_size);
    }
    wal__buf_deinit(&scratch);
    return status;
}

/* What the fork's record takes from its source. */
static void inherit(struct wal__session_record *record,
                    const struct wal_session_info *source)
{
    const struct {
        struct wal__span *span;
        const struct wal_slice *slice;
    } texts[] = {
        {&record->cwd, &source->cwd},
        {&record->project, &source->project},
        {&record->title, &source->title},
        {&record->metadata, &source->metadata},
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (texts[i].span->size == 0) {
            texts[i].span->data = texts[i].slice->data;
            texts[i].span->size = (size_t)texts[i].slice->size;
        }
    }
    record->parent_id.data = source->id.data;
    record->parent_id.size = (size_t)source->id.size;
}

static enum wal_status fork_op(struct wal__core *core,
                               const struct wal__session_record *record,
                               struct fork_request *request,
                               struct wal__op **op, struct wal_error *error)
{
    const uint32_t longest = 16 + 3 * WAL__ID_MAX;
    struct wal__op_frame *frame;
    uint8_t *payload;
    enum wal_status status = create_op(core, record, request, op, error);

    if (status != WAL_OK) {
        return status;
    }
    if (wal__op_add(*op, longest, &frame, &payload) != WAL_OK) {
        wal__op_release(*op);
        return wal__fail(error, WAL_ENOMEM, 0, NULL, 0, "no memory");
    }
    memset(payload, 0, longest);
    frame->frame.type = WAL__FRAME_FORK;
    (*op)->resolve = resolve_fork;
    wal__op_finish(*op);
    (*op)->demand.texts += WAL__ID_MAX;
    return WAL_OK;
}

enum wal_status wal__session_fork(struct wal_session *source,
                                  struct wal_slice at,
                                  const struct wal_session_options *options,
                                  struct wal_session **fork,
                                  struct wal_error *error)
{
    const struct wal_session_options none = {.struct_size = sizeof(none)};
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct fork_request request = {.core = source->core};
    struct wal__session_record record = {0};
    struct wal_session *reader = NULL;
    char id[WAL__UUID_TEXT];
    struct wal__op *op = NULL;
    enum wal_status status;

    request.source = source->number;
    status = check_record(options == NULL ? &none : options, &record, error);
    if (status == WAL_OK) {
        status = wal__text_check(at, WAL__ID_MAX, "fork point's id",
                                 &request.at, error);
    }
    if (status == WAL_OK) {
        /* A handle of its own: the source's info belongs to its callers. */
        status =
            wal__session_handle(source->core, source->number, &reader, error);
    }
    if (status == WAL_OK) {
        status = wal__session_status(reader, &info, error);
    }
    if (status == WAL_OK) {
        inherit(&record, &info);
        record.flags = WAL__SESSION_RECORD_FORK;
        record.schema_version = options != NULL && options->schema_version
                                    ? options->schema_version
                                    : info.schema_version;
        record.created_ms =
            source->core->env.io->now_ms(source->core->env.io->ctx);
        if (record.id.size == 0) {
            wal__text_uuid(&source->core->env, id);
            record.id.data = (const uint8_t *)id;
            record.id.size = sizeof(id);
        }
        status = fork_op(source->core, &record, &request, &op, error);
    }
    if (status == WAL_OK) {
        status = commit_new(source->core, op, &request, fork, error);
        wal__op_release(op);
    }
    wal__session_free(reader);
    return status;
}

/* --- damage ------------------------------------------------------------- */

static enum wal_status resolve_accept(void *ctx, struct wal__op *op)
{
    (void)ctx;
    op->frames[0].frame.flags = WAL__FRAME_FIRST | WAL__FRAME_LAST;
    return WAL_OK;
}

enum wal_status wal__session_accept(struct wal_session *session,
                                    struct wal_error *error)
{
    struct wal__core *core = session->core;
    struct wal__op *op = wal__op_create(core->env.heap);
    struct wal__op_frame *frame;
    enum wal_status status;
    uint8_t *payload;

    if (op == NULL || wal__op_add(op, 0, &frame, &payload) != WAL_OK) {
        wal__op_release(op);
        return wal__fail(error, WAL_ENOMEM, 0, NULL, 0, "no memory");
    }
    frame->frame.type = WAL__FRAME_ACCEPT;
    frame->frame.session = session->number;
    op->resolve = resolve_accept;
    wal__op_finish(op);
    op->demand.texts = session->text_size;
    status = wal__session_commit(core, op, error);
    wal__op_release(op);
    return status;
}
