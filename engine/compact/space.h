/*
 * space.h - how many bytes of records each session has, and with which other
 * sessions it shares them (struct wal_session_space in
 * agentwal/admin.h).
 *
 * Built in two passes over the indexes of all segments: wal__space_add_index,
 * then wal__space_add_record for every record. Memory: 48 bytes for each
 * session number, 32 for each fork. One thread.
 */
#ifndef AGENTWAL_ENGINE_COMPACT_SPACE_H
#define AGENTWAL_ENGINE_COMPACT_SPACE_H

#include "engine/compact/live_set.h"

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
