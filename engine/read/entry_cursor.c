/*
 * entry_cursor.c - reading entries with a cursor (SPEC.md 5.5, 5.7). Locations
 * are looked up a block at a time under the state lock; records are read
 * without a lock. One thread at a time.
 *
 * Invariant: the block holds the entries from (range, range_index) on, or from
 * item_next on.
 */
#include "engine/read/entry_cursor.h"

#include <inttypes.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/store/input_text.h"
#include "engine/store/payload.h"
#include "format/bytes/assert.h"

/* --- blocks ------------------------------------------------------------- */

/* Fills in depths when the entries are not one path: along a run depth rises by
 * one. `stream`: of the range. */
static enum wal_status fill_depths(struct wal_entry_cursor *cursor,
                                   uint32_t session, uint32_t stream,
                                   const uint32_t *runs, uint32_t count,
                                   struct wal_error *error)
{
    struct wal__entry_cursor_item *items = &cursor->block[cursor->block_count];
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < count && status == WAL_OK; i++) {
        if (i > 0 && runs[i] == runs[i - 1]) {
            items[i].depth = items[i - 1].depth + 1;
        } else {
            status = wal__core_entry_depth(cursor->core, session, stream,
                                           items[i].sequence, &items[i].depth,
                                           error);
        }
    }
    return status;
}

/* Adds the locations of a range's entries, from `at` on, to the block. */
static enum wal_status
fill_from_range(struct wal_entry_cursor *cursor,
                const struct wal__branch_slot *slot,
                const struct wal__entry_cursor_range *range, uint32_t at,
                struct wal_error *error)
{
    const struct wal__annotations *annotations = &slot->annotations;
    const struct wal__branch_entry *entries;
    const struct wal__stream *stream;
    uint32_t runs[WAL__ENTRY_CURSOR_BLOCK];
    uint32_t room = WAL__ENTRY_CURSOR_BLOCK - cursor->block_count;
    uint32_t count = range->count - at < room ? range->count - at : room;
    uint32_t first = 0;
    enum wal_status status = wal__entry_cursor_find_stream(
        cursor, slot, range, &stream, &first, error);

    WAL__ASSERT(at < range->count &&
                cursor->block_count < WAL__ENTRY_CURSOR_BLOCK);
    if (status != WAL_OK) {
        return status;
    }
    entries = &stream->entries[first + at];
    for (uint32_t i = 0; i < count; i++) {
        struct wal__entry_cursor_item *item =
            &cursor->block[cursor->block_count + i];
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
    if (cursor->all) {
        /* Last use of the slot: looking up a depth may evict it. */
        status = fill_depths(cursor, range->session, stream->number, runs,
                             count, error);
    }
    if (status == WAL_OK) {
        cursor->block_count += count;
    }
    return status;
}

/* Fills the empty block. Stops at a session that is not loaded, unless
 * `loading`. */
static enum wal_status fill_from_ranges(struct wal_entry_cursor *cursor,
                                        bool loading, struct wal_error *error)
{
    const struct wal__entry_cursor_range *ranges =
        (const void *)cursor->ranges.data;
    size_t range_count = cursor->ranges.size / sizeof(*ranges);
    enum wal_status status = WAL_OK;
    uint32_t at = cursor->range_index;

    WAL__ASSERT(cursor->block_count == 0);
    for (size_t i = cursor->range;
         i < range_count && cursor->block_count < WAL__ENTRY_CURSOR_BLOCK;
         i++) {
        struct wal__branch_slot *slot =
            wal__core_cached_branch(cursor->core, ranges[i].session);

        if (loading) {
            status = wal__core_get_branch(cursor->core, ranges[i].session,
                                          &slot, error);
        } else if (slot == NULL || !slot->loaded) {
            break;
        }
        if (status == WAL_OK) {
            status = fill_from_range(cursor, slot, &ranges[i], at, error);
        }
        if (status != WAL_OK) {
            break;
        }
        at = 0;
    }
    WAL__ASSERT(cursor->block_count <= WAL__ENTRY_CURSOR_BLOCK);
    /* Return the entries found; a later call reports the failure. */
    return cursor->block_count > 0 ? WAL_OK : status;
}

/* Fills the block under the shared lock; leaves it empty when an index must be
 * loaded, the ranges are stale, or something fails. */
static void fill_shared(struct wal_entry_cursor *cursor)
{
    if (wal__core_read_lock(cursor->core, NULL) != WAL_OK) {
        return;
    }
    if (!wal__entry_cursor_is_stale(cursor)) {
        (void)!fill_from_ranges(cursor, false, NULL);
    }
    wal__core_unlock(cursor->core);
}

/* Looks up the next entries; finds none when all remaining ones are hidden
 * now. */
static enum wal_status fill_block(struct wal_entry_cursor *cursor,
                                  struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    cursor->block_count = 0;
    cursor->block_index = 0;
    if (cursor->is_tail && !wal__entry_cursor_is_stale(cursor)) {
        wal__entry_cursor_fill_from_tail(cursor);
        return WAL_OK;
    }
    if (!cursor->all && !cursor->is_tail) {
        fill_shared(cursor);
    }
    if (cursor->block_count > 0) {
        return WAL_OK;
    }
    status = wal__core_write_lock_or_stale(cursor->core, error);
    if (status != WAL_OK) {
        return status;
    }
    if (cursor->is_tail) {
        status = wal__entry_cursor_refresh_tail(cursor, error);
    } else if (wal__entry_cursor_is_stale(cursor)) {
        status = wal__entry_cursor_refresh(cursor, error);
    }
    status = wal__entry_cursor_check_deleted(cursor, status, error);
    if (status == WAL_OK && cursor->is_tail) {
        wal__entry_cursor_fill_from_tail(cursor);
    } else if (status == WAL_OK) {
        status = fill_from_ranges(cursor, true, error);
    }
    wal__core_unlock(cursor->core);
    return status;
}

/* Steps over the next entry, which need not be in the block. */
static void advance(struct wal_entry_cursor *cursor)
{
    const struct wal__entry_cursor_range *ranges =
        (const void *)cursor->ranges.data;

    WAL__ASSERT(cursor->block_index <= cursor->block_count &&
                cursor->remaining > 0);
    if (cursor->block_index < cursor->block_count) {
        cursor->block_index++;
    }
    cursor->remaining--;
    if (cursor->is_tail) {
        cursor->item_next++;
        return;
    }
    WAL__ASSERT(cursor->range_index < ranges[cursor->range].count);
    cursor->range_index++;
    if (cursor->range_index == ranges[cursor->range].count) {
        cursor->range++;
        cursor->range_index = 0;
    }
}

/* --- entries ------------------------------------------------------------ */

/* The nearest visible ancestor of an entry. */
struct parent {
    struct wal__span id;
    bool none; /* no visible ancestor */
};

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
static void redact(const struct wal_entry_cursor *cursor,
                   struct wal_entry *entry)
{
    const struct wal_slice redaction_json = {cursor->redaction_json.data,
                                             cursor->redaction_json.size};
    const struct wal_slice none = {NULL, 0};

    entry->flags |= WAL_ENTRY_REDACTED;
    entry->payload = redaction_json;
    entry->payload_size = redaction_json.size;
    entry->meta = none;
}

/* Sets the out-of-line payload that was loaded, or its digest. */
static void set_out_of_line_payload(const struct wal_entry_cursor *cursor,
                                    const struct wal__entry_record *record,
                                    struct wal_entry *entry)
{
    const struct wal_slice loaded = {cursor->payload_buf.data,
                                     cursor->payload_buf.size};
    const struct wal_slice none = {NULL, 0};

    if ((cursor->flags & WAL_ENTRY_CURSOR_OUT_OF_LINE) == 0) {
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
read_entry(struct wal_entry_cursor *cursor,
           const struct wal__entry_cursor_item *item,
           const struct wal__entry_cursor_parent_hint *parent_hint, bool exact,
           struct wal_entry *entry, struct wal_error *error)
{
    struct wal__entry_record record;
    struct parent parent = {.none = false};
    struct wal__span payload;
    struct wal__frame frame;
    enum wal_status status = WAL_OK;

    if (item->redaction != 0) {
        status = wal__entry_cursor_format_redaction(cursor, item->redaction,
                                                    item->sequence, error);
        if (status != WAL_OK) {
            return status;
        }
    }
    status = wal__log_read(&cursor->core->log, item->position, &cursor->scratch,
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
               ((!exact && (frame.flags & WAL__FRAME_PROVISIONAL) == 0) ||
                frame.parent == parent_hint->sequence)) {
        parent.id = parent_hint->id;
    } else {
        status = wal__entry_cursor_read_parent(cursor, &frame, &parent.id,
                                               &parent.none, error);
        if (status != WAL_OK) {
            return status;
        }
    }
    if (record.digest != NULL && item->redaction == 0 &&
        (cursor->flags & WAL_ENTRY_CURSOR_OUT_OF_LINE) == 0) {
        status = wal__payload_load(cursor->core, &record, &cursor->payload_buf,
                                   error);
        if (status != WAL_OK) {
            return status;
        }
    }
    fill_entry(&frame, &record, &parent, item->depth, entry);
    if (item->redaction != 0) {
        redact(cursor, entry);
    } else if (record.digest != NULL) {
        set_out_of_line_payload(cursor, &record, entry);
    }
    return WAL_OK;
}

/* Keeps the id for the next entry, whose parent this entry often is. */
static void save_parent_hint(struct wal_entry_cursor *cursor,
                             const struct wal_entry *entry)
{
    cursor->previous.sequence = entry->sequence;
    cursor->previous.id.data = entry->id.data;
    cursor->previous.id.size = (size_t)entry->id.size;
    if (cursor->core->env.use_pread ||
        (cursor->flags & WAL_ENTRY_CURSOR_PINNED) == 0) {
        /* The next read ends these bytes. */
        uint8_t *copy = cursor->id_copy[cursor->id_copy_index];

        WAL__ASSERT(cursor->previous.id.size <= WAL__ID_MAX);
        memcpy(copy, entry->id.data, cursor->previous.id.size);
        cursor->previous.id.data = copy;
        cursor->id_copy_index ^= 1;
    }
}

/* Keeps a buffer until the cursor is closed, and empties it. */
static enum wal_status pin(struct wal_entry_cursor *cursor,
                           struct wal__buf *buffer, struct wal_error *error)
{
    if (buffer->size == 0) {
        return WAL_OK;
    }
    if (wal__buf_append(&cursor->pinned, buffer, sizeof(*buffer)) != WAL_OK) {
        return wal__no_memory(error);
    }
    wal__buf_init(buffer, cursor->core->env.heap);
    return WAL_OK;
}

/* Ends the slices of the entry that was returned before, unless pinned. */
static enum wal_status end_slices(struct wal_entry_cursor *cursor,
                                  struct wal_error *error)
{
    enum wal_status status;

    if ((cursor->flags & WAL_ENTRY_CURSOR_PINNED) == 0) {
        wal__buf_deinit(&cursor->payload_buf);
        return WAL_OK;
    }
    status = pin(cursor, &cursor->payload_buf, error);
    return status == WAL_OK ? pin(cursor, &cursor->redaction_json, error)
                            : status;
}

/* Reads the next entry, which stays the next one. WAL_END: the rest was
 * redacted meanwhile. */
static enum wal_status read_next(struct wal_entry_cursor *cursor,
                                 struct wal_entry *entry,
                                 struct wal_error *error)
{
    enum wal_status status;

    if (cursor->block_index == cursor->block_count ||
        wal__entry_cursor_is_stale(cursor)) {
        status = fill_block(cursor, error);
        if (status != WAL_OK) {
            return status;
        }
        if (cursor->remaining == 0) {
            return WAL_END;
        }
    }
    WAL__ASSERT(cursor->block_index < cursor->block_count);
    return read_entry(cursor, &cursor->block[cursor->block_index],
                      &cursor->previous, cursor->all, entry, error);
}

/* After WAL_ECORRUPT: whether the next entry must be read again. An index that
 * finds no block may be damaged, a record that is found cannot be. */
static bool read_again(struct wal_entry_cursor *cursor)
{
    return cursor->block_count == 0
               ? wal__core_invalidate_derived(cursor->core, WAL_ECORRUPT,
                                              &cursor->looked)
               : wal__entry_cursor_is_overtaken(cursor);
}

/* The next entry cannot be located. As many after it in its range fail without
 * an attempt as failed in a row before, so that a long range needs few. */
static void note_unlocated(struct wal_entry_cursor *cursor,
                           enum wal_status status)
{
    const struct wal__entry_cursor_range *ranges =
        (const void *)cursor->ranges.data;
    uint64_t left = cursor->is_tail
                        ? cursor->remaining
                        : ranges[cursor->range].count - cursor->range_index;

    WAL__ASSERT(left > 0 && cursor->unlocated_left == 0);
    cursor->unlocated_left =
        cursor->unlocated < left - 1 ? cursor->unlocated : left - 1;
    cursor->unlocated += 1 + cursor->unlocated_left;
    cursor->unlocated_status = status;
}

/* Reads the next entry and steps over it, also where it cannot be read. */
static enum wal_status pass_next(struct wal_entry_cursor *cursor,
                                 struct wal_entry *entry,
                                 struct wal_error *error)
{
    enum wal_status status = read_next(cursor, entry, error);

    while (status == WAL_ECORRUPT && read_again(cursor)) {
        status = read_next(cursor, entry, error);
    }
    if (status == WAL_ECORRUPT) {
        status = wal__entry_cursor_check_erased(cursor, error);
    }
    if (status == WAL_ENOMEM || status == WAL_END) {
        return status;
    }
    if (cursor->block_count == 0) {
        note_unlocated(cursor, status);
    } else {
        cursor->unlocated = 0;
    }
    cursor->looked = 0;
    advance(cursor);
    cursor->previous.sequence = 0;
    if (status == WAL_OK) {
        save_parent_hint(cursor, entry);
    }
    return status;
}

enum wal_status wal__entry_cursor_next(struct wal_entry_cursor *cursor,
                                       struct wal_entry *entry,
                                       struct wal_error *error)
{
    enum wal_status status = end_slices(cursor, error);

    if (status != WAL_OK) {
        return status;
    }
    if (cursor->remaining == 0) {
        wal__record_buf_release(&cursor->scratch);
        wal__record_buf_release(&cursor->aux_scratch);
        return WAL_END;
    }
    if (cursor->unlocated_left > 0) {
        cursor->unlocated_left--;
        advance(cursor);
        return wal__fail(error, cursor->unlocated_status,
                         "the entry cannot be located, as those before it: %s",
                         wal_status_text(cursor->unlocated_status));
    }
    return pass_next(cursor, entry, error);
}

/* --- by id -------------------------------------------------------------- */

/* The result of a lookup by id. */
struct lookup {
    struct wal__entry_cursor_item item;
    bool depth_is_known;
    /* The parent when it is the preceding entry and visible; sequence 0: it
     * must be searched. */
    uint64_t parent;
    uint64_t parent_position;
};

/* Fills the lookup from the owner's branch. State lock for reading or
 * writing. */
static void fill_lookup(const struct wal_entry_cursor *cursor,
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
        !wal__entry_cursor_is_hidden(cursor, &slot->annotations, entry - 1)) {
        WAL__ASSERT(entry[-1].sequence < found->sequence);
        lookup->parent = entry[-1].sequence;
        lookup->parent_position = entry[-1].position;
    }
}

/* Finds the parent of the first entry of a run if its branch is loaded: that
 * saves the exclusive lock. */
static void find_inherited_parent(const struct wal_entry_cursor *cursor,
                                  const struct wal__branch_slot *slot,
                                  const struct wal__entry_location *found,
                                  struct lookup *lookup)
{
    struct wal__core *core = cursor->core;
    const struct wal__stream *stream =
        wal__branch_stream(&slot->branch, found->stream);
    const struct wal__run *run =
        &stream->runs[stream->entries[found->ordinal].run];
    uint32_t parent_stream = WAL__STREAM_BASE(found->stream);
    struct wal__entry_location parent;
    const struct wal__branch_entry *entry;

    if (found->ordinal != run->first || run->parent == 0 ||
        !wal__core_find_cached_sequence(
            core, wal__core_cached_branch(core, cursor->session), parent_stream,
            run->parent, &parent)) {
        return;
    }
    slot = wal__core_cached_branch(core, parent.session);
    entry = &wal__branch_stream(&slot->branch, parent.stream)
                 ->entries[parent.ordinal];
    if (!wal__entry_cursor_is_hidden(cursor, &slot->annotations, entry)) {
        lookup->parent = parent.sequence;
        lookup->parent_position = parent.position;
    }
}

/* Finds the entry under the shared lock; WAL_ENOTFOUND also when that would
 * need an index to be loaded. */
static enum wal_status find_shared(struct wal_entry_cursor *cursor,
                                   struct wal__span id, struct lookup *lookup,
                                   struct wal_error *error)
{
    struct wal__branch_slot *slot;
    struct wal__entry_location found;
    enum wal_status status = wal__core_read_lock(cursor->core, error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__core_find_cached_id(cursor->core, cursor->session, id, &found,
                                      error);
    if (status == WAL_OK) {
        slot = wal__core_cached_branch(cursor->core, found.session);
        fill_lookup(cursor, slot, &found, lookup);
        find_inherited_parent(cursor, slot, &found, lookup);
        status = lookup->depth_is_known ? WAL_OK : WAL_ENOTFOUND;
    }
    wal__core_unlock(cursor->core);
    return status;
}

/* Finds the entry in the lineage. */
static enum wal_status find_in_lineage(struct wal_entry_cursor *cursor,
                                       struct wal__span id,
                                       struct lookup *lookup,
                                       struct wal_error *error)
{
    struct wal__core *core = cursor->core;
    struct wal__branch_slot *slot;
    struct wal__entry_location found;
    enum wal_status status = wal__core_write_lock(core, error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__core_find_id(core, cursor->session, id, &found, error);
    if (status == WAL_OK) {
        status = wal__core_get_branch(core, found.session, &slot, error);
    }
    if (status == WAL_OK) {
        fill_lookup(cursor, slot, &found, lookup);
    }
    if (status == WAL_OK && !lookup->depth_is_known) {
        status =
            wal__core_entry_depth(core, found.session, found.stream,
                                  found.sequence, &lookup->item.depth, error);
    }
    wal__core_unlock(core);
    return status;
}

enum wal_status wal__entry_cursor_get(struct wal_entry_cursor *cursor,
                                      struct wal__span id,
                                      struct wal_entry *entry,
                                      struct wal_error *error)
{
    struct wal__entry_cursor_parent_hint parent_hint = {0, {NULL, 0}};
    struct lookup lookup;
    enum wal_status status;

    cursor->is_damaged = false;
    status = end_slices(cursor, error);
    if (status != WAL_OK) {
        return status;
    }
    status = find_shared(cursor, id, &lookup, error);
    if (status == WAL_ENOTFOUND) {
        status = find_in_lineage(cursor, id, &lookup, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    if (lookup.item.redaction != 0 &&
        (cursor->flags & WAL_ENTRY_CURSOR_REDACTED) == 0) {
        return wal__entry_cursor_fail_redacted(cursor, lookup.item.redaction,
                                               lookup.item.sequence, error);
    }
    /* The REDACT record is read into the same scratch. */
    if (lookup.parent != 0 && lookup.item.redaction == 0 &&
        wal__core_read_id(cursor->core, lookup.parent_position, lookup.parent,
                          &cursor->aux_scratch, &parent_hint.id) == WAL_OK) {
        parent_hint.sequence = lookup.parent;
    }
    status = read_entry(cursor, &lookup.item, &parent_hint, true, entry, error);
    cursor->is_damaged =
        status == WAL_ECORRUPT &&
        wal__log_has_record(&cursor->core->log, lookup.item.position,
                            lookup.item.sequence, &cursor->scratch);
    return status;
}
