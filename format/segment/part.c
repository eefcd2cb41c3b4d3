/*
 * part.c - encodes and decodes the head of a part (SPEC.md 11.1).
 *
 * Invariant: nothing but magic and version is used before the checksum was verified.
 */
#include "format/segment/part.h"

#include "format/bytes/bytes.h"
#include "format/bytes/crc32.h"
#include "format/segment/keys_fmt.h"

static const uint8_t magic[8] = {'A', 'G', 'W', 'A', 'L', 'P', 'R', 'T'};

enum {
    AT_MAGIC = 0,
    AT_VERSION = AT_MAGIC + 8,
    AT_FLAGS = AT_VERSION + 4,
    AT_UUID = AT_FLAGS + 4,
    AT_STORE_VERSION = AT_UUID + 16,
    AT_COMPAT = AT_STORE_VERSION + 4,
    AT_RO_COMPAT = AT_COMPAT + 4,
    AT_INCOMPAT = AT_RO_COMPAT + 4,
    AT_CREATED = AT_INCOMPAT + 4,
    AT_GROUP_ALIGN = AT_CREATED + 8,
    AT_RANGE_COUNT = AT_GROUP_ALIGN + 4,
    AT_SIZE = AT_RANGE_COUNT + 4,
    AT_BEFORE = AT_SIZE + 8,
    PLACE_SIZE = 40,
    AT_AFTER = AT_BEFORE + WAL__PART_STREAMS * PLACE_SIZE,
    AT_KEYS_SIZE = AT_AFTER + WAL__PART_STREAMS * PLACE_SIZE,
    AT_ZERO = AT_KEYS_SIZE + 4,
    AT_CRC = 260
};

WAL__FOLLOWS(AT_CRC, AT_ZERO, 24);
WAL__FOLLOWS((int)WAL__PART_FIXED_SIZE, (int)AT_CRC, 4);

static uint32_t head_crc(const uint8_t *at, uint32_t range_count)
{
    uint32_t crc = wal__crc32(0, at, AT_CRC);

    return wal__crc32(crc, at + WAL__PART_FIXED_SIZE, (size_t)WAL__PART_RANGE_SIZE * range_count);
}

uint64_t wal__part_size(const struct wal__part_head *head)
{
    return wal__part_keys_offset(head) + head->keys_size + WAL__PART_DIGEST_SIZE;
}

uint64_t wal__part_keys_offset(const struct wal__part_head *head)
{
    uint64_t size = wal__part_head_size(head->range_count);

    for (uint32_t i = 0; i < head->range_count; i++) {
        size += head->ranges[i].size;
    }
    return size;
}

static void put_place(const struct wal__part_place *place, uint8_t *at)
{
    wal__put64(at, place->segment);
    wal__put64(at + 8, place->salt);
    wal__put64(at + 16, place->offset);
    wal__put64(at + 24, place->sequence);
    wal__put32(at + 32, place->chain);
    wal__put32(at + 36, 0);
}

void wal__part_head_encode(const struct wal__part_head *head, uint8_t *out)
{
    const struct wal__manifest *manifest = &head->manifest;

    WAL__ASSERT(head->range_count <= WAL__PART_RANGES_MAX);
    memset(out, 0, WAL__PART_FIXED_SIZE);
    memcpy(out + AT_MAGIC, magic, sizeof(magic));
    wal__put32(out + AT_VERSION, WAL__PART_VERSION);
    wal__put32(out + AT_FLAGS, head->flags);
    memcpy(out + AT_UUID, manifest->uuid, sizeof(manifest->uuid));
    wal__put32(out + AT_STORE_VERSION, manifest->version);
    wal__put32(out + AT_COMPAT, manifest->features.compat);
    wal__put32(out + AT_RO_COMPAT, manifest->features.ro_compat);
    wal__put32(out + AT_INCOMPAT, manifest->features.incompat);
    wal__put64(out + AT_CREATED, (uint64_t)manifest->created_ms);
    wal__put32(out + AT_GROUP_ALIGN, manifest->group_align);
    wal__put32(out + AT_RANGE_COUNT, head->range_count);
    wal__put64(out + AT_SIZE, head->size);
    wal__put32(out + AT_KEYS_SIZE, head->keys_size);
    for (size_t i = 0; i < WAL__PART_STREAMS; i++) {
        put_place(&head->before[i], out + AT_BEFORE + PLACE_SIZE * i);
        put_place(&head->after[i], out + AT_AFTER + PLACE_SIZE * i);
    }
    for (uint32_t i = 0; i < head->range_count; i++) {
        const struct wal__part_range *range = &head->ranges[i];
        uint8_t *at = out + WAL__PART_FIXED_SIZE + (size_t)WAL__PART_RANGE_SIZE * i;

        wal__put64(at, range->segment);
        wal__put64(at + 8, range->offset);
        wal__put64(at + 16, range->size);
        wal__put32(at + 24, range->stream);
        wal__put32(at + 28, 0);
    }
    wal__put32(out + AT_CRC, head_crc(out, head->range_count));
}

static bool get_place(const uint8_t *at, struct wal__part_place *place)
{
    place->segment = wal__get64(at);
    place->salt = wal__get64(at + 8);
    place->offset = wal__get64(at + 16);
    place->sequence = wal__get64(at + 24);
    place->chain = wal__get32(at + 32);
    return place->offset <= WAL__SEGMENT_MAX && place->segment <= (uint64_t)1 << 36 &&
           (place->segment != 0 || place->offset == 0);
}

static bool get_range(const uint8_t *at, struct wal__part_range *range)
{
    range->segment = wal__get64(at);
    range->offset = wal__get64(at + 8);
    range->size = wal__get64(at + 16);
    range->stream = wal__get32(at + 24);
    return range->stream < WAL__PART_STREAMS && range->segment > 0 &&
           range->segment <= (uint64_t)1 << 36 && range->size > 0 &&
           range->size <= WAL__SEGMENT_MAX && range->offset <= WAL__SEGMENT_MAX - range->size;
}

static enum wal__fmt decode_fields(const uint8_t *at, struct wal__part_head *head)
{
    struct wal__manifest *manifest = &head->manifest;

    head->flags = wal__get32(at + AT_FLAGS);
    memcpy(manifest->uuid, at + AT_UUID, sizeof(manifest->uuid));
    manifest->version = wal__get32(at + AT_STORE_VERSION);
    manifest->features.compat = wal__get32(at + AT_COMPAT);
    manifest->features.ro_compat = wal__get32(at + AT_RO_COMPAT);
    manifest->features.incompat = wal__get32(at + AT_INCOMPAT);
    manifest->created_ms = (int64_t)wal__get64(at + AT_CREATED);
    manifest->group_align = wal__get32(at + AT_GROUP_ALIGN);
    head->size = wal__get64(at + AT_SIZE);
    head->keys_size = wal__get32(at + AT_KEYS_SIZE);
    if (manifest->version > WAL__FORMAT_VERSION) {
        return WAL__FMT_VERSION;
    }
    if ((manifest->features.incompat & ~(uint32_t)WAL__KNOWN_INCOMPAT) != 0 ||
        (head->flags & ~WAL__PART_SEGMENT) != 0) {
        return WAL__FMT_FEATURES;
    }
    if (manifest->group_align != 8 && manifest->group_align != 512 &&
        manifest->group_align != 4096) {
        return WAL__FMT_FIELD;
    }
    if (head->keys_size > WAL__KEYS_COPY_SIZE) {
        return WAL__FMT_FIELD;
    }
    for (size_t i = 0; i < WAL__PART_STREAMS; i++) {
        if (!get_place(at + AT_BEFORE + PLACE_SIZE * i, &head->before[i]) ||
            !get_place(at + AT_AFTER + PLACE_SIZE * i, &head->after[i])) {
            return WAL__FMT_FIELD;
        }
    }
    for (uint32_t i = 0; i < head->range_count; i++) {
        if (!get_range(at + WAL__PART_FIXED_SIZE + (size_t)WAL__PART_RANGE_SIZE * i,
                       &head->ranges[i])) {
            return WAL__FMT_FIELD;
        }
    }
    return head->size == wal__part_size(head) ? WAL__FMT_OK : WAL__FMT_FIELD;
}

enum wal__fmt wal__part_head_decode(const uint8_t *at, size_t size, struct wal__part_head *head)
{
    memset(head, 0, sizeof(*head));
    if (size < WAL__PART_FIXED_SIZE) {
        return WAL__FMT_SHORT;
    }
    if (memcmp(at, magic, sizeof(magic)) != 0) {
        return WAL__FMT_MAGIC;
    }
    if (wal__get32(at + AT_VERSION) != WAL__PART_VERSION) {
        return WAL__FMT_VERSION;
    }
    head->range_count = wal__get32(at + AT_RANGE_COUNT);
    if (head->range_count == 0 || head->range_count > WAL__PART_RANGES_MAX) {
        return WAL__FMT_FIELD;
    }
    if (size < wal__part_head_size(head->range_count)) {
        return WAL__FMT_SHORT;
    }
    if (wal__get32(at + AT_CRC) != head_crc(at, head->range_count)) {
        return WAL__FMT_HEADER_CRC;
    }
    return decode_fields(at, head);
}
