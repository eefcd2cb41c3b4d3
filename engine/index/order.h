/*
 * order.h - numbers ordered by a key, in an array: sorted whole, or as a heap
 * that gives them one by one, for those who may stop early. No section of
 * SPEC.md. Nothing is allocated. Equal keys are ordered by value.
 */
#ifndef WAL_INDEX_ORDER_H
#define WAL_INDEX_ORDER_H

#include <stdint.h>

struct wal__order_item {
    uint64_t key;
    uint32_t value;
};

/* Ascending, in place; n log n whatever the input. */
void wal__order_sort(struct wal__order_item *items, uint32_t count);

/* Makes the items a heap whose greatest is items[0], in linear time. */
void wal__order_heap(struct wal__order_item *items, uint32_t count);

/* Takes the greatest out of a heap that is not empty. */
struct wal__order_item wal__order_pop(struct wal__order_item *items,
                                      uint32_t *count);

#endif
