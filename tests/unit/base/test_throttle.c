/*
 * test_throttle.c - tests of the rate of a compaction (engine/care/ segment_run.h), with a clock
 * that only sleeping moves.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "engine/care/segment_run.h"
#include "tests/lib/test.h"

enum { KIB = 1024, MIB = 1024 * 1024 };

#define SECOND UINT64_C(1000000000)

struct clock {
    struct wal__io io;
    uint64_t now;
    uint64_t slept;
};

static uint64_t clock_now(void *ctx)
{
    const struct clock *clock = ctx;

    return clock->now;
}

static void clock_sleep(void *ctx, const uint32_t *word, uint32_t expected, uint64_t timeout_ns)
{
    struct clock *clock = ctx;

    assert_int_equal(*word, expected);
    clock->now += timeout_ns;
    clock->slept += timeout_ns;
}

static struct wal__throttle begin(struct clock *clock, uint64_t rate)
{
    struct wal__throttle throttle;

    memset(clock, 0, sizeof(*clock));
    clock->io.ctx = clock;
    clock->io.monotonic_ns = clock_now;
    clock->io.futex_wait = clock_sleep;
    clock->now = SECOND;
    wal__throttle_init(&throttle, &clock->io, rate);
    return throttle;
}

TEST(throttle__bytes_take_their_time)
{
    struct clock clock;
    struct wal__throttle throttle = begin(&clock, MIB);

    for (int i = 0; i < 3 * 1024; i++) {
        assert_ok(wal__throttle_spend(&throttle, KIB, NULL));
    }
    assert_in_range(clock.slept, 3 * SECOND - SECOND / 10, 3 * SECOND + SECOND / 10);
}

TEST(throttle__unused_time_is_not_made_up_for)
{
    struct clock clock;
    struct wal__throttle throttle = begin(&clock, MIB);

    assert_ok(wal__throttle_spend(&throttle, MIB, NULL));
    clock.now += 100 * SECOND;
    clock.slept = 0;
    assert_ok(wal__throttle_spend(&throttle, MIB, NULL));
    assert_int_equal(clock.slept, SECOND);
}

TEST(throttle__time_of_the_work_counts)
{
    struct clock clock;
    struct wal__throttle throttle = begin(&clock, MIB);

    assert_ok(wal__throttle_spend(&throttle, MIB, NULL));
    clock.slept = 0;
    /* Slower than the rate: never sleeps longer than the step takes. */
    for (int i = 0; i < 8; i++) {
        clock.now += SECOND;
        assert_ok(wal__throttle_spend(&throttle, 128 * KIB, NULL));
    }
    assert_in_range(clock.slept, 0, 8 * SECOND / 8);
}

/* As many pieces of work as fill half of the time; the other half is slept. */
TEST(throttle__yielding_sleeps_as_long_as_it_works)
{
    struct clock clock;
    struct wal__throttle throttle = begin(&clock, UINT64_MAX - 1);
    uint64_t longest = 0;
    uint64_t worked = 0;

    for (int i = 0; i < 1000; i++) {
        uint64_t before = clock.slept;

        clock.now += SECOND / 10000;
        worked += SECOND / 10000;
        wal__throttle_yield(&throttle);
        longest = worked > longest ? worked : longest;
        worked = clock.slept > before ? 0 : worked;
    }
    assert_in_range(clock.slept, SECOND / 20, SECOND / 10);
    assert_in_range(longest, 1, SECOND / 2000);
}

TEST(throttle__no_limit)
{
    struct clock clock;
    struct wal__throttle throttle = begin(&clock, UINT64_MAX);

    assert_ok(wal__throttle_spend(&throttle, UINT64_MAX / 2, NULL));
    wal__throttle_count_sync(&throttle, SECOND);
    wal__throttle_count_sync(&throttle, 10 * SECOND);
    for (int i = 0; i < 2; i++) {
        clock.now += SECOND;
        wal__throttle_yield(&throttle);
    }
    assert_int_equal(clock.slept, 0);
    assert_false(wal__throttle_is_limited(&throttle));
}

TEST(throttle__extreme_rates)
{
    struct clock clock;
    struct wal__throttle throttle = begin(&clock, 1);

    assert_ok(wal__throttle_spend(&throttle, MIB, NULL));
    assert_int_equal(clock.slept, MIB * SECOND);
    throttle = begin(&clock, UINT64_MAX - 1);
    assert_ok(wal__throttle_spend(&throttle, MIB, NULL));
    assert_int_equal(clock.slept, 0);
}

TEST(throttle__pauses_after_a_slow_sync)
{
    struct clock clock;
    struct wal__throttle throttle = begin(&clock, 64 * MIB);

    for (int i = 0; i < 20; i++) {
        wal__throttle_count_sync(&throttle, SECOND / 1000);
    }
    assert_int_equal(clock.slept, 0);
    wal__throttle_count_sync(&throttle, SECOND / 100);
    assert_int_equal(clock.slept, SECOND / 100);
    clock.slept = 0;
    wal__throttle_count_sync(&throttle, 5 * SECOND);
    assert_int_equal(clock.slept, SECOND / 10);
    /* What stays slow is usual after a while. */
    clock.slept = 0;
    for (int i = 0; i < 50; i++) {
        wal__throttle_count_sync(&throttle, 5 * SECOND);
    }
    assert_in_range(clock.slept, 0, SECOND);
}

struct caller {
    uint64_t done;
    uint64_t total;
    int calls;
    int stops_at; /* a number of calls */
};

static bool on_progress(void *ctx, uint64_t done, uint64_t total)
{
    struct caller *caller = ctx;

    caller->done = done;
    caller->total = total;
    return ++caller->calls != caller->stops_at;
}

TEST(throttle__reports_while_it_sleeps_and_can_be_stopped)
{
    struct clock clock;
    struct wal__throttle throttle = begin(&clock, MIB);
    struct caller caller = {.stops_at = 4};
    struct wal_error error = {.struct_size = sizeof(error)};

    wal__throttle_set_progress(&throttle, on_progress, &caller);
    wal__throttle_expect(&throttle, 0, 7);
    assert_ok(wal__throttle_spend(&throttle, MIB, &error));
    assert_in_range(caller.calls, 3, 3);
    assert_int_equal(caller.total, 7);
    assert_int_equal(wal__throttle_report(&throttle, 5, 7, &error), WAL_ECALLBACK);
    assert_int_equal(caller.done, 5);
    caller = (struct caller){.stops_at = 2};
    clock.slept = 0;
    assert_int_equal(wal__throttle_spend(&throttle, 1000 * MIB, &error), WAL_ECALLBACK);
    assert_int_equal(error.status, WAL_ECALLBACK);
    assert_int_equal(caller.done, 5);
    assert_int_equal(clock.slept, SECOND / 2);
}

TEST(throttle__reports_without_a_limit)
{
    struct clock clock;
    struct wal__throttle throttle = begin(&clock, UINT64_MAX);
    struct caller caller = {.stops_at = 3};
    enum wal_status status = WAL_OK;
    int pieces = 0;

    wal__throttle_set_progress(&throttle, on_progress, &caller);
    for (; status == WAL_OK; pieces++) {
        status = wal__throttle_spend(&throttle, MIB, NULL);
        clock.now += SECOND / 100;
    }
    assert_int_equal(status, WAL_ECALLBACK);
    assert_int_equal(pieces, 76);
    assert_int_equal(clock.slept, 0);
}
