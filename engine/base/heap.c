/*
 * heap.c - the allocator of the engine, and arenas on it (heap.h). Invariants:
 * NULL always means that memory is exhausted, for any size; an arena that is
 * reset repeatedly keeps one block.
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

/* --- arenas ------------------------------------------------------------- */

#define BLOCK_SIZE 65536

static void *alloc_block(void *ctx, size_t size, size_t *got)
{
    struct wal__heap_arena *arena = ctx;
    void **blocks =
        wal__heap_grow_array(arena->heap, arena->blocks, arena->count,
                             &arena->capacity, sizeof(blocks[0]));
    void *block;

    if (blocks == NULL) {
        arena->has_failed = true;
        return NULL;
    }
    arena->blocks = blocks;
    size = size > BLOCK_SIZE ? size : BLOCK_SIZE;
    block = wal__heap_alloc(arena->heap, size);
    if (block == NULL) {
        arena->has_failed = true;
        return NULL;
    }
    if (arena->count == 0) {
        arena->first_size = size;
    }
    WAL__ASSERT(arena->count < arena->capacity);
    arena->blocks[arena->count++] = block;
    *got = size;
    return block;
}

void wal__heap_arena_init(struct wal__heap_arena *arena,
                          const struct wal__heap *heap)
{
    *arena = (struct wal__heap_arena){
        .arena = {.alloc_block = alloc_block, .ctx = arena}, .heap = heap};
}

void wal__heap_arena_reset(struct wal__heap_arena *arena)
{
    if (arena->count == 0) {
        return;
    }
    if (arena->first_size > BLOCK_SIZE) {
        /* Do not keep the memory of one large item. */
        wal__heap_arena_deinit(arena);
        return;
    }
    while (arena->count > 1) {
        wal__heap_free(arena->heap, arena->blocks[--arena->count]);
    }
    arena->arena.at = arena->blocks[0];
    arena->arena.end = arena->arena.at + arena->first_size;
}

void wal__heap_arena_deinit(struct wal__heap_arena *arena)
{
    while (arena->count > 0) {
        wal__heap_free(arena->heap, arena->blocks[--arena->count]);
    }
    wal__heap_free(arena->heap, arena->blocks);
    wal__heap_arena_init(arena, arena->heap);
}

struct wal__json_span wal__json_quote(struct wal__arena *arena,
                                      struct wal_slice text)
{
    struct wal__json_span span = {text.data, (size_t)text.size};

    return span.size > 0 ? wal__arena_escape(arena, span) : span;
}

struct wal_slice wal__slice_from_text(const char *text)
{
    return (struct wal_slice){text, text != NULL ? strlen(text) : 0};
}

bool wal__slice_equal(struct wal_slice a, struct wal_slice b)
{
    return a.size == b.size &&
           (a.size == 0 || memcmp(a.data, b.data, (size_t)a.size) == 0);
}

char *wal__heap_copy_text(const struct wal__heap *heap, const void *data,
                          size_t size)
{
    char *text = wal__heap_alloc(heap, size + 1);

    if (text != NULL) {
        memcpy(text, data, size);
        text[size] = '\0';
    }
    return text;
}
