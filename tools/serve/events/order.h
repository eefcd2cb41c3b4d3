/*
 * order.h - what the log has after a position, in the order of its sequence
 * numbers.
 *
 * The records of a segment are read session by session; here they are sorted.
 * What is no record of a session, such as a moved head, a checkpoint, or a
 * session in the trash, is found by the sequence number of its last change: of
 * several changes only the last one is there.
 *
 * Threads: one at a time per struct.
 */
#ifndef AGENTWAL_TOOLS_SERVE_EVENTS_ORDER_H
#define AGENTWAL_TOOLS_SERVE_EVENTS_ORDER_H

#include "tools/cli/cli.h"

/* What an item does to the events before it. */
enum serve_change {
    SERVE_ADDS,
    SERVE_REPLACES, /* texts of a session */
    SERVE_HIDES,    /* a session was deleted */
    SERVE_REDACTS   /* an entry, also of forks of the session */
};

struct serve_order_item {
    uint64_t sequence;
    uint32_t session; /* its number */
    const char *name; /* of an event with a text; NULL: a record of the log */
    char *text;       /* data of such an event */
    enum serve_change change;
};

/* A session. */
struct serve_named {
    uint32_t number;
    char *id;
};

/* Zeroed: covers nothing. */
struct serve_order {
    uint64_t after; /* all items above this one and up to `upto` are here */
    uint64_t upto;
    struct serve_order_item *items; /* ascending by sequence */
    size_t count;
    size_t capacity;
    struct serve_named *named; /* sessions whose texts were set */
    size_t named_count;
    size_t named_capacity;
    uint64_t used; /* when, for a cache */
};

/* Reads what is after `after` and not after `limit`, at least as far as one
 * segment reaches: `upto` says how far. Damaged records are left out. */
enum wal_status serve_order_read(struct serve_order *order,
                                 struct wal_store *store, uint64_t after,
                                 uint64_t limit, struct wal_error *error);

/* Adds the event that a session was deleted, out of order; sorts the items. */
void serve_order_add_deleted(struct serve_order *order, uint64_t sequence,
                             const struct serve_named *session);
void serve_order_sort(struct serve_order *order);

/* Returns the number of the first item with a higher sequence number. */
size_t serve_order_find(const struct serve_order *order, uint64_t sequence);

void serve_order_deinit(struct serve_order *order);

#endif
