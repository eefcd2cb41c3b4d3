/*
 * line_delta: reads chunks of lines that are told by others (SPEC.md 5.17).
 *
 * Threads: no shared state.
 */
#include "format/jsonl/line_delta.h"

#include <assert.h>
#include <string.h>

#include "format/bytes.h"
#include "format/crc32.h"
#include "format/jsonl/line_delta_parts.h"

enum {
    VERSION = 1,
    LAST = 1 << 0,
    AT_FLAGS = 1,
    AT_NUMBER = 4,
    AT_LINES = 8,
    AT_UUIDS = 12,
    AT_STEPS = 16, /* raw, then stored */
    AT_TEXT = 24
};

static_assert(AT_TEXT + 8 == WAL__DELTA_HEADER, "SPEC.md 5.17");

uint32_t wal__delta_check(uint32_t check, const void *data, size_t size)
{
    return wal__crc32(check, data, size);
}

void wal__delta_header_encode(const struct wal__delta_header *header,
                              uint8_t bytes[WAL__DELTA_HEADER])
{
    memset(bytes, 0, WAL__DELTA_HEADER);
    bytes[0] = VERSION;
    bytes[AT_FLAGS] = header->is_last ? LAST : 0;
    wal__put32(bytes + AT_NUMBER, header->number);
    wal__put32(bytes + AT_LINES, header->lines);
    wal__put32(bytes + AT_UUIDS, header->uuids);
    wal__put32(bytes + AT_STEPS, header->steps);
    wal__put32(bytes + AT_STEPS + 4, header->steps_stored);
    wal__put32(bytes + AT_TEXT, header->text);
    wal__put32(bytes + AT_TEXT + 4, header->text_stored);
}

bool wal__delta_header_decode(const void *bytes, uint64_t size,
                              struct wal__delta_header *header)
{
    const uint8_t *at = bytes;
    struct wal__delta_header read;
    uint64_t parts;

    if (size < WAL__DELTA_HEADER || at[0] != VERSION ||
        (at[AT_FLAGS] & ~LAST) != 0 || at[2] != 0 || at[3] != 0) {
        return false;
    }
    read = (struct wal__delta_header){
        .number = wal__get32(at + AT_NUMBER),
        .is_last = (at[AT_FLAGS] & LAST) != 0,
        .lines = wal__get32(at + AT_LINES),
        .uuids = wal__get32(at + AT_UUIDS),
        .steps = wal__get32(at + AT_STEPS),
        .steps_stored = wal__get32(at + AT_STEPS + 4),
        .text = wal__get32(at + AT_TEXT),
        .text_stored = wal__get32(at + AT_TEXT + 4),
    };
    parts = (uint64_t)read.uuids * WAL__DELTA_UUID + read.lines +
            read.steps_stored + read.text_stored;
    if (read.lines > WAL__DELTA_LINES || read.uuids > WAL__DELTA_UUIDS ||
        read.steps > WAL__DELTA_PART || read.text > WAL__DELTA_PART ||
        size - WAL__DELTA_HEADER != parts) {
        return false;
    }
    *header = read;
    return true;
}

static const char hex_digits[] = "0123456789abcdef";

void wal__delta_uuid_text(const uint8_t *uuid, uint8_t *text)
{
    for (size_t i = 0; i < WAL__DELTA_UUID; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) {
            *text++ = '-';
        }
        *text++ = (uint8_t)hex_digits[uuid[i] >> 4];
        *text++ = (uint8_t)hex_digits[uuid[i] & 15];
    }
}

void wal__delta_remember(struct wal__delta_recent *recent, const uint8_t *uuid,
                         size_t from)
{
    if (from == recent->count && recent->count < WAL__DELTA_RECENT) {
        recent->count++;
    } else if (from == recent->count) {
        from--;
    }
    memmove(recent->items[1], recent->items[0], from * WAL__DELTA_UUID);
    memcpy(recent->items[0], uuid, WAL__DELTA_UUID);
}

static bool take_byte(struct wal__delta_span *span, uint8_t *byte)
{
    if (span->size == 0) {
        return false;
    }
    *byte = *span->data++;
    span->size--;
    return true;
}

static bool take_number(struct wal__delta_span *span, uint64_t *number)
{
    uint64_t value = 0;
    uint8_t byte;

    for (unsigned shift = 0; shift < 63; shift += 7) {
        if (!take_byte(span, &byte)) {
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

static bool take_bytes(struct wal__delta_span *from, uint64_t size,
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

static bool take_uuid(struct wal__delta_reader *reader, bool is_new,
                      struct wal__delta_span *text)
{
    uint8_t uuid[WAL__DELTA_UUID];
    struct wal__delta_span bytes;
    uint64_t from = reader->recent.count;

    if (is_new) {
        if (!take_bytes(&reader->uuids, WAL__DELTA_UUID, &bytes)) {
            return false;
        }
        memcpy(uuid, bytes.data, WAL__DELTA_UUID);
    } else {
        if (!take_number(&reader->steps, &from) ||
            from >= reader->recent.count) {
            return false;
        }
        memcpy(uuid, reader->recent.items[from], WAL__DELTA_UUID);
    }
    wal__delta_remember(&reader->recent, uuid, (size_t)from);
    wal__delta_uuid_text(uuid, reader->uuid);
    *text = (struct wal__delta_span){reader->uuid, WAL__UUID_TEXT_SIZE};
    return true;
}

bool wal__delta_next(struct wal__delta_reader *reader,
                     struct wal__delta_piece *piece)
{
    uint64_t number = 0;
    uint8_t step;

    if (!take_byte(&reader->steps, &step)) {
        return false;
    }
    *piece = (struct wal__delta_piece){.step = (enum wal__delta_step)step};
    switch (step) {
    case WAL__DELTA_END:
        return true;
    case WAL__DELTA_COPY:
    case WAL__DELTA_SKIP:
        return take_number(&reader->steps, &piece->size);
    case WAL__DELTA_TEXT:
        return take_number(&reader->steps, &number) &&
               take_bytes(&reader->text, number, &piece->text);
    case WAL__DELTA_UUID_NEW:
    case WAL__DELTA_UUID_OLD:
        piece->step = WAL__DELTA_TEXT;
        return take_uuid(reader, step == WAL__DELTA_UUID_NEW, &piece->text);
    case WAL__DELTA_UUID_HERE:
        if (!take_number(&reader->steps, &number)) {
            return false;
        }
        piece->offset = (int64_t)(number >> 1) ^ -(int64_t)(number & 1);
        return true;
    default:
        return false;
    }
}

/* The id of the entry that is named: text and UUIDs. */
static bool take_id(struct wal__delta_reader *reader)
{
    struct wal__delta_piece piece;

    reader->id_size = 0;
    for (;;) {
        if (!wal__delta_next(reader, &piece)) {
            return false;
        }
        if (piece.step == WAL__DELTA_END) {
            return reader->id_size > 0;
        }
        if (piece.step != WAL__DELTA_TEXT ||
            piece.text.size > WAL__DELTA_ID - reader->id_size) {
            return false;
        }
        memcpy(reader->id + reader->id_size, piece.text.data, piece.text.size);
        reader->id_size += piece.text.size;
    }
}

bool wal__delta_line(struct wal__delta_reader *reader,
                     enum wal__delta_kind *kind)
{
    uint8_t byte;

    if (!take_byte(&reader->checks, &reader->check) ||
        !take_byte(&reader->steps, &byte) || byte > WAL__DELTA_OWN) {
        return false;
    }
    *kind = (enum wal__delta_kind)byte;
    return byte != WAL__DELTA_NAMED || take_id(reader);
}
