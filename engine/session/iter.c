/*
 * iter.c - reading on with an iterator (SPEC.md 5.5, 5.7). Where its entries
 * lie is looked up a block at a time under the state lock, and the records
 * themselves are read without any lock. One thread at a time.
 *
 * Invariant: the block holds the entries from (part, part_at) on.
 */
#include "engine/session/iter.h"

#include <inttypes.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/session/payload.h"
#include "engine/session/text.h"

/* --- blocks ------------------------------------------------------------- */

/* Depths of items that are no path: along a run they rise by one. */
static enum wal_status fill_depths(struct wal_iter *iter, uint32_t session,
                                   const uint32_t *runs, uint32_t count,
                                   struct wal_error *error)
{
    struct wal__iter_item *items = &iter->block[iter->block_count];
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < count && status == WAL_OK; i++) {
        if (i > 0 && runs[i] == runs[i - 1]) {
            items[i].depth = items[i - 1].depth + 1;
        } else {
            status = wal__core_depth(iter->core, session, iter->stream,
                                     items[i].sequence, &items[i].depth, error);
        }
    }
    return status;
}

/* Takes the places of entries of a part, from `at` on, into the block. */
static enum wal_status take(struct wal_iter *iter,
                            const struct wal__branch_slot *slot,
                            const struct wal__iter_part *part, uint32_t at,
                            struct wal_error *error)
{
    const struct wal__marks *marks = &slot->marks;
    const struct wal__branch_entry *entries;
    const struct wal__stream *stream;
    uint32_t runs[WAL__ITER_BLOCK];
    uint32_t room = WAL__ITER_BLOCK - iter->block_count;
    uint32_t count = part->count - at < room ? part->count - at : room;
    enum wal_status status = wal__iter_stream(iter, slot, part, &stream, error);

    if (status != WAL_OK) {
        return status;
    }
    entries = &stream->entries[part->first + at];
    for (uint32_t i = 0; i < count; i++) {
        struct wal__iter_item *item = &iter->block[iter->block_count + i];
        const struct wal__redaction *redaction =
            marks->redaction_count == 0
                ? NULL
                : wal__marks_redaction(marks, entries[i].sequence);

        item->position = entries[i].position;
        item->sequence = entries[i].sequence;
        item->depth = part->depth + at + i;
        item->redaction = redaction == NULL ? 0 : redaction->position;
        runs[i] = entries[i].run;
    }
    if (iter->all) {
        /* Looking up a depth may drop the slot. */
        status = fill_depths(iter, part->session, runs, count, error);
    }
    if (status == WAL_OK) {
        iter->block_count += count;
    }
    return status;
}

/* Fills the block, which is empty; what is not loaded ends it, unless it may
 * be loaded. */
static enum wal_status take_parts(struct wal_iter *iter, bool loading,
                                  struct wal_error *error)
{
    const struct wal__iter_part *parts = (const void *)iter->parts.data;
    size_t part_count = iter->parts.size / sizeof(*parts);
    enum wal_status status = WAL_OK;
    uint32_t at = iter->part_at;

    for (size_t i = iter->part;
         i < part_count && iter->block_count < WAL__ITER_BLOCK; i++) {
        struct wal__branch_slot *slot =
            wal__core_loaded(iter->core, parts[i].session);

        if (loading) {
            status =
                wal__core_branch(iter->core, parts[i].session, &slot, error);
        } else if (slot == NULL || !slot->loaded) {
            break;
        }
        if (status == WAL_OK) {
            status = take(iter, slot, &parts[i], at, error);
        }
        if (status != WAL_OK) {
            break;
        }
        at = 0;
    }
    /* What was taken is given first. */
    return iter->block_count > 0 ? WAL_OK : status;
}

/* Fills the block when nothing has to be loaded or changed: a shared lock is
 * enough. Leaves it empty otherwise. */
static enum wal_status fill_shared(struct wal_iter *iter,
                                   struct wal_error *error)
{
    enum wal_status status = wal__core_read_lock(iter->core, error);

    if (status != WAL_OK) {
        return status;
    }
    if (!wal__iter_is_old(iter)) {
        status = take_parts(iter, false, error);
    }
    wal__core_unlock(iter->core);
    return status;
}

/* Looks up the next entries; none when all that was left is hidden now. */
static enum wal_status fill_block(struct wal_iter *iter,
                                  struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    iter->block_count = 0;
    iter->block_at = 0;
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
    if (wal__iter_is_old(iter)) {
        status = wal__iter_renew(iter, error);
    }
    if (status == WAL_OK) {
        status = take_parts(iter, true, error);
    }
    wal__core_unlock(iter->core);
    return status;
}

/* Steps over the entry that was given, or could not be. */
static void step(struct wal_iter *iter)
{
    const struct wal__iter_part *parts = (const void *)iter->parts.data;

    iter->block_at++;
    iter->remaining--;
    iter->part_at++;
    if (iter->part_at == parts[iter->part].count) {
        iter->part++;
        iter->part_at = 0;
    }
}

/* --- entries ------------------------------------------------------------ */

/* The nearest entry above that is not hidden. */
struct parent {
    struct wal__span id;
    bool none; /* the entry is a root, to this reader */
};

/* Looks for it in the lineage. */
static enum wal_status find_parent(struct wal_iter *iter,
                                   const struct wal__frame *child,
                                   struct parent *parent,
                                   struct wal_error *error)
{
    struct wal__found found = {0};
    enum wal_status status = wal__core_write_lock(iter->core, error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__iter_shown(iter, child->stream, child->parent, &found);
    wal__core_unlock(iter->core);
    if (status == WAL_OK && found.sequence == 0) {
        parent->none = true;
        return WAL_OK;
    }
    if (status == WAL_OK) {
        status = wal__core_read_id(iter->core, found.position, found.sequence,
                                   &iter->other_scratch, &parent->id);
    }
    if (status == WAL_ENOMEM) {
        return wal__fail(error, status, 0, NULL, 0, "no memory");
    }
    /* A parent that was lost leaves the id empty; the entry itself is whole. */
    return WAL_OK;
}

static void give(const struct wal__frame *frame,
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

/* Puts who redacted the entry, and why, in the place of what it said. */
static void redact(const struct wal_iter *iter, struct wal_entry *entry)
{
    const struct wal_slice told = {iter->told.data, iter->told.size};
    const struct wal_slice none = {NULL, 0};

    entry->flags |= WAL_ENTRY_REDACTED;
    entry->payload = told;
    entry->payload_size = told.size;
    entry->meta = none;
}

/* Puts the payload that was brought in line in its place, or says where it
 * is. */
static void place_payload(const struct wal_iter *iter,
                          const struct wal__entry_record *record,
                          struct wal_entry *entry)
{
    const struct wal_slice inside = {iter->body.data, iter->body.size};
    const struct wal_slice none = {NULL, 0};

    if ((iter->flags & WAL_ITER_OUT_OF_LINE) == 0) {
        entry->payload = inside;
        return;
    }
    entry->flags |= WAL_ENTRY_OUT_OF_LINE;
    entry->payload = none;
    memcpy(entry->payload_digest, record->digest, WAL_DIGEST_SIZE);
}

/* Reads the entry's record and gives it. above: the entry above it, when that
 * is known; its sequence is the parent's own, where `exact`. */
static enum wal_status read_entry(struct wal_iter *iter,
                                  const struct wal__iter_item *item,
                                  const struct wal__iter_above *above,
                                  bool exact, struct wal_entry *entry,
                                  struct wal_error *error)
{
    struct wal__entry_record record;
    struct parent parent = {.none = false};
    struct wal__span payload;
    struct wal__frame frame;
    enum wal_status status = WAL_OK;

    if (item->redaction != 0) {
        status = wal__iter_tell(iter, item->redaction, error);
    }
    if (status == WAL_OK) {
        status = wal__log_read(&iter->core->log, item->position, &iter->scratch,
                               &frame, &payload, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    if (frame.sequence != item->sequence || frame.type != WAL__FRAME_ENTRY ||
        wal__entry_record_decode(payload, &record) != WAL__FMT_OK) {
        return wal__fail(
            error, WAL_ECORRUPT, 0, NULL, wal__position_offset(item->position),
            "the record with sequence number %" PRIu64 " is damaged",
            item->sequence);
    }
    if (frame.parent == 0) {
        parent.none = true;
    } else if (above->sequence != 0 &&
               (!exact || frame.parent == above->sequence)) {
        parent.id = above->id;
    } else {
        status = find_parent(iter, &frame, &parent, error);
    }
    if (status == WAL_OK && record.digest != NULL && item->redaction == 0 &&
        (iter->flags & WAL_ITER_OUT_OF_LINE) == 0) {
        status = wal__payload_load(iter->core, &record, &iter->body, error);
    }
    if (status == WAL_OK) {
        give(&frame, &record, &parent, item->depth, entry);
        if (item->redaction != 0) {
            redact(iter, entry);
        } else if (record.digest != NULL) {
            place_payload(iter, &record, entry);
        }
    }
    return status;
}

/* Keeps the id for the next entry, whose parent this is most often. */
static void remember(struct wal_iter *iter, const struct wal_entry *entry)
{
    iter->last.sequence = entry->sequence;
    iter->last.id.data = entry->id.data;
    iter->last.id.size = (size_t)entry->id.size;
    if (iter->core->env.no_maps) {
        /* The next read takes this one's bytes away. */
        uint8_t *copy = iter->id_copy[iter->id_turn];

        memcpy(copy, entry->id.data, iter->last.id.size);
        iter->last.id.data = copy;
        iter->id_turn ^= 1;
    }
}

enum wal_status wal__iter_next(struct wal_iter *iter, struct wal_entry *entry,
                               struct wal_error *error)
{
    enum wal_status status;

    wal__buf_deinit(&iter->body);
    if (iter->remaining == 0) {
        return WAL_END;
    }
    if (iter->block_at == iter->block_count || wal__iter_is_old(iter)) {
        status = fill_block(iter, error);
        if (status != WAL_OK) {
            return status;
        }
        if (iter->remaining == 0) {
            return WAL_END; /* the rest was redacted */
        }
    }
    status = read_entry(iter, &iter->block[iter->block_at], &iter->last,
                        iter->all, entry, error);
    if (status == WAL_ENOMEM) {
        return status;
    }
    step(iter);
    iter->last.sequence = 0;
    if (status == WAL_OK) {
        remember(iter, entry);
    }
    return status;
}

/* --- by id -------------------------------------------------------------- */

/* An entry that was asked for. */
struct asked {
    struct wal__iter_item item;
    bool depth_is_known;
    /* The parent, when it is the entry before and not hidden; sequence 0: it
     * has to be looked for. */
    uint64_t parent;
    uint64_t parent_position;
};

/* What the owner's branch says of the entry. Any state lock. */
static void describe(const struct wal_iter *iter,
                     const struct wal__branch_slot *slot,
                     const struct wal__found *found, struct asked *asked)
{
    const struct wal__stream *stream =
        wal__branch_stream(&slot->branch, found->stream);
    const struct wal__branch_entry *entry = &stream->entries[found->ordinal];
    const struct wal__redaction *redaction =
        wal__marks_redaction(&slot->marks, found->sequence);

    asked->item.position = found->position;
    asked->item.sequence = found->sequence;
    asked->item.depth = wal__branch_depth(stream, found->ordinal);
    asked->item.redaction = redaction == NULL ? 0 : redaction->position;
    asked->depth_is_known = wal__branch_knows_depth(stream, found->ordinal);
    asked->parent = 0;
    if (found->ordinal > stream->runs[entry->run].first &&
        !wal__iter_hides(iter, &slot->marks, entry - 1)) {
        asked->parent = entry[-1].sequence;
        asked->parent_position = entry[-1].position;
    }
}

/* Finds the entry when nothing has to be loaded for it: a shared lock is
 * enough. WAL_ENOTFOUND otherwise. */
static enum wal_status find_shared(struct wal_iter *iter, struct wal__span id,
                                   struct asked *asked, struct wal_error *error)
{
    struct wal__branch_slot *slot;
    struct wal__found found;
    enum wal_status status = wal__core_read_lock(iter->core, error);

    if (status != WAL_OK) {
        return status;
    }
    slot = wal__core_loaded(iter->core, iter->session);
    status = slot != NULL && slot->loaded
                 ? wal__core_find_own_id(iter->core, slot, id, &found, error)
                 : WAL_ENOTFOUND;
    if (status == WAL_OK) {
        describe(iter, slot, &found, asked);
        status = asked->depth_is_known ? WAL_OK : WAL_ENOTFOUND;
    }
    wal__core_unlock(iter->core);
    return status;
}

/* Finds it in the lineage. */
static enum wal_status find_asked(struct wal_iter *iter, struct wal__span id,
                                  struct asked *asked, struct wal_error *error)
{
    struct wal__core *core = iter->core;
    struct wal__branch_slot *slot;
    struct wal__found found;
    enum wal_status status = wal__core_write_lock(core, error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__core_find_id(core, iter->session, id, &found, error);
    if (status == WAL_OK) {
        status = wal__core_branch(core, found.session, &slot, error);
    }
    if (status == WAL_OK) {
        describe(iter, slot, &found, asked);
    }
    if (status == WAL_OK && !asked->depth_is_known) {
        status = wal__core_depth(core, found.session, found.stream,
                                 found.sequence, &asked->item.depth, error);
    }
    wal__core_unlock(core);
    return status;
}

enum wal_status wal__iter_get(struct wal_iter *iter, struct wal__span id,
                              struct wal_entry *entry, struct wal_error *error)
{
    struct wal__iter_above above = {0, {NULL, 0}};
    struct asked asked;
    enum wal_status status;

    wal__buf_deinit(&iter->body);
    status = find_shared(iter, id, &asked, error);
    if (status == WAL_ENOTFOUND) {
        status = find_asked(iter, id, &asked, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    if (asked.item.redaction != 0 && (iter->flags & WAL_ITER_REDACTED) == 0) {
        return wal__iter_refuse(iter, asked.item.redaction, error);
    }
    /* What redacted it is read into the same scratch. */
    if (asked.parent != 0 && asked.item.redaction == 0 &&
        wal__core_read_id(iter->core, asked.parent_position, asked.parent,
                          &iter->other_scratch, &above.id) == WAL_OK) {
        above.sequence = asked.parent;
    }
    return read_entry(iter, &asked.item, &above, true, entry, error);
}
