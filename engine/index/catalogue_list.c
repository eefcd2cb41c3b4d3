/*
 * catalogue_list.c - iterates the catalogue, newest first (catalogue.h,
 * SPEC.md 2.13).
 *
 * Invariant: a session with a slot at init is returned from the overlay and
 * skipped in the snapshot; a session that got a slot later is returned at its
 * position in the snapshot. Both sources are ordered by the keys at init.
 * The caller's lock: any readers; an iterator belongs to one thread.
 */
#include <string.h>

#include "engine/index/catalogue_internal.h"
#include "format/bytes/assert.h"
#include "format/bytes/crc32.h"

/* The session has no slot; greater than every slot. */
#define NO_SLOT UINT32_MAX

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

static enum wal_status init_overlay_heap(struct wal__catalogue_iter *iter,
                                         const struct wal__catalogue *catalogue)
{
    struct wal__heapsort_item *items;
    uint32_t count = 0;

    if (catalogue->slot_count == 0) {
        return WAL_OK;
    }
    items = wal__heap_resize(catalogue->heap, NULL, catalogue->slot_count,
                             sizeof(*items));
    if (items == NULL) {
        return WAL_ENOMEM;
    }
    for (uint32_t i = 0; i < catalogue->slot_count; i++) {
        const struct wal__summary *summary = &catalogue->slots[i]->summary;
        struct wal__list_key key = wal__summary_list_key(summary);

        if (matches(&iter->filter, summary) &&
            wal__list_key_is_after(&key, &iter->filter.after)) {
            items[count++] = wal__list_key_to_item(&key);
        }
    }
    WAL__ASSERT(count <= catalogue->slot_count);
    wal__heapsort_make_heap(items, count);
    iter->overlay = items;
    iter->overlay_count = count;
    iter->slot_count = catalogue->slot_count;
    return WAL_OK;
}

/* Finds the first item of the snapshot's section by binary search. */
static enum wal_status seek_snapshot(struct wal__catalogue_iter *iter,
                                     const struct wal__catalogue *catalogue)
{
    const struct wal__catalogue_filter *filter = &iter->filter;
    struct wal__snapshot_key key = {.after = filter->after};

    if (filter->recorded_after != 0 && iter->snapshot_end > 0 &&
        filter->recorded_after >= catalogue->header.last_sequence) {
        iter->snapshot_end = 0; /* the overlay has all of them */
        return WAL_OK;
    }
    if (filter->cwd.size > 0) {
        key.hash = wal__id_hash(filter->cwd.data, filter->cwd.size);
        iter->cwd_hash = key.hash;
        return wal__snapshot_cwd_begin(catalogue, &key, &iter->snapshot_next);
    }
    if (filter->after.number != 0) {
        return wal__snapshot_recent_begin(catalogue, &key,
                                          &iter->snapshot_next);
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
        .snapshot_end = wal__snapshot_count(catalogue),
        .key = filter->after,
        .heap = catalogue->heap,
    };
    enum wal_status status = seek_snapshot(&opened, catalogue);

    if (status != WAL_OK) {
        return status;
    }
    WAL__ASSERT(opened.snapshot_next <= opened.snapshot_end);
    status = init_overlay_heap(&opened, catalogue);
    if (status != WAL_OK) {
        return status;
    }
    *iter = opened;
    return WAL_OK;
}

void wal__catalogue_iter_deinit(struct wal__catalogue_iter *iter)
{
    wal__heap_free(iter->heap, iter->overlay);
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

/* Advances snapshot_next to the snapshot's newest session that was not returned
 * yet; WAL_END if there is none. *slot is the slot that the session got since
 * init, or NO_SLOT. */
static enum wal_status peek_snapshot(struct wal__catalogue_iter *iter,
                                     const struct wal__catalogue *catalogue,
                                     struct wal__summary *row, uint32_t *slot)
{
    uint64_t section = iter->filter.cwd.size > 0 ? catalogue->layout.by_cwd
                                                 : catalogue->layout.by_recent;

    for (; iter->snapshot_next < iter->snapshot_end; iter->snapshot_next++) {
        uint32_t rank;
        enum wal_status status =
            wal__snapshot_rank(catalogue, section, iter->snapshot_next, &rank);

        wal__snapshot_prefetch(catalogue, section, iter->snapshot_next);
        if (status == WAL_OK) {
            status = wal__snapshot_row(catalogue, rank, row);
        }
        if (status != WAL_OK) {
            return status;
        }
        if (is_beyond_filter(iter, row)) {
            iter->snapshot_end = iter->snapshot_next;
            break;
        }
        if (!wal__catalogue_find_slot(catalogue, row->number, slot)) {
            *slot = NO_SLOT;
        }
        WAL__ASSERT(*slot == NO_SLOT || *slot < catalogue->slot_count);
        if (*slot >= iter->slot_count && matches(&iter->filter, row)) {
            return WAL_OK;
        }
    }
    return WAL_END;
}

/* The overlay's newest key that was not returned yet; number 0 if there is
 * none. */
static struct wal__list_key peek_overlay(const struct wal__catalogue_iter *iter)
{
    WAL__ASSERT(iter->overlay_count <= iter->slot_count);
    return iter->overlay_count > 0 ? wal__list_key_from_item(&iter->overlay[0])
                                   : (struct wal__list_key){.number = 0};
}

/* The session of the next key, which may have been deleted since init. */
static enum wal_status next_session(struct wal__catalogue_iter *iter,
                                    const struct wal__catalogue *catalogue,
                                    struct wal__summary *summary)
{
    struct wal__list_key overlaid = peek_overlay(iter);
    uint32_t slot;
    enum wal_status status = peek_snapshot(iter, catalogue, summary, &slot);

    if (status == WAL_OK) {
        struct wal__list_key key = wal__summary_list_key(summary);

        if (overlaid.number == 0 || wal__list_key_is_after(&overlaid, &key)) {
            iter->snapshot_next++;
            iter->key = key;
            if (slot != NO_SLOT) {
                *summary = catalogue->slots[slot]->summary;
            }
            return WAL_OK;
        }
    }
    if (status < 0 || overlaid.number == 0) {
        return status;
    }
    (void)wal__heapsort_pop(iter->overlay, &iter->overlay_count);
    WAL__ASSERT(wal__list_key_is_after(&overlaid, &iter->filter.after));
    iter->key = overlaid;
    return wal__catalogue_get(catalogue, overlaid.number, summary);
}

enum wal_status wal__catalogue_iter_next(struct wal__catalogue_iter *iter,
                                         const struct wal__catalogue *catalogue,
                                         struct wal__summary *summary)
{
    enum wal_status status;

    WAL__ASSERT(catalogue->slot_count >= iter->slot_count);
    do {
        status = next_session(iter, catalogue, summary);
    } while (status == WAL_OK && wal__summary_is_hidden(summary));
    return status;
}
