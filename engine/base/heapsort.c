/*
 * heapsort.c - heapsort and its heap (order.h). No section of SPEC.md.
 *
 * Invariant of a heap: no item is greater than items[(i - 1) / 2], the one
 * above it. Any thread; the array is the caller's.
 */
#include "engine/base/heapsort.h"

#include <stdbool.h>

#include "format/bytes/assert.h"

static bool is_less(const struct wal__heapsort_item *a,
                    const struct wal__heapsort_item *b)
{
    return a->key < b->key || (a->key == b->key && a->value < b->value);
}

/* Lets `item` sift_down from the place `at`, which is free. */
static void sift_down(struct wal__heapsort_item *items, uint32_t count,
                      uint32_t at, struct wal__heapsort_item item)
{
    uint64_t child = 2 * (uint64_t)at + 1;

    while (child < count) {
        if (child + 1 < count && is_less(&items[child], &items[child + 1])) {
            child++;
        }
        if (!is_less(&item, &items[child])) {
            break;
        }
        items[at] = items[child];
        at = (uint32_t)child;
        child = 2 * child + 1;
    }
    items[at] = item;
}

void wal__heapsort_make_heap(struct wal__heapsort_item *items, uint32_t count)
{
    for (uint32_t at = count / 2; at > 0; at--) {
        sift_down(items, count, at - 1, items[at - 1]);
    }
}

struct wal__heapsort_item wal__heapsort_pop(struct wal__heapsort_item *items,
                                            uint32_t *count)
{
    WAL__ASSERT(*count > 0);

    struct wal__heapsort_item top = items[0];

    (*count)--;
    if (*count > 0) {
        sift_down(items, *count, 0, items[*count]);
    }
    return top;
}

void wal__heapsort_sort(struct wal__heapsort_item *items, uint32_t count)
{
    wal__heapsort_make_heap(items, count);
    while (count > 1) {
        struct wal__heapsort_item top = wal__heapsort_pop(items, &count);

        items[count] = top;
    }
}
