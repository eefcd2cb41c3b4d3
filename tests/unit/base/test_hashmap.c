/*
 * test_hashmap.c - tests of engine/base/map. AGENTWAL_SEED sets the seed.
 */
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/containers.h"
#include "tests/lib/rng.h"
#include "tests/lib/test.h"

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

/* A heap that fails its allocation number `fail_at`, from 1 on. */
struct counted {
    int calls;
    int fail_at;
    int live; /* blocks */
};

static void *counted_resize(void *ctx, void *at, size_t size)
{
    struct counted *counted = ctx;

    if (size == 0) {
        counted->live--;
        return wal__heap_libc.resize(NULL, at, 0);
    }
    if (++counted->calls == counted->fail_at) {
        return NULL;
    }
    counted->live += at == NULL;
    return wal__heap_libc.resize(NULL, at, size);
}

/* The naive map: pairs in a list. */
struct model {
    uint64_t hashes[4000];
    uint32_t values[4000];
    uint32_t count;
};

static void model_add(struct model *model, uint64_t hash, uint32_t value)
{
    model->hashes[model->count] = hash;
    model->values[model->count] = value;
    model->count++;
}

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

/* The map gives exactly the model's values of `hash`, in any order. */
static void assert_same(const struct wal__hashmap *map,
                        const struct model *model, uint64_t hash)
{
    static uint32_t wanted[4000];
    static uint32_t found[4000];
    size_t wanted_count = 0;
    size_t found_count = 0;
    uint32_t cursor = 0;
    uint32_t value = 0;

    for (uint32_t i = 0; i < model->count; i++) {
        if (model->hashes[i] == hash) {
            wanted[wanted_count++] = model->values[i];
        }
    }
    while (wal__hashmap_find(map, hash, &cursor, &value)) {
        assert_true(found_count < wanted_count);
        found[found_count++] = value;
    }
    assert_int_equal(found_count, wanted_count);
    qsort(wanted, wanted_count, sizeof(wanted[0]), compare);
    qsort(found, found_count, sizeof(found[0]), compare);
    assert_memory_equal(found, wanted, found_count * sizeof(found[0]));
}

/* `choice` picks how far hashes collide. */
static uint64_t random_hash(int choice)
{
    switch (choice) {
    case 0:
        return next_random();
    case 1: /* few hashes, many values each */
        return next_random() % 50;
    case 2: /* one home for all, and it is the last slot */
        return next_random() << 32 | UINT32_MAX;
    default: /* neighbours */
        return UINT32_MAX - next_random() % 1000;
    }
}

static void add_to_both(struct wal__hashmap *map, struct model *model,
                        int choice)
{
    uint64_t hash = random_hash(choice);
    uint32_t value = (uint32_t)(next_random() % 1000);

    assert_ok(wal__hashmap_add(map, hash, value));
    model_add(model, hash, value);
    assert_int_equal(map->count, model->count);
    assert_true(map->count * UINT64_C(4) <= map->capacity * UINT64_C(3));
    if (model->count % 100 == 1) {
        assert_same(map, model, hash);
    }
}

TEST(map__equals_a_naive_model)
{
    static struct model model;

    for (int round = 0; round < 16; round++) {
        struct wal__hashmap map;
        uint32_t count = (uint32_t)(next_random() % 1500);

        model.count = 0;
        wal__hashmap_init(&map, &wal__heap_libc);
        for (uint32_t i = 0; i < count; i++) {
            add_to_both(&map, &model, round % 4);
        }
        for (uint32_t i = 0; i < count; i++) {
            assert_same(&map, &model, model.hashes[i]);
            assert_same(&map, &model, random_hash(round % 4));
        }
        wal__hashmap_deinit(&map);
    }
}

TEST(map__empty_map_finds_nothing)
{
    struct wal__hashmap map = {0};
    uint32_t cursor = 0;
    uint32_t value = 7;

    wal__hashmap_deinit(&map);
    assert_false(wal__hashmap_find(&map, 1, &cursor, &value));
    wal__hashmap_init(&map, &wal__heap_libc);
    assert_ok(wal__hashmap_reserve(&map, 0));
    assert_int_equal(map.capacity, 0);
    assert_ok(wal__hashmap_reserve(&map, 1));
    assert_false(wal__hashmap_find(&map, 0, &cursor, &value));
    assert_int_equal(value, 7);
    wal__hashmap_deinit(&map);
}

TEST(map__extreme_values_and_equal_pairs)
{
    struct wal__hashmap map;
    uint32_t cursor = 0;
    uint32_t value = 1;
    uint64_t sum = 0;
    int found = 0;

    wal__hashmap_init(&map, &wal__heap_libc);
    assert_ok(wal__hashmap_add(&map, UINT64_MAX, 0));
    assert_ok(wal__hashmap_add(&map, UINT64_MAX, 0));
    assert_ok(wal__hashmap_add(&map, UINT64_MAX, UINT32_MAX - 1));
    while (wal__hashmap_find(&map, UINT64_MAX, &cursor, &value)) {
        sum += value;
        found++;
    }
    assert_int_equal(found, 3);
    assert_true(sum == UINT32_MAX - 1);
    assert_false(wal__hashmap_find(&map, UINT64_MAX, &cursor, &value));
    wal__hashmap_deinit(&map);
}

TEST(map__adds_within_a_reserve_cannot_fail)
{
    for (uint32_t more = 1; more < 200; more++) {
        struct counted counted = {0};
        const struct wal__heap heap = {counted_resize, &counted};
        struct wal__hashmap map;

        wal__hashmap_init(&map, &heap);
        for (uint32_t i = 0; i < more % 7; i++) {
            assert_ok(wal__hashmap_add(&map, i, i));
        }
        assert_ok(wal__hashmap_reserve(&map, more));

        int calls = counted.calls;

        for (uint32_t i = 0; i < more; i++) {
            assert_ok(wal__hashmap_add(&map, next_random(), i));
        }
        assert_int_equal(counted.calls, calls);
        wal__hashmap_deinit(&map);
        assert_int_equal(counted.live, 0);
    }
}

/* Adds until `count` are in, each again when it failed. Returns failures. */
static int add_with_failures(struct wal__hashmap *map, struct model *model,
                             uint32_t count)
{
    int failures = 0;

    for (uint32_t i = 0; i < count; i++) {
        uint64_t hash = next_random() % 64;
        struct wal__hashmap before = *map;

        if (wal__hashmap_add(map, hash, i) != WAL_OK) {
            failures++;
            assert_memory_equal(map, &before, sizeof(before));
            assert_same(map, model, hash);
            assert_ok(wal__hashmap_add(map, hash, i));
        }
        model_add(model, hash, i);
    }
    return failures;
}

TEST(map__a_failed_allocation_changes_nothing)
{
    static struct model model;
    int failures = 0;

    for (int fail_at = 1; fail_at <= 12; fail_at++) {
        struct counted counted = {.fail_at = fail_at};
        const struct wal__heap heap = {counted_resize, &counted};
        struct wal__hashmap map;

        model.count = 0;
        wal__hashmap_init(&map, &heap);
        failures += add_with_failures(&map, &model, 150);
        for (uint64_t hash = 0; hash < 64; hash++) {
            assert_same(&map, &model, hash);
        }
        wal__hashmap_deinit(&map);
        assert_int_equal(counted.live, 0);
    }
    /* Capacities 16, 32, 64, 128, 256 of two arrays each. */
    assert_int_equal(failures, 10);
}

TEST(map__above_its_capacity_is_no_memory)
{
    struct counted counted = {0};
    const struct wal__heap heap = {counted_resize, &counted};
    struct wal__hashmap map;

    wal__hashmap_init(&map, &heap);
    assert_int_equal(wal__hashmap_reserve(&map, UINT32_MAX), WAL_ENOMEM);
    assert_int_equal(counted.calls, 0);
    assert_ok(wal__hashmap_add(&map, 1, 1));
    assert_int_equal(wal__hashmap_reserve(&map, UINT32_MAX), WAL_ENOMEM);
    assert_int_equal(map.count, 1);
    wal__hashmap_deinit(&map);
}

TEST_FILE(set_seed, NULL, NULL);
