/*
 * blob_delta.c - encodes a chunk as a delta of another one: LZ4 blocks whose
 * dictionary is a window of the base (chunk.h; SPEC.md 2.18).
 * format/index/chunk_content.c decodes them. Any thread.
 */
#include <lz4.h>
#include <string.h>

#include "engine/blob/chunk.h"
#include "format/bytes/assert.h"

enum {
    /* Bytes of a window before the block's position: with a block of 32 KiB,
     * 16 KiB on either side are in reach of LZ4, which looks back 64 KiB. */
    WINDOW_LEAD = 16 * 1024
};

/* The working memory of one chunk; too large for the stack. */
struct delta {
    LZ4_stream_t stream;
    char compressed[2][LZ4_COMPRESSBOUND(WAL__CHUNK_BLOCK)];
};

/* The start of the window around a position of the base; WAL__CHUNK_MAX, an
 * empty window, if the base cannot have the position. */
static int32_t window_begin(int64_t position)
{
    int64_t begin = position - WINDOW_LEAD;

    if (begin <= -WAL__CHUNK_WINDOW || begin > WAL__CHUNK_MAX) {
        return WAL__CHUNK_MAX;
    }
    return (int32_t)begin;
}

/* Compresses a block with one window into compressed[to], and returns its size;
 * 0 on failure. */
static uint32_t compress_block(struct delta *delta, struct wal__span block,
                               struct wal__span base, int32_t begin, int to)
{
    struct wal__span window = wal__chunk_window(base, begin);

    WAL__ASSERT(block.size > 0 && block.size <= WAL__CHUNK_BLOCK);
    WAL__ASSERT(window.size <= WAL__CHUNK_WINDOW);
    LZ4_resetStream_fast(&delta->stream);
    (void)LZ4_loadDict(&delta->stream, (const char *)window.data,
                       (int)window.size);
    return (uint32_t)LZ4_compress_fast_continue(
        &delta->stream, (const char *)block.data, delta->compressed[to],
        (int)block.size, (int)sizeof(delta->compressed[to]), 1);
}

/* Appends a block, compressed or raw. */
static enum wal_status put_block(struct wal__buf *out, const uint8_t *bytes,
                                 uint32_t size, int32_t window)
{
    struct wal__chunk_block block = {.stored_size = size, .window = window};
    enum wal_status status;
    uint8_t *end;

    WAL__ASSERT(size <= WAL__CHUNK_BLOCK);
    status = wal__buf_reserve(out, WAL__CHUNK_BLOCK_HEAD + size, &end);
    if (status != WAL_OK) {
        return status;
    }
    wal__chunk_block_encode_head(&block, end);
    memcpy(end + WAL__CHUNK_BLOCK_HEAD, bytes, size);
    out->size += WAL__CHUNK_BLOCK_HEAD + size;
    return WAL_OK;
}

/* Tries two positions of the base: at the block's distance from the front, and
 * at its distance from the end, since an edit shifts all bytes after it. */
static enum wal_status encode_block(struct delta *delta,
                                    struct wal__span content, size_t offset,
                                    struct wal__span base, struct wal__buf *out)
{
    struct wal__span block = {content.data + offset, content.size - offset};
    int64_t shift = (int64_t)base.size - (int64_t)content.size;
    int32_t front = window_begin((int64_t)offset);
    int32_t back = window_begin((int64_t)offset + shift);
    int32_t window = front;
    uint32_t size;
    int best = 0;

    WAL__ASSERT(offset < content.size);
    if (block.size > WAL__CHUNK_BLOCK) {
        block.size = WAL__CHUNK_BLOCK;
    }
    size = compress_block(delta, block, base, front, 0);
    if (back != front) {
        uint32_t other = compress_block(delta, block, base, back, 1);

        if (other < size) {
            size = other;
            window = back;
            best = 1;
        }
    }
    if (size == 0 || size >= block.size) {
        return put_block(out, block.data, (uint32_t)block.size, 0);
    }
    return put_block(out, (const uint8_t *)delta->compressed[best], size,
                     window);
}

enum wal_status wal__delta_encode(const struct wal__heap *heap,
                                  struct wal__span content,
                                  struct wal__span base, size_t limit,
                                  struct wal__buf *out)
{
    struct delta *delta = wal__heap_alloc(heap, sizeof(*delta));
    size_t before = out->size;
    enum wal_status status = WAL_OK;

    WAL__ASSERT(content.size <= WAL__CHUNK_MAX && base.size <= WAL__CHUNK_MAX);
    if (delta == NULL) {
        return WAL_ENOMEM;
    }
    (void)LZ4_initStream(&delta->stream, sizeof(delta->stream));
    for (size_t at = 0; at < content.size && status == WAL_OK;
         at += WAL__CHUNK_BLOCK) {
        status = encode_block(delta, content, at, base, out);
        if (status == WAL_OK && out->size - before > limit) {
            status = WAL_END;
        }
    }
    wal__heap_free(heap, delta);
    if (status != WAL_OK) {
        out->size = before;
    }
    return status;
}
