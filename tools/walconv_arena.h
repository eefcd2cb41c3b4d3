/*
 * walconv_arena.h - arenas on the heap.
 *
 * Threads: a tool is one thread.
 */
#ifndef AGENTWAL_TOOLS_WALCONV_ARENA_H
#define AGENTWAL_TOOLS_WALCONV_ARENA_H

#include "format/jsonl/arena.h"

struct walconv_arena {
    struct wal__arena arena;
    void **pieces;
    size_t count;
    size_t capacity;
    size_t first; /* bytes of the first piece */
};

void walconv_arena_init(struct walconv_arena *arena);

/* Takes everything back; what it gave is gone. */
void walconv_arena_reset(struct walconv_arena *arena);
void walconv_arena_deinit(struct walconv_arena *arena);

#endif
