/*
 * walconv_arena - arenas on the heap.
 *
 * Invariant: of an arena that is reset again and again, one piece stays.
 *
 * Threads: a tool is one thread.
 */
#include "tools/walconv_arena.h"

#include <stdlib.h>

#include "tools/cli.h"

#define PIECE_SIZE 65536

static void *more(void *ctx, size_t size, size_t *got)
{
    struct walconv_arena *arena = ctx;

    *got = size > PIECE_SIZE ? size : PIECE_SIZE;
    arena->pieces = cli_room(arena->pieces, arena->count, &arena->capacity,
                             sizeof(arena->pieces[0]));
    arena->pieces[arena->count] = cli_alloc(*got);
    if (arena->count == 0) {
        arena->first = *got;
    }
    return arena->pieces[arena->count++];
}

void walconv_arena_init(struct walconv_arena *arena)
{
    *arena = (struct walconv_arena){.arena = {.more = more, .ctx = arena}};
}

void walconv_arena_reset(struct walconv_arena *arena)
{
    if (arena->count == 0) {
        return;
    }
    while (arena->count > 1) {
        free(arena->pieces[--arena->count]);
    }
    arena->arena.at = arena->pieces[0];
    arena->arena.end = arena->arena.at + arena->first;
}

void walconv_arena_deinit(struct walconv_arena *arena)
{
    while (arena->count > 0) {
        free(arena->pieces[--arena->count]);
    }
    free(arena->pieces);
    walconv_arena_init(arena);
}
