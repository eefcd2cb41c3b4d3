/*
 * heap_arena.h - arenas whose blocks are on the heap, and copies of texts.
 *
 * Threads: one thread at a time per arena.
 */
#ifndef AGENTWAL_ENGINE_BASE_HEAP_ARENA_H
#define AGENTWAL_ENGINE_BASE_HEAP_ARENA_H

#include "agentwal.h"
#include "engine/base/heap.h"
#include "format/json/arena.h"

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
