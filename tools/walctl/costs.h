/*
 * costs.h - what the checkpoints of sessions cost.
 *
 * Threads: one.
 */
#ifndef AGENTWAL_TOOLS_WALCTL_COSTS_H
#define AGENTWAL_TOOLS_WALCTL_COSTS_H

#include "tools/cli/json.h"

struct walctl_cost {
    char *id; /* of the session */
    uint64_t checkpoints;
    uint64_t files;
    uint64_t bytes;
    uint64_t new_blobs;
    uint64_t new_bytes;
};

/* Of the sessions that have checkpoints, newest first. Zeroed: none. */
struct walctl_costs {
    struct walctl_cost *items;
    size_t count;
    size_t capacity;
    uint64_t damaged; /* sessions or checkpoints that cannot be read */
};

/* A fork counts the checkpoints that it shares. */
enum wal_status walctl_costs_read(struct walctl_costs *costs,
                                  struct wal_store *store,
                                  struct wal_error *error);
void walctl_costs_deinit(struct walctl_costs *costs);

/* An array of {"sessionId","checkpoints","files","bytes","newBlobs",
 * "newBytes"}. */
void walctl_costs_write(const struct walctl_costs *costs,
                        struct cli_json *json);
/* A table; nothing when there are none. */
void walctl_costs_print(const struct walctl_costs *costs);

#endif
