/*
 * apply.c - what the log calls: each record goes to the catalogue, the tail's
 * index and the branch of its session when that is loaded (SPEC.md 3.6).
 *
 * Under the state lock for writing. A failure leaves the indexes behind the
 * log; the log then has them loaded again.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/store/core.h"

static void make_posting(const struct wal__log_record *record,
                         struct wal__posting *posting)
{
    posting->offset = (uint32_t)wal__position_offset(record->position);
    posting->type = record->frame->type;
    posting->flags = record->frame->flags;
    posting->stream = record->frame->stream;
    posting->kind = record->frame->kind;
    posting->sequence = record->frame->sequence;
    posting->parent = record->frame->parent;
    posting->id_hash = record->frame->id_hash;
}

/* Bytes that the record may add to the session's summary. */
static uint64_t text_size_max(const struct wal__log_record *record)
{
    struct wal__session_record session;

    if (wal__session_record_decode(record->payload, record->version,
                                   &session) != WAL__FMT_OK) {
        return record->payload.size;
    }
    return record->payload.size - session.metadata.size;
}

static enum wal_status apply_to_tail(struct wal__core *core,
                                     const struct wal__log_record *record,
                                     const struct wal__posting *posting)
{
    uint32_t session = record->frame->session;
    struct wal__summary summary;

    if (!wal__tail_index_has_session(&core->tail, session)) {
        core->tail_text_max += WAL__SUMMARY_GROWTH_MAX;
        if (wal__catalogue_get(&core->catalogue, session, &summary) == WAL_OK) {
            core->tail_text_max += wal__summary_text_size(&summary);
        }
    }
    if (wal__tail_index_add(&core->tail, session, posting) != WAL_OK) {
        return WAL_ENOMEM;
    }
    if (record->frame->type == WAL__FRAME_SESSION) {
        core->tail_text_max += text_size_max(record);
    }
    return WAL_OK;
}

static enum wal_status apply(void *ctx, const struct wal__log_record *record)
{
    struct wal__core *core = ctx;
    struct wal__branch_slot *slot;
    struct wal__posting posting;
    enum wal_status status;

    make_posting(record, &posting);
    status = apply_to_tail(core, record, &posting);
    if (status == WAL_OK && record->frame->sequence > core->snapshot_sequence) {
        status = wal__catalogue_apply(&core->catalogue, record);
    }
    if (status != WAL_OK) {
        return status;
    }
    if (record->frame->type == WAL__FRAME_REDACT) {
        atomic_fetch_add(&core->redaction_generation, 1);
    }
    slot = wal__core_cached_branch(core, record->frame->session);
    if (slot == NULL || !slot->loaded) {
        return WAL_OK;
    }
    return wal__branch_slot_apply(slot, &posting, record->position);
}

static enum wal_status lost(void *ctx, uint32_t session)
{
    struct wal__core *core = ctx;
    enum wal_status status;

    if (session == 0) {
        return WAL_OK;
    }
    status = wal__catalogue_mark_damaged(&core->catalogue, session);
    return status == WAL_ENOTFOUND ? WAL_OK : status;
}

/* A session whose own record was lost: its entries are kept under a name that
 * is made of its number. */
static enum wal_status add_placeholder(struct wal__core *core,
                                       const struct wal__log_record *record)
{
    struct wal__summary summary = {.number = record->frame->session,
                                   .flags = WAL__SUMMARY_DAMAGED,
                                   .created_ms = record->clock_ms};
    char id[32];
    int size = snprintf(id, sizeof(id), "lost-%" PRIu32, summary.number);

    summary.id.data = (const uint8_t *)id;
    summary.id.size = (size_t)size;
    return wal__catalogue_put(&core->catalogue, &summary);
}

static enum wal_status orphan(void *ctx, const struct wal__log_record *record)
{
    struct wal__core *core = ctx;
    uint32_t number = record->frame->session;
    struct wal__summary summary;
    enum wal_status status;

    if (core->snapshot.at != NULL || number == 0) {
        return WAL_ECORRUPT; /* it may be the snapshot that is damaged */
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
    /* A fork whose source is nameless too has lost its past. */
    return status == WAL_ECORRUPT ? WAL_OK : status;
}

static uint64_t index_bound(void *ctx, uint32_t postings, uint32_t sessions,
                            uint64_t texts)
{
    struct wal__core *core = ctx;

    texts += (uint64_t)sessions * WAL__SUMMARY_GROWTH_MAX;
    return wal__tail_index_size_bound(&core->tail, postings, sessions,
                                      core->tail_text_max + texts);
}

struct segment_end {
    struct wal__core *core;
    uint64_t segment;
};

static enum wal_status set_session_segment(void *ctx, uint32_t number)
{
    const struct segment_end *segment_end = ctx;

    return wal__catalogue_set_segment(&segment_end->core->catalogue, number,
                                      segment_end->segment);
}

/* The sessions of the tail have their newest ended segment in it now. */
static enum wal_status reset_tail_index(struct wal__core *core,
                                        uint64_t segment)
{
    struct segment_end segment_end = {core, segment};
    enum wal_status status = wal__tail_index_visit_sessions(
        &core->tail, set_session_segment, &segment_end);

    if (status != WAL_OK) {
        return status;
    }
    wal__tail_index_reset(&core->tail);
    wal__index_slot_deinit(&core->env, &core->tail_base);
    core->tail_text_max = 0;
    return WAL_OK;
}

/* Writes index/ID.idx; it is derived, so a full disk only costs time later. */
static enum wal_status write_index_file(struct wal__core *core, uint64_t id,
                                        struct wal__span bytes)
{
    if (wal__index_file_write(&core->log, id, bytes, NULL) != WAL_OK) {
        return wal__index_set_put(&core->indexes, id, bytes);
    }
    return WAL_OK;
}

/* Keeps this process's own index of a segment that has no other. */
static enum wal_status store_index(struct wal__core *core,
                                   const struct wal__segment *segment)
{
    struct wal__index_header header = {0};
    const struct wal__index *index;
    struct wal__buf bytes;
    struct wal__span span;
    enum wal_status status;

    if (wal__index_set_get(&core->indexes, segment->id, &index) == WAL_OK) {
        return WAL_OK;
    }
    header.id = segment->id;
    header.end = atomic_load(&segment->end);
    header.first_sequence = segment->open.last_sequence + 1;
    header.last_sequence = core->log.last_sequence;
    memcpy(header.uuid, core->log.uuid, sizeof(header.uuid));
    wal__buf_init(&bytes, core->env.heap);
    status = wal__core_encode_tail_index(core, &header, &bytes);
    if (status == WAL_OK) {
        span.data = bytes.data + WAL__FRAME_SIZE;
        span.size = bytes.size - WAL__FRAME_SIZE;
        status = wal__index_set_put(&core->indexes, segment->id, span);
    }
    wal__buf_deinit(&bytes);
    return status;
}

enum {
    SNAPSHOT_GROWTH = 256 * 1024 * 1024
};

static enum wal_status ended(void *ctx, const struct wal__segment *segment,
                             const struct wal__buf *index)
{
    struct wal__core *core = ctx;
    enum wal_status status = WAL_OK;

    if (index != NULL) {
        struct wal__span bytes = {index->data + WAL__FRAME_SIZE,
                                  index->size - WAL__FRAME_SIZE};

        status = write_index_file(core, segment->id, bytes);
    } else if (!segment->sealed) {
        status = store_index(core, segment);
    }
    if (status == WAL_OK) {
        status = reset_tail_index(core, segment->id);
    }
    if (status == WAL_OK && wal__core_log_growth(core) >= SNAPSHOT_GROWTH &&
        wal__core_log_growth(core) >= 2 * core->snapshot.size) {
        /* Derived: without it the next opening merges more indexes. */
        (void)!wal__core_write_catalogue(
            core, wal__position(segment->id, atomic_load(&segment->end)),
            core->log.tail_segment->open.chain, NULL);
    }
    return status;
}

void wal__core_init_log_client(struct wal__core *core,
                               struct wal__log_client *client)
{
    client->ctx = core;
    client->apply = apply;
    client->on_record_lost = lost;
    client->on_orphan = orphan;
    client->encode_index = wal__core_encode_tail_index;
    client->index_bound = index_bound;
    client->on_segment_end = ended;
}
