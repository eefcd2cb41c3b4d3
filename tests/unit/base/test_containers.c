/*
 * test_containers.c - tests of what engine/base keeps things in: bit sets, buffers, hash maps, heap
 * sort and ordered items. AGENTWAL_SEED sets the seed.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/containers.h"
#include "engine/base/heap.h"
#include "tests/lib/test.h"

enum { RANGE = 200000, ROUNDS = 20000 };

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
        uint32_t number = (uint32_t)(test_random() % RANGE);

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

static uint8_t pattern(size_t i)
{
    return (uint8_t)(i * 131 + (i >> 8));
}

static void assert_pattern(const struct wal__buf *buf)
{
    for (size_t i = 0; i < buf->size; i++) {
        assert_int_equal(buf->data[i], pattern(i));
    }
}

static enum wal_status append_pattern(struct wal__buf *buf, size_t size)
{
    uint8_t part[300];

    for (size_t i = 0; i < size; i++) {
        part[i] = pattern(buf->size + i);
    }
    return wal__buf_append(buf, part, size);
}

TEST(buf__appended_bytes_stay_in_order)
{
    struct counted counted = {0};
    const struct wal__heap heap = {counted_resize, &counted};
    struct wal__buf buf;
    size_t total = 0;

    wal__buf_init(&buf, &heap);
    for (size_t size = 0; size < 300; size++) {
        assert_ok(append_pattern(&buf, size));
        total += size;
        assert_int_equal(buf.size, total);
        assert_true(buf.capacity >= total);
    }
    assert_pattern(&buf);
    /* 44,850 bytes in doublings from 64. */
    assert_true(counted.calls <= 12);
    assert_int_equal(counted.live, 1);
    wal__buf_deinit(&buf);
    assert_int_equal(counted.live, 0);
}

TEST(buf__reserve_adds_capacity_and_keeps_the_size)
{
    struct wal__buf buf;
    uint8_t *at = NULL;

    wal__buf_init(&buf, &wal__heap_libc);
    assert_ok(append_pattern(&buf, 10));
    assert_ok(wal__buf_reserve(&buf, 5000, &at));
    assert_int_equal(buf.size, 10);
    assert_ptr_equal(at, buf.data + 10);
    memset(at, 0x5A, 5000);
    assert_pattern(&buf);

    /* Within the reserved room nothing moves. */
    const uint8_t *data = buf.data;

    for (int i = 0; i < 50; i++) {
        assert_ok(append_pattern(&buf, 100));
    }
    assert_ptr_equal(buf.data, data);
    assert_pattern(&buf);
    wal__buf_deinit(&buf);
}

TEST(buf__zero_sizes_are_valid)
{
    struct wal__buf buf = {.heap = &wal__heap_libc};
    struct wal__buf zeroed = {0};
    uint8_t *at = NULL;

    wal__buf_deinit(&zeroed);
    wal__buf_deinit(&buf);
    assert_ok(wal__buf_append(&buf, NULL, 0));
    assert_int_equal(buf.size, 0);
    assert_ok(wal__buf_reserve(&buf, 0, &at));
    assert_non_null(at);
    assert_ok(append_pattern(&buf, 3));
    wal__buf_deinit(&buf);

    /* A deinitialised buffer is an empty one. */
    assert_ok(append_pattern(&buf, 3));
    assert_pattern(&buf);
    wal__buf_deinit(&buf);
    wal__buf_deinit(&buf);
}

/* Appends `count` parts, each again when it failed. Returns failures. */
static int append_with_failures(struct wal__buf *buf, int count)
{
    int failures = 0;

    for (int i = 0; i < count; i++) {
        struct wal__buf before = *buf;

        if (append_pattern(buf, 200) != WAL_OK) {
            failures++;
            assert_memory_equal(buf, &before, sizeof(before));
            assert_ok(append_pattern(buf, 200));
        }
    }
    return failures;
}

TEST(buf__a_failed_allocation_changes_nothing)
{
    int failures = 0;

    for (int fail_at = 1; fail_at <= 8; fail_at++) {
        struct counted counted = {.fail_at = fail_at};
        const struct wal__heap heap = {counted_resize, &counted};
        struct wal__buf buf;

        wal__buf_init(&buf, &heap);
        failures += append_with_failures(&buf, 40);
        assert_int_equal(buf.size, 8000);
        assert_pattern(&buf);
        wal__buf_deinit(&buf);
        assert_int_equal(counted.live, 0);
    }
    /* 200, 400, ... 12,800 bytes are seven allocations. */
    assert_int_equal(failures, 7);
}

TEST(buf__sizes_that_overflow_are_no_memory)
{
    struct counted counted = {0};
    const struct wal__heap heap = {counted_resize, &counted};
    struct wal__buf buf;
    uint8_t byte = 0;
    uint8_t *at = &byte;

    wal__buf_init(&buf, &heap);
    assert_ok(append_pattern(&buf, 1));
    assert_int_equal(wal__buf_reserve(&buf, SIZE_MAX, &at), WAL_ENOMEM);
    assert_ptr_equal(at, &byte);
    assert_int_equal(counted.calls, 1);
    assert_int_equal(buf.size, 1);
    wal__buf_deinit(&buf);
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
static void assert_same(const struct wal__hashmap *map, const struct model *model, uint64_t hash)
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
        return test_random();
    case 1: /* few hashes, many values each */
        return test_random() % 50;
    case 2: /* one home for all, and it is the last slot */
        return test_random() << 32 | UINT32_MAX;
    default: /* neighbours */
        return UINT32_MAX - test_random() % 1000;
    }
}

static void add_to_both(struct wal__hashmap *map, struct model *model, int choice)
{
    uint64_t hash = random_hash(choice);
    uint32_t value = (uint32_t)(test_random() % 1000);

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
        uint32_t count = (uint32_t)(test_random() % 1500);

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
            assert_ok(wal__hashmap_add(&map, test_random(), i));
        }
        assert_int_equal(counted.calls, calls);
        wal__hashmap_deinit(&map);
        assert_int_equal(counted.live, 0);
    }
}

/* Adds until `count` are in, each again when it failed. Returns failures. */
static int add_with_failures(struct wal__hashmap *map, struct model *model, uint32_t count)
{
    int failures = 0;

    for (uint32_t i = 0; i < count; i++) {
        uint64_t hash = test_random() % 64;
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

enum { COUNT_MAX = 300 };

static int compare_items(const void *a, const void *b)
{
    const struct wal__heapsort_item *x = a;
    const struct wal__heapsort_item *y = b;

    if (x->key != y->key) {
        return x->key < y->key ? -1 : 1;
    }
    if (x->tie != y->tie) {
        return x->tie < y->tie ? -1 : 1;
    }
    return (x->value > y->value) - (x->value < y->value);
}

/* Keys from a range that is small, so that many are equal, or whole. */
static void make_items(struct wal__heapsort_item *items, uint32_t count)
{
    uint64_t range = test_random() % 2 == 0 ? 1 + test_random() % 20 : UINT64_MAX;

    for (uint32_t i = 0; i < count; i++) {
        items[i].key = test_random() % range;
        items[i].tie = test_random() % 4;
        items[i].value = (uint32_t)test_random() % 8;
    }
}

TEST(order__sort_agrees_with_qsort)
{
    struct wal__heapsort_item items[COUNT_MAX];
    struct wal__heapsort_item wanted[COUNT_MAX];

    for (uint32_t count = 0; count < COUNT_MAX; count++) {
        make_items(items, count);
        memcpy(wanted, items, sizeof(items));
        qsort(wanted, count, sizeof(*wanted), compare_items);
        wal__heapsort_sort(items, count);
        for (uint32_t i = 0; i < count; i++) {
            assert_int_equal(compare_items(&items[i], &wanted[i]), 0);
        }
    }
}

TEST(order__heap_gives_the_greatest_first)
{
    struct wal__heapsort_item items[COUNT_MAX];
    struct wal__heapsort_item wanted[COUNT_MAX];

    for (uint32_t count = 0; count < COUNT_MAX; count++) {
        uint32_t left = count;

        make_items(items, count);
        memcpy(wanted, items, sizeof(items));
        qsort(wanted, count, sizeof(*wanted), compare_items);
        wal__heapsort_make_heap(items, count);
        while (left > 0) {
            struct wal__heapsort_item top = wal__heapsort_pop(items, &left);

            assert_int_equal(compare_items(&top, &wanted[left]), 0);
        }
    }
}

/* --- ascending items ------------------------------------------------------ */

TEST(lower_bound__first_item_that_is_not_below)
{
    struct item {
        uint32_t value;
        uint64_t key;
    } items[20];
    const size_t offset = offsetof(struct item, key);

    for (uint32_t i = 0; i < 20; i++) {
        items[i] = (struct item){i, 10 + 2 * (uint64_t)(i / 2)};
    }
    assert_int_equal(wal__lower_bound(NULL, 0, sizeof(items[0]), offset, 1), 0);
    for (size_t count = 1; count <= 20; count++) {
        for (uint64_t key = 8; key < 32; key++) {
            size_t rank = wal__lower_bound(items, count, sizeof(items[0]), offset, key);

            assert_true(rank == count || items[rank].key >= key);
            assert_true(rank == 0 || items[rank - 1].key < key);
        }
    }
}
