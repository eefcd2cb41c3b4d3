/*
 * frame.c - encodes and decodes frame headers (SPEC.md 2.3) and BLOCK (2.23).
 *
 * Invariant: no field is used before the header's checksum was verified, and no returned size
 * exceeds the bytes of the caller. No size from the payload of a BLOCK is used before it was
 * compared with the bytes that are there.
 */
#include "format/segment/frame.h"

#include <lz4.h>
#include <lz4hc.h>

#include "format/bytes/bytes.h"
#include "format/bytes/crc32.h"
#include "format/segment/record.h"
#include "format/segment/segment_fmt.h"

/* Offsets in the header. */
enum {
    AT_HEADER_CRC = 0,
    AT_DATA_CRC = AT_HEADER_CRC + 4,
    AT_STORED_SIZE = AT_DATA_CRC + 4,
    AT_RAW_SIZE = AT_STORED_SIZE + 4,
    AT_TYPE = AT_RAW_SIZE + 4,
    AT_FLAGS = AT_TYPE + 1,
    AT_STREAM = AT_FLAGS + 1,
    AT_KIND = AT_STREAM + 1,
    AT_SESSION = AT_KIND + 1,
    AT_SEQUENCE = AT_SESSION + 4,
    AT_PARENT = AT_SEQUENCE + 8,
    AT_ID_HASH = 40
};

WAL__FOLLOWS(AT_ID_HASH, AT_PARENT, 8);
WAL__FOLLOWS(WAL__FRAME_SIZE, AT_ID_HASH, 8);
static_assert(WAL__FRAME_SIZE % WAL__FRAME_ALIGN == 0, "a payload is aligned");
static_assert(WAL__FRAME_ENTRY_MAX == WAL__PAYLOAD_MAX + WAL__FRAME_PAYLOAD_MAX,
              "an entry consists of a payload and its fields");
static_assert((int)WAL__FRAME_INDEX_MAX == (int)WAL__SEGMENT_MAX,
              "an index is no larger than a segment");

enum {
    FLAGS_KNOWN = WAL__FRAME_LZ4 | WAL__FRAME_FIRST | WAL__FRAME_LAST | WAL__FRAME_REWRITTEN |
                  WAL__FRAME_IGNORABLE | WAL__FRAME_MOVES_HEAD | WAL__FRAME_PROVISIONAL
};

bool wal__frame_is_sequenced(uint8_t type)
{
    switch (type) {
    case WAL__FRAME_OPEN:
    case WAL__FRAME_COMMIT:
    case WAL__FRAME_INDEX:
    case WAL__FRAME_SEAL:
    case WAL__FRAME_BLOCK:
        return false;
    default:
        return true;
    }
}

bool wal__frame_is_secret(uint8_t type)
{
    return type != WAL__FRAME_OPEN && type != WAL__FRAME_COMMIT && type != WAL__FRAME_SEAL;
}

const char *wal__frame_type_name(uint8_t type)
{
    switch (type) {
    case WAL__FRAME_OPEN:
        return "OPEN";
    case WAL__FRAME_SESSION:
        return "SESSION";
    case WAL__FRAME_ENTRY:
        return "ENTRY";
    case WAL__FRAME_FORK:
        return "FORK";
    case WAL__FRAME_HEAD:
        return "HEAD";
    case WAL__FRAME_DOC:
        return "DOC";
    case WAL__FRAME_DOC_DELETE:
        return "DOC_DELETE";
    case WAL__FRAME_REDACT:
        return "REDACT";
    case WAL__FRAME_TOMBSTONE:
        return "TOMBSTONE";
    case WAL__FRAME_CHUNK:
        return "CHUNK";
    case WAL__FRAME_BLOB:
        return "BLOB";
    case WAL__FRAME_COMMIT:
        return "COMMIT";
    case WAL__FRAME_INDEX:
        return "INDEX";
    case WAL__FRAME_SEAL:
        return "SEAL";
    case WAL__FRAME_ACCEPT:
        return "ACCEPT";
    case WAL__FRAME_BLOCK:
        return "BLOCK";
    case WAL__FRAME_RESTORE:
        return "RESTORE";
    default:
        return "UNKNOWN";
    }
}

static bool is_known(uint8_t type)
{
    return type >= WAL__FRAME_OPEN && type <= WAL__FRAME_RESTORE;
}

static uint32_t payload_max(uint8_t type)
{
    switch (type) {
    case WAL__FRAME_ENTRY:
    case WAL__FRAME_DOC:
        return WAL__FRAME_ENTRY_MAX;
    case WAL__FRAME_BLOCK:
        return WAL__FRAME_BLOCK_MAX;
    case WAL__FRAME_INDEX:
        return WAL__FRAME_INDEX_MAX;
    case WAL__FRAME_TOMBSTONE:
    case WAL__FRAME_ACCEPT:
    case WAL__FRAME_RESTORE:
        return WAL__FRAME_CIPHER_SIZE; /* encrypted; else 0 */
    default:
        return WAL__FRAME_PAYLOAD_MAX;
    }
}

static uint32_t header_crc(const uint8_t *at, uint64_t salt, uint64_t offset)
{
    return wal__crc32(wal__crc32_seed(salt, offset), at + AT_DATA_CRC,
                      WAL__FRAME_SIZE - AT_DATA_CRC);
}

static bool is_never_written(const uint8_t *at)
{
    uint64_t bits = 0;

    for (size_t i = 0; i < WAL__FRAME_SIZE; i += sizeof(bits)) {
        bits |= wal__get64(at + i);
    }
    return bits == 0;
}

void wal__frame_encode(struct wal__frame *frame, uint64_t salt, uint64_t offset, uint8_t *out)
{
    wal__put32(out + AT_DATA_CRC, frame->data_crc);
    wal__put32(out + AT_STORED_SIZE, frame->stored_size);
    wal__put32(out + AT_RAW_SIZE, frame->raw_size);
    out[AT_TYPE] = frame->type;
    out[AT_FLAGS] = frame->flags;
    out[AT_STREAM] = frame->stream;
    out[AT_KIND] = frame->kind;
    wal__put32(out + AT_SESSION, frame->session);
    wal__put64(out + AT_SEQUENCE, frame->sequence);
    wal__put64(out + AT_PARENT, frame->parent);
    wal__put64(out + AT_ID_HASH, frame->id_hash);
    frame->header_crc = header_crc(out, salt, offset);
    wal__put32(out + AT_HEADER_CRC, frame->header_crc);
}

static void read_fields(const uint8_t *at, struct wal__frame *frame)
{
    frame->header_crc = wal__get32(at + AT_HEADER_CRC);
    frame->data_crc = wal__get32(at + AT_DATA_CRC);
    frame->stored_size = wal__get32(at + AT_STORED_SIZE);
    frame->raw_size = wal__get32(at + AT_RAW_SIZE);
    frame->type = at[AT_TYPE];
    frame->flags = at[AT_FLAGS];
    frame->stream = at[AT_STREAM];
    frame->kind = at[AT_KIND];
    frame->session = wal__get32(at + AT_SESSION);
    frame->sequence = wal__get64(at + AT_SEQUENCE);
    frame->parent = wal__get64(at + AT_PARENT);
    frame->id_hash = wal__get64(at + AT_ID_HASH);
}

static bool sizes_are_valid(const struct wal__frame *frame)
{
    uint32_t max = payload_max(frame->type);

    if (frame->stored_size > max || (max == WAL__FRAME_CIPHER_SIZE && frame->stored_size != 0 &&
                                     frame->stored_size != WAL__FRAME_CIPHER_SIZE)) {
        return false;
    }
    if (frame->type == WAL__FRAME_BLOCK &&
        wal__frame_total_size(frame->stored_size) % WAL__BLOCK_ALIGN != 0) {
        return false;
    }
    if ((frame->flags & WAL__FRAME_LZ4) == 0) {
        return frame->raw_size == frame->stored_size;
    }
    return frame->raw_size <= max &&
           frame->raw_size <= (uint64_t)frame->stored_size * WAL__FRAME_LZ4_RATIO_MAX;
}

static bool parent_is_valid(const struct wal__frame *frame)
{
    if (wal__frame_is_sequenced(frame->type)) {
        return frame->parent < frame->sequence;
    }
    return frame->sequence == 0 && frame->parent == 0;
}

/* Rule 4 of SPEC.md 2.3. */
static enum wal__fmt check_fields(const struct wal__frame *frame)
{
    if ((frame->flags & ~FLAGS_KNOWN) != 0 || frame->type == WAL__FRAME_NONE) {
        return WAL__FMT_FIELD;
    }
    if (!is_known(frame->type) && (frame->flags & WAL__FRAME_IGNORABLE) == 0) {
        return WAL__FMT_TYPE;
    }
    if (!sizes_are_valid(frame) || !parent_is_valid(frame)) {
        return WAL__FMT_FIELD;
    }
    return WAL__FMT_OK;
}

enum wal__fmt wal__frame_decode(const uint8_t *at, uint64_t size, uint64_t salt, uint64_t offset,
                                struct wal__frame *frame)
{
    struct wal__frame read;
    enum wal__fmt fmt;

    if (size < WAL__FRAME_SIZE) {
        return WAL__FMT_SHORT;
    }
    if (is_never_written(at)) {
        return WAL__FMT_ZERO;
    }
    if (header_crc(at, salt, offset) != wal__get32(at + AT_HEADER_CRC)) {
        return WAL__FMT_HEADER_CRC;
    }
    read_fields(at, &read);
    fmt = check_fields(&read);
    if (fmt != WAL__FMT_OK) {
        return fmt;
    }
    if (wal__frame_total_size(read.stored_size) > size) {
        return WAL__FMT_SHORT;
    }
    WAL__ASSERT(WAL__FRAME_SIZE + (uint64_t)read.stored_size <= size);
    *frame = read;
    return WAL__FMT_OK;
}

enum wal__fmt wal__frame_check_data(const struct wal__frame *frame, const uint8_t *payload)
{
    uint64_t padded = wal__frame_total_size(frame->stored_size) - WAL__FRAME_SIZE;

    WAL__ASSERT(padded - frame->stored_size < WAL__FRAME_ALIGN);
    if (wal__crc32(0, payload, frame->stored_size) != frame->data_crc) {
        return WAL__FMT_DATA_CRC;
    }
    return wal__is_zero(payload + frame->stored_size, (size_t)(padded - frame->stored_size))
               ? WAL__FMT_OK
               : WAL__FMT_DATA_CRC;
}

uint32_t wal__frame_chain_crc(uint32_t chain, const struct wal__frame *frame)
{
    uint8_t link[8];

    wal__put32(link, frame->header_crc);
    wal__put32(link + 4, frame->data_crc);
    return wal__crc32(chain, link, sizeof(link));
}

/* --- BLOCK ---------------------------------------------------------------- */

enum {
    AT_COUNT = 0,
    AT_ZERO = AT_COUNT + 2,
    AT_DATA_SIZE = AT_ZERO + 2,
    AT_FRAME_SIZE = 8, /* stored_size in a frame header */
    SAVING_MIN = 16    /* a fraction */
};

WAL__FOLLOWS(WAL__BLOCK_HEAD_SIZE, AT_DATA_SIZE, 4);

enum wal__fmt wal__block_decode(const struct wal__frame *frame, const uint8_t *payload,
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
        size - WAL__BLOCK_HEAD_SIZE - data_size >= WAL__BLOCK_ALIGN ||
        !wal__is_zero(block->data.data + data_size, size - WAL__BLOCK_HEAD_SIZE - data_size)) {
        return WAL__FMT_FIELD;
    }
    return WAL__FMT_OK;
}

enum wal__fmt wal__block_decompress(const struct wal__block *block, uint8_t *out)
{
    WAL__ASSERT(block->is_compressed);
    WAL__ASSERT(block->raw_size <= WAL__FRAME_BLOCK_MAX);
    return LZ4_decompress_safe((const char *)block->data.data, (char *)out, (int)block->data.size,
                               (int)block->raw_size) == (int)block->raw_size
               ? WAL__FMT_OK
               : WAL__FMT_FIELD;
}

enum wal__fmt wal__block_find(struct wal__span records, uint32_t rank, struct wal__span *found)
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
static enum wal__fmt decode_record(struct wal__span records, uint64_t salt, uint64_t offset,
                                   struct wal__frame *frame, struct wal__span *payload)
{
    const uint8_t *at = records.data;
    enum wal__fmt fmt = wal__frame_decode(at, records.size, salt, offset, frame);

    if (fmt == WAL__FMT_ZERO ||
        (fmt == WAL__FMT_OK &&
         (!wal__frame_is_sequenced(frame->type) || (frame->flags & WAL__FRAME_REWRITTEN) == 0))) {
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

enum wal__fmt wal__block_record(struct wal__span records, uint64_t salt, uint64_t offset,
                                struct wal__frame *frame, struct wal__span *payload)
{
    struct wal__span found;
    enum wal__fmt fmt = wal__block_find(records, wal__block_rank(offset), &found);

    return fmt == WAL__FMT_OK ? decode_record(found, salt, offset, frame, payload) : fmt;
}

void wal__block_cursor_begin(struct wal__block_cursor *cursor, struct wal__span records,
                             uint32_t count, uint64_t salt, uint64_t offset)
{
    WAL__ASSERT(offset % WAL__BLOCK_ALIGN == 0);
    WAL__ASSERT(count <= WAL__BLOCK_RECORDS_MAX);
    cursor->left = records;
    cursor->salt = salt;
    cursor->offset = offset;
    cursor->count = count;
}

enum wal__fmt wal__block_cursor_next(struct wal__block_cursor *cursor, struct wal__frame *frame,
                                     struct wal__span *payload)
{
    enum wal__fmt fmt;
    uint64_t size;

    if (cursor->count == 0) {
        return cursor->left.size == 0 ? WAL__FMT_ZERO : WAL__FMT_FIELD;
    }
    fmt = decode_record(cursor->left, cursor->salt, cursor->offset, frame, payload);
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

uint32_t wal__block_payload_size(uint32_t data_size, uint32_t cipher_size)
{
    const uint32_t around = WAL__FRAME_SIZE + cipher_size;

    return (uint32_t)wal__align_up((uint64_t)around + WAL__BLOCK_HEAD_SIZE + data_size,
                                   WAL__BLOCK_ALIGN) -
           around;
}

static int compress(struct wal__span raw, int level, uint8_t *out, int room)
{
    return level > 1
               ? LZ4_compress_HC((const char *)raw.data, (char *)out, (int)raw.size, room, level)
               : LZ4_compress_default((const char *)raw.data, (char *)out, (int)raw.size, room);
}

void wal__block_encode(struct wal__span raw, uint32_t count, int level, uint32_t cipher_size,
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
    frame->stored_size = wal__block_payload_size((uint32_t)size, cipher_size);
    frame->raw_size =
        (frame->flags & WAL__FRAME_LZ4) != 0 ? (uint32_t)raw.size : frame->stored_size;
    wal__put16(out + AT_COUNT, (uint16_t)count);
    wal__put16(out + AT_ZERO, 0);
    wal__put32(out + AT_DATA_SIZE, (uint32_t)size);
    memset(data + size, 0, frame->stored_size - WAL__BLOCK_HEAD_SIZE - (uint32_t)size);
    frame->data_crc = wal__crc32(0, out, frame->stored_size);
}
