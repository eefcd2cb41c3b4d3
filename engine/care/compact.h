/*
 * compact.h - gives back the space of what is dead in the log and in the pack
 * (SPEC.md 3.9): chooses segments, and has them rewritten one run after
 * another, each by one that holds what of the run is live, session by session.
 *
 * It runs while other threads and processes read and write; one compaction of a
 * store at a time. What was appended after it began is live. Killed at any
 * instruction, it leaves a store that is whole, and the next one goes on. One
 * thread, which holds the compaction lock.
 *
 *  1. It takes the compaction lock, which a backup shares.
 *  2. It ends the tail segment, if that has a record, so that all there is can
 *     be rewritten.
 *  3. It reads the indexes of all segments and finds what is live (live_set.h).
 *  4. It chooses segments (choose.c): each that was never rewritten, since it
 *     is not compressed; of the others those where dead_percent is dead, or
 *     that name a deleted checkpoint, and when erasing those where anything is;
 *     and rewritten ones before them that are at most twice as large as what
 *     follows, so that small ones are merged.
 *  5. For each run of neighbours of up to 32 MiB it writes one file, syncs it,
 *     reads it back, and compares it with its index (segment_run.h).
 *  6. It renames the file to the name of the last segment of the run, syncs the
 *     directory, and removes the others.
 *  7. It writes the catalogue anew, has other processes open the new files, and
 *     removes the indexes of search of the replaced segments, and every
 *     unfinished one.
 *  8. It does the same with the pack (pack_compact.c).
 */
#ifndef AGENTWAL_ENGINE_CARE_COMPACT_H
#define AGENTWAL_ENGINE_CARE_COMPACT_H

#include "agentwal/admin.h"
#include "engine/care/live_set.h"
#include "engine/care/segment_run.h"
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
    struct wal_store_compact_result *result;
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
enum wal_status
wal__compact_open_indexes(struct compaction *compaction, struct wal__core *core,
                          struct wal_store_compact_result *result,
                          struct wal_error *error) WAL_MUST_USE;

/* Counts and reports a refusal; the result has the first one. */
void wal__compact_count_refusal(const struct wal__compact_options *options,
                                struct wal_store_compact_result *result,
                                const struct wal_error *error);
/* Reports a segment that erasing leaves because of max_bytes; and all of the
 * log that have something dead, or something that no group has. */
void wal__compact_report_left(const struct wal__compact_options *options,
                              struct wal_store_compact_result *result,
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

/* Reads the keys of all documents, and appends the sequences of the dead ones,
 * ascending. The set of the compaction is complete. Memory while it runs: 32
 * bytes for each version of a document of the engine. WAL_ENOMEM. */
enum wal_status wal__dead_documents_find(const struct compaction *compaction,
                                         struct wal__buf *out) WAL_MUST_USE;

/* Compacts the pack after the log, and adds to *result; a dry run only counts.
 * With the compaction lock, but for a dry run. WAL_ELOCKED: a thread or process
 * stores content all the time, and nothing was dropped. Else as compact_store.
 */
enum wal_status wal__pack_compact(struct wal__core *core,
                                  const struct wal__compact_options *options,
                                  struct wal__throttle *throttle,
                                  struct wal_store_compact_result *result,
                                  struct wal_error *error) WAL_MUST_USE;

#endif
