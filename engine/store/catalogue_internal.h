/*
 * catalogue_internal.h - shared by catalogue.c and catalogue_snapshot.c: list keys, the rows of the
 * mapped snapshot, whose pages are verified at the first access, and the layers in memory (SPEC.md
 * 2.13).
 *
 * Threads as in catalogue.h; several readers may verify a page concurrently.
 */
#ifndef AGENTWAL_ENGINE_STORE_CATALOGUE_INTERNAL_H
#define AGENTWAL_ENGINE_STORE_CATALOGUE_INTERNAL_H

#include <stdatomic.h>
#include <string.h>

#include "engine/base/containers.h"
#include "engine/store/catalogue.h"
#include "format/segment/record.h"

static inline struct wal__list_key wal__summary_list_key(const struct wal__summary *summary)
{
    return (struct wal__list_key){summary->updated_ms, summary->last_sequence, summary->number};
}

/* A key as an item for sorting: descending in the order of lists. */
static inline struct wal__heapsort_item wal__list_key_to_item(const struct wal__list_key *key)
{
    return (struct wal__heapsort_item){
        .key = (uint64_t)key->updated_ms ^ UINT64_C(1) << 63,
        .tie = key->sequence,
        .value = ~key->number,
    };
}

/* Whether the session is not listed and not found by id. */
static inline bool wal__summary_is_hidden(const struct wal__summary *summary)
{
    return (summary->flags & WAL__SUMMARY_DELETED) != 0 || summary->number == WAL__STORE_NUMBER;
}

/* The snapshot's session count; NULL: 0. */
uint32_t wal__snapshot_count(const struct wal__snapshot *snapshot);

/* Reads an item, below wal__snapshot_count, of by_id, by_recent or by_cwd (`section` is an offset
 * of the layout). This and all calls below return WAL_ECORRUPT when the snapshot is damaged. */
enum wal_status wal__snapshot_rank(const struct wal__snapshot *snapshot, uint64_t section,
                                   uint32_t item, uint32_t *rank) WAL_MUST_USE;

/* Prefetches the summary and the texts of items that follow this one in a section: in that order
 * every summary is a cache miss. Any item is allowed. */
void wal__snapshot_prefetch(const struct wal__snapshot *snapshot, uint64_t section, uint64_t item);

/* The summary of a rank below wal__snapshot_count. This and all calls below leave *summary
 * undefined on failure. */
enum wal_status wal__snapshot_row(const struct wal__snapshot *snapshot, uint32_t rank,
                                  struct wal__summary *summary) WAL_MUST_USE;

/* The rank and the summary of a number; WAL_ENOTFOUND, also when snapshot is NULL. */
enum wal_status wal__snapshot_find_rank(const struct wal__snapshot *snapshot, uint32_t number,
                                        uint32_t *rank) WAL_MUST_USE;
enum wal_status wal__snapshot_get(const struct wal__snapshot *snapshot, uint32_t number,
                                  struct wal__summary *summary) WAL_MUST_USE;
/* The summary of an id, among sessions that are neither hidden nor in another layer;
 * WAL_ENOTFOUND. */
enum wal_status wal__snapshot_find(const struct wal__catalogue *catalogue, struct wal__span id,
                                   struct wal__summary *summary) WAL_MUST_USE;

/* The key of a binary search in a section of the snapshot. */
struct wal__snapshot_key {
    uint64_t hash; /* of the id, or the cwd */
    struct wal__list_key after;
};

/* The first item of by_recent that is strictly after key->after; the first item of by_cwd that has
 * a higher hash, or the same hash and is after it. */
enum wal_status wal__snapshot_recent_begin(const struct wal__snapshot *snapshot,
                                           const struct wal__snapshot_key *key,
                                           uint32_t *item) WAL_MUST_USE;
enum wal_status wal__snapshot_cwd_begin(const struct wal__snapshot *snapshot,
                                        const struct wal__snapshot_key *key,
                                        uint32_t *item) WAL_MUST_USE;

/* --- overlays ----------------------------------------------------------- */

/* The summaries that changed since the snapshot. Layers are counted, so that an
 * iterator, or a thread that writes a snapshot, keeps the layers it began with.
 * A session has at most one slot. A slot holds an encoded summary (SPEC.md
 * 2.12), which takes half the memory of a decoded one. A frozen layer has no
 * writer, and needs no lock. Retain and release: any thread. */

/* A summary and its texts, with some room in which the head's id may grow: the only text that
 * changes with each append. */
struct wal__overlay_slot {
    uint32_t text_capacity;
    uint8_t summary[WAL__SUMMARY_SIZE];
    uint8_t text[];
};

struct wal__overlay {
    const struct wal__heap *heap;
    _Atomic uint32_t references;
    struct wal__overlay_slot **slots;
    /* The position of each slot's session in lists; number 0: it is hidden. Apart from the slots,
     * so that a list reads consecutive memory. */
    struct wal__list_key *keys;
    uint32_t count;
    uint32_t capacity;
    uint64_t slot_bytes; /* memory of all slots */
    struct wal__hashmap by_number;
    struct wal__hashmap by_id;
};

/* Finds the slot of a session; false, with *slot untouched, when it has none or overlay is NULL. */
bool wal__overlay_find(const struct wal__overlay *overlay, uint32_t number, uint32_t *slot);

/* Decodes the summary of a slot; its texts are the slot's. */
void wal__overlay_get(const struct wal__overlay *overlay, uint32_t slot,
                      struct wal__summary *summary);

#endif
