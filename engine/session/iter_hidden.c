/*
 * iter_hidden.c - what an iterator leaves out, deltas and redacted entries,
 * and what it says of those it was asked to give (SPEC.md 5.7).
 *
 * Invariant: no part holds an entry that was hidden when `redactions` was
 * read. One thread at a time; the state lock as iter.h says.
 */
#include <string.h>

#include "engine/base/error.h"
#include "engine/session/iter.h"
#include "engine/session/text.h"

enum {
    REASON_SHOWN = 160 /* bytes of a reason in an error's text */
};

/* --- what is hidden ----------------------------------------------------- */

static bool hides_deltas(const struct wal_iter *iter,
                         const struct wal__marks *marks)
{
    return (iter->flags & WAL_ITER_DELTAS) == 0 && marks->delta_count > 0;
}

static bool hides_redacted(const struct wal_iter *iter,
                           const struct wal__marks *marks)
{
    return (iter->flags & WAL_ITER_REDACTED) == 0 && marks->redaction_count > 0;
}

bool wal__iter_hides(const struct wal_iter *iter,
                     const struct wal__marks *marks,
                     const struct wal__branch_entry *entry)
{
    if (hides_deltas(iter, marks) &&
        entry->kind == WAL__KIND_MESSAGE_DELTA_BATCH) {
        return true;
    }
    return hides_redacted(iter, marks) &&
           wal__marks_redaction(marks, entry->sequence) != NULL;
}

/* The first hidden sequence at or above this one, in whatever stream. */
static uint64_t next_mark(const struct wal_iter *iter,
                          const struct wal__marks *marks, uint64_t sequence)
{
    uint64_t delta = hides_deltas(iter, marks)
                         ? wal__marks_next_delta(marks, sequence)
                         : UINT64_MAX;
    uint64_t redacted = hides_redacted(iter, marks)
                            ? wal__marks_next_redacted(marks, sequence)
                            : UINT64_MAX;

    return delta < redacted ? delta : redacted;
}

/* The first ordinal of [at, end) whose sequence is not below this one. */
static uint32_t find_at_least(const struct wal__stream *stream, uint32_t at,
                              uint32_t end, uint64_t sequence)
{
    while (at < end) {
        uint32_t middle = at + (end - at) / 2;

        if (stream->entries[middle].sequence < sequence) {
            at = middle + 1;
        } else {
            end = middle;
        }
    }
    return at;
}

/* The first hidden ordinal of [at, end), or end: marks of other streams are
 * passed over in leaps, as entries between marks are. */
static uint32_t next_hidden(const struct wal_iter *iter,
                            const struct wal__marks *marks,
                            const struct wal__stream *stream, uint32_t at,
                            uint32_t end)
{
    while (at < end) {
        uint64_t mark = next_mark(iter, marks, stream->entries[at].sequence);

        at = find_at_least(stream, at, end, mark);
        if (at < end && stream->entries[at].sequence == mark) {
            return at;
        }
    }
    return end;
}

/* --- parts -------------------------------------------------------------- */

enum wal_status wal__iter_stream(const struct wal_iter *iter,
                                 const struct wal__branch_slot *slot,
                                 const struct wal__iter_part *part,
                                 const struct wal__stream **stream,
                                 struct wal_error *error)
{
    const struct wal__stream *found =
        wal__branch_stream(&slot->branch, iter->stream);

    if (found == NULL || part->first > found->entry_count ||
        part->count > found->entry_count - part->first) {
        return wal__fail(error, WAL_EPOISONED, 0, NULL, 0,
                         "entries that were read are gone: a sync failed");
    }
    *stream = found;
    return WAL_OK;
}

/* Appends the part, split where entries are hidden. */
static enum wal_status split(const struct wal_iter *iter,
                             const struct wal__branch_slot *slot,
                             const struct wal__stream *stream,
                             const struct wal__iter_part *part,
                             struct wal__buf *parts, uint64_t *count)
{
    uint32_t end = part->first + part->count;
    uint32_t at = part->first;

    while (at < end) {
        struct wal__iter_part shown = {part->depth + (at - part->first),
                                       part->session, at, 0};

        at = next_hidden(iter, &slot->marks, stream, at, end);
        shown.count = at - shown.first;
        if (shown.count > 0 &&
            wal__buf_append(parts, &shown, sizeof(shown)) != WAL_OK) {
            return WAL_ENOMEM;
        }
        *count += shown.count;
        while (at < end &&
               wal__iter_hides(iter, &slot->marks, &stream->entries[at])) {
            at++;
        }
    }
    return WAL_OK;
}

enum wal_status wal__iter_add(struct wal_iter *iter,
                              const struct wal__iter_part *part,
                              struct wal__buf *parts, uint64_t *count,
                              struct wal_error *error)
{
    const struct wal__stream *stream;
    struct wal__branch_slot *slot;
    enum wal_status status =
        wal__core_branch(iter->core, part->session, &slot, error);

    if (status == WAL_OK) {
        status = wal__iter_stream(iter, slot, part, &stream, error);
    }
    if (status == WAL_OK) {
        status = split(iter, slot, stream, part, parts, count);
        if (status != WAL_OK) {
            wal__fail(error, status, 0, NULL, 0, "no memory");
        }
    }
    return status;
}

bool wal__iter_is_old(const struct wal_iter *iter)
{
    return atomic_load_explicit(&iter->core->redactions,
                                memory_order_acquire) != iter->redactions;
}

enum wal_status wal__iter_renew(struct wal_iter *iter, struct wal_error *error)
{
    const struct wal__iter_part *parts = (const void *)iter->parts.data;
    size_t count = iter->parts.size / sizeof(*parts);
    uint64_t redactions = atomic_load(&iter->core->redactions);
    uint64_t remaining = 0;
    struct wal__buf left;
    enum wal_status status = WAL_OK;

    wal__buf_init(&left, iter->core->env.heap);
    for (size_t i = iter->part; i < count && status == WAL_OK; i++) {
        struct wal__iter_part part = parts[i];

        if (i == iter->part) {
            part.depth += iter->part_at;
            part.first += iter->part_at;
            part.count -= iter->part_at;
        }
        status = wal__iter_add(iter, &part, &left, &remaining, error);
    }
    if (status != WAL_OK) {
        wal__buf_deinit(&left);
        return status;
    }
    wal__buf_deinit(&iter->parts);
    iter->parts = left;
    iter->part = 0;
    iter->part_at = 0;
    iter->remaining = remaining;
    iter->redactions = redactions;
    iter->block_count = 0;
    iter->block_at = 0;
    iter->last.sequence = 0; /* it may be hidden now */
    return WAL_OK;
}

/* --- parents ------------------------------------------------------------ */

/* Goes up from the entry in its own run: true at one that is not hidden, else
 * *sequence is the parent of the run. */
static bool shown_in_run(const struct wal_iter *iter,
                         const struct wal__branch_slot *slot,
                         struct wal__found *found, uint64_t *sequence)
{
    const struct wal__stream *stream =
        wal__branch_stream(&slot->branch, found->stream);
    uint32_t ordinal = found->ordinal;
    const struct wal__run *run = &stream->runs[stream->entries[ordinal].run];

    while (ordinal > run->first &&
           wal__iter_hides(iter, &slot->marks, &stream->entries[ordinal])) {
        ordinal--;
    }
    if (wal__iter_hides(iter, &slot->marks, &stream->entries[ordinal])) {
        *sequence = run->parent;
        return false;
    }
    found->sequence = stream->entries[ordinal].sequence;
    found->position = stream->entries[ordinal].position;
    found->ordinal = ordinal;
    return true;
}

enum wal_status wal__iter_shown(struct wal_iter *iter, uint32_t stream,
                                uint64_t sequence, struct wal__found *found)
{
    struct wal__branch_slot *slot;

    while (sequence != 0) {
        enum wal_status status = wal__core_find_sequence(
            iter->core, iter->session, stream, sequence, found, NULL);

        if (status == WAL_OK) {
            status = wal__core_branch(iter->core, found->session, &slot, NULL);
        }
        if (status != WAL_OK || shown_in_run(iter, slot, found, &sequence)) {
            return status;
        }
    }
    found->sequence = 0;
    return WAL_OK;
}

/* --- redactions --------------------------------------------------------- */

/* The record's texts hold until something else is read beside an entry. */
static enum wal_status read_redact(struct wal_iter *iter, uint64_t redaction,
                                   struct wal__redact_record *record,
                                   struct wal_error *error)
{
    struct wal__frame frame;
    struct wal__span payload;
    enum wal_status status =
        wal__log_read(&iter->core->log, redaction, &iter->other_scratch, &frame,
                      &payload, error);

    if (status == WAL_OK &&
        (frame.type != WAL__FRAME_REDACT ||
         wal__redact_record_decode(payload, record) != WAL__FMT_OK)) {
        status = wal__fail(error, WAL_ECORRUPT, 0, NULL,
                           wal__position_offset(redaction),
                           "the record of a redaction is damaged");
    }
    return status;
}

static enum wal_status put(struct wal__buf *out, const char *text)
{
    return wal__buf_append(out, text, strlen(text));
}

enum wal_status wal__iter_tell(struct wal_iter *iter, uint64_t redaction,
                               struct wal_error *error)
{
    struct wal__redact_record record;
    enum wal_status status = read_redact(iter, redaction, &record, error);

    if (status != WAL_OK) {
        return status;
    }
    iter->told.size = 0;
    status = put(&iter->told, "{\"redactedBy\":");
    if (status == WAL_OK) {
        status = wal__text_quote(&iter->told, record.entry_id);
    }
    if (status == WAL_OK) {
        status = put(&iter->told, ",\"reason\":");
    }
    if (status == WAL_OK) {
        status = wal__text_quote(&iter->told, record.reason);
    }
    if (status == WAL_OK) {
        status = put(&iter->told, "}");
    }
    if (status != WAL_OK) {
        wal__fail(error, status, 0, NULL, wal__position_offset(redaction),
                  "what redacted the entry cannot be told: %s",
                  wal_status_text(status));
    }
    return status;
}

enum wal_status wal__iter_refuse(struct wal_iter *iter, uint64_t redaction,
                                 struct wal_error *error)
{
    struct wal__redact_record record;
    enum wal_status status = read_redact(iter, redaction, &record, error);
    size_t size;

    if (status != WAL_OK) {
        return status;
    }
    size = record.reason.size;
    if (size > REASON_SHOWN) {
        size = REASON_SHOWN;
        while (size > 0 && (record.reason.data[size] & 0xc0) == 0x80) {
            size--; /* within a character */
        }
    }
    return wal__fail(error, WAL_EREDACTED, 0, NULL, 0,
                     "the entry was redacted by \"%.*s\"%s%.*s",
                     (int)record.entry_id.size,
                     (const char *)record.entry_id.data, size > 0 ? ": " : "",
                     (int)size, (const char *)record.reason.data);
}
