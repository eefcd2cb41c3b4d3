/*
 * entry_cursor_compaction.c - finds where reading "since the last compaction"
 * starts (SPEC.md 5.5). A hidden compaction counts too: the entries that it
 * keeps are part of the shape of the tree. State lock for writing.
 */
#include "engine/base/error.h"
#include "engine/read/entry_cursor.h"
#include "engine/store/input_text.h"
#include "format/bytes/assert.h"

/* Depth on the path of the entry with this sequence; UINT64_MAX when it is not
 * on the path. */
static enum wal_status depth_on_path(struct wal_entry_cursor *cursor,
                                     const struct wal__buf *path,
                                     uint64_t sequence, uint64_t *depth,
                                     struct wal_error *error)
{
    const struct wal__path_range *ranges = (const void *)path->data;
    size_t count = path->size / sizeof(*ranges);
    uint64_t before = 0;

    *depth = UINT64_MAX;
    for (size_t i = 0; i < count; i++) {
        struct wal__branch_slot *slot;
        const struct wal__stream *stream;
        uint32_t ordinal;
        enum wal_status status =
            wal__core_get_branch(cursor->core, ranges[i].session, &slot, error);

        if (status != WAL_OK) {
            return status;
        }
        stream = wal__branch_stream(&slot->branch, cursor->stream);
        if (stream != NULL &&
            wal__branch_find_sequence(stream, sequence, &ordinal) &&
            ordinal >= ranges[i].first &&
            ordinal - ranges[i].first < ranges[i].count) {
            *depth = before + ordinal - ranges[i].first;
            return WAL_OK;
        }
        before += ranges[i].count;
    }
    return WAL_OK;
}

static uint64_t count_ranges(const struct wal__buf *path)
{
    const struct wal__path_range *ranges = (const void *)path->data;
    size_t count = path->size / sizeof(*ranges);
    uint64_t total = 0;

    for (size_t i = 0; i < count; i++) {
        total += ranges[i].count;
    }
    return total;
}

/* The newest compaction on the path: its depth and position. Position 0: there
 * is none. */
static enum wal_status find_last_compaction(struct wal_entry_cursor *cursor,
                                            const struct wal__buf *path,
                                            uint64_t *depth, uint64_t *position,
                                            struct wal_error *error)
{
    const struct wal__path_range *ranges = (const void *)path->data;
    size_t count = path->size / sizeof(*ranges);
    uint64_t before = count_ranges(path);

    *position = 0;
    while (count > 0) {
        const struct wal__path_range *range = &ranges[--count];
        struct wal__entry_range own_range = {range->first, range->count};
        struct wal__branch_slot *slot;
        const struct wal__stream *stream;
        uint32_t ordinal;
        enum wal_status status =
            wal__core_get_branch(cursor->core, range->session, &slot, error);

        if (status != WAL_OK) {
            return status;
        }
        WAL__ASSERT(before >= range->count);
        before -= range->count;
        stream = wal__branch_stream(&slot->branch, cursor->stream);
        if (stream != NULL &&
            wal__branch_find_compaction(stream, &own_range, &ordinal)) {
            WAL__ASSERT(ordinal >= range->first &&
                        ordinal - range->first < range->count);
            *depth = before + ordinal - range->first;
            *position = stream->entries[ordinal].position;
            return WAL_OK;
        }
    }
    return WAL_OK;
}

/* The entry that the compaction's payload names as firstKeptEntryId.
 * WAL_ENOTFOUND when it names none that exists, or is damaged; WAL_ECORRUPT
 * when an index is, or a segment was replaced: reading again may find it. */
static enum wal_status find_first_kept(struct wal_entry_cursor *cursor,
                                       uint64_t position,
                                       struct wal__entry_location *found,
                                       struct wal_error *error)
{
    struct wal__entry_record record;
    struct wal__frame frame;
    struct wal__span payload;
    struct wal__span id;
    uint8_t text[WAL__ID_MAX];
    enum wal_status status =
        wal__log_read(&cursor->core->log, position, &cursor->scratch, &frame,
                      &payload, error);

    if (status == WAL_ECORRUPT && !wal__log_find_replaced(&cursor->core->log)) {
        return WAL_ENOTFOUND;
    }
    if (status != WAL_OK) {
        return status;
    }
    if (wal__entry_record_decode(payload, &record) != WAL__FMT_OK ||
        !wal__text_member(record.payload, "firstKeptEntryId", text,
                          sizeof(text), &id)) {
        return WAL_ENOTFOUND;
    }
    return wal__core_find_id(cursor->core, cursor->session, id, found, error);
}

enum wal_status
wal__entry_cursor_find_compaction(struct wal_entry_cursor *cursor,
                                  const struct wal__buf *path, uint64_t *cut,
                                  struct wal_error *error)
{
    struct wal_error local_error = {.struct_size = sizeof(local_error)};
    struct wal__entry_location found;
    uint64_t position = 0;
    uint64_t depth = 0;
    uint64_t kept = UINT64_MAX;
    enum wal_status status =
        find_last_compaction(cursor, path, &depth, &position, error);

    if (status != WAL_OK) {
        return status;
    }
    if (position != 0) {
        status = find_first_kept(cursor, position, &found, &local_error);
        if (status == WAL_OK) {
            status = depth_on_path(cursor, path, found.sequence, &kept, error);
            if (status != WAL_OK) {
                return status;
            }
        } else if (status != WAL_ENOTFOUND) {
            wal__error_copy(error, &local_error);
            return status;
        }
    }
    /* Without a first kept entry, read from the compaction itself. */
    *cut = kept < depth ? kept : depth;
    WAL__ASSERT(*cut <= count_ranges(path));
    return WAL_OK;
}
