/*
 * throttle.h - limits how fast a compaction reads and writes, so that appends
 * of other threads and processes wait no longer for the device and for a
 * processor than without it; and reports its progress, also while it reads,
 * writes and sleeps, so that the caller can stop it.
 *
 * Three measures: bytes per second; a pause after each of its syncs that took
 * longer than usual, because then others' syncs do too; and work in slices that
 * are shorter than those of the scheduler, with a pause as long after each. One
 * thread.
 */
#ifndef AGENTWAL_ENGINE_CARE_THROTTLE_H
#define AGENTWAL_ENGINE_CARE_THROTTLE_H

#include "engine/base/io.h"

/* As wal__compact_options.progress: false stops the compaction. */
typedef bool wal__throttle_progress_fn(void *ctx, uint64_t done,
                                       uint64_t total);

struct wal__throttle {
    const struct wal__io *io;
    uint64_t rate;     /* bytes per second; UINT64_MAX: no limit, no pauses */
    uint64_t unpaid;   /* bytes that have not been waited for */
    uint64_t free_ns;  /* until then the bytes before take their time */
    uint64_t usual_ns; /* average duration of a sync; 0: none yet */
    uint64_t begun_ns; /* when the last pause ended; 0: there was none */
    wal__throttle_progress_fn *progress; /* or null */
    void *ctx;                           /* of progress */
    uint64_t done;                       /* that was reported last, bytes */
    uint64_t total;
    uint64_t reported_ns; /* when; 0: never */
};

void wal__throttle_init(struct wal__throttle *throttle,
                        const struct wal__io *io, uint64_t rate);
/* Returns whether there is a limit. */
bool wal__throttle_is_limited(const struct wal__throttle *throttle);
/* Sets what is called with the progress. */
void wal__throttle_set_progress(struct wal__throttle *throttle,
                                wal__throttle_progress_fn *progress, void *ctx);
/* Sets what is reported until the next wal__throttle_report. */
void wal__throttle_expect(struct wal__throttle *throttle, uint64_t done,
                          uint64_t total);
/* Reports progress. WAL_ECALLBACK: the caller stops the compaction. */
enum wal_status wal__throttle_report(struct wal__throttle *throttle,
                                     uint64_t done, uint64_t total,
                                     struct wal_error *error) WAL_MUST_USE;
/* Counts bytes that were read or written; sleeps when they came too fast. Time
 * that was not used is not made up for. Repeats the last report after a quarter
 * of a second. WAL_ECALLBACK: the caller stops the compaction. */
enum wal_status wal__throttle_spend(struct wal__throttle *throttle,
                                    uint64_t bytes,
                                    struct wal_error *error) WAL_MUST_USE;
/* Counts a sync; sleeps as long as it took, at most 100 ms, when it took longer
 * than twice the average. */
void wal__throttle_count_sync(struct wal__throttle *throttle,
                              uint64_t duration_ns);
/* Between two small pieces of work: sleeps a quarter of a millisecond when at
 * least as much has passed since it slept. */
void wal__throttle_yield(struct wal__throttle *throttle);

#endif
