/*
 * compact.h - gives back the space of what is dead in the log (SPEC.md 3.9):
 * chooses segments, and has them rewritten one run after another.
 *
 * It runs while other threads and processes read and write; one compaction of a
 * store at a time. What was appended after it began is live. Killed at any
 * instruction, it leaves a store that is whole, and the next one goes on.
 */
#ifndef AGENTWAL_ENGINE_COMPACT_COMPACT_H
#define AGENTWAL_ENGINE_COMPACT_COMPACT_H

#include "engine/compact/rewrite.h"
#include "engine/compact/space.h"

struct wal__compact_options {
    bool erase;            /* rewrite each segment that holds anything dead */
    bool keep_deltas;      /* of messages that are complete too */
    bool dry_run;          /* choose, and change nothing; takes no lock */
    uint32_t dead_percent; /* of a rewritten segment's records, from which on it
                            * is rewritten again */
    uint64_t max_bytes;    /* of segments to rewrite, at most; 0: all */
    uint64_t rate;         /* bytes read and written in a second; UINT64_MAX:
                            * no limit */
    struct wal__segment_run_options rewrite; /* but for its throttle */
    /* Called after each segment, and with the same again while one is read and
     * written (throttle.h); false stops with WAL_ECALLBACK. NULL: none. */
    bool (*progress)(void *ctx, uint64_t done, uint64_t total);
    /* Called for each segment that is refused. NULL: none. */
    void (*refused)(void *ctx, const struct wal_error *error);
    /* NULL unless it is a dry run: called for each session that has records, by
     * number, with its newest summary; false stops with WAL_ECALLBACK. */
    bool (*session)(void *ctx, const struct wal__summary *summary,
                    const struct wal__session_space *space);
    /* Called at the end for each process that has replaced files mapped or
     * open, this one too. NULL: none. */
    void (*reader)(void *ctx, uint32_t process, uint64_t bytes);
    void *ctx; /* of all four */
};

struct wal__compact_result {
    uint64_t segments;     /* before the tail; dry run: and the tail */
    uint64_t chosen;       /* of them, and rewritten unless in a dry run */
    uint64_t refused;      /* of them: damaged, or without an index */
    uint64_t bytes_before; /* of the chosen ones' files */
    uint64_t bytes_after;  /* of those that replaced them; dry run: at most */
    uint64_t dead_bytes;   /* of records, in all segments */
    uint64_t kept;         /* records */
    uint64_t dropped;
    uint64_t erased;
    uint64_t dropped_contents; /* records of the pack */
    struct wal_error refusal;  /* of the first that was refused */
};

/* Compacts the log of the store, then the pack. WAL_ELOCKED: another compaction
 * runs, in the process error->holder or 0, or content is being stored all the
 * time; WAL_EREADONLY; WAL_ENOSPACE: there is no room for
 * a new segment; WAL_EIO, WAL_ENOMEM, WAL_ECALLBACK. What was replaced until
 * then stays replaced. Any thread. */
enum wal_status wal__compact(struct wal__core *core,
                             const struct wal__compact_options *options,
                             struct wal__compact_result *result,
                             struct wal_error *error) WAL_MUST_USE;

#endif
