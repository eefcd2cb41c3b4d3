/*
 * rewrite.h - replaces a run of segments of the log by one that holds what of
 * them is live, session by session (SPEC.md 3.9). One thread, which holds the
 * compaction lock.
 */
#ifndef AGENTWAL_ENGINE_COMPACT_REWRITE_H
#define AGENTWAL_ENGINE_COMPACT_REWRITE_H

#include "engine/compact/live_set.h"
#include "engine/compact/segment_run.h"
#include "engine/store/core.h"

/* A segment before the tail, and its index, which the compaction opened
 * itself: the store's set of indexes may be loaded anew meanwhile. */
struct wal__compact_input {
    struct wal__segment *segment;
    struct wal__index_slot slot;
};

struct wal__rewrite_result {
    struct wal__segment_run_result run;
    uint64_t kept; /* records */
    uint64_t dropped;
    uint64_t erased;
};

/* Opens the index of a segment before the tail; of the caller until
 * wal__compact_input_close. WAL_ENOTFOUND: it has none. */
enum wal_status
wal__compact_input_open(struct wal__core *core, struct wal__segment *segment,
                        struct wal__compact_input *input) WAL_MUST_USE;
void wal__compact_input_close(struct wal__core *core,
                              struct wal__compact_input *input);

/* Rewrites `count` neighbours, ascending. WAL_ECORRUPT: a record is damaged,
 * error->file names the segment; WAL_ETOOBIG; WAL_ENOSPACE, WAL_EIO,
 * WAL_ENOMEM. On failure the segments are as they were, unless
 * result->run.is_replaced. */
enum wal_status
wal__rewrite_segments(struct wal__core *core, const struct wal__live_set *set,
                      const struct wal__compact_input *inputs, uint32_t count,
                      const struct wal__segment_run_options *options,
                      struct wal__rewrite_result *result,
                      struct wal_error *error) WAL_MUST_USE;

#endif
