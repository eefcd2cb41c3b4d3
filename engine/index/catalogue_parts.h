/*
 * catalogue_parts.h - what the catalogue's files share: the rows of the mapped
 * snapshot, verified page by page as they are touched, and the overlay's
 * slots (SPEC.md 2.13). For catalogue*.c alone.
 *
 * Threads as in catalogue.h; pages may be verified by several readers at once.
 */
#ifndef WAL_INDEX_CATALOGUE_PARTS_H
#define WAL_INDEX_CATALOGUE_PARTS_H

#include <string.h>

#include "engine/index/catalogue.h"

/* A summary, its texts behind it with the head's last: it alone changes with
 * each append, and there is some room for it. */
struct wal__overlay_slot {
    struct wal__summary summary;
    uint32_t text_capacity;
    uint8_t text[];
};

static inline bool wal__span_equal(struct wal__span a, struct wal__span b)
{
    return a.size == b.size &&
           (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

/* The overlay's slot of a session. */
bool wal__catalogue_slot(const struct wal__catalogue *catalogue,
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

/* Has the summary of an item brought near, while others are worked on: in the
 * order of a section each lies elsewhere, and memory is what takes the time.
 * Any item. */
void wal__snapshot_prefetch(const struct wal__catalogue *catalogue,
                            uint64_t section, uint64_t item);

/* The summary of a rank below wal__snapshot_count. */
enum wal_status wal__snapshot_row(const struct wal__catalogue *catalogue,
                                  uint32_t rank,
                                  struct wal__summary *summary) WAL_MUST_USE;

/* WAL_ENOTFOUND when the snapshot has no such session. */
enum wal_status wal__snapshot_get(const struct wal__catalogue *catalogue,
                                  uint32_t number,
                                  struct wal__summary *summary) WAL_MUST_USE;
enum wal_status wal__snapshot_find(const struct wal__catalogue *catalogue,
                                   struct wal__span id,
                                   struct wal__summary *summary) WAL_MUST_USE;

/* The first item of by_cwd whose hash is not below cwd_hash. */
enum wal_status wal__snapshot_cwd_begin(const struct wal__catalogue *catalogue,
                                        uint64_t cwd_hash,
                                        uint32_t *item) WAL_MUST_USE;

#endif
