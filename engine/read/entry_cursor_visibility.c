/*
 * entry_cursor_visibility.c - the entries that a cursor hides, deltas and
 * redacted entries, and the content that replaces a redacted entry (SPEC.md
 * 5.7).
 *
 * Invariant: no range contains an entry that was hidden at
 * redaction_generation. One thread at a time; state lock as entry_cursor.h
 * says.
 */
#include <string.h>

#include "engine/base/error.h"
#include "engine/read/entry_cursor.h"
#include "engine/store/input_text.h"
#include "format/bytes/assert.h"

enum {
    REASON_SHOWN = 160 /* bytes of the reason in an error text */
};

/* --- what is hidden ----------------------------------------------------- */

static bool hides_deltas(const struct wal_entry_cursor *cursor,
                         const struct wal__annotations *annotations)
{
    return (cursor->flags & WAL_ENTRY_CURSOR_DELTAS) == 0 &&
           annotations->delta_count > 0;
}

static bool hides_redacted(const struct wal_entry_cursor *cursor,
                           const struct wal__annotations *annotations)
{
    return (cursor->flags & WAL_ENTRY_CURSOR_REDACTED) == 0 &&
           annotations->redaction_count > 0;
}

bool wal__entry_cursor_is_hidden(const struct wal_entry_cursor *cursor,
                                 const struct wal__annotations *annotations,
                                 const struct wal__branch_entry *entry)
{
    if (hides_deltas(cursor, annotations) &&
        entry->kind == WAL__KIND_MESSAGE_DELTA_BATCH) {
        return true;
    }
    return hides_redacted(cursor, annotations) &&
           wal__annotations_find_redaction(annotations, entry->sequence) !=
               NULL;
}

/* The first hidden sequence at or above this one, in any stream. */
static uint64_t next_hidden_sequence(const struct wal_entry_cursor *cursor,
                                     const struct wal__annotations *annotations,
                                     uint64_t sequence)
{
    uint64_t delta = hides_deltas(cursor, annotations)
                         ? wal__annotations_next_delta(annotations, sequence)
                         : UINT64_MAX;
    uint64_t redacted =
        hides_redacted(cursor, annotations)
            ? wal__annotations_next_redacted(annotations, sequence)
            : UINT64_MAX;

    return delta < redacted ? delta : redacted;
}

/* The first hidden ordinal of [at, end), or end. Skips visible entries and
 * annotations of other streams by binary search. */
static uint32_t next_hidden(const struct wal_entry_cursor *cursor,
                            const struct wal__annotations *annotations,
                            const struct wal__stream *stream, uint32_t at,
                            uint32_t end)
{
    while (at < end) {
        uint64_t hidden = next_hidden_sequence(cursor, annotations,
                                               stream->entries[at].sequence);

        at = wal__branch_lower_bound(stream, at, end, hidden);
        if (at < end && stream->entries[at].sequence == hidden) {
            return at;
        }
    }
    return end;
}

/* --- ranges -------------------------------------------------------------- */

enum wal_status wal__entry_cursor_fail_lost(struct wal_error *error)
{
    return wal__fail(error, WAL_EPOISONED,
                     "entries of this cursor were lost when a sync failed; "
                     "open a new one");
}

enum wal_status wal__entry_cursor_find_stream(
    const struct wal_entry_cursor *cursor, const struct wal__branch_slot *slot,
    const struct wal__entry_cursor_range *range,
    const struct wal__stream **stream, uint32_t *first, struct wal_error *error)
{
    const struct wal__stream *found = wal__branch_stream(
        &slot->branch,
        range->delta == 0 ? cursor->stream : WAL__DELTAS_OF(cursor->stream));

    if (found != NULL && range->delta != 0 &&
        wal__branch_find_sequence(found, range->delta, first)) {
        *stream = found;
        return WAL_OK;
    }
    if (found == NULL || range->delta != 0 ||
        range->first > found->entry_count ||
        range->count > found->entry_count - range->first) {
        return wal__entry_cursor_fail_lost(error);
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

    if (wal__entry_cursor_find_stream(cursor, slot, range, &stream, &ordinal,
                                      NULL) != WAL_OK ||
        wal__entry_cursor_is_hidden(cursor, &slot->annotations,
                                    &stream->entries[ordinal])) {
        return WAL_OK;
    }
    ++*count;
    return wal__buf_append(ranges, range, sizeof(*range));
}

/* Appends the visible parts of the range. */
static enum wal_status split(const struct wal_entry_cursor *cursor,
                             const struct wal__branch_slot *slot,
                             const struct wal__stream *stream,
                             const struct wal__entry_cursor_range *range,
                             struct wal__buf *ranges, uint64_t *count)
{
    uint32_t end = range->first + range->count;
    uint32_t at = range->first;

    WAL__ASSERT(end >= range->first && end <= stream->entry_count);
    while (at < end) {
        struct wal__entry_cursor_range visible = {
            range->depth + (at - range->first), 0, range->session, at, 0};

        at = next_hidden(cursor, &slot->annotations, stream, at, end);
        visible.count = at - visible.first;
        if (visible.count > 0 &&
            wal__buf_append(ranges, &visible, sizeof(visible)) != WAL_OK) {
            return WAL_ENOMEM;
        }
        *count += visible.count;
        while (at < end &&
               wal__entry_cursor_is_hidden(cursor, &slot->annotations,
                                           &stream->entries[at])) {
            at++;
        }
    }
    WAL__ASSERT(at <= end);
    return WAL_OK;
}

enum wal_status
wal__entry_cursor_add_visible(struct wal_entry_cursor *cursor,
                              const struct wal__entry_cursor_range *range,
                              struct wal__buf *ranges, uint64_t *count,
                              struct wal_error *error)
{
    const struct wal__stream *stream = NULL;
    struct wal__branch_slot *slot;
    uint32_t first;
    enum wal_status status =
        wal__core_get_branch(cursor->core, range->session, &slot, error);

    if (status != WAL_OK) {
        return status;
    }
    if (range->delta != 0) {
        status = add_delta(cursor, slot, range, ranges, count);
        return status == WAL_OK ? WAL_OK : wal__no_memory(error);
    }
    status = wal__entry_cursor_find_stream(cursor, slot, range, &stream, &first,
                                           error);
    if (status != WAL_OK) {
        return status;
    }
    status = split(cursor, slot, stream, range, ranges, count);
    return status == WAL_OK ? WAL_OK : wal__no_memory(error);
}

bool wal__entry_cursor_is_stale(const struct wal_entry_cursor *cursor)
{
    return atomic_load_explicit(&cursor->core->redaction_generation,
                                memory_order_acquire) !=
           cursor->redaction_generation;
}

enum wal_status
wal__entry_cursor_check_deleted(const struct wal_entry_cursor *cursor,
                                enum wal_status status, struct wal_error *error)
{
    struct wal_error deleted = {.struct_size = sizeof(deleted)};
    struct wal__summary summary;

    if (status == WAL_OK ||
        wal__session_find(cursor->core, cursor->session, &summary, &deleted) !=
            WAL_ENOTFOUND) {
        return status;
    }
    wal__error_copy(error, &deleted);
    return WAL_ENOTFOUND;
}

bool wal__entry_cursor_is_overtaken(struct wal_entry_cursor *cursor)
{
    return wal__core_look_again(cursor->core, &cursor->looked) ||
           wal__entry_cursor_is_stale(cursor);
}

enum wal_status
wal__entry_cursor_check_erased(const struct wal_entry_cursor *cursor,
                               struct wal_error *error)
{
    enum wal_status status = WAL_ECORRUPT;

    if (wal__core_write_lock(cursor->core, NULL) == WAL_OK) {
        status = wal__entry_cursor_check_deleted(cursor, status, error);
        wal__core_unlock(cursor->core);
    }
    return status;
}

enum wal_status wal__entry_cursor_refresh(struct wal_entry_cursor *cursor,
                                          struct wal_error *error)
{
    const struct wal__entry_cursor_range *ranges =
        (const void *)cursor->ranges.data;
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
        status = wal__entry_cursor_add_visible(cursor, &range, &left,
                                               &remaining, error);
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

/* --- parents ------------------------------------------------------------ */

/* Walks up from the entry within its run: true at a visible entry, else
 * *sequence is the parent of the run. */
static bool find_visible_in_run(const struct wal_entry_cursor *cursor,
                                const struct wal__branch_slot *slot,
                                struct wal__entry_location *found,
                                uint64_t *sequence)
{
    const struct wal__stream *stream =
        wal__branch_stream(&slot->branch, found->stream);
    uint32_t ordinal = found->ordinal;
    const struct wal__run *run = &stream->runs[stream->entries[ordinal].run];

    WAL__ASSERT(ordinal < stream->entry_count && ordinal >= run->first);
    while (ordinal > run->first &&
           wal__entry_cursor_is_hidden(cursor, &slot->annotations,
                                       &stream->entries[ordinal])) {
        ordinal--;
    }
    if (wal__entry_cursor_is_hidden(cursor, &slot->annotations,
                                    &stream->entries[ordinal])) {
        *sequence = run->parent;
        return false;
    }
    found->sequence = stream->entries[ordinal].sequence;
    found->position = stream->entries[ordinal].position;
    found->ordinal = ordinal;
    return true;
}

enum wal_status
wal__entry_cursor_find_visible(struct wal_entry_cursor *cursor, uint32_t stream,
                               uint64_t sequence,
                               struct wal__entry_location *found)
{
    struct wal__branch_slot *slot;

    while (sequence != 0) {
        enum wal_status status = wal__core_find_sequence(
            cursor->core, cursor->session, stream, sequence, found, NULL);

        if (status == WAL_OK) {
            status =
                wal__core_get_branch(cursor->core, found->session, &slot, NULL);
        }
        if (status != WAL_OK ||
            find_visible_in_run(cursor, slot, found, &sequence)) {
            return status;
        }
    }
    found->sequence = 0;
    return WAL_OK;
}

static enum wal_status read_parent(struct wal_entry_cursor *cursor,
                                   const struct wal__frame *child,
                                   struct wal__span *id, bool *none,
                                   struct wal_error *error)
{
    struct wal__entry_location found = {0};
    enum wal_status status = wal__core_write_lock_or_stale(cursor->core, error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__entry_cursor_find_visible(cursor, child->stream,
                                            child->parent, &found);
    wal__core_unlock(cursor->core);
    if (status == WAL_OK && found.sequence == 0) {
        *none = true;
        return WAL_OK;
    }
    return status == WAL_OK
               ? wal__core_read_id(cursor->core, found.position, found.sequence,
                                   &cursor->aux_scratch, id)
               : status;
}

enum wal_status wal__entry_cursor_read_parent(struct wal_entry_cursor *cursor,
                                              const struct wal__frame *child,
                                              struct wal__span *id, bool *none,
                                              struct wal_error *error)
{
    uint64_t looked = 0;
    enum wal_status status;

    do {
        status = read_parent(cursor, child, id, none, error);
    } while (status == WAL_ECORRUPT &&
             wal__core_look_again(cursor->core, &looked));
    if (status == WAL_ENOMEM) {
        return wal__fail(error, status, "no memory");
    }
    /* A lost parent leaves the id empty; the entry itself is intact. */
    return WAL_OK;
}

/* --- redactions --------------------------------------------------------- */

/* Reads the REDACT record of an entry; its texts are valid until aux_scratch is
 * used again. */
static enum wal_status read_redact(struct wal_entry_cursor *cursor,
                                   uint64_t redaction, uint64_t sequence,
                                   struct wal__redact_record *record,
                                   struct wal_error *error)
{
    struct wal__frame frame;
    struct wal__span payload;
    enum wal_status status =
        wal__log_read(&cursor->core->log, redaction, &cursor->aux_scratch,
                      &frame, &payload, error);

    if (status == WAL_OK &&
        (frame.type != WAL__FRAME_REDACT || frame.parent != sequence ||
         wal__redact_record_decode(payload, record) != WAL__FMT_OK)) {
        status = wal__fail_at(error, WAL_ECORRUPT, 0, NULL,
                              wal__position_offset(redaction),
                              "the record of a redaction is damaged");
    }
    return status;
}

static enum wal_status append_text(struct wal__buf *out, const char *text)
{
    return wal__buf_append(out, text, strlen(text));
}

/* Appends {"redactedBy":ID,"reason":TEXT}. */
static enum wal_status format_redaction(const struct wal__redact_record *record,
                                        struct wal__buf *out)
{
    enum wal_status status = append_text(out, "{\"redactedBy\":");

    if (status != WAL_OK) {
        return status;
    }
    status = wal__text_quote(out, record->entry_id);
    if (status != WAL_OK) {
        return status;
    }
    status = append_text(out, ",\"reason\":");
    if (status != WAL_OK) {
        return status;
    }
    status = wal__text_quote(out, record->reason);
    return status == WAL_OK ? append_text(out, "}") : status;
}

enum wal_status
wal__entry_cursor_format_redaction(struct wal_entry_cursor *cursor,
                                   uint64_t redaction, uint64_t sequence,
                                   struct wal_error *error)
{
    struct wal__redact_record record;
    struct wal__buf *out = &cursor->redaction_json;
    enum wal_status status =
        read_redact(cursor, redaction, sequence, &record, error);

    if (status != WAL_OK) {
        return status;
    }
    out->size = 0;
    status = format_redaction(&record, out);
    if (status != WAL_OK) {
        return wal__fail_at(error, status, 0, NULL,
                            wal__position_offset(redaction),
                            "cannot format the redaction of the entry: %s",
                            wal_status_text(status));
    }
    WAL__ASSERT(out->size > 0 && out->data[out->size - 1] == '}');
    return WAL_OK;
}

enum wal_status wal__entry_cursor_fail_redacted(struct wal_entry_cursor *cursor,
                                                uint64_t redaction,
                                                uint64_t sequence,
                                                struct wal_error *error)
{
    struct wal__redact_record record;
    enum wal_status status =
        read_redact(cursor, redaction, sequence, &record, error);
    size_t size;

    if (status != WAL_OK) {
        return status;
    }
    size = record.reason.size;
    if (size > REASON_SHOWN) {
        size = REASON_SHOWN;
        while (size > 0 && (record.reason.data[size] & 0xc0) == 0x80) {
            size--; /* do not cut a UTF-8 sequence */
        }
    }
    return wal__fail(
        error, WAL_EREDACTED, "the entry was redacted by \"%.*s\"%s%.*s",
        (int)record.entry_id.size, (const char *)record.entry_id.data,
        size > 0 ? ": " : "", (int)size, (const char *)record.reason.data);
}
