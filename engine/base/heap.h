/*
 * heap.h - the only allocator of the engine, so that a test can fail the Nth
 * allocation. Any thread.
 */
#ifndef AGENTWAL_ENGINE_BASE_HEAP_H
#define AGENTWAL_ENGINE_BASE_HEAP_H

#include <stddef.h>
#include <stdint.h>

struct wal__heap {
    void *(*resize)(void *ctx, void *at, size_t size); /* size 0 frees */
    void *ctx;
};

/* The C library's heap. */
extern const struct wal__heap wal__heap_libc;

/* Null only when there is no memory, also for size 0. count x size is checked
 * for overflow. Freeing null needs no heap. */
void *wal__heap_alloc(const struct wal__heap *heap, size_t size);
void *wal__heap_zalloc(const struct wal__heap *heap, size_t size);
void *wal__heap_resize(const struct wal__heap *heap, void *at, size_t count,
                       size_t size);
/* The items of an array with room for one more than `count`: moved, and
 * *capacity doubled, when there was none. Null without memory, and then the
 * old ones stand as they were. */
void *wal__heap_grow_array(const struct wal__heap *heap, void *items,
                           uint32_t count, uint32_t *capacity, size_t size);
void wal__heap_free(const struct wal__heap *heap, void *at);

#endif
