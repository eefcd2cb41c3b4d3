/*
 * catalogue_list.c - walking the catalogue, newest first (catalogue.h,
 * SPEC.md 2.13).
 *
 * Invariant: a session that was in the overlay at init is given from there
 * and left out of the snapshot; one that came to the overlay later is given
 * where the snapshot has it. The caller's lock: any readers; a cursor belongs
 * to one thread.
 */
#include <string.h>

#include "engine/index/catalogue_parts.h"
#include "format/crc32.h"

/* Sessions that are brought near before their turn. */
enum {
    AHEAD = 12
};

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

        if (matches(&cursor->filter, summary)) {
            items[count].key = summary->last_sequence;
            items[count].value = i;
            count++;
        }
    }
    wal__order_heap(items, count);
    cursor->overlay = items;
    cursor->overlay_count = count;
    cursor->slot_count = catalogue->slot_count;
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
        .heap = catalogue->heap,
    };
    enum wal_status status = WAL_OK;

    if (filter->cwd.size > 0) {
        begun.cwd_hash = wal__id_hash(filter->cwd.data, filter->cwd.size);
        status = wal__snapshot_cwd_begin(catalogue, begun.cwd_hash,
                                         &begun.snapshot_next);
    }
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

static bool was_overlaid(const struct wal__catalogue_cursor *cursor,
                         const struct wal__catalogue *catalogue,
                         uint32_t number)
{
    uint32_t slot;

    return cursor->slot_count > 0 &&
           wal__catalogue_slot(catalogue, number, &slot) &&
           slot < cursor->slot_count;
}

/* The newest session of the snapshot that is still to be given, which
 * snapshot_next is left at; WAL_END when there is none. */
static enum wal_status peek_snapshot(struct wal__catalogue_cursor *cursor,
                                     const struct wal__catalogue *catalogue,
                                     struct wal__summary *row)
{
    uint64_t section = cursor->filter.cwd.size > 0
                           ? catalogue->layout.by_cwd
                           : catalogue->layout.by_recent;

    for (; cursor->snapshot_next < cursor->snapshot_end;
         cursor->snapshot_next++) {
        uint32_t rank;
        enum wal_status status = wal__snapshot_rank(
            catalogue, section, cursor->snapshot_next, &rank);

        wal__snapshot_prefetch(catalogue, section,
                               (uint64_t)cursor->snapshot_next + AHEAD);
        if (status == WAL_OK) {
            status = wal__snapshot_row(catalogue, rank, row);
        }
        if (status != WAL_OK) {
            return status;
        }
        if (is_beyond_cwd(cursor, row)) {
            cursor->snapshot_end = cursor->snapshot_next;
        } else if (matches(&cursor->filter, row) &&
                   !was_overlaid(cursor, catalogue, row->number)) {
            return WAL_OK;
        }
    }
    return WAL_END;
}

enum wal_status
wal__catalogue_cursor_next(struct wal__catalogue_cursor *cursor,
                           const struct wal__catalogue *catalogue,
                           struct wal__summary *summary)
{
    struct wal__summary row;
    enum wal_status status = peek_snapshot(cursor, catalogue, &row);
    uint32_t slot;

    if (status != WAL_OK && status != WAL_END) {
        return status;
    }
    if (cursor->overlay_count > 0 &&
        (status == WAL_END || cursor->overlay[0].key >= row.last_sequence)) {
        slot = wal__order_pop(cursor->overlay, &cursor->overlay_count).value;
        *summary = catalogue->slots[slot]->summary;
        return WAL_OK;
    }
    if (status == WAL_END) {
        return WAL_END;
    }
    cursor->snapshot_next++;
    if (wal__catalogue_slot(catalogue, row.number, &slot)) {
        row = catalogue->slots[slot]->summary;
    }
    *summary = row;
    return WAL_OK;
}
