/*
 * heap.h - the allocator interface of the engine. All allocations go through
 * it, so that a test can fail the Nth one. Any thread.
 */
#ifndef AGENTWAL_ENGINE_BASE_HEAP_H
#define AGENTWAL_ENGINE_BASE_HEAP_H

#include <stddef.h>
#include <stdint.h>

struct wal__heap {
    /* Allocates when block is NULL, frees when size is 0, else resizes. */
    void *(*resize)(void *ctx, void *block, size_t size);
    void *ctx;
};

/* The C library's heap. */
extern const struct wal__heap wal__heap_libc;

/* NULL means that memory is exhausted, also for size 0. A product count x size
 * that overflows counts as exhausted. Freeing NULL needs no heap. */
void *wal__heap_alloc(const struct wal__heap *heap, size_t size);
void *wal__heap_zalloc(const struct wal__heap *heap, size_t size);
void *wal__heap_resize(const struct wal__heap *heap, void *block, size_t count,
                       size_t size);
/* Returns the array with room for one more than `count` items: moved, with
 * *capacity doubled, when it was full. NULL when memory is exhausted; the array
 * and *capacity are then unchanged. */
void *wal__heap_grow_array(const struct wal__heap *heap, void *items,
                           uint32_t count, uint32_t *capacity, size_t size);
void wal__heap_free(const struct wal__heap *heap, void *block);

#endif
