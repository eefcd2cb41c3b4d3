/*
 * test_segment_fmt.c - manifest slots, segment headers, trailers and
 * positions: round trips, every rule, every flipped bit.
 */
#include <stddef.h>
#include <stdint.h>

#include <string.h>

#include "format/bytes/bytes.h"
#include "format/bytes/crc32.h"
#include "format/segment/segment_fmt.h"
#include "tests/lib/test.h"

#define SALT           UINT64_C(0x0123456789abcdef)
#define TRAILER_OFFSET (UINT64_C(1024) * 1024 - 64)

enum {
    MANIFEST_CRC = 60,
    HEADER_CRC = 80,
    HEADER_END = 84,
    TRAILER_CRC = 60
};

static struct wal__manifest a_manifest(void)
{
    struct wal__manifest manifest = {
        .version = 1,
        .features = {0x10, 0x20, 0},
        .uuid = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
        .generation = 5,
        .created_ms = -7,
        .group_align = 512,
    };

    return manifest;
}

static struct wal__segment_header a_header(void)
{
    struct wal__segment_header header = {
        .version = 1,
        .features = {0x10, 0x20, 0},
        .uuid = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
        .id = 9,
        .capacity = 1 << 20,
        .salt = SALT,
        .class = WAL__CLASS_LOG,
        .group_align = 8,
        .created_ms = -7,
    };

    return header;
}

static struct wal__trailer a_trailer(void)
{
    struct wal__trailer trailer = {
        .id = 9,
        .seal_offset = 16384,
        .index_offset = 8192,
        .end = 8192,
        .last_sequence = 4321,
        .chain = 0xdeadbeef,
    };

    return trailer;
}

static enum wal__fmt recode_manifest(struct wal__manifest manifest)
{
    uint8_t slot[WAL__MANIFEST_SLOT_SIZE];
    struct wal__manifest out;

    wal__manifest_encode(&manifest, slot);
    return wal__manifest_decode(slot, &out);
}

static enum wal__fmt recode_header(struct wal__segment_header header)
{
    uint8_t bytes[WAL__SEGMENT_HEADER_SIZE];
    struct wal__segment_header out;

    wal__segment_header_encode(&header, bytes);
    return wal__segment_header_decode(bytes, &out);
}

static enum wal__fmt recode_trailer(struct wal__trailer trailer)
{
    uint8_t bytes[WAL__TRAILER_SIZE];
    struct wal__trailer out;

    wal__trailer_encode(&trailer, SALT, TRAILER_OFFSET, bytes);
    return wal__trailer_decode(bytes, SALT, TRAILER_OFFSET, &out);
}

TEST(manifest__round_trip)
{
    struct wal__manifest manifest = a_manifest();
    struct wal__manifest read;
    uint8_t slot[WAL__MANIFEST_SLOT_SIZE];

    memset(slot, 0xff, sizeof(slot));
    wal__manifest_encode(&manifest, slot);
    assert_int_equal(wal__manifest_decode(slot, &read), WAL__FMT_OK);
    assert_int_equal(read.version, 1);
    assert_int_equal(read.features.compat, 0x10);
    assert_int_equal(read.features.ro_compat, 0x20);
    assert_int_equal(read.features.incompat, 0);
    assert_memory_equal(read.uuid, manifest.uuid, 16);
    assert_true(read.generation == 5);
    assert_true(read.created_ms == -7);
    assert_int_equal(read.group_align, 512);
    for (size_t i = MANIFEST_CRC + 4; i < sizeof(slot); i++) {
        assert_int_equal(slot[i], 0);
    }
}

TEST(manifest__every_flipped_bit_is_rejected)
{
    struct wal__manifest manifest = a_manifest();
    struct wal__manifest read;
    uint8_t slot[WAL__MANIFEST_SLOT_SIZE];

    wal__manifest_encode(&manifest, slot);
    for (size_t bit = 0; bit < (MANIFEST_CRC + 4) * 8; bit++) {
        slot[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(wal__manifest_decode(slot, &read),
                         bit < 64 ? WAL__FMT_MAGIC : WAL__FMT_HEADER_CRC);
        slot[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

TEST(manifest__newer_store_is_reported)
{
    struct wal__manifest manifest = a_manifest();
    struct wal__manifest read = {.generation = 77};
    uint8_t slot[WAL__MANIFEST_SLOT_SIZE];

    manifest.version = 2;
    manifest.group_align = 3;
    wal__manifest_encode(&manifest, slot);
    assert_int_equal(wal__manifest_decode(slot, &read), WAL__FMT_VERSION);
    assert_int_equal(read.version, 2);
    assert_int_equal(read.features.ro_compat, 0x20);
    assert_int_equal(read.generation, 77);
    manifest.version = 1;
    manifest.features.incompat = 0x80000000u;
    wal__manifest_encode(&manifest, slot);
    assert_int_equal(wal__manifest_decode(slot, &read), WAL__FMT_FEATURES);
    assert_int_equal(read.version, 1);
    assert_int_equal(read.features.incompat, 0x80000000u);
    assert_int_equal(read.generation, 77);
}

TEST(manifest__version_0_is_read)
{
    struct wal__manifest manifest = a_manifest();
    struct wal__manifest read;
    uint8_t slot[WAL__MANIFEST_SLOT_SIZE];

    manifest.version = 0;
    wal__manifest_encode(&manifest, slot);
    assert_int_equal(wal__manifest_decode(slot, &read), WAL__FMT_OK);
    assert_int_equal(read.version, 0);
    assert_true(read.generation == 5);
    manifest.features.incompat = WAL__KNOWN_INCOMPAT;
    assert_int_equal(recode_manifest(manifest), WAL__FMT_OK);
    manifest.features.incompat = WAL__INCOMPAT_ENCRYPTED;
    assert_int_equal(recode_manifest(manifest), WAL__FMT_FEATURES);
}

TEST(manifest__fields_are_bounded)
{
    struct wal__manifest manifest = a_manifest();

    for (uint32_t align = 0; align <= 8192; align++) {
        enum wal__fmt expected = align == 8 || align == 512 || align == 4096
                                     ? WAL__FMT_OK
                                     : WAL__FMT_FIELD;

        manifest.group_align = align;
        assert_int_equal(recode_manifest(manifest), expected);
    }
    manifest = a_manifest();
    manifest.generation = 0;
    assert_int_equal(recode_manifest(manifest), WAL__FMT_FIELD);
    manifest = a_manifest();
    memset(manifest.uuid, 0, 16);
    assert_int_equal(recode_manifest(manifest), WAL__FMT_FIELD);
    manifest.uuid[15] = 1;
    assert_int_equal(recode_manifest(manifest), WAL__FMT_OK);
}

TEST(segment_header__round_trip_of_both_copies)
{
    struct wal__segment_header header = a_header();
    struct wal__segment_header read;
    uint8_t bytes[WAL__SEGMENT_HEADER_SIZE];

    memset(bytes, 0xff, sizeof(bytes));
    wal__segment_header_encode(&header, bytes);
    assert_int_equal(wal__segment_header_decode(bytes, &read), WAL__FMT_OK);
    assert_int_equal(wal__segment_header_copies(bytes), 2);
    assert_int_equal(read.version, 1);
    assert_int_equal(read.features.compat, 0x10);
    assert_int_equal(read.features.ro_compat, 0x20);
    assert_int_equal(read.features.incompat, 0);
    assert_memory_equal(read.uuid, header.uuid, 16);
    assert_true(read.id == 9);
    assert_true(read.capacity == 1 << 20);
    assert_true(read.salt == SALT);
    assert_int_equal(read.class, WAL__CLASS_LOG);
    assert_int_equal(read.group_align, 8);
    assert_true(read.created_ms == -7);
    assert_memory_equal(bytes, bytes + WAL__SEGMENT_HEADER_COPY,
                        WAL__SEGMENT_HEADER_COPY);
    for (size_t i = HEADER_END; i < WAL__SEGMENT_HEADER_COPY; i++) {
        assert_int_equal(bytes[i], 0);
    }
}

TEST(segment_header__one_copy_is_enough)
{
    struct wal__segment_header header = a_header();
    struct wal__segment_header read;
    uint8_t bytes[WAL__SEGMENT_HEADER_SIZE];

    wal__segment_header_encode(&header, bytes);
    for (size_t bit = 0; bit < (size_t)HEADER_END * 8; bit++) {
        size_t at = bit / 8;
        uint8_t mask = (uint8_t)(1u << bit % 8);

        bytes[at] ^= mask;
        assert_int_equal(wal__segment_header_decode(bytes, &read), WAL__FMT_OK);
        assert_int_equal(wal__segment_header_copies(bytes), 1);
        bytes[at + WAL__SEGMENT_HEADER_COPY] ^= mask;
        assert_int_equal(wal__segment_header_decode(bytes, &read),
                         bit < 64 ? WAL__FMT_MAGIC : WAL__FMT_HEADER_CRC);
        assert_int_equal(wal__segment_header_copies(bytes), 0);
        bytes[at] ^= mask;
        assert_int_equal(wal__segment_header_decode(bytes, &read), WAL__FMT_OK);
        bytes[at + WAL__SEGMENT_HEADER_COPY] ^= mask;
    }
}

TEST(segment_header__zeros_were_never_written)
{
    uint8_t bytes[WAL__SEGMENT_HEADER_SIZE] = {0};
    struct wal__segment_header read;

    assert_int_equal(wal__segment_header_decode(bytes, &read), WAL__FMT_ZERO);
    assert_int_equal(wal__segment_header_copies(bytes), 0);
    bytes[WAL__SEGMENT_HEADER_COPY + 3] = 1;
    assert_int_equal(wal__segment_header_decode(bytes, &read), WAL__FMT_MAGIC);
}

TEST(segment_header__torn_copy_does_not_hide_a_version)
{
    struct wal__segment_header header = a_header();
    struct wal__segment_header read = {.id = 77};
    uint8_t bytes[WAL__SEGMENT_HEADER_SIZE];

    header.version = 2;
    header.features.incompat = 32;
    wal__segment_header_encode(&header, bytes);
    assert_int_equal(wal__segment_header_decode(bytes, &read),
                     WAL__FMT_VERSION);
    bytes[30] ^= 1;
    read.version = 0;
    assert_int_equal(wal__segment_header_decode(bytes, &read),
                     WAL__FMT_VERSION);
    assert_int_equal(read.version, 2);
    assert_int_equal(read.features.incompat, 32);
    assert_true(read.id == 77);
    header.version = 1;
    assert_int_equal(recode_header(header), WAL__FMT_FEATURES);
}

TEST(segment_header__version_0_is_read)
{
    struct wal__segment_header header = a_header();
    struct wal__segment_header read;
    uint8_t bytes[WAL__SEGMENT_HEADER_SIZE];

    header.version = 0;
    wal__segment_header_encode(&header, bytes);
    assert_int_equal(wal__segment_header_decode(bytes, &read), WAL__FMT_OK);
    assert_int_equal(wal__segment_header_copies(bytes), 2);
    assert_int_equal(read.version, 0);
    assert_true(read.id == 9);
    header.version = UINT32_MAX;
    assert_int_equal(recode_header(header), WAL__FMT_VERSION);
}

TEST(segment_header__fields_are_bounded)
{
    static const struct {
        uint64_t id;
        uint64_t capacity;
        uint32_t class;
        uint32_t group_align;
        enum wal__fmt expected;
    } cases[] = {
        {1, 64 << 10, 1, 8, WAL__FMT_OK},
        {UINT64_C(1) << 36, 64 << 20, 2, 4096, WAL__FMT_OK},
        {0, 64 << 10, 1, 8, WAL__FMT_FIELD},
        {(UINT64_C(1) << 36) + 1, 64 << 10, 1, 8, WAL__FMT_FIELD},
        {1, (64 << 10) - 4096, 1, 8, WAL__FMT_FIELD},
        {1, (64 << 20) + 4096, 1, 8, WAL__FMT_FIELD},
        {1, (64 << 10) + 512, 1, 8, WAL__FMT_FIELD},
        {1, 64 << 10, 0, 8, WAL__FMT_FIELD},
        {1, 64 << 10, 3, 8, WAL__FMT_FIELD},
        {1, 64 << 10, 1, 16, WAL__FMT_FIELD},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wal__segment_header header = a_header();

        header.id = cases[i].id;
        header.capacity = cases[i].capacity;
        header.class = cases[i].class;
        header.group_align = cases[i].group_align;
        assert_int_equal(recode_header(header), cases[i].expected);
    }
}

TEST(trailer__round_trip)
{
    struct wal__trailer trailer = a_trailer();
    struct wal__trailer read;
    uint8_t bytes[WAL__TRAILER_SIZE];

    memset(bytes, 0xff, sizeof(bytes));
    wal__trailer_encode(&trailer, SALT, TRAILER_OFFSET, bytes);
    assert_int_equal(wal__trailer_decode(bytes, SALT, TRAILER_OFFSET, &read),
                     WAL__FMT_OK);
    assert_true(read.id == 9);
    assert_true(read.seal_offset == 16384);
    assert_true(read.index_offset == 8192);
    assert_true(read.end == 8192);
    assert_true(read.last_sequence == 4321);
    assert_int_equal(read.chain, 0xdeadbeef);
}

TEST(trailer__every_flipped_bit_is_rejected)
{
    struct wal__trailer trailer = a_trailer();
    struct wal__trailer read;
    uint8_t bytes[WAL__TRAILER_SIZE];

    wal__trailer_encode(&trailer, SALT, TRAILER_OFFSET, bytes);
    for (size_t bit = 0; bit < sizeof(bytes) * 8; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(
            wal__trailer_decode(bytes, SALT, TRAILER_OFFSET, &read),
            bit < 64 ? WAL__FMT_MAGIC : WAL__FMT_HEADER_CRC);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

TEST(trailer__of_another_segment_is_rejected)
{
    struct wal__trailer trailer = a_trailer();
    struct wal__trailer read;
    uint8_t bytes[WAL__TRAILER_SIZE];

    wal__trailer_encode(&trailer, SALT, TRAILER_OFFSET, bytes);
    assert_int_equal(
        wal__trailer_decode(bytes, SALT + 1, TRAILER_OFFSET, &read),
        WAL__FMT_HEADER_CRC);
    assert_int_equal(
        wal__trailer_decode(bytes, SALT, TRAILER_OFFSET + 4096, &read),
        WAL__FMT_HEADER_CRC);
}

TEST(trailer__zero_bytes_are_checked)
{
    struct wal__trailer trailer = a_trailer();
    struct wal__trailer read;
    uint8_t bytes[WAL__TRAILER_SIZE];
    uint32_t seed = wal__crc32_seed(SALT, TRAILER_OFFSET);

    for (size_t at = 52; at < TRAILER_CRC; at++) {
        wal__trailer_encode(&trailer, SALT, TRAILER_OFFSET, bytes);
        bytes[at] = 1;
        wal__put32(bytes + TRAILER_CRC, wal__crc32(seed, bytes, TRAILER_CRC));
        assert_int_equal(
            wal__trailer_decode(bytes, SALT, TRAILER_OFFSET, &read),
            WAL__FMT_FIELD);
    }
}

TEST(trailer__offsets_are_in_order_and_inside)
{
    static const struct {
        uint64_t seal_offset;
        uint64_t index_offset;
        uint64_t end;
        enum wal__fmt expected;
    } cases[] = {
        {TRAILER_OFFSET - 80, 4096, 4096, WAL__FMT_OK},
        {TRAILER_OFFSET - 72, 4096, 4096, WAL__FMT_FIELD},
        {TRAILER_OFFSET, 4096, 4096, WAL__FMT_FIELD},
        {UINT64_MAX, 4096, 4096, WAL__FMT_FIELD},
        {8192, 8192, 8192, WAL__FMT_FIELD},
        {8192, 8200, 8200, WAL__FMT_FIELD},
        {8192, 4088, 4088, WAL__FMT_FIELD},
        {8192, 4096, 4104, WAL__FMT_FIELD},
    };
    struct wal__trailer trailer = a_trailer();

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        trailer.seal_offset = cases[i].seal_offset;
        trailer.index_offset = cases[i].index_offset;
        trailer.end = cases[i].end;
        assert_int_equal(recode_trailer(trailer), cases[i].expected);
    }
    trailer = a_trailer();
    trailer.id = 0;
    assert_int_equal(recode_trailer(trailer), WAL__FMT_FIELD);
}

TEST(position__segment_and_offset_round_trip)
{
    uint64_t id = UINT64_C(1) << 36;
    uint64_t position = wal__position(id, WAL__SEGMENT_MAX);

    assert_true(wal__position_segment(position) == id);
    assert_true(wal__position_offset(position) == WAL__SEGMENT_MAX);
    assert_true(wal__position(2, 0) > wal__position(1, WAL__SEGMENT_MAX));
}

TEST(fmt__every_fault_has_its_own_text)
{
    for (int a = WAL__FMT_OK; a <= WAL__FMT_FIELD; a++) {
        const char *text = wal__fmt_text((enum wal__fmt)a);

        assert_string_not_equal(text, "unknown fault");
        for (int b = WAL__FMT_OK; b < a; b++) {
            assert_string_not_equal(text, wal__fmt_text((enum wal__fmt)b));
        }
    }
}
