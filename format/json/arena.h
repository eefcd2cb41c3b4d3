/*
 * arena.h - an arena allocator: memory for the time in which a line or a session is read or
 * written.
 *
 * Single allocations are not freed. The owner of the arena frees all of its blocks together.
 *
 * Invariant: an allocation does not move until the owner frees the blocks.
 *
 * Threads: one thread at a time per arena.
 */
#ifndef AGENTWAL_FORMAT_JSON_ARENA_H
#define AGENTWAL_FORMAT_JSON_ARENA_H

#include "format/json/json_text.h"

/* The owner sets the first two fields and zeroes the others. */
struct wal__arena {
    /* Allocates a block of at least `size` bytes, aligned as by malloc, and sets *got to its size.
     * NULL: no memory. */
    void *(*alloc_block)(void *ctx, size_t size, size_t *got);
    void *ctx;
    uint8_t *at; /* unused part of the newest block */
    uint8_t *end;
};

/* Returns uninitialised memory, aligned for any type; NULL: no memory. */
void *wal__arena_alloc(struct wal__arena *arena, size_t size);

/* Returns zeroed memory; NULL: no memory. */
void *wal__arena_calloc(struct wal__arena *arena, size_t size);

/* Returns the array with room for another item: `items`, or a copy of it with a greater *capacity.
 * NULL: no memory. */
void *wal__arena_grow(struct wal__arena *arena, void *items, size_t count, size_t *capacity,
                      size_t item_size);

/* Copies the bytes. The result's data is NULL if there is no memory. */
struct wal__json_span wal__arena_copy(struct wal__arena *arena, struct wal__json_span span);

/* Copies a C string. NULL: no memory. */
char *wal__arena_copy_text(struct wal__arena *arena, const char *text);

/* Decodes a JSON string to its text. Without escapes the result points into
 * `string`. Its data is NULL if there is no memory or `string` is no string. */
struct wal__json_span wal__arena_unescape(struct wal__arena *arena, struct wal__json_span string);

/* Puts quotes around the characters of a JSON string. The result's data is NULL if there is no
 * memory. */
struct wal__json_span wal__arena_quote(struct wal__arena *arena, struct wal__json_span characters);

/* Encodes a text as a JSON string with quotes. The result's data is NULL if there is no memory or
 * the text is not UTF-8. */
struct wal__json_span wal__arena_escape(struct wal__arena *arena, struct wal__json_span text);

#endif
