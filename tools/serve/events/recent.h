/*
 * recent.h - the newest events, as they are sent, so that each is made once for
 * all clients that keep up.
 *
 * Invariant: it has at most SERVE_RECENT_BYTES and SERVE_RECENT_COUNT events,
 * and all of those above `after` up to `end`. Its owner drops an event when the
 * clients have it, and all of them when a record hides what was before it. The
 * bytes of an event that is dropped are overwritten.
 *
 * Threads: the owner locks.
 */
#ifndef AGENTWAL_TOOLS_SERVE_EVENTS_RECENT_H
#define AGENTWAL_TOOLS_SERVE_EVENTS_RECENT_H

#include <stddef.h>
#include <stdint.h>

enum {
    SERVE_RECENT_COUNT = 8192, /* a power of two */
    SERVE_RECENT_BYTES = 4 << 20
};

struct serve_event {
    uint64_t sequence;
    uint32_t session; /* its number; 0: an event for all */
    size_t size;
    char *data;
};

/* The owner sets after and end, to the same number, and zeroes the others. */
struct serve_recent {
    uint64_t after;
    uint64_t end;
    struct serve_event items[SERVE_RECENT_COUNT]; /* a ring */
    uint64_t first; /* number of the oldest one; item n is at n modulo COUNT */
    uint64_t count;
    size_t bytes;
};

/* Adds an event with a higher sequence number, whose data it takes. */
void serve_recent_add(struct serve_recent *recent, struct serve_event event);

/* Returns the first event after a position which is not before `after`, of a
 * session, or with session 0 of any; NULL: there is none. */
const struct serve_event *serve_recent_next(const struct serve_recent *recent,
                                            uint64_t position,
                                            uint32_t session);

/* Drops the events up to a sequence number. */
void serve_recent_drop(struct serve_recent *recent, uint64_t upto);

void serve_recent_deinit(struct serve_recent *recent);

#endif
