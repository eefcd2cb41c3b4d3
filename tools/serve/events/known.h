/*
 * known.h - which sessions there are, so that those that were deleted for good
 * are noticed: the log has no record of them that can be read.
 *
 * Threads: one at a time per struct.
 */
#ifndef AGENTWAL_TOOLS_SERVE_EVENTS_KNOWN_H
#define AGENTWAL_TOOLS_SERVE_EVENTS_KNOWN_H

#include "tools/serve/events/order.h"

/* Zeroed: none. */
struct serve_known {
    struct serve_named *items; /* ascending by number */
    size_t count;
    size_t capacity;
};

/* Adds the sessions of the store. */
enum wal_status serve_known_read(struct serve_known *known,
                                 struct wal_store *store,
                                 struct wal_error *error);

/* Adds the sessions that the order has records of. Adds an event to it for each
 * session that is gone, with a number above `after` that nothing else has. */
void serve_known_update(struct serve_known *known, struct wal_store *store,
                        struct serve_order *order, uint64_t after);

void serve_known_deinit(struct serve_known *known);

#endif
