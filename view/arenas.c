/*
 * arenas.c - arenas on the heap.
 *
 * Invariant: of an arena that is reset again and again, one piece stays.
 *
 * Threads: one thread at a time per arena.
 */
#include "view/arenas.h"

#include <string.h>

#define PIECE_SIZE 65536

static void *more(void *ctx, size_t size, size_t *got)
{
    struct wal__heap_arena *arena = ctx;
    void **pieces = wal__heap_room(arena->heap, arena->pieces, arena->count,
                                   &arena->capacity, sizeof(pieces[0]));
    void *piece;

    if (pieces == NULL) {
        arena->has_failed = true;
        return NULL;
    }
    arena->pieces = pieces;
    size = size > PIECE_SIZE ? size : PIECE_SIZE;
    piece = wal__heap_alloc(arena->heap, size);
    if (piece == NULL) {
        arena->has_failed = true;
        return NULL;
    }
    if (arena->count == 0) {
        arena->first = size;
    }
    arena->pieces[arena->count++] = piece;
    *got = size;
    return piece;
}

void wal__heap_arena_init(struct wal__heap_arena *arena,
                          const struct wal__heap *heap)
{
    *arena = (struct wal__heap_arena){.arena = {.more = more, .ctx = arena},
                                      .heap = heap};
}

void wal__heap_arena_reset(struct wal__heap_arena *arena)
{
    if (arena->count == 0) {
        return;
    }
    if (arena->first > PIECE_SIZE) {
        /* One item that was large is no reason to keep as much. */
        wal__heap_arena_deinit(arena);
        return;
    }
    while (arena->count > 1) {
        wal__heap_free(arena->heap, arena->pieces[--arena->count]);
    }
    arena->arena.at = arena->pieces[0];
    arena->arena.end = arena->arena.at + arena->first;
}

void wal__heap_arena_deinit(struct wal__heap_arena *arena)
{
    while (arena->count > 0) {
        wal__heap_free(arena->heap, arena->pieces[--arena->count]);
    }
    wal__heap_free(arena->heap, arena->pieces);
    wal__heap_arena_init(arena, arena->heap);
}

struct wal__json_span wal__quoted(struct wal__arena *arena,
                                  struct wal_slice text)
{
    struct wal__json_span span = {text.data, (size_t)text.size};

    return span.size > 0 ? wal__arena_escape(arena, span) : span;
}

struct wal_slice wal__slice(const char *text)
{
    return (struct wal_slice){text, strlen(text)};
}

char *wal__heap_text(const struct wal__heap *heap, const void *data,
                     size_t size)
{
    char *text = wal__heap_alloc(heap, size + 1);

    if (text != NULL) {
        memcpy(text, data, size);
        text[size] = '\0';
    }
    return text;
}
