/*
 * test_throttle.c - tests of the rate of a compaction (engine/compact/
 * throttle.h), with a clock that only sleeping moves.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/compact/throttle.h"

enum {
    KIB = 1024,
    MIB = 1024 * 1024
};

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

static void clock_sleep(void *ctx, const uint32_t *word, uint32_t expected,
                        uint64_t timeout_ns)
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

static void test_throttle__bytes_take_their_time(void **state)
{
    (void)state;
    struct clock clock;
    struct wal__throttle throttle = begin(&clock, MIB);

    for (int i = 0; i < 3 * 1024; i++) {
        wal__throttle_spend(&throttle, KIB);
    }
    assert_in_range(clock.slept, 3 * SECOND - SECOND / 10,
                    3 * SECOND + SECOND / 10);
}

static void test_throttle__unused_time_is_not_made_up_for(void **state)
{
    (void)state;
    struct clock clock;
    struct wal__throttle throttle = begin(&clock, MIB);

    wal__throttle_spend(&throttle, MIB);
    clock.now += 100 * SECOND;
    clock.slept = 0;
    wal__throttle_spend(&throttle, MIB);
    assert_int_equal(clock.slept, SECOND);
}

static void test_throttle__time_of_the_work_counts(void **state)
{
    (void)state;
    struct clock clock;
    struct wal__throttle throttle = begin(&clock, MIB);

    wal__throttle_spend(&throttle, MIB);
    clock.slept = 0;
    /* Slower than the rate: never sleeps longer than the step takes. */
    for (int i = 0; i < 8; i++) {
        clock.now += SECOND;
        wal__throttle_spend(&throttle, 128 * KIB);
    }
    assert_in_range(clock.slept, 0, 8 * SECOND / 8);
}

/* As many pieces of work as fill half of the time; the other half is slept. */
static void test_throttle__yielding_sleeps_as_long_as_it_works(void **state)
{
    (void)state;
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

static void test_throttle__no_limit(void **state)
{
    (void)state;
    struct clock clock;
    struct wal__throttle throttle = begin(&clock, UINT64_MAX);

    wal__throttle_spend(&throttle, UINT64_MAX / 2);
    wal__throttle_count_sync(&throttle, SECOND);
    wal__throttle_count_sync(&throttle, 10 * SECOND);
    for (int i = 0; i < 2; i++) {
        clock.now += SECOND;
        wal__throttle_yield(&throttle);
    }
    assert_int_equal(clock.slept, 0);
    assert_false(wal__throttle_is_limited(&throttle));
}

static void test_throttle__extreme_rates(void **state)
{
    (void)state;
    struct clock clock;
    struct wal__throttle throttle = begin(&clock, 1);

    wal__throttle_spend(&throttle, MIB);
    assert_int_equal(clock.slept, MIB * SECOND);
    throttle = begin(&clock, UINT64_MAX - 1);
    wal__throttle_spend(&throttle, MIB);
    assert_int_equal(clock.slept, 0);
}

static void test_throttle__pauses_after_a_slow_sync(void **state)
{
    (void)state;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_throttle__bytes_take_their_time),
        cmocka_unit_test(test_throttle__unused_time_is_not_made_up_for),
        cmocka_unit_test(test_throttle__time_of_the_work_counts),
        cmocka_unit_test(test_throttle__yielding_sleeps_as_long_as_it_works),
        cmocka_unit_test(test_throttle__no_limit),
        cmocka_unit_test(test_throttle__extreme_rates),
        cmocka_unit_test(test_throttle__pauses_after_a_slow_sync),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
