/*
 * arena_heap.c - see arena_heap.h. Invariant: every block is in the list once, and its neighbours
 * point to it.
 */
#include "tests/lib/arena_heap.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

struct arena_block {
    struct arena_block *next;
    struct arena_block *previous;
    max_align_t data[];
};

static struct arena_block *block_of(void *at)
{
    return (struct arena_block *)((char *)at - offsetof(struct arena_block, data));
}

static void unlink_block(struct arena_heap *arena, const struct arena_block *block)
{
    if (block->previous != NULL) {
        block->previous->next = block->next;
    } else {
        arena->blocks = block->next;
    }
    if (block->next != NULL) {
        block->next->previous = block->previous;
    }
}

static void link_block(struct arena_heap *arena, struct arena_block *block)
{
    block->previous = NULL;
    block->next = arena->blocks;
    if (block->next != NULL) {
        block->next->previous = block;
    }
    arena->blocks = block;
}

static void *resize_locked(struct arena_heap *arena, void *at, size_t size)
{
    struct arena_block *block = at == NULL ? NULL : block_of(at);

    if (block != NULL) {
        unlink_block(arena, block);
    }
    if (size == 0) {
        free(block);
        return NULL;
    }

    struct arena_block *result = NULL;

    if (size <= SIZE_MAX - sizeof(*result)) {
        result = realloc(block, sizeof(*result) + size);
    }
    if (result != NULL) {
        link_block(arena, result);
    } else if (block != NULL) {
        link_block(arena, block);
    }
    return result == NULL ? NULL : result->data;
}

static void *resize(void *ctx, void *at, size_t size)
{
    struct arena_heap *arena = ctx;

    pthread_mutex_lock(&arena->mutex);

    void *result = resize_locked(arena, at, size);

    pthread_mutex_unlock(&arena->mutex);
    return result;
}

void arena_heap_init(struct arena_heap *arena)
{
    arena->heap = (struct wal__heap){.resize = resize, .ctx = arena};
    arena->blocks = NULL;
    (void)pthread_mutex_init(&arena->mutex, NULL);
}

size_t arena_heap_count(struct arena_heap *arena)
{
    size_t count = 0;

    pthread_mutex_lock(&arena->mutex);
    for (const struct arena_block *block = arena->blocks; block != NULL; block = block->next) {
        count++;
    }
    pthread_mutex_unlock(&arena->mutex);
    return count;
}

void arena_heap_free_all(struct arena_heap *arena)
{
    pthread_mutex_lock(&arena->mutex);
    while (arena->blocks != NULL) {
        struct arena_block *block = arena->blocks;

        arena->blocks = block->next;
        free(block);
    }
    pthread_mutex_unlock(&arena->mutex);
}

void arena_heap_deinit(struct arena_heap *arena)
{
    arena_heap_free_all(arena);
    (void)pthread_mutex_destroy(&arena->mutex);
}
