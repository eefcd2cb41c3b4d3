/*
 * test_session_time.c - tests of format/payload/session_time: which times
 * count.
 */
#include <stddef.h>
#include <stdint.h>

#include <string.h>

#include "format/payload/session_time.h"
#include "tests/lib/test.h"

#define NOW INT64_C(1700000000000)
#define DAY INT64_C(86400000)

static int64_t time_of(const char *text)
{
    return wal__session_time_of_entry(
        (struct wal__span){(const uint8_t *)text, strlen(text)}, NOW);
}

TEST(session_time__range_that_is_believed)
{
    assert_int_equal(wal__session_time_believed(0, NOW), 0);
    assert_int_equal(wal__session_time_believed(-1, NOW), NOW);
    assert_int_equal(wal__session_time_believed(INT64_MIN, NOW), NOW);
    assert_int_equal(wal__session_time_believed(NOW + DAY, NOW), NOW + DAY);
    assert_int_equal(wal__session_time_believed(NOW + DAY + 1, NOW), NOW);
    assert_int_equal(wal__session_time_believed(INT64_MAX, NOW), NOW);
}

/* The clock of the store may be wrong itself. */
TEST(session_time__at_the_ends_of_the_clock)
{
    assert_int_equal(wal__session_time_believed(0, INT64_MIN), INT64_MIN);
    assert_int_equal(wal__session_time_believed(INT64_MAX, INT64_MAX),
                     INT64_MAX);
    assert_int_equal(wal__session_time_believed(5, -DAY), -DAY);
    assert_int_equal(wal__session_time_believed(5, 5 - DAY), 5);
}

TEST(session_time__texts)
{
    assert_int_equal(time_of("1970-01-01T00:00:01Z"), 1000);
    assert_int_equal(time_of("1970-01-01T00:00:01.2345Z"), 1234);
    assert_int_equal(time_of("1970-01-01 01:00:01+01:00"), 1000);
    assert_int_equal(time_of("1970-01-01T00:00:00+00:01"), NOW);
    assert_int_equal(time_of(""), NOW);
    assert_int_equal(time_of("\"1970-01-01T00:00:01Z\""), NOW);
    assert_int_equal(time_of("1000"), NOW);
    assert_int_equal(time_of("1970-01-01"), NOW);
    assert_int_equal(time_of("1970-01-01T00:00:01Z "), NOW);
}
