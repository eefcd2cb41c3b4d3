/*
 * block.c - encodes and decodes BLOCK (SPEC.md 2.23).
 *
 * Invariant: no size from the payload is used before it was compared with the
 * bytes that are there. Threads: any.
 */
#include "format/segment/block.h"

#include <lz4.h>
#include <lz4hc.h>

#include "format/bytes/bytes.h"
#include "format/bytes/crc32.h"

enum {
    AT_COUNT = 0,
    AT_ZERO = 2,
    AT_DATA_SIZE = 4,
    AT_FRAME_SIZE = 8, /* stored_size in a frame header */
    SAVING_MIN = 16    /* a fraction */
};

WAL__FOLLOWS(AT_ZERO, AT_COUNT, 2);
WAL__FOLLOWS(AT_DATA_SIZE, AT_ZERO, 2);
WAL__FOLLOWS(WAL__BLOCK_HEAD_SIZE, AT_DATA_SIZE, 4);

static bool is_zero(const uint8_t *at, size_t size)
{
    uint8_t bits = 0;

    for (size_t i = 0; i < size; i++) {
        bits |= at[i];
    }
    return bits == 0;
}

enum wal__fmt wal__block_decode(const struct wal__frame *frame,
                                const uint8_t *payload,
                                struct wal__block *block)
{
    uint32_t size = frame->stored_size;
    uint32_t data_size;

    WAL__ASSERT(frame->type == WAL__FRAME_BLOCK);
    if (size < WAL__BLOCK_HEAD_SIZE) {
        return WAL__FMT_SHORT;
    }
    data_size = wal__get32(payload + AT_DATA_SIZE);
    block->count = wal__get16(payload + AT_COUNT);
    block->is_compressed = (frame->flags & WAL__FRAME_LZ4) != 0;
    if (data_size > size - WAL__BLOCK_HEAD_SIZE) {
        return WAL__FMT_SHORT;
    }
    block->data.data = payload + WAL__BLOCK_HEAD_SIZE;
    block->data.size = data_size;
    block->raw_size = block->is_compressed ? frame->raw_size : data_size;
    if (block->count == 0 || block->count > WAL__BLOCK_RECORDS_MAX ||
        wal__get16(payload + AT_ZERO) != 0 ||
        wal__frame_total_size(size) % WAL__BLOCK_ALIGN != 0 ||
        size - WAL__BLOCK_HEAD_SIZE - data_size >= WAL__BLOCK_ALIGN ||
        !is_zero(block->data.data + data_size,
                 size - WAL__BLOCK_HEAD_SIZE - data_size)) {
        return WAL__FMT_FIELD;
    }
    return WAL__FMT_OK;
}

enum wal__fmt wal__block_decompress(const struct wal__block *block,
                                    uint8_t *out)
{
    WAL__ASSERT(block->is_compressed);
    WAL__ASSERT(block->raw_size <= WAL__FRAME_BLOCK_MAX);
    return LZ4_decompress_safe((const char *)block->data.data, (char *)out,
                               (int)block->data.size,
                               (int)block->raw_size) == (int)block->raw_size
               ? WAL__FMT_OK
               : WAL__FMT_FIELD;
}

enum wal__fmt wal__block_find(struct wal__span records, uint32_t rank,
                              struct wal__span *found)
{
    while (records.size >= WAL__FRAME_SIZE) {
        uint64_t size;

        if (rank == 0) {
            *found = records;
            return WAL__FMT_OK;
        }
        size = wal__frame_total_size(wal__get32(records.data + AT_FRAME_SIZE));
        if (size > records.size) {
            break;
        }
        records.data += size;
        records.size -= size;
        rank--;
    }
    return WAL__FMT_SHORT;
}

/* Decodes the record at the beginning of `records`, and verifies it. */
static enum wal__fmt decode_record(struct wal__span records, uint64_t salt,
                                   uint64_t offset, struct wal__frame *frame,
                                   struct wal__span *payload)
{
    const uint8_t *at = records.data;
    enum wal__fmt fmt =
        wal__frame_decode(at, records.size, salt, offset, frame);

    if (fmt == WAL__FMT_ZERO ||
        (fmt == WAL__FMT_OK && (!wal__frame_is_sequenced(frame->type) ||
                                (frame->flags & WAL__FRAME_REWRITTEN) == 0))) {
        fmt = WAL__FMT_FIELD;
    }
    if (fmt == WAL__FMT_OK) {
        fmt = wal__frame_check_data(frame, at + WAL__FRAME_SIZE);
    }
    if (fmt == WAL__FMT_OK) {
        payload->data = at + WAL__FRAME_SIZE;
        payload->size = frame->stored_size;
    }
    return fmt;
}

enum wal__fmt wal__block_record(struct wal__span records, uint64_t salt,
                                uint64_t offset, struct wal__frame *frame,
                                struct wal__span *payload)
{
    struct wal__span found;
    enum wal__fmt fmt =
        wal__block_find(records, wal__block_rank(offset), &found);

    return fmt == WAL__FMT_OK
               ? decode_record(found, salt, offset, frame, payload)
               : fmt;
}

void wal__block_cursor_begin(struct wal__block_cursor *cursor,
                             struct wal__span records, uint32_t count,
                             uint64_t salt, uint64_t offset)
{
    WAL__ASSERT(offset % WAL__BLOCK_ALIGN == 0);
    WAL__ASSERT(count <= WAL__BLOCK_RECORDS_MAX);
    cursor->left = records;
    cursor->salt = salt;
    cursor->offset = offset;
    cursor->count = count;
}

enum wal__fmt wal__block_cursor_next(struct wal__block_cursor *cursor,
                                     struct wal__frame *frame,
                                     struct wal__span *payload)
{
    enum wal__fmt fmt;
    uint64_t size;

    if (cursor->count == 0) {
        return cursor->left.size == 0 ? WAL__FMT_ZERO : WAL__FMT_FIELD;
    }
    fmt = decode_record(cursor->left, cursor->salt, cursor->offset, frame,
                        payload);
    if (fmt != WAL__FMT_OK) {
        return fmt;
    }
    size = wal__frame_total_size(frame->stored_size);
    cursor->left.data += size;
    cursor->left.size -= size;
    cursor->offset++;
    cursor->count--;
    return WAL__FMT_OK;
}

uint32_t wal__block_payload_size(uint32_t data_size)
{
    return (uint32_t)wal__align_up((uint64_t)WAL__FRAME_SIZE +
                                       WAL__BLOCK_HEAD_SIZE + data_size,
                                   WAL__BLOCK_ALIGN) -
           WAL__FRAME_SIZE;
}

static int compress(struct wal__span raw, int level, uint8_t *out, int room)
{
    return level > 1 ? LZ4_compress_HC((const char *)raw.data, (char *)out,
                                       (int)raw.size, room, level)
                     : LZ4_compress_default((const char *)raw.data, (char *)out,
                                            (int)raw.size, room);
}

void wal__block_encode(struct wal__span raw, uint32_t count, int level,
                       struct wal__frame *frame, uint8_t *out)
{
    uint8_t *data = out + WAL__BLOCK_HEAD_SIZE;
    size_t room = raw.size - raw.size / SAVING_MIN;
    int size = 0;

    WAL__ASSERT(raw.size > 0 && raw.size <= WAL__FRAME_BLOCK_MAX);
    WAL__ASSERT(count > 0 && count <= WAL__BLOCK_RECORDS_MAX);
    if (level > 0) {
        size = compress(raw, level, data, (int)room);
    }
    frame->type = WAL__FRAME_BLOCK;
    frame->flags = WAL__FRAME_REWRITTEN;
    if (size > 0) {
        frame->flags |= WAL__FRAME_LZ4;
    } else {
        memcpy(data, raw.data, raw.size);
        size = (int)raw.size;
    }
    frame->stored_size = wal__block_payload_size((uint32_t)size);
    frame->raw_size = (frame->flags & WAL__FRAME_LZ4) != 0 ? (uint32_t)raw.size
                                                           : frame->stored_size;
    wal__put16(out + AT_COUNT, (uint16_t)count);
    wal__put16(out + AT_ZERO, 0);
    wal__put32(out + AT_DATA_SIZE, (uint32_t)size);
    memset(data + size, 0,
           frame->stored_size - WAL__BLOCK_HEAD_SIZE - (uint32_t)size);
    frame->data_crc = wal__crc32(0, out, frame->stored_size);
}
