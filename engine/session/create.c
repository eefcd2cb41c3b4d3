/*
 * create.c - handles of sessions: a session that is opened, created (SPEC.md
 * 5.4), or forked, which shares another session's entries up to a fork point
 * (SPEC.md 5.3). A fork is a SESSION and a FORK record, and a
 * compaction_summary entry when it continues from a summary.
 *
 * Any thread; the resolve functions run in the leader, under the append lock and the state lock for
 * writing.
 */
#include "engine/session/session.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/session/write_batch.h"
#include "engine/store/input_text.h"
#include "engine/store/payload.h"
#include "format/bytes/assert.h"
#include "format/bytes/crc32.h"
#include "format/segment/segment_fmt.h"

/* A session that is being created, resolved under the append lock. */
struct wal__new_session {
    struct wal__core *core;
    uint32_t number;     /* number of the new session */
    bool is_only;        /* no other session of its cwd may be listed */
    uint32_t durability; /* enum wal_durability */
    /* For a fork. */
    uint32_t depth; /* sessions it descends from; set when resolved */
    uint32_t source;
    struct wal__span fork_point; /* entry id; empty: the head */
    bool sees_none;              /* the fork is before the first entry */
    /* entry id, of a compaction in the fork, or empty */
    struct wal__span first_kept;
};

/* Allocates a handle without a session; NULL when out of memory. */
static struct wal_session *session_alloc(struct wal__core *core)
{
    struct wal_session *handle = wal__heap_zalloc(core->env.heap, sizeof(*handle));

    if (handle != NULL) {
        handle->core = core;
        wal__core_retain(core);
        pthread_mutex_init(&handle->info_mutex, NULL);
        wal__buf_init(&handle->info_texts, core->env.heap);
        wal__lookup_init(&handle->lookup);
    }
    return handle;
}

enum wal_status wal__session_open(struct wal__core *core, uint32_t number,
                                  struct wal_session **session, struct wal_error *error)
{
    struct wal_session *handle = session_alloc(core);
    struct wal__summary summary;
    enum wal_status status;

    if (handle == NULL) {
        return wal__no_memory(error);
    }
    status = wal__core_read_lock(core, error);
    if (status == WAL_OK) {
        status = wal__catalogue_get(&core->catalogue, number, &summary);
        if (status == WAL_OK) {
            handle->text_size = wal__summary_text_size(&summary);
            handle->depth = summary.depth;
        }
        wal__core_unlock(core);
    }
    if (status != WAL_OK) {
        wal__session_free(handle);
        return status;
    }
    handle->number = number;
    *session = handle;
    return WAL_OK;
}

void wal__session_free(struct wal_session *session)
{
    struct wal__core *core;

    if (session == NULL) {
        return;
    }
    core = session->core;
    if (session->claim.is_held && wal__control_is_same_process(&core->control)) {
        wal__core_release_claim(core, &session->claim);
    }
    pthread_mutex_destroy(&session->info_mutex);
    wal__buf_deinit(&session->info_texts);
    wal__lookup_deinit(&session->lookup);
    wal__heap_free(core->env.heap, session);
    wal__core_release(core);
}

enum wal_status wal__session_commit(struct wal__core *core, struct wal__op *op,
                                    struct wal_error *error)
{
    enum wal_status status = wal__committer_submit(&core->committer, op, false, error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__committer_wait(&core->committer, op, -1);
    if (status != WAL_OK) {
        wal__error_copy(error, &op->error);
    }
    return status;
}

/* Under the append lock: checks that the id is free, and sets the session number of all frames. */
static enum wal_status new_session_resolve(struct wal__core *core, struct wal__op *op,
                                           uint32_t *number)
{
    struct wal__session_record record;
    struct wal__summary summary;
    enum wal_status status;

    WAL__ASSERT(op->frame_count > 0);
    if (wal__session_record_decode(wal__batch_payload(op, 0), WAL__FORMAT_VERSION, &record) !=
        WAL__FMT_OK) {
        return wal__invalid(&op->error, "the SESSION record is not valid");
    }
    status = wal__catalogue_find(&core->catalogue, record.id, &summary);
    if (status == WAL_OK && (summary.flags & WAL__SUMMARY_TRASHED) != 0) {
        (void)wal__session_fail_trashed(record.id, &op->error);
        wal__error_set_actual(&op->error, record.id.data, record.id.size);
        return WAL_ETRASHED;
    }
    if (status == WAL_OK) {
        wal__fail(&op->error, WAL_EEXISTS, "session \"%.*s\" already exists", (int)record.id.size,
                  (const char *)record.id.data);
        wal__error_set_actual(&op->error, record.id.data, record.id.size);
        return WAL_EEXISTS;
    }
    if (status != WAL_ENOTFOUND) {
        return wal__fail(&op->error, status, "cannot read the catalogue: %s",
                         wal_status_text(status));
    }
    if (core->catalogue.last_session == UINT32_MAX - 1) {
        return wal__fail(&op->error, WAL_ETOOBIG, "the store has no free session number");
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
static enum wal_status check_only(const struct wal__core *core, struct wal__op *op)
{
    struct wal__catalogue_filter filter = {.is_trash = false};
    struct wal__catalogue_iter iter = {.heap = core->env.heap};
    struct wal__session_record record;
    struct wal__summary other;
    enum wal_status status;

    if (wal__session_record_decode(wal__batch_payload(op, 0), WAL__FORMAT_VERSION, &record) !=
        WAL__FMT_OK) {
        return wal__invalid(&op->error, "the SESSION record is not valid");
    }
    filter.cwd = record.cwd;
    status = wal__catalogue_iter_init(&iter, &core->catalogue, &filter);
    if (status == WAL_OK) {
        status = wal__catalogue_iter_next(&iter, &core->catalogue, &other);
        wal__catalogue_iter_deinit(&iter);
    }
    if (status == WAL_OK) {
        return wal__fail(&op->error, WAL_EEXISTS, "session \"%.*s\" already exists",
                         (int)other.id.size, (const char *)other.id.data);
    }
    return status == WAL_END ? WAL_OK
                             : wal__fail(&op->error, status, "cannot read the catalogue: %s",
                                         wal_status_text(status));
}

static enum wal_status resolve_create(void *ctx, struct wal__op *op)
{
    struct wal__new_session *new_session = op->request;
    enum wal_status status = new_session->is_only ? check_only(ctx, op) : WAL_OK;

    return status == WAL_OK ? new_session_resolve(ctx, op, &new_session->number) : status;
}

/* Checks the caller's options and converts them to a record, which borrows from them. */
static enum wal_status new_session_init_record(const struct wal_session_options *options,
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
                            "the session's id has %" PRIu64 " bytes; the limits are 1 and %d",
                            options->id.size, WAL__ID_MAX);
    }
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        status =
            wal__text_check(*texts[i].slice, texts[i].max, texts[i].what, texts[i].span, error);
        if (status != WAL_OK) {
            return status;
        }
    }
    if (options->metadata.size > 0) {
        status = wal__text_check_json(options->metadata, WAL__METADATA_MAX, true, "metadata",
                                      &record->metadata, error);
        if (status != WAL_OK) {
            return status;
        }
    }
    if (options->id.size == 0 && options->id.data != NULL) {
        return wal__invalid(error, "the session's id is empty");
    }
    if (options->durability > WAL_WRITTEN) {
        return wal__invalid(error, "a session is created with WAL_DURABLE or WAL_WRITTEN");
    }
    record->schema_version = options->schema_version;
    record->created_ms = options->created_ms;
    return WAL_OK;
}

static enum wal_status reject_schema(uint32_t requested, uint32_t required, struct wal_error *error)
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

/* Sets the fields that the options left unset. WAL_ESCHEMA. */
static enum wal_status new_session_set_defaults(const struct wal__core *core,
                                                struct wal__session_record *record,
                                                struct wal_error *error)
{
    if (record->created_ms == 0) {
        record->created_ms = core->env.io->now_ms(core->env.io->ctx);
    }
    if (record->schema_version == 0) {
        record->schema_version = core->schema_version != 0 ? core->schema_version : 1;
    }
    if (core->schema_version != 0 && record->schema_version != core->schema_version) {
        return reject_schema(record->schema_version, core->schema_version, error);
    }
    return WAL_OK;
}

/* Creates an operation whose first frame is the record; op->request is new_session. */
static enum wal_status new_session_create_op(struct wal__core *core,
                                             const struct wal__session_record *record,
                                             struct wal__new_session *new_session,
                                             struct wal__op **op, struct wal_error *error)
{
    size_t size = wal__session_record_size(record);
    struct wal__op *created = wal__op_create(&core->ops);
    struct wal__op_frame *frame;
    uint8_t *payload;

    if (created == NULL || wal__op_add_frame(created, (uint32_t)size, &frame, &payload) != WAL_OK) {
        wal__op_release(created);
        return wal__no_memory(error);
    }
    WAL__ASSERT(size >= record->metadata.size);
    wal__session_record_encode(record, payload);
    frame->frame.type = WAL__FRAME_SESSION;
    frame->frame.id_hash = wal__id_hash(record->id.data, record->id.size);
    created->request = new_session;
    created->durability = new_session->durability;
    created->reservation.texts = size - record->metadata.size;
    *op = created;
    return WAL_OK;
}

/* Commits the operation and returns a handle on the new session. The handle is allocated before the
 * commit: after it, running out of memory would report a failure of a session that exists. */
static enum wal_status new_session_commit(struct wal__core *core, struct wal__op *op,
                                          const struct wal__new_session *new_session,
                                          struct wal_session **session, struct wal_error *error)
{
    struct wal_session *handle = session_alloc(core);
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

/* is_only: WAL_EEXISTS if the list of the directory options->cwd has a session; without one, the
 * list of the store. */
static enum wal_status session_create(struct wal__core *core,
                                      const struct wal_session_options *options, bool is_only,
                                      struct wal_session **session, struct wal_error *error)
{
    const struct wal_session_options none = {.struct_size = sizeof(none)};
    struct wal__session_record record = {0};
    struct wal__new_session new_session = {.core = core, .is_only = is_only};
    char id[WAL__UUID_TEXT];
    struct wal__op *op = NULL;
    enum wal_status status;

    if (options == NULL) {
        options = &none;
    }
    status = new_session_init_record(options, &record, error);
    if (status != WAL_OK) {
        return status;
    }
    new_session.durability = options->durability;
    if (record.id.size == 0) {
        wal__text_uuid(&core->env, id);
        record.id.data = (const uint8_t *)id;
        record.id.size = sizeof(id);
    }
    status = new_session_set_defaults(core, &record, error);
    if (status != WAL_OK) {
        return status;
    }
    status = new_session_create_op(core, &record, &new_session, &op, error);
    if (status == WAL_OK) {
        op->resolve = resolve_create;
        wal__op_finish(op);
        op->reservation.texts += WAL__ID_MAX;
        status = new_session_commit(core, op, &new_session, session, error);
    }
    wal__op_release(op);
    return status;
}

enum { FORK_FRAME = 1, COMPACTION_FRAME = 2 };

/* Finds the fork point: its location, its depth + 1, and the number of sessions that the fork
 * descends from. */
static enum wal_status find_fork_point(struct wal__new_session *new_session,
                                       struct wal__entry_location *found, uint64_t *depth,
                                       uint32_t *sessions, struct wal_error *error)
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
        status =
            wal__core_find_id(core, new_session->source, new_session->fork_point, found, error);
        if (status == WAL_OK && found->stream >= WAL__STREAM_COUNT) {
            return wal__core_fail_delta(WAL_ENOTFOUND, new_session->fork_point, error);
        }
    } else if (!new_session->sees_none && wal__branch_head(&slot->branch, 0) != 0) {
        status = wal__core_find_sequence(core, new_session->source, 0,
                                         wal__branch_head(&slot->branch, 0), found, error);
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
    status =
        wal__core_entry_depth(core, found->session, found->stream, found->sequence, depth, error);
    *depth += status == WAL_OK;
    return status;
}

/* Reads the fork point's owner and id, in scratch or the segment's map. */
static enum wal_status read_fork_point(struct wal__core *core,
                                       const struct wal__entry_location *found,
                                       struct wal__record_buf *scratch,
                                       struct wal__fork_record *record, struct wal_error *error)
{
    struct wal__entry_record entry;
    struct wal__summary owner;
    struct wal__frame point;
    struct wal__span payload;
    enum wal_status status = wal__catalogue_get(&core->catalogue, found->session, &owner);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__log_read(&core->log, found->position, scratch, &point, &payload, error);
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

/* Encodes the FORK record again, with the owner and depth found under the append lock. Space for
 * the longest texts was reserved. */
static void encode_fork(struct wal__op *op, const struct wal__fork_record *record,
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
    frame->frame.data_crc = wal__crc32(0, at + WAL__FRAME_SIZE, frame->frame.stored_size);
}

/* Sets the compaction's parent to the fork point; its first kept entry must be on the path. */
static enum wal_status resolve_compaction(struct wal__new_session *new_session, struct wal__op *op,
                                          uint64_t point)
{
    struct wal__frame *frame = &op->frames[COMPACTION_FRAME].frame;
    struct wal__entry_location kept = {0};
    bool on_path = false;
    enum wal_status status = wal__core_find_id(new_session->core, new_session->source,
                                               new_session->first_kept, &kept, &op->error);

    WAL__ASSERT(op->frame_count > COMPACTION_FRAME);
    if (status == WAL_OK) {
        status = wal__core_is_on_path(new_session->core, new_session->source, 0, point,
                                      kept.sequence, &on_path, &op->error);
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
    status = wal__session_check_writable(new_session->core, new_session->source, true, &source,
                                         &op->error);
    if (status != WAL_OK && status != WAL_EDAMAGED) {
        goto done;
    }
    status = new_session_resolve(ctx, op, &new_session->number);
    if (status != WAL_OK) {
        goto done;
    }
    status = find_fork_point(new_session, &found, &record.inherited, &record.depth, &op->error);
    if (status != WAL_OK) {
        goto done;
    }
    /* Loading branches may have moved the texts of the first read. */
    status = wal__catalogue_get(&new_session->core->catalogue, new_session->source, &source);
    if (status != WAL_OK) {
        goto done;
    }
    record.source = source.number;
    record.source_id = source.id;
    record.owner = source.number;
    record.owner_id = source.id;
    record.stream = (uint8_t)found.stream;
    if (found.sequence != 0) {
        status = read_fork_point(new_session->core, &found, &scratch, &record, &op->error);
        if (status != WAL_OK) {
            goto done;
        }
    }
    if (record.depth > WAL__LINEAGE_MAX) {
        status = wal__fail(&op->error, WAL_ETOOBIG, "the lineage has %u sessions; the limit is %d",
                           record.depth, WAL__LINEAGE_MAX);
        goto done;
    }
    if (new_session->first_kept.size > 0 && new_session->core->env.io->forgets) {
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

/* Creates the operation of SESSION and FORK; FORK has space for the longest texts. */
static enum wal_status create_fork_op(struct wal__core *core,
                                      const struct wal__session_record *record,
                                      struct wal__new_session *new_session, struct wal__op **op,
                                      struct wal_error *error)
{
    const uint32_t size_max = WAL__FORK_SIZE_MAX;
    struct wal__op_frame *frame;
    uint8_t *payload;
    enum wal_status status = new_session_create_op(core, record, new_session, op, error);

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

static enum wal_status prepare(struct fork_build *fork_build, struct wal_session *source,
                               const struct wal_session_options *options, struct wal_error *error)
{
    const struct wal_session_options none = {.struct_size = sizeof(none)};
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal__session_record *record = &fork_build->record;
    struct wal__core *core = source->core;
    enum wal_status status;

    if (options == NULL) {
        options = &none;
    }
    fork_build->new_session.core = core;
    fork_build->new_session.source = source->number;
    fork_build->new_session.durability = options->durability;
    status = new_session_init_record(options, record, error);
    if (status == WAL_OK) {
        /* A separate handle: the caller owns the info texts of its handle. */
        status = wal__session_open(core, source->number, &fork_build->reader, error);
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
    status = new_session_set_defaults(core, record, error);
    return status == WAL_OK
               ? create_fork_op(core, record, &fork_build->new_session, &fork_build->op, error)
               : status;
}

static void end(struct fork_build *fork_build)
{
    wal__op_release(fork_build->op);
    wal__session_free(fork_build->reader);
}

enum wal_status wal__session_fork(struct wal_session *source, struct wal_slice at, bool sees_none,
                                  const struct wal_session_options *options,
                                  struct wal_session **fork, struct wal_error *error)
{
    struct fork_build fork_build = {.op = NULL, .new_session.sees_none = sees_none};
    enum wal_status status = wal__text_check(at, WAL__ID_MAX, "fork point's id",
                                             &fork_build.new_session.fork_point, error);

    if (status == WAL_OK) {
        status = prepare(&fork_build, source, options, error);
    }
    if (status == WAL_OK) {
        wal__op_finish(fork_build.op);
        status =
            new_session_commit(source->core, fork_build.op, &fork_build.new_session, fork, error);
    }
    end(&fork_build);
    return status;
}

/* Adds the compaction_summary entry that the fork continues from. */
static enum wal_status add_compaction(struct fork_build *fork_build, struct wal__span payload,
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
    status = wal__payload_store(fork_build->new_session.core, WAL__KIND_COMPACTION_SUMMARY, &record,
                                &out_of_line, fork_build->op, error);
    if (status == WAL_OK) {
        status = wal__op_add_frame(fork_build->op, (uint32_t)wal__entry_record_size(&record),
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

enum wal_status wal__session_compact_into(struct wal_session *source,
                                          const struct wal_compact_options *options,
                                          struct wal_session **fork,
                                          struct wal_append_result *result, struct wal_error *error)
{
    struct fork_build fork_build = {.op = NULL};
    struct wal__buf payload;
    enum wal_status status;

    wal__buf_init(&payload, source->core->env.heap);
    status =
        wal__payload_build_compaction(options, &fork_build.new_session.first_kept, &payload, error);
    if (status == WAL_OK) {
        status = prepare(&fork_build, source, options->into, error);
    }
    if (status == WAL_OK) {
        struct wal__span span = {payload.data, payload.size};

        status = add_compaction(&fork_build, span, error);
    }
    if (status == WAL_OK) {
        wal__op_finish(fork_build.op);
        status =
            new_session_commit(source->core, fork_build.op, &fork_build.new_session, fork, error);
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

static enum wal_status open_session(struct wal__core *core, struct wal__span id,
                                    struct wal_session **session, struct wal_error *error)
{
    struct wal__summary summary = {0};
    enum wal_status status = wal__core_read_lock(core, error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__catalogue_find(&core->catalogue, id, &summary);
    wal__core_unlock(core);
    if (status == WAL_OK && (summary.flags & WAL__SUMMARY_TRASHED) != 0) {
        return wal__session_fail_trashed(id, error);
    }
    if (status != WAL_OK) {
        return wal__fail_at(error, status, 0, core->env.root, 0,
                            status == WAL_ENOTFOUND ? "there is no session \"%.*s\""
                                                    : "session \"%.*s\" cannot be looked up",
                            (int)id.size, (const char *)id.data);
    }
    return wal__session_open(core, summary.number, session, error);
}

/* is_only: see session_create. A store that forgets has any session that
 * is named (SPEC.md 5.11). */
static enum wal_status create(struct wal_store *store, const struct wal_session_options *options,
                              bool is_only, struct wal_session **session, struct wal_error *error)
{
    uint64_t looked = 0;
    struct wal__core *core = store == NULL ? NULL : &store->core;
    struct wal_session_options own;
    enum wal_status status = wal__check_writable(core, error);

    if (status == WAL_OK && session == NULL) {
        status = wal__invalid(error, "the place for the handle is null");
    }
    if (status == WAL_OK) {
        status = wal__struct_load(WAL__STRUCT(wal_session_options), &own, options, error);
    }
    for (bool again = status == WAL_OK; again;
         again = wal__core_invalidate_derived(core, status, &looked)) {
        status = session_create(core, &own, is_only, session, error);
        if (status == WAL_EEXISTS && !is_only && core->env.io->forgets) {
            status = open_session(core, (struct wal__span){own.id.data, (size_t)own.id.size},
                                  session, error);
        }
    }
    return status;
}

enum wal_status wal_session_create(struct wal_store *store,
                                   const struct wal_session_options *options,
                                   struct wal_session **session, struct wal_error *error)
{
    return create(store, options, false, session, error);
}

enum wal_status wal_session_open(struct wal_store *store, struct wal_slice id,
                                 struct wal_session **session, struct wal_error *error)
{
    uint64_t looked = 0;
    struct wal__core *core = store == NULL ? NULL : &store->core;
    struct wal__span span;
    enum wal_status status = wal__check_core(core, error);

    if (status == WAL_OK && session == NULL) {
        return wal__invalid(error, "the place for the handle is null");
    }
    if (status == WAL_OK) {
        status = wal__text_check(id, WAL__ID_MAX, "session's id", &span, error);
    }
    for (bool again = status == WAL_OK; again;
         again = wal__core_invalidate_derived(core, status, &looked)) {
        status = open_session(core, span, session, error);
    }
    if (status == WAL_ENOTFOUND && span.size > 0 && core->env.io->forgets) {
        const struct wal_session_options named = {.struct_size = sizeof(named), .id = id};

        status = create(store, &named, false, session, error);
    }
    return status;
}

void wal_session_close(struct wal_session *session)
{
    wal__session_free(session);
}

enum wal_status wal_session_fork(struct wal_session *session, struct wal_slice at,
                                 const struct wal_session_options *options,
                                 struct wal_session **fork, struct wal_error *error)
{
    uint64_t looked = 0;
    struct wal_session_options own;
    enum wal_status status = wal__check_writable(session == NULL ? NULL : session->core, error);

    if (status == WAL_OK && fork == NULL) {
        status = wal__invalid(error, "the place for the handle is null");
    }
    if (status == WAL_OK) {
        status = wal__struct_load(WAL__STRUCT(wal_session_options), &own, options, error);
    }
    for (bool again = status == WAL_OK; again;
         again = wal__core_invalidate_derived(session->core, status, &looked)) {
        status = wal__session_fork(session, at, false, &own, fork, error);
    }
    return status;
}

enum { OPEN_ATTEMPTS_MAX = 100 };

static enum wal_status open_latest(struct wal__core *core, struct wal_slice cwd,
                                   struct wal_session **session, struct wal_error *error)
{
    const struct wal_session_cursor_options options = {.struct_size = sizeof(options), .cwd = cwd};
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_session_cursor *list = NULL;
    enum wal_status status = wal__session_cursor_open(core, &options, &list, error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__session_cursor_next(list, &info, error);
    if (status == WAL_OK) {
        status = wal__session_open(core, info.number, session, error);
    } else if (status == WAL_END) {
        status =
            wal__fail_at(error, WAL_ENOTFOUND, 0, core->env.root, 0,
                         cwd.size == 0 ? "there is no session" : "there is no session of \"%.*s\"",
                         (int)cwd.size, (const char *)cwd.data);
    }
    wal__session_cursor_close(list);
    return status;
}

enum wal_status wal_session_open_latest(struct wal_store *store, struct wal_slice cwd,
                                        struct wal_session **session, struct wal_error *error)
{
    uint64_t looked = 0;
    struct wal__core *core = store == NULL ? NULL : &store->core;
    enum wal_status status = wal__check_core(core, error);

    if (status == WAL_OK && session == NULL) {
        status = wal__invalid(error, "the place for the handle is null");
    }
    for (bool again = status == WAL_OK; again;
         again = wal__core_invalidate_derived(core, status, &looked)) {
        status = open_latest(core, cwd, session, error);
    }
    return status;
}

enum wal_status wal_session_open_or_create(struct wal_store *store,
                                           const struct wal_session_options *options,
                                           struct wal_session **session, int32_t *created,
                                           struct wal_error *error)
{
    struct wal_session_options wanted;
    struct wal_error own = {.struct_size = sizeof(own)};
    enum wal_status status =
        wal__struct_load(WAL__STRUCT(wal_session_options), &wanted, options, error);
    bool is_new = false;

    if (status != WAL_OK) {
        return status;
    }
    if (wanted.id.size == 0) {
        wanted.id.data = NULL; /* an empty text is not an id */
    }
    /* Another process may create or delete it between two steps. The leader decides whether one is
     * created: by its id, or by its directory. */
    for (int i = 0; i < OPEN_ATTEMPTS_MAX; i++) {
        is_new = false;
        status = wanted.id.size > 0 ? wal_session_open(store, wanted.id, session, &own)
                                    : wal_session_open_latest(store, wanted.cwd, session, &own);
        if (status != WAL_ENOTFOUND) {
            break;
        }
        is_new = true;
        status = create(store, &wanted, wanted.id.size == 0, session, &own);
        if (status != WAL_EEXISTS) {
            break;
        }
    }
    if (status != WAL_OK) {
        wal__error_copy(error, &own);
        return status;
    }
    if (created != NULL) {
        *created = is_new;
    }
    return WAL_OK;
}
