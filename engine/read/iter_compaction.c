/*
 * iter_compaction.c - where reading "since the last compaction" begins
 * (SPEC.md 5.5). A compaction counts whether it is hidden or not: what it kept
 * is part of the tree's shape. Under the state lock, for writing.
 */
#include "engine/base/error.h"
#include "engine/read/iter.h"
#include "engine/store/input_text.h"

/* Depth on the path of the entry with this sequence; UINT64_MAX when it is
 * not on it. */
static enum wal_status depth_on_path(struct wal_entry_cursor *iter,
                                     const struct wal__buf *path,
                                     uint64_t sequence, uint64_t *depth,
                                     struct wal_error *error)
{
    const struct wal__path_range *ranges = (const void *)path->data;
    size_t count = path->size / sizeof(*ranges);
    uint64_t above = 0;

    *depth = UINT64_MAX;
    for (size_t i = 0; i < count; i++) {
        struct wal__branch_slot *slot;
        const struct wal__stream *stream;
        uint32_t ordinal;
        enum wal_status status =
            wal__core_get_branch(iter->core, ranges[i].session, &slot, error);

        if (status != WAL_OK) {
            return status;
        }
        stream = wal__branch_stream(&slot->branch, iter->stream);
        if (stream != NULL &&
            wal__branch_find_sequence(stream, sequence, &ordinal) &&
            ordinal >= ranges[i].first &&
            ordinal - ranges[i].first < ranges[i].count) {
            *depth = above + ordinal - ranges[i].first;
            return WAL_OK;
        }
        above += ranges[i].count;
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

/* The newest compaction on the path: its depth and where it lies. Position 0:
 * there is none. */
static enum wal_status find_last_compaction(struct wal_entry_cursor *iter,
                                            const struct wal__buf *path,
                                            uint64_t *depth, uint64_t *position,
                                            struct wal_error *error)
{
    const struct wal__path_range *ranges = (const void *)path->data;
    size_t count = path->size / sizeof(*ranges);
    uint64_t above = count_ranges(path);

    *position = 0;
    while (count > 0) {
        const struct wal__path_range *part = &ranges[--count];
        struct wal__entry_range stretch = {part->first, part->count};
        struct wal__branch_slot *slot;
        const struct wal__stream *stream;
        uint32_t ordinal;
        enum wal_status status =
            wal__core_get_branch(iter->core, part->session, &slot, error);

        if (status != WAL_OK) {
            return status;
        }
        above -= part->count;
        stream = wal__branch_stream(&slot->branch, iter->stream);
        if (stream != NULL &&
            wal__branch_find_compaction(stream, &stretch, &ordinal)) {
            *depth = above + ordinal - part->first;
            *position = stream->entries[ordinal].position;
            return WAL_OK;
        }
    }
    return WAL_OK;
}

/* The entry that the compaction's payload names as firstKeptEntryId.
 * WAL_ENOTFOUND when it names none that is there. */
static enum wal_status find_first_kept(struct wal_entry_cursor *iter,
                                       uint64_t position,
                                       struct wal__entry_location *found,
                                       struct wal_error *error)
{
    struct wal__entry_record record;
    struct wal__frame frame;
    struct wal__span payload;
    struct wal__span id;
    uint8_t text[WAL__ID_MAX];
    enum wal_status status = wal__log_read(
        &iter->core->log, position, &iter->scratch, &frame, &payload, error);

    if (status != WAL_OK) {
        return status;
    }
    if (wal__entry_record_decode(payload, &record) != WAL__FMT_OK ||
        !wal__text_member(record.payload, "firstKeptEntryId", text,
                          sizeof(text), &id)) {
        return WAL_ENOTFOUND;
    }
    return wal__core_find_id(iter->core, iter->session, id, found, error);
}

enum wal_status wal__iter_find_compaction(struct wal_entry_cursor *iter,
                                          const struct wal__buf *path,
                                          uint64_t *cut,
                                          struct wal_error *error)
{
    struct wal_error own = {.struct_size = sizeof(own)};
    struct wal__entry_location found;
    uint64_t position = 0;
    uint64_t depth = 0;
    uint64_t kept = UINT64_MAX;
    enum wal_status status =
        find_last_compaction(iter, path, &depth, &position, error);

    if (status == WAL_OK && position != 0) {
        status = find_first_kept(iter, position, &found, &own);
        if (status == WAL_OK) {
            status = depth_on_path(iter, path, found.sequence, &kept, error);
        } else if (status == WAL_ENOTFOUND || status == WAL_ECORRUPT) {
            status = WAL_OK; /* the compaction itself is what it kept */
        } else {
            wal__error_copy(error, &own);
        }
    }
    if (status == WAL_OK) {
        *cut = kept < depth ? kept : depth;
    }
    return status;
}
