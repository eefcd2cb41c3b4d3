/*
 * catalogue_apply.c - what each record of the log means for the catalogue
 * (catalogue.h, SPEC.md 2.5 to 2.8, 2.13).
 *
 * Invariant: a record is worked into a copy of the summary, which is put when
 * nothing can contradict it any more. The caller's lock: one writer.
 */
#include <string.h>

#include "engine/index/catalogue_parts.h"
#include "format/record.h"

static enum wal_status apply_session(const struct wal__applied *record,
                                     struct wal__summary *summary)
{
    struct wal__session_record session;

    if (wal__session_record_decode(record->payload, &session) != WAL__FMT_OK) {
        return WAL_ECORRUPT;
    }
    if (summary->id.size > 0 && !wal__span_equal(summary->id, session.id)) {
        return WAL_ECORRUPT;
    }
    summary->id = session.id;
    summary->cwd = session.cwd;
    summary->project = session.project;
    summary->title = session.title;
    summary->parent_id = session.parent_id;
    summary->source = session.source;
    summary->created_ms = session.created_ms;
    summary->session_position = record->position;
    summary->flags &= ~(uint32_t)WAL__SUMMARY_FORK;
    if ((session.flags & WAL__SESSION_RECORD_FORK) != 0) {
        summary->flags |= WAL__SUMMARY_FORK;
    }
    return WAL_OK;
}

static enum wal_status apply_fork(const struct wal__catalogue *catalogue,
                                  const struct wal__applied *record,
                                  struct wal__summary *summary)
{
    struct wal__fork_record fork;
    struct wal__summary owner;
    enum wal_status status;

    if (wal__fork_record_decode(record->payload, &fork) != WAL__FMT_OK) {
        return WAL_ECORRUPT;
    }
    status = wal__catalogue_find(catalogue, fork.owner_id, &owner);
    if (status != WAL_OK) {
        return status == WAL_ENOTFOUND ? WAL_ECORRUPT : status;
    }
    if (owner.number == summary->number) {
        return WAL_ECORRUPT;
    }
    summary->flags |= WAL__SUMMARY_FORK;
    summary->fork_sequence = record->frame->parent;
    summary->fork_owner = owner.number;
    summary->inherited = fork.inherited;
    summary->depth = fork.depth;
    if (fork.stream == 0) {
        summary->head_sequence = record->frame->parent;
        summary->head_id = fork.entry_id;
    }
    return WAL_OK;
}

static enum wal_status apply_entry(const struct wal__applied *record,
                                   struct wal__summary *summary)
{
    const struct wal__frame *frame = record->frame;
    struct wal__entry_record entry;

    if (frame->stream != 0) {
        return WAL_OK;
    }
    summary->entries++;
    if ((frame->flags & WAL__FRAME_MOVES_HEAD) == 0) {
        return WAL_OK;
    }
    if (wal__entry_record_decode(record->payload, &entry) != WAL__FMT_OK) {
        return WAL_ECORRUPT;
    }
    summary->head_sequence = frame->sequence;
    summary->head_id = entry.id;
    return WAL_OK;
}

static enum wal_status apply_head(const struct wal__applied *record,
                                  struct wal__summary *summary)
{
    static const struct wal__span name = {(const uint8_t *)"main", 4};
    struct wal__head_record head;

    if (wal__head_record_decode(record->payload, &head) != WAL__FMT_OK) {
        return WAL_ECORRUPT;
    }
    if (record->frame->stream == 0 && wal__span_equal(head.name, name)) {
        summary->head_sequence = record->frame->parent;
        summary->head_id = head.entry_id;
    }
    return WAL_OK;
}

static enum wal_status apply_type(const struct wal__catalogue *catalogue,
                                  const struct wal__applied *record,
                                  struct wal__summary *summary)
{
    switch (record->frame->type) {
    case WAL__FRAME_SESSION:
        return apply_session(record, summary);
    case WAL__FRAME_FORK:
        return apply_fork(catalogue, record, summary);
    case WAL__FRAME_ENTRY:
        return apply_entry(record, summary);
    case WAL__FRAME_HEAD:
        return apply_head(record, summary);
    case WAL__FRAME_ACCEPT:
        summary->flags &= ~(uint32_t)WAL__SUMMARY_DAMAGED;
        return WAL_OK;
    default:
        return WAL_OK;
    }
}

/* Whether the record says anything of a session. Types that a newer library
 * knows may be of none. */
static bool concerns_session(const struct wal__frame *frame)
{
    switch (frame->type) {
    case WAL__FRAME_SESSION:
    case WAL__FRAME_ENTRY:
    case WAL__FRAME_FORK:
    case WAL__FRAME_HEAD:
    case WAL__FRAME_ACCEPT:
        return true;
    default:
        return wal__frame_is_sequenced(frame->type) && frame->session != 0;
    }
}

enum wal_status wal__catalogue_apply(struct wal__catalogue *catalogue,
                                     const struct wal__applied *record)
{
    const struct wal__frame *frame = record->frame;
    struct wal__summary summary = {.number = frame->session};
    enum wal_status status;

    if (!concerns_session(frame)) {
        return WAL_OK;
    }
    status = wal__catalogue_get(catalogue, frame->session, &summary);
    if (status == WAL_ENOTFOUND) {
        status = frame->type == WAL__FRAME_SESSION ? WAL_OK : WAL_ECORRUPT;
    }
    if (status == WAL_OK) {
        status = apply_type(catalogue, record, &summary);
    }
    if (status != WAL_OK) {
        return status;
    }
    summary.updated_ms = record->clock_ms;
    summary.last_sequence = frame->sequence;
    summary.bytes += wal__frame_span(frame->stored_size);
    return wal__catalogue_put(catalogue, &summary);
}

enum wal_status wal__catalogue_set_segment(struct wal__catalogue *catalogue,
                                           uint32_t number, uint64_t segment)
{
    struct wal__summary summary;
    enum wal_status status = wal__catalogue_get(catalogue, number, &summary);

    if (status != WAL_OK) {
        return status;
    }
    summary.segment = segment;
    return wal__catalogue_put(catalogue, &summary);
}
