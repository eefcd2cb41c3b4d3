/*
 * model_table.h - spans by a 64-bit hash.
 *
 * Invariant: a key that was put is found with the span that was put last.
 *
 * Threads: one thread at a time per table.
 */
#ifndef AGENTWAL_FORMAT_MODEL_MODEL_TABLE_H
#define AGENTWAL_FORMAT_MODEL_MODEL_TABLE_H

#include "format/json/arena.h"

struct wal__model_table_slot {
    uint64_t key; /* 0: free */
    struct wal__json_span value;
};

/* Zeroed but for the arena, which must outlive it: empty. */
struct wal__model_table {
    struct wal__arena *arena;
    struct wal__model_table_slot *entries;
    size_t capacity; /* 0 or a power of two */
    size_t count;
    /* Has what is not in this one, and is not changed; or null. */
    const struct wal__model_table *base;
};

/* The span is borrowed. False: no memory. */
bool wal__model_table_put(struct wal__model_table *table, uint64_t key,
                          struct wal__json_span value);
bool wal__model_table_get(const struct wal__model_table *table, uint64_t key,
                          struct wal__json_span *value);

/* A set of 32-bit hashes. Zeroed but for the arena: empty. */
struct wal__model_set {
    struct wal__arena *arena;
    uint32_t *hashes; /* 0: free */
    size_t capacity;
    size_t count;
    const struct wal__model_set *base; /* as of a table */
};

/* Puts a hash, never 0, into the set; *was_present tells whether it was in it.
 * False: no memory. */
bool wal__model_set_put(struct wal__model_set *set, uint32_t hash,
                        bool *was_present);

/* The hash of bytes, never 0. */
uint64_t wal__model_hash(uint64_t seed, struct wal__json_span bytes);

/* The hash of the text that a JSON string stands for. */
uint64_t wal__model_string_hash(uint64_t seed, struct wal__json_span string);

#endif
