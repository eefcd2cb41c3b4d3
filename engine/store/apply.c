/*
 * apply.c - the client of the log: applies each record to the catalogue, the tail index and, when
 * it is loaded, the branch of its session (SPEC.md 3.6).
 *
 * Called under the state lock for writing. After a failure the indexes lack records of the log; the
 * log then has them reloaded.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/store/core.h"
#include "format/bytes/assert.h"

static void make_posting(const struct wal__log_record *record, struct wal__posting *posting)
{
    WAL__ASSERT(wal__position_offset(record->position) <= UINT32_MAX);
    posting->offset = (uint32_t)wal__position_offset(record->position);
    posting->type = record->frame->type;
    posting->flags = record->frame->flags;
    posting->stream = record->frame->stream;
    posting->kind = record->frame->kind;
    posting->sequence = record->frame->sequence;
    posting->parent = record->frame->parent;
    posting->id_hash = record->frame->id_hash;
}

/* An upper bound of the bytes that the record adds to its session's summary. */
static uint64_t text_size_max(const struct wal__log_record *record)
{
    struct wal__session_record session;

    if (wal__session_record_decode(record->payload, record->version, &session) != WAL__FMT_OK) {
        return record->payload.size;
    }
    WAL__ASSERT(session.metadata.size <= record->payload.size);
    return record->payload.size - session.metadata.size;
}

static enum wal_status apply_to_tail(struct wal__core *core, const struct wal__log_record *record,
                                     const struct wal__posting *posting)
{
    uint32_t session = record->frame->session;
    struct wal__summary summary;

    if (!wal__tail_index_has_session(&core->tail_index, session)) {
        core->tail_text_max += WAL__SUMMARY_GROWTH_MAX;
        if (wal__catalogue_get(&core->catalogue, session, &summary) == WAL_OK) {
            core->tail_text_max += wal__summary_text_size(&summary);
        }
    }
    if (wal__tail_index_add(&core->tail_index, session, posting) != WAL_OK) {
        return WAL_ENOMEM;
    }
    if (record->frame->type == WAL__FRAME_SESSION) {
        core->tail_text_max += text_size_max(record);
    }
    return WAL_OK;
}

/* Restores what a FORK refers to, if the snapshot omits it. */
static enum wal_status restore_source(struct wal__core *core, const struct wal__log_record *record,
                                      uint32_t number)
{
    struct wal__summary summary;
    enum wal_status status = wal__catalogue_get(&core->catalogue, number, &summary);

    return status == WAL_ENOTFOUND
               ? wal__core_restore_summary(core, number, wal__position_segment(record->position))
               : status;
}

static enum wal_status restore_sources(struct wal__core *core, const struct wal__log_record *record)
{
    struct wal__fork_record fork;
    enum wal_status status;

    if (record->frame->type != WAL__FRAME_FORK) {
        return WAL_OK;
    }
    if (wal__fork_record_decode(record->payload, &fork) != WAL__FMT_OK) {
        return WAL_ECORRUPT;
    }
    status = restore_source(core, record, fork.owner);
    return status == WAL_OK ? restore_source(core, record, fork.source) : status;
}

/*
 * Applies a record that the snapshot covers, of a session that it omits: the session was deleted,
 * but its segment has not ended, and the segment's index will have it.
 */
static enum wal_status apply_omitted(struct wal__core *core, const struct wal__log_record *record)
{
    uint32_t number = record->frame->session;
    struct wal__summary summary;
    bool is_covered = false;
    enum wal_status status = wal__catalogue_is_in_snapshot(&core->catalogue, number, &is_covered);

    if (status != WAL_OK || is_covered || number == 0) {
        return status;
    }
    status = wal__catalogue_get(&core->catalogue, number, &summary);
    if (status == WAL_ENOTFOUND) {
        status = wal__core_restore_summary(core, number, wal__position_segment(record->position));
        /* Its first record is in this segment. */
        status = status == WAL_ENOTFOUND ? WAL_OK : status;
    }
    if (status == WAL_OK) {
        status = restore_sources(core, record);
    }
    return status == WAL_OK          ? wal__catalogue_apply_deleted(&core->catalogue, record)
           : status == WAL_ENOTFOUND ? WAL_ECORRUPT
                                     : status;
}

static enum wal_status on_record(void *ctx, const struct wal__log_record *record)
{
    struct wal__core *core = ctx;
    struct wal__branch_slot *slot;
    struct wal__posting posting;
    enum wal_status status;

    make_posting(record, &posting);
    status = apply_to_tail(core, record, &posting);
    if (status != WAL_OK) {
        return status;
    }
    status = record->frame->sequence > core->snapshot_sequence
                 ? wal__catalogue_apply(&core->catalogue, record)
                 : apply_omitted(core, record);
    if (status != WAL_OK) {
        return status;
    }
    if (record->frame->type == WAL__FRAME_REDACT || record->frame->type == WAL__FRAME_RESTORE) {
        atomic_fetch_add(&core->redaction_generation, 1);
    }
    slot = wal__core_cached_branch(core, record->frame->session);
    if (slot == NULL || !slot->loaded) {
        return WAL_OK;
    }
    WAL__ASSERT(slot->branch.session == record->frame->session);
    if (record->frame->type == WAL__FRAME_TOMBSTONE && slot->pin_count == 0) {
        wal__branch_slot_deinit(slot); /* a fork of it may load it again */
        return WAL_OK;
    }
    return wal__branch_slot_apply(slot, &posting, record->position);
}

static enum wal_status on_lost(void *ctx, uint32_t session)
{
    struct wal__core *core = ctx;
    enum wal_status status;

    if (session == 0) {
        return WAL_OK;
    }
    status = wal__catalogue_mark_damaged(&core->catalogue, session);
    return status == WAL_ENOTFOUND ? WAL_OK : status;
}

/* Adds a session whose SESSION record was lost: its entries are kept under an id made of its
 * number. */
static enum wal_status add_placeholder(struct wal__core *core, const struct wal__log_record *record)
{
    struct wal__summary summary = {.number = record->frame->session,
                                   .flags = WAL__SUMMARY_DAMAGED,
                                   .created_ms = record->clock_ms,
                                   .updated_ms = record->clock_ms};
    char id[32];
    int size = snprintf(id, sizeof(id), "lost-%" PRIu32, summary.number);

    WAL__ASSERT(size > 0 && (size_t)size < sizeof(id));
    summary.id.data = (const uint8_t *)id;
    summary.id.size = (size_t)size;
    return wal__catalogue_put(&core->catalogue, &summary);
}

static enum wal_status on_orphan(void *ctx, const struct wal__log_record *record)
{
    struct wal__core *core = ctx;
    uint32_t number = record->frame->session;
    struct wal__summary summary;
    enum wal_status status;

    if (core->catalogue.snapshot != NULL || number == 0) {
        return WAL_ECORRUPT; /* the snapshot may be what is damaged */
    }
    status = wal__catalogue_get(&core->catalogue, number, &summary);
    if (status == WAL_OK) {
        return wal__catalogue_mark_damaged(&core->catalogue, number);
    }
    if (status == WAL_ENOTFOUND) {
        status = add_placeholder(core, record);
    }
    if (status == WAL_OK) {
        status = wal__catalogue_apply(&core->catalogue, record);
    }
    /* The source of a fork may be lost too; the fork then has no inherited entries. */
    return status == WAL_ECORRUPT ? WAL_OK : status;
}

static uint64_t index_bound(void *ctx, uint32_t postings, uint32_t sessions, uint64_t texts)
{
    struct wal__core *core = ctx;

    texts += (uint64_t)sessions * WAL__SUMMARY_GROWTH_MAX;
    WAL__ASSERT(core->tail_text_max <= UINT64_MAX - texts);
    return wal__tail_index_size_bound(&core->tail_index, postings, sessions,
                                      core->tail_text_max + texts);
}

struct segment_end {
    struct wal__core *core;
    uint64_t segment;
};

static enum wal_status set_session_segment(void *ctx, uint32_t number)
{
    const struct segment_end *segment_end = ctx;

    return wal__catalogue_set_segment(&segment_end->core->catalogue, number, segment_end->segment);
}

/* Records the ended segment as the newest of each session in the tail index, and empties the tail
 * index. */
static enum wal_status reset_tail_index(struct wal__core *core, uint64_t segment)
{
    struct segment_end segment_end = {core, segment};
    enum wal_status status =
        wal__tail_index_visit_sessions(&core->tail_index, set_session_segment, &segment_end);

    if (status != WAL_OK) {
        return status;
    }
    WAL__ASSERT(segment_end.segment != 0);
    wal__tail_index_reset(&core->tail_index);
    wal__index_slot_deinit(&core->env, &core->tail_base);
    core->tail_text_max = 0;
    return WAL_OK;
}

/* Writes index/ID.idx. The file is derived: when it cannot be written, the index is kept in memory
 * and the next opening is slower. */
static enum wal_status write_index_file(struct wal__core *core, uint64_t id, struct wal__span bytes)
{
    if (wal__index_file_write(&core->log, id, bytes, NULL) != WAL_OK) {
        return wal__index_set_put(&core->indexes, id, bytes);
    }
    return WAL_OK;
}

/* Keeps an index in memory for a segment that has none. */
static enum wal_status store_index(struct wal__core *core, const struct wal__segment *segment)
{
    struct wal__index_header header;
    const struct wal__index *index;
    struct wal__buf bytes;
    struct wal__span span;
    enum wal_status status;

    if (wal__index_set_get(&core->indexes, segment->id, &index) == WAL_OK) {
        return WAL_OK;
    }
    wal__log_index_header(&core->log, segment, &header);
    wal__buf_init(&bytes, core->env.heap);
    status = wal__core_encode_tail_index(core, &header, &bytes);
    if (status == WAL_OK) {
        WAL__ASSERT(bytes.size > WAL__FRAME_SIZE);
        span.data = bytes.data + WAL__FRAME_SIZE;
        span.size = bytes.size - WAL__FRAME_SIZE;
        status = wal__index_set_put(&core->indexes, segment->id, span);
    }
    wal__buf_deinit(&bytes);
    return status;
}

static enum wal_status on_segment_end(void *ctx, const struct wal__segment *segment,
                                      const struct wal__buf *index)
{
    struct wal__core *core = ctx;
    enum wal_status status = WAL_OK;

    WAL__ASSERT(index == NULL || index->size > WAL__FRAME_SIZE);
    if (index != NULL) {
        struct wal__span bytes = {index->data + WAL__FRAME_SIZE, index->size - WAL__FRAME_SIZE};

        status = write_index_file(core, segment->id, bytes);
    } else if (!segment->sealed) {
        status = store_index(core, segment);
    }
    if (status == WAL_OK) {
        status = reset_tail_index(core, segment->id);
    }
    if (status == WAL_OK) {
        wal__core_fold_at_segment_end(core, segment);
    }
    return status;
}

void wal__core_init_log_client(struct wal__core *core, struct wal__log_client *client)
{
    client->ctx = core;
    client->apply = on_record;
    client->on_record_lost = on_lost;
    client->on_orphan = on_orphan;
    client->encode_index = wal__core_encode_tail_index;
    client->index_bound = index_bound;
    client->on_segment_end = on_segment_end;
}
