/*
 * compact.h - gives back the space of what is dead in the log and in the pack (SPEC.md 3.9):
 * chooses segments, and has them rewritten one run after another, each by one that holds what of
 * the run is live, session by session.
 *
 * It runs while other threads and processes read and write; one compaction of a store at a time.
 * What was appended after it began is live. Killed at any instruction, it leaves a store that is
 * whole, and the next one goes on. One thread, which holds the compaction lock.
 *
 *  1. It takes the compaction lock, which a backup shares.
 *  2. It ends the tail segment, if that has a record, so that all there is can
 *     be rewritten.
 *  3. It reads the indexes of all segments and finds what is live (live_set.c).
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
#include "engine/base/containers.h"
#include "engine/base/heap.h"
#include "engine/care/segment_run.h"
#include "engine/store/core.h"
#include "format/index/index_fmt.h"

/* --- what is live (live_set.c) ------------------------------------------- */

/*
 * What of a log is live, of the records that segments before the tail hold (SPEC.md 3.9); and how
 * many bytes of records each session has, and with which other sessions it shares them (struct
 * wal_session_space in agentwal/admin.h). Both are built from the indexes of the segments alone: no
 * payload is read.
 *
 * What a segment before the tail does not say is not known here: a deletion in the tail leaves its
 * session live. So the set is that of a prefix of the log.
 *
 * The space is built in two passes over the indexes of all segments: wal__space_add_index, then
 * wal__space_add_record for every record.
 *
 * Memory of a set: 8 bytes for each session number, 48 for each fork and each deleted session, 24
 * for each redaction, 32 for each head that was moved by name, and for each entry that deltas are
 * under. Memory of the space: 48 bytes for each session number, 32 for each fork. One thread while
 * it is built, then any.
 */

/* What becomes of a record. */
enum wal__fate {
    WAL__FATE_KEEP,
    WAL__FATE_ERASE, /* keep it without its content: an ENTRY's meta and
                      * payload, a SESSION's texts but the id, a DOC's value */
    WAL__FATE_DROP
};

struct wal__live_set {
    const struct wal__heap *heap;
    /* By session number: the sequence of its newest SESSION record. */
    uint64_t *newest_session;
    uint32_t session_limit;                /* numbers below it have a slot */
    struct wal__hashmap lineage_map;       /* session number -> rank in lineages */
    struct wal__buf lineages;              /* struct wal__live_session */
    struct wal__hashmap head_map;          /* -> rank in heads */
    struct wal__buf heads;                 /* newest HEAD of each name */
    struct wal__hashmap delta_map;         /* -> rank in delta_parents */
    struct wal__buf delta_parents;         /* that have provisional entries */
    bool keeps_deltas;                     /* set by the caller after init */
    bool erases;                           /* the same: redacted content and replaced
                                      * texts are dead too */
    const struct wal__buf *dead_documents; /* the same: uint64_t, sequences of
                                            * DOC records, ascending; or NULL */
    /* uint64_t, sequences, ascending; before wal__live_set_complete struct live_redaction. */
    struct wal__buf redacted;
    bool is_complete;
    bool is_settled;
};

void wal__live_set_init(struct wal__live_set *set, const struct wal__heap *heap);
void wal__live_set_deinit(struct wal__live_set *set);

/* Adds the index of a segment; of all segments before the tail, ascending. WAL_ENOMEM;
 * WAL_ECORRUPT: it cannot be decoded. */
enum wal_status wal__live_set_add(struct wal__live_set *set,
                                  const struct wal__index *index) WAL_MUST_USE;

/* Ends the adding: finds what forks share with deleted sessions. */
void wal__live_set_complete(struct wal__live_set *set);

/* Says that a segment which is not rewritten has records of the session: if it is deleted, its
 * SESSION, FORK, ACCEPT and TOMBSTONE stay. After complete; settle comes after it. */
void wal__live_set_retain(struct wal__live_set *set, uint32_t number);
/* The same for every deleted session, and for its entries and documents: a segment has unknown
 * records, which may be those of a fork. */
void wal__live_set_retain_all(struct wal__live_set *set);
/* Decides which deleted sessions go altogether: those that share nothing, are not retained, and are
 * named by no session that stays. Any number of times. WAL_ENOMEM. */
enum wal_status wal__live_set_settle(struct wal__live_set *set) WAL_MUST_USE;

/* Returns whether a deleted session goes altogether, false before wal__live_set_settle. */
bool wal__live_set_is_purged(const struct wal__live_set *set, uint32_t number);

/* What a session was forked from; zeros: it is not a fork. */
struct wal__live_fork {
    uint32_t source;
    uint64_t record; /* its FORK: documents before it are seen */
};

/* Empties the texts of a summary that are not live: all but the id of a deleted session, and to
 * erase those that a later SESSION record replaces, and the beginning of a redacted message. After
 * complete. */
void wal__live_set_strip(const struct wal__live_set *set, struct wal__summary *summary);

/* What becomes of a record of session `number`; after complete. `is_first`: it is the first record
 * of the session. Before settle, as if no session went altogether. */
enum wal__fate wal__live_set_fate(const struct wal__live_set *set, uint32_t number,
                                  const struct wal__posting *posting, bool is_first);

struct wal__space {
    const struct wal__heap *heap;
    struct wal__session_space *slots; /* by session number; 0: the store's own
                                       * documents (wal__space_slot) */
    uint32_t limit;                   /* numbers below it have a slot */
    struct wal__buf forks;            /* struct fork_mark */
};

/* What a session has. */
struct wal__session_space {
    uint64_t own;         /* of records of it that stay; with `seen` until
                           * wal__space_finish */
    uint64_t seen;        /* of these, the entries that forks see */
    uint64_t inherited;   /* of entries that it sees of its ancestors */
    uint64_t reclaimable; /* of records of it that are dead */
    uint32_t index;       /* + 1 of the last index that has a summary; 0: none */
    uint32_t rank;        /* of the summary there */
    bool is_deleted;
    bool is_viewed; /* it is not deleted, or a fork of it is viewed */
    bool is_fork;
};

void wal__space_init(struct wal__space *space, const struct wal__heap *heap);
void wal__space_deinit(struct wal__space *space);

/* Returns the slot of a session number in the log. */
uint32_t wal__space_slot(uint32_t number);

/* Adds the sessions of an index; `rank` is a number of the caller's for the index, ascending.
 * WAL_ECORRUPT, WAL_ENOMEM. */
enum wal_status wal__space_add_index(struct wal__space *space, const struct wal__index *index,
                                     uint32_t rank) WAL_MUST_USE;
/* Ends the first pass. */
void wal__space_begin_records(struct wal__space *space);
/* Adds a record of a session that an index has: `kept` bytes of it stay, and `dead` bytes go. */
void wal__space_add_record(struct wal__space *space, uint32_t number,
                           const struct wal__posting *posting, uint64_t kept, uint64_t dead);
/* Ends the second pass: the slots are complete. */
void wal__space_finish(struct wal__space *space, const struct wal__live_set *set);

/* --- a compaction --------------------------------------------------------- */

/* A segment before the tail, and its index, which the compaction opened itself: the store's set of
 * indexes may be loaded anew meanwhile. */
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
    bool erase;                              /* rewrite each segment that holds anything dead */
    bool keep_deltas;                        /* of messages that are complete too */
    bool dry_run;                            /* choose, and change nothing; takes no lock */
    uint32_t dead_percent;                   /* of a rewritten segment's records, from which on it
                            * is rewritten again */
    uint64_t max_bytes;                      /* of segments to rewrite, at most; 0: all */
    uint64_t rate;                           /* bytes read and written in a second; UINT64_MAX:
                            * no limit */
    struct wal__segment_run_options rewrite; /* but for its throttle */
    /* Called after each segment, and with the same again while one is read and written
     * (segment_run.h); false stops with WAL_ECALLBACK. NULL: none. */
    bool (*progress)(void *ctx, uint64_t done, uint64_t total);
    /* Called for each segment that is refused. NULL: none. */
    void (*refused)(void *ctx, const struct wal_error *error);
    /* NULL unless it is a dry run: called for each session that has records, by number, with its
     * newest summary; false stops with WAL_ECALLBACK. */
    bool (*session)(void *ctx, const struct wal__summary *summary,
                    const struct wal__session_space *space);
    /* Called at the end for each process that has replaced files mapped or open, this one too.
     * NULL: none. */
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

/* Opens the segments before the tail, in a dry run the tail too; those that cannot be rewritten are
 * refused. WAL_ENOMEM, and what locking returns. */
enum wal_status wal__compact_open(struct compaction *compaction,
                                  struct wal_error *error) WAL_MUST_USE;
void wal__compact_close(struct compaction *compaction);
/* Initialises *compaction and *result, and opens all segments to read their indexes alone. Close it
 * also after a failure. */
enum wal_status wal__compact_open_indexes(struct compaction *compaction, struct wal__core *core,
                                          struct wal_store_compact_result *result,
                                          struct wal_error *error) WAL_MUST_USE;

/* Counts and reports a refusal; the result has the first one. */
void wal__compact_count_refusal(const struct wal__compact_options *options,
                                struct wal_store_compact_result *result,
                                const struct wal_error *error);
/* Reports a segment that erasing leaves because of max_bytes; and all of the log that have
 * something dead, or something that no group has. */
void wal__compact_report_left(const struct wal__compact_options *options,
                              struct wal_store_compact_result *result,
                              const struct wal__segment *segment);
void wal__compact_report_all_left(struct compaction *compaction);
/* Returns WAL_EDAMAGED for a segment that has no group, by the header of its index, and yet bytes
 * after its OPEN. */
enum wal_status wal__compact_check_rest(struct wal__segment *segment,
                                        const struct wal__index_header *header,
                                        struct wal_error *error) WAL_MUST_USE;
/* Counts and reports a segment that cannot be rewritten, once. */
void wal__compact_refuse(struct compaction *compaction, struct candidate *candidate,
                         const struct wal_error *error);

/* Finds what is live, and sets is_chosen of each that is not done. Again after one was refused. */
enum wal_status wal__compact_choose(struct compaction *compaction,
                                    struct wal_error *error) WAL_MUST_USE;

/* Reads the keys of all documents, and appends the sequences of the dead ones, ascending. The set
 * of the compaction is complete. Memory while it runs: 32 bytes for each version of a document of
 * the engine. WAL_ENOMEM. */
enum wal_status wal__dead_documents_find(const struct compaction *compaction,
                                         struct wal__buf *out) WAL_MUST_USE;

/* Compacts the pack after the log, and adds to *result; a dry run only counts. With the compaction
 * lock, but for a dry run. WAL_ELOCKED: a thread or process stores content all the time, and
 * nothing was dropped. Else as compact_store.
 */
enum wal_status wal__pack_compact(struct wal__core *core,
                                  const struct wal__compact_options *options,
                                  struct wal__throttle *throttle,
                                  struct wal_store_compact_result *result,
                                  struct wal_error *error) WAL_MUST_USE;

#endif
