/*
 * entry_path.c - which entries a cursor returns (SPEC.md 5.5, 5.7): those of its path, or all of
 * the session, without the hidden ones.
 *
 * Visibility. A cursor hides deltas and redacted entries, as its flags say. Its path is a list of
 * ranges, consecutive entries of one session, which is split at hidden entries. A refresh splits
 * what remains of it again after a redaction.
 *
 * Deltas. In log order all that the session has are returned, on a path those of the message that
 * is being written under its end. A delta is newer than its parent, and a session shows its own
 * deltas only, so that they are among its own entries or after them.
 *
 * Reading "since the last compaction". A hidden compaction counts too: the entries that it keeps
 * are part of the shape of the tree.
 *
 * The tail. The last entries of a path are found by walking postings from the newest on, and listed
 * in `items`. No branch is built: the cost is that of the postings passed, whatever the length of
 * the session and the depth of its lineage. The records of a session are passed newest first, so
 * that the redaction of an entry is known before the entry is reached.
 *
 * Invariant: no range contains an entry that was hidden at redaction_generation. One thread at a
 * time; state lock for writing, except where entry_cursor.h says otherwise.
 */
#include <inttypes.h>
#include <string.h>

#include "engine/base/containers.h"
#include "engine/base/error.h"
#include "engine/session/entry_cursor.h"
#include "engine/store/input_text.h"
#include "format/bytes/assert.h"

/* --- what is hidden ------------------------------------------------------- */

static bool hides_deltas(const struct wal_entry_cursor *cursor,
                         const struct wal__annotations *annotations)
{
    return (cursor->flags & WAL_ENTRY_CURSOR_DELTAS) == 0 && annotations->delta_count > 0;
}

static bool hides_redacted(const struct wal_entry_cursor *cursor,
                           const struct wal__annotations *annotations)
{
    return (cursor->flags & WAL_ENTRY_CURSOR_REDACTED) == 0 && annotations->redaction_count > 0;
}

bool wal__entry_cursor_is_hidden(const struct wal_entry_cursor *cursor,
                                 const struct wal__annotations *annotations,
                                 const struct wal__branch_entry *entry)
{
    if (hides_deltas(cursor, annotations) && entry->kind == WAL__KIND_MESSAGE_DELTA_BATCH) {
        return true;
    }
    return hides_redacted(cursor, annotations) &&
           wal__annotations_find_redaction(annotations, entry->sequence) != NULL;
}

/* The first hidden sequence at or above this one, in any stream. */
static uint64_t next_hidden_sequence(const struct wal_entry_cursor *cursor,
                                     const struct wal__annotations *annotations, uint64_t sequence)
{
    uint64_t delta = hides_deltas(cursor, annotations)
                         ? wal__annotations_next_delta(annotations, sequence)
                         : UINT64_MAX;
    uint64_t redacted = hides_redacted(cursor, annotations)
                            ? wal__annotations_next_redacted(annotations, sequence)
                            : UINT64_MAX;

    return delta < redacted ? delta : redacted;
}

/* The first hidden ordinal of [at, end), or end. Skips visible entries and annotations of other
 * streams by binary search. */
static uint32_t next_hidden(const struct wal_entry_cursor *cursor,
                            const struct wal__annotations *annotations,
                            const struct wal__stream *stream, uint32_t at, uint32_t end)
{
    while (at < end) {
        uint64_t hidden = next_hidden_sequence(cursor, annotations, stream->entries[at].sequence);

        at = wal__branch_lower_bound(stream, at, end, hidden);
        if (at < end && stream->entries[at].sequence == hidden) {
            return at;
        }
    }
    return end;
}

/* --- ranges --------------------------------------------------------------- */

/* Returns WAL_EPOISONED. */
static enum wal_status fail_lost(struct wal_error *error)
{
    return wal__fail(error, WAL_EPOISONED,
                     "entries of this cursor were lost when a sync failed; "
                     "open a new one");
}

enum wal_status wal__entry_cursor_find_stream(const struct wal_entry_cursor *cursor,
                                              const struct wal__branch_slot *slot,
                                              const struct wal__entry_cursor_range *range,
                                              const struct wal__stream **stream, uint32_t *first,
                                              struct wal_error *error)
{
    const struct wal__stream *found = wal__branch_stream(
        &slot->branch, range->delta == 0 ? cursor->stream : WAL__DELTAS_OF(cursor->stream));

    if (found != NULL && range->delta != 0 &&
        wal__branch_find_sequence(found, range->delta, first)) {
        *stream = found;
        return WAL_OK;
    }
    if (found == NULL || range->delta != 0 || range->first > found->entry_count ||
        range->count > found->entry_count - range->first) {
        return fail_lost(error);
    }
    *stream = found;
    *first = range->first;
    return WAL_OK;
}

/* Appends the delta, unless it is gone or hidden. */
static enum wal_status add_delta(const struct wal_entry_cursor *cursor,
                                 const struct wal__branch_slot *slot,
                                 const struct wal__entry_cursor_range *range,
                                 struct wal__buf *ranges, uint64_t *count)
{
    const struct wal__stream *stream;
    uint32_t ordinal;

    if (wal__entry_cursor_find_stream(cursor, slot, range, &stream, &ordinal, NULL) != WAL_OK ||
        wal__entry_cursor_is_hidden(cursor, &slot->annotations, &stream->entries[ordinal])) {
        return WAL_OK;
    }
    ++*count;
    return wal__buf_append(ranges, range, sizeof(*range));
}

/* Appends the visible parts of the range. */
static enum wal_status split(const struct wal_entry_cursor *cursor,
                             const struct wal__branch_slot *slot, const struct wal__stream *stream,
                             const struct wal__entry_cursor_range *range, struct wal__buf *ranges,
                             uint64_t *count)
{
    uint32_t end = range->first + range->count;
    uint32_t at = range->first;

    WAL__ASSERT(end >= range->first && end <= stream->entry_count);
    while (at < end) {
        struct wal__entry_cursor_range visible = {range->depth + (at - range->first), 0,
                                                  range->session, at, 0};

        at = next_hidden(cursor, &slot->annotations, stream, at, end);
        visible.count = at - visible.first;
        if (visible.count > 0 && wal__buf_append(ranges, &visible, sizeof(visible)) != WAL_OK) {
            return WAL_ENOMEM;
        }
        *count += visible.count;
        while (at < end &&
               wal__entry_cursor_is_hidden(cursor, &slot->annotations, &stream->entries[at])) {
            at++;
        }
    }
    WAL__ASSERT(at <= end);
    return WAL_OK;
}

enum wal_status wal__entry_cursor_add_visible(struct wal_entry_cursor *cursor,
                                              const struct wal__entry_cursor_range *range,
                                              struct wal__buf *ranges, uint64_t *count,
                                              struct wal_error *error)
{
    const struct wal__stream *stream = NULL;
    struct wal__branch_slot *slot;
    uint32_t first;
    enum wal_status status = wal__core_get_branch(cursor->core, range->session, &slot, error);

    if (status != WAL_OK) {
        return status;
    }
    if (range->delta != 0) {
        status = add_delta(cursor, slot, range, ranges, count);
        return status == WAL_OK ? WAL_OK : wal__no_memory(error);
    }
    status = wal__entry_cursor_find_stream(cursor, slot, range, &stream, &first, error);
    if (status != WAL_OK) {
        return status;
    }
    status = split(cursor, slot, stream, range, ranges, count);
    return status == WAL_OK ? WAL_OK : wal__no_memory(error);
}

enum wal_status wal__entry_cursor_refresh(struct wal_entry_cursor *cursor, struct wal_error *error)
{
    const struct wal__entry_cursor_range *ranges = (const void *)cursor->ranges.data;
    size_t count = cursor->ranges.size / sizeof(*ranges);
    uint64_t redactions = atomic_load(&cursor->core->redaction_generation);
    uint64_t remaining = 0;
    struct wal__buf left;
    enum wal_status status = WAL_OK;

    wal__buf_init(&left, cursor->core->env.heap);
    for (size_t i = cursor->range; i < count && status == WAL_OK; i++) {
        struct wal__entry_cursor_range range = ranges[i];

        if (i == cursor->range) {
            range.depth += cursor->range_index;
            range.first += cursor->range_index;
            range.count -= cursor->range_index;
        }
        status = wal__entry_cursor_add_visible(cursor, &range, &left, &remaining, error);
    }
    if (status != WAL_OK) {
        wal__buf_deinit(&left);
        return status;
    }
    wal__buf_deinit(&cursor->ranges);
    cursor->ranges = left;
    cursor->range = 0;
    cursor->range_index = 0;
    WAL__ASSERT(remaining <= cursor->remaining);
    cursor->remaining = remaining;
    cursor->redaction_generation = redactions;
    cursor->block_count = 0;
    cursor->block_index = 0;
    cursor->previous.sequence = 0; /* it may be hidden now */
    return WAL_OK;
}

/* --- deltas --------------------------------------------------------------- */

/* The ranges so far, and those that replace them. */
struct merge {
    struct wal_entry_cursor *cursor;
    const struct wal__stream *entries; /* NULL: it has none */
    const struct wal__stream *deltas;
    struct wal__buf ranges;
    uint64_t remaining;
    size_t next; /* of the cursor's ranges */
};

/* The sequence of the newest own entry that moved the head under `parent`, which completes the
 * deltas before it; 0: none. */
static uint64_t find_newest_child(const struct wal__stream *entries, uint64_t parent)
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
static bool is_wanted(const struct merge *merge, uint32_t ordinal, uint64_t end, uint64_t completed)
{
    const struct wal__branch_entry *delta = &merge->deltas->entries[ordinal];

    return delta->position < merge->cursor->limit &&
           (merge->cursor->all ||
            (wal__branch_parent(merge->deltas, ordinal) == end && delta->sequence > completed));
}

/* Moves the cursor's ranges up to the sequence; splits the one that reaches beyond it. */
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

            WAL__ASSERT(merge->entries != NULL && end <= merge->entries->entry_count);
            before.count =
                wal__branch_lower_bound(merge->entries, range->first, end, sequence) - range->first;
        }
        if (before.count > 0 &&
            wal__buf_append(&merge->ranges, &before, sizeof(before)) != WAL_OK) {
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

static enum wal_status merge_deltas(struct merge *merge, uint64_t end, uint64_t depth,
                                    struct wal_error *error)
{
    const struct wal_entry_cursor *cursor = merge->cursor;
    uint64_t completed = cursor->all ? 0 : find_newest_child(merge->entries, end);
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < merge->deltas->entry_count && status == WAL_OK; i++) {
        struct wal__entry_cursor_range range = {.depth = depth,
                                                .delta = merge->deltas->entries[i].sequence,
                                                .session = cursor->session,
                                                .count = 1};

        if (!is_wanted(merge, i, end, completed)) {
            continue;
        }
        status = move_ranges(merge, range.delta);
        if (status == WAL_OK) {
            status = wal__entry_cursor_add_visible(merge->cursor, &range, &merge->ranges,
                                                   &merge->remaining, error);
        }
    }
    return status == WAL_OK ? move_ranges(merge, UINT64_MAX) : status;
}

enum wal_status wal__entry_cursor_add_deltas(struct wal_entry_cursor *cursor, uint64_t end,
                                             uint64_t depth, struct wal_error *error)
{
    struct merge merge = {.cursor = cursor, .remaining = cursor->remaining};
    struct wal__branch_slot *slot;
    enum wal_status status = wal__core_get_branch(cursor->core, cursor->session, &slot, error);

    if (status != WAL_OK) {
        return status;
    }
    merge.entries = wal__branch_stream(&slot->branch, cursor->stream);
    merge.deltas = wal__branch_stream(&slot->branch, WAL__DELTAS_OF(cursor->stream));
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

/* --- the last compaction -------------------------------------------------- */

/* Depth on the path of the entry with this sequence; UINT64_MAX when it is not on the path. */
static enum wal_status depth_on_path(struct wal_entry_cursor *cursor, const struct wal__buf *path,
                                     uint64_t sequence, uint64_t *depth, struct wal_error *error)
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
        if (stream != NULL && wal__branch_find_sequence(stream, sequence, &ordinal) &&
            ordinal >= ranges[i].first && ordinal - ranges[i].first < ranges[i].count) {
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

/* The newest compaction on the path: its depth and position. Position 0: there is none. */
static enum wal_status find_last_compaction(struct wal_entry_cursor *cursor,
                                            const struct wal__buf *path, uint64_t *depth,
                                            uint64_t *position, struct wal_error *error)
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
        enum wal_status status = wal__core_get_branch(cursor->core, range->session, &slot, error);

        if (status != WAL_OK) {
            return status;
        }
        WAL__ASSERT(before >= range->count);
        before -= range->count;
        stream = wal__branch_stream(&slot->branch, cursor->stream);
        if (stream != NULL && wal__branch_find_compaction(stream, &own_range, &ordinal)) {
            WAL__ASSERT(ordinal >= range->first && ordinal - range->first < range->count);
            *depth = before + ordinal - range->first;
            *position = stream->entries[ordinal].position;
            return WAL_OK;
        }
    }
    return WAL_OK;
}

/* The entry that the compaction's payload names as firstKeptEntryId. WAL_ENOTFOUND when it names
 * none that exists, or is damaged; WAL_ECORRUPT when an index is, or a segment was replaced:
 * reading again may find it. */
static enum wal_status find_first_kept(struct wal_entry_cursor *cursor, uint64_t position,
                                       struct wal__entry_location *found, struct wal_error *error)
{
    struct wal__entry_record record;
    struct wal__frame frame;
    struct wal__span payload;
    struct wal__span id;
    uint8_t text[WAL__ID_MAX];
    enum wal_status status =
        wal__log_read(&cursor->core->log, position, &cursor->scratch, &frame, &payload, error);

    if (status == WAL_ECORRUPT && !wal__log_find_replaced(&cursor->core->log)) {
        return WAL_ENOTFOUND;
    }
    if (status != WAL_OK) {
        return status;
    }
    if (wal__entry_record_decode(payload, &record) != WAL__FMT_OK ||
        !wal__text_member(record.payload, "firstKeptEntryId", text, sizeof(text), &id)) {
        return WAL_ENOTFOUND;
    }
    return wal__core_find_id(cursor->core, cursor->session, id, found, error);
}

enum wal_status wal__entry_cursor_find_compaction(struct wal_entry_cursor *cursor,
                                                  const struct wal__buf *path, uint64_t *cut,
                                                  struct wal_error *error)
{
    struct wal_error local_error = {.struct_size = sizeof(local_error)};
    struct wal__entry_location found;
    uint64_t position = 0;
    uint64_t depth = 0;
    uint64_t kept = UINT64_MAX;
    enum wal_status status = find_last_compaction(cursor, path, &depth, &position, error);

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

/* --- the tail ------------------------------------------------------------- */

/* What the records that a walk passed say of an entry. */
struct walk_redaction {
    uint64_t target;
    uint64_t position; /* of the REDACT record; 0: none hides it */
    bool is_settled;   /* an earlier record counts no more */
};

/* A walk from an entry towards its root. The depth of an item is the number of entries passed
 * before it, until that of the first is known. */
struct walk {
    struct wal_entry_cursor *cursor;
    uint64_t floor;  /* from this sequence on, only entries that the cursor has; 0: all */
    uint64_t wanted; /* visible entries */
    uint64_t next;   /* sequence of the next entry on the path; 0: none */
    uint64_t passed; /* entries, hidden ones included */
    uint64_t depth;  /* of the first, when depth_known */
    bool depth_known;
    struct wal__buf items; /* struct wal__entry_cursor_item, newest first */
    /* The session that is walked through. */
    struct wal__summary summary;
    const struct wal__branch_slot *slot; /* its branch, if loaded; else null */
    struct wal__posting_cursor postings;
    /* Its redactions so far, when there is no slot. */
    struct wal__hashmap redaction_map; /* target -> rank in redactions */
    struct wal__buf redactions;        /* struct walk_redaction */
};

static size_t item_count(const struct walk *walk)
{
    return walk->items.size / sizeof(struct wal__entry_cursor_item);
}

/* --- redactions ----------------------------------------------------------- */

static struct walk_redaction *find_redaction(const struct walk *walk, uint64_t target)
{
    struct walk_redaction *redactions = (void *)walk->redactions.data;
    uint32_t cursor = 0;
    uint32_t rank;

    while (wal__hashmap_find(&walk->redaction_map, target, &cursor, &rank)) {
        if (redactions[rank].target == target) {
            return &redactions[rank];
        }
    }
    return NULL;
}

/* The oldest redaction of an entry counts, of those after the newest RESTORE, whose position is
 * 0. */
static enum wal_status add_redaction(struct walk *walk, uint64_t target, uint64_t position)
{
    const struct walk_redaction redaction = {target, position, position == 0};
    struct walk_redaction *known = find_redaction(walk, target);
    uint32_t rank = (uint32_t)(walk->redactions.size / sizeof(redaction));
    enum wal_status status;

    if (known != NULL) {
        known->is_settled |= position == 0;
        known->position = known->is_settled ? known->position : position;
        return WAL_OK;
    }
    status = wal__buf_append(&walk->redactions, &redaction, sizeof(redaction));
    return status == WAL_OK ? wal__hashmap_add(&walk->redaction_map, target, rank) : status;
}

/* The position of the record that redacted the entry; 0: none did. */
static uint64_t redaction_of(const struct walk *walk, uint64_t sequence)
{
    const struct walk_redaction *passed;
    const struct wal__redaction *redaction;

    if (walk->slot == NULL) {
        passed = find_redaction(walk, sequence);
        return passed == NULL ? 0 : passed->position;
    }
    redaction = wal__annotations_find_redaction(&walk->slot->annotations, sequence);
    return redaction == NULL ? 0 : redaction->position;
}

/* --- sessions ------------------------------------------------------------- */

/* Begins with the session `number`, in which the next entry may be. */
static enum wal_status enter_session(struct walk *walk, uint32_t number)
{
    struct wal__core *core = walk->cursor->core;
    enum wal_status status = wal__catalogue_get(&core->catalogue, number, &walk->summary);

    if (status != WAL_OK) {
        return status;
    }
    walk->slot = wal__core_cached_branch(core, number);
    if (walk->slot != NULL && !walk->slot->loaded) {
        walk->slot = NULL;
    }
    walk->redactions.size = 0;
    wal__hashmap_deinit(&walk->redaction_map);
    wal__hashmap_init(&walk->redaction_map, core->env.heap);
    if (walk->next > walk->summary.fork_sequence) {
        /* A branch has all redactions; without it they are passed first. */
        wal__posting_cursor_begin(&walk->postings, core, &walk->summary,
                                  walk->slot != NULL ? walk->next : UINT64_MAX);
    }
    return WAL_OK;
}

/* Ascends to the session that owns the next entry. WAL_ENOTFOUND when it was lost. */
static enum wal_status find_owner(struct walk *walk)
{
    enum wal_status status = WAL_OK;

    while (status == WAL_OK && walk->next <= walk->summary.fork_sequence) {
        uint32_t owner = walk->summary.fork_owner;

        if (owner == 0 || owner == walk->summary.number) {
            return WAL_ECORRUPT;
        }
        status = enter_session(walk, owner);
    }
    return status;
}

/* --- entries -------------------------------------------------------------- */

static void set_depth(struct walk *walk, uint64_t depth)
{
    walk->depth = depth;
    walk->depth_known = true;
}

/* Finds the depth of the first entry from the branch of the present one. */
static void find_depth_in_branch(struct walk *walk, const struct wal__posting *posting)
{
    const struct wal__stream *stream = wal__branch_stream(&walk->slot->branch, posting->stream);
    uint32_t ordinal;

    if (stream != NULL && wal__branch_find_sequence(stream, posting->sequence, &ordinal) &&
        wal__branch_is_depth_exact(stream, ordinal)) {
        set_depth(walk, wal__branch_depth(stream, ordinal) + walk->passed);
    }
}

/* Whether the cursor has left the entry out since it was opened. A redaction that was undone since
 * gives it back to no cursor. */
static bool was_left_out(const struct walk *walk, uint64_t sequence)
{
    const struct wal__buf *items = &walk->cursor->items;
    const size_t size = sizeof(struct wal__entry_cursor_item);
    const struct wal__entry_cursor_item *at = (const void *)items->data;
    size_t count = items->size / size;

    if (walk->floor == 0 || sequence < walk->floor) {
        return false;
    }
    at += wal__lower_bound(at, count, size, offsetof(struct wal__entry_cursor_item, sequence),
                           sequence);
    return at == (const struct wal__entry_cursor_item *)(const void *)items->data + count ||
           at->sequence != sequence;
}

/* Passes the entry, and keeps it when it is visible and still wanted. */
static enum wal_status pass_entry(struct walk *walk, const struct wal__posting *posting,
                                  uint64_t position)
{
    const struct wal_entry_cursor *cursor = walk->cursor;
    const struct wal__entry_cursor_item item = {
        .position = position,
        .sequence = posting->sequence,
        .depth = walk->passed,
        .redaction = redaction_of(walk, posting->sequence),
    };
    bool is_hidden = (item.redaction != 0 && (cursor->flags & WAL_ENTRY_CURSOR_REDACTED) == 0) ||
                     (posting->kind == WAL__KIND_MESSAGE_DELTA_BATCH &&
                      (cursor->flags & WAL_ENTRY_CURSOR_DELTAS) == 0) ||
                     position >= cursor->limit || was_left_out(walk, posting->sequence);

    if (!walk->depth_known && walk->slot != NULL) {
        find_depth_in_branch(walk, posting);
    }
    walk->passed++;
    walk->next = posting->parent;
    if (!walk->depth_known && walk->next != 0 && walk->next == walk->summary.fork_sequence) {
        set_depth(walk, walk->summary.inherited + walk->passed - 1);
    }
    return is_hidden || item_count(walk) == walk->wanted
               ? WAL_OK
               : wal__buf_append(&walk->items, &item, sizeof(item));
}

/* Passes the records of the session down to the next entry. WAL_ENOTFOUND when that was lost. */
static enum wal_status pass_records(struct walk *walk)
{
    struct wal__posting posting;
    uint64_t position;
    enum wal_status status;

    do {
        status = wal__posting_cursor_previous(&walk->postings, &posting, &position);
        if (status != WAL_OK) {
            return status == WAL_END ? WAL_ENOTFOUND : status;
        }
        if ((posting.type == WAL__FRAME_REDACT || posting.type == WAL__FRAME_RESTORE) &&
            walk->slot == NULL) {
            status = add_redaction(walk, posting.parent,
                                   posting.type == WAL__FRAME_REDACT ? position : 0);
            if (status != WAL_OK) {
                return status;
            }
        }
    } while (posting.sequence > walk->next);
    if (posting.sequence != walk->next || posting.type != WAL__FRAME_ENTRY ||
        posting.stream != walk->cursor->stream || posting.parent >= posting.sequence) {
        return WAL_ENOTFOUND;
    }
    return pass_entry(walk, &posting, position);
}

/* The catalogue knows the depth of a fork point and of the head of a straight session. */
static void find_depth_of_end(struct walk *walk)
{
    const struct wal__summary *summary = &walk->summary;

    if (walk->next == summary->fork_sequence) {
        set_depth(walk, summary->inherited - 1);
    } else if (walk->cursor->stream == 0 && walk->next == summary->head_sequence &&
               (summary->flags & WAL__SUMMARY_STRAIGHT) != 0) {
        set_depth(walk, summary->inherited + summary->entries - 1);
    }
}

/* Walks until all wanted entries and the depth are found. */
static enum wal_status run(struct walk *walk, uint64_t end)
{
    enum wal_status status;

    walk->next = end;
    status = enter_session(walk, walk->cursor->session);
    if (status == WAL_OK) {
        find_depth_of_end(walk);
    }
    while (status == WAL_OK && walk->next != 0 &&
           (item_count(walk) < walk->wanted || !walk->depth_known)) {
        status = find_owner(walk);
        if (status == WAL_OK) {
            status = pass_records(walk);
        }
    }
    if (status == WAL_ENOTFOUND && walk->passed > 0) {
        status = WAL_OK; /* a parent was lost: the path starts here */
    }
    if (status == WAL_OK && !walk->depth_known) {
        set_depth(walk, walk->passed - 1);
    }
    return status;
}

/* --- the cursor ----------------------------------------------------------- */

/* Sets the id of the entry that precedes the first one to return. */
static void set_parent_hint(struct wal_entry_cursor *cursor,
                            const struct wal__entry_cursor_item *parent)
{
    struct wal__span id;

    cursor->previous.sequence = 0;
    if (wal__core_read_id(cursor->core, parent->position, parent->sequence, &cursor->aux_scratch,
                          &id) == WAL_OK) {
        WAL__ASSERT(id.size <= WAL__ID_MAX);
        /* A copy: the id may be in the scratch. */
        memcpy(cursor->id_copy[0], id.data, id.size);
        cursor->id_copy_index = 1;
        cursor->previous.sequence = parent->sequence;
        cursor->previous.id = (struct wal__span){cursor->id_copy[0], id.size};
    }
}

/* Moves the items to the cursor in reading order, without those below the floor and beyond `last`;
 * the newest of these is the parent of the first. */
static void take_items(struct walk *walk, uint64_t last)
{
    struct wal_entry_cursor *cursor = walk->cursor;
    struct wal__entry_cursor_item *items = (void *)walk->items.data;
    size_t count = item_count(walk);
    size_t kept = 0;

    while (kept < count && kept < last && items[kept].sequence >= walk->floor) {
        kept++;
    }
    cursor->previous.sequence = 0;
    if (kept > 0 && kept < count) {
        set_parent_hint(cursor, &items[kept]);
    }
    for (size_t i = 0; i < kept / 2; i++) {
        struct wal__entry_cursor_item swapped = items[i];

        items[i] = items[kept - 1 - i];
        items[kept - 1 - i] = swapped;
    }
    for (size_t i = 0; i < kept; i++) {
        WAL__ASSERT(items[i].depth <= walk->depth);
        items[i].depth = walk->depth - items[i].depth;
    }
    wal__buf_deinit(&cursor->items);
    cursor->items = walk->items;
    cursor->items.size = kept * sizeof(*items);
    wal__buf_init(&walk->items, cursor->core->env.heap);
    cursor->item_next = 0;
    cursor->remaining = kept;
}

static enum wal_status fill(struct wal_entry_cursor *cursor, uint64_t end, uint64_t last,
                            uint64_t floor)
{
    const struct wal__heap *heap = cursor->core->env.heap;
    struct walk walk = {.cursor = cursor, .floor = floor, .wanted = last + 1};
    enum wal_status status;

    wal__buf_init(&walk.items, heap);
    wal__buf_init(&walk.redactions, heap);
    wal__hashmap_init(&walk.redaction_map, heap);
    status = run(&walk, end);
    if (status == WAL_OK) {
        take_items(&walk, last);
    }
    wal__buf_deinit(&walk.items);
    wal__buf_deinit(&walk.redactions);
    wal__hashmap_deinit(&walk.redaction_map);
    return status;
}

static enum wal_status fail_index(const struct wal_entry_cursor *cursor, enum wal_status status,
                                  struct wal_error *error)
{
    return wal__fail(error, status, "cannot read the index of session %" PRIu32 ": %s",
                     cursor->session, wal_status_text(status));
}

enum wal_status wal__entry_cursor_fill_tail(struct wal_entry_cursor *cursor, uint64_t end,
                                            uint64_t last, struct wal_error *error)
{
    enum wal_status status;

    WAL__ASSERT(end != 0 && last > 0 && last <= WAL__ENTRY_CURSOR_TAIL);
    cursor->is_tail = true;
    cursor->end = end;
    status = fill(cursor, end, last, 0);
    if (status == WAL_ENOTFOUND) {
        return wal__fail(error, status, "the entry with sequence number %" PRIu64 " is missing",
                         end);
    }
    return status == WAL_OK ? WAL_OK : fail_index(cursor, status, error);
}

enum wal_status wal__entry_cursor_refresh_tail(struct wal_entry_cursor *cursor,
                                               struct wal_error *error)
{
    const struct wal__entry_cursor_item *items = (const void *)cursor->items.data;
    uint64_t redactions = atomic_load(&cursor->core->redaction_generation);
    enum wal_status status;

    WAL__ASSERT(cursor->is_tail && cursor->remaining > 0);
    status = fill(cursor, cursor->end, cursor->remaining, items[cursor->item_next].sequence);
    if (status != WAL_OK) {
        return status == WAL_ENOTFOUND ? fail_lost(error) : fail_index(cursor, status, error);
    }
    cursor->redaction_generation = redactions;
    cursor->block_count = 0;
    cursor->block_index = 0;
    return WAL_OK;
}

void wal__entry_cursor_fill_from_tail(struct wal_entry_cursor *cursor)
{
    const struct wal__entry_cursor_item *items = (const void *)cursor->items.data;
    uint64_t count =
        cursor->remaining < WAL__ENTRY_CURSOR_BLOCK ? cursor->remaining : WAL__ENTRY_CURSOR_BLOCK;

    WAL__ASSERT(cursor->block_count == 0);
    memcpy(cursor->block, items + cursor->item_next, (size_t)count * sizeof(*items));
    cursor->block_count = (uint32_t)count;
}
