/*
 * heap.c - the allocator behind everything the engine keeps (heap.h). No
 * section of SPEC.md. Invariant: null always means that there is no memory,
 * whatever the size asked for. Any thread.
 */
#include "engine/base/heap.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void *libc_resize(void *ctx, void *at, size_t size)
{
    (void)ctx;
    if (size == 0) {
        free(at);
        return NULL;
    }
    return realloc(at, size);
}

const struct wal__heap wal__heap_libc = {.resize = libc_resize};

void *wal__heap_alloc(const struct wal__heap *heap, size_t size)
{
    return wal__heap_resize(heap, NULL, size, 1);
}

void *wal__heap_zalloc(const struct wal__heap *heap, size_t size)
{
    void *at = wal__heap_alloc(heap, size);

    if (at != NULL) {
        memset(at, 0, size);
    }
    return at;
}

void *wal__heap_resize(const struct wal__heap *heap, void *at, size_t count,
                       size_t size)
{
    if (size != 0 && count > SIZE_MAX / size) {
        return NULL;
    }

    size_t bytes = count * size;

    /* Nothing is asked for as one byte: zero would free. */
    return heap->resize(heap->ctx, at, bytes == 0 ? 1 : bytes);
}

void *wal__heap_grow_array(const struct wal__heap *heap, void *items,
                           uint32_t count, uint32_t *capacity, size_t size)
{
    uint32_t bigger = *capacity == 0 ? 8 : *capacity * 2;

    if (count < *capacity) {
        return items;
    }
    if (bigger < *capacity) {
        return NULL;
    }
    items = wal__heap_resize(heap, items, bigger, size);
    if (items != NULL) {
        *capacity = bigger;
    }
    return items;
}

void wal__heap_free(const struct wal__heap *heap, void *at)
{
    /* A zeroed struct has neither memory nor a heap. */
    if (at != NULL) {
        (void)heap->resize(heap->ctx, at, 0);
    }
}
