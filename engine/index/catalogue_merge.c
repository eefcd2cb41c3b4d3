/*
 * catalogue_merge.c - merges the layers of the catalogue (catalogue_merge.h,
 * SPEC.md 2.13).
 *
 * Each order of the next snapshot is that of the old one, without the sessions
 * that have a slot or are left out, merged with the sorted slots: so nothing of
 * the old snapshot is sorted, and few of its summaries are compared.
 *
 * Invariant: new_ranks ascend where they are not NO_RANK. Locks as in the
 * header.
 */
#include "engine/index/catalogue_merge.h"

#include "engine/base/containers.h"
#include "engine/index/catalogue_internal.h"
#include "engine/index/catalogue_overlay.h"
#include "format/bytes/assert.h"
#include "format/bytes/crc32.h"

/* Set in a source that is an item of `slots`, not a rank of the snapshot. */
#define IS_SLOT (UINT32_C(1) << 31)
/* Of a rank of the snapshot that is not in the next one. */
#define NO_RANK UINT32_MAX

static enum wal_status read_source(const struct wal__merge *merge,
                                   uint32_t source,
                                   struct wal__summary *summary)
{
    if ((source & IS_SLOT) != 0) {
        const struct wal__merge_slot *slot = &merge->slots[source & ~IS_SLOT];

        wal__overlay_get(slot->layer, slot->slot, summary);
        return WAL_OK;
    }
    return wal__snapshot_row(merge->catalogue->snapshot, source, summary);
}

enum wal_status wal__merge_read(const struct wal__merge *merge, uint32_t rank,
                                struct wal__summary *summary)
{
    WAL__ASSERT(rank < merge->count);
    return read_source(merge, merge->sources[rank], summary);
}

/* -------------------------------------------------------------- merging --- */

/* Collects the slots of a layer that `newer` does not hide. */
static void add_slots(struct wal__merge *merge,
                      const struct wal__overlay *layer,
                      const struct wal__overlay *newer)
{
    for (uint32_t i = 0; layer != NULL && i < layer->count; i++) {
        uint32_t number = wal__summary_number(layer->slots[i]->summary);
        uint32_t slot;

        if (!wal__overlay_find(newer, number, &slot)) {
            merge->slots[merge->slot_count++] =
                (struct wal__merge_slot){.layer = layer, .slot = i};
        }
    }
}

static uint32_t slot_number(const struct wal__merge *merge, uint32_t item)
{
    const struct wal__merge_slot *slot = &merge->slots[item];

    return wal__summary_number(slot->layer->slots[slot->slot]->summary);
}

/* Sorts the slots by number. */
static enum wal_status sort_slots(struct wal__merge *merge)
{
    const struct wal__heap *heap = merge->catalogue->heap;
    struct wal__merge_slot *sorted =
        wal__heap_resize(heap, NULL, merge->slot_count, sizeof(*sorted));

    if (sorted == NULL) {
        return WAL_ENOMEM;
    }
    for (uint32_t i = 0; i < merge->slot_count; i++) {
        merge->items[i] = (struct wal__heapsort_item){
            .key = slot_number(merge, i), .value = i};
    }
    wal__heapsort_sort(merge->items, merge->slot_count);
    for (uint32_t i = 0; i < merge->slot_count; i++) {
        sorted[i] = merge->slots[merge->items[i].value];
    }
    wal__heap_free(heap, merge->slots);
    merge->slots = sorted;
    return WAL_OK;
}

/* Merges the rows of the snapshot and the slots, ascending by number. */
static enum wal_status merge_sources(struct wal__merge *merge)
{
    const struct wal__snapshot *snapshot = merge->catalogue->snapshot;
    uint32_t rows = wal__snapshot_count(snapshot);
    uint32_t last = 0;
    uint32_t item = 0;

    for (uint32_t i = 0; i < rows; i++) {
        uint32_t number;
        enum wal_status status = wal__snapshot_number(snapshot, i, &number);

        if (status != WAL_OK) {
            return status;
        }
        if (number <= last) {
            return WAL_ECORRUPT;
        }
        last = number;
        while (item < merge->slot_count && slot_number(merge, item) < number) {
            merge->sources[merge->count++] = item++ | IS_SLOT;
        }
        if (item == merge->slot_count || slot_number(merge, item) != number) {
            merge->sources[merge->count++] = i;
        }
    }
    while (item < merge->slot_count) {
        merge->sources[merge->count++] = item++ | IS_SLOT;
    }
    return WAL_OK;
}

/* ------------------------------------------------------------- omitting --- */

/* Deleted sessions that others refer to, and how they are found. */
struct references {
    struct wal__bitset numbers;
    bool changed;
};

static enum wal_status add_reference(struct references *references,
                                     const struct wal__summary *from,
                                     uint32_t to)
{
    enum wal_status status;

    if (to == 0 || to == from->number ||
        wal__bitset_contains(&references->numbers, to)) {
        return WAL_OK;
    }
    status = wal__bitset_reserve(&references->numbers, to);
    if (status == WAL_OK) {
        wal__bitset_set(&references->numbers, to);
        /* One that was passed already is looked at in the next pass. A session
         * refers to older ones, so that there is seldom another. */
        references->changed = references->changed || to > from->number;
    }
    return status;
}

static bool is_kept(const struct references *references,
                    const struct wal__summary *summary)
{
    return (summary->flags & WAL__SUMMARY_DELETED) == 0 ||
           wal__bitset_contains(&references->numbers, summary->number);
}

/* Collects what the kept sessions refer to: the sessions whose entries, first
 * message and documents they share. */
static enum wal_status find_references(const struct wal__merge *merge,
                                       struct references *references)
{
    enum wal_status status = WAL_OK;

    references->changed = false;
    for (uint32_t rank = merge->count; rank > 0 && status == WAL_OK; rank--) {
        struct wal__summary summary;

        status = wal__merge_read(merge, rank - 1, &summary);
        if (status != WAL_OK || !is_kept(references, &summary)) {
            continue;
        }
        status = add_reference(references, &summary, summary.fork_owner);
        if (status == WAL_OK) {
            status = add_reference(references, &summary, summary.fork_source);
        }
        if (status == WAL_OK) {
            status = add_reference(references, &summary, summary.first_owner);
        }
    }
    return status;
}

static enum wal_status count_hidden(struct wal__merge *merge, bool *has_deleted)
{
    for (uint32_t rank = 0; rank < merge->count; rank++) {
        uint32_t source = merge->sources[rank];
        uint32_t number;
        uint32_t flags;
        enum wal_status status = WAL_OK;

        if ((source & IS_SLOT) != 0) {
            const struct wal__merge_slot *slot =
                &merge->slots[source & ~IS_SLOT];
            const uint8_t *at = slot->layer->slots[slot->slot]->summary;

            number = wal__summary_number(at);
            flags = wal__summary_flags(at);
        } else {
            status = wal__snapshot_flags(merge->catalogue->snapshot, source,
                                         &number, &flags);
        }
        if (status != WAL_OK) {
            return status;
        }
        *has_deleted = *has_deleted || (flags & WAL__SUMMARY_DELETED) != 0;
        merge->hidden_count +=
            (flags & WAL__SUMMARY_DELETED) != 0 || number == WAL__STORE_NUMBER;
    }
    return WAL_OK;
}

/* Removes the sessions that are not kept from the sources. */
static enum wal_status omit(struct wal__merge *merge,
                            const struct references *references)
{
    uint32_t count = 0;

    for (uint32_t rank = 0; rank < merge->count; rank++) {
        struct wal__summary summary;
        enum wal_status status = wal__merge_read(merge, rank, &summary);

        if (status != WAL_OK) {
            return status;
        }
        if (is_kept(references, &summary)) {
            merge->sources[count++] = merge->sources[rank];
        } else {
            merge->hidden_count--;
        }
    }
    merge->count = count;
    return WAL_OK;
}

static enum wal_status omit_deleted(struct wal__merge *merge)
{
    struct references references = {.changed = true};
    bool has_deleted = false;
    enum wal_status status = count_hidden(merge, &has_deleted);

    if (status != WAL_OK || !has_deleted) {
        return status;
    }
    wal__bitset_init(&references.numbers, merge->catalogue->heap);
    while (status == WAL_OK && references.changed) {
        status = find_references(merge, &references);
    }
    if (status == WAL_OK) {
        status = omit(merge, &references);
    }
    wal__bitset_deinit(&references.numbers);
    return status;
}

static void set_ranks(struct wal__merge *merge)
{
    uint32_t rows = wal__snapshot_count(merge->catalogue->snapshot);

    for (uint32_t i = 0; i < rows; i++) {
        merge->new_ranks[i] = NO_RANK;
    }
    for (uint32_t i = 0; i < merge->slot_count; i++) {
        merge->slots[i].rank = NO_RANK;
    }
    for (uint32_t rank = 0; rank < merge->count; rank++) {
        uint32_t source = merge->sources[rank];

        if ((source & IS_SLOT) != 0) {
            merge->slots[source & ~IS_SLOT].rank = rank;
        } else {
            merge->new_ranks[source] = rank;
        }
    }
}

/* ----------------------------------------------------------------- keys --- */

/* What a session is ordered by: ascending. */
struct order_key {
    uint64_t hash;               /* of id or cwd; 0 in by_recent */
    struct wal__list_key recent; /* zero in by_id */
    uint32_t number;
};

static void set_order_key(enum wal__merge_order order,
                          const struct wal__summary *summary,
                          struct order_key *key)
{
    *key = (struct order_key){.number = summary->number};
    if (order == WAL__MERGE_BY_ID) {
        key->hash = summary->id_hash;
        return;
    }
    key->recent = wal__summary_list_key(summary);
    if (order == WAL__MERGE_BY_CWD) {
        key->hash = wal__id_hash(summary->cwd.data, summary->cwd.size);
    }
}

static bool is_before(const struct order_key *a, const struct order_key *b)
{
    if (a->hash != b->hash) {
        return a->hash < b->hash;
    }
    if (a->recent.updated_ms != b->recent.updated_ms) {
        return a->recent.updated_ms > b->recent.updated_ms;
    }
    if (a->recent.sequence != b->recent.sequence) {
        return a->recent.sequence > b->recent.sequence;
    }
    return a->number < b->number;
}

static void get_slot_key(const struct wal__merge *merge,
                         enum wal__merge_order order, uint32_t slot,
                         struct order_key *key)
{
    const struct wal__merge_slot *at = &merge->slots[slot];
    struct wal__summary summary;

    wal__overlay_get(at->layer, at->slot, &summary);
    set_order_key(order, &summary, key);
}

/* Collects the slots of the next snapshot in `recent`, newest first. */
static void sort_recent(struct wal__merge *merge)
{
    for (uint32_t i = 0; i < merge->slot_count; i++) {
        struct order_key key;
        struct wal__heapsort_item *item = &merge->items[merge->recent_count];

        if (merge->slots[i].rank == NO_RANK) {
            continue;
        }
        get_slot_key(merge, WAL__MERGE_BY_RECENT, i, &key);
        *item = wal__list_key_to_item(&key.recent);
        item->key = ~item->key;
        item->tie = ~item->tie;
        item->value = i;
        merge->recent_count++;
    }
    wal__heapsort_sort(merge->items, merge->recent_count);
    for (uint32_t i = 0; i < merge->recent_count; i++) {
        merge->recent[i] = merge->items[i].value;
    }
}

static enum wal_status allocate(struct wal__merge *merge, uint32_t slots,
                                uint32_t rows)
{
    const struct wal__heap *heap = merge->catalogue->heap;

    if (slots >= IS_SLOT || rows >= IS_SLOT - slots) {
        return WAL_ETOOBIG;
    }
    merge->slots = wal__heap_resize(heap, NULL, slots, sizeof(*merge->slots));
    merge->items = wal__heap_resize(heap, NULL, slots, sizeof(*merge->items));
    merge->recent = wal__heap_resize(heap, NULL, slots, sizeof(*merge->recent));
    merge->new_ranks =
        wal__heap_resize(heap, NULL, rows, sizeof(*merge->new_ranks));
    merge->sources =
        wal__heap_resize(heap, NULL, (size_t)rows + slots, sizeof(uint32_t));
    return merge->slots == NULL || merge->items == NULL ||
                   merge->recent == NULL || merge->new_ranks == NULL ||
                   merge->sources == NULL
               ? WAL_ENOMEM
               : WAL_OK;
}

enum wal_status wal__merge_init(struct wal__merge *merge,
                                const struct wal__catalogue *catalogue)
{
    enum wal_status status;

    *merge = (struct wal__merge){.catalogue = catalogue};
    status = allocate(merge, wal__catalogue_overlay_count(catalogue),
                      wal__snapshot_count(catalogue->snapshot));
    if (status != WAL_OK) {
        return status;
    }
    add_slots(merge, catalogue->overlay, NULL);
    add_slots(merge, catalogue->frozen, catalogue->overlay);
    status = sort_slots(merge);
    if (status == WAL_OK) {
        status = merge_sources(merge);
    }
    if (status == WAL_OK) {
        status = omit_deleted(merge);
    }
    if (status == WAL_OK) {
        set_ranks(merge);
        sort_recent(merge);
    }
    return status;
}

void wal__merge_deinit(struct wal__merge *merge)
{
    const struct wal__heap *heap = merge->catalogue->heap;

    wal__heap_free(heap, merge->sources);
    wal__heap_free(heap, merge->new_ranks);
    wal__heap_free(heap, merge->slots);
    wal__heap_free(heap, merge->items);
    wal__heap_free(heap, merge->recent);
}

/* --------------------------------------------------------------- orders --- */

/* Sorts positions in `recent`, by a hash: equal cwds stay ordered by recency,
 * and equal ids get ordered by number below. */
static void sort_slots_by(const struct wal__merge *merge,
                          enum wal__merge_order order)
{
    for (uint32_t i = 0; i < merge->recent_count; i++) {
        struct order_key key;

        get_slot_key(merge, order, merge->recent[i], &key);
        merge->items[i] = (struct wal__heapsort_item){
            .key = key.hash,
            .tie = order == WAL__MERGE_BY_ID ? key.number : 0,
            .value = i};
    }
    if (order != WAL__MERGE_BY_RECENT) {
        wal__heapsort_sort(merge->items, merge->recent_count);
    }
}

static uint64_t order_section(const struct wal__snapshot *snapshot,
                              enum wal__merge_order order)
{
    const struct wal__catalogue_layout *layout = &snapshot->layout;

    return order == WAL__MERGE_BY_ID       ? layout->by_id
           : order == WAL__MERGE_BY_RECENT ? layout->by_recent
                                           : layout->by_cwd;
}

/* Whether an item of the old order is before a key. */
static enum wal_status is_item_before(const struct wal__merge *merge,
                                      enum wal__merge_order order,
                                      uint32_t item,
                                      const struct order_key *key, bool *before)
{
    const struct wal__snapshot *snapshot = merge->catalogue->snapshot;
    struct wal__summary row;
    struct order_key row_key;
    uint32_t rank;
    enum wal_status status = wal__snapshot_rank(
        snapshot, order_section(snapshot, order), item, &rank);

    if (status == WAL_OK) {
        status = wal__snapshot_row(snapshot, rank, &row);
    }
    if (status == WAL_OK) {
        set_order_key(order, &row, &row_key);
        *before = is_before(&row_key, key);
    }
    return status;
}

/* Advances *item to the first one of the old order that is not before the key:
 * in growing steps, then by binary search in the last step. */
static enum wal_status seek(const struct wal__merge *merge,
                            enum wal__merge_order order,
                            const struct order_key *key, uint32_t *item)
{
    uint32_t rows = wal__snapshot_count(merge->catalogue->snapshot);
    uint32_t low = *item;
    uint32_t high = rows;
    uint32_t step = 1;
    enum wal_status status = WAL_OK;

    while (low < high && status == WAL_OK) {
        uint32_t probe = high == rows && step <= rows - low
                             ? low + step - 1
                             : low + (high - low) / 2;
        bool before = false;

        status = is_item_before(merge, order, probe, key, &before);
        if (before) {
            low = probe + 1;
        } else {
            high = probe;
        }
        step *= 2;
    }
    *item = low;
    return status;
}

/* A visit of an order: `count` ranks are to come. */
struct visit {
    const struct wal__merge *merge;
    enum wal__merge_order order;
    wal__merge_visitor *visitor;
    void *ctx;
    uint32_t count;
};

/* WAL_ECORRUPT when the old order has more ranks than the snapshot. */
static enum wal_status visit_rank(struct visit *visit, uint32_t rank)
{
    if (visit->count == 0) {
        return WAL_ECORRUPT;
    }
    visit->count--;
    return visit->visitor(visit->ctx, rank);
}

/* Visits the items of the old order that are in the next snapshot. */
static enum wal_status visit_rows(struct visit *visit, uint32_t from,
                                  uint32_t to)
{
    const struct wal__merge *merge = visit->merge;
    const struct wal__snapshot *snapshot = merge->catalogue->snapshot;
    enum wal_status status = WAL_OK;

    for (uint32_t i = from; i < to && status == WAL_OK; i++) {
        uint32_t rank;

        status = wal__snapshot_rank(
            snapshot, order_section(snapshot, visit->order), i, &rank);
        if (status == WAL_OK && merge->new_ranks[rank] != NO_RANK) {
            status = visit_rank(visit, merge->new_ranks[rank]);
        }
    }
    return status;
}

enum wal_status wal__merge_visit_order(const struct wal__merge *merge,
                                       enum wal__merge_order order,
                                       wal__merge_visitor *visit, void *ctx)
{
    struct visit rest = {merge, order, visit, ctx, merge->count};
    uint32_t rows = wal__snapshot_count(merge->catalogue->snapshot);
    uint32_t from = 0;
    enum wal_status status = WAL_OK;

    sort_slots_by(merge, order);
    for (uint32_t i = 0; i < merge->recent_count && status == WAL_OK; i++) {
        uint32_t slot = merge->recent[merge->items[i].value];
        struct order_key key;
        uint32_t to = from;

        get_slot_key(merge, order, slot, &key);
        status = seek(merge, order, &key, &to);
        if (status == WAL_OK) {
            status = visit_rows(&rest, from, to);
        }
        if (status == WAL_OK) {
            status = visit_rank(&rest, merge->slots[slot].rank);
        }
        from = to;
    }
    if (status == WAL_OK) {
        status = visit_rows(&rest, from, rows);
    }
    return status == WAL_OK && rest.count > 0 ? WAL_ECORRUPT : status;
}
