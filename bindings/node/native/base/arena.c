/*
 * arena.c - blocks of memory (arena.h).
 */
#include "bindings/node/native/base/arena.h"

#include <stdlib.h>
#include <string.h>

enum {
    BLOCK_SIZE = 8 * 1024,
    ALIGNMENT = 16
};

struct arena_block {
    struct arena_block *older;
    size_t size; /* of bytes[] */
    _Alignas(ALIGNMENT) uint8_t bytes[];
};

static int add_block(struct arena *arena, size_t size)
{
    struct arena_block *block = malloc(sizeof(*block) + size);

    if (block == NULL) {
        return 0;
    }
    block->older = arena->blocks;
    block->size = size;
    arena->blocks = block;
    arena->next = block->bytes;
    arena->room = size;
    return 1;
}

void *arena_alloc(struct arena *arena, size_t size)
{
    size_t padding = (size_t)(-(uintptr_t)arena->next % ALIGNMENT);
    void *result;

    if (size > SIZE_MAX / 2) {
        return NULL;
    }
    if (arena->blocks == NULL || padding > arena->room ||
        size > arena->room - padding) {
        if (!add_block(arena, size > BLOCK_SIZE ? size : BLOCK_SIZE)) {
            return NULL;
        }
        padding = 0;
    }
    result = arena->next + padding;
    arena_take(arena, padding + size);
    return result;
}

void *arena_calloc(struct arena *arena, size_t count, size_t size)
{
    void *result;

    if (size != 0 && count > SIZE_MAX / 2 / size) {
        return NULL;
    }
    result = arena_alloc(arena, count * size);
    if (result != NULL) {
        memset(result, 0, count * size);
    }
    return result;
}

uint8_t *arena_room(struct arena *arena, size_t *size)
{
    if (arena->room == 0 && !add_block(arena, BLOCK_SIZE)) {
        *size = 0;
        return NULL;
    }
    *size = arena->room;
    return arena->next;
}

void arena_take(struct arena *arena, size_t size)
{
    arena->next += size;
    arena->room -= size;
}

/* Frees the blocks after the first one. */
static void free_older(struct arena_block *block)
{
    while (block->older != NULL) {
        struct arena_block *older = block->older;

        block->older = older->older;
        free(older);
    }
}

void arena_reset(struct arena *arena)
{
    if (arena->blocks == NULL) {
        return;
    }
    free_older(arena->blocks);
    if (arena->blocks->size > BLOCK_SIZE) {
        arena_destroy(arena);
        return;
    }
    arena->next = arena->blocks->bytes;
    arena->room = arena->blocks->size;
}

void arena_destroy(struct arena *arena)
{
    if (arena->blocks != NULL) {
        free_older(arena->blocks);
        free(arena->blocks);
    }
    *arena = (struct arena){0};
}
