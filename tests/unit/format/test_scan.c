/*
 * test_scan.c - the pass over a segment and the decision table about its end (SPEC.md 3.4), each
 * row by a segment in that state; what a scan must not believe, and where its limits are: sequence
 * numbers, watermarks, groups that are not whole, read errors that pass, a full list of damage, a
 * lost OPEN.
 */
#include <stdlib.h>
#include <string.h>

#include "format/bytes/assert.h"
#include "format/index/index_fmt.h"
#include "format/segment/scan.h"
#include "tests/lib/segment_image.h"
#include "tests/lib/test.h"

enum { CAPACITY = 64 * 1024, KEPT_MAX = 1024, HEADER = WAL__SEGMENT_HEADER_SIZE };

/* The frames that a sink received. */
struct kept {
    uint64_t sequences[KEPT_MAX];
    uint32_t count;
    uint32_t lost[KEPT_MAX];
    uint32_t lost_count;
    uint32_t pieces;
    uint32_t stop_after; /* pieces; 0: never */
    uint64_t salt;
};

struct state {
    struct image image;
    struct kept kept;
    struct wal__scan_result facts;
};

static bool take_piece(void *ctx, const struct wal__scan_range *piece)
{
    struct kept *kept = ctx;
    uint64_t at = 0;

    kept->pieces++;
    while (at < piece->size) {
        struct wal__frame frame;

        assert_int_equal(wal__frame_decode(piece->bytes + at, piece->size - at, kept->salt,
                                           piece->offset + at, &frame),
                         WAL__FMT_OK);
        assert_int_equal(wal__frame_check_data(&frame, piece->bytes + at + WAL__FRAME_SIZE),
                         WAL__FMT_OK);
        if (wal__frame_is_sequenced(frame.type)) {
            assert_true(kept->count < KEPT_MAX);
            kept->sequences[kept->count++] = frame.sequence;
        }
        at += wal__frame_total_size(frame.stored_size);
    }
    assert_int_equal(at, piece->size);
    return kept->stop_after == 0 || kept->pieces < kept->stop_after;
}

static bool take_lost(void *ctx, uint32_t session)
{
    struct kept *kept = ctx;

    assert_true(kept->lost_count < KEPT_MAX);
    kept->lost[kept->lost_count++] = session;
    return true;
}

static void scan_from(struct state *s, const struct wal__scan_start *start)
{
    const struct wal__scan_source source = image_source(&s->image);
    const struct wal__scan_sink sink = {&s->kept, take_piece, take_lost};
    uint32_t stop_after = s->kept.stop_after;

    memset(&s->kept, 0, sizeof(s->kept));
    s->kept.stop_after = stop_after;
    s->kept.salt = start->salt;
    wal__scan(&source, &sink, start, &s->facts);
}

static void scan(struct state *s)
{
    const struct wal__scan_start start = image_start(&s->image);

    scan_from(s, &start);
}

static bool has_kept(const struct state *s, uint64_t sequence)
{
    for (uint32_t i = 0; i < s->kept.count; i++) {
        if (s->kept.sequences[i] == sequence) {
            return true;
        }
    }
    return false;
}

static bool has_lost(const struct state *s, uint32_t session)
{
    for (uint32_t i = 0; i < s->kept.lost_count; i++) {
        if (s->kept.lost[i] == session) {
            return true;
        }
    }
    return false;
}

/* The sink received exactly the sequence numbers 1 to `last`, in order. */
static void expect_kept(const struct state *s, uint64_t last)
{
    assert_int_equal(s->kept.count, last);
    for (uint32_t i = 0; i < s->kept.count; i++) {
        assert_int_equal(s->kept.sequences[i], i + 1);
    }
}

static void expect(const struct state *s, enum wal__verdict verdict, uint64_t end,
                   uint64_t last_sequence)
{
    assert_string_equal(wal__verdict_text(s->facts.verdict), wal__verdict_text(verdict));
    assert_int_equal(s->facts.end, end);
    assert_int_equal(s->facts.last_sequence, last_sequence);
}

static void flip(struct state *s, uint64_t offset)
{
    s->image.bytes[offset] ^= 0x10;
}

static int set_up(void **state)
{
    struct state *s = calloc(1, sizeof(*s));

    WAL__ASSERT(s != NULL);
    image_init(&s->image, CAPACITY);
    image_open(&s->image);
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

/* --- clean ends ----------------------------------------------------------- */

TEST_WITH(scan__zeros_after_last_group_are_a_clean_end, set_up, tear_down)
{
    struct state *s = *state;

    image_group(&s->image, 1, 3, true);
    image_group(&s->image, 2, 2, false);
    scan(s);
    expect(s, WAL__VERDICT_CLEAN, s->image.end, 5);
    expect_kept(s, 5);
    assert_int_equal(s->facts.groups, 3);
    assert_int_equal(s->facts.chain, s->image.chain);
    assert_int_equal(s->facts.invalid, s->image.end);
    assert_int_equal(s->facts.dirty_end, s->image.end);
    assert_int_equal(s->facts.sealed_end, 0);
}

TEST_WITH(scan__segment_without_any_group_is_clean, set_up, tear_down)
{
    struct state *s = *state;

    memset(s->image.bytes + HEADER, 0, CAPACITY - HEADER);
    scan(s);
    expect(s, WAL__VERDICT_CLEAN, HEADER, 0);
    assert_int_equal(s->facts.commit_offset, 0);
    assert_int_equal(s->kept.count, 0);
}

TEST_WITH(scan__sealed_segment_is_clean, set_up, tear_down)
{
    struct state *s = *state;

    image_group(&s->image, 1, 3, true);
    image_seal(&s->image);
    scan(s);
    expect(s, WAL__VERDICT_CLEAN, s->image.end, 3);
    assert_int_equal(s->facts.sealed_end, s->image.end);
    assert_int_equal(s->facts.index_offset, s->image.end);
    assert_int_equal(s->facts.index_size, WAL__INDEX_HEADER_SIZE);
}

TEST_WITH(scan__damaged_index_of_sealed_segment_loses_nothing, set_up, tear_down)
{
    struct state *s = *state;

    image_group(&s->image, 1, 3, true);
    image_seal(&s->image);
    flip(s, s->image.end + WAL__FRAME_SIZE);
    scan(s);
    expect(s, WAL__VERDICT_CLEAN, s->image.end, 3);
    assert_int_equal(s->facts.sealed_end, s->image.end);
    assert_int_equal(s->facts.index_offset, 0);
    expect_kept(s, 3);
}

TEST_WITH(scan__start_in_the_middle_returns_later_records, set_up, tear_down)
{
    struct state *s = *state;
    struct wal__scan_start start;

    image_group(&s->image, 1, 3, true);
    start = image_start(&s->image);
    start.offset = s->image.end;
    start.last_sequence = s->image.sequence;
    start.chain = s->image.chain;
    image_group(&s->image, 1, 2, true);
    scan_from(s, &start);
    expect(s, WAL__VERDICT_CLEAN, s->image.end, 5);
    assert_int_equal(s->kept.count, 2);
    assert_int_equal(s->kept.sequences[0], 4);
}

TEST_WITH(scan__aligned_groups_begin_at_multiples, set_up, tear_down)
{
    struct state *s = *state;

    image_deinit(&s->image);
    image_init(&s->image, CAPACITY);
    s->image.align = 512;
    image_open(&s->image);
    image_group(&s->image, 1, 3, true);
    image_group(&s->image, 1, 1, true);
    scan(s);
    expect(s, WAL__VERDICT_CLEAN, s->image.end, 4);
    assert_int_equal(s->facts.end % 512, 0);
}

/* --- torn ----------------------------------------------------------------- */

TEST_WITH(scan__group_without_commit_is_torn, set_up, tear_down)
{
    struct state *s = *state;
    uint64_t end;

    image_group(&s->image, 1, 3, true);
    end = s->image.end;
    image_entry(&s->image, 1);
    image_entry(&s->image, 1);
    scan(s);
    expect(s, WAL__VERDICT_TORN, end, 3);
    expect_kept(s, 3);
    assert_int_equal(s->facts.torn_sequence, 5);
}

TEST_WITH(scan__every_unfinished_write_of_a_group_is_torn, set_up, tear_down)
{
    struct state *s = *state;
    uint64_t from;
    uint64_t to;

    image_group(&s->image, 1, 3, true);
    from = s->image.end;
    image_group(&s->image, 1, 3, true);
    to = s->image.end;
    /* The last bytes of a COMMIT may be zero anyway. */
    while (s->image.bytes[to - 1] == 0) {
        to--;
    }
    for (uint64_t at = to - 1; at > from; at--) {
        s->image.bytes[at] = 0;
        scan(s);
        expect(s, WAL__VERDICT_TORN, from, 3);
        expect_kept(s, 3);
    }
    s->image.bytes[from] = 0;
    scan(s);
    expect(s, WAL__VERDICT_CLEAN, from, 3);
}

TEST_WITH(scan__garbage_after_last_group_is_torn, set_up, tear_down)
{
    struct state *s = *state;

    image_group(&s->image, 1, 3, true);
    for (uint64_t at = s->image.end; at + 8 <= CAPACITY; at += 1001) {
        s->image.bytes[at] = 0x5a;
        scan(s);
        expect(s, WAL__VERDICT_TORN, s->image.end, 3);
        assert_true(s->facts.dirty_end > at);
        s->image.bytes[at] = 0;
    }
}

TEST_WITH(scan__hole_before_unpromised_group_is_torn, set_up, tear_down)
{
    struct state *s = *state;
    uint64_t hole;
    uint64_t end;

    image_group(&s->image, 1, 3, true);
    end = s->image.end;
    hole = image_group(&s->image, 1, 1, false);
    image_group(&s->image, 1, 1, false);
    memset(s->image.bytes + hole, 0, WAL__FRAME_SIZE);
    scan(s);
    expect(s, WAL__VERDICT_TORN, end, 3);
    expect_kept(s, 3);
    assert_int_equal(s->facts.torn_sequence, 5);
}

/* --- ambiguous ------------------------------------------------------------ */

TEST_WITH(scan__flipped_promised_group_is_ambiguous, set_up, tear_down)
{
    struct state *s = *state;
    uint64_t group;

    image_group(&s->image, 1, 3, true);
    group = image_group(&s->image, 1, 2, true);
    flip(s, group + WAL__FRAME_SIZE);
    scan(s);
    expect(s, WAL__VERDICT_AMBIGUOUS, group, 3);
    expect_kept(s, 3);
    assert_int_equal(s->facts.dirty_end, s->image.end);
}

TEST_WITH(scan__hole_before_promised_group_is_ambiguous, set_up, tear_down)
{
    struct state *s = *state;
    uint64_t group;

    group = image_group(&s->image, 1, 2, false);
    image_group(&s->image, 1, 2, true);
    memset(s->image.bytes + group, 0, WAL__FRAME_SIZE);
    scan(s);
    expect(s, WAL__VERDICT_AMBIGUOUS, group, 0);
    assert_int_equal(s->kept.count, 0);
}

/* --- damage --------------------------------------------------------------- */

TEST_WITH(scan__flipped_payload_below_watermark_names_its_session, set_up, tear_down)
{
    struct state *s = *state;
    uint64_t group = image_entry(&s->image, 7);
    uint64_t second = image_entry(&s->image, 7);

    image_group(&s->image, 7, 1, true);
    image_group(&s->image, 8, 2, true);
    image_commit_mark(&s->image);
    flip(s, second + WAL__FRAME_SIZE + 3);
    scan(s);
    expect(s, WAL__VERDICT_DAMAGED, s->image.end, 5);
    assert_int_equal(s->facts.damage_count, 1);
    assert_int_equal(s->facts.damage[0].offset, second);
    assert_int_equal(s->facts.damage[0].size, second - group);
    assert_int_equal(s->facts.damage[0].first_sequence, 2);
    assert_int_equal(s->facts.damage[0].last_sequence, 2);
    assert_true(has_lost(s, 7));
    assert_false(has_lost(s, 8));
    assert_int_equal(s->kept.count, 4);
    assert_false(has_kept(s, 2));
}

TEST_WITH(scan__flipped_header_below_watermark_is_named_by_commit, set_up, tear_down)
{
    struct state *s = *state;
    uint64_t group = image_group(&s->image, 7, 3, true);

    image_commit_mark(&s->image);
    flip(s, group + 20);
    scan(s);
    expect(s, WAL__VERDICT_DAMAGED, s->image.end, 3);
    assert_int_equal(s->facts.damage[0].first_sequence, 1);
    assert_int_equal(s->facts.damage[0].last_sequence, 1);
    assert_true(has_lost(s, 7));
    assert_true(has_kept(s, 2) && has_kept(s, 3));
}

TEST_WITH(scan__lost_commit_below_watermark_loses_no_record, set_up, tear_down)
{
    struct state *s = *state;
    uint64_t commit;

    image_entry(&s->image, 1);
    image_entry(&s->image, 1);
    commit = image_commit(&s->image, true);
    image_group(&s->image, 1, 1, true);
    image_commit_mark(&s->image);
    flip(s, commit + 8);
    scan(s);
    assert_int_equal(s->facts.verdict, WAL__VERDICT_DAMAGED);
    assert_int_equal(s->facts.end, s->image.end);
    expect_kept(s, 3);
}

TEST_WITH(scan__lost_open_loses_no_record, set_up, tear_down)
{
    struct state *s = *state;

    image_group(&s->image, 1, 2, true);
    image_commit_mark(&s->image);
    flip(s, HEADER + WAL__FRAME_SIZE);
    scan(s);
    expect(s, WAL__VERDICT_DAMAGED, s->image.end, 2);
    expect_kept(s, 2);
    assert_int_equal(s->facts.damage_count, 1);
    assert_int_equal(s->facts.damage[0].last_sequence, 0);
    assert_false(has_lost(s, 1));
}

TEST_WITH(scan__damage_before_a_seal_is_damage, set_up, tear_down)
{
    struct state *s = *state;
    uint64_t group = image_group(&s->image, 1, 2, true);

    image_seal(&s->image);
    flip(s, group + 9);
    scan(s);
    assert_int_equal(s->facts.verdict, WAL__VERDICT_DAMAGED);
    assert_int_equal(s->facts.sealed_end, s->image.end);
    assert_int_equal(s->facts.damage[0].offset, group);
}

TEST_WITH(scan__end_before_a_known_end_is_damage, set_up, tear_down)
{
    struct state *s = *state;
    struct wal__scan_start start;
    uint64_t group;

    image_group(&s->image, 1, 2, true);
    group = image_group(&s->image, 1, 2, true);
    start = image_start(&s->image);
    start.known_end = s->image.end;
    memset(s->image.bytes + group, 0, CAPACITY - group);
    scan_from(s, &start);
    assert_int_equal(s->facts.verdict, WAL__VERDICT_DAMAGED);
    assert_int_equal(s->facts.damage[0].offset, group);
    assert_int_equal(s->facts.damage[0].size, s->image.end - group);
    expect_kept(s, 2);
}

TEST_WITH(scan__hole_in_sequence_between_groups_is_damage, set_up, tear_down)
{
    struct state *s = *state;

    image_group(&s->image, 1, 2, true);
    s->image.sequence += 3;
    s->image.first = s->image.sequence + 1;
    image_group(&s->image, 1, 2, true);
    scan(s);
    assert_int_equal(s->facts.verdict, WAL__VERDICT_DAMAGED);
    assert_int_equal(s->facts.damage_count, 1);
    assert_int_equal(s->facts.damage[0].first_sequence, 3);
    assert_int_equal(s->facts.damage[0].last_sequence, 5);
    assert_int_equal(s->facts.end, s->image.end);
    assert_int_equal(s->kept.count, 4);
}

/* OPEN of the next segment lists the ranges in this order. */
TEST_WITH(scan__damage_is_listed_in_the_order_of_offsets, set_up, tear_down)
{
    struct state *s = *state;

    image_group(&s->image, 1, 2, true);
    image_entry(&s->image, 1);
    s->image.sequence += 3;
    image_entry(&s->image, 1);
    s->image.first += 1;
    image_commit(&s->image, true);
    scan(s);
    assert_int_equal(s->facts.verdict, WAL__VERDICT_DAMAGED);
    assert_int_equal(s->facts.damage_count, 2);
    assert_true(s->facts.damage[0].offset < s->facts.damage[1].offset);
}

TEST_WITH(scan__chain_mismatch_between_groups_is_damage, set_up, tear_down)
{
    struct state *s = *state;

    image_group(&s->image, 1, 2, true);
    s->image.chain ^= 1;
    image_group(&s->image, 1, 2, true);
    scan(s);
    assert_int_equal(s->facts.verdict, WAL__VERDICT_DAMAGED);
    assert_int_equal(s->facts.end, s->image.end);
}

TEST_WITH(scan__child_of_lost_entry_names_its_session, set_up, tear_down)
{
    struct state *s = *state;
    uint64_t group = image_group(&s->image, 7, 1, true);

    image_frame(&s->image, WAL__FRAME_ACCEPT, 9, 1, NULL, 0);
    image_commit(&s->image, true);
    image_commit_mark(&s->image);
    flip(s, group + WAL__FRAME_SIZE);
    scan(s);
    assert_int_equal(s->facts.verdict, WAL__VERDICT_DAMAGED);
    assert_true(has_lost(s, 7));
    assert_true(has_lost(s, 9));
}

TEST_WITH(scan__more_damage_than_the_list_holds_is_merged, set_up, tear_down)
{
    struct state *s = *state;
    uint64_t groups[WAL__DAMAGE_MAX + 20];
    const size_t count = sizeof(groups) / sizeof(groups[0]);

    image_deinit(&s->image);
    image_init(&s->image, CAPACITY * 4);
    image_open(&s->image);
    for (size_t i = 0; i < count; i++) {
        groups[i] = image_group(&s->image, 1, 1, true);
    }
    image_commit_mark(&s->image);
    for (size_t i = 0; i < count; i++) {
        flip(s, groups[i] + 30);
    }
    scan(s);
    assert_int_equal(s->facts.damage_count, count);
    assert_int_equal(s->facts.damage[WAL__DAMAGE_MAX - 1].last_sequence, count);
    expect(s, WAL__VERDICT_DAMAGED, s->image.end, count);
}

/* Below the watermark a flipped bit costs the frame it is in, and no other. */
TEST_WITH(scan__any_flip_below_watermark_costs_one_frame, set_up, tear_down)
{
    struct state *s = *state;
    uint64_t marked;

    image_group(&s->image, 1, 3, true);
    image_group(&s->image, 2, 2, true);
    image_group(&s->image, 3, 1, true);
    marked = s->image.end;
    image_commit_mark(&s->image);
    for (uint64_t at = HEADER; at < marked; at++) {
        flip(s, at);
        scan(s);
        assert_int_equal(s->facts.verdict, WAL__VERDICT_DAMAGED);
        assert_int_equal(s->facts.end, s->image.end);
        assert_int_equal(s->facts.last_sequence, 6);
        assert_true(s->facts.damage_count >= 1);
        assert_true(s->facts.damage[0].offset <= at);
        assert_true(s->kept.count >= 5);
        flip(s, at);
    }
}

/* --- what is no frame of this place --------------------------------------- */

TEST_WITH(scan__copied_frame_is_rejected, set_up, tear_down)
{
    struct state *s = *state;
    uint64_t group = image_group(&s->image, 1, 2, true);
    uint64_t end = s->image.end;

    memcpy(s->image.bytes + end, s->image.bytes + group, (size_t)(end - group));
    scan(s);
    expect(s, WAL__VERDICT_TORN, end, 2);
    assert_int_equal(s->facts.torn_sequence, 2);
}

TEST_WITH(scan__payload_with_a_copy_of_the_segment_is_one_record, set_up, tear_down)
{
    struct state *s = *state;
    uint8_t copy[2048];

    image_group(&s->image, 1, 4, true);
    memcpy(copy, s->image.bytes + HEADER, sizeof(copy));
    image_frame(&s->image, WAL__FRAME_ENTRY, 1, 0, copy, sizeof(copy));
    image_commit(&s->image, true);
    image_commit_mark(&s->image);
    scan(s);
    expect(s, WAL__VERDICT_CLEAN, s->image.end, 5);
    flip(s, s->image.end - 400);
    scan(s);
    assert_true(s->kept.count <= 5);
}

TEST_WITH(scan__frame_of_a_newer_format_stops_the_scan, set_up, tear_down)
{
    struct state *s = *state;
    uint64_t end;

    image_group(&s->image, 1, 2, true);
    end = s->image.end;
    image_frame(&s->image, 77, 1, 0, "new", 3);
    image_commit(&s->image, true);
    scan(s);
    expect(s, WAL__VERDICT_NEWER, end, 2);
    assert_int_equal(s->facts.error_offset, end);
}

/* --- reading -------------------------------------------------------------- */

TEST_WITH(scan__read_error_is_not_torn, set_up, tear_down)
{
    struct state *s = *state;

    image_group(&s->image, 1, 3, true);
    s->image.bad_size = 512;
    for (uint64_t at = HEADER; at < CAPACITY; at += 512) {
        s->image.bad_offset = at;
        scan(s);
        assert_int_equal(s->facts.verdict, WAL__VERDICT_READ_ERROR);
    }
}

TEST_WITH(scan__sink_can_stop, set_up, tear_down)
{
    struct state *s = *state;

    image_group(&s->image, 1, 1, true);
    image_group(&s->image, 1, 1, true);
    s->kept.stop_after = 2;
    scan(s);
    assert_int_equal(s->facts.verdict, WAL__VERDICT_STOPPED);
    assert_int_equal(s->kept.pieces, 2);
}

TEST_WITH(probe__finds_frames_between_garbage, set_up, tear_down)
{
    struct state *s = *state;
    const struct wal__scan_source source = image_source(&s->image);
    struct wal__probe probe = {&source, s->image.salt, CAPACITY, 0, false, 0};
    uint64_t group = image_group(&s->image, 1, 3, true);
    struct wal__probe_hit hit;

    memset(s->image.bytes + group, 0xa5, WAL__FRAME_SIZE);
    assert_true(wal__probe_next(&probe, group, 1, NULL, &hit));
    assert_int_equal(hit.frame.sequence, 2);
    assert_int_equal(hit.frame.type, WAL__FRAME_ENTRY);
    assert_true(wal__probe_next(&probe, hit.offset + 8, 3, NULL, &hit));
    assert_int_equal(hit.frame.sequence, 3);
    assert_false(wal__probe_next(&probe, s->image.end, 1, NULL, &hit));
    assert_false(probe.failed);
}

/* --- what a probe after X believes ---------------------------------------- */

TEST_WITH(probe__sequence_beyond_the_segment_is_no_frame, set_up, tear_down)
{
    struct state *s = *state;
    const struct wal__scan_source source = image_source(&s->image);
    struct wal__probe probe = {&source, s->image.salt, CAPACITY, 0, false, 0};
    const uint64_t highest = CAPACITY / WAL__FRAME_SIZE;
    uint64_t at = s->image.at;
    struct wal__probe_hit hit;

    s->image.sequence = highest;
    image_entry(&s->image, 1);
    assert_false(wal__probe_next(&probe, at, 1, NULL, &hit));
    s->image.sequence = highest - 1;
    s->image.at = at;
    image_entry(&s->image, 1);
    assert_true(wal__probe_next(&probe, at, 1, NULL, &hit));
    assert_int_equal(hit.frame.sequence, highest);
}

/* A COMMIT after X can only name an end before itself. */
TEST_WITH(scan__watermark_beyond_its_commit_is_not_believed, set_up, tear_down)
{
    struct state *s = *state;
    uint64_t group;

    image_group(&s->image, 1, 1, false);
    group = image_group(&s->image, 1, 1, false);
    s->image.durable = CAPACITY - 8;
    image_group(&s->image, 1, 1, false);
    flip(s, group + 30);
    scan(s);
    expect(s, WAL__VERDICT_TORN, group, 1);
    assert_int_equal(s->facts.watermark, HEADER);
}

/* --- groups beyond the watermark ------------------------------------------ */

/* The damage reaches over the watermark into the next group, of which the rest and the COMMIT are
 * valid. */
TEST_WITH(scan__group_beyond_the_watermark_with_a_lost_frame_is_dropped, set_up, tear_down)
{
    struct state *s = *state;
    uint64_t first = image_group(&s->image, 1, 1, true);
    uint64_t second;
    uint64_t frame;

    s->image.durable = s->image.end;
    second = image_group(&s->image, 2, 3, true); /* sequences 2 to 4 */
    frame = wal__frame_total_size(
        (uint32_t)(s->image.bytes[second + 8] | s->image.bytes[second + 9] << 8));
    memset(s->image.bytes + first, 0, second + frame - first);
    image_group(&s->image, 3, 1, true); /* whole, sequence 5 */
    scan(s);
    assert_int_equal(s->facts.verdict, WAL__VERDICT_DAMAGED);
    assert_int_equal(s->facts.watermark, second);
    for (uint64_t sequence = 1; sequence <= 4; sequence++) {
        assert_false(has_kept(s, sequence));
    }
    assert_true(has_kept(s, 5));
}

/* --- read errors that do not come again ----------------------------------- */

struct unreliable {
    struct wal__scan_source base;
    uint32_t calls;
    uint32_t fails_at; /* this call alone */
};

static const uint8_t *fetch_unreliably(void *ctx, uint64_t offset, uint64_t size)
{
    struct unreliable *unreliable = ctx;

    unreliable->calls++;
    return unreliable->calls == unreliable->fails_at
               ? NULL
               : unreliable->base.fetch(unreliable->base.ctx, offset, size);
}

TEST_WITH(scan__read_error_that_passes_is_not_torn, set_up, tear_down)
{
    struct state *s = *state;
    const struct wal__scan_sink sink = {&s->kept, take_piece, take_lost};
    const struct wal__scan_start start = image_start(&s->image);
    struct unreliable unreliable = {.base = image_source(&s->image)};
    const struct wal__scan_source source = {&unreliable, fetch_unreliably};
    uint32_t calls = 0;

    image_group(&s->image, 1, 2, true);
    image_group(&s->image, 2, 1, false);
    for (uint32_t at = 1; at <= calls + 1; at++) {
        unreliable.calls = 0;
        unreliable.fails_at = at;
        memset(&s->kept, 0, sizeof(s->kept));
        s->kept.salt = start.salt;
        wal__scan(&source, &sink, &start, &s->facts);
        if (unreliable.calls < at) {
            break;
        }
        calls = unreliable.calls;
        if (s->facts.verdict != WAL__VERDICT_READ_ERROR) {
            fail_msg("read %u fails: %s", at, wal__verdict_text(s->facts.verdict));
        }
        calls = at;
    }
    assert_true(calls > 10);
}

/* --- more damage than the list holds -------------------------------------- */

/* One range more than the list holds widens the last one, and is not stored. */
TEST_WITH(scan__first_range_too_many_widens_the_last, set_up, tear_down)
{
    struct state *s = *state;
    uint64_t groups[WAL__DAMAGE_MAX + 1];
    const uint64_t guard = 0x5a5a5a5a5a5a5a5a;
    struct {
        struct wal__scan_result facts;
        uint64_t guard[8];
    } *own = calloc(1, sizeof(*own));
    const struct wal__scan_sink sink = {NULL, NULL, NULL};

    assert_non_null(own);
    memset(own->guard, 0x5a, sizeof(own->guard));
    image_deinit(&s->image);
    image_init(&s->image, CAPACITY * 4);
    image_open(&s->image);
    for (size_t i = 0; i <= WAL__DAMAGE_MAX; i++) {
        groups[i] = image_group(&s->image, 1, 1, true);
    }
    image_commit_mark(&s->image);
    for (size_t i = 0; i <= WAL__DAMAGE_MAX; i++) {
        flip(s, groups[i] + 30);
    }
    const struct wal__scan_source source = image_source(&s->image);
    const struct wal__scan_start start = image_start(&s->image);

    wal__scan(&source, &sink, &start, &own->facts);
    assert_int_equal(own->facts.damage_count, WAL__DAMAGE_MAX + 1);
    assert_int_equal(own->facts.damage[WAL__DAMAGE_MAX - 1].first_sequence, WAL__DAMAGE_MAX);
    assert_int_equal(own->facts.damage[WAL__DAMAGE_MAX - 1].last_sequence, WAL__DAMAGE_MAX + 1);
    for (size_t i = 0; i < sizeof(own->guard) / sizeof(own->guard[0]); i++) {
        assert_int_equal(own->guard[i], guard);
    }
    free(own);
}

/* --- a segment without OPEN ----------------------------------------------- */

/* The write of OPEN's group was torn: nothing follows it. */
TEST_WITH(scan__commit_of_a_torn_open_is_no_group, set_up, tear_down)
{
    struct state *s = *state;

    flip(s, HEADER + 30);
    scan(s);
    assert_int_equal(s->facts.verdict, WAL__VERDICT_TORN);
    assert_int_equal(s->facts.commit_offset, 0);
}

/* COMMITs that name no end, as in a healed segment: the group proves that OPEN was there. */
TEST_WITH(scan__group_after_a_lost_open_is_kept, set_up, tear_down)
{
    struct state *s = *state;
    uint64_t group;

    s->image.durable = HEADER;
    group = image_group(&s->image, 1, 2, false);
    memset(s->image.bytes + HEADER, 0, group - HEADER);
    scan(s);
    expect(s, WAL__VERDICT_DAMAGED, s->image.end, 2);
    assert_true(has_kept(s, 1) && has_kept(s, 2));
}
