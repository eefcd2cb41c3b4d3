/*
 * live_set.h - what of a log is live, of the records that segments before the
 * tail hold (SPEC.md 3.9); and how many bytes of records each session has, and
 * with which other sessions it shares them (struct wal_session_space in
 * agentwal/admin.h). Both are built from the indexes of the segments alone: no
 * payload is read.
 *
 * What a segment before the tail does not say is not known here: a deletion in
 * the tail leaves its session live. So the set is that of a prefix of the log.
 *
 * The space is built in two passes over the indexes of all segments:
 * wal__space_add_index, then wal__space_add_record for every record.
 *
 * Memory of a set: 8 bytes for each session number, 48 for each fork and each
 * deleted session, 8 for each redaction, 32 for each head that was moved by
 * name, and for each entry that deltas are under. Memory of the space: 48 bytes
 * for each session number, 32 for each fork. One thread while it is built, then
 * any.
 */
#ifndef AGENTWAL_ENGINE_CARE_LIVE_SET_H
#define AGENTWAL_ENGINE_CARE_LIVE_SET_H

#include "engine/base/containers.h"
#include "engine/base/heap.h"
#include "format/index/index_fmt.h"

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
    uint32_t session_limit;          /* numbers below it have a slot */
    struct wal__hashmap lineage_map; /* session number -> rank in lineages */
    struct wal__buf lineages;        /* struct wal__live_session */
    struct wal__hashmap head_map;    /* -> rank in heads */
    struct wal__buf heads;           /* newest HEAD of each name */
    struct wal__hashmap delta_map;   /* -> rank in delta_parents */
    struct wal__buf delta_parents;   /* that have provisional entries */
    bool keeps_deltas;               /* set by the caller after init */
    bool erases;                     /* the same: redacted content and replaced
                                      * texts are dead too */
    const struct wal__buf *dead_documents; /* the same: uint64_t, sequences of
                                            * DOC records, ascending; or NULL */
    struct wal__buf redacted;              /* uint64_t, sequences, ascending */
    bool is_complete;
    bool is_settled;
};

void wal__live_set_init(struct wal__live_set *set,
                        const struct wal__heap *heap);
void wal__live_set_deinit(struct wal__live_set *set);

/* Adds the index of a segment; of all segments before the tail, ascending.
 * WAL_ENOMEM; WAL_ECORRUPT: it cannot be decoded. */
enum wal_status wal__live_set_add(struct wal__live_set *set,
                                  const struct wal__index *index) WAL_MUST_USE;

/* Ends the adding: finds what forks share with deleted sessions. */
void wal__live_set_complete(struct wal__live_set *set);

/* Says that a segment which is not rewritten has records of the session: if it
 * is deleted, its SESSION, FORK, ACCEPT and TOMBSTONE stay. After complete;
 * settle comes after it. */
void wal__live_set_retain(struct wal__live_set *set, uint32_t number);
/* The same for every deleted session, and for its entries and documents: a
 * segment has unknown records, which may be those of a fork. */
void wal__live_set_retain_all(struct wal__live_set *set);
/* Decides which deleted sessions go altogether: those that share nothing, are
 * not retained, and are named by no session that stays. Any number of times.
 * WAL_ENOMEM. */
enum wal_status wal__live_set_settle(struct wal__live_set *set) WAL_MUST_USE;

/* Returns whether a session is deleted; and whether it goes altogether, false
 * before wal__live_set_settle. */
bool wal__live_set_is_deleted(const struct wal__live_set *set, uint32_t number);
bool wal__live_set_is_purged(const struct wal__live_set *set, uint32_t number);

/* What a session was forked from; zeros: it is not a fork. */
struct wal__live_fork {
    uint32_t source;
    uint64_t record; /* its FORK: documents before it are seen */
};

/* Empties the texts of a summary that are not live: all but the id of a deleted
 * session, and to erase those that a later SESSION record replaces, and the
 * beginning of a redacted message. After complete. */
void wal__live_set_strip(const struct wal__live_set *set,
                         struct wal__summary *summary);

/* What becomes of a record of session `number`; after complete. `is_first`: it
 * is the first record of the session. Before settle, as if no session went
 * altogether. */
enum wal__fate wal__live_set_fate(const struct wal__live_set *set,
                                  uint32_t number,
                                  const struct wal__posting *posting,
                                  bool is_first);

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
    uint32_t index; /* + 1 of the last index that has a summary; 0: none */
    uint32_t rank;  /* of the summary there */
    bool is_deleted;
    bool is_viewed; /* it is not deleted, or a fork of it is viewed */
    bool is_fork;
};

void wal__space_init(struct wal__space *space, const struct wal__heap *heap);
void wal__space_deinit(struct wal__space *space);

/* Returns the slot of a session number in the log. */
uint32_t wal__space_slot(uint32_t number);

/* Adds the sessions of an index; `rank` is a number of the caller's for the
 * index, ascending. WAL_ECORRUPT, WAL_ENOMEM. */
enum wal_status wal__space_add_index(struct wal__space *space,
                                     const struct wal__index *index,
                                     uint32_t rank) WAL_MUST_USE;
/* Ends the first pass. */
void wal__space_begin_records(struct wal__space *space);
/* Adds a record of a session that an index has: `kept` bytes of it stay, and
 * `dead` bytes go. */
void wal__space_add_record(struct wal__space *space, uint32_t number,
                           const struct wal__posting *posting, uint64_t kept,
                           uint64_t dead);
/* Ends the second pass: the slots are complete. */
void wal__space_finish(struct wal__space *space,
                       const struct wal__live_set *set);

#endif
