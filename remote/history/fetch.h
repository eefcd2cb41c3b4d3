/*
 * fetch.h - reads a list of objects in order, several at the same time: so that
 * many small ones do not take a round trip each.
 *
 * Invariant: of the objects that are read and were not returned, at most
 * WAL__FETCH_AHEAD are in memory, of at most WAL__FETCH_BYTES together, and
 * fewer where the link is slow (flow.h), unless the next one is larger. These
 * are more than are read at a time, so that a request that takes longer than
 * the others does not stop them.
 *
 * Threads: one at a time per fetch. Private threads call the driver; without
 * them each object is read when it is asked for.
 */
#ifndef AGENTWAL_REMOTE_HISTORY_FETCH_H
#define AGENTWAL_REMOTE_HISTORY_FETCH_H

#include "remote/history/remote.h"

enum {
    WAL__FETCH_READERS = 64,
    WAL__FETCH_AHEAD = 256,
    WAL__FETCH_BYTES = 64 * 1024 * 1024
};

struct wal__fetch_item {
    char name[WAL__STORE_OBJECT_SIZE];
    uint64_t size; /* as it was listed */
};

struct wal__fetch;

/* Begins to read the objects; the items outlive the fetch. Close *fetch with
 * wal__fetch_close. WAL_ENOMEM. */
enum wal_status wal__fetch_open(struct wal_remote *remote,
                                const struct wal__fetch_item *items,
                                size_t count, struct wal__fetch **fetch,
                                struct wal_error *error) WAL_MUST_USE;

/* Returns the next object; *object holds until the next call. WAL_END after the
 * last one; WAL_ENOTFOUND; what the driver answered. */
enum wal_status wal__fetch_next(struct wal__fetch *fetch,
                                struct wal_slice *object,
                                struct wal_error *error) WAL_MUST_USE;

/* Waits for the requests that were begun. fetch may be NULL. */
void wal__fetch_close(struct wal__fetch *fetch);

#endif
