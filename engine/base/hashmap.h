/*
 * hashmap.h - an open-addressing multimap from a 64-bit hash to a 32-bit value,
 * 12 bytes a slot. Keys with equal hashes are distinct entries, so the caller
 * compares the keys that the values refer to. One writer; concurrent readers
 * need the caller's lock.
 */
#ifndef AGENTWAL_ENGINE_BASE_HASHMAP_H
#define AGENTWAL_ENGINE_BASE_HASHMAP_H

#include <stdbool.h>
#include <stdint.h>

#include "agentwal.h"
#include "engine/base/heap.h"

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
enum wal_status wal__hashmap_reserve(struct wal__hashmap *map,
                                     uint32_t more) WAL_MUST_USE;

/* Adds a value (at most UINT32_MAX - 1); duplicates are separate entries. */
enum wal_status wal__hashmap_add(struct wal__hashmap *map, uint64_t hash,
                                 uint32_t value) WAL_MUST_USE;

/* Iterates the values of one hash: set *cursor to 0 first; false at the end.
 * The order is undefined; an add or reserve invalidates the cursor. */
bool wal__hashmap_find(const struct wal__hashmap *map, uint64_t hash,
                       uint32_t *cursor, uint32_t *value);

#endif
