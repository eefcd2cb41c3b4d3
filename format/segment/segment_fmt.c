/*
 * segment_fmt.c - encodes and decodes manifest slots, segment headers and trailers (SPEC.md 2.1,
 * 2.2, 2.10).
 *
 * Invariant: rules are checked in SPEC.md's order. The version is used only after the checksum was
 * verified, other fields only after the version.
 */
#include "format/segment/segment_fmt.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "format/bytes/bytes.h"
#include "format/bytes/crc32.h"
#include "format/segment/frame.h"
#include "format/segment/record.h"

/* Offsets of the fields that the manifest and a segment header share. */
enum {
    AT_MAGIC = 0,
    AT_VERSION = AT_MAGIC + 8,
    AT_COMPAT = AT_VERSION + 4,
    AT_RO_COMPAT = AT_COMPAT + 4,
    AT_INCOMPAT = AT_RO_COMPAT + 4,
    AT_UUID = AT_INCOMPAT + 4,
    AT_SHARED_END = 40
};

WAL__FOLLOWS(AT_SHARED_END, AT_UUID, 16);

enum {
    MANIFEST_GENERATION = AT_SHARED_END,
    MANIFEST_CREATED = MANIFEST_GENERATION + 8,
    MANIFEST_GROUP_ALIGN = MANIFEST_CREATED + 8,
    MANIFEST_CRC = MANIFEST_GROUP_ALIGN + 4,
    MANIFEST_END = 64
};

WAL__FOLLOWS(MANIFEST_END, MANIFEST_CRC, 4);

enum {
    HEADER_ID = AT_SHARED_END,
    HEADER_CAPACITY = HEADER_ID + 8,
    HEADER_SALT = HEADER_CAPACITY + 8,
    HEADER_CLASS = HEADER_SALT + 8,
    HEADER_GROUP_ALIGN = HEADER_CLASS + 4,
    HEADER_CREATED = HEADER_GROUP_ALIGN + 4,
    HEADER_CRC = HEADER_CREATED + 8,
    HEADER_END = 84
};

/* Of a rewritten segment. */
enum {
    REWRITE_GENERATION = HEADER_END,
    REWRITE_FIRST_ID = REWRITE_GENERATION + 4,
    REWRITE_ORIGINAL_END = REWRITE_FIRST_ID + 8,
    REWRITE_LAST_SEQUENCE = REWRITE_ORIGINAL_END + 8,
    REWRITE_ORIGINAL_CHAIN = REWRITE_LAST_SEQUENCE + 8,
    REWRITE_RAW_SIZE = REWRITE_ORIGINAL_CHAIN + 4,
    REWRITE_CRC = REWRITE_RAW_SIZE + 8,
    REWRITE_END = 128
};

WAL__FOLLOWS(HEADER_END, HEADER_CRC, 4);
WAL__FOLLOWS(REWRITE_END, REWRITE_CRC, 4);

/* Of an encrypted segment. */
enum { ENCRYPTED_KEY_ID = REWRITE_END, ENCRYPTED_CRC = ENCRYPTED_KEY_ID + 4, ENCRYPTED_END = 136 };

WAL__FOLLOWS(ENCRYPTED_END, ENCRYPTED_CRC, 4);

enum {
    TRAILER_MAGIC = 0,
    TRAILER_ID = TRAILER_MAGIC + 8,
    TRAILER_SEAL_OFFSET = TRAILER_ID + 8,
    TRAILER_INDEX_OFFSET = TRAILER_SEAL_OFFSET + 8,
    TRAILER_STREAM_END = TRAILER_INDEX_OFFSET + 8,
    TRAILER_LAST_SEQUENCE = TRAILER_STREAM_END + 8,
    TRAILER_CHAIN = TRAILER_LAST_SEQUENCE + 8,
    TRAILER_ZERO = TRAILER_CHAIN + 4,
    TRAILER_CRC = 60
};

WAL__FOLLOWS(TRAILER_CRC, TRAILER_ZERO, 8);
WAL__FOLLOWS((int)WAL__TRAILER_SIZE, (int)TRAILER_CRC, 4);

enum { MAGIC_SIZE = 8, UUID_SIZE = 16, CAPACITY_ALIGN = 4096 };

#define SEGMENT_ID_MAX ((uint64_t)1 << 36)

static const uint8_t manifest_magic[MAGIC_SIZE] = "AGWALMAN";
static const uint8_t segment_magic[MAGIC_SIZE] = "AGWALSEG";
static const uint8_t trailer_magic[MAGIC_SIZE] = "AGWALEND";

static bool group_align_is_valid(uint32_t align)
{
    return align == 8 || align == 512 || align == 4096;
}

static void put_features(uint8_t *out, const struct wal__features *features)
{
    wal__put32(out + AT_COMPAT, features->compat);
    wal__put32(out + AT_RO_COMPAT, features->ro_compat);
    wal__put32(out + AT_INCOMPAT, features->incompat);
}

static struct wal__features get_features(const uint8_t *at)
{
    struct wal__features features = {
        .compat = wal__get32(at + AT_COMPAT),
        .ro_compat = wal__get32(at + AT_RO_COMPAT),
        .incompat = wal__get32(at + AT_INCOMPAT),
    };

    return features;
}

/* Rules 1 to 3 of a manifest slot and of a segment header. */
static enum wal__fmt check_shared(const uint8_t *at, const uint8_t *magic, size_t crc_offset,
                                  uint32_t known)
{
    WAL__ASSERT(crc_offset == MANIFEST_CRC || crc_offset == HEADER_CRC);
    if (memcmp(at, magic, MAGIC_SIZE) != 0) {
        return WAL__FMT_MAGIC;
    }
    if (wal__crc32(0, at, crc_offset) != wal__get32(at + crc_offset)) {
        return WAL__FMT_HEADER_CRC;
    }
    if (wal__get32(at + AT_VERSION) > WAL__FORMAT_VERSION) {
        return WAL__FMT_VERSION;
    }
    if ((wal__get32(at + AT_INCOMPAT) & ~known) != 0) {
        return WAL__FMT_FEATURES;
    }
    return WAL__FMT_OK;
}

/* These two faults are reported after a valid checksum. */
static bool is_of_newer_library(enum wal__fmt fmt)
{
    return fmt == WAL__FMT_VERSION || fmt == WAL__FMT_FEATURES;
}

void wal__manifest_encode(const struct wal__manifest *manifest, uint8_t *out)
{
    memset(out, 0, WAL__MANIFEST_SLOT_SIZE);
    memcpy(out + AT_MAGIC, manifest_magic, MAGIC_SIZE);
    wal__put32(out + AT_VERSION, manifest->version);
    put_features(out, &manifest->features);
    wal__put32(out + AT_INCOMPAT,
               manifest->features.incompat | (manifest->has_shadows ? WAL__INCOMPAT_SHADOW : 0));
    memcpy(out + AT_UUID, manifest->uuid, UUID_SIZE);
    wal__put64(out + MANIFEST_GENERATION, manifest->generation);
    wal__put64(out + MANIFEST_CREATED, (uint64_t)manifest->created_ms);
    wal__put32(out + MANIFEST_GROUP_ALIGN, manifest->group_align);
    wal__put32(out + MANIFEST_CRC, wal__crc32(0, out, MANIFEST_CRC));
}

enum wal__fmt wal__manifest_decode(const uint8_t *at, struct wal__manifest *manifest)
{
    enum wal__fmt fmt =
        check_shared(at, manifest_magic, MANIFEST_CRC, WAL__KNOWN_INCOMPAT | WAL__INCOMPAT_SHADOW);
    struct wal__manifest read = {
        .version = wal__get32(at + AT_VERSION),
        .features = get_features(at),
        .generation = wal__get64(at + MANIFEST_GENERATION),
        .created_ms = (int64_t)wal__get64(at + MANIFEST_CREATED),
        .group_align = wal__get32(at + MANIFEST_GROUP_ALIGN),
    };

    if (is_of_newer_library(fmt)) {
        manifest->version = read.version;
        manifest->features = read.features;
    }
    if (fmt != WAL__FMT_OK) {
        return fmt;
    }
    if (wal__is_zero(at + AT_UUID, UUID_SIZE) || read.generation == 0 ||
        !group_align_is_valid(read.group_align)) {
        return WAL__FMT_FIELD;
    }
    memcpy(read.uuid, at + AT_UUID, UUID_SIZE);
    read.has_shadows = (read.features.incompat & WAL__INCOMPAT_SHADOW) != 0;
    read.features.incompat &= ~WAL__INCOMPAT_SHADOW;
    *manifest = read;
    return WAL__FMT_OK;
}

static void put_rewrite(uint8_t *out, const struct wal__rewrite *rewrite)
{
    wal__put32(out + REWRITE_GENERATION, rewrite->generation);
    wal__put64(out + REWRITE_FIRST_ID, rewrite->first_id);
    wal__put64(out + REWRITE_ORIGINAL_END, rewrite->original_end);
    wal__put64(out + REWRITE_LAST_SEQUENCE, rewrite->last_sequence);
    wal__put32(out + REWRITE_ORIGINAL_CHAIN, rewrite->original_chain);
    wal__put64(out + REWRITE_RAW_SIZE, rewrite->raw_size);
    wal__put32(out + REWRITE_CRC, wal__crc32(0, out + HEADER_END, REWRITE_CRC - HEADER_END));
}

void wal__segment_header_encode(const struct wal__segment_header *header, uint8_t *out)
{
    memset(out, 0, WAL__SEGMENT_HEADER_SIZE);
    memcpy(out + AT_MAGIC, segment_magic, MAGIC_SIZE);
    wal__put32(out + AT_VERSION, header->version);
    put_features(out, &header->features);
    memcpy(out + AT_UUID, header->uuid, UUID_SIZE);
    wal__put64(out + HEADER_ID, header->id);
    wal__put64(out + HEADER_CAPACITY, header->capacity);
    wal__put64(out + HEADER_SALT, header->salt);
    wal__put32(out + HEADER_CLASS, header->class);
    wal__put32(out + HEADER_GROUP_ALIGN, header->group_align);
    wal__put64(out + HEADER_CREATED, (uint64_t)header->created_ms);
    wal__put32(out + HEADER_CRC, wal__crc32(0, out, HEADER_CRC));
    if (wal__segment_is_rewritten(header)) {
        WAL__ASSERT((header->features.incompat & WAL__INCOMPAT_REWRITTEN) != 0);
        put_rewrite(out, &header->rewrite);
    }
    if (wal__segment_is_encrypted(header)) {
        WAL__ASSERT((header->features.incompat & WAL__INCOMPAT_ENCRYPTED) != 0);
        wal__put32(out + ENCRYPTED_KEY_ID, header->key_id);
        wal__put32(out + ENCRYPTED_CRC,
                   wal__crc32(0, out + REWRITE_END, ENCRYPTED_CRC - REWRITE_END));
    }
    memcpy(out + WAL__SEGMENT_HEADER_COPY, out, ENCRYPTED_END);
}

/* Decodes the part of a header that a rewritten segment has. */
static enum wal__fmt decode_rewrite(const uint8_t *at, struct wal__segment_header *header)
{
    struct wal__rewrite read = {
        .generation = wal__get32(at + REWRITE_GENERATION),
        .original_chain = wal__get32(at + REWRITE_ORIGINAL_CHAIN),
        .first_id = wal__get64(at + REWRITE_FIRST_ID),
        .original_end = wal__get64(at + REWRITE_ORIGINAL_END),
        .last_sequence = wal__get64(at + REWRITE_LAST_SEQUENCE),
        .raw_size = wal__get64(at + REWRITE_RAW_SIZE),
    };

    if (wal__crc32(0, at + HEADER_END, REWRITE_CRC - HEADER_END) != wal__get32(at + REWRITE_CRC)) {
        return WAL__FMT_HEADER_CRC;
    }
    if (read.generation == 0 || read.first_id == 0 || read.first_id > header->id ||
        read.original_end < WAL__SEGMENT_HEADER_SIZE || read.original_end > WAL__SEGMENT_MAX ||
        header->group_align != WAL__BLOCK_ALIGN) {
        return WAL__FMT_FIELD;
    }
    header->rewrite = read;
    return WAL__FMT_OK;
}

/* The same of an encrypted one. */
static enum wal__fmt decode_encrypted(const uint8_t *at, struct wal__segment_header *header)
{
    header->key_id = wal__get32(at + ENCRYPTED_KEY_ID);
    if (wal__crc32(0, at + REWRITE_END, ENCRYPTED_CRC - REWRITE_END) !=
        wal__get32(at + ENCRYPTED_CRC)) {
        return WAL__FMT_HEADER_CRC;
    }
    return header->key_id != 0 ? WAL__FMT_OK : WAL__FMT_FIELD;
}

static bool header_fields_are_valid(const struct wal__segment_header *header)
{
    return header->id >= 1 && header->id <= SEGMENT_ID_MAX &&
           header->capacity % CAPACITY_ALIGN == 0 && header->capacity >= WAL__SEGMENT_MIN &&
           header->capacity <= WAL__SEGMENT_MAX &&
           (header->class == WAL__CLASS_LOG || header->class == WAL__CLASS_PACK) &&
           group_align_is_valid(header->group_align);
}

static enum wal__fmt decode_copy(const uint8_t *at, struct wal__segment_header *header)
{
    enum wal__fmt fmt = check_shared(at, segment_magic, HEADER_CRC, WAL__KNOWN_INCOMPAT);
    struct wal__segment_header read = {
        .version = wal__get32(at + AT_VERSION),
        .features = get_features(at),
        .id = wal__get64(at + HEADER_ID),
        .capacity = wal__get64(at + HEADER_CAPACITY),
        .salt = wal__get64(at + HEADER_SALT),
        .class = wal__get32(at + HEADER_CLASS),
        .group_align = wal__get32(at + HEADER_GROUP_ALIGN),
        .created_ms = (int64_t)wal__get64(at + HEADER_CREATED),
    };

    if (is_of_newer_library(fmt)) {
        header->version = read.version;
        header->features = read.features;
    }
    if (fmt != WAL__FMT_OK) {
        return fmt;
    }
    if (!header_fields_are_valid(&read)) {
        return WAL__FMT_FIELD;
    }
    if ((read.features.incompat & WAL__INCOMPAT_REWRITTEN) != 0) {
        fmt = decode_rewrite(at, &read);
    }
    if (fmt == WAL__FMT_OK && (read.features.incompat & WAL__INCOMPAT_ENCRYPTED) != 0) {
        fmt = decode_encrypted(at, &read);
    }
    if (fmt == WAL__FMT_OK) {
        memcpy(read.uuid, at + AT_UUID, UUID_SIZE);
        *header = read;
    }
    return fmt;
}

enum wal__fmt wal__segment_header_decode(const uint8_t *at, struct wal__segment_header *header)
{
    const uint8_t *copy = at + WAL__SEGMENT_HEADER_COPY;
    enum wal__fmt first;
    enum wal__fmt second;

    if (wal__is_zero(at, HEADER_END) && wal__is_zero(copy, HEADER_END)) {
        return WAL__FMT_ZERO;
    }
    first = decode_copy(at, header);
    if (first == WAL__FMT_OK || is_of_newer_library(first)) {
        return first;
    }
    /* A torn first copy must not turn a segment of a newer library into a damaged one. */
    second = decode_copy(copy, header);
    if (second == WAL__FMT_OK || is_of_newer_library(second)) {
        return second;
    }
    return first;
}

int wal__segment_header_copies(const uint8_t *at)
{
    struct wal__segment_header header;
    int count = 0;

    count += decode_copy(at, &header) == WAL__FMT_OK;
    count += decode_copy(at + WAL__SEGMENT_HEADER_COPY, &header) == WAL__FMT_OK;
    return count;
}

static uint32_t trailer_crc(const uint8_t *at, uint64_t salt, uint64_t offset)
{
    return wal__crc32(wal__crc32_seed(salt, offset), at, TRAILER_CRC);
}

void wal__trailer_encode(const struct wal__trailer *trailer, uint64_t salt, uint64_t offset,
                         uint8_t *out)
{
    memset(out, 0, WAL__TRAILER_SIZE);
    memcpy(out + TRAILER_MAGIC, trailer_magic, MAGIC_SIZE);
    wal__put64(out + TRAILER_ID, trailer->id);
    wal__put64(out + TRAILER_SEAL_OFFSET, trailer->seal_offset);
    wal__put64(out + TRAILER_INDEX_OFFSET, trailer->index_offset);
    wal__put64(out + TRAILER_STREAM_END, trailer->end);
    wal__put64(out + TRAILER_LAST_SEQUENCE, trailer->last_sequence);
    wal__put32(out + TRAILER_CHAIN, trailer->chain);
    wal__put32(out + TRAILER_CRC, trailer_crc(out, salt, offset));
}

/* The SEAL frame is between the INDEX frame and the trailer. */
static bool trailer_fields_are_valid(const struct wal__trailer *trailer, uint64_t offset)
{
    return trailer->id >= 1 && trailer->id <= SEGMENT_ID_MAX && trailer->seal_offset < offset &&
           offset - trailer->seal_offset >= wal__frame_total_size(WAL__SEAL_SIZE) &&
           trailer->index_offset < trailer->seal_offset &&
           trailer->index_offset >= WAL__SEGMENT_HEADER_SIZE &&
           trailer->end == trailer->index_offset;
}

enum wal__fmt wal__trailer_decode(const uint8_t *at, uint64_t salt, uint64_t offset,
                                  struct wal__trailer *trailer)
{
    struct wal__trailer read = {
        .id = wal__get64(at + TRAILER_ID),
        .seal_offset = wal__get64(at + TRAILER_SEAL_OFFSET),
        .index_offset = wal__get64(at + TRAILER_INDEX_OFFSET),
        .end = wal__get64(at + TRAILER_STREAM_END),
        .last_sequence = wal__get64(at + TRAILER_LAST_SEQUENCE),
        .chain = wal__get32(at + TRAILER_CHAIN),
    };

    if (memcmp(at, trailer_magic, MAGIC_SIZE) != 0) {
        return WAL__FMT_MAGIC;
    }
    if (trailer_crc(at, salt, offset) != wal__get32(at + TRAILER_CRC)) {
        return WAL__FMT_HEADER_CRC;
    }
    if (wal__get64(at + TRAILER_ZERO) != 0 || !trailer_fields_are_valid(&read, offset)) {
        return WAL__FMT_FIELD;
    }
    *trailer = read;
    return WAL__FMT_OK;
}

uint64_t wal__segment_parse_name(const char *name, const char *suffix)
{
    char *end = NULL;
    uint64_t id = strtoull(name, &end, 16);

    return end == name + 16 && strcmp(end, suffix) == 0 ? id : 0;
}

uint64_t wal__guard_salt(const uint8_t uuid[16], uint64_t id)
{
    return wal__get64(uuid) ^ wal__get64(uuid + 8) ^ id ^ UINT64_C(0x9e3779b97f4a7c15);
}

bool wal__segment_is_guard(const struct wal__segment_header *header)
{
    return header->salt == wal__guard_salt(header->uuid, header->id);
}
