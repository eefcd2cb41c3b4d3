/*
 * throttle.h - limits how fast a compaction reads and writes, so that appends
 * of other threads and processes wait no longer for the device than without it.
 *
 * Two measures: bytes per second, and a pause after each of its syncs that took
 * longer than usual, because then others' syncs do too. One thread.
 */
#ifndef AGENTWAL_ENGINE_COMPACT_THROTTLE_H
#define AGENTWAL_ENGINE_COMPACT_THROTTLE_H

#include "engine/os/io.h"

struct wal__throttle {
    const struct wal__io *io;
    uint64_t rate;     /* bytes per second; UINT64_MAX: no limit, no pauses */
    uint64_t unpaid;   /* bytes that have not been waited for */
    uint64_t free_ns;  /* until then the bytes before take their time */
    uint64_t usual_ns; /* average duration of a sync; 0: none yet */
};

void wal__throttle_init(struct wal__throttle *throttle,
                        const struct wal__io *io, uint64_t rate);
/* Whether there is a limit. */
bool wal__throttle_is_limited(const struct wal__throttle *throttle);
/* Counts bytes that were read or written; sleeps when they came too fast. Time
 * that was not used is not made up for. */
void wal__throttle_spend(struct wal__throttle *throttle, uint64_t bytes);
/* Counts a sync; sleeps as long as it took, at most 100 ms, when it took longer
 * than twice the average. */
void wal__throttle_count_sync(struct wal__throttle *throttle,
                              uint64_t duration_ns);

#endif
