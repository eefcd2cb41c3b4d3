/*
 * test_text.c - tests of engine/session/text: the clock as a text.
 */
#include <stddef.h>
#include <stdint.h>

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "engine/store/input_text.h"
#include "tests/lib/test.h"

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

TEST(text__now_has_milliseconds)
{
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

TEST(text__now_formats_every_date)
{
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

TEST(text__cached_time_is_of_its_millisecond)
{
    struct wal__time_cache cache = {0};
    char out[WAL__TIME_TEXT];
    char text[WAL__TIME_TEXT + 1];

    assert_false(wal__time_cache_get(&cache, 0, out));
    format_time(5, text);
    wal__time_cache_put(&cache, 5, text);
    assert_true(wal__time_cache_get(&cache, 5, out));
    assert_memory_equal(out, text, WAL__TIME_TEXT);
    assert_false(wal__time_cache_get(&cache, 4, out));
    /* While another thread replaces the text, nothing is read or replaced. */
    atomic_fetch_add(&cache.version, 1);
    assert_false(wal__time_cache_get(&cache, 5, out));
    wal__time_cache_put(&cache, 6, text);
    assert_int_equal(atomic_load(&cache.ms), 5);
    assert_int_equal(atomic_load(&cache.version), 3);
}

/* Two times that differ in each group of digits. */
static const int64_t times_ms[] = {INT64_C(951827696789),
                                   INT64_C(1798761599012)};

enum {
    TIMES = sizeof(times_ms) / sizeof(times_ms[0]),
    THREADS = 4,
    ROUNDS = 20000
};

static int64_t alternate_ms(void *ctx)
{
    return times_ms[atomic_fetch_add((atomic_uint *)ctx, 1) % TIMES];
}

struct shared {
    struct wal__env env;
    char texts[TIMES][WAL__TIME_TEXT + 1];
    atomic_int wrong;
};

static void *format_times(void *arg)
{
    struct shared *shared = arg;
    char out[WAL__TIME_TEXT];

    for (int i = 0; i < ROUNDS; i++) {
        wal__text_now(&shared->env, out);
        if (memcmp(out, shared->texts[0], sizeof(out)) != 0 &&
            memcmp(out, shared->texts[1], sizeof(out)) != 0) {
            atomic_fetch_add(&shared->wrong, 1);
        }
    }
    return NULL;
}

TEST(text__threads_never_mix_cached_times)
{
    atomic_uint next = 0;
    struct wal__time_cache cache = {0};
    const struct wal__io io = {.ctx = &next, .now_ms = alternate_ms};
    struct shared shared = {.env = {.io = &io, .times = &cache}};
    pthread_t threads[THREADS];

    for (int i = 0; i < TIMES; i++) {
        format_time(times_ms[i], shared.texts[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(
            pthread_create(&threads[i], NULL, format_times, &shared), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(atomic_load(&shared.wrong), 0);
    assert_true(atomic_load(&cache.version) > 0);
}
