/*
 * catalogue_merge.h - the sessions of the next snapshot of the catalogue: those
 * of all layers, ranked by number, in the three orders of a snapshot (SPEC.md
 * 2.13). Deleted sessions that no other session refers to are left out.
 *
 * Locks as in catalogue.h. The catalogue must not change between init and
 * deinit.
 */
#ifndef AGENTWAL_ENGINE_INDEX_CATALOGUE_MERGE_H
#define AGENTWAL_ENGINE_INDEX_CATALOGUE_MERGE_H

#include "engine/index/catalogue.h"

enum wal__merge_order {
    WAL__MERGE_BY_ID,
    WAL__MERGE_BY_RECENT,
    WAL__MERGE_BY_CWD,
    WAL__MERGE_ORDERS
};

struct wal__merge_slot {
    const struct wal__overlay *layer;
    uint32_t slot;
    uint32_t rank; /* in the next snapshot */
};

struct wal__merge {
    const struct wal__catalogue *catalogue;
    uint32_t count;        /* sessions of the next snapshot */
    uint32_t hidden_count; /* of these */
    uint32_t *sources;     /* of each rank: of a slot or of the snapshot */
    uint32_t *new_ranks;   /* of each rank of the snapshot */
    /* The newest slot of each changed session, ascending by number. */
    struct wal__merge_slot *slots;
    uint32_t slot_count;
    uint32_t *recent; /* those of the next snapshot, newest first */
    uint32_t recent_count;
    struct wal__heapsort_item *items; /* for sorting */
};

/* WAL_ENOMEM; WAL_ECORRUPT when the snapshot is damaged. *merge can be
 * deinitialised after a failure. */
enum wal_status
wal__merge_init(struct wal__merge *merge,
                const struct wal__catalogue *catalogue) WAL_MUST_USE;
void wal__merge_deinit(struct wal__merge *merge);

/* The summary of a rank below `count`. */
enum wal_status wal__merge_read(const struct wal__merge *merge, uint32_t rank,
                                struct wal__summary *summary) WAL_MUST_USE;

/* Calls `visit` with each rank, in an order; stops at its first failure. */
typedef enum wal_status wal__merge_visitor(void *ctx, uint32_t rank);
enum wal_status wal__merge_visit_order(const struct wal__merge *merge,
                                       enum wal__merge_order order,
                                       wal__merge_visitor *visit,
                                       void *ctx) WAL_MUST_USE;

#endif
