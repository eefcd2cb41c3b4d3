/*
 * heapsort.h - items ordered by a key in an array: sorted at once, or popped
 * one by one from a binary heap by a caller that may stop early. No section of
 * SPEC.md. Nothing is allocated. Equal keys are ordered by tie, then by value.
 * Any thread; the array belongs to the caller.
 */
#ifndef AGENTWAL_ENGINE_BASE_HEAPSORT_H
#define AGENTWAL_ENGINE_BASE_HEAPSORT_H

#include <stdint.h>

struct wal__heapsort_item {
    uint64_t key;
    uint64_t tie;
    uint32_t value;
};

/* Sorts ascending, in place, in O(n log n) for any input. */
void wal__heapsort_sort(struct wal__heapsort_item *items, uint32_t count);

/* Orders the items as a heap whose greatest is items[0], in linear time. */
void wal__heapsort_make_heap(struct wal__heapsort_item *items, uint32_t count);

/* Removes and returns the greatest item of a heap that is not empty. */
struct wal__heapsort_item wal__heapsort_pop(struct wal__heapsort_item *items,
                                            uint32_t *count);

#endif
