/*
 * record_blob.c - encodes and decodes the payloads of CHUNK and BLOB (SPEC.md
 * 2.18, 2.19), and decodes the content of a CHUNK: raw, LZ4, or LZ4 blocks
 * whose dictionary is a window of the base.
 *
 * Invariant: a decoder accepts a payload only if its sizes and counts add up to the payload's size,
 * so every digest and byte that they cover is readable. Whatever the bytes are, of a content only
 * data and base are read, and only its size is written.
 */
#include "format/segment/record_blob.h"

#include <lz4.h>
#include <string.h>

#include "format/bytes/bytes.h"
#include "format/segment/frame.h"

/* CHUNK (2.18) */

enum {
    CHUNK_DIGEST = 0,
    CHUNK_CONTENT_SIZE = CHUNK_DIGEST + WAL__DIGEST_SIZE,
    CHUNK_ENCODING = CHUNK_CONTENT_SIZE + 4,
    CHUNK_DEPTH = CHUNK_ENCODING + 1,
    CHUNK_ZERO = CHUNK_DEPTH + 1,
    CHUNK_BASE = CHUNK_ZERO + 2, /* of a delta; otherwise the data begins here */
    CHUNK_DELTA_DATA = 72
};

WAL__FOLLOWS(CHUNK_DELTA_DATA, CHUNK_BASE, WAL__DIGEST_SIZE);
WAL__FOLLOWS(WAL__CHUNK_HEAD_MAX, CHUNK_BASE, WAL__DIGEST_SIZE);

static size_t head_size(uint8_t encoding)
{
    return encoding == WAL__CHUNK_DELTA ? CHUNK_DELTA_DATA : CHUNK_BASE;
}

size_t wal__chunk_record_size(const struct wal__chunk_record *chunk)
{
    return head_size(chunk->encoding) + chunk->data.size;
}

size_t wal__chunk_record_encode_head(const struct wal__chunk_record *chunk, uint8_t *out)
{
    memcpy(out + CHUNK_DIGEST, chunk->digest.bytes, WAL__DIGEST_SIZE);
    wal__put32(out + CHUNK_CONTENT_SIZE, chunk->size);
    out[CHUNK_ENCODING] = chunk->encoding;
    out[CHUNK_DEPTH] = chunk->depth;
    wal__put16(out + CHUNK_ZERO, 0);
    if (chunk->encoding == WAL__CHUNK_DELTA) {
        memcpy(out + CHUNK_BASE, chunk->base.bytes, WAL__DIGEST_SIZE);
    }
    return head_size(chunk->encoding);
}

/* Compressed data must be smaller than the content. */
static bool encoding_is_valid(const struct wal__chunk_record *chunk)
{
    switch (chunk->encoding) {
    case WAL__CHUNK_RAW:
        return chunk->depth == 0 && chunk->data.size == chunk->size;
    case WAL__CHUNK_LZ4:
        return chunk->depth == 0 && chunk->data.size > 0 && chunk->data.size < chunk->size;
    case WAL__CHUNK_DELTA:
        return chunk->depth > 0 && chunk->depth <= WAL__CHUNK_DEPTH_MAX && chunk->data.size > 0 &&
               chunk->data.size < chunk->size;
    default:
        return false;
    }
}

enum wal__fmt wal__chunk_record_decode(struct wal__span payload, struct wal__chunk_record *chunk)
{
    const uint8_t *at = payload.data;
    struct wal__chunk_record read = {.size = 0};
    size_t head;

    if (payload.size < CHUNK_BASE) {
        return WAL__FMT_SHORT;
    }
    memcpy(read.digest.bytes, at + CHUNK_DIGEST, WAL__DIGEST_SIZE);
    read.size = wal__get32(at + CHUNK_CONTENT_SIZE);
    read.encoding = at[CHUNK_ENCODING];
    read.depth = at[CHUNK_DEPTH];
    head = head_size(read.encoding);
    if (payload.size < head) {
        return WAL__FMT_SHORT;
    }
    if (read.encoding == WAL__CHUNK_DELTA) {
        memcpy(read.base.bytes, at + CHUNK_BASE, WAL__DIGEST_SIZE);
    }
    read.data.data = at + head;
    read.data.size = payload.size - head;
    if (read.size > WAL__CHUNK_MAX || wal__get16(at + CHUNK_ZERO) != 0 ||
        !encoding_is_valid(&read)) {
        return WAL__FMT_FIELD;
    }
    WAL__ASSERT(wal__chunk_record_size(&read) == payload.size);
    *chunk = read;
    return WAL__FMT_OK;
}

/* A block of a delta (2.18) */

enum { BLOCK_STORED_SIZE = 0, BLOCK_WINDOW = 4 };

WAL__FOLLOWS(BLOCK_WINDOW, BLOCK_STORED_SIZE, 4);
WAL__FOLLOWS(WAL__CHUNK_BLOCK_HEAD, BLOCK_WINDOW, 4);

void wal__chunk_block_encode_head(const struct wal__chunk_block *block, uint8_t *out)
{
    wal__put32(out + BLOCK_STORED_SIZE, block->stored_size);
    wal__put32(out + BLOCK_WINDOW, (uint32_t)block->window);
}

enum wal__fmt wal__chunk_block_decode(struct wal__span *data, uint32_t size,
                                      struct wal__chunk_block *block)
{
    struct wal__chunk_block read;

    WAL__ASSERT(size > 0 && size <= WAL__CHUNK_BLOCK);
    if (data->size < WAL__CHUNK_BLOCK_HEAD) {
        return WAL__FMT_SHORT;
    }
    read.stored_size = wal__get32(data->data + BLOCK_STORED_SIZE);
    read.window = (int32_t)wal__get32(data->data + BLOCK_WINDOW);
    if (read.stored_size == 0 || read.stored_size > size || read.window <= -WAL__CHUNK_WINDOW ||
        read.window > WAL__CHUNK_MAX) {
        return WAL__FMT_FIELD;
    }
    if (data->size - WAL__CHUNK_BLOCK_HEAD < read.stored_size) {
        return WAL__FMT_SHORT;
    }
    read.stored.data = data->data + WAL__CHUNK_BLOCK_HEAD;
    read.stored.size = read.stored_size;
    data->data += WAL__CHUNK_BLOCK_HEAD + read.stored_size;
    data->size -= WAL__CHUNK_BLOCK_HEAD + read.stored_size;
    WAL__ASSERT(read.stored.data + read.stored.size == data->data);
    *block = read;
    return WAL__FMT_OK;
}

/* BLOB (2.19) */

enum {
    BLOB_DIGEST = 0,
    BLOB_CONTENT_SIZE = BLOB_DIGEST + WAL__DIGEST_SIZE,
    BLOB_CHUNK_COUNT = BLOB_CONTENT_SIZE + 8,
    BLOB_ZERO = BLOB_CHUNK_COUNT + 4,
    BLOB_CHUNKS = 48
};

WAL__FOLLOWS(BLOB_CHUNKS, BLOB_ZERO, 4);
static_assert(BLOB_CHUNKS + WAL__BLOB_CHUNKS_MAX * WAL__DIGEST_SIZE <= WAL__FRAME_PAYLOAD_MAX,
              "the longest BLOB fits its frame");

size_t wal__blob_record_size(const struct wal__blob_record *blob)
{
    return BLOB_CHUNKS + (size_t)blob->chunk_count * WAL__DIGEST_SIZE;
}

void wal__blob_record_encode(const struct wal__blob_record *blob, uint8_t *out)
{
    memcpy(out + BLOB_DIGEST, blob->digest.bytes, WAL__DIGEST_SIZE);
    wal__put64(out + BLOB_CONTENT_SIZE, blob->size);
    wal__put32(out + BLOB_CHUNK_COUNT, blob->chunk_count);
    wal__put32(out + BLOB_ZERO, 0);
    memcpy(out + BLOB_CHUNKS, blob->chunks, (size_t)blob->chunk_count * WAL__DIGEST_SIZE);
}

enum wal__fmt wal__blob_record_decode(struct wal__span payload, struct wal__blob_record *blob)
{
    const uint8_t *at = payload.data;
    struct wal__blob_record read;

    if (payload.size < BLOB_CHUNKS) {
        return WAL__FMT_SHORT;
    }
    memcpy(read.digest.bytes, at + BLOB_DIGEST, WAL__DIGEST_SIZE);
    read.size = wal__get64(at + BLOB_CONTENT_SIZE);
    read.chunk_count = wal__get32(at + BLOB_CHUNK_COUNT);
    read.chunks = at + BLOB_CHUNKS;
    if (read.size <= WAL__CHUNK_MAX ||
        read.size > (uint64_t)WAL__BLOB_CHUNKS_MAX * WAL__CHUNK_MAX ||
        read.chunk_count != (read.size - 1) / WAL__CHUNK_MAX + 1 ||
        wal__get32(at + BLOB_ZERO) != 0) {
        return WAL__FMT_FIELD;
    }
    if (payload.size != wal__blob_record_size(&read)) {
        return payload.size < wal__blob_record_size(&read) ? WAL__FMT_SHORT : WAL__FMT_FIELD;
    }
    *blob = read;
    return WAL__FMT_OK;
}

uint64_t wal__digest_hash(const struct wal__digest *digest)
{
    return wal__get64(digest->bytes);
}

/* --- content of a CHUNK --------------------------------------------------- */

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

static bool decode_block(const struct wal__chunk_block *block, struct wal__span base, uint8_t *out,
                         uint32_t size)
{
    struct wal__span window = wal__chunk_window(base, block->window);

    WAL__ASSERT(block->stored_size <= size);
    if (block->stored_size == size) {
        memcpy(out, block->stored.data, size);
        return true;
    }
    return LZ4_decompress_safe_usingDict((const char *)block->stored.data, (char *)out,
                                         (int)block->stored_size, (int)size,
                                         (const char *)window.data, (int)window.size) == (int)size;
}

static bool decode_delta(struct wal__span data, struct wal__span base, uint8_t *out, uint32_t size)
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

bool wal__chunk_decode_content(const struct wal__chunk_record *chunk, struct wal__span base,
                               uint8_t *out)
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
                                   (int)chunk->data.size, (int)chunk->size) == (int)chunk->size;
    default:
        return decode_delta(chunk->data, base, out, chunk->size);
    }
}
