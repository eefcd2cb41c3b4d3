/*
 * heap.h - the allocator interface of the engine. All allocations go through
 * it, so that a test can fail the Nth one. Any thread.
 */
#ifndef AGENTWAL_ENGINE_BASE_HEAP_H
#define AGENTWAL_ENGINE_BASE_HEAP_H

#include <stddef.h>
#include <stdint.h>

#include "agentwal.h"
#include "format/json/arena.h"

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

/* --- arenas ------------------------------------------------------------- */

/* Arenas whose blocks are on the heap, and copies of texts. One thread at a
 * time per arena. */

/* Must not move in memory: `arena` points back to it. */
struct wal__heap_arena {
    struct wal__arena arena;
    const struct wal__heap *heap;
    void **blocks;
    uint32_t count;
    uint32_t capacity;
    size_t first_size; /* bytes of the first block */
    bool has_failed;   /* an allocation failed */
};

void wal__heap_arena_init(struct wal__heap_arena *arena,
                          const struct wal__heap *heap);

/* Frees everything allocated from the arena; keeps one block. */
void wal__heap_arena_reset(struct wal__heap_arena *arena);
void wal__heap_arena_deinit(struct wal__heap_arena *arena);

/* Quotes the text as a JSON string; empty for an empty text; data is NULL
 * without memory. */
struct wal__json_span wal__json_quote(struct wal__arena *arena,
                                      struct wal_slice text);

/* Returns the text as a slice; empty for NULL. */
struct wal_slice wal__slice_from_text(const char *text);
bool wal__slice_equal(struct wal_slice a, struct wal_slice b);

/* Copies the bytes and appends a NUL; NULL: no memory. */
char *wal__heap_copy_text(const struct wal__heap *heap, const void *data,
                          size_t size);

#endif
