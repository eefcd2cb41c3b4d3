/*
 * shipper.h - ships a store in the background: a thread that sends what becomes
 * durable, and reports it to the processes of the store (agentwal/remote.h).
 *
 * Threads: any.
 */
#ifndef AGENTWAL_REMOTE_SHIP_SHIPPER_H
#define AGENTWAL_REMOTE_SHIP_SHIPPER_H

#include <stdbool.h>
#include <stdint.h>

#include "remote/ship/writer.h"

struct wal__pace {
    uint64_t interval_ns; /* between parts, in the long run */
    uint64_t burst_ns;    /* of intervals that may be saved */
    uint64_t next_ns;     /* the next part may be sent then, less the burst */
    uint64_t sent_ns;     /* when the last one was sent */
};

void wal__pace_init(struct wal__pace *pace, uint32_t per_second);

/* When the next part may be sent; with is_waiting, as a small one while others
 * are on the way, which waits for a whole interval. */
uint64_t wal__pace_due_ns(const struct wal__pace *pace, bool is_waiting);

/* A part is sent now. */
void wal__pace_count(struct wal__pace *pace, uint64_t now_ns);

struct wal_remote_shipper {
    struct wal_remote_writer *writer;
    struct wal_shipper *engine; /* NULL: it has ended */
    struct wal__pace pace;
    bool is_full;      /* the last part had all that it may have */
    uint32_t failures; /* in a row */
    struct wal_remote_push_result result;
    wal_remote_shipper_report_fn *report; /* or NULL */
    void *report_ctx;
    pthread_t thread;
    pthread_mutex_t mutex; /* of what follows */
    pthread_cond_t stop;
    bool is_stopping;
    struct wal_remote_shipper_info info;
};

/* Starts the thread: writer, pace and the report are set, all else is zero. */
enum wal_status wal__shipper_start(struct wal_remote_shipper *shipper,
                                   struct wal_error *error) WAL_MUST_USE;
void wal__shipper_stop(struct wal_remote_shipper *shipper);
void wal__shipper_get_info(struct wal_remote_shipper *shipper,
                           struct wal_remote_shipper_info *info);

#endif
