/*
 * test_bitset.c - tests of engine/base/bits. AGENTWAL_SEED sets the seed.
 */
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/containers.h"
#include "tests/lib/rng.h"
#include "tests/lib/test.h"

enum {
    RANGE = 200000,
    ROUNDS = 20000
};

static uint64_t seed = 20240611;

static int set_seed(void **state)
{
    (void)state;
    seed = rng_seed(seed);
    return 0;
}

static uint64_t next_random(void)
{
    return rng_next(&seed);
}

/* A heap whose allocations fail while `failing` is set. */
static bool failing;

static void *failing_resize(void *ctx, void *at, size_t size)
{
    (void)ctx;
    return size > 0 && failing ? NULL : wal__heap_libc.resize(NULL, at, size);
}

static const struct wal__heap failing_heap = {failing_resize, NULL};

static void put(struct wal__bitset *bits, uint32_t number)
{
    assert_ok(wal__bitset_reserve(bits, number));
    wal__bitset_set(bits, number);
}

TEST(bits__agrees_with_a_naive_set)
{
    static bool model[RANGE];
    struct wal__bitset bits;

    memset(model, 0, sizeof(model));
    wal__bitset_init(&bits, &wal__heap_libc);
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t number = (uint32_t)(next_random() % RANGE);

        assert_int_equal(wal__bitset_contains(&bits, number), model[number]);
        put(&bits, number);
        model[number] = true;
    }
    for (uint32_t i = 0; i < RANGE; i++) {
        assert_int_equal(wal__bitset_contains(&bits, i), model[i]);
    }
    wal__bitset_deinit(&bits);
}

TEST(bits__first_and_last_of_the_range)
{
    static const uint32_t numbers[] = {0, UINT32_MAX, 63, 64, 32767, 32768};
    struct wal__bitset bits;

    wal__bitset_init(&bits, &wal__heap_libc);
    assert_false(wal__bitset_contains(&bits, 0));
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        assert_false(wal__bitset_contains(&bits, numbers[i]));
        put(&bits, numbers[i]);
        assert_true(wal__bitset_contains(&bits, numbers[i]));
    }
    assert_false(wal__bitset_contains(&bits, UINT32_MAX - 1));
    assert_false(wal__bitset_contains(&bits, 65));
    wal__bitset_deinit(&bits);
}

TEST(bits__no_memory_changes_nothing)
{
    struct wal__bitset bits;

    wal__bitset_init(&bits, &failing_heap);
    put(&bits, 5);
    failing = true;
    assert_ok(wal__bitset_reserve(&bits, 6));
    assert_int_equal(wal__bitset_reserve(&bits, 40000), WAL_ENOMEM);
    failing = false;
    assert_true(wal__bitset_contains(&bits, 5));
    assert_false(wal__bitset_contains(&bits, 40000));
    put(&bits, 40000);
    assert_true(wal__bitset_contains(&bits, 40000));
    wal__bitset_deinit(&bits);
}

TEST_FILE(set_seed, NULL, NULL);
