/*
 * hashmap.c - a multimap with linear probing (hashmap.h). No section of
 * SPEC.md. Invariants: at most three quarters of the slots are used, so that
 * every probe ends at a free slot; nothing is ever removed, so that a probe
 * from a hash's home slot passes all its values before a free slot. One writer.
 */
#include "engine/base/hashmap.h"

#include <string.h>

#include "format/bytes/assert.h"

/* The maximum keeps slot + 1 within the 32 bits of a cursor. */
#define CAPACITY_MIN UINT32_C(16)
#define CAPACITY_MAX (UINT32_C(1) << 31)

void wal__hashmap_init(struct wal__hashmap *map, const struct wal__heap *heap)
{
    *map = (struct wal__hashmap){.heap = heap};
}

void wal__hashmap_deinit(struct wal__hashmap *map)
{
    wal__heap_free(map->heap, map->hashes);
    wal__heap_free(map->heap, map->values);
    *map = (struct wal__hashmap){.heap = map->heap};
}

static bool fits_load_factor(uint32_t capacity, uint64_t count)
{
    return count <= capacity / 4 * UINT64_C(3);
}

/* Where a probe begins. Sequential numbers are used as hashes too; unmixed they
 * would form one cluster, which every miss would scan. */
static uint32_t home_slot(uint64_t hash, uint32_t mask)
{
    return (uint32_t)(hash * UINT64_C(0x9e3779b97f4a7c15) >> 32) & mask;
}

/* `stored` is a value + 1. There is a free slot. */
static void insert_slot(struct wal__hashmap *map, uint64_t hash,
                        uint32_t stored)
{
    uint32_t mask = map->capacity - 1;
    uint32_t slot = home_slot(hash, mask);

    WAL__ASSERT(map->count < map->capacity && stored != 0);
    while (map->values[slot] != 0) {
        slot = (slot + 1) & mask;
    }
    map->hashes[slot] = hash;
    map->values[slot] = stored;
    map->count++;
}

static enum wal_status rehash(struct wal__hashmap *map, uint32_t capacity)
{
    struct wal__hashmap bigger = {.heap = map->heap, .capacity = capacity};

    bigger.hashes =
        wal__heap_resize(map->heap, NULL, capacity, sizeof(*bigger.hashes));
    bigger.values =
        wal__heap_resize(map->heap, NULL, capacity, sizeof(*bigger.values));
    if (bigger.hashes == NULL || bigger.values == NULL) {
        wal__hashmap_deinit(&bigger);
        return WAL_ENOMEM;
    }
    memset(bigger.values, 0, capacity * sizeof(*bigger.values));
    for (uint32_t i = 0; i < map->capacity; i++) {
        if (map->values[i] != 0) {
            insert_slot(&bigger, map->hashes[i], map->values[i]);
        }
    }
    WAL__ASSERT(bigger.count == map->count);
    wal__hashmap_deinit(map);
    *map = bigger;
    return WAL_OK;
}

enum wal_status wal__hashmap_reserve(struct wal__hashmap *map, uint32_t more)
{
    uint64_t needed = (uint64_t)map->count + more;
    uint32_t capacity = map->capacity;

    if (fits_load_factor(capacity, needed)) {
        return WAL_OK;
    }
    if (!fits_load_factor(CAPACITY_MAX, needed)) {
        return WAL_ENOMEM;
    }
    if (capacity == 0) {
        capacity = CAPACITY_MIN;
    }
    while (!fits_load_factor(capacity, needed)) {
        capacity *= 2;
    }
    return rehash(map, capacity);
}

enum wal_status wal__hashmap_add(struct wal__hashmap *map, uint64_t hash,
                                 uint32_t value)
{
    WAL__ASSERT(value < UINT32_MAX);

    enum wal_status status = wal__hashmap_reserve(map, 1);

    if (status != WAL_OK) {
        return status;
    }
    insert_slot(map, hash, value + 1);
    return WAL_OK;
}

bool wal__hashmap_find(const struct wal__hashmap *map, uint64_t hash,
                       uint32_t *cursor, uint32_t *value)
{
    if (map->capacity == 0) {
        return false;
    }

    /* The cursor is the slot after the one found last. */
    uint32_t mask = map->capacity - 1;
    uint32_t slot = *cursor == 0 ? home_slot(hash, mask) : *cursor & mask;

    while (map->values[slot] != 0) {
        if (map->hashes[slot] == hash) {
            *cursor = slot + 1;
            *value = map->values[slot] - 1;
            return true;
        }
        slot = (slot + 1) & mask;
    }
    return false;
}
