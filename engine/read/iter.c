/*
 * iter.c - reading entries with a cursor (SPEC.md 5.5, 5.7). Locations are
 * looked up a block at a time under the state lock; records are read without a
 * lock. One thread at a time.
 *
 * Invariant: the block holds the entries from (range, range_index) on.
 */
#include "engine/read/iter.h"

#include <inttypes.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/store/input_text.h"
#include "engine/store/payload.h"
#include "format/bytes/assert.h"

/* --- blocks ------------------------------------------------------------- */

/* Fills in depths when the entries are not one path: along a run depth rises by
 * one. */
static enum wal_status fill_depths(struct wal_entry_cursor *iter,
                                   uint32_t session, const uint32_t *runs,
                                   uint32_t count, struct wal_error *error)
{
    struct wal__iter_item *items = &iter->block[iter->block_count];
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < count && status == WAL_OK; i++) {
        if (i > 0 && runs[i] == runs[i - 1]) {
            items[i].depth = items[i - 1].depth + 1;
        } else {
            status = wal__core_entry_depth(iter->core, session, iter->stream,
                                           items[i].sequence, &items[i].depth,
                                           error);
        }
    }
    return status;
}

/* Adds the locations of a range's entries, from `at` on, to the block. */
static enum wal_status fill_from_range(struct wal_entry_cursor *iter,
                                       const struct wal__branch_slot *slot,
                                       const struct wal__iter_range *range,
                                       uint32_t at, struct wal_error *error)
{
    const struct wal__annotations *annotations = &slot->annotations;
    const struct wal__branch_entry *entries;
    const struct wal__stream *stream;
    uint32_t runs[WAL__ITER_BLOCK];
    uint32_t room = WAL__ITER_BLOCK - iter->block_count;
    uint32_t count = range->count - at < room ? range->count - at : room;
    enum wal_status status =
        wal__iter_find_stream(iter, slot, range, &stream, error);

    WAL__ASSERT(at < range->count && iter->block_count < WAL__ITER_BLOCK);
    if (status != WAL_OK) {
        return status;
    }
    entries = &stream->entries[range->first + at];
    for (uint32_t i = 0; i < count; i++) {
        struct wal__iter_item *item = &iter->block[iter->block_count + i];
        const struct wal__redaction *redaction =
            annotations->redaction_count == 0
                ? NULL
                : wal__annotations_find_redaction(annotations,
                                                  entries[i].sequence);

        item->position = entries[i].position;
        item->sequence = entries[i].sequence;
        item->depth = range->depth + at + i;
        item->redaction = redaction == NULL ? 0 : redaction->position;
        runs[i] = entries[i].run;
    }
    if (iter->all) {
        /* Last use of the slot: looking up a depth may evict it. */
        status = fill_depths(iter, range->session, runs, count, error);
    }
    if (status == WAL_OK) {
        iter->block_count += count;
    }
    return status;
}

/* Fills the empty block. Stops at a session that is not loaded, unless
 * `loading`. */
static enum wal_status fill_from_ranges(struct wal_entry_cursor *iter,
                                        bool loading, struct wal_error *error)
{
    const struct wal__iter_range *ranges = (const void *)iter->ranges.data;
    size_t range_count = iter->ranges.size / sizeof(*ranges);
    enum wal_status status = WAL_OK;
    uint32_t at = iter->range_index;

    WAL__ASSERT(iter->block_count == 0);
    for (size_t i = iter->range;
         i < range_count && iter->block_count < WAL__ITER_BLOCK; i++) {
        struct wal__branch_slot *slot =
            wal__core_cached_branch(iter->core, ranges[i].session);

        if (loading) {
            status = wal__core_get_branch(iter->core, ranges[i].session, &slot,
                                          error);
        } else if (slot == NULL || !slot->loaded) {
            break;
        }
        if (status == WAL_OK) {
            status = fill_from_range(iter, slot, &ranges[i], at, error);
        }
        if (status != WAL_OK) {
            break;
        }
        at = 0;
    }
    WAL__ASSERT(iter->block_count <= WAL__ITER_BLOCK);
    /* Return the entries found; a later call reports the failure. */
    return iter->block_count > 0 ? WAL_OK : status;
}

/* Fills the block under the shared lock; leaves it empty when an index must be
 * loaded or the ranges are stale. */
static enum wal_status fill_shared(struct wal_entry_cursor *iter,
                                   struct wal_error *error)
{
    enum wal_status status = wal__core_read_lock(iter->core, error);

    if (status != WAL_OK) {
        return status;
    }
    if (!wal__iter_is_stale(iter)) {
        status = fill_from_ranges(iter, false, error);
    }
    wal__core_unlock(iter->core);
    return status;
}

/* Looks up the next entries; finds none when all remaining ones are hidden
 * now. */
static enum wal_status fill_block(struct wal_entry_cursor *iter,
                                  struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    iter->block_count = 0;
    iter->block_index = 0;
    if (!iter->all) {
        status = fill_shared(iter, error);
    }
    if (status != WAL_OK || iter->block_count > 0) {
        return status;
    }
    status = wal__core_write_lock(iter->core, error);
    if (status != WAL_OK) {
        return status;
    }
    if (wal__iter_is_stale(iter)) {
        status = wal__iter_refresh(iter, error);
    }
    if (status == WAL_OK) {
        status = fill_from_ranges(iter, true, error);
    }
    wal__core_unlock(iter->core);
    return status;
}

/* Steps over the current entry. */
static void advance(struct wal_entry_cursor *iter)
{
    const struct wal__iter_range *ranges = (const void *)iter->ranges.data;

    WAL__ASSERT(iter->block_index < iter->block_count && iter->remaining > 0);
    WAL__ASSERT(iter->range_index < ranges[iter->range].count);
    iter->block_index++;
    iter->remaining--;
    iter->range_index++;
    if (iter->range_index == ranges[iter->range].count) {
        iter->range++;
        iter->range_index = 0;
    }
}

/* --- entries ------------------------------------------------------------ */

/* The nearest visible ancestor of an entry. */
struct parent {
    struct wal__span id;
    bool none; /* no visible ancestor */
};

/* Searches the parent in the lineage. */
static enum wal_status find_parent(struct wal_entry_cursor *iter,
                                   const struct wal__frame *child,
                                   struct parent *parent,
                                   struct wal_error *error)
{
    struct wal__entry_location found = {0};
    enum wal_status status = wal__core_write_lock(iter->core, error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__iter_find_visible(iter, child->stream, child->parent, &found);
    wal__core_unlock(iter->core);
    if (status == WAL_OK && found.sequence == 0) {
        parent->none = true;
        return WAL_OK;
    }
    if (status == WAL_OK) {
        status = wal__core_read_id(iter->core, found.position, found.sequence,
                                   &iter->aux_scratch, &parent->id);
    }
    if (status == WAL_ENOMEM) {
        return wal__fail(error, status, "no memory");
    }
    /* A lost parent leaves the id empty; the entry itself is intact. */
    return WAL_OK;
}

static void fill_entry(const struct wal__frame *frame,
                       const struct wal__entry_record *record,
                       const struct parent *parent, uint64_t depth,
                       struct wal_entry *entry)
{
    uint32_t size = entry->struct_size;

    memset(entry, 0, sizeof(*entry));
    entry->struct_size = size;
    entry->flags = record->form == WAL__ENTRY_LINE ? WAL_ENTRY_LINE : 0;
    entry->flags |= parent->none ? WAL_ENTRY_ROOT : 0;
    entry->stream = frame->stream;
    entry->id = wal__text_slice(record->id);
    entry->parent_id = wal__text_slice(parent->id);
    entry->type = wal__text_slice(frame->kind == WAL__KIND_NAMED
                                      ? record->type
                                      : wal__kind_name(frame->kind));
    entry->timestamp = wal__text_slice(record->time);
    entry->run_id = wal__text_slice(record->run);
    entry->payload = wal__text_slice(record->payload);
    entry->payload_size = record->payload_size;
    entry->meta = wal__text_slice(record->meta);
    entry->sequence = frame->sequence;
    entry->depth = depth;
}

/* Replaces the content of a redacted entry by the author and reason. */
static void redact(const struct wal_entry_cursor *iter, struct wal_entry *entry)
{
    const struct wal_slice redaction_json = {iter->redaction_json.data,
                                             iter->redaction_json.size};
    const struct wal_slice none = {NULL, 0};

    entry->flags |= WAL_ENTRY_REDACTED;
    entry->payload = redaction_json;
    entry->payload_size = redaction_json.size;
    entry->meta = none;
}

/* Sets the out-of-line payload that was loaded, or its digest. */
static void set_out_of_line_payload(const struct wal_entry_cursor *iter,
                                    const struct wal__entry_record *record,
                                    struct wal_entry *entry)
{
    const struct wal_slice loaded = {iter->payload_buf.data,
                                     iter->payload_buf.size};
    const struct wal_slice none = {NULL, 0};

    if ((iter->flags & WAL_ENTRY_CURSOR_OUT_OF_LINE) == 0) {
        entry->payload = loaded;
        return;
    }
    entry->flags |= WAL_ENTRY_OUT_OF_LINE;
    entry->payload = none;
    memcpy(entry->payload_digest, record->digest, WAL_DIGEST_SIZE);
}

/* Reads the entry's record and fills *entry. parent_hint: the entry that
 * precedes it, if known; `exact`: use it only when its sequence is the
 * parent's. */
static enum wal_status
read_entry(struct wal_entry_cursor *iter, const struct wal__iter_item *item,
           const struct wal__iter_parent_hint *parent_hint, bool exact,
           struct wal_entry *entry, struct wal_error *error)
{
    struct wal__entry_record record;
    struct parent parent = {.none = false};
    struct wal__span payload;
    struct wal__frame frame;
    enum wal_status status = WAL_OK;

    if (item->redaction != 0) {
        status = wal__iter_format_redaction(iter, item->redaction, error);
        if (status != WAL_OK) {
            return status;
        }
    }
    status = wal__log_read(&iter->core->log, item->position, &iter->scratch,
                           &frame, &payload, error);
    if (status != WAL_OK) {
        return status;
    }
    if (frame.sequence != item->sequence || frame.type != WAL__FRAME_ENTRY ||
        wal__entry_record_decode(payload, &record) != WAL__FMT_OK) {
        return wal__fail_at(
            error, WAL_ECORRUPT, 0, NULL, wal__position_offset(item->position),
            "the record with sequence number %" PRIu64 " is damaged",
            item->sequence);
    }
    if (frame.parent == 0) {
        parent.none = true;
    } else if (parent_hint->sequence != 0 &&
               (!exact || frame.parent == parent_hint->sequence)) {
        parent.id = parent_hint->id;
    } else {
        status = find_parent(iter, &frame, &parent, error);
        if (status != WAL_OK) {
            return status;
        }
    }
    if (record.digest != NULL && item->redaction == 0 &&
        (iter->flags & WAL_ENTRY_CURSOR_OUT_OF_LINE) == 0) {
        status =
            wal__payload_load(iter->core, &record, &iter->payload_buf, error);
        if (status != WAL_OK) {
            return status;
        }
    }
    fill_entry(&frame, &record, &parent, item->depth, entry);
    if (item->redaction != 0) {
        redact(iter, entry);
    } else if (record.digest != NULL) {
        set_out_of_line_payload(iter, &record, entry);
    }
    return WAL_OK;
}

/* Keeps the id for the next entry, whose parent this entry often is. */
static void save_parent_hint(struct wal_entry_cursor *iter,
                             const struct wal_entry *entry)
{
    iter->previous.sequence = entry->sequence;
    iter->previous.id.data = entry->id.data;
    iter->previous.id.size = (size_t)entry->id.size;
    if (iter->core->env.use_pread) {
        /* With pread the next read overwrites these bytes. */
        uint8_t *copy = iter->id_copy[iter->id_copy_index];

        WAL__ASSERT(iter->previous.id.size <= WAL__ID_MAX);
        memcpy(copy, entry->id.data, iter->previous.id.size);
        iter->previous.id.data = copy;
        iter->id_copy_index ^= 1;
    }
}

/* Keeps a buffer until the cursor is closed, and empties it. */
static enum wal_status pin(struct wal_entry_cursor *iter,
                           struct wal__buf *buffer, struct wal_error *error)
{
    if (buffer->size == 0) {
        return WAL_OK;
    }
    if (wal__buf_append(&iter->pinned, buffer, sizeof(*buffer)) != WAL_OK) {
        return wal__no_memory(error);
    }
    wal__buf_init(buffer, iter->core->env.heap);
    return WAL_OK;
}

/* Ends the slices of the entry that was returned before, unless pinned. */
static enum wal_status end_slices(struct wal_entry_cursor *iter,
                                  struct wal_error *error)
{
    enum wal_status status;

    if ((iter->flags & WAL_ENTRY_CURSOR_PINNED) == 0) {
        wal__buf_deinit(&iter->payload_buf);
        return WAL_OK;
    }
    status = pin(iter, &iter->payload_buf, error);
    return status == WAL_OK ? pin(iter, &iter->redaction_json, error) : status;
}

enum wal_status wal__iter_next(struct wal_entry_cursor *iter,
                               struct wal_entry *entry, struct wal_error *error)
{
    enum wal_status status = end_slices(iter, error);

    if (status != WAL_OK) {
        return status;
    }
    if (iter->remaining == 0) {
        return WAL_END;
    }
    if (iter->block_index == iter->block_count || wal__iter_is_stale(iter)) {
        status = fill_block(iter, error);
        if (status != WAL_OK) {
            return status;
        }
        if (iter->remaining == 0) {
            return WAL_END; /* the rest was redacted meanwhile */
        }
    }
    WAL__ASSERT(iter->block_index < iter->block_count);
    status = read_entry(iter, &iter->block[iter->block_index], &iter->previous,
                        iter->all, entry, error);
    if (status == WAL_ENOMEM) {
        return status;
    }
    advance(iter);
    iter->previous.sequence = 0;
    if (status == WAL_OK) {
        save_parent_hint(iter, entry);
    }
    return status;
}

/* --- by id -------------------------------------------------------------- */

/* The result of a lookup by id. */
struct lookup {
    struct wal__iter_item item;
    bool depth_is_known;
    /* The parent when it is the preceding entry and visible; sequence 0: it
     * must be searched. */
    uint64_t parent;
    uint64_t parent_position;
};

/* Fills the lookup from the owner's branch. State lock for reading or
 * writing. */
static void fill_lookup(const struct wal_entry_cursor *iter,
                        const struct wal__branch_slot *slot,
                        const struct wal__entry_location *found,
                        struct lookup *lookup)
{
    const struct wal__stream *stream =
        wal__branch_stream(&slot->branch, found->stream);
    const struct wal__branch_entry *entry = &stream->entries[found->ordinal];
    const struct wal__redaction *redaction =
        wal__annotations_find_redaction(&slot->annotations, found->sequence);

    WAL__ASSERT(found->ordinal < stream->entry_count);
    lookup->item.position = found->position;
    lookup->item.sequence = found->sequence;
    lookup->item.depth = wal__branch_depth(stream, found->ordinal);
    lookup->item.redaction = redaction == NULL ? 0 : redaction->position;
    lookup->depth_is_known = wal__branch_is_depth_exact(stream, found->ordinal);
    lookup->parent = 0;
    if (found->ordinal > stream->runs[entry->run].first &&
        !wal__iter_is_hidden(iter, &slot->annotations, entry - 1)) {
        WAL__ASSERT(entry[-1].sequence < found->sequence);
        lookup->parent = entry[-1].sequence;
        lookup->parent_position = entry[-1].position;
    }
}

/* Finds the entry under the shared lock; WAL_ENOTFOUND also when that would
 * need an index to be loaded. */
static enum wal_status find_shared(struct wal_entry_cursor *iter,
                                   struct wal__span id, struct lookup *lookup,
                                   struct wal_error *error)
{
    struct wal__branch_slot *slot;
    struct wal__entry_location found;
    enum wal_status status = wal__core_read_lock(iter->core, error);

    if (status != WAL_OK) {
        return status;
    }
    slot = wal__core_cached_branch(iter->core, iter->session);
    status = slot != NULL && slot->loaded
                 ? wal__core_find_own_id(iter->core, slot, id, &found, error)
                 : WAL_ENOTFOUND;
    if (status == WAL_OK) {
        fill_lookup(iter, slot, &found, lookup);
        status = lookup->depth_is_known ? WAL_OK : WAL_ENOTFOUND;
    }
    wal__core_unlock(iter->core);
    return status;
}

/* Finds the entry in the lineage. */
static enum wal_status find_in_lineage(struct wal_entry_cursor *iter,
                                       struct wal__span id,
                                       struct lookup *lookup,
                                       struct wal_error *error)
{
    struct wal__core *core = iter->core;
    struct wal__branch_slot *slot;
    struct wal__entry_location found;
    enum wal_status status = wal__core_write_lock(core, error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__core_find_id(core, iter->session, id, &found, error);
    if (status == WAL_OK) {
        status = wal__core_get_branch(core, found.session, &slot, error);
    }
    if (status == WAL_OK) {
        fill_lookup(iter, slot, &found, lookup);
    }
    if (status == WAL_OK && !lookup->depth_is_known) {
        status =
            wal__core_entry_depth(core, found.session, found.stream,
                                  found.sequence, &lookup->item.depth, error);
    }
    wal__core_unlock(core);
    return status;
}

enum wal_status wal__iter_get(struct wal_entry_cursor *iter,
                              struct wal__span id, struct wal_entry *entry,
                              struct wal_error *error)
{
    struct wal__iter_parent_hint parent_hint = {0, {NULL, 0}};
    struct lookup lookup;
    enum wal_status status;

    status = end_slices(iter, error);
    if (status != WAL_OK) {
        return status;
    }
    status = find_shared(iter, id, &lookup, error);
    if (status == WAL_ENOTFOUND) {
        status = find_in_lineage(iter, id, &lookup, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    if (lookup.item.redaction != 0 &&
        (iter->flags & WAL_ENTRY_CURSOR_REDACTED) == 0) {
        return wal__iter_fail_redacted(iter, lookup.item.redaction, error);
    }
    /* The REDACT record is read into the same scratch. */
    if (lookup.parent != 0 && lookup.item.redaction == 0 &&
        wal__core_read_id(iter->core, lookup.parent_position, lookup.parent,
                          &iter->aux_scratch, &parent_hint.id) == WAL_OK) {
        parent_hint.sequence = lookup.parent;
    }
    return read_entry(iter, &lookup.item, &parent_hint, true, entry, error);
}
