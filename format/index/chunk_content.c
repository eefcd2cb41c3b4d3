/*
 * chunk_content.c - decodes the content of a CHUNK (SPEC.md 2.18): raw, LZ4, or
 * LZ4 blocks whose dictionary is a window of the base.
 *
 * Invariant: whatever the bytes are, only data and base are read, and only the
 * content's size is written. Threads: any.
 */
#include <lz4.h>
#include <string.h>

#include "format/segment/record_blob.h"

struct wal__span wal__chunk_window(struct wal__span base, int64_t begin)
{
    int64_t end = begin + WAL__CHUNK_WINDOW;
    struct wal__span window = {NULL, 0};

    if (end > (int64_t)base.size) {
        end = (int64_t)base.size;
    }
    if (begin < 0) {
        begin = 0;
    }
    if (begin < end) {
        window.data = base.data + begin;
        window.size = (size_t)(end - begin);
        WAL__ASSERT(window.size <= WAL__CHUNK_WINDOW);
    }
    return window;
}

static bool decode_block(const struct wal__chunk_block *block,
                         struct wal__span base, uint8_t *out, uint32_t size)
{
    struct wal__span window = wal__chunk_window(base, block->window);

    WAL__ASSERT(block->stored_size <= size);
    if (block->stored_size == size) {
        memcpy(out, block->stored.data, size);
        return true;
    }
    return LZ4_decompress_safe_usingDict((const char *)block->stored.data,
                                         (char *)out, (int)block->stored_size,
                                         (int)size, (const char *)window.data,
                                         (int)window.size) == (int)size;
}

static bool decode_delta(struct wal__span data, struct wal__span base,
                         uint8_t *out, uint32_t size)
{
    uint32_t done = 0;

    WAL__ASSERT(size <= WAL__CHUNK_MAX);
    while (done < size) {
        struct wal__chunk_block block;
        uint32_t part = size - done;

        if (part > WAL__CHUNK_BLOCK) {
            part = WAL__CHUNK_BLOCK;
        }
        if (wal__chunk_block_decode(&data, part, &block) != WAL__FMT_OK ||
            !decode_block(&block, base, out + done, part)) {
            return false;
        }
        done += part;
    }
    return data.size == 0;
}

bool wal__chunk_decode_content(const struct wal__chunk_record *chunk,
                               struct wal__span base, uint8_t *out)
{
    switch (chunk->encoding) {
    case WAL__CHUNK_RAW:
        if (chunk->size > 0) {
            WAL__ASSERT(chunk->data.size == chunk->size);
            memcpy(out, chunk->data.data, chunk->size);
        }
        return true;
    case WAL__CHUNK_LZ4:
        return LZ4_decompress_safe((const char *)chunk->data.data, (char *)out,
                                   (int)chunk->data.size,
                                   (int)chunk->size) == (int)chunk->size;
    default:
        return decode_delta(chunk->data, base, out, chunk->size);
    }
}
