/*
 * test_bytes.c - arrays that grow, checksums, frame seeds and the hash of ids.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "format/bytes/crc32.h"
#include "format/json/arena.h"
#include "tests/lib/test.h"

enum { ITEMS = 100 };

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
        uint32_t *grown = wal__arena_grow(&arena, items, i, &capacity, sizeof(items[0]));
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
    uint64_t *items = wal__arena_grow(&arena, NULL, 0, &capacity, sizeof(items[0]));
    size_t first = capacity;

    assert_non_null(items);
    assert_null(wal__arena_grow(&arena, items, capacity, &capacity, 1 << 10));
    assert_int_equal(capacity, first);
    assert_ptr_equal(wal__arena_grow(&arena, items, capacity - 1, &capacity, 1 << 10), items);
}

enum { ALIGNMENT_COUNT = 16, SIZE_COUNT = 1200, LARGE_SIZE = 1 << 20 };

static uint8_t bytes[LARGE_SIZE + ALIGNMENT_COUNT];

static int fill(void **state)
{
    uint32_t x = 1;

    (void)state;
    for (size_t i = 0; i < sizeof(bytes); i++) {
        x = x * 1664525u + 1013904223u;
        bytes[i] = (uint8_t)(x >> 24);
    }
    return 0;
}

TEST(crc32__check_value_of_the_polynomial)
{
    assert_int_equal(wal__crc32(0, "123456789", 9), 0xcbf43926u);
    assert_int_equal(wal__crc32_zlib(0, "123456789", 9), 0xcbf43926u);
}

TEST(crc32__equals_zlib_at_every_size_and_alignment)
{
    for (size_t at = 0; at < ALIGNMENT_COUNT; at++) {
        for (size_t size = 0; size < SIZE_COUNT; size++) {
            uint32_t start = (uint32_t)(size * 0x9e3779b9u);

            assert_int_equal(wal__crc32(start, bytes + at, size),
                             wal__crc32_zlib(start, bytes + at, size));
        }
        assert_int_equal(wal__crc32(0, bytes + at, LARGE_SIZE),
                         wal__crc32_zlib(0, bytes + at, LARGE_SIZE));
    }
}

TEST(crc32__continues_from_a_value)
{
    uint32_t whole = wal__crc32(7, bytes, SIZE_COUNT);

    for (size_t cut = 0; cut <= SIZE_COUNT; cut++) {
        uint32_t crc = wal__crc32(7, bytes, cut);

        crc = wal__crc32(crc, bytes + cut, SIZE_COUNT - cut);
        assert_int_equal(crc, whole);
    }
}

TEST(crc32__no_bytes_change_nothing)
{
    assert_int_equal(wal__crc32(0x12345678u, NULL, 0), 0x12345678u);
    assert_int_equal(wal__crc32_zlib(0x12345678u, NULL, 0), 0x12345678u);
}

TEST(crc32__seed_is_the_formats)
{
    assert_int_equal(wal__crc32_seed(0, 0), 0);
    assert_int_equal(wal__crc32_seed(0x1122334455667788u, 4096), 0x941e8338u);
    assert_int_equal(wal__crc32_seed(0x1122334455667788u, 4184), 0xf7b2dc4cu);
}

TEST(crc32__id_hash_is_the_formats)
{
    assert_true(wal__id_hash("s-1", 3) == 0x838edd22ab7bb625u);
    assert_true(wal__id_hash("e-1", 3) == 0xd37d89cdb4130453u);
    assert_true(wal__id_hash(NULL, 0) == 0xfdbdf6ac4fc52e7fu);
    assert_true(wal__id_hash("0193b5f2-7c1a", 13) == 0xb962bde68ae5c2a1u);
}

TEST_FILE(fill, NULL, NULL);
