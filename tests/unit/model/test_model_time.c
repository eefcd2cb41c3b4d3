/*
 * Tests of format/jsonl/model_time: times as text and as milliseconds.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "format/payload/timestamp.h"
#include "tests/lib/test.h"

static struct wal__json_span span(const char *text)
{
    return (struct wal__json_span){(const uint8_t *)text, strlen(text)};
}

static void assert_ms(const char *text, int64_t expected)
{
    int64_t ms = -1;

    assert_true(wal__model_time_read(span(text), &ms));
    assert_true(ms == expected);
}

static void assert_none(const char *text)
{
    int64_t ms = 42;

    assert_false(wal__model_time_read(span(text), &ms));
    assert_true(ms == 42);
}

TEST(model_time__forms_of_iso_8601)
{
    assert_ms("\"1970-01-01T00:00:00Z\"", 0);
    assert_ms("\"1970-01-01T00:00:00.1Z\"", 100);
    assert_ms("\"1970-01-01T00:00:00.123456789Z\"", 123);
    assert_ms("\"1970-01-01T01:00:00+01:00\"", 0);
    assert_ms("\"1969-12-31T22:30:00-0130\"", 0);
    assert_ms("\"2026-01-02T03:04:05.678Z\"", INT64_C(1767323045678));
    assert_ms("\"2000-02-29 12:00:00\"", INT64_C(951825600000));
    assert_ms("1767323045678", INT64_C(1767323045678));
}

TEST(model_time__invalid_times)
{
    static const char *const texts[] = {"",
                                        "\"\"",
                                        "\"2026-01-02\"",
                                        "\"2026-13-02T03:04:05Z\"",
                                        "null",
                                        "1.5",
                                        "\"2026-01-02T03:04:05.Z\"",
                                        "\"x\"",
                                        "99999999999999999",
                                        "\"2026-01-02T03:04:05Zx\""};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_none(texts[i]);
    }
}

TEST(model_time__round_trip)
{
    static const int64_t times[] = {0,
                                    -1,
                                    INT64_C(951825600123),
                                    INT64_C(-62167219200000),
                                    INT64_C(253402300799999),
                                    INT64_C(4107542400000)};
    uint8_t text[WAL__MODEL_TIME_SIZE];

    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        int64_t ms = 1;
        assert_true(
            wal__model_time_read(wal__model_time_write(times[i], text), &ms));
        assert_true(ms == times[i]);
    }
    for (int64_t day = -719528; day < 2932896; day += 97) {
        int64_t ms = 1;
        assert_true(wal__model_time_read(
            wal__model_time_write(day * 86400000 + 1, text), &ms));
        assert_true(ms == day * 86400000 + 1);
    }
    wal__model_time_write(INT64_C(1767323045678), text);
    assert_memory_equal(text, "\"2026-01-02T03:04:05.678Z\"", sizeof(text));
}
