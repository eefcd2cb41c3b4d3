/*
 * arena.h - memory that its owner gives in pieces and takes back at once.
 *
 * What needs room for as long as a line, or a session, is read or written
 * takes it here, and never gives it back; the owner does, for all together.
 *
 * Invariant: what was given stays where it is until the owner takes it back.
 *
 * Threads: one thread at a time per arena.
 */
#ifndef AGENTWAL_FORMAT_JSON_ARENA_H
#define AGENTWAL_FORMAT_JSON_ARENA_H

#include "format/json/json_text.h"

/* The owner sets the first two fields and zeroes the others. */
struct wal__arena {
    /* Gives a piece of at least `size` bytes, aligned as malloc does, and sets
     * *got to what it has; NULL when there is no memory. */
    void *(*alloc_block)(void *ctx, size_t size, size_t *got);
    void *ctx;
    uint8_t *at;
    uint8_t *end;
};

/* Aligned for anything, not cleared; NULL when there is no memory. */
void *wal__arena_alloc(struct wal__arena *arena, size_t size);

/* The same, all bytes 0. */
void *wal__arena_calloc(struct wal__arena *arena, size_t size);

/* A copy of the bytes; data is NULL when there is no memory. */
struct wal__json_span wal__arena_copy(struct wal__arena *arena,
                                      struct wal__json_span span);

/* The text that a JSON string stands for, without quotes; data is NULL when
 * there is no memory or it is no string. Without escapes it is no copy. */
struct wal__json_span wal__arena_unescape(struct wal__arena *arena,
                                          struct wal__json_span string);

/* The JSON string, with quotes, of a text; data is NULL when there is no
 * memory or it is not UTF-8. */
struct wal__json_span wal__arena_escape(struct wal__arena *arena,
                                        struct wal__json_span text);

#endif
