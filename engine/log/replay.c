/*
 * replay.c - from the bytes of a segment to calls of the log's client (SPEC.md
 * 3.4, 3.6).
 */
#include "engine/log/replay.h"

#include <string.h>

#include "engine/base/error.h"

bool wal__replay_piece(void *ctx, const struct wal__scan_range *piece)
{
    struct wal__applier *applier = ctx;

    if (piece->commit != NULL) {
        applier->clock_ms = piece->commit->clock_ms;
    }
    applier->status = wal__log_apply_piece(applier->log, applier->segment,
                                           piece, applier->clock_ms);
    return applier->status == WAL_OK;
}

bool wal__replay_record_lost(void *ctx, uint32_t session)
{
    struct wal__applier *applier = ctx;

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
    start->last_sequence = segment->open.last_sequence;
    start->chain = segment->open.chain;
}

/* What a scan that did not reach an end means. */
enum wal_status wal__replay_status(const struct wal__segment *segment,
                                   const struct wal__scan_result *facts,
                                   const struct wal__applier *applier,
                                   struct wal_error *error)
{
    switch (facts->verdict) {
    case WAL__VERDICT_READ_ERROR:
        return wal__fail_at(error, WAL_EIO, 0, segment->path,
                            facts->error_offset, "the segment cannot be read");
    case WAL__VERDICT_NEWER:
        return wal__fail_at(error, WAL_EVERSION, 0, segment->path,
                            facts->error_offset,
                            "a record of a newer format; this library knows "
                            "format version %d",
                            (int)WAL__FORMAT_VERSION);
    case WAL__VERDICT_STOPPED:
        return wal__fail_at(error, applier->status, 0, segment->path,
                            facts->error_offset,
                            "a record cannot be taken into the indexes");
    case WAL__VERDICT_CLEAN:
    case WAL__VERDICT_TORN:
    case WAL__VERDICT_AMBIGUOUS:
    case WAL__VERDICT_DAMAGED:
        break;
    }
    return WAL_OK;
}

/* Scans by pread from `start`, applying what is kept. */
enum wal_status wal__replay_scan(struct wal__log *log,
                                 struct wal__segment *segment,
                                 const struct wal__scan_start *start,
                                 struct wal__scan_result *facts,
                                 struct wal_error *error)
{
    struct wal__applier applier = {log, segment, log->clock_ms, WAL_OK};
    struct wal__scan_sink sink = {&applier, wal__replay_piece,
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

static enum wal_status replay(struct wal__log *log,
                              struct wal__segment *segment,
                              struct wal__scan_result *facts,
                              struct wal_error *error)
{
    uint64_t end = atomic_load(&segment->end);
    struct wal__scan_start start;

    wal__replay_init_start(segment, &start);
    if (end > WAL__SEGMENT_HEADER_SIZE) {
        /* Where the chain goes on; what stands behind it is not kept. */
        start.known_end = end;
        start.capacity = end;
    }
    return wal__replay_scan(log, segment, &start, facts, error);
}

/* What the index of a segment that was scanned says of it. */
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
    if (status == WAL_OK) {
        if (atomic_load(&segment->end) <= WAL__SEGMENT_HEADER_SIZE) {
            /* The OPEN that would say where it ended was lost. */
            atomic_store(&segment->end, facts->end);
        }
        fill_index_header(log, segment, facts, &header);
        wal__log_raise_pack_durable(log, facts->pack_durable);
        status = client->encode_index(client->ctx, &header, &bytes);
    }
    if (status == WAL_OK) {
        status = client->on_segment_end(client->ctx, segment, &bytes);
    }
    wal__buf_deinit(&bytes);
    wal__heap_free(log->env->heap, facts);
    return status;
}

/* Takes the scan's result as the stream's end. */
void wal__replay_set_end(struct wal__log *log,
                         const struct wal__scan_result *facts)
{
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
