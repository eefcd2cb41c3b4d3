/*
 * hashmap.h - an open-addressing multimap from a 64-bit hash to a 32-bit value,
 * 12 bytes a slot: whoever looks up compares the keys behind the values, since
 * hashes may be equal. One writer; readers beside it need the caller's lock.
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

/* Makes room for `more` further values, so that as many adds cannot fail. */
enum wal_status wal__hashmap_reserve(struct wal__hashmap *map,
                                     uint32_t more) WAL_MUST_USE;

/* Adds a value (at most UINT32_MAX - 1); duplicates stay apart. */
enum wal_status wal__hashmap_add(struct wal__hashmap *map, uint64_t hash,
                                 uint32_t value) WAL_MUST_USE;

/* Walks the values of one hash: set *cursor to 0 first; false at the end. The
 * order is not defined; adding or reserving ends a walk. */
bool wal__hashmap_find(const struct wal__hashmap *map, uint64_t hash,
                       uint32_t *cursor, uint32_t *value);

#endif
