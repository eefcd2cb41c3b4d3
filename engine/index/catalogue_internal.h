/*
 * catalogue_internal.h - what the catalogue's files share: the rows of the
 * mapped snapshot, verified page by page as they are touched, and the overlay's
 * slots (SPEC.md 2.13). For catalogue*.c alone.
 *
 * Threads as in catalogue.h; pages may be verified by several readers at once.
 */
#ifndef AGENTWAL_ENGINE_INDEX_CATALOGUE_INTERNAL_H
#define AGENTWAL_ENGINE_INDEX_CATALOGUE_INTERNAL_H

#include <string.h>

#include "engine/index/catalogue.h"
#include "format/segment/record.h"

/* A summary, its texts behind it with the head's last: it alone changes with
 * each append, and there is some room for it. */
struct wal__overlay_slot {
    struct wal__summary summary;
    uint32_t text_capacity;
    uint8_t text[];
};

static inline struct wal__list_key
wal__summary_list_key(const struct wal__summary *summary)
{
    return (struct wal__list_key){summary->last_sequence, summary->number};
}

/* Whether it is in no list and found by no id. */
static inline bool wal__summary_is_hidden(const struct wal__summary *summary)
{
    return (summary->flags & WAL__SUMMARY_DELETED) != 0 ||
           summary->number == WAL__STORE_NUMBER;
}

/* The store's own, before its first record. */
extern const struct wal__span wal__store_id;
void wal__store_summary(struct wal__summary *summary);

/* The overlay's slot of a session. */
bool wal__catalogue_find_slot(const struct wal__catalogue *catalogue,
                              uint32_t number, uint32_t *slot);

/* The snapshot's session count; 0 without a snapshot. */
uint32_t wal__snapshot_count(const struct wal__catalogue *catalogue);

/* Frees what adopting took, and forgets the snapshot. */
void wal__snapshot_release(struct wal__catalogue *catalogue);

/* The item of by_id, by_recent or by_cwd (`section`, from the layout), below
 * wal__snapshot_count. WAL_ECORRUPT when damaged, as all below. */
enum wal_status wal__snapshot_rank(const struct wal__catalogue *catalogue,
                                   uint64_t section, uint32_t item,
                                   uint32_t *rank) WAL_MUST_USE;

/* Has the summaries of some items behind this one brought near, while it is
 * worked on, and the texts of some that came so: in the order of a section each
 * lies elsewhere, and memory is what takes the time. Any item. */
void wal__snapshot_prefetch(const struct wal__catalogue *catalogue,
                            uint64_t section, uint64_t item);

/* The summary of a rank below wal__snapshot_count; as with all below that give
 * one, it is undefined on failure. */
enum wal_status wal__snapshot_row(const struct wal__catalogue *catalogue,
                                  uint32_t rank,
                                  struct wal__summary *summary) WAL_MUST_USE;

/* WAL_ENOTFOUND when the snapshot has no such session. */
enum wal_status wal__snapshot_get(const struct wal__catalogue *catalogue,
                                  uint32_t number,
                                  struct wal__summary *summary) WAL_MUST_USE;
/* Of those that are neither hidden nor overlaid. */
enum wal_status wal__snapshot_find(const struct wal__catalogue *catalogue,
                                   struct wal__span id,
                                   struct wal__summary *summary) WAL_MUST_USE;

/* Where a search in a section of the snapshot ends. */
struct wal__snapshot_key {
    uint64_t hash; /* of the id, or the cwd */
    struct wal__list_key after;
};

/* The first item of by_recent that is strictly behind the place; of by_cwd,
 * that has the hash, or a higher one, and is. */
enum wal_status
wal__snapshot_recent_begin(const struct wal__catalogue *catalogue,
                           const struct wal__snapshot_key *key,
                           uint32_t *item) WAL_MUST_USE;
enum wal_status wal__snapshot_cwd_begin(const struct wal__catalogue *catalogue,
                                        const struct wal__snapshot_key *key,
                                        uint32_t *item) WAL_MUST_USE;

#endif
