/*
 * test_rewritten.c - the blocks of rewritten segments (SPEC.md 2.22, 2.23), the
 * pass over such a segment, and what its frames say without its header.
 */
#include <stdlib.h>
#include <string.h>

#include "format/bytes/assert.h"
#include "format/bytes/crc32.h"
#include "format/segment/block.h"
#include "format/segment/salt.h"
#include "tests/lib/segment_image.h"
#include "tests/lib/test.h"

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

        assert_int_equal(wal__frame_decode(piece->bytes + at, piece->size - at,
                                           s->image.salt, piece->offset + at,
                                           &frame),
                         WAL__FMT_OK);
        for (uint32_t i = 0; i < 3; i++) {
            if (frame.type == WAL__FRAME_BLOCK &&
                piece->offset + at == s->blocks[i]) {
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
        s->blocks[i] =
            image_block(&s->image, i + 1, 1 + i * RECORDS, RECORDS, i == 1);
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
            expect_damage(s, s->blocks[i],
                          i == 2 ? s->commit : s->blocks[i + 1]);
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
        assert_false(
            wal__rewrite_find(&source, CAPACITY, s->image.salt, &rewrite));
    }
}

/* --- blocks --------------------------------------------------------------- */

/* The records of the image's block at a rank; *out holds ROOM bytes. */
static struct wal__span unpack(const struct state *s, uint32_t rank,
                               uint8_t *out, uint32_t *count)
{
    const uint8_t *at = s->image.bytes + s->blocks[rank];
    struct wal__frame frame;
    struct wal__block block;

    assert_int_equal(
        wal__frame_decode(at, CAPACITY, s->image.salt, s->blocks[rank], &frame),
        WAL__FMT_OK);
    assert_int_equal(wal__block_decode(&frame, at + WAL__FRAME_SIZE, &block),
                     WAL__FMT_OK);
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

            assert_int_equal(wal__block_record(records, s->image.salt, offset,
                                               &frame, &payload),
                             WAL__FMT_OK);
            assert_int_equal(frame.sequence, 1 + rank * RECORDS + i);
            assert_int_equal(payload.size, frame.stored_size);
        }
        assert_int_equal(wal__block_record(records, s->image.salt,
                                           s->blocks[rank] + RECORDS, &frame,
                                           &payload),
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
    assert_int_equal(wal__block_record(records, s->image.salt, s->blocks[0] + 2,
                                       &frame, &payload),
                     WAL__FMT_DATA_CRC);
    assert_int_equal(wal__block_record(records, s->image.salt, s->blocks[0] + 3,
                                       &frame, &payload),
                     WAL__FMT_OK);
    /* A record under the offset of another one. */
    assert_int_equal(wal__block_record(records, s->image.salt + 1, s->blocks[0],
                                       &frame, &payload),
                     WAL__FMT_HEADER_CRC);
    wal__block_cursor_begin(&cursor, records, count, s->image.salt,
                            s->blocks[0]);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(wal__block_cursor_next(&cursor, &frame, &payload),
                         WAL__FMT_OK);
    }
    assert_int_equal(wal__block_cursor_next(&cursor, &frame, &payload),
                     WAL__FMT_DATA_CRC);
}

TEST_WITH(block__record_without_flag_is_refused, set_up, tear_down)
{
    struct state *s = *state;
    uint8_t bytes[ROOM];
    uint32_t count;
    struct wal__span records = unpack(s, 0, bytes, &count);
    struct wal__span payload;
    struct wal__frame frame;

    assert_int_equal(wal__block_record(records, s->image.salt, s->blocks[0],
                                       &frame, &payload),
                     WAL__FMT_OK);
    frame.flags = 0;
    wal__frame_encode(&frame, s->image.salt, s->blocks[0], bytes);
    assert_int_equal(wal__block_record(records, s->image.salt, s->blocks[0],
                                       &frame, &payload),
                     WAL__FMT_FIELD);
    /* Nor a frame that is no record. */
    frame.flags = WAL__FRAME_REWRITTEN;
    frame.type = WAL__FRAME_COMMIT;
    frame.sequence = 0;
    wal__frame_encode(&frame, s->image.salt, s->blocks[0], bytes);
    assert_int_equal(wal__block_record(records, s->image.salt, s->blocks[0],
                                       &frame, &payload),
                     WAL__FMT_FIELD);
}
