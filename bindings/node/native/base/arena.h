/*
 * arena.h - memory that is freed at once: the copies of a call's arguments.
 * One thread at a time.
 */
#ifndef AGENTWAL_NODE_ARENA_H
#define AGENTWAL_NODE_ARENA_H

#include <stddef.h>
#include <stdint.h>

struct arena_block;

/* Zeroed, it is empty. */
struct arena {
    struct arena_block *blocks; /* the one that is filled now is first */
    uint8_t *next;              /* first free byte of it */
    size_t room;                /* free bytes of it */
};

/* Returns `size` bytes, aligned for every type and not zeroed, or NULL without
 * memory. They hold until the arena is reset or destroyed. */
void *arena_alloc(struct arena *arena, size_t size);

/* As arena_alloc for `count` items of `size` bytes, zeroed. */
void *arena_calloc(struct arena *arena, size_t count, size_t size);

/* Returns the free bytes of the first block, not aligned, and their number,
 * which is 0 without memory. arena_take then takes the first of them. */
uint8_t *arena_room(struct arena *arena, size_t *size);
void arena_take(struct arena *arena, size_t size);

/* Frees everything allocated from it, but for one block that is kept. */
void arena_reset(struct arena *arena);

/* Frees everything; the arena is then empty. */
void arena_destroy(struct arena *arena);

#endif
