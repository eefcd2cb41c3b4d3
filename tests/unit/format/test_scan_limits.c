/*
 * test_scan_limits.c - what a scan must not believe, and where its limits are
 * (SPEC.md 3.4): sequence numbers, watermarks, groups that are not whole, read
 * errors that pass, a full list of damage, a lost OPEN.
 */
#include <stdlib.h>
#include <string.h>

#include "format/bytes/assert.h"
#include "format/index/index_fmt.h"
#include "format/segment/probe.h"
#include "tests/lib/segment_image.h"
#include "tests/lib/test.h"

enum {
    CAPACITY = 64 * 1024,
    KEPT_MAX = 1024,
    HEADER = WAL__SEGMENT_HEADER_SIZE
};

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

        assert_int_equal(wal__frame_decode(piece->bytes + at, piece->size - at,
                                           kept->salt, piece->offset + at,
                                           &frame),
                         WAL__FMT_OK);
        assert_int_equal(
            wal__frame_check_data(&frame, piece->bytes + at + WAL__FRAME_SIZE),
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

static void expect(const struct state *s, enum wal__verdict verdict,
                   uint64_t end, uint64_t last_sequence)
{
    assert_string_equal(wal__verdict_text(s->facts.verdict),
                        wal__verdict_text(verdict));
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

/* The damage reaches over the watermark into the next group, of which the rest
 * and the COMMIT are valid. */
TEST_WITH(scan__group_beyond_the_watermark_with_a_lost_frame_is_dropped, set_up,
          tear_down)
{
    struct state *s = *state;
    uint64_t first = image_group(&s->image, 1, 1, true);
    uint64_t second;
    uint64_t frame;

    s->image.durable = s->image.end;
    second = image_group(&s->image, 2, 3, true); /* sequences 2 to 4 */
    frame = wal__frame_total_size((uint32_t)(s->image.bytes[second + 8] |
                                             s->image.bytes[second + 9] << 8));
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

static const uint8_t *fetch_unreliably(void *ctx, uint64_t offset,
                                       uint64_t size)
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
            fail_msg("read %u fails: %s", at,
                     wal__verdict_text(s->facts.verdict));
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
    assert_int_equal(own->facts.damage[WAL__DAMAGE_MAX - 1].first_sequence,
                     WAL__DAMAGE_MAX);
    assert_int_equal(own->facts.damage[WAL__DAMAGE_MAX - 1].last_sequence,
                     WAL__DAMAGE_MAX + 1);
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

/* COMMITs that name no end, as in a healed segment: the group proves that OPEN
 * was there. */
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
