/*
 * costs.h - the size of the checkpoints of each session.
 *
 * Threads: the tool has one thread.
 */
#ifndef AGENTWAL_TOOLS_CARE_COSTS_H
#define AGENTWAL_TOOLS_CARE_COSTS_H

#include "tools/cli/json.h"

struct care_cost {
    char *id; /* id of the session */
    uint64_t checkpoints;
    uint64_t files;
    uint64_t bytes;
    uint64_t new_blobs;
    uint64_t new_bytes;
};

/* The sessions that have checkpoints, newest first; zeroed it is empty. */
struct care_costs {
    struct care_cost *items;
    size_t count;
    size_t capacity;
    uint64_t damaged; /* sessions or checkpoints that cannot be read */
};

/* Adds up the checkpoints of every session. A fork counts inherited ones
 * too. */
enum wal_status care_costs_read(struct care_costs *costs,
                                struct wal_store *store,
                                struct wal_error *error);
void care_costs_deinit(struct care_costs *costs);

/* Writes an array of {"sessionId","checkpoints","files","bytes","newBlobs",
 * "newBytes"}. */
void care_costs_write(const struct care_costs *costs,
                      struct wal__json_out *json);
/* Prints a table; nothing if there are no checkpoints. */
void care_costs_print(const struct care_costs *costs);

#endif
