/*
 * model_table.h - a hash table of spans with 64-bit keys, and a hash set.
 *
 * Invariant: a lookup finds the span that was put last under its key.
 *
 * Threads: one thread at a time per table.
 */
#ifndef AGENTWAL_CONVERT_MODEL_MODEL_TABLE_H
#define AGENTWAL_CONVERT_MODEL_MODEL_TABLE_H

#include "format/json/arena.h"

struct wal__model_table_slot {
    uint64_t key; /* 0: free */
    struct wal__json_span value;
};

/* Zeroed but for the arena, which must outlive the table: empty. */
struct wal__model_table {
    struct wal__arena *arena;
    struct wal__model_table_slot *entries;
    size_t capacity; /* 0 or a power of two */
    size_t count;
    /* Searched for keys that are not in this table; never changed. Or NULL. */
    const struct wal__model_table *base;
};

/* Sets the span of a key, which is not 0. The span is borrowed. False: no memory. */
bool wal__model_table_put(struct wal__model_table *table, uint64_t key,
                          struct wal__json_span value);
/* Gets the span of a key; false: there is none. */
bool wal__model_table_get(const struct wal__model_table *table, uint64_t key,
                          struct wal__json_span *value);

/* A set of 32-bit hashes. Zeroed but for the arena: empty. */
struct wal__model_set {
    struct wal__arena *arena;
    uint32_t *hashes; /* 0: free */
    size_t capacity;
    size_t count;
    const struct wal__model_set *base; /* like that of a table */
};

/* Adds a hash, which is not 0, and reports whether it was present. False: no memory. */
bool wal__model_set_put(struct wal__model_set *set, uint32_t hash, bool *was_present);

/* Returns the hash of bytes, never 0. */
uint64_t wal__model_hash(uint64_t seed, struct wal__json_span bytes);

/* The same of a C string, with seed 0. */
uint64_t wal__model_text_hash(const char *text);

/* Returns the hash of the text of a JSON string, never 0. */
uint64_t wal__model_string_hash(uint64_t seed, struct wal__json_span string);

#endif
