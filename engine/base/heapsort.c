/*
 * heapsort.c - heapsort and its binary heap (heapsort.h). No section of
 * SPEC.md.
 *
 * Invariant of a heap: items[i] is not greater than its parent,
 * items[(i - 1) / 2]. Any thread; the array belongs to the caller.
 */
#include "engine/base/heapsort.h"

#include <stdbool.h>

#include "format/bytes/assert.h"

static bool is_less(const struct wal__heapsort_item *a,
                    const struct wal__heapsort_item *b)
{
    if (a->key != b->key) {
        return a->key < b->key;
    }
    return a->tie < b->tie || (a->tie == b->tie && a->value < b->value);
}

/* Places `item` in the subtree of the free slot `hole`. */
static void sift_down(struct wal__heapsort_item *items, uint32_t count,
                      uint32_t hole, struct wal__heapsort_item item)
{
    uint64_t child = 2 * (uint64_t)hole + 1;

    WAL__ASSERT(hole < count);

    while (child < count) {
        if (child + 1 < count && is_less(&items[child], &items[child + 1])) {
            child++;
        }
        if (!is_less(&item, &items[child])) {
            break;
        }
        items[hole] = items[child];
        hole = (uint32_t)child;
        child = 2 * child + 1;
    }
    items[hole] = item;
}

void wal__heapsort_make_heap(struct wal__heapsort_item *items, uint32_t count)
{
    for (uint32_t i = count / 2; i > 0; i--) {
        sift_down(items, count, i - 1, items[i - 1]);
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
