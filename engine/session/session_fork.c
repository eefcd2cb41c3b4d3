/*
 * session_fork.c - forks: sessions that share another session's entries up to a
 * fork point (SPEC.md 5.3). A fork is a SESSION and a FORK record, and a
 * compaction_summary entry when it continues from a summary.
 *
 * Any thread; the resolve functions run in the leader, under the append lock
 * and the state lock for writing.
 */
#include <inttypes.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/session/session_create.h"
#include "engine/store/input_text.h"
#include "engine/store/payload.h"
#include "engine/write/write_batch.h"
#include "format/bytes/assert.h"
#include "format/bytes/crc32.h"

enum {
    FORK_FRAME = 1,
    COMPACTION_FRAME = 2
};

/* Finds the fork point: its location, its depth + 1, and the number of sessions
 * that the fork descends from. */
static enum wal_status find_fork_point(struct wal__new_session *new_session,
                                       struct wal__entry_location *found,
                                       uint64_t *depth, uint32_t *sessions,
                                       struct wal_error *error)
{
    struct wal__core *core = new_session->core;
    struct wal__summary summary;
    struct wal__branch_slot *slot;
    enum wal_status status;

    *depth = 0;
    *sessions = 0;
    memset(found, 0, sizeof(*found));
    status = wal__core_get_branch(core, new_session->source, &slot, error);
    if (status != WAL_OK) {
        return status;
    }
    if (core->env.io->forgets) {
        return WAL_OK; /* there are no entries */
    }
    if (new_session->fork_point.size > 0) {
        status = wal__core_find_id(core, new_session->source,
                                   new_session->fork_point, found, error);
        if (status == WAL_OK && found->stream >= WAL__STREAM_COUNT) {
            return wal__core_fail_delta(WAL_ENOTFOUND, new_session->fork_point,
                                        error);
        }
    } else if (!new_session->sees_none &&
               wal__branch_head(&slot->branch, 0) != 0) {
        status = wal__core_find_sequence(core, new_session->source, 0,
                                         wal__branch_head(&slot->branch, 0),
                                         found, error);
    } else {
        return WAL_OK; /* before the first entry: nothing is inherited */
    }
    if (status != WAL_OK) {
        return status;
    }
    status = wal__catalogue_get(&core->catalogue, found->session, &summary);
    if (status != WAL_OK) {
        return status;
    }
    *sessions = summary.depth + 1;
    status = wal__core_entry_depth(core, found->session, found->stream,
                                   found->sequence, depth, error);
    *depth += status == WAL_OK;
    return status;
}

/* Reads the fork point's owner and id, in scratch or the segment's map. */
static enum wal_status read_fork_point(struct wal__core *core,
                                       const struct wal__entry_location *found,
                                       struct wal__record_buf *scratch,
                                       struct wal__fork_record *record,
                                       struct wal_error *error)
{
    struct wal__entry_record entry;
    struct wal__summary owner;
    struct wal__frame point;
    struct wal__span payload;
    enum wal_status status =
        wal__catalogue_get(&core->catalogue, found->session, &owner);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__log_read(&core->log, found->position, scratch, &point,
                           &payload, error);
    if (status != WAL_OK) {
        return status;
    }
    if (wal__entry_record_decode(payload, &entry) != WAL__FMT_OK) {
        return WAL_ECORRUPT;
    }
    record->owner = owner.number;
    record->owner_id = owner.id;
    record->entry_id = entry.id;
    return WAL_OK;
}

/* Encodes the FORK record again, with the owner and depth found under the
 * append lock. Space for the longest texts was reserved. */
static void encode_fork(struct wal__op *op,
                        const struct wal__fork_record *record,
                        uint64_t sequence)
{
    struct wal__op_frame *frame = &op->frames[FORK_FRAME];
    uint8_t *at = op->bytes.data + frame->offset;

    WAL__ASSERT(sequence < op->next_sequence);
    WAL__ASSERT(wal__fork_record_size(record) <= WAL__FORK_SIZE_MAX);
    frame->frame.stored_size = (uint32_t)wal__fork_record_size(record);
    frame->frame.raw_size = frame->frame.stored_size;
    frame->frame.parent = sequence;
    frame->frame.stream = record->stream;
    memset(at, 0, wal__frame_total_size(frame->frame.stored_size));
    wal__fork_record_encode(record, at + WAL__FRAME_SIZE);
    frame->frame.data_crc =
        wal__crc32(0, at + WAL__FRAME_SIZE, frame->frame.stored_size);
}

/* Sets the compaction's parent to the fork point; its first kept entry must be
 * on the path. */
static enum wal_status resolve_compaction(struct wal__new_session *new_session,
                                          struct wal__op *op, uint64_t point)
{
    struct wal__frame *frame = &op->frames[COMPACTION_FRAME].frame;
    struct wal__entry_location kept = {0};
    bool on_path = false;
    enum wal_status status =
        wal__core_find_id(new_session->core, new_session->source,
                          new_session->first_kept, &kept, &op->error);

    WAL__ASSERT(op->frame_count > COMPACTION_FRAME);
    if (status == WAL_OK) {
        status =
            wal__core_is_on_path(new_session->core, new_session->source, 0,
                                 point, kept.sequence, &on_path, &op->error);
    }
    if (status == WAL_ENOTFOUND || (status == WAL_OK && !on_path)) {
        return wal__fail(&op->error, WAL_ENOTFOUND,
                         "the entry \"%.*s\" is not on the branch of the "
                         "head",
                         (int)new_session->first_kept.size,
                         (const char *)new_session->first_kept.data);
    }
    frame->parent = point;
    frame->flags |= WAL__FRAME_MOVES_HEAD;
    return status;
}

static enum wal_status resolve_fork(void *ctx, struct wal__op *op)
{
    struct wal__new_session *new_session = op->request;
    struct wal__fork_record record = {0};
    struct wal__summary source;
    struct wal__entry_location found;
    struct wal__record_buf scratch;
    enum wal_status status;

    wal__record_buf_init(&scratch, op->heap);
    status = wal__session_check_writable(new_session->core, new_session->source,
                                         true, &source, &op->error);
    if (status != WAL_OK && status != WAL_EDAMAGED) {
        goto done;
    }
    status = wal__new_session_resolve(ctx, op, &new_session->number);
    if (status != WAL_OK) {
        goto done;
    }
    status = find_fork_point(new_session, &found, &record.inherited,
                             &record.depth, &op->error);
    if (status != WAL_OK) {
        goto done;
    }
    /* Loading branches may have moved the texts of the first read. */
    status = wal__catalogue_get(&new_session->core->catalogue,
                                new_session->source, &source);
    if (status != WAL_OK) {
        goto done;
    }
    record.source = source.number;
    record.source_id = source.id;
    record.owner = source.number;
    record.owner_id = source.id;
    record.stream = (uint8_t)found.stream;
    if (found.sequence != 0) {
        status = read_fork_point(new_session->core, &found, &scratch, &record,
                                 &op->error);
        if (status != WAL_OK) {
            goto done;
        }
    }
    if (record.depth > WAL__LINEAGE_MAX) {
        status = wal__fail(&op->error, WAL_ETOOBIG,
                           "the lineage has %u sessions; the limit is %d",
                           record.depth, WAL__LINEAGE_MAX);
        goto done;
    }
    if (new_session->first_kept.size > 0 &&
        new_session->core->env.io->forgets) {
        op->frames[FORK_FRAME].frame.flags |= WAL__FRAME_LAST;
        op->frames[COMPACTION_FRAME].skipped = true;
    } else if (new_session->first_kept.size > 0) {
        status = resolve_compaction(new_session, op, found.sequence);
        if (status != WAL_OK) {
            goto done;
        }
    }
    new_session->depth = record.depth;
    encode_fork(op, &record, found.sequence);
done:
    wal__record_buf_deinit(&scratch);
    return status;
}

/* Copies unset fields of the fork's record from its source. */
static void copy_source_texts(struct wal__session_record *record,
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

/* Creates the operation of SESSION and FORK; FORK has space for the longest
 * texts. */
static enum wal_status create_fork_op(struct wal__core *core,
                                      const struct wal__session_record *record,
                                      struct wal__new_session *new_session,
                                      struct wal__op **op,
                                      struct wal_error *error)
{
    const uint32_t size_max = WAL__FORK_SIZE_MAX;
    struct wal__op_frame *frame;
    uint8_t *payload;
    enum wal_status status =
        wal__new_session_create_op(core, record, new_session, op, error);

    if (status != WAL_OK) {
        return status;
    }
    if (wal__op_add_frame(*op, size_max, &frame, &payload) != WAL_OK) {
        wal__op_release(*op);
        *op = NULL;
        return wal__no_memory(error);
    }
    WAL__ASSERT((*op)->frame_count == FORK_FRAME + 1);
    memset(payload, 0, size_max);
    frame->frame.type = WAL__FRAME_FORK;
    (*op)->resolve = resolve_fork;
    (*op)->reservation.texts += WAL__ID_MAX;
    return WAL_OK;
}

/* A fork that is being built, until it is committed. */
struct fork_build {
    struct wal__new_session new_session;
    struct wal__session_record record;
    /* of the source; owns texts that `record` borrows */
    struct wal_session *reader;
    char id[WAL__UUID_TEXT];
    struct wal__op *op;
};

static enum wal_status prepare(struct fork_build *fork_build,
                               struct wal_session *source,
                               const struct wal_session_options *options,
                               struct wal_error *error)
{
    const struct wal_session_options none = {.struct_size = sizeof(none)};
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal__session_record *record = &fork_build->record;
    struct wal__core *core = source->core;
    enum wal_status status;

    fork_build->new_session.core = core;
    fork_build->new_session.source = source->number;
    status = wal__new_session_init_record(options == NULL ? &none : options,
                                          record, error);
    if (status == WAL_OK) {
        /* A separate handle: the caller owns the info texts of its handle. */
        status =
            wal__session_open(core, source->number, &fork_build->reader, error);
    }
    if (status == WAL_OK) {
        status = wal__session_get_info(fork_build->reader, &info, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    copy_source_texts(record, &info);
    record->flags = WAL__SESSION_RECORD_FORK;
    if (record->schema_version == 0) {
        record->schema_version = info.schema_version;
    }
    if (record->id.size == 0) {
        wal__text_uuid(&core->env, fork_build->id);
        record->id.data = (const uint8_t *)fork_build->id;
        record->id.size = sizeof(fork_build->id);
    }
    status = wal__new_session_set_defaults(core, record, error);
    return status == WAL_OK
               ? create_fork_op(core, record, &fork_build->new_session,
                                &fork_build->op, error)
               : status;
}

static void end(struct fork_build *fork_build)
{
    wal__op_release(fork_build->op);
    wal__session_free(fork_build->reader);
}

enum wal_status wal__session_fork(struct wal_session *source,
                                  struct wal_slice at, bool sees_none,
                                  const struct wal_session_options *options,
                                  struct wal_session **fork,
                                  struct wal_error *error)
{
    struct fork_build fork_build = {.op = NULL,
                                    .new_session.sees_none = sees_none};
    enum wal_status status =
        wal__text_check(at, WAL__ID_MAX, "fork point's id",
                        &fork_build.new_session.fork_point, error);

    if (status == WAL_OK) {
        status = prepare(&fork_build, source, options, error);
    }
    if (status == WAL_OK) {
        wal__op_finish(fork_build.op);
        status = wal__new_session_commit(source->core, fork_build.op,
                                         &fork_build.new_session, fork, error);
    }
    end(&fork_build);
    return status;
}

/* Adds the compaction_summary entry that the fork continues from. */
static enum wal_status add_compaction(struct fork_build *fork_build,
                                      struct wal__span payload,
                                      struct wal_error *error)
{
    const struct wal__env *env = &fork_build->new_session.core->env;
    struct wal__entry_record record = {.form = WAL__ENTRY_FIELDS};
    struct wal__op_frame *frame;
    char id[WAL__UUID_TEXT];
    char now[WAL__TIME_TEXT];
    struct wal__out_of_line out_of_line = {0};
    enum wal_status status;
    uint8_t *at;

    wal__text_uuid(env, id);
    wal__text_now(env, now);
    record.id = (struct wal__span){(const uint8_t *)id, sizeof(id)};
    record.time = (struct wal__span){(const uint8_t *)now, sizeof(now)};
    record.payload = payload;
    status = wal__payload_store(fork_build->new_session.core,
                                WAL__KIND_COMPACTION_SUMMARY, &record,
                                &out_of_line, fork_build->op, error);
    if (status == WAL_OK) {
        status = wal__op_add_frame(fork_build->op,
                                   (uint32_t)wal__entry_record_size(&record),
                                   &frame, &at);
        if (status != WAL_OK) {
            status = wal__no_memory(error);
        }
    }
    if (status == WAL_OK) {
        wal__entry_record_encode(&record, at);
    }
    wal__out_of_line_deinit(&out_of_line);
    if (status != WAL_OK) {
        return status;
    }
    WAL__ASSERT(fork_build->op->frame_count == COMPACTION_FRAME + 1);
    frame->frame.type = WAL__FRAME_ENTRY;
    frame->frame.kind = WAL__KIND_COMPACTION_SUMMARY;
    frame->frame.id_hash = wal__id_hash(id, sizeof(id));
    memcpy(fork_build->op->result.last_id, id, sizeof(id));
    fork_build->op->result.last_id[sizeof(id)] = '\0';
    return WAL_OK;
}

enum wal_status wal__session_compact_into(
    struct wal_session *source, const struct wal_compact_options *options,
    struct wal_session **fork, struct wal_append_result *result,
    struct wal_error *error)
{
    struct fork_build fork_build = {.op = NULL};
    struct wal__buf payload;
    enum wal_status status;

    wal__buf_init(&payload, source->core->env.heap);
    status = wal__payload_build_compaction(
        options, &fork_build.new_session.first_kept, &payload, error);
    if (status == WAL_OK) {
        status = prepare(&fork_build, source, options->into, error);
    }
    if (status == WAL_OK) {
        struct wal__span span = {payload.data, payload.size};

        status = add_compaction(&fork_build, span, error);
    }
    if (status == WAL_OK) {
        wal__op_finish(fork_build.op);
        status = wal__new_session_commit(source->core, fork_build.op,
                                         &fork_build.new_session, fork, error);
    }
    if (status == WAL_OK && result != NULL) {
        *result = fork_build.op->result;
        result->struct_size = sizeof(*result);
        result->appended = 1;
    }
    end(&fork_build);
    wal__buf_deinit(&payload);
    return status;
}
