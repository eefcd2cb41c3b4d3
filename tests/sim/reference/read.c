/*
 * read.c - reading a session's entries (reference.h).
 */
#include <stdlib.h>
#include <string.h>

#include "format/bytes/assert.h"
#include "tests/sim/reference/internal.h"

static const struct wal_slice nothing = {NULL, 0};

/* Sequence numbers in the order of reading. */
struct path {
    uint64_t *items;
    uint64_t count;
};

/* Adds what the session has of the stream and is no delta that was dropped;
 * `end`: deltas of the message that follows it, and no other entries. */
static void add_own(const struct reference *ref, uint32_t number,
                    uint32_t stream, const uint64_t *end, struct path *path)
{
    uint64_t completed =
        end == NULL ? 0 : ref_newest_child(ref, number, stream, *end);

    REF_EACH (i, ref, number) {
        const struct ref_record *record = ref_at(ref, i);

        if (record->kind == REF_ENTRY && record->stream == stream &&
            (!record->is_dropped || ref->shows_dropped ||
             record->shown == ref->hidings + 1) &&
            (end == NULL ||
             (record->is_delta && record->target == *end && i > completed))) {
            path->items[path->count++] = i;
        }
    }
}

/* The way from a root to an entry; none for 0. */
static struct path path_to(const struct reference *ref, uint64_t sequence)
{
    struct path path = {.count =
                            sequence == 0 ? 0 : ref_depth(ref, sequence) + 1};

    path.items = common_alloc(ref->count + 1, sizeof(path.items[0]));
    WAL__ASSERT(path.items != NULL);
    for (uint64_t i = path.count; i > 0; i--) {
        path.items[i - 1] = sequence;
        sequence = ref_at(ref, sequence)->target;
    }
    return path;
}

static enum wal_status branch(const struct reference *ref, uint32_t number,
                              const struct wal_entry_cursor_options *options,
                              struct path *path)
{
    bool deltas = (options->flags & WAL_ENTRY_CURSOR_DELTAS) != 0;
    bool is_main = options->head.size == 0 ||
                   reference_is_equal(options->head, ref_text("main"));
    uint64_t end =
        ref_head(ref, number, options->stream, options->head, ref->count);

    if (end == 0 && !is_main) {
        return WAL_ENOTFOUND;
    }
    if (options->up_to.size > 0) {
        end = ref_find_named(ref, number, options->up_to);
        if (end == 0 || ref_at(ref, end)->stream != options->stream) {
            return WAL_ENOTFOUND;
        }
    }
    *path = path_to(ref, end);
    if (deltas) {
        add_own(ref, number, options->stream, &end, path);
    }
    return WAL_OK;
}

/* The entries that a fork shares in branch order, then its own. */
static struct path all(const struct reference *ref, uint32_t number,
                       uint32_t stream)
{
    const struct ref_record *fork = ref_fork_of(ref, number);
    bool shares = fork != NULL && fork->target != 0 && fork->stream == stream;
    struct path path = path_to(ref, shares ? fork->target : 0);

    add_own(ref, number, stream, NULL, &path);
    return path;
}

/* ---------------------------------------------------------- compaction --- */

static bool is_compaction(const struct ref_record *record)
{
    return ref_is_type(record, WAL_TYPE_COMPACTION) ||
           ref_is_type(record, WAL_TYPE_COMPACTION_SUMMARY);
}

/* The first entry that the last compaction of the path keeps, or the
 * compaction, when what it names is not before it. */
static void since_compaction(const struct reference *ref, uint32_t number,
                             struct path *path)
{
    uint64_t last = path->count;
    uint64_t from;
    uint64_t kept = 0;
    struct wal_slice id;

    while (last > 0 && !is_compaction(ref_at(ref, path->items[last - 1]))) {
        last--;
    }
    if (last == 0) {
        return;
    }
    from = last - 1;
    if (reference_member(ref_at(ref, path->items[from])->entry->payload,
                         "firstKeptEntryId", &id)) {
        kept = ref_find_entry(ref, number, id);
        reference_free(id);
    }
    for (uint64_t i = 0; i < from; i++) {
        if (path->items[i] == kept) {
            from = i;
        }
    }
    path->count -= from;
    memmove(path->items, path->items + from,
            path->count * sizeof(path->items[0]));
}

/* -------------------------------------------------------------- giving --- */

/* Redactions count among the first `limit` records. */
static bool is_hidden(const struct reference *ref, uint64_t sequence,
                      uint32_t flags, uint64_t limit)
{
    if ((flags & WAL_ENTRY_CURSOR_DELTAS) == 0 &&
        ref_is_type(ref_at(ref, sequence), WAL_TYPE_MESSAGE_DELTA_BATCH)) {
        return true;
    }
    return (flags & WAL_ENTRY_CURSOR_REDACTED) == 0 &&
           ref_redaction_until(ref, sequence, limit) != NULL;
}

/* Redactions count among the first `limit` records; for its parent among the
 * first `parent_limit`. */
static void fill_entry(const struct reference *ref, uint64_t sequence,
                       uint32_t flags, uint64_t limit, uint64_t parent_limit,
                       struct reference_entry *out)
{
    const struct ref_record *record = ref_at(ref, sequence);
    const struct ref_record *redact = ref_redaction_until(ref, sequence, limit);
    uint64_t parent = record->target;

    memset(out, 0, sizeof(*out));
    out->entry = *record->entry;
    out->entry.flags = record->entry->flags & WAL_ENTRY_LINE;
    out->entry.sequence = sequence;
    out->entry.depth = ref_depth(ref, sequence);
    while (parent != 0 && is_hidden(ref, parent, flags, parent_limit)) {
        parent = ref_at(ref, parent)->target;
    }
    out->entry.flags |= parent == 0 ? WAL_ENTRY_ROOT : 0;
    out->entry.parent_id = ref_entry_id(ref, parent);
    out->earliest_ms = record->earliest_ms;
    out->latest_ms = record->latest_ms;
    if (redact != NULL) {
        /* The flags say what it was. */
        out->entry.flags |= WAL_ENTRY_REDACTED;
        out->entry.payload = nothing;
        out->entry.meta = nothing;
        out->redacted_by = ref_entry_id(ref, redact->by);
        out->reason = redact->reason;
    }
}

enum wal_status reference_read(const struct reference *ref, uint32_t number,
                               const struct wal_entry_cursor_options *options,
                               struct reference_entry **entries,
                               uint32_t *count)
{
    struct reference_entry *list;
    struct path path = {0};
    uint64_t skip = options->skip;
    enum wal_status status = WAL_OK;

    if (options->up_to.size > 0 && options->head.size > 0) {
        return WAL_EINVAL;
    }
    if (reference_is_deleted(ref, number)) {
        return WAL_ENOTFOUND;
    }
    if (options->mode == WAL_ENTRY_CURSOR_ALL) {
        path = all(ref, number, options->stream);
    } else {
        status = branch(ref, number, options, &path);
    }
    if (status != WAL_OK) {
        return status;
    }
    if ((options->flags & WAL_ENTRY_CURSOR_SINCE_COMPACTION) != 0) {
        since_compaction(ref, number, &path);
    }
    list = common_alloc(path.count + 1, sizeof(*list));
    WAL__ASSERT(list != NULL);
    *count = 0;
    for (uint64_t i = 0; i < path.count; i++) {
        if (is_hidden(ref, path.items[i], options->flags, ref->count)) {
            continue;
        }
        if (skip > 0) {
            skip--;
            continue;
        }
        fill_entry(ref, path.items[i], options->flags, ref->count, ref->count,
                   &list[*count]);
        *count += 1;
    }
    common_free(path.items);
    if (options->last > 0 && options->last < *count) {
        memmove(list, list + (*count - options->last),
                (size_t)options->last * sizeof(*list));
        *count = (uint32_t)options->last;
    }
    *entries = list;
    return WAL_OK;
}

bool reference_refresh(const struct reference *ref, uint64_t sequence,
                       uint32_t flags, uint64_t limit, uint64_t parent_limit,
                       struct reference_entry *out)
{
    if (is_hidden(ref, sequence, flags, limit)) {
        return false;
    }
    fill_entry(ref, sequence, flags, limit, parent_limit, out);
    return true;
}

void reference_take_redaction(const struct reference *ref, struct wal_slice id,
                              struct reference_entry *entry)
{
    for (uint64_t i = 1; i <= ref->count; i++) {
        const struct ref_record *record = ref_at(ref, i);

        if (record->kind == REF_REDACT &&
            record->target == entry->entry.sequence &&
            reference_is_equal(ref_entry_id(ref, record->by), id)) {
            entry->redacted_by = ref_entry_id(ref, record->by);
            entry->reason = record->reason;
            return;
        }
    }
}

bool reference_is_redaction(const struct reference *ref, struct wal_slice id)
{
    bool found = false;

    for (uint64_t i = 1; i <= ref->count && !found; i++) {
        const struct ref_record *record = ref_at(ref, i);

        found = record->kind == REF_REDACT &&
                reference_is_equal(ref_entry_id(ref, record->by), id);
    }
    return found;
}

bool reference_next_redaction(const struct reference *ref, uint64_t *sequence)
{
    for (uint64_t i = *sequence + 1; i <= ref->count; i++) {
        if (ref_at(ref, i)->kind == REF_REDACT) {
            *sequence = i;
            return true;
        }
    }
    return false;
}

enum wal_status reference_get(const struct reference *ref, uint32_t number,
                              struct wal_slice id, uint32_t flags,
                              struct reference_entry *out)
{
    uint64_t found;

    if (reference_is_deleted(ref, number)) {
        return WAL_ENOTFOUND;
    }
    found = ref_find_entry(ref, number, id);
    if (found == 0) {
        return WAL_ENOTFOUND;
    }
    if (ref_redaction(ref, found) != NULL &&
        (flags & WAL_ENTRY_CURSOR_REDACTED) == 0) {
        return WAL_EREDACTED;
    }
    fill_entry(ref, found, flags, ref->count, ref->count, out);
    return WAL_OK;
}
