/*
 * test_heaps.c - the heaps of tests/lib: one that fails, one that is dropped.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "tests/lib/arena_heap.h"
#include "tests/lib/faulty_heap.h"
#include "tests/lib/test.h"

TEST(heaps__faulty_heap_fails_the_nth_once)
{
    struct faulty_heap faulty;
    void *at[4];

    faulty_heap_init(&faulty, &wal__heap_libc);
    faulty_heap_fail(&faulty, 2, false);
    for (int i = 0; i < 4; i++) {
        at[i] = wal__heap_alloc(&faulty.heap, 10);
        assert_int_equal(at[i] == NULL, i == 1);
    }
    assert_int_equal(faulty.allocations, 4);
    assert_int_equal(faulty.failures, 1);
    assert_int_equal(faulty.live, 3);
    for (int i = 0; i < 4; i++) {
        wal__heap_free(&faulty.heap, at[i]);
    }
    assert_int_equal(faulty.live, 0);
}

TEST(heaps__faulty_heap_fails_from_then_on)
{
    struct faulty_heap faulty;

    faulty_heap_init(&faulty, &wal__heap_libc);

    char *at = wal__heap_alloc(&faulty.heap, 4);

    assert_non_null(at);
    memcpy(at, "abc", 4);
    faulty_heap_fail(&faulty, 1, true);
    assert_null(wal__heap_resize(&faulty.heap, at, 100, 1));
    assert_null(wal__heap_alloc(&faulty.heap, 1));
    assert_string_equal(at, "abc");
    faulty_heap_fail(&faulty, 0, false);
    at = wal__heap_resize(&faulty.heap, at, 100, 1);
    assert_string_equal(at, "abc");
    wal__heap_free(&faulty.heap, at);
    assert_int_equal(faulty.live, 0);
}

TEST(heaps__arena_frees_remaining_blocks)
{
    struct arena_heap arena;
    char *at[3];

    arena_heap_init(&arena);
    for (int i = 0; i < 3; i++) {
        at[i] = wal__heap_alloc(&arena.heap, 16);
        assert_non_null(at[i]);
        memset(at[i], i, 16);
    }
    wal__heap_free(&arena.heap, at[1]);
    at[0] = wal__heap_resize(&arena.heap, at[0], 100, 1000);
    assert_int_equal(at[0][15], 0);
    assert_int_equal(at[2][15], 2);
    assert_int_equal(arena_heap_count(&arena), 2);
    arena_heap_free_all(&arena);
    assert_int_equal(arena_heap_count(&arena), 0);
    assert_non_null(wal__heap_alloc(&arena.heap, 1));
    arena_heap_deinit(&arena);
}
