/*
 * lineage_list.h - the sessions that forks descend from, and which of them may own an id or a
 * sequence number. Forks share it: a lineage is a list of levels, the root first, and a fork's
 * ancestors are a prefix of a list (its view). Lists that part from another hold only the levels
 * that differ. So a level more costs the same at any depth, and a look-up reads one table, not
 * every ancestor.
 *
 * A level's own entries have sequence numbers above its fork point, and its fork point is an entry
 * of the level before it: levels ascend by fork point. A fork sees the entries of a level up to the
 * fork point of the next one.
 *
 * The caller's lock: one writer, or any readers.
 */
#ifndef AGENTWAL_ENGINE_STORE_LINEAGE_LIST_H
#define AGENTWAL_ENGINE_STORE_LINEAGE_LIST_H

#include <stdbool.h>

#include "agentwal.h"
#include "engine/base/heap.h"

struct wal__lineage_level {
    uint32_t session;
    uint64_t fork_sequence; /* 0: not a fork */
    uint64_t indexed;       /* own ids up to this sequence are in the table */
};

struct wal__lineage; /* a list; counted by its views and the lists on it */

/* The ancestors of a fork; zeroed: none. */
struct wal__lineage_view {
    struct wal__lineage *lineage;
    uint32_t count; /* levels */
};

/* Sets *out, which is released by the caller, to `view` and one more level. The fork point is above
 * that of the last level. */
enum wal_status wal__lineage_extend(const struct wal__heap *heap,
                                    const struct wal__lineage_view *view, uint32_t session,
                                    uint64_t fork_sequence,
                                    struct wal__lineage_view *out) WAL_MUST_USE;
/* Releases the reference and empties the view. */
void wal__lineage_release(struct wal__lineage_view *view);
/* The level of a rank, from 0 at the root. */
struct wal__lineage_level wal__lineage_level(const struct wal__lineage_view *view, uint32_t rank);
/* The rank of the only level that can own the sequence number, which is not above the fork's point.
 * False for an empty view or sequence 0. */
bool wal__lineage_find_sequence(const struct wal__lineage_view *view, uint64_t sequence,
                                uint32_t *rank);
/*
 * The id table. Returns the next level whose ids a fork at `limit` needs and the table lacks, and
 * up to which sequence: the caller adds the hashes of the level's own entries in (level.indexed,
 * *up_to], then sets it. False when the table is complete. Adding a hash twice does no harm.
 */
bool wal__lineage_next_unindexed(const struct wal__lineage_view *view, uint64_t limit,
                                 uint32_t *rank, uint64_t *up_to);
enum wal_status wal__lineage_add_id(const struct wal__lineage_view *view, uint32_t rank,
                                    uint64_t id_hash, uint64_t position) WAL_MUST_USE;
void wal__lineage_set_indexed(const struct wal__lineage_view *view, uint32_t rank, uint64_t up_to);

/* An entry of an ancestor, which the fork may not see. */
struct wal__lineage_hit {
    uint64_t position;
    uint32_t rank; /* of the level that owns it */
};

/* Iterates entries that may have this id hash; all that have it are among them. An entry may be
 * returned twice. Set *cursor to 0 first; false at the end. */
bool wal__lineage_find_id(const struct wal__lineage_view *view, uint64_t id_hash, uint32_t *cursor,
                          struct wal__lineage_hit *hit);
/* This view's share of the memory of its lists, in bytes. */
uint64_t wal__lineage_share(const struct wal__lineage_view *view);

#endif
