/*
 * copy_chunk.c - encodes and decodes the chunks of a copy (copy_chunk.h).
 *
 * Threads: no shared state.
 */
#include "convert/copy/copy_chunk.h"

#include <string.h>
#include <zlib.h>

#include "engine/base/heap.h"
#include "format/bytes/assert.h"

static const struct wal__heap *chunk_heap(const struct wal__copy_chunk *chunk)
{
    return chunk->heap != NULL ? chunk->heap : &wal__heap_libc;
}

static void *zlib_alloc(void *heap, uInt count, uInt size)
{
    return wal__heap_resize(heap, NULL, count, size);
}

static void zlib_free(void *heap, void *at)
{
    wal__heap_free(heap, at);
}

static enum wal_status inflate_part(const struct wal__heap *heap,
                                    const uint8_t *stored, uint32_t stored_size,
                                    uint8_t *raw, uint32_t raw_size)
{
    z_stream stream = {
        .next_in = (uint8_t *)(uintptr_t)stored,
        .avail_in = stored_size,
        .next_out = raw,
        .avail_out = raw_size,
        .zalloc = zlib_alloc,
        .zfree = zlib_free,
        .opaque = (void *)(uintptr_t)heap,
    };
    int result;

    if (raw_size == 0) {
        return stored_size == 0 ? WAL_OK : WAL_ECORRUPT;
    }
    if (inflateInit(&stream) != Z_OK) {
        return WAL_ENOMEM;
    }
    result = inflate(&stream, Z_FINISH);
    inflateEnd(&stream);
    if (result == Z_MEM_ERROR) {
        return WAL_ENOMEM;
    }
    return result == Z_STREAM_END && stream.avail_out == 0 ? WAL_OK
                                                           : WAL_ECORRUPT;
}

enum wal_status wal__copy_chunk_decode(struct wal__copy_chunk *chunk,
                                       struct wal_slice payload)
{
    struct wal__delta_reader *reader = &chunk->reader;
    const uint8_t *at = payload.data;
    struct wal__delta_header header;
    enum wal_status status;

    memset(reader, 0, sizeof(*reader));
    if (!wal__delta_header_decode(at, payload.size, &header)) {
        return WAL_ECORRUPT;
    }
    if (chunk->memory == NULL) {
        chunk->memory =
            wal__heap_alloc(chunk_heap(chunk), 2 * (size_t)WAL__DELTA_PART_MAX);
    }
    if (chunk->memory == NULL) {
        return WAL_ENOMEM;
    }
    chunk->number = header.number;
    chunk->is_last = header.is_last;
    at += WAL__DELTA_HEADER_SIZE;
    status = inflate_part(chunk_heap(chunk), at, header.ops_stored,
                          chunk->memory, header.ops);
    at += header.ops_stored;
    if (status == WAL_OK) {
        status = inflate_part(chunk_heap(chunk), at, header.text_stored,
                              chunk->memory + WAL__DELTA_PART_MAX, header.text);
    }
    at += header.text_stored;
    if (status != WAL_OK) {
        return status;
    }
    WAL__ASSERT(header.ops <= WAL__DELTA_PART_MAX);
    WAL__ASSERT(header.text <= WAL__DELTA_PART_MAX);
    reader->ops = (struct wal__delta_span){chunk->memory, header.ops};
    reader->text = (struct wal__delta_span){chunk->memory + WAL__DELTA_PART_MAX,
                                            header.text};
    reader->uuids = (struct wal__delta_span){at, (size_t)header.uuids *
                                                     WAL__DELTA_UUID_SIZE};
    reader->checks =
        (struct wal__delta_span){at + reader->uuids.size, header.lines};
    return WAL_OK;
}

void wal__copy_chunk_deinit(struct wal__copy_chunk *chunk)
{
    wal__heap_free(chunk_heap(chunk), chunk->memory);
    chunk->memory = NULL;
}

static bool skip_line(struct wal__delta_reader *reader)
{
    struct wal__delta_op op;
    enum wal__delta_line_kind kind;

    if (!wal__delta_decode_line(reader, &kind)) {
        return false;
    }
    do {
        if (kind != WAL__DELTA_LINE_ADDED &&
            !wal__delta_decode_op(reader, &op)) {
            return false;
        }
    } while (kind != WAL__DELTA_LINE_ADDED && op.opcode != WAL__DELTA_OP_END);
    return true;
}

bool wal__copy_chunk_is_valid(struct wal_slice payload)
{
    struct wal__copy_chunk chunk = {.memory = NULL};
    bool is_valid = wal__copy_chunk_decode(&chunk, payload) == WAL_OK;

    while (is_valid && chunk.reader.checks.size > 0) {
        is_valid = skip_line(&chunk.reader);
    }
    wal__copy_chunk_deinit(&chunk);
    return is_valid;
}

static enum wal_status append_deflated(const uint8_t *raw, size_t raw_size,
                                       uint8_t *bytes, size_t *size,
                                       uint32_t *stored)
{
    uLongf stored_size = compressBound((uLong)raw_size);

    *stored = 0;
    if (raw_size == 0) {
        return WAL_OK;
    }
    WAL__ASSERT(*size + stored_size <= WAL__COPY_CHUNK_MAX);
    if (compress2(bytes + *size, &stored_size, raw, (uLong)raw_size,
                  Z_BEST_COMPRESSION) != Z_OK) {
        return WAL_ENOMEM;
    }
    *stored = (uint32_t)stored_size;
    *size += stored_size;
    return WAL_OK;
}

static void append_bytes(const void *from, size_t from_size, uint8_t *bytes,
                         size_t *size)
{
    WAL__ASSERT(*size + from_size <= WAL__COPY_CHUNK_MAX);
    memcpy(bytes + *size, from, from_size);
    *size += from_size;
}

enum wal_status wal__copy_chunk_encode(const struct wal__delta_chunk *chunk,
                                       uint32_t number, bool is_last,
                                       uint8_t *bytes, size_t *size)
{
    struct wal__delta_header header = {
        .number = number,
        .is_last = is_last,
        .lines = (uint32_t)chunk->line_count,
        .uuids = (uint32_t)chunk->uuid_count,
        .ops = (uint32_t)chunk->ops_size,
        .text = (uint32_t)chunk->text_size,
    };
    enum wal_status status;

    WAL__ASSERT(chunk->line_count <= WAL__DELTA_LINES_MAX);
    WAL__ASSERT(chunk->uuid_count <= WAL__DELTA_UUIDS_MAX);
    *size = WAL__DELTA_HEADER_SIZE;
    status = append_deflated(chunk->ops, chunk->ops_size, bytes, size,
                             &header.ops_stored);
    if (status != WAL_OK) {
        return status;
    }
    status = append_deflated(chunk->text, chunk->text_size, bytes, size,
                             &header.text_stored);
    if (status != WAL_OK) {
        return status;
    }
    append_bytes(chunk->uuids, chunk->uuid_count * WAL__DELTA_UUID_SIZE, bytes,
                 size);
    append_bytes(chunk->checks, chunk->line_count, bytes, size);
    wal__delta_header_encode(&header, bytes);
    return WAL_OK;
}
