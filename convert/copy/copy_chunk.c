/*
 * copy_chunk.c - decodes the chunks of a copy (copy_chunk.h).
 *
 * Threads: no shared state.
 */
#include "convert/copy/copy_chunk.h"

#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "engine/base/heap.h"
#include "format/bytes/assert.h"
#include "format/bytes/bytes.h"

enum {
    VERSION = 1,
    FLAG_LAST = 1 << 0,
    HEADER_SIZE = 32,
    OFFSET_FLAGS = 1,
    OFFSET_NUMBER = 4,
    OFFSET_LINES = 8,
    OFFSET_UUIDS = 12,
    OFFSET_STEPS = 16, /* uncompressed, then stored size */
    OFFSET_TEXT = 24,
    LINES_MAX = 4096,
    UUIDS_MAX = 4096
};

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

/* Takes the bytes from the front of *from. */
static bool read_bytes(struct wal_slice *from, uint64_t size,
                       struct wal_slice *bytes)
{
    if (size > from->size) {
        return false;
    }
    *bytes = (struct wal_slice){from->data, size};
    from->data = (const uint8_t *)from->data + size;
    from->size -= size;
    return true;
}

/* Inflates the next part of the payload. *sizes are those of the header. */
static enum wal_status inflate_part(const struct wal__heap *heap,
                                    struct wal_slice *payload,
                                    const uint8_t *sizes, uint8_t *raw,
                                    struct wal_slice *part)
{
    uint32_t raw_size = wal__get32(sizes);
    struct wal_slice stored;
    z_stream stream = {
        .next_out = raw,
        .avail_out = raw_size,
        .zalloc = zlib_alloc,
        .zfree = zlib_free,
        .opaque = (void *)(uintptr_t)heap,
    };
    int result;

    if (raw_size > WAL__COPY_PART_MAX ||
        !read_bytes(payload, wal__get32(sizes + 4), &stored)) {
        return WAL_ECORRUPT;
    }
    *part = (struct wal_slice){raw, raw_size};
    if (raw_size == 0) {
        return stored.size == 0 ? WAL_OK : WAL_ECORRUPT;
    }
    stream.next_in = (uint8_t *)(uintptr_t)stored.data;
    stream.avail_in = (uInt)stored.size;
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
    struct wal__copy_reader *reader = &chunk->reader;
    const struct wal__heap *heap = chunk_heap(chunk);
    const uint8_t *header = payload.data;
    struct wal_slice skipped;
    enum wal_status status;
    uint32_t lines;
    uint32_t uuids;

    memset(reader, 0, sizeof(*reader));
    if (!read_bytes(&payload, HEADER_SIZE, &skipped) || header[0] != VERSION ||
        (header[OFFSET_FLAGS] & ~FLAG_LAST) != 0 || header[2] != 0 ||
        header[3] != 0) {
        return WAL_ECORRUPT;
    }
    lines = wal__get32(header + OFFSET_LINES);
    uuids = wal__get32(header + OFFSET_UUIDS);
    if (lines > LINES_MAX || uuids > UUIDS_MAX) {
        return WAL_ECORRUPT;
    }
    if (chunk->memory == NULL) {
        chunk->memory = wal__heap_alloc(heap, 2 * (size_t)WAL__COPY_PART_MAX);
    }
    if (chunk->memory == NULL) {
        return WAL_ENOMEM;
    }
    status = inflate_part(heap, &payload, header + OFFSET_STEPS, chunk->memory,
                          &reader->steps);
    if (status == WAL_OK) {
        status =
            inflate_part(heap, &payload, header + OFFSET_TEXT,
                         chunk->memory + WAL__COPY_PART_MAX, &reader->text);
    }
    if (status != WAL_OK) {
        return status;
    }
    if (!read_bytes(&payload, (uint64_t)uuids * WAL__COPY_UUID_SIZE,
                    &reader->uuids) ||
        payload.size != lines) {
        return WAL_ECORRUPT;
    }
    reader->checks = payload;
    chunk->number = wal__get32(header + OFFSET_NUMBER);
    chunk->is_last = (header[OFFSET_FLAGS] & FLAG_LAST) != 0;
    return WAL_OK;
}

void wal__copy_chunk_deinit(struct wal__copy_chunk *chunk)
{
    wal__heap_free(chunk_heap(chunk), chunk->memory);
    chunk->memory = NULL;
}

static bool read_byte(struct wal_slice *from, uint8_t *byte)
{
    struct wal_slice bytes;

    if (!read_bytes(from, 1, &bytes)) {
        return false;
    }
    *byte = *(const uint8_t *)bytes.data;
    return true;
}

static bool read_number(struct wal_slice *from, uint64_t *number)
{
    uint64_t value = 0;
    uint8_t byte;

    for (unsigned shift = 0; shift < 63; shift += 7) {
        if (!read_byte(from, &byte)) {
            return false;
        }
        value |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80) {
            *number = value;
            return true;
        }
    }
    return false;
}

/* Moves the UUID at index `from` to the front; from == count: adds it. */
static void touch_recent(struct wal__copy_reader *reader, const uint8_t *uuid,
                         size_t from)
{
    WAL__ASSERT(from <= reader->recent_count);
    if (from == reader->recent_count && from < WAL__COPY_RECENT_MAX) {
        reader->recent_count++;
    } else if (from == reader->recent_count) {
        from--;
    }
    memmove(reader->recent[1], reader->recent[0], from * WAL__COPY_UUID_SIZE);
    memcpy(reader->recent[0], uuid, WAL__COPY_UUID_SIZE);
}

static bool read_uuid(struct wal__copy_reader *reader, bool is_new,
                      struct wal_slice *text)
{
    uint8_t uuid[WAL__COPY_UUID_SIZE];
    struct wal_slice bytes;
    uint64_t from = reader->recent_count;

    if (is_new) {
        if (!read_bytes(&reader->uuids, WAL__COPY_UUID_SIZE, &bytes)) {
            return false;
        }
        memcpy(uuid, bytes.data, WAL__COPY_UUID_SIZE);
    } else {
        if (!read_number(&reader->steps, &from) ||
            from >= reader->recent_count) {
            return false;
        }
        memcpy(uuid, reader->recent[from], WAL__COPY_UUID_SIZE);
    }
    touch_recent(reader, uuid, (size_t)from);
    for (size_t i = 0, at = 0; i < WAL__COPY_UUID_SIZE; i++) {
        at += (size_t)sprintf(reader->uuid + at, "%s%02x",
                              i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                              uuid[i]);
    }
    *text = (struct wal_slice){reader->uuid, WAL__COPY_UUID_TEXT_SIZE};
    return true;
}

bool wal__copy_read_step(struct wal__copy_reader *reader,
                         struct wal__copy_step *step)
{
    uint64_t number = 0;
    uint8_t opcode;

    if (!read_byte(&reader->steps, &opcode)) {
        return false;
    }
    *step = (struct wal__copy_step){.opcode = (enum wal__copy_opcode)opcode};
    switch (opcode) {
    case WAL__COPY_END:
        return true;
    case WAL__COPY_BYTES:
    case WAL__COPY_SKIP:
        return read_number(&reader->steps, &step->size);
    case WAL__COPY_TEXT:
        return read_number(&reader->steps, &number) &&
               read_bytes(&reader->text, number, &step->text);
    case WAL__COPY_UUID_NEW:
    case WAL__COPY_UUID_RECENT:
        step->opcode = WAL__COPY_TEXT;
        return read_uuid(reader, opcode == WAL__COPY_UUID_NEW, &step->text);
    case WAL__COPY_UUID_NEARBY:
        if (!read_number(&reader->steps, &number)) {
            return false;
        }
        step->offset = (int64_t)(number >> 1) ^ -(int64_t)(number & 1);
        return true;
    default:
        return false;
    }
}

/* Decodes the id of an entry, which consists of text and UUIDs. */
static bool read_id(struct wal__copy_reader *reader)
{
    struct wal__copy_step step;

    reader->id_size = 0;
    for (;;) {
        if (!wal__copy_read_step(reader, &step)) {
            return false;
        }
        if (step.opcode == WAL__COPY_END) {
            return reader->id_size > 0;
        }
        if (step.opcode != WAL__COPY_TEXT ||
            step.text.size > WAL__COPY_ID_MAX - reader->id_size) {
            return false;
        }
        if (step.text.size > 0) {
            memcpy(reader->id + reader->id_size, step.text.data,
                   (size_t)step.text.size);
        }
        reader->id_size += (size_t)step.text.size;
    }
}

bool wal__copy_read_line(struct wal__copy_reader *reader,
                         enum wal__copy_line_kind *kind)
{
    uint8_t byte;

    if (!read_byte(&reader->checks, &reader->check) ||
        !read_byte(&reader->steps, &byte) || byte > WAL__COPY_LINE_OWN) {
        return false;
    }
    *kind = (enum wal__copy_line_kind)byte;
    return byte != WAL__COPY_LINE_NAMED || read_id(reader);
}

bool wal__copy_chunk_is_valid(struct wal_slice payload)
{
    struct wal__copy_chunk chunk = {.memory = NULL};
    bool is_valid = wal__copy_chunk_decode(&chunk, payload) == WAL_OK;

    while (is_valid && chunk.reader.checks.size > 0) {
        struct wal__copy_step step = {.opcode = WAL__COPY_TEXT};
        enum wal__copy_line_kind kind = WAL__COPY_LINE_OWN;

        is_valid = wal__copy_read_line(&chunk.reader, &kind);
        while (is_valid && kind != WAL__COPY_LINE_OWN &&
               step.opcode != WAL__COPY_END) {
            is_valid = wal__copy_read_step(&chunk.reader, &step);
        }
    }
    wal__copy_chunk_deinit(&chunk);
    return is_valid;
}
