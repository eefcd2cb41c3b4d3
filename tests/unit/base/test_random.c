/*
 * test_random.c - tests of random bytes kept in store (engine/base/io.h).
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/io.h"
#include "format/bytes/assert.h"
#include "tests/lib/test.h"

enum { THREADS = 4, TAKEN_EACH = 5000 };

/* Chance that counts, so that what is given twice is seen. */
static uint64_t next;
static uint32_t calls;

static void count_up(void *ctx, void *data, size_t size)
{
    (void)ctx;
    calls++;
    for (size_t at = 0; at < size; at += sizeof(next)) {
        memcpy((uint8_t *)data + at, &next, sizeof(next));
        next++;
    }
}

static const struct wal__io io = {.random = count_up};

static int enter(void **state)
{
    (void)state;
    next = 0;
    calls = 0;
    return 0;
}

TEST_WITH(random_pool__is_refilled_when_empty, enter, NULL)
{
    struct wal__random random;
    uint64_t number;

    wal__random_init(&random);
    for (uint32_t i = 0; i < 3 * WAL__RANDOM_POOL_SIZE / sizeof(number); i++) {
        wal__random_bytes(&random, &io, &number, sizeof(number));
    }
    assert_int_equal(calls, 3);
    wal__random_deinit(&random);
}

/* A remainder that is too small is not used in part. */
TEST_WITH(random_pool__odd_size_is_filled, enter, NULL)
{
    struct wal__random random;
    uint8_t bytes[WAL__RANDOM_POOL_SIZE];

    wal__random_init(&random);
    wal__random_bytes(&random, &io, bytes, 10);
    assert_int_equal(calls, 1);
    memset(bytes, 0xff, sizeof(bytes));
    wal__random_bytes(&random, &io, bytes, sizeof(bytes));
    assert_int_equal(calls, 2);
    for (uint64_t i = 0; i < sizeof(bytes) / sizeof(i); i++) {
        uint64_t number = WAL__RANDOM_POOL_SIZE / sizeof(i) + i;

        assert_memory_equal(bytes + i * sizeof(i), &number, sizeof(number));
    }
    wal__random_deinit(&random);
}

TEST_WITH(random_pool__without_a_store_reads_the_io, enter, NULL)
{
    uint64_t number = UINT64_MAX;

    for (uint64_t i = 0; i < 3; i++) {
        wal__random_bytes(NULL, &io, &number, sizeof(number));
        assert_int_equal(number, i);
    }
    assert_int_equal(calls, 3);
}

static struct wal__random shared;

static void *take_many(void *arg)
{
    uint64_t *numbers = arg;

    for (int i = 0; i < TAKEN_EACH; i++) {
        wal__random_bytes(&shared, &io, &numbers[i], sizeof(numbers[i]));
    }
    return NULL;
}

TEST_WITH(random_pool__threads_get_distinct_bytes, enter, NULL)
{
    static uint64_t numbers[THREADS][TAKEN_EACH];
    static bool given[THREADS * TAKEN_EACH + WAL__RANDOM_POOL_SIZE];
    pthread_t threads[THREADS];

    wal__random_init(&shared);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, take_many, numbers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    for (int i = 0; i < THREADS * TAKEN_EACH; i++) {
        uint64_t number = numbers[i / TAKEN_EACH][i % TAKEN_EACH];

        assert_true(number < sizeof(given) / sizeof(given[0]));
        assert_false(given[number]);
        given[number] = true;
    }
    wal__random_deinit(&shared);
}
