/*
 * test_frame.c - frame headers: round trips, the rules in their order, and that no damaged, moved
 * or copied frame is taken for a frame.
 */
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/bytes/bytes.h"
#include "format/bytes/crc32.h"
#include "format/segment/frame.h"
#include "tests/lib/test.h"

#define SALT   UINT64_C(0x0123456789abcdef)
#define OFFSET UINT64_C(8192)

enum { ROUNDS = 2000, PAYLOAD_SIZE = 29, BUFFER_SIZE = 4096 };

static struct wal__frame an_entry(uint32_t size)
{
    struct wal__frame frame = {
        .stored_size = size,
        .raw_size = size,
        .type = WAL__FRAME_ENTRY,
        .flags = WAL__FRAME_FIRST | WAL__FRAME_LAST,
        .stream = 1,
        .kind = 3,
        .session = 77,
        .sequence = 900,
        .parent = 899,
        .id_hash = 0xfedcba9876543210u,
    };

    return frame;
}

/* Writes a whole frame and gives its size. */
static size_t write_frame(struct wal__frame *frame, const uint8_t *payload, uint64_t salt,
                          uint64_t offset, uint8_t *out)
{
    size_t span = (size_t)wal__frame_total_size(frame->stored_size);

    memset(out, 0, span);
    memcpy(out + WAL__FRAME_SIZE, payload, frame->stored_size);
    frame->data_crc = wal__crc32(0, payload, frame->stored_size);
    wal__frame_encode(frame, salt, offset, out);
    return span;
}

static size_t write_sample(uint8_t *out)
{
    struct wal__frame frame = an_entry(PAYLOAD_SIZE);
    uint8_t payload[PAYLOAD_SIZE];

    for (size_t i = 0; i < PAYLOAD_SIZE; i++) {
        payload[i] = (uint8_t)(i * 37 + 1);
    }
    return write_frame(&frame, payload, SALT, OFFSET, out);
}

/* Rules 1 to 7. */
static enum wal__fmt read_frame(const uint8_t *at, uint64_t size, uint64_t salt, uint64_t offset)
{
    struct wal__frame frame;
    enum wal__fmt fmt = wal__frame_decode(at, size, salt, offset, &frame);

    if (fmt != WAL__FMT_OK) {
        return fmt;
    }
    return wal__frame_check_data(&frame, at + WAL__FRAME_SIZE);
}

/* What the decoder says of this header, with a valid checksum, before `size` bytes of segment. */
static enum wal__fmt decode_header(struct wal__frame frame, uint64_t size)
{
    uint8_t header[WAL__FRAME_SIZE];
    struct wal__frame out;

    wal__frame_encode(&frame, SALT, OFFSET, header);
    return wal__frame_decode(header, size, SALT, OFFSET, &out);
}

static void assert_same(const struct wal__frame *a, const struct wal__frame *b)
{
    assert_int_equal(a->header_crc, b->header_crc);
    assert_int_equal(a->data_crc, b->data_crc);
    assert_int_equal(a->stored_size, b->stored_size);
    assert_int_equal(a->raw_size, b->raw_size);
    assert_int_equal(a->type, b->type);
    assert_int_equal(a->flags, b->flags);
    assert_int_equal(a->stream, b->stream);
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->session, b->session);
    assert_true(a->sequence == b->sequence);
    assert_true(a->parent == b->parent);
    assert_true(a->id_hash == b->id_hash);
}

static struct wal__frame a_random_frame(void)
{
    static const uint8_t types[] = {
        WAL__FRAME_OPEN,   WAL__FRAME_SESSION, WAL__FRAME_ENTRY,      WAL__FRAME_FORK,
        WAL__FRAME_HEAD,   WAL__FRAME_DOC,     WAL__FRAME_DOC_DELETE, WAL__FRAME_REDACT,
        WAL__FRAME_COMMIT, WAL__FRAME_INDEX,   WAL__FRAME_SEAL,       200,
    };
    struct wal__frame frame = an_entry((uint32_t)(test_random() % 1000));

    frame.type = types[test_random() % sizeof(types)];
    frame.flags = (uint8_t)(test_random() % 128);
    if (frame.type == 200) {
        frame.flags |= WAL__FRAME_IGNORABLE;
    }
    if ((frame.flags & WAL__FRAME_LZ4) != 0) {
        frame.raw_size = (uint32_t)(test_random() % (frame.stored_size * 255u + 1));
    }
    frame.stream = (uint8_t)test_random();
    frame.kind = (uint8_t)test_random();
    frame.session = (uint32_t)test_random();
    frame.sequence = 0;
    frame.parent = 0;
    if (wal__frame_is_sequenced(frame.type)) {
        frame.sequence = test_random() | 1;
        frame.parent = test_random() % frame.sequence;
    }
    frame.id_hash = test_random();
    return frame;
}

TEST(frame__round_trip_of_random_frames)
{
    uint8_t out[BUFFER_SIZE];
    uint8_t payload[1000];

    for (int i = 0; i < ROUNDS; i++) {
        struct wal__frame frame = a_random_frame();
        struct wal__frame read;
        uint64_t salt = test_random();
        uint64_t offset = test_random() % (1u << 26) & ~UINT64_C(7);
        size_t span;

        for (size_t b = 0; b < sizeof(payload); b++) {
            payload[b] = (uint8_t)test_random();
        }
        span = write_frame(&frame, payload, salt, offset, out);
        assert_int_equal(wal__frame_decode(out, span, salt, offset, &read), WAL__FMT_OK);
        assert_same(&frame, &read);
        assert_int_equal(wal__frame_check_data(&read, out + WAL__FRAME_SIZE), WAL__FMT_OK);
    }
}

TEST(frame__every_flipped_bit_is_rejected)
{
    uint8_t bytes[BUFFER_SIZE];
    size_t span = write_sample(bytes);

    assert_int_equal(read_frame(bytes, span, SALT, OFFSET), WAL__FMT_OK);
    for (size_t bit = 0; bit < span * 8; bit++) {
        enum wal__fmt expected =
            bit < (size_t)WAL__FRAME_SIZE * 8 ? WAL__FMT_HEADER_CRC : WAL__FMT_DATA_CRC;

        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(read_frame(bytes, span, SALT, OFFSET), expected);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

TEST(frame__every_truncation_is_rejected)
{
    uint8_t bytes[BUFFER_SIZE];
    size_t span = write_sample(bytes);

    for (size_t size = 0; size < span; size++) {
        uint8_t *cut = malloc(size + 1);

        assert_non_null(cut);
        memcpy(cut, bytes, size);
        assert_int_equal(read_frame(cut, size, SALT, OFFSET), WAL__FMT_SHORT);
        free(cut);
    }
}

TEST(frame__zeros_after_a_torn_write_are_rejected)
{
    uint8_t bytes[BUFFER_SIZE];
    uint8_t torn[BUFFER_SIZE];
    size_t span = write_sample(bytes);
    size_t end = WAL__FRAME_SIZE + PAYLOAD_SIZE;

    for (size_t size = 0; size < end; size++) {
        memset(torn, 0, span);
        memcpy(torn, bytes, size);
        assert_int_not_equal(read_frame(torn, span, SALT, OFFSET), WAL__FMT_OK);
    }
}

TEST(frame__zeros_were_never_written)
{
    uint8_t zeros[64] = {0};

    assert_int_equal(read_frame(zeros, 64, SALT, OFFSET), WAL__FMT_ZERO);
    assert_int_equal(read_frame(zeros, 48, SALT, OFFSET), WAL__FMT_ZERO);
    assert_int_equal(read_frame(zeros, 47, SALT, OFFSET), WAL__FMT_SHORT);
}

TEST(frame__moved_frame_is_rejected)
{
    uint8_t bytes[BUFFER_SIZE];
    size_t span = write_sample(bytes);

    for (uint64_t offset = 0; offset < 1u << 20; offset += 8) {
        enum wal__fmt expected = offset == OFFSET ? WAL__FMT_OK : WAL__FMT_HEADER_CRC;

        assert_int_equal(read_frame(bytes, span, SALT, offset), expected);
    }
}

TEST(frame__frame_of_another_segment_is_rejected)
{
    uint8_t bytes[BUFFER_SIZE];
    size_t span = write_sample(bytes);

    for (int bit = 0; bit < 64; bit++) {
        uint64_t salt = SALT ^ UINT64_C(1) << bit;

        assert_int_equal(read_frame(bytes, span, salt, OFFSET), WAL__FMT_HEADER_CRC);
    }
}

/* The copy was a valid frame where it came from: a payload may hold the bytes of a segment. */
TEST(frame__copy_inside_a_payload_is_rejected)
{
    uint8_t inner[BUFFER_SIZE];
    uint8_t bytes[BUFFER_SIZE];
    size_t inner_size = write_sample(inner);
    struct wal__frame frame = an_entry((uint32_t)inner_size);
    size_t span = write_frame(&frame, inner, SALT, OFFSET + 800, bytes);

    assert_int_equal(read_frame(bytes, span, SALT, OFFSET + 800), WAL__FMT_OK);
    for (size_t at = 8; at + WAL__FRAME_SIZE <= span; at += 8) {
        assert_int_equal(read_frame(bytes + at, span - at, SALT, OFFSET + 800 + at),
                         WAL__FMT_HEADER_CRC);
    }
}

TEST(frame__failed_decode_leaves_the_output)
{
    uint8_t bytes[BUFFER_SIZE];
    size_t span = write_sample(bytes);
    struct wal__frame before = an_entry(5);
    struct wal__frame frame = before;

    bytes[20] ^= 1;
    (void)wal__frame_decode(bytes, span, SALT, OFFSET, &frame);
    bytes[20] ^= 1;
    (void)wal__frame_decode(bytes, span - 1, SALT, OFFSET, &frame);
    assert_same(&before, &frame);
}

TEST(frame__unknown_flag_is_rejected)
{
    struct wal__frame frame = an_entry(8);

    for (unsigned bit = 0; bit < 8; bit++) {
        enum wal__fmt expected = bit < 7 ? WAL__FMT_OK : WAL__FMT_FIELD;

        frame.flags = (uint8_t)(1u << bit);
        assert_int_equal(decode_header(frame, 1000), expected);
    }
}

TEST(frame__unknown_type_must_be_ignorable)
{
    for (int type = 1; type < 256; type++) {
        struct wal__frame frame = an_entry(type == WAL__FRAME_BLOCK ? 464 : 0);
        int is_known = type <= 17;

        frame.type = (uint8_t)type;
        if (!wal__frame_is_sequenced(frame.type)) {
            frame.sequence = 0;
            frame.parent = 0;
        }
        assert_int_equal(decode_header(frame, 1000), is_known ? WAL__FMT_OK : WAL__FMT_TYPE);
        assert_int_equal(strcmp(wal__frame_type_name(frame.type), "UNKNOWN") != 0, is_known);
        frame.flags |= WAL__FRAME_IGNORABLE;
        assert_int_equal(decode_header(frame, 1000), WAL__FMT_OK);
    }
}

/* A BLOCK ends at a multiple of 512; what has no payload has none, or what encryption adds. */
TEST(frame__size_of_some_types)
{
    static const struct {
        uint8_t type;
        uint32_t size;
        enum wal__fmt fmt;
    } cases[] = {
        {WAL__FRAME_BLOCK, 464, WAL__FMT_OK},      {WAL__FRAME_BLOCK, 457, WAL__FMT_OK},
        {WAL__FRAME_BLOCK, 456, WAL__FMT_FIELD},   {WAL__FRAME_BLOCK, 465, WAL__FMT_FIELD},
        {WAL__FRAME_BLOCK, 976, WAL__FMT_OK},      {WAL__FRAME_TOMBSTONE, 36, WAL__FMT_OK},
        {WAL__FRAME_TOMBSTONE, 8, WAL__FMT_FIELD}, {WAL__FRAME_TOMBSTONE, 35, WAL__FMT_FIELD},
        {WAL__FRAME_ACCEPT, 36, WAL__FMT_OK},      {WAL__FRAME_RESTORE, 37, WAL__FMT_FIELD},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wal__frame frame = an_entry(cases[i].size);

        frame.type = cases[i].type;
        if (!wal__frame_is_sequenced(frame.type)) {
            frame.sequence = 0;
            frame.parent = 0;
        }
        assert_int_equal(decode_header(frame, 2000), cases[i].fmt);
    }
}

TEST(frame__type_0_is_rejected_even_when_ignorable)
{
    struct wal__frame frame = an_entry(8);

    frame.type = WAL__FRAME_NONE;
    assert_int_equal(decode_header(frame, 1000), WAL__FMT_FIELD);
    frame.flags |= WAL__FRAME_IGNORABLE;
    assert_int_equal(decode_header(frame, 1000), WAL__FMT_FIELD);
}

TEST(frame__flags_are_checked_before_the_type)
{
    struct wal__frame frame = an_entry(8);

    frame.type = 99;
    frame.flags = 128;
    assert_int_equal(decode_header(frame, 1000), WAL__FMT_FIELD);
}

TEST(frame__raw_size_is_the_stored_size_without_lz4)
{
    struct wal__frame frame = an_entry(100);

    frame.raw_size = 101;
    assert_int_equal(decode_header(frame, 1000), WAL__FMT_FIELD);
    frame.raw_size = 99;
    assert_int_equal(decode_header(frame, 1000), WAL__FMT_FIELD);
}

TEST(frame__raw_size_is_bounded_with_lz4)
{
    struct wal__frame frame = an_entry(100);

    frame.flags |= WAL__FRAME_LZ4;
    frame.raw_size = 25500;
    assert_int_equal(decode_header(frame, 1000), WAL__FMT_OK);
    frame.raw_size = 25501;
    assert_int_equal(decode_header(frame, 1000), WAL__FMT_FIELD);
    frame.stored_size = 16 * 1024 * 1024;
    frame.raw_size = WAL__FRAME_ENTRY_MAX;
    assert_int_equal(decode_header(frame, UINT64_MAX), WAL__FMT_OK);
    frame.raw_size = WAL__FRAME_ENTRY_MAX + 1;
    assert_int_equal(decode_header(frame, UINT64_MAX), WAL__FMT_FIELD);
}

TEST(frame__payload_is_bounded_by_its_type)
{
    static const struct {
        uint8_t type;
        uint32_t max;
    } limits[] = {
        {WAL__FRAME_OPEN, 2u << 20},
        {WAL__FRAME_SESSION, 2u << 20},
        {WAL__FRAME_ENTRY, 18u << 20},
        {WAL__FRAME_FORK, 2u << 20},
        {WAL__FRAME_HEAD, 2u << 20},
        {WAL__FRAME_COMMIT, 2u << 20},
        {WAL__FRAME_INDEX, 64u << 20},
        {WAL__FRAME_SEAL, 2u << 20},
        {WAL__FRAME_DOC, 18u << 20},
        {WAL__FRAME_DOC_DELETE, 2u << 20},
        {WAL__FRAME_REDACT, 2u << 20},
        {WAL__FRAME_TOMBSTONE, WAL__FRAME_CIPHER_SIZE},
        {WAL__FRAME_ACCEPT, WAL__FRAME_CIPHER_SIZE},
        {WAL__FRAME_CHUNK, 2u << 20},
        {WAL__FRAME_BLOB, 2u << 20},
        {WAL__FRAME_RESTORE, WAL__FRAME_CIPHER_SIZE},
        {200, 2u << 20},
    };

    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        struct wal__frame frame = an_entry(limits[i].max);

        frame.type = limits[i].type;
        frame.flags = WAL__FRAME_IGNORABLE;
        if (!wal__frame_is_sequenced(frame.type)) {
            frame.sequence = 0;
            frame.parent = 0;
        }
        assert_int_equal(decode_header(frame, UINT64_MAX), WAL__FMT_OK);
        frame.stored_size++;
        frame.raw_size++;
        assert_int_equal(decode_header(frame, UINT64_MAX), WAL__FMT_FIELD);
        frame.stored_size = UINT32_MAX;
        frame.raw_size = UINT32_MAX;
        assert_int_equal(decode_header(frame, UINT64_MAX), WAL__FMT_FIELD);
    }
}

TEST(frame__types_have_names)
{
    static const char *const names[] = {
        "UNKNOWN",    "OPEN",   "SESSION",   "ENTRY",   "FORK",    "HEAD",   "DOC",
        "DOC_DELETE", "REDACT", "TOMBSTONE", "CHUNK",   "BLOB",    "COMMIT", "INDEX",
        "SEAL",       "ACCEPT", "BLOCK",     "RESTORE", "UNKNOWN",
    };

    for (size_t type = 0; type < sizeof(names) / sizeof(names[0]); type++) {
        assert_string_equal(wal__frame_type_name((uint8_t)type), names[type]);
    }
}

TEST(frame__payload_and_padding_end_in_the_segment)
{
    struct wal__frame frame = an_entry(9);

    assert_int_equal(wal__frame_total_size(9), 64);
    assert_int_equal(wal__frame_total_size(8), 56);
    assert_int_equal(wal__frame_total_size(0), 48);
    assert_true(wal__frame_total_size(UINT32_MAX) == 48 + (UINT64_C(1) << 32));
    assert_int_equal(decode_header(frame, 64), WAL__FMT_OK);
    assert_int_equal(decode_header(frame, 63), WAL__FMT_SHORT);
}

TEST(frame__parent_is_before_its_child)
{
    struct wal__frame frame = an_entry(8);

    frame.parent = frame.sequence;
    assert_int_equal(decode_header(frame, 1000), WAL__FMT_FIELD);
    frame.type = WAL__FRAME_HEAD;
    assert_int_equal(decode_header(frame, 1000), WAL__FMT_FIELD);
    frame.parent = 0;
    assert_int_equal(decode_header(frame, 1000), WAL__FMT_OK);
    frame.sequence = 0;
    assert_int_equal(decode_header(frame, 1000), WAL__FMT_FIELD);
}

TEST(frame__unsequenced_frame_has_no_sequence)
{
    static const uint8_t types[] = {WAL__FRAME_OPEN, WAL__FRAME_COMMIT, WAL__FRAME_INDEX,
                                    WAL__FRAME_SEAL};

    for (size_t i = 0; i < sizeof(types); i++) {
        struct wal__frame frame = an_entry(8);

        frame.type = types[i];
        frame.sequence = 0;
        frame.parent = 0;
        assert_false(wal__frame_is_sequenced(types[i]));
        assert_int_equal(decode_header(frame, 1000), WAL__FMT_OK);
        frame.sequence = 1;
        assert_int_equal(decode_header(frame, 1000), WAL__FMT_FIELD);
        frame.sequence = 0;
        frame.parent = 1;
        assert_int_equal(decode_header(frame, 1000), WAL__FMT_FIELD);
    }
}

TEST(frame__chain_covers_both_checksums_in_order)
{
    struct wal__frame a = an_entry(0);
    struct wal__frame b = an_entry(0);
    uint8_t links[16];

    a.header_crc = 0x01020304;
    a.data_crc = 0x05060708;
    b.header_crc = 0x090a0b0c;
    b.data_crc = 0x0d0e0f10;
    wal__put32(links, a.header_crc);
    wal__put32(links + 4, a.data_crc);
    wal__put32(links + 8, b.header_crc);
    wal__put32(links + 12, b.data_crc);
    assert_int_equal(wal__frame_chain_crc(wal__frame_chain_crc(5, &a), &b),
                     wal__crc32(5, links, sizeof(links)));
    assert_int_not_equal(wal__frame_chain_crc(wal__frame_chain_crc(5, &b), &a),
                         wal__crc32(5, links, sizeof(links)));
}
