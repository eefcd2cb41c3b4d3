/*
 * faulty_heap.h - a struct wal__heap over another that fails the Nth allocation, once or from then
 * on, and counts. Freeing and shrinking to nothing never fail. Any thread.
 */
#ifndef AGENTWAL_TESTS_LIB_FAULTY_HEAP_H
#define AGENTWAL_TESTS_LIB_FAULTY_HEAP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/base/heap.h"

struct faulty_heap {
    struct wal__heap heap; /* to hand to the engine */
    const struct wal__heap *under;
    _Atomic uint64_t allocations; /* asked for, failed ones too; resizing
                                   * counts */
    _Atomic uint64_t failures;
    _Atomic int64_t live; /* blocks not freed */
    uint64_t fail_at;     /* this allocation, from 1 on; 0: none */
    bool sticky;          /* and every one after it */
};

/* The struct must stay where it is while its heap is in use. */
void faulty_heap_init(struct faulty_heap *faulty, const struct wal__heap *under);

/* Fails the nth allocation from now, 1 being the next; 0: none. Not while other threads use the
 * heap. */
void faulty_heap_fail(struct faulty_heap *faulty, uint64_t nth, bool sticky);

#endif
