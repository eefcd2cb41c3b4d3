/*
 * compact_job.h - a compaction at work: the segments that may be rewritten, and
 * choosing among them. Of compact.c and choose.c; one thread.
 */
#ifndef AGENTWAL_ENGINE_COMPACT_COMPACT_JOB_H
#define AGENTWAL_ENGINE_COMPACT_COMPACT_JOB_H

#include "engine/compact/compact.h"

enum {
    WAL__COMPACT_RUN_MAX = 32 * 1024 * 1024 /* bytes of records in one new
                                             * segment, about */
};

/* A segment that may be rewritten. */
struct candidate {
    struct wal__compact_input input;
    uint64_t live_bytes; /* of its records */
    uint64_t dead_bytes;
    bool has_index;
    bool names_dead_content; /* by documents of the engine, which are dead */
    bool is_suitable;        /* as a whole: not damaged, of this version */
    bool is_refused;
    bool is_chosen;
    bool is_done;
};

struct compaction {
    struct wal__core *core;
    const struct wal__compact_options *options;
    struct wal__compact_result *result;
    struct candidate *candidates;
    uint32_t count;
    struct wal__live_set set;
    struct wal__buf dead_documents; /* of the set, once they are known */
    bool knows_dead_documents;
    struct wal__throttle throttle;
    struct wal__space space;    /* of a dry run that lists sessions */
    struct wal__buf tail_index; /* of a dry run: bytes of the tail's index */
    uint32_t generation;        /* of the last new segment */
    uint64_t total;             /* bytes of the chosen segments */
    uint64_t done;
};

/* Opens the segments before the tail, in a dry run the tail too; those that
 * cannot be rewritten are refused. WAL_ENOMEM, and what locking returns. */
enum wal_status wal__compact_open(struct compaction *compaction,
                                  struct wal_error *error) WAL_MUST_USE;
void wal__compact_close(struct compaction *compaction);
/* Initialises *compaction and *result, and opens all segments to read their
 * indexes alone. Close it also after a failure. */
enum wal_status wal__compact_open_indexes(struct compaction *compaction,
                                          struct wal__core *core,
                                          struct wal__compact_result *result,
                                          struct wal_error *error) WAL_MUST_USE;

/* Counts and reports a refusal; the result has the first one. */
void wal__compact_count_refusal(const struct wal__compact_options *options,
                                struct wal__compact_result *result,
                                const struct wal_error *error);
/* Reports a segment that erasing leaves because of max_bytes; and all of the
 * log that have something dead, or something that no group has. */
void wal__compact_report_left(const struct wal__compact_options *options,
                              struct wal__compact_result *result,
                              const struct wal__segment *segment);
void wal__compact_report_all_left(struct compaction *compaction);
/* Counts and reports a segment that cannot be rewritten, once. */
void wal__compact_refuse(struct compaction *compaction,
                         struct candidate *candidate,
                         const struct wal_error *error);

/* Finds what is live, and sets is_chosen of each that is not done. Again after
 * one was refused. */
enum wal_status wal__compact_choose(struct compaction *compaction,
                                    struct wal_error *error) WAL_MUST_USE;

#endif
