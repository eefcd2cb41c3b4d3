/*
 * ids.h - a map from entry ids to numbers.
 *
 * Invariant: each id occurs once. Memory: the ids and 24 bytes a slot.
 *
 * Threads: the tools are single-threaded.
 */
#ifndef AGENTWAL_TOOLS_CLI_IDS_H
#define AGENTWAL_TOOLS_CLI_IDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agentwal.h"

struct cli_ids_slot {
    uint64_t hash;
    char *text; /* NULL: the slot is free */
    uint32_t size;
    uint32_t value;
};

/* Zeroed: an empty table. */
struct cli_ids {
    struct cli_ids_slot *items;
    size_t count;
    size_t capacity; /* 0 or a power of two */
};

/* Returns the number of the id, which the caller may change; valid until the
 * next cli_ids_get_or_add. NULL: the id is not in the map. */
uint32_t *cli_ids_find(const struct cli_ids *ids, struct wal_slice id);

/* As cli_ids_find; adds the id with 0 when it is missing. */
uint32_t *cli_ids_get_or_add(struct cli_ids *ids, struct wal_slice id);

void cli_ids_deinit(struct cli_ids *ids);

/* 64-bit FNV-1a. */
uint64_t cli_hash(struct wal_slice text);

#endif
