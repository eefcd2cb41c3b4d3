/*
 * heapsort.h - numbers ordered by a key, in an array: sorted whole, or as a
 * heap that gives them one by one, for those who may stop early. No section of
 * SPEC.md. Nothing is allocated. Equal keys are ordered by value.
 */
#ifndef AGENTWAL_ENGINE_BASE_HEAPSORT_H
#define AGENTWAL_ENGINE_BASE_HEAPSORT_H

#include <stdint.h>

struct wal__heapsort_item {
    uint64_t key;
    uint32_t value;
};

/* Ascending, in place; n log n whatever the input. */
void wal__heapsort_sort(struct wal__heapsort_item *items, uint32_t count);

/* Makes the items a heap whose greatest is items[0], in linear time. */
void wal__heapsort_make_heap(struct wal__heapsort_item *items, uint32_t count);

/* Takes the greatest out of a heap that is not empty. */
struct wal__heapsort_item wal__heapsort_pop(struct wal__heapsort_item *items,
                                            uint32_t *count);

#endif
