/*
 * replay.c - replay (SPEC.md 3.4, 3.6).
 *
 * Invariant: the client receives records in log order; a scan stops at the
 * first record that it refuses.
 */
#include "engine/log/replay.h"

#include <string.h>

#include "engine/base/error.h"
#include "format/bytes/assert.h"

bool wal__replay_apply_range(void *ctx, const struct wal__scan_range *range)
{
    struct wal__applier *applier = ctx;

    WAL__ASSERT(applier->status == WAL_OK);
    if (range->commit != NULL) {
        applier->clock_ms = range->commit->clock_ms;
    }
    applier->status = wal__log_apply_range(applier->log, applier->segment,
                                           range, applier->clock_ms);
    return applier->status == WAL_OK;
}

bool wal__replay_record_lost(void *ctx, uint32_t session)
{
    struct wal__applier *applier = ctx;

    WAL__ASSERT(applier->status == WAL_OK);
    applier->status =
        applier->log->client.on_record_lost(applier->log->client.ctx, session);
    return applier->status == WAL_OK;
}

void wal__replay_init_start(const struct wal__segment *segment,
                            struct wal__scan_start *start)
{
    memset(start, 0, sizeof(*start));
    start->salt = segment->header.salt;
    start->capacity = segment->header.capacity;
    start->group_align = segment->header.group_align;
    start->offset = WAL__SEGMENT_HEADER_SIZE;
    /* The records of a rewritten segment are inside its blocks. */
    start->last_sequence = wal__segment_is_rewritten(&segment->header)
                               ? segment->header.rewrite.last_sequence
                               : segment->open.last_sequence;
    start->chain = segment->open.chain;
    start->is_rewritten = wal__segment_is_rewritten(&segment->header);
}

enum wal_status wal__replay_status(const struct wal__segment *segment,
                                   const struct wal__scan_result *facts,
                                   const struct wal__applier *applier,
                                   struct wal_error *error)
{
    switch (facts->verdict) {
    case WAL__VERDICT_READ_ERROR:
        return wal__fail_at(error, WAL_EIO, 0, segment->path,
                            facts->error_offset, "cannot read the segment");
    case WAL__VERDICT_NEWER:
        return wal__fail_at(error, WAL_EVERSION, 0, segment->path,
                            facts->error_offset,
                            "the record has a newer format; this library reads "
                            "format version %d: use a newer library",
                            (int)WAL__FORMAT_VERSION);
    case WAL__VERDICT_STOPPED:
        return wal__fail_at(error, applier->status, 0, segment->path,
                            facts->error_offset,
                            "cannot apply a record to the indexes");
    case WAL__VERDICT_CLEAN:
    case WAL__VERDICT_TORN:
    case WAL__VERDICT_AMBIGUOUS:
    case WAL__VERDICT_DAMAGED:
        break;
    }
    return WAL_OK;
}

enum wal_status wal__replay_scan(struct wal__log *log,
                                 struct wal__segment *segment,
                                 const struct wal__scan_start *start,
                                 struct wal__scan_result *facts,
                                 struct wal_error *error)
{
    struct wal__applier applier = {log, segment, log->clock_ms, WAL_OK};
    struct wal__scan_sink sink = {&applier, wal__replay_apply_range,
                                  wal__replay_record_lost};
    struct wal__segment_reader reader;
    struct wal__scan_source source = {&reader, wal__segment_reader_fetch};
    enum wal_status status;

    wal__segment_reader_init(&reader, segment);
    wal__scan(&source, &sink, start, facts);
    status = reader.status == WAL_ENOMEM
                 ? wal__no_memory(error)
                 : wal__replay_status(segment, facts, &applier, error);
    wal__segment_reader_deinit(&reader);
    return status;
}

/* Replays a segment before the tail, up to where its successor ends it. */
static enum wal_status replay(struct wal__log *log,
                              struct wal__segment *segment,
                              struct wal__scan_result *facts,
                              struct wal_error *error)
{
    uint64_t end = atomic_load(&segment->end);
    struct wal__scan_start start;

    wal__replay_init_start(segment, &start);
    if (end > WAL__SEGMENT_HEADER_SIZE) {
        /* The chain continues there; nothing after it is kept. */
        start.known_end = end;
        start.capacity = end;
    }
    if (wal__segment_is_rewritten(&segment->header)) {
        start.watermark = start.capacity; /* it was synced before its rename */
    }
    return wal__replay_scan(log, segment, &start, facts, error);
}

/* Fills the index header of a segment that was replayed, except the counts. */
static void fill_index_header(const struct wal__log *log,
                              const struct wal__segment *segment,
                              const struct wal__scan_result *facts,
                              struct wal__index_header *header)
{
    memset(header, 0, sizeof(*header));
    header->id = segment->id;
    header->end = atomic_load(&segment->end);
    header->first_sequence = segment->open.last_sequence + 1;
    header->last_sequence = facts->last_sequence;
    header->chain = facts->chain;
    header->commit_offset = (uint32_t)facts->commit_offset;
    header->epoch = facts->epoch;
    memcpy(header->uuid, log->uuid, sizeof(header->uuid));
}

enum wal_status wal__log_rebuild_index(struct wal__log *log,
                                       struct wal__segment *segment,
                                       struct wal_error *error)
{
    const struct wal__log_client *client = &log->client;
    struct wal__index_header header;
    struct wal__scan_result *facts;
    struct wal__buf bytes;
    enum wal_status status;

    facts = wal__heap_alloc(log->env->heap, sizeof(*facts));
    if (facts == NULL) {
        return wal__no_memory(error);
    }
    wal__buf_init(&bytes, log->env->heap);
    status = replay(log, segment, facts, error);
    if (status != WAL_OK) {
        goto done;
    }
    if (atomic_load(&segment->end) <= WAL__SEGMENT_HEADER_SIZE) {
        /* The successor's OPEN, which names the end, was lost. */
        atomic_store(&segment->end, facts->end);
    }
    fill_index_header(log, segment, facts, &header);
    wal__log_raise_pack_durable(log, facts->pack_durable);
    status = client->encode_index(client->ctx, &header, &bytes);
    if (status == WAL_OK) {
        status = client->on_segment_end(client->ctx, segment, &bytes);
    }

done:
    wal__buf_deinit(&bytes);
    wal__heap_free(log->env->heap, facts);
    return status;
}

void wal__replay_set_end(struct wal__log *log,
                         const struct wal__scan_result *facts)
{
    WAL__ASSERT(facts->end <= log->tail_segment->header.capacity);
    atomic_store(&log->tail_segment->end, facts->end);
    atomic_store(&log->end, wal__position(log->tail_segment->id, facts->end));
    log->last_sequence = facts->last_sequence;
    log->chain = facts->chain;
    if (facts->commit_offset != 0) {
        log->commit_offset = facts->commit_offset;
        log->last_epoch = facts->epoch;
        log->clock_ms = facts->clock_ms;
    }
    log->marked = facts->watermark == log->commit_offset;
    wal__log_raise_pack_durable(log, facts->pack_durable);
}
