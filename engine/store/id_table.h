/*
 * id_table.h - a hash table from ids to what has them (SPEC.md 2.11). A slot
 * holds 32 bits of the hash and the record's position, so that a look-up reads
 * one cache line of the table and can prefetch the record. Ids with equal bits
 * have separate slots: the caller compares the ids.
 *
 * The caller's lock: one writer, or any readers.
 */
#ifndef AGENTWAL_ENGINE_STORE_ID_TABLE_H
#define AGENTWAL_ENGINE_STORE_ID_TABLE_H

#include <stdbool.h>

#include "agentwal.h"
#include "engine/base/heap.h"

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
void wal__id_table_clear(struct wal__id_table *table,
                         const struct wal__heap *heap);

/* Reserves room for `count` ids in all. WAL_ENOMEM also beyond 2^31 slots. */
enum wal_status wal__id_table_reserve(struct wal__id_table *table,
                                      const struct wal__heap *heap,
                                      uint64_t count) WAL_MUST_USE;
/* Adds an id; the room is reserved. */
void wal__id_table_add(struct wal__id_table *table, uint64_t id_hash,
                       uint64_t position, uint32_t number);

/* Adds the ids of another table whose numbers are at most `last`. */
enum wal_status wal__id_table_merge(struct wal__id_table *table,
                                    const struct wal__heap *heap,
                                    const struct wal__id_table *from,
                                    uint32_t last) WAL_MUST_USE;

/* The slot with this hash and a number of at most `last`, after *skip others;
 * decrements *skip for each of those. Null when there is none. */
const struct wal__id_slot *wal__id_table_find(const struct wal__id_table *table,
                                              uint64_t id_hash, uint32_t last,
                                              uint32_t *skip);

#endif
