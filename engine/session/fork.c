/*
 * fork.c - a session that shares another's entries up to one of them (SPEC.md
 * 5.3): a SESSION and a FORK record, and when it is made to go on from a
 * summary, the compaction that says so.
 */
#include <inttypes.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/session/batch.h"
#include "engine/session/create.h"
#include "engine/session/payload.h"
#include "engine/session/text.h"
#include "format/crc32.h"

enum {
    FORK_FRAME = 1,
    COMPACTION_FRAME = 2
};

/* Who owns the fork point, and how deep it lies. */
static enum wal_status find_point(struct wal__new_session *made,
                                  struct wal__found *found, uint64_t *depth,
                                  uint32_t *sessions, struct wal_error *error)
{
    struct wal__core *core = made->core;
    struct wal__summary summary;
    struct wal__branch_slot *slot;
    enum wal_status status;

    *depth = 0;
    *sessions = 0;
    memset(found, 0, sizeof(*found));
    status = wal__core_branch(core, made->source, &slot, error);
    if (status != WAL_OK) {
        return status;
    }
    if (made->at.size > 0) {
        status = wal__core_find_id(core, made->source, made->at, found, error);
    } else if (wal__branch_head(&slot->branch, 0) != 0) {
        status = wal__core_find_sequence(core, made->source, 0,
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

/* The id of the fork point, in scratch or the segment's map. */
static enum wal_status read_point(struct wal__core *core,
                                  const struct wal__found *found,
                                  struct wal__buf *scratch,
                                  struct wal__fork_record *record,
                                  struct wal_error *error)
{
    struct wal__entry_record entry;
    struct wal__summary owner;
    struct wal__frame point;
    struct wal__span payload;
    enum wal_status status =
        wal__catalogue_get(&core->catalogue, found->session, &owner);

    if (status == WAL_OK) {
        status = wal__log_read(&core->log, found->position, scratch, &point,
                               &payload, error);
    }
    if (status == WAL_OK &&
        wal__entry_record_decode(payload, &entry) != WAL__FMT_OK) {
        status = WAL_ECORRUPT;
    }
    if (status == WAL_OK) {
        record->owner = owner.number;
        record->owner_id = owner.id;
        record->entry_id = entry.id;
    }
    return status;
}

/* The FORK record is written in full only now: its owner and depth are those
 * of this moment. Room for the longest texts was kept. */
static void encode_fork(struct wal__op *op,
                        const struct wal__fork_record *record,
                        uint64_t sequence)
{
    struct wal__op_frame *frame = &op->frames[FORK_FRAME];
    uint8_t *at = op->bytes.data + frame->offset;

    frame->frame.stored_size = (uint32_t)wal__fork_record_size(record);
    frame->frame.raw_size = frame->frame.stored_size;
    frame->frame.parent = sequence;
    frame->frame.stream = record->stream;
    memset(at, 0, wal__frame_span(frame->frame.stored_size));
    wal__fork_record_encode(record, at + WAL__FRAME_SIZE);
    frame->frame.data_crc =
        wal__crc32(0, at + WAL__FRAME_SIZE, frame->frame.stored_size);
}

/* The compaction goes under the fork point, and keeps what is on the way. */
static enum wal_status resolve_compaction(struct wal__new_session *made,
                                          struct wal__op *op, uint64_t point)
{
    struct wal__frame *frame = &op->frames[COMPACTION_FRAME].frame;
    struct wal__found kept = {0};
    bool on = false;
    enum wal_status status = wal__core_find_id(
        made->core, made->source, made->first_kept, &kept, &op->error);

    if (status == WAL_OK) {
        status = wal__core_is_on_path(made->core, made->source, 0, point,
                                      kept.sequence, &on, &op->error);
    }
    if (status == WAL_ENOTFOUND || (status == WAL_OK && !on)) {
        return wal__fail(&op->error, WAL_ENOTFOUND, 0, NULL, 0,
                         "the entry \"%.*s\" is not on the branch of the "
                         "head",
                         (int)made->first_kept.size,
                         (const char *)made->first_kept.data);
    }
    frame->parent = point;
    frame->flags |= WAL__FRAME_MOVES_HEAD;
    return status;
}

static enum wal_status resolve_fork(void *ctx, struct wal__op *op)
{
    struct wal__new_session *made = op->subject;
    struct wal__fork_record record = {0};
    struct wal__summary source;
    struct wal__found found;
    struct wal__buf scratch;
    enum wal_status status;

    wal__buf_init(&scratch, op->heap);
    status =
        wal__session_check(made->core, made->source, true, &source, &op->error);
    if (status == WAL_OK || status == WAL_EDAMAGED) {
        status = wal__new_session_resolve(ctx, op, &made->number);
    }
    if (status == WAL_OK) {
        status = find_point(made, &found, &record.inherited, &record.depth,
                            &op->error);
    }
    if (status == WAL_OK) {
        /* Loading others may have moved what the first look gave. */
        status =
            wal__catalogue_get(&made->core->catalogue, made->source, &source);
    }
    if (status == WAL_OK) {
        record.source = source.number;
        record.source_id = source.id;
        record.owner = source.number;
        record.owner_id = source.id;
        record.stream = (uint8_t)found.stream;
    }
    if (status == WAL_OK && found.sequence != 0) {
        status = read_point(made->core, &found, &scratch, &record, &op->error);
    }
    if (status == WAL_OK && record.depth > WAL__LINEAGE_MAX) {
        status = wal__fail(&op->error, WAL_ETOOBIG, 0, NULL, 0,
                           "the lineage has %u sessions; %d are possible",
                           record.depth, WAL__LINEAGE_MAX);
    }
    if (status == WAL_OK && made->first_kept.size > 0) {
        status = resolve_compaction(made, op, found.sequence);
    }
    if (status == WAL_OK) {
        made->depth = record.depth;
        encode_fork(op, &record, found.sequence);
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

/* SESSION and FORK; the second has room for the longest texts. */
static enum wal_status fork_op(struct wal__core *core,
                               const struct wal__session_record *record,
                               struct wal__new_session *made,
                               struct wal__op **op, struct wal_error *error)
{
    const uint32_t longest = WAL__FORK_SIZE_MAX;
    struct wal__op_frame *frame;
    uint8_t *payload;
    enum wal_status status = wal__new_session_op(core, record, made, op, error);

    if (status != WAL_OK) {
        return status;
    }
    if (wal__op_add(*op, longest, &frame, &payload) != WAL_OK) {
        wal__op_release(*op);
        *op = NULL;
        return wal__fail(error, WAL_ENOMEM, 0, NULL, 0, "no memory");
    }
    memset(payload, 0, longest);
    frame->frame.type = WAL__FRAME_FORK;
    (*op)->resolve = resolve_fork;
    (*op)->demand.texts += WAL__ID_MAX;
    return WAL_OK;
}

/* What a fork is made of, until it is committed. */
struct making {
    struct wal__new_session made;
    struct wal__session_record record;
    struct wal_session *reader; /* of the source: its record holds with it */
    char id[WAL__UUID_TEXT];
    struct wal__op *op;
};

static enum wal_status prepare(struct making *making,
                               struct wal_session *source,
                               const struct wal_session_options *options,
                               struct wal_error *error)
{
    const struct wal_session_options none = {.struct_size = sizeof(none)};
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal__session_record *record = &making->record;
    struct wal__core *core = source->core;
    enum wal_status status;

    making->made.core = core;
    making->made.source = source->number;
    status = wal__new_session_record(options == NULL ? &none : options, record,
                                     error);
    if (status == WAL_OK) {
        /* A handle of its own: the source's info belongs to its callers. */
        status =
            wal__session_handle(core, source->number, &making->reader, error);
    }
    if (status == WAL_OK) {
        status = wal__session_status(making->reader, &info, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    inherit(record, &info);
    record->flags = WAL__SESSION_RECORD_FORK;
    if (record->schema_version == 0) {
        record->schema_version = info.schema_version;
    }
    if (record->id.size == 0) {
        wal__text_uuid(&core->env, making->id);
        record->id.data = (const uint8_t *)making->id;
        record->id.size = sizeof(making->id);
    }
    status = wal__new_session_defaults(core, record, error);
    return status == WAL_OK
               ? fork_op(core, record, &making->made, &making->op, error)
               : status;
}

static void end(struct making *making)
{
    wal__op_release(making->op);
    wal__session_free(making->reader);
}

enum wal_status wal__session_fork(struct wal_session *source,
                                  struct wal_slice at,
                                  const struct wal_session_options *options,
                                  struct wal_session **fork,
                                  struct wal_error *error)
{
    struct making making = {.op = NULL};
    enum wal_status status = wal__text_check(at, WAL__ID_MAX, "fork point's id",
                                             &making.made.at, error);

    if (status == WAL_OK) {
        status = prepare(&making, source, options, error);
    }
    if (status == WAL_OK) {
        wal__op_finish(making.op);
        status = wal__new_session_commit(source->core, making.op, &making.made,
                                         fork, error);
    }
    end(&making);
    return status;
}

/* The entry that says what the fork goes on from. */
static enum wal_status add_compaction(struct making *making,
                                      struct wal__span payload,
                                      struct wal_error *error)
{
    const struct wal__env *env = &making->made.core->env;
    struct wal__entry_record record = {.form = WAL__ENTRY_FIELDS};
    struct wal__op_frame *frame;
    char id[WAL__UUID_TEXT];
    char now[WAL__TIME_TEXT];
    struct wal__outside outside = {0};
    enum wal_status status;
    uint8_t *at;

    wal__text_uuid(env, id);
    wal__text_now(env, now);
    record.id = (struct wal__span){(const uint8_t *)id, sizeof(id)};
    record.time = (struct wal__span){(const uint8_t *)now, sizeof(now)};
    record.payload = payload;
    status = wal__payload_put(making->made.core, WAL__KIND_COMPACTION_SUMMARY,
                              &record, &outside, &making->op->pack_end, error);
    if (status == WAL_OK) {
        status = wal__op_add(
            making->op, (uint32_t)wal__entry_record_size(&record), &frame, &at);
        if (status != WAL_OK) {
            wal__fail(error, status, 0, NULL, 0, "no memory");
        }
    }
    if (status == WAL_OK) {
        wal__entry_record_encode(&record, at);
    }
    wal__outside_deinit(&outside);
    if (status != WAL_OK) {
        return status;
    }
    frame->frame.type = WAL__FRAME_ENTRY;
    frame->frame.kind = WAL__KIND_COMPACTION_SUMMARY;
    frame->frame.id_hash = wal__id_hash(id, sizeof(id));
    memcpy(making->op->result.last_id, id, sizeof(id));
    making->op->result.last_id[sizeof(id)] = '\0';
    return WAL_OK;
}

enum wal_status wal__session_compact_into(
    struct wal_session *source, const struct wal_compact_options *options,
    struct wal_session **fork, struct wal_append_result *result,
    struct wal_error *error)
{
    struct making making = {.op = NULL};
    struct wal__buf payload;
    enum wal_status status;

    wal__buf_init(&payload, source->core->env.heap);
    status = wal__compaction_payload(options, &making.made.first_kept, &payload,
                                     error);
    if (status == WAL_OK) {
        status = prepare(&making, source, options->into, error);
    }
    if (status == WAL_OK) {
        struct wal__span span = {payload.data, payload.size};

        status = add_compaction(&making, span, error);
    }
    if (status == WAL_OK) {
        wal__op_finish(making.op);
        status = wal__new_session_commit(source->core, making.op, &making.made,
                                         fork, error);
    }
    if (status == WAL_OK && result != NULL) {
        *result = making.op->result;
        result->struct_size = sizeof(*result);
        result->appended = 1;
    }
    end(&making);
    wal__buf_deinit(&payload);
    return status;
}
