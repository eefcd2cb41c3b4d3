/*
 * entry_cursor_deltas.c - the provisional entries that a cursor returns
 * (SPEC.md 5.5): in log order all that the session has, on a path those of the
 * message that is being written under its end. State lock for writing.
 *
 * Invariant: a delta is newer than its parent, and a session shows its own
 * deltas only, so that they are among its own entries or after them.
 */
#include "engine/base/error.h"
#include "engine/read/entry_cursor.h"
#include "format/bytes/assert.h"

/* The ranges so far, and those that replace them. */
struct merge {
    struct wal_entry_cursor *cursor;
    const struct wal__stream *entries; /* NULL: it has none */
    const struct wal__stream *deltas;
    struct wal__buf ranges;
    uint64_t remaining;
    size_t next; /* of the cursor's ranges */
};

/* The sequence of the newest own entry that moved the head under `parent`,
 * which completes the deltas before it; 0: none. */
static uint64_t find_newest_child(const struct wal__stream *entries,
                                  uint64_t parent)
{
    for (uint32_t i = entries == NULL ? 0 : entries->entry_count; i > 0; i--) {
        const struct wal__branch_entry *entry = &entries->entries[i - 1];

        if (entry->sequence <= parent) {
            break;
        }
        if ((entry->flags & WAL__FRAME_MOVES_HEAD) != 0 &&
            wal__branch_parent(entries, i - 1) == parent) {
            return entry->sequence;
        }
    }
    return 0;
}

/* Whether the cursor returns the delta of this rank, unless it is hidden. */
static bool is_wanted(const struct merge *merge, uint32_t ordinal, uint64_t end,
                      uint64_t completed)
{
    const struct wal__branch_entry *delta = &merge->deltas->entries[ordinal];

    return delta->position < merge->cursor->limit &&
           (merge->cursor->all ||
            (wal__branch_parent(merge->deltas, ordinal) == end &&
             delta->sequence > completed));
}

/* Moves the cursor's ranges up to the sequence; splits the one that reaches
 * beyond it. */
static enum wal_status move_ranges(struct merge *merge, uint64_t sequence)
{
    struct wal_entry_cursor *cursor = merge->cursor;
    struct wal__entry_cursor_range *ranges = (void *)cursor->ranges.data;
    size_t count = cursor->ranges.size / sizeof(*ranges);

    for (; merge->next < count; merge->next++) {
        struct wal__entry_cursor_range *range = &ranges[merge->next];
        struct wal__entry_cursor_range before = *range;

        if (range->session == cursor->session) {
            uint32_t end = range->first + range->count;

            WAL__ASSERT(merge->entries != NULL &&
                        end <= merge->entries->entry_count);
            before.count = wal__branch_lower_bound(merge->entries, range->first,
                                                   end, sequence) -
                           range->first;
        }
        if (before.count > 0 && wal__buf_append(&merge->ranges, &before,
                                                sizeof(before)) != WAL_OK) {
            return WAL_ENOMEM;
        }
        if (before.count < range->count) {
            range->first += before.count;
            range->depth += before.count;
            range->count -= before.count;
            break;
        }
    }
    return WAL_OK;
}

static enum wal_status merge_deltas(struct merge *merge, uint64_t end,
                                    uint64_t depth, struct wal_error *error)
{
    const struct wal_entry_cursor *cursor = merge->cursor;
    uint64_t completed =
        cursor->all ? 0 : find_newest_child(merge->entries, end);
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < merge->deltas->entry_count && status == WAL_OK;
         i++) {
        struct wal__entry_cursor_range range = {
            .depth = depth,
            .delta = merge->deltas->entries[i].sequence,
            .session = cursor->session,
            .count = 1};

        if (!is_wanted(merge, i, end, completed)) {
            continue;
        }
        status = move_ranges(merge, range.delta);
        if (status == WAL_OK) {
            status = wal__entry_cursor_add_visible(merge->cursor, &range,
                                                   &merge->ranges,
                                                   &merge->remaining, error);
        }
    }
    return status == WAL_OK ? move_ranges(merge, UINT64_MAX) : status;
}

enum wal_status wal__entry_cursor_add_deltas(struct wal_entry_cursor *cursor,
                                             uint64_t end, uint64_t depth,
                                             struct wal_error *error)
{
    struct merge merge = {.cursor = cursor, .remaining = cursor->remaining};
    struct wal__branch_slot *slot;
    enum wal_status status =
        wal__core_get_branch(cursor->core, cursor->session, &slot, error);

    if (status != WAL_OK) {
        return status;
    }
    merge.entries = wal__branch_stream(&slot->branch, cursor->stream);
    merge.deltas =
        wal__branch_stream(&slot->branch, WAL__DELTAS_OF(cursor->stream));
    if (merge.deltas == NULL) {
        return WAL_OK;
    }
    wal__buf_init(&merge.ranges, cursor->core->env.heap);
    status = merge_deltas(&merge, end, depth, error);
    if (status != WAL_OK) {
        wal__buf_deinit(&merge.ranges);
        return status;
    }
    wal__buf_deinit(&cursor->ranges);
    cursor->ranges = merge.ranges;
    cursor->remaining = merge.remaining;
    return WAL_OK;
}
