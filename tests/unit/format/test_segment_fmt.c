/*
 * test_segment_fmt.c - manifest slots, segment headers, trailers and positions: round trips, every
 * rule, every flipped bit; and what a rewritten segment has more: the block in its header and
 * BLOCK, each field at its bounds and beyond, and records in a BLOCK that are none (SPEC.md 2.22,
 * 2.23).
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "format/bytes/bytes.h"
#include "format/bytes/crc32.h"
#include "format/segment/frame.h"
#include "format/segment/segment_fmt.h"
#include "tests/lib/test.h"

#define SALT           UINT64_C(0x0123456789abcdef)
#define TRAILER_OFFSET (UINT64_C(1024) * 1024 - 64)

enum { MANIFEST_CRC = 60, HEADER_CRC = 80, HEADER_END = 84, TRAILER_CRC = 60 };

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
    manifest.features.incompat = 1u << 6;
    assert_int_equal(recode_manifest(manifest), WAL__FMT_FEATURES);
}

TEST(manifest__fields_are_bounded)
{
    struct wal__manifest manifest = a_manifest();

    for (uint32_t align = 0; align <= 8192; align++) {
        enum wal__fmt expected =
            align == 8 || align == 512 || align == 4096 ? WAL__FMT_OK : WAL__FMT_FIELD;

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
    assert_memory_equal(bytes, bytes + WAL__SEGMENT_HEADER_COPY, WAL__SEGMENT_HEADER_COPY);
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
    assert_int_equal(wal__segment_header_decode(bytes, &read), WAL__FMT_VERSION);
    bytes[30] ^= 1;
    read.version = 0;
    assert_int_equal(wal__segment_header_decode(bytes, &read), WAL__FMT_VERSION);
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
    assert_int_equal(wal__trailer_decode(bytes, SALT, TRAILER_OFFSET, &read), WAL__FMT_OK);
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
        assert_int_equal(wal__trailer_decode(bytes, SALT, TRAILER_OFFSET, &read),
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
    assert_int_equal(wal__trailer_decode(bytes, SALT + 1, TRAILER_OFFSET, &read),
                     WAL__FMT_HEADER_CRC);
    assert_int_equal(wal__trailer_decode(bytes, SALT, TRAILER_OFFSET + 4096, &read),
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
        assert_int_equal(wal__trailer_decode(bytes, SALT, TRAILER_OFFSET, &read), WAL__FMT_FIELD);
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

#define OFFSET UINT64_C(8192)
#define ID     UINT64_C(9)

/* Offsets in a header (SPEC.md 2.22). */
enum { REWRITE = 84, REWRITE_CRC = 124, REWRITE_END = 128 };

static struct wal__segment_header a_rewritten_header(void)
{
    return (struct wal__segment_header){.version = WAL__FORMAT_VERSION,
                                        .features = {.incompat = WAL__INCOMPAT_REWRITTEN},
                                        .uuid = {1},
                                        .id = ID,
                                        .capacity = 1 << 20,
                                        .salt = SALT,
                                        .class = WAL__CLASS_LOG,
                                        .group_align = WAL__BLOCK_ALIGN,
                                        .rewrite = {.generation = 3,
                                                    .original_chain = 0xdeadbeef,
                                                    .first_id = 2,
                                                    .original_end = 70000,
                                                    .last_sequence = 4321,
                                                    .raw_size = 99}};
}

/* --- the header --------------------------------------------------------- */

TEST(rewrite_header__round_trip)
{
    const struct wal__segment_header header = a_rewritten_header();
    struct wal__segment_header read;
    uint8_t bytes[WAL__SEGMENT_HEADER_SIZE];

    wal__segment_header_encode(&header, bytes);
    assert_int_equal(wal__segment_header_decode(bytes, &read), WAL__FMT_OK);
    assert_int_equal(wal__segment_header_copies(bytes), 2);
    assert_true(wal__segment_is_rewritten(&read));
    assert_int_equal(read.rewrite.generation, 3);
    assert_int_equal(read.rewrite.original_chain, 0xdeadbeef);
    assert_int_equal(read.rewrite.first_id, 2);
    assert_int_equal(read.rewrite.original_end, 70000);
    assert_int_equal(read.rewrite.last_sequence, 4321);
    assert_int_equal(read.rewrite.raw_size, 99);
    for (size_t i = REWRITE_END; i < WAL__SEGMENT_HEADER_COPY; i++) {
        assert_int_equal(bytes[i], 0);
    }
}

/* A field of the block, or of the header that it is compared with. */
struct header_case {
    const char *what;
    size_t offset;
    uint32_t size;
    uint64_t value;
    enum wal__fmt expected;
};

static const struct header_case header_cases[] = {
    {"generation", 84, 4, 0, WAL__FMT_FIELD},
    {"generation", 84, 4, 1, WAL__FMT_OK},
    {"generation", 84, 4, UINT32_MAX, WAL__FMT_OK},
    {"first_id", 88, 8, 0, WAL__FMT_FIELD},
    {"first_id", 88, 8, 1, WAL__FMT_OK},
    {"first_id", 88, 8, ID, WAL__FMT_OK},
    {"first_id", 88, 8, ID + 1, WAL__FMT_FIELD},
    {"first_id", 88, 8, UINT64_MAX, WAL__FMT_FIELD},
    {"original_end", 96, 8, 0, WAL__FMT_FIELD},
    {"original_end", 96, 8, 4095, WAL__FMT_FIELD},
    {"original_end", 96, 8, 4096, WAL__FMT_OK},
    {"original_end", 96, 8, 64 << 20, WAL__FMT_OK},
    {"original_end", 96, 8, (64 << 20) + 1, WAL__FMT_FIELD},
    {"original_end", 96, 8, UINT64_MAX, WAL__FMT_FIELD},
    {"last_sequence", 104, 8, 0, WAL__FMT_OK},
    {"last_sequence", 104, 8, UINT64_MAX, WAL__FMT_OK},
    {"original_chain", 112, 4, 0, WAL__FMT_OK},
    {"original_chain", 112, 4, UINT32_MAX, WAL__FMT_OK},
    {"raw_size", 116, 8, 0, WAL__FMT_OK},
    {"raw_size", 116, 8, UINT64_MAX, WAL__FMT_OK},
    {"group_align", 68, 4, 8, WAL__FMT_FIELD},
    {"group_align", 68, 4, 4096, WAL__FMT_FIELD},
};

/* Sets the field in both copies, with their checksums. */
static void set_field(uint8_t *bytes, const struct header_case *field)
{
    for (size_t copy = 0; copy < 2; copy++) {
        uint8_t *at = bytes + copy * WAL__SEGMENT_HEADER_COPY;

        if (field->size == 4) {
            wal__put32(at + field->offset, (uint32_t)field->value);
        } else {
            wal__put64(at + field->offset, field->value);
        }
        wal__put32(at + 80, wal__crc32(0, at, 80));
        wal__put32(at + REWRITE_CRC, wal__crc32(0, at + REWRITE, REWRITE_CRC - REWRITE));
    }
}

TEST(rewrite_header__fields_are_bounded)
{
    for (size_t i = 0; i < sizeof(header_cases) / sizeof(header_cases[0]); i++) {
        const struct header_case *field = &header_cases[i];
        const struct wal__segment_header header = a_rewritten_header();
        struct wal__segment_header read;
        uint8_t bytes[WAL__SEGMENT_HEADER_SIZE];
        enum wal__fmt fmt;

        wal__segment_header_encode(&header, bytes);
        set_field(bytes, field);
        fmt = wal__segment_header_decode(bytes, &read);
        if (fmt != field->expected) {
            fail_msg("%s %llu: %s", field->what, (unsigned long long)field->value,
                     wal__fmt_text(fmt));
        }
    }
}

TEST(rewrite_header__every_flipped_bit_is_rejected)
{
    const struct wal__segment_header header = a_rewritten_header();
    struct wal__segment_header read;
    uint8_t bytes[WAL__SEGMENT_HEADER_SIZE];

    wal__segment_header_encode(&header, bytes);
    for (size_t bit = REWRITE * 8; bit < REWRITE_END * 8; bit++) {
        const uint8_t mask = (uint8_t)(1u << bit % 8);

        bytes[bit / 8] ^= mask;
        assert_int_equal(wal__segment_header_decode(bytes, &read), WAL__FMT_OK);
        assert_int_equal(wal__segment_header_copies(bytes), 1);
        bytes[bit / 8 + WAL__SEGMENT_HEADER_COPY] ^= mask;
        assert_int_equal(wal__segment_header_decode(bytes, &read), WAL__FMT_HEADER_CRC);
        bytes[bit / 8] ^= mask;
        bytes[bit / 8 + WAL__SEGMENT_HEADER_COPY] ^= mask;
    }
}

TEST(rewrite_header__without_the_feature_there_is_none)
{
    struct wal__segment_header header = a_rewritten_header();
    struct wal__segment_header read;
    uint8_t bytes[WAL__SEGMENT_HEADER_SIZE];

    header.rewrite.generation = 0;
    header.features.incompat = 0;
    wal__segment_header_encode(&header, bytes);
    for (size_t i = REWRITE; i < WAL__SEGMENT_HEADER_COPY; i++) {
        assert_int_equal(bytes[i], 0);
    }
    assert_int_equal(wal__segment_header_decode(bytes, &read), WAL__FMT_OK);
    assert_false(wal__segment_is_rewritten(&read));
    /* With it, zeros are not accepted: CRC-32 of zeros is not zero. */
    header.features.incompat = WAL__INCOMPAT_REWRITTEN;
    wal__segment_header_encode(&header, bytes);
    assert_int_equal(wal__segment_header_decode(bytes, &read), WAL__FMT_HEADER_CRC);
}

/* --- BLOCK -------------------------------------------------------------- */

enum {
    RECORDS = 3,
    PAYLOAD = 56,
    RECORD = WAL__FRAME_SIZE + PAYLOAD,
    RAW = RECORDS * RECORD,
    STORED = 512 - WAL__FRAME_SIZE, /* of the BLOCK, not compressed */
    ROOM = 2048
};

/* Encodes a record of the block. */
static void put_record(const struct wal__frame *changes, uint32_t rank, uint8_t *raw)
{
    struct wal__frame frame = *changes;
    uint8_t *at = raw + (size_t)rank * RECORD;

    memset(at, (int)('a' + rank), RECORD);
    frame.stored_size = PAYLOAD;
    frame.raw_size = PAYLOAD;
    frame.data_crc = wal__crc32(0, at + WAL__FRAME_SIZE, PAYLOAD);
    wal__frame_encode(&frame, SALT, OFFSET + rank, at);
}

static void make_raw(uint8_t raw[RAW])
{
    for (uint32_t rank = 0; rank < RECORDS; rank++) {
        const struct wal__frame frame = {.type = WAL__FRAME_ENTRY,
                                         .flags = WAL__FRAME_REWRITTEN,
                                         .session = 7,
                                         .sequence = 100 + rank};

        put_record(&frame, rank, raw);
    }
}

/* What is changed in a BLOCK of three records that is not compressed. */
struct block_case {
    const char *what;
    uint32_t stored_size; /* 0: as it is */
    uint32_t offset;
    uint32_t size; /* of the value; 0: none */
    uint32_t value;
    enum wal__fmt expected;
};

static const struct block_case block_cases[] = {
    {"unchanged", 0, 0, 0, 0, WAL__FMT_OK},
    {"count", 0, 0, 2, 0, WAL__FMT_FIELD},
    {"count", 0, 0, 2, 1, WAL__FMT_OK},
    {"count", 0, 0, 2, 512, WAL__FMT_OK},
    {"count", 0, 0, 2, 513, WAL__FMT_FIELD},
    {"count", 0, 0, 2, 65535, WAL__FMT_FIELD},
    {"zero", 0, 2, 2, 1, WAL__FMT_FIELD},
    {"zero", 0, 2, 2, 32768, WAL__FMT_FIELD},
    {"data_size", 0, 4, 4, RAW - 1, WAL__FMT_FIELD}, /* then not zero */
    {"data_size", 0, 4, 4, RAW + 1, WAL__FMT_OK},
    {"data_size", 0, 4, 4, STORED - 8, WAL__FMT_OK},
    {"data_size", 0, 4, 4, STORED - 7, WAL__FMT_SHORT},
    {"data_size", 0, 4, 4, UINT32_MAX, WAL__FMT_SHORT},
    {"data_size", 0, 4, 4, UINT32_MAX - 7, WAL__FMT_SHORT},
    {"zeros", 0, 8 + RAW, 2, 1, WAL__FMT_FIELD},
    {"zeros", 0, STORED - 2, 2, 256, WAL__FMT_FIELD},
    {"stored_size", 1, 0, 0, 0, WAL__FMT_SHORT},
    {"stored_size", 7, 0, 0, 0, WAL__FMT_SHORT},
    {"stored_size", 8, 0, 0, 0, WAL__FMT_SHORT},
    {"stored_size", STORED + 512, 0, 0, 0, WAL__FMT_FIELD},
};

TEST(block__fields_are_bounded)
{
    uint8_t raw[RAW];

    make_raw(raw);
    for (size_t i = 0; i < sizeof(block_cases) / sizeof(block_cases[0]); i++) {
        const struct block_case *field = &block_cases[i];
        struct wal__frame frame = {.session = 7};
        uint8_t payload[ROOM] = {0};
        struct wal__block block;
        enum wal__fmt fmt;

        wal__block_encode((struct wal__span){raw, RAW}, RECORDS, 0, 0, &frame, payload);
        assert_int_equal(frame.stored_size, STORED);
        if (field->stored_size != 0) {
            frame.stored_size = field->stored_size;
            frame.raw_size = field->stored_size;
        }
        if (field->size == 2) {
            wal__put16(payload + field->offset, (uint16_t)field->value);
        } else if (field->size == 4) {
            wal__put32(payload + field->offset, field->value);
        }
        fmt = wal__block_decode(&frame, payload, &block);
        if (fmt != field->expected) {
            fail_msg("case %u, %s %u: %s", (unsigned)i, field->what, field->value,
                     wal__fmt_text(fmt));
        }
    }
}

/* --- records of a BLOCK ------------------------------------------------- */

struct record_case {
    const char *what;
    struct wal__frame frame; /* of the second of three records */
    enum wal__fmt expected;
};

#define RECORD_OF(type_, flags_, sequence_, parent_)                               \
    {                                                                              \
        .type = (type_), .flags = (flags_), .session = 7, .sequence = (sequence_), \
        .parent = (parent_)                                                        \
    }

static const struct record_case record_cases[] = {
    {"an ENTRY", RECORD_OF(WAL__FRAME_ENTRY, WAL__FRAME_REWRITTEN, 101, 0), WAL__FMT_OK},
    {"with flags", RECORD_OF(WAL__FRAME_ENTRY, WAL__FRAME_REWRITTEN | WAL__FRAME_FIRST, 101, 100),
     WAL__FMT_OK},
    {"a CHUNK", RECORD_OF(WAL__FRAME_CHUNK, WAL__FRAME_REWRITTEN, 101, 0), WAL__FMT_OK},
    {"not marked", RECORD_OF(WAL__FRAME_ENTRY, 0, 101, 0), WAL__FMT_FIELD},
    {"an OPEN", RECORD_OF(WAL__FRAME_OPEN, WAL__FRAME_REWRITTEN, 0, 0), WAL__FMT_FIELD},
    {"a COMMIT", RECORD_OF(WAL__FRAME_COMMIT, WAL__FRAME_REWRITTEN, 0, 0), WAL__FMT_FIELD},
    {"an INDEX", RECORD_OF(WAL__FRAME_INDEX, WAL__FRAME_REWRITTEN, 0, 0), WAL__FMT_FIELD},
    {"a SEAL", RECORD_OF(WAL__FRAME_SEAL, WAL__FRAME_REWRITTEN, 0, 0), WAL__FMT_FIELD},
    {"a BLOCK", RECORD_OF(WAL__FRAME_BLOCK, WAL__FRAME_REWRITTEN, 0, 0), WAL__FMT_FIELD},
};

TEST(block_record__what_is_none_is_refused)
{
    for (size_t i = 0; i < sizeof(record_cases) / sizeof(record_cases[0]); i++) {
        struct wal__block_cursor cursor;
        struct wal__span payload;
        struct wal__frame frame;
        enum wal__fmt found;
        enum wal__fmt walked;
        uint8_t raw[RAW];
        const struct wal__span records = {raw, RAW};

        make_raw(raw);
        put_record(&record_cases[i].frame, 1, raw);
        found = wal__block_record(records, SALT, OFFSET + 1, &frame, &payload);
        wal__block_cursor_begin(&cursor, records, RECORDS, SALT, OFFSET);
        assert_int_equal(wal__block_cursor_next(&cursor, &frame, &payload), WAL__FMT_OK);
        walked = wal__block_cursor_next(&cursor, &frame, &payload);
        if (found != record_cases[i].expected || walked != found) {
            fail_msg("%s: found %s, walked %s", record_cases[i].what, wal__fmt_text(found),
                     wal__fmt_text(walked));
        }
    }
}

/* A record that is not there: zeros where it would be. */
TEST(block_record__zeros_are_refused)
{
    uint8_t raw[RAW];
    const struct wal__span records = {raw, RAW};
    struct wal__span payload;
    struct wal__frame frame;

    make_raw(raw);
    memset(raw + RECORD, 0, RECORD);
    assert_int_equal(wal__block_record(records, SALT, OFFSET + 1, &frame, &payload),
                     WAL__FMT_FIELD);
}
