/*
 * test_text.c - tests of engine/session/text: the clock as a text.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <time.h>

#include "engine/store/input_text.h"

static int64_t clock_ms;

static int64_t now_ms(void *ctx)
{
    (void)ctx;
    return clock_ms;
}

static void format_time(int64_t ms, char out[WAL__TIME_TEXT + 1])
{
    static const struct wal__io io = {.now_ms = now_ms};
    static struct wal__env env = {.io = &io};

    clock_ms = ms;
    wal__text_now(&env, out);
    out[WAL__TIME_TEXT] = '\0';
}

static void test_text__now_has_milliseconds(void **state)
{
    (void)state;
    char text[WAL__TIME_TEXT + 1];

    format_time(0, text);
    assert_string_equal(text, "1970-01-01T00:00:00.000Z");
    format_time(INT64_C(951827696789), text);
    assert_string_equal(text, "2000-02-29T12:34:56.789Z");
    format_time(INT64_C(253402300799999), text);
    assert_string_equal(text, "9999-12-31T23:59:59.999Z");
    format_time(-1, text);
    assert_string_equal(text, "1970-01-01T00:00:00.000Z");
}

static void test_text__now_formats_every_date(void **state)
{
    (void)state;
    char text[WAL__TIME_TEXT + 1];
    char expected[64];

    for (int64_t day = 0; day < 2932896; day++) {
        time_t seconds = (time_t)(day * 86400 + day % 86400);
        struct tm tm;

        assert_non_null(gmtime_r(&seconds, &tm));
        assert_int_equal(
            strftime(expected, sizeof(expected), "%Y-%m-%dT%H:%M:%S", &tm), 19);
        format_time((int64_t)seconds * 1000 + day % 1000, text);
        if (memcmp(text, expected, 19) != 0) {
            fail_msg("day %lld: %s, not %s", (long long)day, text, expected);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text__now_has_milliseconds),
        cmocka_unit_test(test_text__now_formats_every_date),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
