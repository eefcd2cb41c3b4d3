/*
 * test_heapsort.c - tests of the heapsort of engine/base. AGENTWAL_SEED sets
 * the seed.
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
    COUNT_MAX = 300
};

static uint64_t random_state;

static uint64_t random_u64(void)
{
    return rng_next(&random_state);
}

static int set_up(void **state)
{
    (void)state;
    random_state = rng_seed(1);
    return 0;
}

static int compare(const void *a, const void *b)
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
    uint64_t range = random_u64() % 2 == 0 ? 1 + random_u64() % 20 : UINT64_MAX;

    for (uint32_t i = 0; i < count; i++) {
        items[i].key = random_u64() % range;
        items[i].tie = random_u64() % 4;
        items[i].value = (uint32_t)random_u64() % 8;
    }
}

TEST(order__sort_agrees_with_qsort)
{
    struct wal__heapsort_item items[COUNT_MAX];
    struct wal__heapsort_item wanted[COUNT_MAX];

    for (uint32_t count = 0; count < COUNT_MAX; count++) {
        make_items(items, count);
        memcpy(wanted, items, sizeof(items));
        qsort(wanted, count, sizeof(*wanted), compare);
        wal__heapsort_sort(items, count);
        for (uint32_t i = 0; i < count; i++) {
            assert_int_equal(compare(&items[i], &wanted[i]), 0);
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
        qsort(wanted, count, sizeof(*wanted), compare);
        wal__heapsort_make_heap(items, count);
        while (left > 0) {
            struct wal__heapsort_item top = wal__heapsort_pop(items, &left);

            assert_int_equal(compare(&top, &wanted[left]), 0);
        }
    }
}

TEST_FILE(set_up, NULL, NULL);
