/*
 * replay.c - from the bytes of a segment to calls of the log's client (SPEC.md
 * 3.4, 3.6).
 */
#include "engine/log/replay.h"

#include <string.h>

#include "engine/base/error.h"

bool wal__replay_piece(void *ctx, const struct wal__scan_piece *piece)
{
    struct wal__applier *applier = ctx;

    if (piece->commit != NULL) {
        applier->clock_ms = piece->commit->clock_ms;
    }
    applier->status = wal__log_apply_piece(applier->log, applier->segment,
                                           piece, applier->clock_ms);
    return applier->status == WAL_OK;
}

bool wal__replay_lost(void *ctx, uint32_t session)
{
    struct wal__applier *applier = ctx;

    applier->status =
        applier->log->client.lost(applier->log->client.ctx, session);
    return applier->status == WAL_OK;
}

void wal__replay_start(const struct wal__segment *segment,
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
enum wal_status wal__replay_failed(const struct wal__segment *segment,
                                   const struct wal__scan_facts *facts,
                                   const struct wal__applier *applier,
                                   struct wal_error *error)
{
    switch (facts->verdict) {
    case WAL__VERDICT_READ_ERROR:
        return wal__fail(error, WAL_EIO, 0, segment->path, facts->error_offset,
                         "the segment cannot be read");
    case WAL__VERDICT_NEWER:
        return wal__fail(error, WAL_EVERSION, 0, segment->path,
                         facts->error_offset,
                         "a record of a newer format; this library knows "
                         "format version %d",
                         (int)WAL__FORMAT_VERSION);
    case WAL__VERDICT_STOPPED:
        return wal__fail(error, applier->status, 0, segment->path,
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
                                 struct wal__scan_facts *facts,
                                 struct wal_error *error)
{
    struct wal__applier applier = {log, segment, log->clock_ms, WAL_OK};
    struct wal__scan_sink sink = {&applier, wal__replay_piece,
                                  wal__replay_lost};
    struct wal__window window;
    struct wal__scan_source source = {&window, wal__window_fetch};
    enum wal_status status;

    wal__window_init(&window, segment);
    wal__scan(&source, &sink, start, facts);
    status = window.status == WAL_ENOMEM
                 ? wal__fail(error, WAL_ENOMEM, 0, NULL, 0, "no memory")
                 : wal__replay_failed(segment, facts, &applier, error);
    wal__window_deinit(&window);
    return status;
}

static enum wal_status replay(struct wal__log *log,
                              struct wal__segment *segment,
                              struct wal__scan_facts *facts,
                              struct wal_error *error)
{
    uint64_t end = atomic_load(&segment->end);
    struct wal__scan_start start;

    wal__replay_start(segment, &start);
    if (end > WAL__SEGMENT_HEADER_SIZE) {
        /* Where the chain goes on; what stands behind it is not kept. */
        start.known_end = end;
        start.capacity = end;
    }
    return wal__replay_scan(log, segment, &start, facts, error);
}

/* What the index of a segment that was scanned says of it. */
static void header_of(const struct wal__log *log,
                      const struct wal__segment *segment,
                      const struct wal__scan_facts *facts,
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

enum wal_status wal__log_rebuild(struct wal__log *log,
                                 struct wal__segment *segment,
                                 struct wal_error *error)
{
    const struct wal__log_client *client = &log->client;
    struct wal__index_header header;
    struct wal__scan_facts *facts;
    struct wal__buf bytes;
    enum wal_status status;

    facts = wal__heap_alloc(log->env->heap, sizeof(*facts));
    if (facts == NULL) {
        return wal__fail(error, WAL_ENOMEM, 0, NULL, 0, "no memory");
    }
    wal__buf_init(&bytes, log->env->heap);
    status = replay(log, segment, facts, error);
    if (status == WAL_OK) {
        if (atomic_load(&segment->end) <= WAL__SEGMENT_HEADER_SIZE) {
            /* The OPEN that would say where it ended was lost. */
            atomic_store(&segment->end, facts->end);
        }
        header_of(log, segment, facts, &header);
        wal__log_name_pack(log, facts->pack_durable);
        status = client->encode(client->ctx, &header, &bytes);
    }
    if (status == WAL_OK) {
        status = client->ended(client->ctx, segment, &bytes);
    }
    wal__buf_deinit(&bytes);
    wal__heap_free(log->env->heap, facts);
    return status;
}

/* Takes the scan's result as the stream's end. */
void wal__replay_adopt(struct wal__log *log,
                       const struct wal__scan_facts *facts)
{
    atomic_store(&log->tail->end, facts->end);
    atomic_store(&log->end, wal__position(log->tail->id, facts->end));
    log->last_sequence = facts->last_sequence;
    log->chain = facts->chain;
    if (facts->commit_offset != 0) {
        log->commit_offset = facts->commit_offset;
        log->last_epoch = facts->epoch;
        log->clock_ms = facts->clock_ms;
    }
    log->marked = facts->watermark == log->commit_offset;
    wal__log_name_pack(log, facts->pack_durable);
}
