/*
 * test_repeat.c - whether a segment repeats the first records of another one (SPEC.md 3.5).
 */
#include <stdlib.h>
#include <string.h>

#include "format/bytes/assert.h"
#include "format/segment/scan.h"
#include "tests/lib/segment_image.h"
#include "tests/lib/test.h"

enum { CAPACITY = 64 * 1024 };

struct state {
    struct image left;
    struct image chain;
    struct wal__scan_result scratch;
};

static int set_up(void **state)
{
    struct state *s = calloc(1, sizeof(*s));

    WAL__ASSERT(s != NULL);
    image_init(&s->left, CAPACITY);
    image_init(&s->chain, CAPACITY);
    s->chain.salt ^= 77;
    image_open(&s->left);
    image_open(&s->chain);
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    struct state *s = *state;

    image_deinit(&s->left);
    image_deinit(&s->chain);
    free(s);
    return 0;
}

static struct wal__repeat_segment segment_of(struct image *image)
{
    return (struct wal__repeat_segment){.source = image_source(image), .start = image_start(image)};
}

static enum wal__repeat compare(struct state *s)
{
    const struct wal__repeat_segment left = segment_of(&s->left);
    const struct wal__repeat_segment chain = segment_of(&s->chain);

    return wal__segment_repeats(&left, &chain, &s->scratch);
}

TEST_WITH(repeat__open_alone_is_empty, set_up, tear_down)
{
    struct state *s = *state;
    const struct wal__repeat_segment left = segment_of(&s->left);

    assert_int_equal(compare(s), WAL__REPEAT_EMPTY);
    image_commit_mark(&s->left);
    assert_int_equal(wal__segment_repeats(&left, NULL, &s->scratch), WAL__REPEAT_EMPTY);
}

TEST_WITH(repeat__first_records_of_the_other, set_up, tear_down)
{
    struct state *s = *state;
    const struct wal__repeat_segment left = segment_of(&s->left);

    image_group(&s->left, 1, 3, true);
    assert_int_equal(compare(s), WAL__REPEAT_NO);
    /* In other groups, at other places, and more after them. */
    image_group(&s->chain, 1, 2, true);
    assert_int_equal(compare(s), WAL__REPEAT_NO);
    image_group(&s->chain, 1, 1, true);
    assert_int_equal(compare(s), WAL__REPEAT_RECORDS);
    image_group(&s->chain, 2, 4, true);
    assert_int_equal(compare(s), WAL__REPEAT_RECORDS);
    assert_int_equal(wal__segment_repeats(&left, NULL, &s->scratch), WAL__REPEAT_NO);
}

TEST_WITH(repeat__record_that_differs, set_up, tear_down)
{
    struct state *s = *state;

    image_group(&s->left, 1, 2, true);
    image_group(&s->chain, 1, 1, true);
    image_group(&s->chain, 2, 1, true);
    assert_int_equal(compare(s), WAL__REPEAT_NO);
}

TEST_WITH(repeat__content_that_differs, set_up, tear_down)
{
    struct state *s = *state;

    image_frame(&s->left, WAL__FRAME_ENTRY, 1, 0, "one", 3);
    image_commit(&s->left, true);
    image_frame(&s->chain, WAL__FRAME_ENTRY, 1, 0, "two", 3);
    image_commit(&s->chain, true);
    assert_int_equal(compare(s), WAL__REPEAT_NO);
}

TEST_WITH(repeat__other_sequence_numbers, set_up, tear_down)
{
    struct state *s = *state;

    image_group(&s->left, 1, 1, true);
    s->chain.sequence++;
    s->chain.first++;
    image_group(&s->chain, 1, 1, true);
    assert_int_equal(compare(s), WAL__REPEAT_NO);
}

TEST_WITH(repeat__torn_end_is_no_record, set_up, tear_down)
{
    struct state *s = *state;

    image_group(&s->left, 1, 1, true);
    image_group(&s->chain, 1, 1, true);
    image_entry(&s->left, 1);
    assert_int_equal(compare(s), WAL__REPEAT_RECORDS);
}

TEST_WITH(repeat__damage_and_read_errors_are_not_taken, set_up, tear_down)
{
    struct state *s = *state;
    uint64_t group = image_group(&s->left, 1, 2, true);

    image_group(&s->chain, 1, 2, true);
    s->left.bytes[group + WAL__FRAME_SIZE] ^= 1; /* ambiguous */
    assert_int_equal(compare(s), WAL__REPEAT_NO);
    image_commit_mark(&s->left); /* damaged */
    assert_int_equal(compare(s), WAL__REPEAT_NO);
    s->left.bytes[group + WAL__FRAME_SIZE] ^= 1;
    assert_int_equal(compare(s), WAL__REPEAT_RECORDS);
    s->left.bad_offset = group;
    s->left.bad_size = 1;
    assert_int_equal(compare(s), WAL__REPEAT_NO);
    s->left.bad_size = 0;
    s->chain.bad_offset = group;
    s->chain.bad_size = 1;
    assert_int_equal(compare(s), WAL__REPEAT_NO);
}
