/*
 * Tests of format/json/arena: arrays that grow.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "format/json/arena.h"
#include "tests/lib/test.h"

enum {
    ITEMS = 100
};

static void *alloc_block(void *ctx, size_t size, size_t *got)
{
    size_t *left = ctx;
    static _Alignas(max_align_t) uint8_t memory[1 << 16];

    if (size > *left) {
        return NULL;
    }
    *got = *left;
    *left = 0;
    return memory;
}

TEST(arena__an_array_grows_and_keeps_its_items)
{
    size_t left = 1 << 16;
    struct wal__arena arena = {.alloc_block = alloc_block, .ctx = &left};
    size_t capacity = 0;
    size_t copies = 0;
    uint32_t *items = NULL;

    for (uint32_t i = 0; i < ITEMS; i++) {
        uint32_t *grown =
            wal__arena_grow(&arena, items, i, &capacity, sizeof(items[0]));
        assert_non_null(grown);
        assert_true(capacity > i);
        copies += grown != items ? 1 : 0;
        items = grown;
        items[i] = i;
    }
    for (uint32_t i = 0; i < ITEMS; i++) {
        assert_int_equal(items[i], i);
    }
    assert_true(copies < 10);
}

TEST(arena__no_memory_for_a_larger_array)
{
    size_t left = 64;
    struct wal__arena arena = {.alloc_block = alloc_block, .ctx = &left};
    size_t capacity = 0;
    uint64_t *items =
        wal__arena_grow(&arena, NULL, 0, &capacity, sizeof(items[0]));
    size_t first = capacity;

    assert_non_null(items);
    assert_null(wal__arena_grow(&arena, items, capacity, &capacity, 1 << 10));
    assert_int_equal(capacity, first);
    assert_ptr_equal(
        wal__arena_grow(&arena, items, capacity - 1, &capacity, 1 << 10),
        items);
}
