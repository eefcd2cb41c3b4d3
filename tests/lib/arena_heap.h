/*
 * arena_heap.h - a struct wal__heap whose blocks can be dropped all at once: what remains of an
 * engine whose simulated process was killed. Each block is the C library's own, so that sanitizers
 * still see its ends. Any thread.
 */
#ifndef AGENTWAL_TESTS_LIB_ARENA_HEAP_H
#define AGENTWAL_TESTS_LIB_ARENA_HEAP_H

#include <pthread.h>

#include "engine/base/heap.h"

struct arena_block;

struct arena_heap {
    struct wal__heap heap; /* to hand to the engine */
    pthread_mutex_t mutex;
    struct arena_block *blocks;
};

/* The struct must stay where it is while its heap is in use. */
void arena_heap_init(struct arena_heap *arena);

/* How many blocks are not freed. */
size_t arena_heap_count(struct arena_heap *arena);

/* Frees every block; the heap can be used again. */
void arena_heap_free_all(struct arena_heap *arena);
void arena_heap_deinit(struct arena_heap *arena);

#endif
