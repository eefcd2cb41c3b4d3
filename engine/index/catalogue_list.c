/*
 * catalogue_list.c - iterates the catalogue, newest first (catalogue.h,
 * SPEC.md 2.13).
 *
 * Invariant: a session with a slot at init is returned from the heap of slots
 * and skipped in the snapshot; a session that got a slot later is returned at
 * its position in the snapshot. Both sources are ordered by the keys at init,
 * and are those of init, whatever layers the catalogue has since.
 * With a source filter all sessions may come from the heap.
 * The caller's lock: any readers; an iterator belongs to one thread.
 */
#include <string.h>

#include "engine/index/catalogue_internal.h"
#include "engine/index/catalogue_overlay.h"
#include "format/bytes/assert.h"
#include "format/bytes/crc32.h"

static bool matches_text(struct wal__span filter, struct wal__span text)
{
    return filter.size == 0 || wal__span_equal(filter, text);
}

static bool has_prefix(struct wal__span prefix, struct wal__span id)
{
    return prefix.size == 0 || (prefix.size <= id.size &&
                                memcmp(prefix.data, id.data, prefix.size) == 0);
}

static bool is_changed(const struct wal__catalogue_filter *filter,
                       const struct wal__summary *summary)
{
    return filter->changed_after == 0 ||
           summary->updated_ms > filter->changed_after;
}

static bool matches(const struct wal__catalogue_filter *filter,
                    const struct wal__summary *summary)
{
    return is_changed(filter, summary) &&
           (filter->recorded_after == 0 ||
            summary->last_sequence > filter->recorded_after) &&
           matches_text(filter->cwd, summary->cwd) &&
           matches_text(filter->project, summary->project) &&
           matches_text(filter->source, summary->source) &&
           matches_text(filter->parent_id, summary->parent_id) &&
           has_prefix(filter->prefix, summary->id);
}

/* Whether the filter needs more than the list key. */
static bool is_filtered(const struct wal__catalogue_filter *filter)
{
    return filter->changed_after != 0 || filter->recorded_after != 0 ||
           filter->cwd.size + filter->project.size + filter->prefix.size +
                   filter->source.size + filter->parent_id.size >
               0;
}

static bool slot_matches(const struct wal__catalogue_filter *filter,
                         const struct wal__overlay *layer, uint32_t slot)
{
    struct wal__summary summary;

    if (layer->keys[slot].number == 0 ||
        !wal__list_key_is_after(&layer->keys[slot], &filter->after)) {
        return false;
    }
    if (!is_filtered(filter)) {
        return true;
    }
    wal__overlay_get(layer, slot, &summary);
    return matches(filter, &summary);
}

/* Adds the slots of a layer that match, and that `newer` does not hide. */
static void add_slots(struct wal__catalogue_iter *iter,
                      const struct wal__overlay *layer,
                      const struct wal__overlay *newer)
{
    for (uint32_t i = 0; layer != NULL && i < layer->count; i++) {
        uint32_t slot;

        if (slot_matches(&iter->filter, layer, i) &&
            !wal__overlay_find(newer, layer->keys[i].number, &slot)) {
            iter->items[iter->item_count++] =
                wal__list_key_to_item(&layer->keys[i]);
        }
    }
}

static enum wal_status init_heap(struct wal__catalogue_iter *iter,
                                 const struct wal__catalogue *catalogue)
{
    uint32_t count = wal__catalogue_overlay_count(catalogue);

    if (count == 0) {
        return WAL_OK;
    }
    iter->items =
        wal__heap_resize(catalogue->heap, NULL, count, sizeof(*iter->items));
    if (iter->items == NULL) {
        return WAL_ENOMEM;
    }
    add_slots(iter, catalogue->overlay, NULL);
    add_slots(iter, catalogue->frozen, catalogue->overlay);
    WAL__ASSERT(iter->item_count <= count);
    wal__heapsort_make_heap(iter->items, iter->item_count);
    return WAL_OK;
}

/* Whether by_source has every session. */
static bool has_sources(const struct wal__catalogue *catalogue)
{
    return catalogue->sources_indexed == catalogue->last_session;
}

/* Adds the session to the heap when it passes the filter; `capacity` items have
 * room. */
static enum wal_status add_session(struct wal__catalogue_iter *iter,
                                   const struct wal__catalogue *catalogue,
                                   uint32_t number, uint32_t capacity)
{
    struct wal__summary summary;
    struct wal__list_key key;
    enum wal_status status = wal__catalogue_get(catalogue, number, &summary);

    if (status != WAL_OK) {
        return status == WAL_ENOTFOUND ? WAL_OK : status;
    }
    key = wal__summary_list_key(&summary);
    if (!wal__summary_is_hidden(&summary) &&
        wal__list_key_is_after(&key, &iter->filter.after) &&
        matches(&iter->filter, &summary)) {
        WAL__ASSERT(iter->item_count < capacity);
        iter->items[iter->item_count++] = wal__list_key_to_item(&key);
    }
    return WAL_OK;
}

static uint32_t count_hashes(const struct wal__hashmap *map, uint64_t hash)
{
    uint32_t cursor = 0;
    uint32_t number;
    uint32_t count = 0;

    while (wal__hashmap_find(map, hash, &cursor, &number)) {
        count++;
    }
    return count;
}

/* Makes the heap of the sessions of by_source, which has every session. */
static enum wal_status init_source_heap(struct wal__catalogue_iter *iter,
                                        const struct wal__catalogue *catalogue)
{
    const struct wal__hashmap *map = &catalogue->by_source;
    uint64_t hash =
        wal__id_hash(iter->filter.source.data, iter->filter.source.size);
    uint32_t capacity = count_hashes(map, hash);
    uint32_t cursor = 0;
    uint32_t number;

    WAL__ASSERT(has_sources(catalogue));
    if (capacity == 0) {
        return WAL_OK;
    }
    iter->items =
        wal__heap_resize(catalogue->heap, NULL, capacity, sizeof(*iter->items));
    if (iter->items == NULL) {
        return WAL_ENOMEM;
    }
    while (wal__hashmap_find(map, hash, &cursor, &number)) {
        enum wal_status status = add_session(iter, catalogue, number, capacity);

        if (status != WAL_OK) {
            wal__heap_free(catalogue->heap, iter->items);
            iter->items = NULL;
            return status;
        }
    }
    wal__heapsort_make_heap(iter->items, iter->item_count);
    return WAL_OK;
}

/* Finds the first item of the snapshot's section by binary search. */
static enum wal_status seek_snapshot(struct wal__catalogue_iter *iter)
{
    const struct wal__catalogue_filter *filter = &iter->filter;
    const struct wal__snapshot *snapshot = iter->snapshot;
    struct wal__snapshot_key key = {.after = filter->after};

    if (snapshot == NULL) {
        return WAL_OK;
    }
    if (filter->recorded_after != 0 &&
        filter->recorded_after >= snapshot->header.last_sequence) {
        iter->snapshot_end = 0; /* the overlay has all of them */
        return WAL_OK;
    }
    if (filter->cwd.size > 0) {
        key.hash = wal__id_hash(filter->cwd.data, filter->cwd.size);
        iter->cwd_hash = key.hash;
        return wal__snapshot_cwd_begin(snapshot, &key, &iter->snapshot_next);
    }
    if (filter->after.number != 0) {
        return wal__snapshot_recent_begin(snapshot, &key, &iter->snapshot_next);
    }
    return WAL_OK;
}

enum wal_status
wal__catalogue_iter_init(struct wal__catalogue_iter *iter,
                         const struct wal__catalogue *catalogue,
                         const struct wal__catalogue_filter *filter)
{
    struct wal__catalogue_iter opened = {
        .filter = *filter,
        .snapshot = catalogue->snapshot,
        .snapshot_end = wal__snapshot_count(catalogue->snapshot),
        .key = filter->after,
        .heap = catalogue->heap,
    };
    enum wal_status status;

    if (filter->source.size > 0 && has_sources(catalogue)) {
        opened.snapshot_end = 0;
        status = init_source_heap(&opened, catalogue);
    } else {
        status = seek_snapshot(&opened);
        WAL__ASSERT(status != WAL_OK ||
                    opened.snapshot_next <= opened.snapshot_end ||
                    opened.snapshot_end == 0);
        if (status == WAL_OK) {
            status = init_heap(&opened, catalogue);
        }
    }
    if (status != WAL_OK) {
        return status;
    }
    (void)wal__snapshot_retain(opened.snapshot);
    opened.frozen = wal__overlay_retain(catalogue->frozen);
    opened.overlay = wal__overlay_retain(catalogue->overlay);
    opened.slot_count =
        catalogue->overlay == NULL ? 0 : catalogue->overlay->count;
    *iter = opened;
    return WAL_OK;
}

void wal__catalogue_iter_deinit(struct wal__catalogue_iter *iter)
{
    wal__heap_free(iter->heap, iter->items);
    wal__overlay_release(iter->overlay);
    wal__overlay_release(iter->frozen);
    wal__snapshot_release(iter->snapshot);
    *iter = (struct wal__catalogue_iter){.heap = iter->heap};
}

/* Whether the section has passed all sessions of the filter: those of its cwd,
 * among which there may be others with the same hash, or those that changed. */
static bool is_beyond_filter(const struct wal__catalogue_iter *iter,
                             const struct wal__summary *row)
{
    if (iter->filter.cwd.size > 0 &&
        !wal__span_equal(iter->filter.cwd, row->cwd) &&
        wal__id_hash(row->cwd.data, row->cwd.size) != iter->cwd_hash) {
        return true;
    }
    return !is_changed(&iter->filter, row);
}

/* Whether the session had a slot at init, and so is in the heap or did not
 * match. */
static bool had_slot(const struct wal__catalogue_iter *iter, uint32_t number)
{
    uint32_t slot;

    return wal__overlay_find(iter->frozen, number, &slot) ||
           (wal__overlay_find(iter->overlay, number, &slot) &&
            slot < iter->slot_count);
}

/* Advances snapshot_next to the snapshot's newest session that was not returned
 * yet; WAL_END if there is none. */
static enum wal_status peek_snapshot(struct wal__catalogue_iter *iter,
                                     struct wal__summary *row)
{
    const struct wal__snapshot *snapshot = iter->snapshot;
    bool by_cwd = iter->filter.cwd.size > 0;

    for (; iter->snapshot_next < iter->snapshot_end; iter->snapshot_next++) {
        uint64_t section =
            by_cwd ? snapshot->layout.by_cwd : snapshot->layout.by_recent;
        uint32_t rank;
        enum wal_status status =
            wal__snapshot_rank(snapshot, section, iter->snapshot_next, &rank);

        wal__snapshot_prefetch(snapshot, section, iter->snapshot_next);
        if (status == WAL_OK) {
            status = wal__snapshot_row(snapshot, rank, row);
        }
        if (status != WAL_OK) {
            return status;
        }
        if (is_beyond_filter(iter, row)) {
            iter->snapshot_end = iter->snapshot_next;
            break;
        }
        if (!had_slot(iter, row->number) && matches(&iter->filter, row)) {
            return WAL_OK;
        }
    }
    return WAL_END;
}

/* The newest key in the heap; number 0 if it is empty. */
static struct wal__list_key peek_heap(const struct wal__catalogue_iter *iter)
{
    return iter->item_count > 0 ? wal__list_key_from_item(&iter->items[0])
                                : (struct wal__list_key){.number = 0};
}

/* Replaces a summary of the iterator's snapshot by the present one. */
static enum wal_status get_present(const struct wal__catalogue_iter *iter,
                                   const struct wal__catalogue *catalogue,
                                   struct wal__summary *summary)
{
    if (wal__catalogue_get_changed(catalogue, summary->number, summary) ||
        catalogue->snapshot == iter->snapshot) {
        return WAL_OK;
    }
    return wal__snapshot_get(catalogue->snapshot, summary->number, summary);
}

/* The session of the next key, which may have been deleted since init:
 * WAL_ENOTFOUND when a newer snapshot omits it. */
static enum wal_status next_session(struct wal__catalogue_iter *iter,
                                    const struct wal__catalogue *catalogue,
                                    struct wal__summary *summary)
{
    struct wal__list_key first = peek_heap(iter);
    enum wal_status status = peek_snapshot(iter, summary);

    if (status == WAL_OK) {
        struct wal__list_key key = wal__summary_list_key(summary);

        if (first.number == 0 || wal__list_key_is_after(&first, &key)) {
            iter->snapshot_next++;
            iter->key = key;
            return get_present(iter, catalogue, summary);
        }
    }
    if (status < 0 || first.number == 0) {
        return status;
    }
    (void)wal__heapsort_pop(iter->items, &iter->item_count);
    WAL__ASSERT(wal__list_key_is_after(&first, &iter->filter.after));
    iter->key = first;
    return wal__catalogue_get(catalogue, first.number, summary);
}

bool wal__catalogue_is_listed(const struct wal__catalogue_filter *filter,
                              const struct wal__summary *summary)
{
    return !wal__summary_is_hidden(summary) &&
           ((summary->flags & WAL__SUMMARY_TRASHED) != 0) == filter->is_trash;
}

enum wal_status wal__catalogue_iter_next(struct wal__catalogue_iter *iter,
                                         const struct wal__catalogue *catalogue,
                                         struct wal__summary *summary)
{
    enum wal_status status;

    do {
        status = next_session(iter, catalogue, summary);
    } while (status == WAL_ENOTFOUND ||
             (status == WAL_OK &&
              !wal__catalogue_is_listed(&iter->filter, summary)));
    return status;
}
