/*
 * shipper.h - how often a shipper (shipper.c) may send: N parts each second, and a quarter of that
 * at once after a pause.
 *
 * Threads: one at a time.
 */
#ifndef AGENTWAL_REMOTE_SHIP_SHIPPER_H
#define AGENTWAL_REMOTE_SHIP_SHIPPER_H

#include <stdbool.h>
#include <stdint.h>

struct wal__pace {
    uint64_t interval_ns; /* between parts, in the long run */
    uint64_t burst_ns;    /* of intervals that may be saved */
    uint64_t next_ns;     /* the next part may be sent then, less the burst */
    uint64_t sent_ns;     /* when the last one was sent */
};

void wal__pace_init(struct wal__pace *pace, uint32_t per_second);

/* When the next part may be sent; with is_waiting, as a small one while others are on the way,
 * which waits for a whole interval. */
uint64_t wal__pace_due_ns(const struct wal__pace *pace, bool is_waiting);

/* A part is sent now. */
void wal__pace_count(struct wal__pace *pace, uint64_t now_ns);

#endif
