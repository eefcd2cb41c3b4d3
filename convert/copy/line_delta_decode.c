/*
 * line_delta_decode.c - decodes chunks of encoded lines (line_delta.h, SPEC.md
 * 5.17).
 *
 * Threads: no shared state.
 */
#include "convert/copy/line_delta.h"

#include <assert.h>
#include <string.h>

#include "convert/copy/line_delta_internal.h"
#include "format/bytes/assert.h"
#include "format/bytes/bytes.h"
#include "format/bytes/crc32.h"

enum {
    VERSION = 1,
    FLAG_LAST = 1 << 0,
    OFFSET_FLAGS = 1,
    OFFSET_NUMBER = 4,
    OFFSET_LINES = 8,
    OFFSET_UUIDS = 12,
    OFFSET_OPS = 16, /* uncompressed, then stored size */
    OFFSET_TEXT = 24
};

static_assert(OFFSET_TEXT + 8 == WAL__DELTA_HEADER_SIZE, "SPEC.md 5.17");

uint32_t wal__delta_crc(uint32_t check, const void *data, size_t size)
{
    return wal__crc32(check, data, size);
}

void wal__delta_header_encode(const struct wal__delta_header *header,
                              uint8_t bytes[WAL__DELTA_HEADER_SIZE])
{
    memset(bytes, 0, WAL__DELTA_HEADER_SIZE);
    bytes[0] = VERSION;
    bytes[OFFSET_FLAGS] = header->is_last ? FLAG_LAST : 0;
    wal__put32(bytes + OFFSET_NUMBER, header->number);
    wal__put32(bytes + OFFSET_LINES, header->lines);
    wal__put32(bytes + OFFSET_UUIDS, header->uuids);
    wal__put32(bytes + OFFSET_OPS, header->ops);
    wal__put32(bytes + OFFSET_OPS + 4, header->ops_stored);
    wal__put32(bytes + OFFSET_TEXT, header->text);
    wal__put32(bytes + OFFSET_TEXT + 4, header->text_stored);
}

bool wal__delta_header_decode(const void *bytes, uint64_t size,
                              struct wal__delta_header *header)
{
    const uint8_t *at = bytes;
    struct wal__delta_header read;
    uint64_t parts;

    if (size < WAL__DELTA_HEADER_SIZE || at[0] != VERSION ||
        (at[OFFSET_FLAGS] & ~FLAG_LAST) != 0 || at[2] != 0 || at[3] != 0) {
        return false;
    }
    read = (struct wal__delta_header){
        .number = wal__get32(at + OFFSET_NUMBER),
        .is_last = (at[OFFSET_FLAGS] & FLAG_LAST) != 0,
        .lines = wal__get32(at + OFFSET_LINES),
        .uuids = wal__get32(at + OFFSET_UUIDS),
        .ops = wal__get32(at + OFFSET_OPS),
        .ops_stored = wal__get32(at + OFFSET_OPS + 4),
        .text = wal__get32(at + OFFSET_TEXT),
        .text_stored = wal__get32(at + OFFSET_TEXT + 4),
    };
    parts = (uint64_t)read.uuids * WAL__DELTA_UUID_SIZE + read.lines +
            read.ops_stored + read.text_stored;
    if (read.lines > WAL__DELTA_LINES_MAX ||
        read.uuids > WAL__DELTA_UUIDS_MAX || read.ops > WAL__DELTA_PART_MAX ||
        read.text > WAL__DELTA_PART_MAX ||
        size - WAL__DELTA_HEADER_SIZE != parts) {
        return false;
    }
    *header = read;
    return true;
}

static const char hex_digits[] = "0123456789abcdef";

void wal__delta_uuid_text(const uint8_t *uuid, uint8_t *text)
{
    for (size_t i = 0; i < WAL__DELTA_UUID_SIZE; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) {
            *text++ = '-';
        }
        *text++ = (uint8_t)hex_digits[uuid[i] >> 4];
        *text++ = (uint8_t)hex_digits[uuid[i] & 15];
    }
}

void wal__delta_recent_touch(struct wal__delta_recent *recent,
                             const uint8_t *uuid, size_t from)
{
    WAL__ASSERT(from <= recent->count);
    WAL__ASSERT(recent->count <= WAL__DELTA_RECENT_COUNT);
    if (from == recent->count && recent->count < WAL__DELTA_RECENT_COUNT) {
        recent->count++;
    } else if (from == recent->count) {
        from--;
    }
    memmove(recent->items[1], recent->items[0], from * WAL__DELTA_UUID_SIZE);
    memcpy(recent->items[0], uuid, WAL__DELTA_UUID_SIZE);
}

static bool read_byte(struct wal__delta_span *span, uint8_t *byte)
{
    if (span->size == 0) {
        return false;
    }
    *byte = *span->data++;
    span->size--;
    return true;
}

static bool read_varint(struct wal__delta_span *span, uint64_t *number)
{
    uint64_t value = 0;
    uint8_t byte;

    for (unsigned shift = 0; shift < 63; shift += 7) {
        if (!read_byte(span, &byte)) {
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

static bool read_bytes(struct wal__delta_span *from, uint64_t size,
                       struct wal__delta_span *bytes)
{
    if (size > from->size) {
        return false;
    }
    *bytes = (struct wal__delta_span){from->data, (size_t)size};
    from->data += size;
    from->size -= (size_t)size;
    return true;
}

static bool read_uuid(struct wal__delta_reader *reader, bool is_new,
                      struct wal__delta_span *text)
{
    uint8_t uuid[WAL__DELTA_UUID_SIZE];
    struct wal__delta_span bytes;
    uint64_t from = reader->recent.count;

    if (is_new) {
        if (!read_bytes(&reader->uuids, WAL__DELTA_UUID_SIZE, &bytes)) {
            return false;
        }
        memcpy(uuid, bytes.data, WAL__DELTA_UUID_SIZE);
    } else {
        if (!read_varint(&reader->ops, &from) || from >= reader->recent.count) {
            return false;
        }
        memcpy(uuid, reader->recent.items[from], WAL__DELTA_UUID_SIZE);
    }
    wal__delta_recent_touch(&reader->recent, uuid, (size_t)from);
    wal__delta_uuid_text(uuid, reader->uuid);
    *text = (struct wal__delta_span){reader->uuid, WAL__UUID_TEXT_SIZE};
    return true;
}

bool wal__delta_decode_op(struct wal__delta_reader *reader,
                          struct wal__delta_op *op)
{
    uint64_t number = 0;
    uint8_t step;

    if (!read_byte(&reader->ops, &step)) {
        return false;
    }
    *op = (struct wal__delta_op){.opcode = (enum wal__delta_opcode)step};
    switch (step) {
    case WAL__DELTA_OP_END:
        return true;
    case WAL__DELTA_OP_COPY:
    case WAL__DELTA_OP_SKIP:
        return read_varint(&reader->ops, &op->size);
    case WAL__DELTA_OP_INSERT:
        return read_varint(&reader->ops, &number) &&
               read_bytes(&reader->text, number, &op->text);
    case WAL__DELTA_OP_UUID_NEW:
    case WAL__DELTA_OP_UUID_RECENT:
        op->opcode = WAL__DELTA_OP_INSERT;
        return read_uuid(reader, step == WAL__DELTA_OP_UUID_NEW, &op->text);
    case WAL__DELTA_OP_UUID_NEARBY:
        if (!read_varint(&reader->ops, &number)) {
            return false;
        }
        op->offset = (int64_t)(number >> 1) ^ -(int64_t)(number & 1);
        return true;
    default:
        return false;
    }
}

/* Decodes the id of an entry, which consists of text and UUIDs. */
static bool read_id(struct wal__delta_reader *reader)
{
    struct wal__delta_op op;

    reader->id_size = 0;
    for (;;) {
        if (!wal__delta_decode_op(reader, &op)) {
            return false;
        }
        if (op.opcode == WAL__DELTA_OP_END) {
            return reader->id_size > 0;
        }
        if (op.opcode != WAL__DELTA_OP_INSERT ||
            op.text.size > WAL__DELTA_ID_MAX - reader->id_size) {
            return false;
        }
        memcpy(reader->id + reader->id_size, op.text.data, op.text.size);
        reader->id_size += op.text.size;
    }
}

bool wal__delta_decode_line(struct wal__delta_reader *reader,
                            enum wal__delta_line_kind *kind)
{
    uint8_t byte;

    if (!read_byte(&reader->checks, &reader->check) ||
        !read_byte(&reader->ops, &byte) || byte > WAL__DELTA_LINE_ADDED) {
        return false;
    }
    *kind = (enum wal__delta_line_kind)byte;
    return byte != WAL__DELTA_LINE_BY_ID || read_id(reader);
}
