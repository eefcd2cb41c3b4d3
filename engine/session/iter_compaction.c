/*
 * iter_compaction.c - where reading "since the last compaction" begins
 * (SPEC.md 5.5). A compaction counts whether it is hidden or not: what it kept
 * is part of the tree's shape. Under the state lock, for writing.
 */
#include "engine/session/iter.h"
#include "format/jsonl/json_scan.h"
#include "format/jsonl/json_value.h"

/* Depth on the path of the entry with this sequence; UINT64_MAX when it is
 * not on it. */
static uint64_t depth_on_path(struct wal_iter *iter,
                              const struct wal__buf *path, uint64_t sequence)
{
    const struct wal__path_part *parts = (const void *)path->data;
    size_t count = path->size / sizeof(*parts);
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

static uint64_t count_parts(const struct wal__buf *path)
{
    const struct wal__path_part *parts = (const void *)path->data;
    size_t count = path->size / sizeof(*parts);
    uint64_t total = 0;

    for (size_t i = 0; i < count; i++) {
        total += parts[i].count;
    }
    return total;
}

/* The newest compaction on the path: its depth and where it lies. */
static bool last_compaction(struct wal_iter *iter, const struct wal__buf *path,
                            uint64_t *depth, uint64_t *position)
{
    const struct wal__path_part *parts = (const void *)path->data;
    size_t count = path->size / sizeof(*parts);
    uint64_t above = count_parts(path);

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

uint64_t wal__iter_compacted(struct wal_iter *iter, const struct wal__buf *path)
{
    struct wal__found found;
    uint64_t position = 0;
    uint64_t depth = 0;

    if (!last_compaction(iter, path, &depth, &position)) {
        return 0;
    }
    if (first_kept(iter, position, &found)) {
        uint64_t kept = depth_on_path(iter, path, found.sequence);

        depth = kept < depth ? kept : depth;
    }
    return depth;
}
