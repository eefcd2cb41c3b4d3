/*
 * damaged_block.c - see damaged_block.h.
 *
 * Sessions that wrote at the same time are in different blocks, so that log
 * order goes back and forth between them: some are kept decompressed.
 */
#include "engine/salvage/damaged_block.h"

#include <stdlib.h>
#include <string.h>

#include "format/bytes/assert.h"

struct listed_record {
    uint64_t sequence;
    uint64_t offset; /* as in positions */
};

void wal__damaged_blocks_init(struct wal__damaged_blocks *blocks,
                              const struct wal__heap *heap)
{
    memset(blocks, 0, sizeof(*blocks));
    blocks->heap = heap;
    wal__buf_init(&blocks->list, heap);
    wal__buf_init(&blocks->bad, heap);
    for (uint32_t i = 0; i < WAL__DAMAGED_BLOCKS; i++) {
        wal__buf_init(&blocks->cache[i].records, heap);
    }
}

void wal__damaged_blocks_deinit(struct wal__damaged_blocks *blocks)
{
    wal__buf_deinit(&blocks->list);
    wal__buf_deinit(&blocks->bad);
    for (uint32_t i = 0; i < WAL__DAMAGED_BLOCKS; i++) {
        wal__buf_deinit(&blocks->cache[i].records);
    }
}

/* Decodes a BLOCK into an entry of the cache; *fmt says why it cannot be. */
static enum wal_status unpack(struct wal__damaged_block *kept,
                              const struct wal__frame *frame,
                              const uint8_t *payload, uint64_t offset,
                              uint32_t *count, enum wal__fmt *fmt)
{
    struct wal__block block;
    uint8_t *out;

    kept->offset = 0;
    kept->records.size = 0;
    *fmt = wal__block_decode(frame, payload, &block);
    if (*fmt != WAL__FMT_OK) {
        return WAL_OK;
    }
    if (wal__buf_reserve(&kept->records, block.raw_size, &out) != WAL_OK) {
        return WAL_ENOMEM;
    }
    if (block.is_compressed) {
        *fmt = wal__block_decompress(&block, out);
    } else if (block.raw_size > 0) {
        memcpy(out, block.data.data, block.raw_size);
    }
    if (*fmt == WAL__FMT_OK) {
        kept->records.size = block.raw_size;
        kept->offset = offset;
        *count = block.count;
    }
    return WAL_OK;
}

static struct wal__span records_of(const struct wal__damaged_block *kept)
{
    return (struct wal__span){kept->records.data, kept->records.size};
}

enum wal_status
wal__damaged_blocks_add(struct wal__damaged_blocks *blocks,
                        const struct wal__damaged_segment *segment,
                        const struct wal__frame *frame, uint64_t offset,
                        const uint8_t *payload)
{
    const struct wal__damaged_bad_block bad = {
        offset, wal__frame_total_size(frame->stored_size), frame->session};
    struct wal__damaged_block *kept = &blocks->cache[0];
    struct wal__block_cursor cursor;
    struct wal__span ignored;
    struct wal__frame record;
    enum wal__fmt fmt;
    uint32_t count = 0;
    enum wal_status status = unpack(kept, frame, payload, offset, &count, &fmt);

    if (status == WAL_OK && fmt == WAL__FMT_OK) {
        wal__block_cursor_begin(&cursor, records_of(kept), count,
                                segment->header.salt, offset);
    }
    while (status == WAL_OK && fmt == WAL__FMT_OK) {
        struct listed_record listed = {.offset = cursor.offset};

        fmt = wal__block_cursor_next(&cursor, &record, &ignored);
        if (fmt == WAL__FMT_OK) {
            listed.sequence = record.sequence;
            status = wal__buf_append(&blocks->list, &listed, sizeof(listed));
        }
    }
    return status == WAL_OK && fmt != WAL__FMT_ZERO
               ? wal__buf_append(&blocks->bad, &bad, sizeof(bad))
               : status;
}

/* Returns the block at an offset, which was read before; NULL: it cannot be
 * read any more, or *status is WAL_ENOMEM. */
static const struct wal__damaged_block *
find_block(struct wal__damaged_blocks *blocks,
           const struct wal__damaged_segment *segment,
           struct wal__damaged_file *file, uint64_t offset,
           enum wal_status *status)
{
    struct wal__damaged_block *kept;
    struct wal__frame frame = {.type = WAL__FRAME_BLOCK};
    struct wal__span payload;
    uint32_t count;
    enum wal__fmt fmt;

    for (uint32_t i = 0; i < WAL__DAMAGED_BLOCKS; i++) {
        if (blocks->cache[i].offset == offset) {
            return &blocks->cache[i];
        }
    }
    kept = &blocks->cache[blocks->next];
    blocks->next = (blocks->next + 1) % WAL__DAMAGED_BLOCKS;
    payload = wal__damaged_file_read(file, segment->header.salt, offset,
                                     WAL__FRAME_BLOCK, &frame);
    if (payload.data == NULL) {
        return NULL;
    }
    *status = unpack(kept, &frame, payload.data, offset, &count, &fmt);
    return *status == WAL_OK && fmt == WAL__FMT_OK ? kept : NULL;
}

static int compare_listed(const void *a, const void *b)
{
    const struct listed_record *x = a;
    const struct listed_record *y = b;

    if (x->sequence != y->sequence) {
        return x->sequence < y->sequence ? -1 : 1;
    }
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

enum wal_status
wal__damaged_blocks_visit(struct wal__damaged_blocks *blocks,
                          const struct wal__damaged_segment *segment,
                          struct wal__damaged_file *file,
                          const struct wal__damaged_visitor *visitor)
{
    struct listed_record *list =
        (struct listed_record *)(void *)blocks->list.data;
    size_t count = blocks->list.size / sizeof(*list);
    enum wal_status status = WAL_OK;

    if (count > 0) {
        qsort(list, count, sizeof(*list), compare_listed);
    }
    for (size_t i = 0; i < count && status == WAL_OK; i++) {
        uint64_t offset = wal__block_offset(list[i].offset);
        const struct wal__damaged_block *kept;
        struct wal__span payload;
        struct wal__frame frame;

        if (i > 0 && list[i].sequence == list[i - 1].sequence) {
            continue;
        }
        kept = find_block(blocks, segment, file, offset, &status);
        if (kept != NULL &&
            wal__block_record(records_of(kept), segment->header.salt,
                              list[i].offset, &frame,
                              &payload) == WAL__FMT_OK) {
            status = visitor->record(visitor->ctx, segment, &frame, offset,
                                     payload.data);
        }
    }
    return status;
}
