/*
 * iter.c - reading a session (SPEC.md 5.5). The path is fixed when the
 * iterator opens; where its entries lie is looked up a block at a time under
 * the state lock, and the records themselves are read without any lock.
 */
#include "engine/session/iter.h"

#include <inttypes.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/session/text.h"
#include "format/jsonl/json_scan.h"
#include "format/jsonl/json_value.h"

/* --- opening ------------------------------------------------------------ */

/* Reverses the parts: a path comes newest first. */
static void reverse(struct wal__buf *parts)
{
    struct wal__path_part *items = (void *)parts->data;
    size_t count = parts->size / sizeof(*items);

    for (size_t i = 0; i < count / 2; i++) {
        struct wal__path_part swapped = items[i];

        items[i] = items[count - 1 - i];
        items[count - 1 - i] = swapped;
    }
}

static enum wal_status add_all(struct wal_iter *iter, struct wal_error *error)
{
    struct wal__branch_slot *slot;
    const struct wal__stream *stream;
    struct wal__path_part part = {iter->session, 0, 0};
    enum wal_status status =
        wal__core_branch(iter->core, iter->session, &slot, error);

    if (status != WAL_OK) {
        return status;
    }
    if (slot->branch.fork_sequence != 0 &&
        slot->branch.fork_stream == iter->stream) {
        status =
            wal__core_path(iter->core, iter->session, iter->stream,
                           slot->branch.fork_sequence, &iter->parts, error);
        reverse(&iter->parts);
    }
    /* Where the fork point was lost, the session's own entries are left. */
    if (status == WAL_OK || status == WAL_ENOTFOUND) {
        status = wal__core_branch(iter->core, iter->session, &slot, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    stream = wal__branch_stream(&slot->branch, iter->stream);
    part.count = stream == NULL ? 0 : stream->entry_count;
    return part.count == 0 ? WAL_OK
                           : wal__buf_append(&iter->parts, &part, sizeof(part));
}

static enum wal_status add_path(struct wal_iter *iter, struct wal__span up_to,
                                struct wal_error *error)
{
    struct wal__branch_slot *slot;
    struct wal__found found;
    enum wal_status status =
        wal__core_branch(iter->core, iter->session, &slot, error);

    if (status != WAL_OK) {
        return status;
    }
    if (up_to.size == 0) {
        found.sequence = wal__branch_head(&slot->branch, iter->stream);
    } else {
        status =
            wal__core_find_id(iter->core, iter->session, up_to, &found, error);
        if (status == WAL_OK && found.stream != iter->stream) {
            status = wal__fail(error, WAL_ENOTFOUND, 0, NULL, 0,
                               "the entry is in stream %u, not %u",
                               found.stream, iter->stream);
        }
    }
    if (status == WAL_OK && found.sequence != 0) {
        status = wal__core_path(iter->core, iter->session, iter->stream,
                                found.sequence, &iter->parts, error);
        reverse(&iter->parts);
    }
    return status;
}

static uint64_t count_parts(const struct wal_iter *iter)
{
    const struct wal__path_part *parts = (const void *)iter->parts.data;
    size_t count = iter->parts.size / sizeof(*parts);
    uint64_t total = 0;

    for (size_t i = 0; i < count; i++) {
        total += parts[i].count;
    }
    return total;
}

/* Leaves out what lies beyond the limit: it is at the end, since every entry
 * lies behind those before it. */
static enum wal_status trim(struct wal_iter *iter, struct wal_error *error)
{
    struct wal__path_part *parts = (void *)iter->parts.data;
    size_t left = iter->parts.size / sizeof(*parts);

    while (iter->limit != UINT64_MAX && left > 0) {
        struct wal__path_part *part = &parts[left - 1];
        const struct wal__stream *stream;
        struct wal__branch_slot *slot;
        enum wal_status status =
            wal__core_branch(iter->core, part->session, &slot, error);

        if (status != WAL_OK) {
            return status;
        }
        stream = wal__branch_stream(&slot->branch, iter->stream);
        while (part->count > 0 &&
               stream->entries[part->first + part->count - 1].position >=
                   iter->limit) {
            part->count--;
        }
        if (part->count > 0) {
            break;
        }
        left--;
    }
    return WAL_OK;
}

/* Leaves out the first `count` entries. */
static void skip(struct wal_iter *iter, uint64_t count)
{
    const struct wal__path_part *parts = (const void *)iter->parts.data;

    if (count > iter->remaining) {
        count = iter->remaining;
    }
    iter->remaining -= count;
    iter->depth += count;
    while (count > 0) {
        uint64_t left = parts[iter->part].count - iter->part_at;

        if (count < left) {
            iter->part_at += (uint32_t)count;
            return;
        }
        count -= left;
        iter->part++;
        iter->part_at = 0;
    }
}

/* --- compaction --------------------------------------------------------- */

/* Depth on the path of the entry with this sequence; UINT64_MAX when it is
 * not on it. */
static uint64_t depth_on_path(struct wal_iter *iter, uint64_t sequence)
{
    const struct wal__path_part *parts = (const void *)iter->parts.data;
    size_t count = iter->parts.size / sizeof(*parts);
    uint64_t depth = 0;

    for (size_t i = 0; i < count; i++) {
        struct wal__branch_slot *slot;
        const struct wal__stream *stream;
        uint32_t ordinal;

        if (wal__core_branch(iter->core, parts[i].session, &slot, NULL) !=
            WAL_OK) {
            return UINT64_MAX;
        }
        stream = wal__branch_stream(&slot->branch, iter->stream);
        if (stream != NULL &&
            wal__branch_find_sequence(stream, sequence, &ordinal) &&
            ordinal >= parts[i].first &&
            ordinal - parts[i].first < parts[i].count) {
            return depth + ordinal - parts[i].first;
        }
        depth += parts[i].count;
    }
    return UINT64_MAX;
}

/* The newest compaction on the path: its depth and where it lies. */
static bool last_compaction(struct wal_iter *iter, uint64_t *depth,
                            uint64_t *position)
{
    const struct wal__path_part *parts = (const void *)iter->parts.data;
    size_t count = iter->parts.size / sizeof(*parts);
    uint64_t above = count_parts(iter);

    while (count > 0) {
        const struct wal__path_part *part = &parts[--count];
        struct wal__stretch stretch = {part->first, part->count};
        struct wal__branch_slot *slot;
        const struct wal__stream *stream;
        uint32_t ordinal;

        above -= part->count;
        if (wal__core_branch(iter->core, part->session, &slot, NULL) !=
            WAL_OK) {
            return false;
        }
        stream = wal__branch_stream(&slot->branch, iter->stream);
        if (stream != NULL &&
            wal__branch_compaction(stream, &stretch, &ordinal)) {
            *depth = above + ordinal - part->first;
            *position = stream->entries[ordinal].position;
            return true;
        }
    }
    return false;
}

/* What the compaction's payload names as firstKeptEntryId. */
static bool first_kept(struct wal_iter *iter, uint64_t position,
                       struct wal__found *found)
{
    struct wal__entry_record record;
    struct wal__json_token value;
    struct wal__frame frame;
    struct wal__span payload;
    struct wal__span id;
    uint8_t text[WAL__ID_MAX];
    size_t size = 0;

    if (wal__log_read(&iter->core->log, position, &iter->scratch, &frame,
                      &payload, NULL) != WAL_OK ||
        wal__entry_record_decode(payload, &record) != WAL__FMT_OK ||
        wal__json_find(record.payload.data, record.payload.size,
                       "firstKeptEntryId", &value) != WAL__JSON_OK ||
        value.kind != WAL__JSON_STRING ||
        wal__json_unescape(value.span, text, sizeof(text), &size, NULL) !=
            WAL__JSON_OK) {
        return false;
    }
    id.data = text;
    id.size = size;
    return wal__core_find_id(iter->core, iter->session, id, found, NULL) ==
           WAL_OK;
}

/* Begins at the first entry that the last compaction kept, or at the
 * compaction itself; a path without one stays whole. */
static void skip_compacted(struct wal_iter *iter)
{
    struct wal__found found;
    uint64_t position = 0;
    uint64_t depth = 0;

    if (!last_compaction(iter, &depth, &position)) {
        return;
    }
    if (first_kept(iter, position, &found)) {
        uint64_t kept = depth_on_path(iter, found.sequence);

        depth = kept < depth ? kept : depth;
    }
    skip(iter, depth);
}

static enum wal_status fill_parts(struct wal_iter *iter,
                                  const struct wal_iter_options *options,
                                  struct wal__span up_to,
                                  struct wal_error *error)
{
    enum wal_status status;

    if (options->mode == WAL_ITER_ALL) {
        status = add_all(iter, error);
    } else {
        status = add_path(iter, up_to, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    status = trim(iter, error);
    if (status != WAL_OK) {
        return status;
    }
    iter->remaining = count_parts(iter);
    if (options->mode == WAL_ITER_BRANCH &&
        (options->flags & WAL_ITER_SINCE_COMPACTION) != 0) {
        skip_compacted(iter);
    }
    skip(iter, options->skip);
    return WAL_OK;
}

static enum wal_status check_options(const struct wal_iter_options *options,
                                     struct wal__span *up_to,
                                     struct wal_error *error)
{
    const uint32_t known = WAL_ITER_SINCE_COMPACTION | WAL_ITER_DURABLE;

    if (options->struct_size != sizeof(*options) ||
        options->mode > WAL_ITER_ALL || (options->flags & ~known) != 0 ||
        options->stream > 255) {
        return wal__fail(error, WAL_EINVAL, 0, NULL, 0,
                         "the iterator's options are not valid");
    }
    return wal__text_check(options->up_to, WAL__ID_MAX, "entry's id", up_to,
                           error);
}

enum wal_status wal__iter_open(struct wal_session *session,
                               const struct wal_iter_options *options,
                               struct wal_iter **iter, struct wal_error *error)
{
    const struct wal_iter_options none = {.struct_size = sizeof(none)};
    struct wal__core *core = session->core;
    struct wal__span up_to = {NULL, 0};
    struct wal_iter *opened;
    enum wal_status status;

    options = options == NULL ? &none : options;
    status = check_options(options, &up_to, error);
    if (status != WAL_OK) {
        return status;
    }
    opened = wal__heap_zalloc(core->env.heap, sizeof(*opened));
    if (opened == NULL) {
        return wal__fail(error, WAL_ENOMEM, 0, NULL, 0, "no memory");
    }
    opened->core = core;
    opened->session = session->number;
    opened->stream = options->stream;
    opened->all = options->mode == WAL_ITER_ALL;
    opened->limit = UINT64_MAX;
    wal__buf_init(&opened->parts, core->env.heap);
    wal__buf_init(&opened->scratch, core->env.heap);
    wal__buf_init(&opened->parent_scratch, core->env.heap);
    status = wal__core_write_lock(core, error);
    if (status == WAL_OK) {
        if ((options->flags & WAL_ITER_DURABLE) != 0) {
            opened->limit = atomic_load(&core->log.shared->durable);
        }
        status = fill_parts(opened, options, up_to, error);
        wal__core_unlock(core);
    }
    if (status != WAL_OK) {
        wal__iter_close(opened);
        return status;
    }
    *iter = opened;
    return WAL_OK;
}

void wal__iter_close(struct wal_iter *iter)
{
    if (iter == NULL) {
        return;
    }
    wal__buf_deinit(&iter->parts);
    wal__buf_deinit(&iter->scratch);
    wal__buf_deinit(&iter->parent_scratch);
    wal__heap_free(iter->core->env.heap, iter);
}

/* --- reading ------------------------------------------------------------ */

/* Depths of a block of entries that are no path: along a run they rise by
 * one. */
static enum wal_status fill_depths(struct wal_iter *iter, uint32_t session,
                                   const uint32_t *runs, uint32_t count,
                                   struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < count && status == WAL_OK; i++) {
        struct wal__iter_item *item = &iter->block[i];

        if (i > 0 && runs[i] == runs[i - 1]) {
            item->depth = item[-1].depth + 1;
        } else {
            status = wal__core_depth(iter->core, session, iter->stream,
                                     item->sequence, &item->depth, error);
        }
    }
    return status;
}

/* Takes the places of the next entries of the present part. */
static enum wal_status fill_block(struct wal_iter *iter,
                                  struct wal_error *error)
{
    const struct wal__path_part *parts = (const void *)iter->parts.data;
    const struct wal__path_part *part = &parts[iter->part];
    const struct wal__stream *stream;
    struct wal__branch_slot *slot;
    enum wal_status status;
    uint32_t runs[WAL__ITER_BLOCK];
    uint32_t count = part->count - iter->part_at;

    count = count < WAL__ITER_BLOCK ? count : WAL__ITER_BLOCK;
    status = wal__core_read_lock(iter->core, error);
    if (status != WAL_OK) {
        return status;
    }
    slot = wal__core_loaded(iter->core, part->session);
    if (slot == NULL || !slot->loaded || iter->all) {
        wal__core_unlock(iter->core);
        status = wal__core_write_lock(iter->core, error);
        if (status != WAL_OK) {
            return status;
        }
        status = wal__core_branch(iter->core, part->session, &slot, error);
    }
    stream = status == WAL_OK ? wal__branch_stream(&slot->branch, iter->stream)
                              : NULL;
    if (status == WAL_OK &&
        (stream == NULL ||
         part->first + iter->part_at + count > stream->entry_count)) {
        status = wal__fail(error, WAL_EPOISONED, 0, NULL, 0,
                           "entries that were read are gone: a sync failed");
    }
    for (uint32_t i = 0; i < count && status == WAL_OK; i++) {
        const struct wal__branch_entry *entry =
            &stream->entries[part->first + iter->part_at + i];

        iter->block[i].position = entry->position;
        iter->block[i].sequence = entry->sequence;
        iter->block[i].depth = iter->depth + i;
        runs[i] = entry->run;
    }
    if (status == WAL_OK && iter->all) {
        status = fill_depths(iter, part->session, runs, count, error);
    }
    wal__core_unlock(iter->core);
    if (status == WAL_OK) {
        iter->block_count = count;
        iter->block_at = 0;
        iter->part_at += count;
        if (iter->part_at == part->count) {
            iter->part++;
            iter->part_at = 0;
        }
    }
    return status;
}

/* The id of the entry with this sequence, in the lineage. */
static enum wal_status parent_id(struct wal_iter *iter, uint32_t stream,
                                 uint64_t sequence, struct wal__span *id,
                                 struct wal_error *error)
{
    struct wal__entry_record record;
    struct wal__found found;
    struct wal__frame frame;
    struct wal__span payload;
    enum wal_status status = wal__core_write_lock(iter->core, error);

    id->data = NULL;
    id->size = 0;
    if (status != WAL_OK) {
        return status;
    }
    status = wal__core_find_sequence(iter->core, iter->session, stream,
                                     sequence, &found, NULL);
    wal__core_unlock(iter->core);
    if (status == WAL_OK) {
        status = wal__log_read(&iter->core->log, found.position,
                               &iter->parent_scratch, &frame, &payload, NULL);
    }
    if (status == WAL_OK &&
        wal__entry_record_decode(payload, &record) == WAL__FMT_OK) {
        *id = record.id;
    }
    /* A parent that was lost leaves the id empty; the entry itself is whole. */
    return status == WAL_ENOMEM ? status : WAL_OK;
}

static void give(const struct wal__frame *frame,
                 const struct wal__entry_record *record,
                 struct wal__span parent, uint64_t depth,
                 struct wal_entry *entry)
{
    uint32_t size = entry->struct_size;

    memset(entry, 0, sizeof(*entry));
    entry->struct_size = size;
    entry->flags = record->form == WAL__ENTRY_LINE ? WAL_ENTRY_LINE : 0;
    entry->flags |= frame->parent == 0 ? WAL_ENTRY_ROOT : 0;
    entry->stream = frame->stream;
    entry->id = wal__text_slice(record->id);
    entry->parent_id = wal__text_slice(parent);
    entry->type = wal__text_slice(frame->kind == WAL__KIND_NAMED
                                      ? record->type
                                      : wal__kind_name(frame->kind));
    entry->timestamp = wal__text_slice(record->time);
    entry->run_id = wal__text_slice(record->run);
    entry->payload = wal__text_slice(record->payload);
    entry->meta = wal__text_slice(record->meta);
    entry->sequence = frame->sequence;
    entry->depth = depth;
}

/* Reads the record at the position and gives it. */
static enum wal_status read_entry(struct wal_iter *iter, uint64_t position,
                                  uint64_t sequence, uint64_t depth,
                                  struct wal__span *id, struct wal_entry *entry,
                                  struct wal_error *error)
{
    struct wal__entry_record record;
    struct wal__span parent = {NULL, 0};
    struct wal__span payload;
    struct wal__frame frame;
    enum wal_status status;

    status = wal__log_read(&iter->core->log, position, &iter->scratch, &frame,
                           &payload, error);
    if (status != WAL_OK) {
        return status;
    }
    if (frame.sequence != sequence || frame.type != WAL__FRAME_ENTRY ||
        wal__entry_record_decode(payload, &record) != WAL__FMT_OK) {
        return wal__fail(
            error, WAL_ECORRUPT, 0, NULL, wal__position_offset(position),
            "the record with sequence number %" PRIu64 " is damaged", sequence);
    }
    if (frame.parent != 0 && frame.parent == iter->last_sequence) {
        parent = iter->last_id;
    } else if (frame.parent != 0) {
        status = parent_id(iter, frame.stream, frame.parent, &parent, error);
    }
    if (status == WAL_OK) {
        give(&frame, &record, parent, depth, entry);
        *id = record.id;
    }
    return status;
}

enum wal_status wal__iter_next(struct wal_iter *iter, struct wal_entry *entry,
                               struct wal_error *error)
{
    const struct wal__iter_item *item;
    struct wal__span id = {NULL, 0};
    enum wal_status status;

    if (iter->remaining == 0) {
        return WAL_END;
    }
    if (iter->block_at == iter->block_count) {
        status = fill_block(iter, error);
        if (status != WAL_OK) {
            return status;
        }
    }
    item = &iter->block[iter->block_at];
    status = read_entry(iter, item->position, item->sequence, item->depth, &id,
                        entry, error);
    if (status == WAL_OK && iter->core->env.no_maps) {
        /* The next read takes this one's bytes away. */
        uint8_t *copy = iter->id_copy[iter->depth & 1];

        memcpy(copy, id.data, id.size);
        id.data = copy;
    }
    if (status != WAL_ENOMEM) {
        iter->block_at++;
        iter->remaining--;
        iter->depth++;
        iter->last_sequence = status == WAL_OK ? item->sequence : 0;
        iter->last_id = id;
    }
    return status;
}

enum wal_status wal__iter_get(struct wal_iter *iter, struct wal__span id,
                              struct wal_entry *entry, struct wal_error *error)
{
    struct wal__found found;
    enum wal_status status = wal__core_write_lock(iter->core, error);
    uint64_t depth = 0;

    if (status != WAL_OK) {
        return status;
    }
    status = wal__core_find_id(iter->core, iter->session, id, &found, error);
    if (status == WAL_OK) {
        status = wal__core_depth(iter->core, found.session, found.stream,
                                 found.sequence, &depth, error);
    }
    wal__core_unlock(iter->core);
    if (status == WAL_OK) {
        struct wal__span ignored;

        status = read_entry(iter, found.position, found.sequence, depth,
                            &ignored, entry, error);
    }
    return status;
}
