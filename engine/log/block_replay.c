/*
 * block_replay.c - applies the records of a range in log order. Those of a
 * rewritten segment's blocks are stored session by session (SPEC.md 2.23).
 *
 * Invariant: the client receives the records of the range by ascending sequence
 * number, each once. With the client's state lock for writing.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/log/replay.h"
#include "format/bytes/assert.h"
#include "format/segment/block.h"

/* A record of the range. */
struct block_record {
    uint64_t sequence;
    uint64_t offset; /* as in positions */
};

struct block_replay {
    struct wal__log *log;
    const struct wal__segment *segment;
    const struct wal__scan_range *range;
    struct wal__buf list;    /* struct block_record */
    struct wal__buf records; /* of the block at `block`, when compressed */
    uint64_t block;          /* 0: none */
    struct wal__span found;  /* its records */
    uint32_t count;
};

/* Loads the BLOCK at an offset of the segment. */
static enum wal_status load(struct block_replay *replay, uint64_t offset)
{
    const struct wal__scan_range *range = replay->range;
    const uint8_t *at = range->bytes + (offset - range->offset);
    uint64_t left = range->size - (offset - range->offset);
    struct wal__frame frame;
    struct wal__block block;
    uint8_t *out;

    if (replay->block == offset) {
        return WAL_OK;
    }
    replay->block = 0;
    if (wal__frame_decode(at, left, replay->segment->header.salt, offset,
                          &frame) != WAL__FMT_OK ||
        frame.type != WAL__FRAME_BLOCK ||
        wal__block_decode(&frame, at + WAL__FRAME_SIZE, &block) !=
            WAL__FMT_OK) {
        return WAL_ECORRUPT;
    }
    replay->found = block.data;
    replay->count = block.count;
    if (block.is_compressed) {
        replay->records.size = 0;
        if (wal__buf_reserve(&replay->records, block.raw_size, &out) !=
            WAL_OK) {
            return WAL_ENOMEM;
        }
        if (wal__block_decompress(&block, out) != WAL__FMT_OK) {
            return WAL_ECORRUPT;
        }
        replay->found = (struct wal__span){out, block.raw_size};
    }
    replay->block = offset;
    return WAL_OK;
}

/* Lists the records of the BLOCK at an offset. */
static enum wal_status list_block(struct block_replay *replay, uint64_t offset)
{
    enum wal_status status = load(replay, offset);
    struct wal__block_cursor cursor;
    struct wal__span payload;
    struct wal__frame frame;
    enum wal__fmt fmt = WAL__FMT_OK;

    if (status == WAL_OK) {
        wal__block_cursor_begin(&cursor, replay->found, replay->count,
                                replay->segment->header.salt, offset);
    }
    while (status == WAL_OK && fmt == WAL__FMT_OK) {
        struct block_record record = {.offset = cursor.offset};

        fmt = wal__block_cursor_next(&cursor, &frame, &payload);
        if (fmt == WAL__FMT_OK) {
            record.sequence = frame.sequence;
            status = wal__buf_append(&replay->list, &record, sizeof(record));
        }
    }
    return status == WAL_OK && fmt != WAL__FMT_ZERO ? WAL_ECORRUPT : status;
}

static int compare_records(const void *a, const void *b)
{
    const struct block_record *x = a;
    const struct block_record *y = b;

    return x->sequence < y->sequence ? -1 : x->sequence > y->sequence;
}

enum wal_status wal__log_apply_record(struct wal__log *log,
                                      const struct wal__segment *segment,
                                      const struct wal__frame *frame,
                                      const uint8_t *payload, uint64_t offset,
                                      int64_t clock_ms)
{
    struct wal__log_record record = {
        .frame = frame,
        .payload = {payload, frame->stored_size},
        .position = wal__position(segment->id, offset),
        .clock_ms = clock_ms,
        .version = segment->header.version,
    };
    enum wal_status status = log->client.apply(log->client.ctx, &record);

    return status == WAL_ECORRUPT
               ? log->client.on_orphan(log->client.ctx, &record)
               : status;
}

static enum wal_status apply(struct block_replay *replay,
                             const struct block_record *record,
                             int64_t clock_ms)
{
    struct wal__span payload;
    struct wal__frame frame;
    enum wal_status status = load(replay, wal__block_offset(record->offset));

    if (status != WAL_OK) {
        return status;
    }
    if (wal__block_record(replay->found, replay->segment->header.salt,
                          record->offset, &frame, &payload) != WAL__FMT_OK) {
        return WAL_ECORRUPT;
    }
    return wal__log_apply_record(replay->log, replay->segment, &frame,
                                 payload.data, record->offset, clock_ms);
}

static enum wal_status apply_blocks(struct wal__log *log,
                                    const struct wal__segment *segment,
                                    const struct wal__scan_range *range,
                                    int64_t clock_ms)
{
    struct block_replay replay = {
        .log = log, .segment = segment, .range = range};
    enum wal_status status = WAL_OK;
    size_t count;

    wal__buf_init(&replay.list, log->env->heap);
    wal__buf_init(&replay.records, log->env->heap);
    for (uint64_t at = 0; at < range->size && status == WAL_OK;) {
        struct wal__frame frame;

        if (wal__frame_decode(range->bytes + at, range->size - at,
                              segment->header.salt, range->offset + at,
                              &frame) != WAL__FMT_OK) {
            status = WAL_ECORRUPT;
            break;
        }
        if (frame.type == WAL__FRAME_BLOCK) {
            status = list_block(&replay, range->offset + at);
        }
        at += wal__frame_total_size(frame.stored_size);
    }
    count = replay.list.size / sizeof(struct block_record);
    if (count > 0) {
        qsort(replay.list.data, count, sizeof(struct block_record),
              compare_records);
    }
    for (size_t i = 0; i < count && status == WAL_OK; i++) {
        status =
            apply(&replay, (struct block_record *)(void *)replay.list.data + i,
                  clock_ms);
    }
    wal__buf_deinit(&replay.list);
    wal__buf_deinit(&replay.records);
    return status;
}

enum wal_status wal__log_apply_range(struct wal__log *log,
                                     const struct wal__segment *segment,
                                     const struct wal__scan_range *range,
                                     int64_t clock_ms)
{
    uint64_t at = 0;

    WAL__ASSERT(range->size <= segment->header.capacity - range->offset);
    if (wal__segment_is_rewritten(&segment->header)) {
        return apply_blocks(log, segment, range, clock_ms);
    }
    while (at < range->size) {
        struct wal__frame frame;
        enum wal_status status;

        if (wal__frame_decode(range->bytes + at, range->size - at,
                              segment->header.salt, range->offset + at,
                              &frame) != WAL__FMT_OK) {
            return WAL_ECORRUPT;
        }
        if (wal__frame_is_sequenced(frame.type)) {
            status = wal__log_apply_record(log, segment, &frame,
                                           range->bytes + at + WAL__FRAME_SIZE,
                                           range->offset + at, clock_ms);
            if (status != WAL_OK) {
                return status;
            }
        }
        at += wal__frame_total_size(frame.stored_size);
    }
    WAL__ASSERT(at == range->size);
    return WAL_OK;
}
