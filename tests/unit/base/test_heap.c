/*
 * test_heap.c - tests of engine/base/heap.
 */
#include <stddef.h>
#include <stdint.h>

#include <stdlib.h>

#include "engine/base/heap.h"
#include "tests/lib/test.h"

/* A heap that records the last request and always fails. */
struct ask {
    void *at;
    size_t size;
    int calls;
};

static void *note(void *ctx, void *at, size_t size)
{
    struct ask *ask = ctx;

    *ask = (struct ask){.at = at, .size = size, .calls = ask->calls + 1};
    return NULL;
}

TEST(heap__bytes_survive_a_resize)
{
    const struct wal__heap *heap = &wal__heap_libc;
    uint8_t *at = wal__heap_alloc(heap, 100);

    assert_non_null(at);
    for (size_t i = 0; i < 100; i++) {
        at[i] = (uint8_t)i;
    }
    at = wal__heap_resize(heap, at, 1000, 100);
    assert_non_null(at);
    for (size_t i = 0; i < 100; i++) {
        assert_int_equal(at[i], i);
    }
    wal__heap_free(heap, at);
}

TEST(heap__zalloc_gives_zeros)
{
    const struct wal__heap *heap = &wal__heap_libc;

    for (int round = 0; round < 20; round++) {
        uint8_t *at = wal__heap_zalloc(heap, 500);

        assert_non_null(at);
        for (size_t i = 0; i < 500; i++) {
            assert_int_equal(at[i], 0);
            at[i] = 0xA5;
        }
        wal__heap_free(heap, at);
    }
}

TEST(heap__zero_size_is_not_null)
{
    const struct wal__heap *heap = &wal__heap_libc;
    void *a = wal__heap_alloc(heap, 0);
    void *b = wal__heap_zalloc(heap, 0);

    assert_non_null(a);
    assert_non_null(b);
    a = wal__heap_resize(heap, a, 0, 8);
    b = wal__heap_resize(heap, b, 8, 0);
    assert_non_null(a);
    assert_non_null(b);
    wal__heap_free(heap, a);
    wal__heap_free(heap, b);
}

TEST(heap__overflow_fails_without_allocating)
{
    struct ask ask = {0};
    const struct wal__heap heap = {.resize = note, .ctx = &ask};

    assert_null(wal__heap_resize(&heap, NULL, SIZE_MAX / 2, 3));
    assert_null(wal__heap_resize(&heap, NULL, 3, SIZE_MAX / 2));
    assert_int_equal(ask.calls, 0);
    assert_null(wal__heap_resize(&heap, NULL, SIZE_MAX / 3, 3));
    assert_int_equal(ask.calls, 1);
    assert_true(ask.size == SIZE_MAX / 3 * 3);
}

TEST(heap__no_memory_is_null)
{
    struct ask ask = {0};
    const struct wal__heap heap = {.resize = note, .ctx = &ask};

    assert_null(wal__heap_alloc(&heap, 7));
    assert_int_equal(ask.size, 7);
    assert_null(wal__heap_zalloc(&heap, 8));
    assert_int_equal(ask.size, 8);
}

TEST(heap__resize_to_zero_frees_and_null_is_ignored)
{
    struct ask ask = {.size = 1};
    const struct wal__heap heap = {.resize = note, .ctx = &ask};
    int byte;

    wal__heap_free(NULL, NULL);
    wal__heap_free(&heap, NULL);
    assert_int_equal(ask.calls, 0);
    wal__heap_free(&heap, &byte);
    assert_int_equal(ask.calls, 1);
    assert_ptr_equal(ask.at, &byte);
    assert_int_equal(ask.size, 0);
}
