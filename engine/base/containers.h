/*
 * containers.h - a set of numbers, a map from hashes to numbers, a table of ids, and heapsort.
 */
#ifndef AGENTWAL_ENGINE_BASE_CONTAINERS_H
#define AGENTWAL_ENGINE_BASE_CONTAINERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agentwal.h"
#include "engine/base/heap.h"

/*
 * A set of 32-bit numbers, one bit each, in pages that are allocated on demand: 4 KiB for 32,768
 * consecutive numbers. Suits numbers that are assigned in sequence. One writer; concurrent readers
 * need the caller's lock.
 */
struct wal__bitset {
    const struct wal__heap *heap;
    uint64_t **pages; /* a null page has no members */
    uint32_t page_count;
};

void wal__bitset_init(struct wal__bitset *bits, const struct wal__heap *heap);
void wal__bitset_deinit(struct wal__bitset *bits);

/* Allocates the page of the number, so that wal__bitset_set cannot fail. WAL_ENOMEM leaves the set
 * unchanged. */
enum wal_status wal__bitset_reserve(struct wal__bitset *bits, uint32_t number) WAL_MUST_USE;

/* Adds a number whose page was reserved. */
void wal__bitset_set(struct wal__bitset *bits, uint32_t number);

bool wal__bitset_contains(const struct wal__bitset *bits, uint32_t number);

/*
 * An open-addressing multimap from a 64-bit hash to a 32-bit value, 12 bytes a slot. Keys with
 * equal hashes are distinct entries, so the caller compares the keys that the values refer to. One
 * writer; concurrent readers need the caller's lock.
 */
struct wal__hashmap {
    const struct wal__heap *heap;
    uint64_t *hashes;
    uint32_t *values;  /* value + 1; 0: free slot */
    uint32_t capacity; /* a power of two, or 0 */
    uint32_t count;
};

void wal__hashmap_init(struct wal__hashmap *map, const struct wal__heap *heap);
void wal__hashmap_deinit(struct wal__hashmap *map);

/* Ensures room for `more` further values: that many adds cannot fail. */
enum wal_status wal__hashmap_reserve(struct wal__hashmap *map, uint32_t more) WAL_MUST_USE;

/* Adds a value (at most UINT32_MAX - 1); duplicates are separate entries. */
enum wal_status wal__hashmap_add(struct wal__hashmap *map, uint64_t hash,
                                 uint32_t value) WAL_MUST_USE;

/* Iterates the values of one hash: set *cursor to 0 first; false at the end. The order is
 * undefined; an add or reserve invalidates the cursor. */
bool wal__hashmap_find(const struct wal__hashmap *map, uint64_t hash, uint32_t *cursor,
                       uint32_t *value);

/*
 * Items ordered by a key in an array: sorted at once, or popped one by one from a binary heap by a
 * caller that may stop early. Nothing is allocated. Equal keys are ordered by tie, then by value.
 * Any thread; the array belongs to the caller.
 */
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
struct wal__heapsort_item wal__heapsort_pop(struct wal__heapsort_item *items, uint32_t *count);

/*
 * A hash table from ids to what has them (SPEC.md 2.11). A slot holds 32 bits of the hash and the
 * record's position, so that a look-up reads one cache line of the table and can prefetch the
 * record. Ids with equal bits have separate slots: the caller compares the ids. One writer, or any
 * readers.
 */
struct wal__id_slot {
    uint64_t position;
    uint32_t hash;   /* of the id's hash */
    uint32_t number; /* the caller's, from 1; 0: free slot */
};

/* Zeroed: empty. */
struct wal__id_table {
    struct wal__id_slot *slots;
    uint32_t count;
    uint32_t capacity; /* a power of two, or 0 */
};

/* Frees the slots and empties the table. */
void wal__id_table_clear(struct wal__id_table *table, const struct wal__heap *heap);

/* Reserves room for `count` ids in all. WAL_ENOMEM also beyond 2^31 slots. */
enum wal_status wal__id_table_reserve(struct wal__id_table *table, const struct wal__heap *heap,
                                      uint64_t count) WAL_MUST_USE;
/* Adds an id; the room is reserved. */
void wal__id_table_add(struct wal__id_table *table, uint64_t id_hash, uint64_t position,
                       uint32_t number);

/* Adds the ids of another table whose numbers are at most `last`. */
enum wal_status wal__id_table_merge(struct wal__id_table *table, const struct wal__heap *heap,
                                    const struct wal__id_table *from, uint32_t last) WAL_MUST_USE;

/* The slot with this hash and a number of at most `last`, after *skip others; decrements *skip for
 * each of those. Null when there is none. */
const struct wal__id_slot *wal__id_table_find(const struct wal__id_table *table, uint64_t id_hash,
                                              uint32_t last, uint32_t *skip);

/*
 * The rank of the first of `count` items of `size` bytes whose uint64_t at
 * `offset` is at least the key; `count` if there is none. They ascend by it.
 */
static inline size_t wal__lower_bound(const void *items, size_t count, size_t size, size_t offset,
                                      uint64_t key)
{
    size_t low = 0;

    while (low < count) {
        size_t middle = low + (count - low) / 2;
        uint64_t at;

        memcpy(&at, (const uint8_t *)items + middle * size + offset, sizeof(at));
        if (at < key) {
            low = middle + 1;
        } else {
            count = middle;
        }
    }
    return low;
}

/* Orders items by the uint64_t at their beginning: for qsort and bsearch. */
static inline int wal__compare_u64(const void *a, const void *b)
{
    uint64_t x;
    uint64_t y;

    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return x < y ? -1 : x > y;
}

/* Orders items by the two uint64_t at their beginning. */
static inline int wal__compare_u64_pair(const void *a, const void *b)
{
    int order = wal__compare_u64(a, b);

    return order != 0 ? order
                      : wal__compare_u64((const uint8_t *)a + sizeof(uint64_t),
                                         (const uint8_t *)b + sizeof(uint64_t));
}

/* Sorts items of `size` bytes. */
static inline void wal__buf_sort(struct wal__buf *items, size_t size,
                                 int (*compare)(const void *a, const void *b))
{
    if (items->size > 0) {
        qsort(items->data, items->size / size, size, compare);
    }
}

#endif
