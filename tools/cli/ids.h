/*
 * ids.h - a table from entry ids to numbers.
 *
 * Invariant: an id stands in it once. Memory: the ids and 24 bytes each.
 *
 * Threads: a tool is one thread.
 */
#ifndef AGENTWAL_TOOLS_CLI_IDS_H
#define AGENTWAL_TOOLS_CLI_IDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agentwal.h"

struct cli_ids_slot {
    uint64_t hash;
    char *text; /* null: the place is free */
    uint32_t size;
    uint32_t value;
};

/* Zeroed: an empty table. */
struct cli_ids {
    struct cli_ids_slot *items;
    size_t count;
    size_t capacity; /* 0 or a power of two */
};

/* The number of an id, to read or change until the next put; null when the id
 * is not there. */
uint32_t *cli_ids_find(const struct cli_ids *ids, struct wal_slice id);

/* The same, and puts the id in with 0 when it is not there. */
uint32_t *cli_ids_get_or_add(struct cli_ids *ids, struct wal_slice id);

void cli_ids_deinit(struct cli_ids *ids);

/* FNV-1a with 64 bits. */
uint64_t cli_hash(struct wal_slice text);

#endif
