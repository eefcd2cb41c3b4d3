/*
 * catalogue_list.c - walking the catalogue, newest first (catalogue.h,
 * SPEC.md 2.13).
 *
 * Invariant: a session that was in the overlay at init is given from there
 * and left out of the snapshot; one that came to the overlay later is given
 * where the snapshot has it. Both are in the order of their places at init.
 * The caller's lock: any readers; a cursor belongs to one thread.
 */
#include <string.h>

#include "engine/index/catalogue_parts.h"
#include "format/crc32.h"

/* No slot of the overlay: behind all. */
#define NO_SLOT UINT32_MAX

static bool passes(struct wal__span filter, struct wal__span text)
{
    return filter.size == 0 || wal__span_equal(filter, text);
}

static bool begins(struct wal__span prefix, struct wal__span id)
{
    return prefix.size == 0 || (prefix.size <= id.size &&
                                memcmp(prefix.data, id.data, prefix.size) == 0);
}

static bool matches(const struct wal__catalogue_filter *filter,
                    const struct wal__summary *summary)
{
    return passes(filter->cwd, summary->cwd) &&
           passes(filter->project, summary->project) &&
           passes(filter->source, summary->source) &&
           passes(filter->parent_id, summary->parent_id) &&
           begins(filter->prefix, summary->id);
}

static enum wal_status gather_overlay(struct wal__catalogue_cursor *cursor,
                                      const struct wal__catalogue *catalogue)
{
    struct wal__order_item *items;
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
        struct wal__catalogue_place place = wal__summary_place(summary);

        if (matches(&cursor->filter, summary) &&
            wal__place_is_behind(&place, &cursor->filter.after)) {
            items[count].key = place.sequence;
            items[count].value = ~place.number; /* the lowest is the greatest */
            count++;
        }
    }
    wal__order_heap(items, count);
    cursor->overlay = items;
    cursor->overlay_count = count;
    cursor->slot_count = catalogue->slot_count;
    return WAL_OK;
}

/* Where the snapshot's sessions begin; what is before is never looked at. */
static enum wal_status find_begin(struct wal__catalogue_cursor *cursor,
                                  const struct wal__catalogue *catalogue)
{
    const struct wal__catalogue_filter *filter = &cursor->filter;
    struct wal__snapshot_key key = {.after = filter->after};

    if (filter->cwd.size > 0) {
        key.hash = wal__id_hash(filter->cwd.data, filter->cwd.size);
        cursor->cwd_hash = key.hash;
        return wal__snapshot_cwd_begin(catalogue, &key, &cursor->snapshot_next);
    }
    if (filter->after.number != 0) {
        return wal__snapshot_recent_begin(catalogue, &key,
                                          &cursor->snapshot_next);
    }
    return WAL_OK;
}

enum wal_status
wal__catalogue_cursor_init(struct wal__catalogue_cursor *cursor,
                           const struct wal__catalogue *catalogue,
                           const struct wal__catalogue_filter *filter)
{
    struct wal__catalogue_cursor begun = {
        .filter = *filter,
        .snapshot_end = wal__snapshot_count(catalogue),
        .place = filter->after,
        .heap = catalogue->heap,
    };
    enum wal_status status = find_begin(&begun, catalogue);

    if (status == WAL_OK) {
        status = gather_overlay(&begun, catalogue);
    }
    if (status == WAL_OK) {
        *cursor = begun;
    }
    return status;
}

void wal__catalogue_cursor_deinit(struct wal__catalogue_cursor *cursor)
{
    wal__heap_free(cursor->heap, cursor->overlay);
    *cursor = (struct wal__catalogue_cursor){.heap = cursor->heap};
}

/* Whether by_cwd has gone beyond the cwd asked for. Another cwd may have the
 * same hash. */
static bool is_beyond_cwd(const struct wal__catalogue_cursor *cursor,
                          const struct wal__summary *row)
{
    return cursor->filter.cwd.size > 0 &&
           !wal__span_equal(cursor->filter.cwd, row->cwd) &&
           wal__id_hash(row->cwd.data, row->cwd.size) != cursor->cwd_hash;
}

/* The newest session of the snapshot that is still to be given, which
 * snapshot_next is left at; WAL_END when there is none. *slot: of the overlay,
 * that it came to since init, or NO_SLOT. */
static enum wal_status peek_snapshot(struct wal__catalogue_cursor *cursor,
                                     const struct wal__catalogue *catalogue,
                                     struct wal__summary *row, uint32_t *slot)
{
    uint64_t section = cursor->filter.cwd.size > 0
                           ? catalogue->layout.by_cwd
                           : catalogue->layout.by_recent;

    for (; cursor->snapshot_next < cursor->snapshot_end;
         cursor->snapshot_next++) {
        uint32_t rank;
        enum wal_status status = wal__snapshot_rank(
            catalogue, section, cursor->snapshot_next, &rank);

        wal__snapshot_prefetch(catalogue, section, cursor->snapshot_next);
        if (status == WAL_OK) {
            status = wal__snapshot_row(catalogue, rank, row);
        }
        if (status != WAL_OK) {
            return status;
        }
        if (is_beyond_cwd(cursor, row)) {
            cursor->snapshot_end = cursor->snapshot_next;
            break;
        }
        if (!wal__catalogue_slot(catalogue, row->number, slot)) {
            *slot = NO_SLOT;
        }
        if (*slot >= cursor->slot_count && matches(&cursor->filter, row)) {
            return WAL_OK;
        }
    }
    return WAL_END;
}

/* The newest place of the overlay that is still to be given; number 0 when
 * there is none. */
static struct wal__catalogue_place
peek_overlay(const struct wal__catalogue_cursor *cursor)
{
    struct wal__catalogue_place place = {0, 0};

    if (cursor->overlay_count > 0) {
        place.sequence = cursor->overlay[0].key;
        place.number = ~cursor->overlay[0].value;
    }
    return place;
}

/* The session of the next place, whatever became of it. */
static enum wal_status next_place(struct wal__catalogue_cursor *cursor,
                                  const struct wal__catalogue *catalogue,
                                  struct wal__summary *summary)
{
    struct wal__catalogue_place overlaid = peek_overlay(cursor);
    uint32_t slot;
    enum wal_status status = peek_snapshot(cursor, catalogue, summary, &slot);

    if (status == WAL_OK) {
        struct wal__catalogue_place place = wal__summary_place(summary);

        if (overlaid.number == 0 || wal__place_is_behind(&overlaid, &place)) {
            cursor->snapshot_next++;
            cursor->place = place;
            if (slot != NO_SLOT) {
                *summary = catalogue->slots[slot]->summary;
            }
            return WAL_OK;
        }
    }
    if (status < 0 || overlaid.number == 0) {
        return status;
    }
    (void)wal__order_pop(cursor->overlay, &cursor->overlay_count);
    cursor->place = overlaid;
    return wal__catalogue_get(catalogue, overlaid.number, summary);
}

enum wal_status
wal__catalogue_cursor_next(struct wal__catalogue_cursor *cursor,
                           const struct wal__catalogue *catalogue,
                           struct wal__summary *summary)
{
    enum wal_status status;

    do {
        status = next_place(cursor, catalogue, summary);
    } while (status == WAL_OK && wal__summary_is_hidden(summary));
    return status;
}
