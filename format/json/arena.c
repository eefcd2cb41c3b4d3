/*
 * arena.c - an arena allocator (arena.h).
 *
 * Invariant: at <= end, and `at` is aligned.
 */
#include "format/json/arena.h"

#include <stdalign.h>
#include <string.h>

#include "format/bytes/assert.h"
#include "format/json/json_text.h"

#define ALIGNMENT      alignof(max_align_t)
#define FIRST_CAPACITY 4 /* of an array that grows */

void *wal__arena_alloc(struct wal__arena *arena, size_t size)
{
    size_t got = 0;
    void *memory;

    if (size > SIZE_MAX - ALIGNMENT) {
        return NULL;
    }
    size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if ((size_t)(arena->end - arena->at) < size || arena->at == NULL) {
        uint8_t *block = arena->alloc_block(arena->ctx, size, &got);
        if (block == NULL) {
            return NULL;
        }
        WAL__ASSERT(got >= size && (uintptr_t)block % ALIGNMENT == 0);
        arena->at = block;
        arena->end = block + got;
    }
    WAL__ASSERT((size_t)(arena->end - arena->at) >= size);
    memory = arena->at;
    arena->at += size;
    return memory;
}

void *wal__arena_calloc(struct wal__arena *arena, size_t size)
{
    void *memory = wal__arena_alloc(arena, size);

    if (memory != NULL) {
        memset(memory, 0, size);
    }
    return memory;
}

void *wal__arena_grow(struct wal__arena *arena, void *items, size_t count, size_t *capacity,
                      size_t item_size)
{
    size_t larger = *capacity > 0 ? 2 * *capacity : FIRST_CAPACITY;
    void *copy;

    WAL__ASSERT(count <= *capacity);
    if (count < *capacity) {
        return items;
    }
    copy = wal__arena_alloc(arena, larger * item_size);
    if (copy == NULL) {
        return NULL;
    }
    if (count > 0) {
        memcpy(copy, items, count * item_size);
    }
    *capacity = larger;
    return copy;
}

struct wal__json_span wal__arena_copy(struct wal__arena *arena, struct wal__json_span span)
{
    uint8_t *copy = wal__arena_alloc(arena, span.size);

    if (copy == NULL) {
        return (struct wal__json_span){NULL, 0};
    }
    if (span.size > 0) {
        memcpy(copy, span.data, span.size);
    }
    return (struct wal__json_span){copy, span.size};
}

char *wal__arena_copy_text(struct wal__arena *arena, const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = wal__arena_alloc(arena, size);

    return copy != NULL ? memcpy(copy, text, size) : NULL;
}

struct wal__json_span wal__arena_unescape(struct wal__arena *arena, struct wal__json_span string)
{
    const struct wal__json_span none = {NULL, 0};
    uint8_t *text;
    size_t size = 0;

    if (string.size < 2 || string.data[0] != '"') {
        return none;
    }
    if (memchr(string.data, '\\', string.size) == NULL) {
        return (struct wal__json_span){string.data + 1, string.size - 2};
    }
    text = wal__arena_alloc(arena, string.size);
    if (text == NULL ||
        wal__json_unescape(string, text, string.size, &size, NULL) != WAL__JSON_OK) {
        return none;
    }
    WAL__ASSERT(size <= string.size - 2);
    return (struct wal__json_span){text, size};
}

struct wal__json_span wal__arena_quote(struct wal__arena *arena, struct wal__json_span characters)
{
    uint8_t *string = wal__arena_alloc(arena, characters.size + 2);

    if (string == NULL) {
        return (struct wal__json_span){NULL, 0};
    }
    string[0] = '"';
    if (characters.size > 0) {
        memcpy(string + 1, characters.data, characters.size);
    }
    string[characters.size + 1] = '"';
    return (struct wal__json_span){string, characters.size + 2};
}

struct wal__json_span wal__arena_escape(struct wal__arena *arena, struct wal__json_span text)
{
    const struct wal__json_span none = {NULL, 0};
    size_t size = 0;
    uint8_t *string;

    if (wal__json_escaped_size(text, &size) != WAL__JSON_OK) {
        return none;
    }
    string = wal__arena_alloc(arena, size);
    if (string == NULL || wal__json_escape(text, string, size, &size) != WAL__JSON_OK) {
        return none;
    }
    return (struct wal__json_span){string, size};
}
