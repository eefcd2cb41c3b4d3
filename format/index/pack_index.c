/*
 * pack_index.c - encodes, decodes and searches the index of a pack segment
 * (SPEC.md 2.20).
 *
 * Invariant: see pack_index.h. Threads: any.
 */
#include "format/index/pack_index.h"

#include "format/bytes/bytes.h"
#include "format/bytes/crc32.h"
#include "format/segment/frame.h"

enum {
    PACK_MAGIC = 0,
    PACK_VERSION = 8,
    PACK_COUNT = 12,
    PACK_ZERO = 16,
    PACK_ID = 24,
    PACK_END = 32,
    PACK_FIRST_SEQUENCE = 40,
    PACK_LAST_SEQUENCE = 48,
    PACK_CHAIN = 56,
    PACK_COMMIT_OFFSET = 60,
    PACK_EPOCH = 64,
    PACK_ZERO_2 = 72,
    PACK_UUID = 80,
    PACK_ZERO_3 = 96,
    PACK_BODY_CRC = 104,
    PACK_CRC = 108,
    PACK_HEADER_SIZE = 112,
    MAGIC_SIZE = 8,
    UUID_SIZE = 16,
    FAN_OUT_SIZE = WAL__PACK_FAN_OUT * 4,
    ENTRY_SIZE = WAL__DIGEST_SIZE + 4,
    PACK_INDEX_VERSION = 1
};

WAL__FOLLOWS(PACK_VERSION, PACK_MAGIC, MAGIC_SIZE);
WAL__FOLLOWS(PACK_COUNT, PACK_VERSION, 4);
WAL__FOLLOWS(PACK_ZERO, PACK_COUNT, 4);
WAL__FOLLOWS(PACK_ID, PACK_ZERO, 8);
WAL__FOLLOWS(PACK_END, PACK_ID, 8);
WAL__FOLLOWS(PACK_FIRST_SEQUENCE, PACK_END, 8);
WAL__FOLLOWS(PACK_LAST_SEQUENCE, PACK_FIRST_SEQUENCE, 8);
WAL__FOLLOWS(PACK_CHAIN, PACK_LAST_SEQUENCE, 8);
WAL__FOLLOWS(PACK_COMMIT_OFFSET, PACK_CHAIN, 4);
WAL__FOLLOWS(PACK_EPOCH, PACK_COMMIT_OFFSET, 4);
WAL__FOLLOWS(PACK_ZERO_2, PACK_EPOCH, 8);
WAL__FOLLOWS(PACK_UUID, PACK_ZERO_2, 8);
WAL__FOLLOWS(PACK_ZERO_3, PACK_UUID, UUID_SIZE);
WAL__FOLLOWS(PACK_BODY_CRC, PACK_ZERO_3, 8);
WAL__FOLLOWS(PACK_CRC, PACK_BODY_CRC, 4);
WAL__FOLLOWS(PACK_HEADER_SIZE, PACK_CRC, 4);

static const char pack_magic[MAGIC_SIZE] = {'A', 'G', 'W', 'A',
                                            'L', 'P', 'I', 'X'};

uint64_t wal__pack_index_size(uint32_t count)
{
    return PACK_HEADER_SIZE + FAN_OUT_SIZE + (uint64_t)count * ENTRY_SIZE;
}

void wal__pack_index_put(uint8_t *out, uint32_t count, uint32_t rank,
                         const struct wal__digest *digest, uint32_t offset)
{
    uint8_t *digests = out + PACK_HEADER_SIZE + FAN_OUT_SIZE;
    uint8_t *offsets = digests + (size_t)count * WAL__DIGEST_SIZE;

    WAL__ASSERT(rank < count);
    WAL__ASSERT(rank == 0 ||
                memcmp(digests + (size_t)(rank - 1) * WAL__DIGEST_SIZE,
                       digest->bytes, WAL__DIGEST_SIZE) <= 0);
    memcpy(digests + (size_t)rank * WAL__DIGEST_SIZE, digest->bytes,
           WAL__DIGEST_SIZE);
    wal__put32(offsets + (size_t)rank * 4, offset);
}

static void encode_fan_out(uint8_t *out, uint32_t count)
{
    const uint8_t *digests = out + PACK_HEADER_SIZE + FAN_OUT_SIZE;
    uint32_t rank = 0;

    for (uint32_t byte = 0; byte < WAL__PACK_FAN_OUT; byte++) {
        while (rank < count &&
               digests[(size_t)rank * WAL__DIGEST_SIZE] <= byte) {
            rank++;
        }
        wal__put32(out + PACK_HEADER_SIZE + (size_t)byte * 4, rank);
    }
    WAL__ASSERT(rank == count);
}

void wal__pack_index_finish(const struct wal__index_header *header,
                            uint8_t *out)
{
    size_t size = (size_t)wal__pack_index_size(header->posting_count);

    WAL__ASSERT(header->commit_offset < header->end);
    encode_fan_out(out, header->posting_count);
    memset(out, 0, PACK_HEADER_SIZE);
    memcpy(out + PACK_MAGIC, pack_magic, MAGIC_SIZE);
    wal__put32(out + PACK_VERSION, PACK_INDEX_VERSION);
    wal__put32(out + PACK_COUNT, header->posting_count);
    wal__put64(out + PACK_ID, header->id);
    wal__put64(out + PACK_END, header->end);
    wal__put64(out + PACK_FIRST_SEQUENCE, header->first_sequence);
    wal__put64(out + PACK_LAST_SEQUENCE, header->last_sequence);
    wal__put32(out + PACK_CHAIN, header->chain);
    wal__put32(out + PACK_COMMIT_OFFSET, header->commit_offset);
    wal__put64(out + PACK_EPOCH, header->epoch);
    memcpy(out + PACK_UUID, header->uuid, UUID_SIZE);
    wal__put32(out + PACK_BODY_CRC,
               wal__crc32(0, out + PACK_HEADER_SIZE, size - PACK_HEADER_SIZE));
    wal__put32(out + PACK_CRC, wal__crc32(0, out, PACK_CRC));
}

static enum wal__fmt decode_header(const uint8_t *at,
                                   struct wal__index_header *header)
{
    if (memcmp(at + PACK_MAGIC, pack_magic, MAGIC_SIZE) != 0) {
        return WAL__FMT_MAGIC;
    }
    if (wal__crc32(0, at, PACK_CRC) != wal__get32(at + PACK_CRC)) {
        return WAL__FMT_HEADER_CRC;
    }
    if (wal__get32(at + PACK_VERSION) != PACK_INDEX_VERSION) {
        return WAL__FMT_VERSION;
    }
    memset(header, 0, sizeof(*header));
    header->posting_count = wal__get32(at + PACK_COUNT);
    header->id = wal__get64(at + PACK_ID);
    header->end = wal__get64(at + PACK_END);
    header->first_sequence = wal__get64(at + PACK_FIRST_SEQUENCE);
    header->last_sequence = wal__get64(at + PACK_LAST_SEQUENCE);
    header->chain = wal__get32(at + PACK_CHAIN);
    header->commit_offset = wal__get32(at + PACK_COMMIT_OFFSET);
    header->epoch = wal__get64(at + PACK_EPOCH);
    memcpy(header->uuid, at + PACK_UUID, UUID_SIZE);
    if (wal__get64(at + PACK_ZERO) != 0 || wal__get64(at + PACK_ZERO_2) != 0 ||
        wal__get64(at + PACK_ZERO_3) != 0 ||
        header->commit_offset >= header->end) {
        return WAL__FMT_FIELD;
    }
    return WAL__FMT_OK;
}

static uint32_t fan_out(const struct wal__pack_index *index, uint32_t byte)
{
    return wal__get32(index->fan_out + (size_t)byte * 4);
}

/* Whether the fan-out ascends up to the count. */
static bool fan_out_is_valid(const struct wal__pack_index *index)
{
    uint32_t previous = 0;

    for (uint32_t byte = 0; byte < WAL__PACK_FAN_OUT; byte++) {
        uint32_t rank = fan_out(index, byte);

        if (rank < previous) {
            return false;
        }
        previous = rank;
    }
    return previous == index->header.posting_count;
}

enum wal__fmt wal__pack_index_decode(struct wal__span bytes,
                                     struct wal__pack_index *index)
{
    uint8_t copy[PACK_HEADER_SIZE];
    struct wal__pack_index read;
    enum wal__fmt fmt;
    uint64_t size;

    if (bytes.size < PACK_HEADER_SIZE) {
        return WAL__FMT_SHORT;
    }
    memcpy(copy, bytes.data, sizeof(copy));
    fmt = decode_header(copy, &read.header);
    if (fmt != WAL__FMT_OK) {
        return fmt;
    }
    size = wal__pack_index_size(read.header.posting_count);
    if (bytes.size != size) {
        return bytes.size < size ? WAL__FMT_SHORT : WAL__FMT_FIELD;
    }
    if (wal__crc32(0, bytes.data + PACK_HEADER_SIZE,
                   bytes.size - PACK_HEADER_SIZE) !=
        wal__get32(copy + PACK_BODY_CRC)) {
        return WAL__FMT_DATA_CRC;
    }
    read.fan_out = bytes.data + PACK_HEADER_SIZE;
    read.digests = read.fan_out + FAN_OUT_SIZE;
    read.offsets =
        read.digests + (size_t)read.header.posting_count * WAL__DIGEST_SIZE;
    WAL__ASSERT(read.offsets + (size_t)read.header.posting_count * 4 ==
                bytes.data + bytes.size);
    if (!fan_out_is_valid(&read)) {
        return WAL__FMT_FIELD;
    }
    *index = read;
    return WAL__FMT_OK;
}

bool wal__pack_index_find(const struct wal__pack_index *index,
                          const struct wal__digest *digest, uint32_t *offset)
{
    uint8_t first = digest->bytes[0];
    uint32_t begin = first == 0 ? 0 : fan_out(index, (uint32_t)first - 1);
    uint32_t low = begin;
    uint32_t high = fan_out(index, first);

    /* Find the end of the digests that are not greater. */
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (memcmp(index->digests + (size_t)middle * WAL__DIGEST_SIZE,
                   digest->bytes, WAL__DIGEST_SIZE) <= 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == begin ||
        memcmp(index->digests + (size_t)(low - 1) * WAL__DIGEST_SIZE,
               digest->bytes, WAL__DIGEST_SIZE) != 0) {
        return false;
    }
    *offset = wal__get32(index->offsets + (size_t)(low - 1) * 4);
    return true;
}
