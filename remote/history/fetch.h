/*
 * fetch.h - reads a list of objects in order, several at the same time: so that many small ones do
 * not take a round trip each.
 *
 * Invariant: of the objects that are read and were not returned, at most WAL__FETCH_AHEAD are in
 * memory, of at most WAL__FETCH_BYTES together, and fewer where the link is slow (wal__flow),
 * unless the next one is larger. These are more than are read at a time, so that a request that
 * takes longer than the others does not stop them.
 *
 * Threads: one at a time per fetch. Private threads call the driver; without them each object is
 * read when it is asked for.
 */
#ifndef AGENTWAL_REMOTE_HISTORY_FETCH_H
#define AGENTWAL_REMOTE_HISTORY_FETCH_H

#include <stdbool.h>
#include <stdint.h>

#include "remote/history/remote.h"

enum {
    WAL__FLOW_FAST_MS = 5 * 1000,
    WAL__FLOW_SLOW_MS = 10 * 1000,
    WAL__FLOW_MIN = 64 * 1024 /* bytes */
};

/*
 * How many bytes of objects are on the way at a time, by how fast the last ones went. Each object
 * of a link that is full takes as long as all bytes that are on the way: above WAL__FLOW_SLOW_MS
 * there are fewer from then on, below WAL__FLOW_FAST_MS more. One thread at a time.
 */
struct wal__flow {
    uint64_t bytes;  /* on the way at a time */
    uint64_t max;    /* of `bytes` */
    uint64_t cut_ms; /* when it became less */
};

void wal__flow_init(struct wal__flow *flow, uint64_t bytes, uint64_t max);

/* How many bytes an object should have, at most `max`: so that another one is on the way while its
 * answer is awaited. */
uint64_t wal__flow_object_size(const struct wal__flow *flow, uint64_t max);

/* Whether an object of `size` bytes may be sent or read while others, of
 * `on_way` bytes together, are. One always may. */
bool wal__flow_has_room(const struct wal__flow *flow, uint64_t on_way, uint64_t size);

/* An object went, or failed to, from began_ms to ended_ms of any clock. */
void wal__flow_count(struct wal__flow *flow, uint64_t size, bool failed, uint64_t began_ms,
                     uint64_t ended_ms);

enum { WAL__FETCH_READERS = 64, WAL__FETCH_AHEAD = 256, WAL__FETCH_BYTES = 64 * 1024 * 1024 };

struct wal__fetch_item {
    char name[WAL__STORE_OBJECT_SIZE];
    uint64_t size; /* as it was listed */
    uint64_t max;  /* bytes that are read, from the beginning; 0: all */
};

struct wal__fetch;

/* Begins to read the objects; the items outlive the fetch. Close *fetch with wal__fetch_close.
 * WAL_ENOMEM. */
enum wal_status wal__fetch_open(struct wal_remote *remote, const struct wal__fetch_item *items,
                                size_t count, struct wal__fetch **fetch,
                                struct wal_error *error) WAL_MUST_USE;

/* Returns the next object; *object holds until the next call. WAL_END after the last one;
 * WAL_ENOTFOUND; what the driver answered. */
enum wal_status wal__fetch_next(struct wal__fetch *fetch, struct wal_slice *object,
                                struct wal_error *error) WAL_MUST_USE;

/* Waits for the requests that were begun. fetch may be NULL. */
void wal__fetch_close(struct wal__fetch *fetch);

#endif
