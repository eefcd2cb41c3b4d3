/*
 * heap.c - the allocator of the engine (heap.h). No section of SPEC.md.
 * Invariant: NULL always means that memory is exhausted, for any size. Any
 * thread.
 */
#include "engine/base/heap.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "format/bytes/assert.h"

static void *libc_resize(void *ctx, void *block, size_t size)
{
    (void)ctx;
    if (size == 0) {
        free(block);
        return NULL;
    }
    return realloc(block, size);
}

const struct wal__heap wal__heap_libc = {.resize = libc_resize};

void *wal__heap_alloc(const struct wal__heap *heap, size_t size)
{
    return wal__heap_resize(heap, NULL, size, 1);
}

void *wal__heap_zalloc(const struct wal__heap *heap, size_t size)
{
    void *block = wal__heap_alloc(heap, size);

    if (block != NULL) {
        memset(block, 0, size);
    }
    return block;
}

void *wal__heap_resize(const struct wal__heap *heap, void *block, size_t count,
                       size_t size)
{
    if (size != 0 && count > SIZE_MAX / size) {
        return NULL;
    }

    size_t bytes = count * size;

    /* A size of zero would free the block. */
    return heap->resize(heap->ctx, block, bytes == 0 ? 1 : bytes);
}

void *wal__heap_grow_array(const struct wal__heap *heap, void *items,
                           uint32_t count, uint32_t *capacity, size_t size)
{
    uint32_t bigger = *capacity == 0 ? 8 : *capacity * 2;

    WAL__ASSERT(count <= *capacity);
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

void wal__heap_free(const struct wal__heap *heap, void *block)
{
    /* A zeroed struct has neither memory nor a heap. */
    if (block != NULL) {
        (void)heap->resize(heap->ctx, block, 0);
    }
}
