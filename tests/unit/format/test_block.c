/*
 * test_block.c - BLOCK: round trips, every field that is refused, wrong sizes, finding and walking
 * records (SPEC.md 2.23); the pass over a rewritten segment, and what its frames say without its
 * header (SPEC.md 2.22).
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "format/bytes/assert.h"
#include "format/bytes/bytes.h"
#include "format/bytes/crc32.h"
#include "format/segment/frame.h"
#include "format/segment/scan.h"
#include "tests/lib/rng.h"
#include "tests/lib/segment_image.h"
#include "tests/lib/test.h"

#define SALT   UINT64_C(0x0123456789abcdef)
#define OFFSET UINT64_C(8192)

enum {
    ROUNDS = 3000,
    RECORD_SIZE = 104, /* of a record with 56 bytes of payload */
    LARGE = 3 * 1024 * 1024
};

/* Records as a writer lays them out. */
struct sample {
    uint8_t *raw;
    size_t size;
    uint32_t count;
    struct wal__frame frame; /* of the BLOCK */
    uint8_t *payload;
};

static void add_record(struct sample *sample, uint8_t flags, size_t size, int byte)
{
    uint64_t total = wal__frame_total_size((uint32_t)size);
    struct wal__frame frame = {.type = WAL__FRAME_ENTRY,
                               .flags = flags,
                               .session = 7,
                               .sequence = 100 + sample->count,
                               .stored_size = (uint32_t)size,
                               .raw_size = (uint32_t)size};
    uint8_t *at;

    at = test_memory(sample->size + total);
    if (sample->size > 0) {
        memcpy(at, sample->raw, sample->size);
        free(test_forget(sample->raw));
    }
    sample->raw = at;
    at += sample->size;
    memset(at + WAL__FRAME_SIZE, byte, size);
    frame.data_crc = wal__crc32(0, at + WAL__FRAME_SIZE, size);
    wal__frame_encode(&frame, SALT, OFFSET + sample->count, at);
    sample->size += total;
    sample->count++;
}

static void encode(struct sample *sample, int level)
{
    struct wal__span raw = {sample->raw, sample->size};

    sample->payload = test_memory(wal__block_payload_size((uint32_t)sample->size, 0));
    wal__block_encode(raw, sample->count, level, 0, &sample->frame, sample->payload);
}

static struct sample a_sample(uint32_t count, int level)
{
    struct sample sample = {.raw = NULL};

    for (uint32_t i = 0; i < count; i++) {
        add_record(&sample, WAL__FRAME_REWRITTEN, 56, (int)('a' + i % 20));
    }
    encode(&sample, level);
    return sample;
}

static enum wal__fmt decode(const struct sample *sample, struct wal__block *block)
{
    return wal__block_decode(&sample->frame, sample->payload, block);
}

/* Decodes, decompresses, and compares all records. */
static void assert_round_trip(const struct sample *sample, bool is_compressed)
{
    struct wal__block_cursor cursor;
    struct wal__span payload;
    struct wal__frame frame;
    struct wal__block block;
    struct wal__span records;
    uint8_t *out = test_memory(sample->size);

    assert_int_equal(decode(sample, &block), WAL__FMT_OK);
    assert_int_equal(wal__frame_total_size(sample->frame.stored_size) % WAL__BLOCK_ALIGN, 0);
    assert_int_equal(block.count, sample->count);
    assert_int_equal(block.is_compressed, is_compressed);
    assert_int_equal(block.raw_size, sample->size);
    records = block.data;
    if (is_compressed) {
        assert_int_equal(wal__block_decompress(&block, out), WAL__FMT_OK);
        records = (struct wal__span){out, block.raw_size};
    }
    assert_memory_equal(records.data, sample->raw, sample->size);
    wal__block_cursor_begin(&cursor, records, block.count, SALT, OFFSET);
    for (uint32_t i = 0; i < sample->count; i++) {
        struct wal__span found;

        assert_int_equal(cursor.offset, OFFSET + i);
        assert_int_equal(wal__block_cursor_next(&cursor, &frame, &payload), WAL__FMT_OK);
        assert_int_equal(frame.sequence, 100 + i);
        assert_int_equal(wal__block_find(records, i, &found), WAL__FMT_OK);
        assert_ptr_equal(found.data + WAL__FRAME_SIZE, payload.data);
    }
    assert_int_equal(wal__block_cursor_next(&cursor, &frame, &payload), WAL__FMT_ZERO);
}

TEST(block__round_trips)
{
    static const uint32_t counts[] = {1, 2, 9, WAL__BLOCK_RECORDS_MAX};

    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        for (int level = 0; level <= 9; level += 3) {
            struct sample sample = a_sample(counts[i], level);

            assert_round_trip(&sample, level > 0);
        }
    }
}

TEST(block__one_large_record)
{
    for (int level = 0; level <= 1; level++) {
        struct sample sample = {.raw = NULL};

        add_record(&sample, WAL__FRAME_REWRITTEN, LARGE, 'x');
        encode(&sample, level);
        assert_round_trip(&sample, level > 0);
        assert_true(level == 0 || sample.frame.stored_size < LARGE / 10);
    }
}

/* Bytes that do not compress stay as they are. */
TEST(block__noise_is_stored_raw)
{
    struct sample sample = {.raw = NULL};
    uint64_t seed = 5;
    struct wal__frame frame;

    add_record(&sample, WAL__FRAME_REWRITTEN, 5000, 'x');
    for (size_t i = 0; i < 5000; i++) {
        sample.raw[WAL__FRAME_SIZE + i] = (uint8_t)rng_next(&seed);
    }
    assert_int_equal(wal__frame_decode(sample.raw, sample.size, SALT, OFFSET, &frame), WAL__FMT_OK);
    frame.data_crc = wal__crc32(0, sample.raw + WAL__FRAME_SIZE, 5000);
    wal__frame_encode(&frame, SALT, OFFSET, sample.raw);
    encode(&sample, 9);
    assert_round_trip(&sample, false);
}

static void assert_refused(const struct sample *sample, enum wal__fmt fmt)
{
    struct wal__block block;

    assert_int_equal(decode(sample, &block), fmt);
}

TEST(block__refused_fields)
{
    struct sample sample = a_sample(3, 1);
    uint32_t data_size = wal__get32(sample.payload + 4);
    uint32_t size = sample.frame.stored_size;

    wal__put16(sample.payload, 0);
    assert_refused(&sample, WAL__FMT_FIELD);
    wal__put16(sample.payload, WAL__BLOCK_RECORDS_MAX + 1);
    assert_refused(&sample, WAL__FMT_FIELD);
    wal__put16(sample.payload, 3);
    wal__put16(sample.payload + 2, 1);
    assert_refused(&sample, WAL__FMT_FIELD);
    wal__put16(sample.payload + 2, 0);
    /* What follows the data, its first and its last byte. */
    sample.payload[8 + data_size] = 1;
    assert_refused(&sample, WAL__FMT_FIELD);
    sample.payload[8 + data_size] = 0;
    sample.payload[size - 1] = 1;
    assert_refused(&sample, WAL__FMT_FIELD);
    sample.payload[size - 1] = 0;
    assert_refused(&sample, WAL__FMT_OK);
    /* Sizes. */
    wal__put32(sample.payload + 4, size - 8 + 1);
    assert_refused(&sample, WAL__FMT_SHORT);
    wal__put32(sample.payload + 4, UINT32_MAX);
    assert_refused(&sample, WAL__FMT_SHORT);
    wal__put32(sample.payload + 4, data_size);
    sample.frame.stored_size = 7;
    assert_refused(&sample, WAL__FMT_SHORT);
}

/* More zeros than alignment needs: the data could have been cut. */
TEST(block__too_many_zeros_are_refused)
{
    struct sample sample = a_sample(1, 0);
    uint32_t size = sample.frame.stored_size + WAL__BLOCK_ALIGN;
    struct wal__block block;

    sample.payload = memcpy(test_memory(size), sample.payload, sample.frame.stored_size);
    sample.frame.stored_size = size;
    assert_int_equal(decode(&sample, &block), WAL__FMT_FIELD);
}

/* A block that does not have the size that its frame says. */
TEST(block__wrong_raw_size_is_refused)
{
    struct sample sample = a_sample(20, 9);
    uint8_t *out = test_memory(2 * sample.size);
    struct wal__block block;

    for (uint32_t delta = 1; delta < 200; delta += 11) {
        sample.frame.raw_size = (uint32_t)sample.size - delta;
        assert_int_equal(decode(&sample, &block), WAL__FMT_OK);
        assert_int_equal(wal__block_decompress(&block, out), WAL__FMT_FIELD);
        sample.frame.raw_size = (uint32_t)sample.size + delta;
        assert_int_equal(decode(&sample, &block), WAL__FMT_OK);
        assert_int_equal(wal__block_decompress(&block, out), WAL__FMT_FIELD);
    }
}

TEST(block_find__beyond_the_last_record)
{
    struct sample sample = a_sample(4, 0);
    struct wal__span records = {sample.raw, sample.size};
    struct wal__span found;

    assert_int_equal(wal__block_find(records, 4, &found), WAL__FMT_SHORT);
    assert_int_equal(wal__block_find(records, 511, &found), WAL__FMT_SHORT);
    records.size -= 1; /* the last one is cut: found, and then not decoded */
    assert_int_equal(wal__block_find(records, 3, &found), WAL__FMT_OK);
    assert_int_equal(found.size, RECORD_SIZE - 1);
    records.size = (size_t)3 * RECORD_SIZE + WAL__FRAME_SIZE - 1;
    assert_int_equal(wal__block_find(records, 3, &found), WAL__FMT_SHORT);
    /* A size that reaches over the end. */
    wal__put32(sample.raw + 8, UINT32_MAX);
    assert_int_equal(wal__block_find(records, 1, &found), WAL__FMT_SHORT);
}

static enum wal__fmt walk(const struct sample *sample, uint32_t count)
{
    struct wal__span records = {sample->raw, sample->size};
    struct wal__block_cursor cursor;
    struct wal__span payload;
    struct wal__frame frame;
    enum wal__fmt fmt = WAL__FMT_OK;

    wal__block_cursor_begin(&cursor, records, count, SALT, OFFSET);
    while (fmt == WAL__FMT_OK) {
        fmt = wal__block_cursor_next(&cursor, &frame, &payload);
    }
    return fmt;
}

TEST(block_cursor__count_is_not_that_of_the_records)
{
    struct sample sample = a_sample(4, 0);

    assert_int_equal(walk(&sample, 4), WAL__FMT_ZERO);
    assert_int_equal(walk(&sample, 3), WAL__FMT_FIELD);
    assert_int_not_equal(walk(&sample, 5), WAL__FMT_ZERO);
}

TEST(block_cursor__damaged_record)
{
    struct sample sample = a_sample(4, 0);

    for (size_t at = 0; at < sample.size; at += 3) {
        sample.raw[at] ^= 4;
        assert_int_not_equal(walk(&sample, 4), WAL__FMT_ZERO);
        sample.raw[at] ^= 4;
    }
    assert_int_equal(walk(&sample, 4), WAL__FMT_ZERO);
}

TEST(block_cursor__record_that_is_not_marked_rewritten)
{
    struct sample sample = {.raw = NULL};

    add_record(&sample, WAL__FRAME_REWRITTEN, 56, 'a');
    add_record(&sample, 0, 56, 'b');
    assert_int_equal(walk(&sample, 2), WAL__FMT_FIELD);
}

/* Records of another block, or in another order: each is bound to its place. */
TEST(block_cursor__records_that_changed_places)
{
    struct sample sample = a_sample(2, 0);
    uint8_t kept[RECORD_SIZE];

    memcpy(kept, sample.raw, RECORD_SIZE);
    memcpy(sample.raw, sample.raw + RECORD_SIZE, RECORD_SIZE);
    memcpy(sample.raw + RECORD_SIZE, kept, RECORD_SIZE);
    assert_int_not_equal(walk(&sample, 2), WAL__FMT_ZERO);
}

/* Whatever was changed, nothing outside is read or written. */
TEST(block__mutated_blocks_stay_inside)
{
    uint64_t seed = rng_seed(1);

    for (int i = 0; i < ROUNDS; i++) {
        const void *mark = test_mark();
        struct sample sample =
            a_sample(1 + (uint32_t)rng_below(&seed, 12), (int)rng_below(&seed, 2));
        uint8_t *exact = test_memory(sample.frame.stored_size);
        uint8_t *out = test_memory(sample.size);
        struct wal__block block;

        for (int k = 0; k < 3; k++) {
            sample.payload[rng_below(&seed, sample.frame.stored_size)] = (uint8_t)rng_next(&seed);
        }
        memcpy(exact, sample.payload, sample.frame.stored_size);
        if (wal__block_decode(&sample.frame, exact, &block) == WAL__FMT_OK && block.is_compressed) {
            (void)wal__block_decompress(&block, out);
        } else {
            struct wal__span found;
            struct wal__span all = {exact, sample.frame.stored_size};

            (void)wal__block_find(all, (uint32_t)rng_below(&seed, 20), &found);
        }
        test_end_since(mark);
    }
}

enum {
    CAPACITY = 64 * 1024,
    LAST = 40, /* sequence number that the segment ends with */
    RECORDS = 10,
    ROOM = 8192
};

struct state {
    struct image image;
    struct wal__scan_result facts;
    uint64_t blocks[3];
    uint64_t commit; /* of the group of the blocks */
    uint32_t seen;   /* a bit for each of the blocks */
    uint32_t count;  /* of blocks that the sink received */
};

static bool take_piece(void *ctx, const struct wal__scan_range *piece)
{
    struct state *s = ctx;

    for (uint64_t at = 0; at < piece->size;) {
        struct wal__frame frame;

        assert_int_equal(wal__frame_decode(piece->bytes + at, piece->size - at, s->image.salt,
                                           piece->offset + at, &frame),
                         WAL__FMT_OK);
        for (uint32_t i = 0; i < 3; i++) {
            if (frame.type == WAL__FRAME_BLOCK && piece->offset + at == s->blocks[i]) {
                s->seen |= 1u << i;
                s->count++;
            }
        }
        at += wal__frame_total_size(frame.stored_size);
    }
    return true;
}

static int set_up(void **state)
{
    struct state *s = calloc(1, sizeof(*s));

    WAL__ASSERT(s != NULL);
    image_init(&s->image, CAPACITY);
    image_rewrite(&s->image, LAST);
    image_open(&s->image);
    for (uint32_t i = 0; i < 3; i++) {
        s->blocks[i] = image_block(&s->image, i + 1, 1 + i * RECORDS, RECORDS, i == 1);
    }
    s->commit = image_commit(&s->image, false);
    image_seal(&s->image);
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    struct state *s = *state;

    image_deinit(&s->image);
    free(s);
    return 0;
}

static void flip(struct state *s, uint64_t offset)
{
    s->image.bytes[offset] ^= 0x10;
}

static void scan(struct state *s)
{
    const struct wal__scan_source source = image_source(&s->image);
    const struct wal__scan_start start = image_start(&s->image);
    const struct wal__scan_sink sink = {s, take_piece, NULL};

    s->seen = 0;
    s->count = 0;
    wal__scan(&source, &sink, &start, &s->facts);
    assert_int_equal(s->facts.last_sequence, LAST);
}

/* The only damage is this range, and no sequence number is known. */
static void expect_damage(const struct state *s, uint64_t from, uint64_t to)
{
    assert_int_equal(s->facts.verdict, WAL__VERDICT_DAMAGED);
    assert_int_equal(s->facts.damage_count, 1);
    assert_int_equal(s->facts.damage[0].offset, from);
    assert_int_equal(s->facts.damage[0].offset + s->facts.damage[0].size, to);
    assert_int_equal(s->facts.damage[0].last_sequence, 0);
    assert_int_equal(s->facts.end, s->image.end);
}

/* --- the scan ------------------------------------------------------------- */

TEST_WITH(scan__rewritten_segment_is_clean, set_up, tear_down)
{
    struct state *s = *state;

    scan(s);
    assert_int_equal(s->facts.verdict, WAL__VERDICT_CLEAN);
    assert_int_equal(s->facts.groups, 2);
    assert_int_equal(s->facts.sealed_end, s->image.end);
    assert_int_equal(s->seen, 7);
    assert_int_equal(s->count, 3);
}

TEST_WITH(scan__damaged_block_costs_that_block, set_up, tear_down)
{
    struct state *s = *state;

    for (uint32_t i = 0; i < 3; i++) {
        for (uint32_t k = 0; k < 2; k++) {
            /* In its header, and in its payload. */
            uint64_t at = s->blocks[i] + (k == 0 ? 20 : WAL__FRAME_SIZE + 100);

            flip(s, at);
            scan(s);
            expect_damage(s, s->blocks[i], i == 2 ? s->commit : s->blocks[i + 1]);
            assert_int_equal(s->seen, 7 & ~(1u << i));
            assert_int_equal(s->count, 2);
            flip(s, at);
        }
    }
}

/* Nothing in it is torn, whatever else is damaged. */
TEST_WITH(scan__damaged_block_without_seal_and_commit, set_up, tear_down)
{
    struct state *s = *state;

    memset(s->image.bytes + s->image.end, 0,
           (size_t)(CAPACITY - s->image.end)); /* INDEX, SEAL, trailer */
    flip(s, s->blocks[0] + 100);
    scan(s);
    expect_damage(s, s->blocks[0], s->blocks[1]);
    assert_int_equal(s->seen, 6);
    flip(s, s->commit + 60);
    scan(s);
    assert_int_equal(s->facts.verdict, WAL__VERDICT_DAMAGED);
    assert_int_equal(s->facts.damage[0].offset, s->blocks[0]);
}

TEST_WITH(scan__damaged_open_and_commits_lose_no_block, set_up, tear_down)
{
    struct state *s = *state;
    const uint64_t open = WAL__SEGMENT_HEADER_SIZE;
    const uint64_t commit = open + 88;

    flip(s, open + 50);
    scan(s);
    expect_damage(s, open, commit);
    assert_int_equal(s->seen, 7);
    flip(s, open + 50);
    flip(s, commit + 50);
    scan(s);
    expect_damage(s, commit, s->blocks[0]);
    assert_int_equal(s->seen, 7);
    flip(s, commit + 50);
    flip(s, s->commit + 50);
    scan(s);
    expect_damage(s, s->commit, s->image.end);
    assert_int_equal(s->seen, 7);
}

/* --- without a header ----------------------------------------------------- */

TEST_WITH(rewrite_find__lost_header, set_up, tear_down)
{
    struct state *s = *state;
    const struct wal__scan_source source = image_source(&s->image);
    struct wal__rewrite rewrite;
    uint64_t salt;

    memset(s->image.bytes, 0, WAL__SEGMENT_HEADER_SIZE);
    assert_true(wal__salt_find(&source, CAPACITY, &salt));
    assert_true(wal__rewrite_find(&source, CAPACITY, salt, &rewrite));
    assert_int_equal(rewrite.generation, 1);
    assert_int_equal(rewrite.first_id, 1);
    assert_int_equal(rewrite.last_sequence, LAST);
    assert_int_equal(rewrite.original_end, 0);
}

TEST_WITH(rewrite_find__rewritten_segment_without_blocks, set_up, tear_down)
{
    struct state *s = *state;
    const struct wal__scan_source source = image_source(&s->image);
    struct wal__rewrite rewrite;

    image_deinit(&s->image);
    image_init(&s->image, CAPACITY);
    image_rewrite(&s->image, LAST);
    image_open(&s->image);
    image_commit(&s->image, false);
    image_seal(&s->image);
    assert_true(wal__rewrite_find(&source, CAPACITY, s->image.salt, &rewrite));
    assert_int_equal(rewrite.last_sequence, LAST);
}

TEST_WITH(rewrite_find__segment_of_records_is_none, set_up, tear_down)
{
    struct state *s = *state;
    const struct wal__scan_source source = image_source(&s->image);
    struct wal__rewrite rewrite;

    for (int i = 0; i < 2; i++) {
        image_deinit(&s->image);
        image_init(&s->image, CAPACITY);
        s->image.align = i == 0 ? 8 : 512;
        image_open(&s->image);
        image_commit_mark(&s->image);
        image_group(&s->image, 1, 4, true);
        assert_false(wal__rewrite_find(&source, CAPACITY, s->image.salt, &rewrite));
    }
}

/* --- blocks --------------------------------------------------------------- */

/* The records of the image's block at a rank; *out holds ROOM bytes. */
static struct wal__span unpack(const struct state *s, uint32_t rank, uint8_t *out, uint32_t *count)
{
    const uint8_t *at = s->image.bytes + s->blocks[rank];
    struct wal__frame frame;
    struct wal__block block;

    assert_int_equal(wal__frame_decode(at, CAPACITY, s->image.salt, s->blocks[rank], &frame),
                     WAL__FMT_OK);
    assert_int_equal(wal__block_decode(&frame, at + WAL__FRAME_SIZE, &block), WAL__FMT_OK);
    assert_int_equal(block.is_compressed, rank == 1);
    assert_true(block.raw_size <= ROOM);
    *count = block.count;
    if (block.is_compressed) {
        assert_int_equal(wal__block_decompress(&block, out), WAL__FMT_OK);
    } else {
        memcpy(out, block.data.data, block.raw_size);
    }
    return (struct wal__span){out, block.raw_size};
}

TEST_WITH(block__record_of_each_offset, set_up, tear_down)
{
    struct state *s = *state;
    uint8_t bytes[ROOM];
    uint32_t count;

    for (uint32_t rank = 0; rank < 3; rank++) {
        struct wal__span records = unpack(s, rank, bytes, &count);
        struct wal__span payload;
        struct wal__frame frame;

        assert_int_equal(count, RECORDS);
        for (uint32_t i = 0; i < RECORDS; i++) {
            uint64_t offset = s->blocks[rank] + i;

            assert_int_equal(wal__block_record(records, s->image.salt, offset, &frame, &payload),
                             WAL__FMT_OK);
            assert_int_equal(frame.sequence, 1 + rank * RECORDS + i);
            assert_int_equal(payload.size, frame.stored_size);
        }
        assert_int_equal(
            wal__block_record(records, s->image.salt, s->blocks[rank] + RECORDS, &frame, &payload),
            WAL__FMT_SHORT);
    }
}

TEST_WITH(block__damaged_record_is_not_returned, set_up, tear_down)
{
    struct state *s = *state;
    uint8_t bytes[ROOM];
    uint32_t count;
    struct wal__span records = unpack(s, 0, bytes, &count);
    uint64_t total = records.size / RECORDS;
    struct wal__block_cursor cursor;
    struct wal__span payload;
    struct wal__frame frame;

    bytes[2 * total + WAL__FRAME_SIZE + 20] ^= 1;
    assert_int_equal(wal__block_record(records, s->image.salt, s->blocks[0] + 2, &frame, &payload),
                     WAL__FMT_DATA_CRC);
    assert_int_equal(wal__block_record(records, s->image.salt, s->blocks[0] + 3, &frame, &payload),
                     WAL__FMT_OK);
    /* A record under the offset of another one. */
    assert_int_equal(wal__block_record(records, s->image.salt + 1, s->blocks[0], &frame, &payload),
                     WAL__FMT_HEADER_CRC);
    wal__block_cursor_begin(&cursor, records, count, s->image.salt, s->blocks[0]);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(wal__block_cursor_next(&cursor, &frame, &payload), WAL__FMT_OK);
    }
    assert_int_equal(wal__block_cursor_next(&cursor, &frame, &payload), WAL__FMT_DATA_CRC);
}

TEST_WITH(block__record_without_flag_is_refused, set_up, tear_down)
{
    struct state *s = *state;
    uint8_t bytes[ROOM];
    uint32_t count;
    struct wal__span records = unpack(s, 0, bytes, &count);
    struct wal__span payload;
    struct wal__frame frame;

    assert_int_equal(wal__block_record(records, s->image.salt, s->blocks[0], &frame, &payload),
                     WAL__FMT_OK);
    frame.flags = 0;
    wal__frame_encode(&frame, s->image.salt, s->blocks[0], bytes);
    assert_int_equal(wal__block_record(records, s->image.salt, s->blocks[0], &frame, &payload),
                     WAL__FMT_FIELD);
    /* Nor a frame that is no record. */
    frame.flags = WAL__FRAME_REWRITTEN;
    frame.type = WAL__FRAME_COMMIT;
    frame.sequence = 0;
    wal__frame_encode(&frame, s->image.salt, s->blocks[0], bytes);
    assert_int_equal(wal__block_record(records, s->image.salt, s->blocks[0], &frame, &payload),
                     WAL__FMT_FIELD);
}
