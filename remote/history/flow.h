/*
 * flow.h - how many bytes of objects are on the way at a time, by how fast the
 * last ones went: so that a slow link has few, and a fast one many.
 *
 * Each object of a link that is full takes as long as all bytes that are on the
 * way. Above WAL__FLOW_SLOW_MS there are fewer from then on, below
 * WAL__FLOW_FAST_MS more.
 *
 * Threads: one at a time per flow.
 */
#ifndef AGENTWAL_REMOTE_HISTORY_FLOW_H
#define AGENTWAL_REMOTE_HISTORY_FLOW_H

#include <stdbool.h>
#include <stdint.h>

enum {
    WAL__FLOW_FAST_MS = 5 * 1000,
    WAL__FLOW_SLOW_MS = 10 * 1000,
    WAL__FLOW_MIN = 64 * 1024 /* bytes */
};

struct wal__flow {
    uint64_t bytes;  /* on the way at a time */
    uint64_t max;    /* of `bytes` */
    uint64_t cut_ms; /* when it became less */
};

void wal__flow_init(struct wal__flow *flow, uint64_t bytes, uint64_t max);

/* How many bytes an object should have, at most `max`: so that another one is
 * on the way while its answer is awaited. */
uint64_t wal__flow_object_size(const struct wal__flow *flow, uint64_t max);

/* Whether an object of `size` bytes may be sent or read while others, of
 * `on_way` bytes together, are. One always may. */
bool wal__flow_has_room(const struct wal__flow *flow, uint64_t on_way,
                        uint64_t size);

/* An object went, or failed to, from began_ms to ended_ms of any clock. */
void wal__flow_count(struct wal__flow *flow, uint64_t size, bool failed,
                     uint64_t began_ms, uint64_t ended_ms);

#endif
