/*
 * catalogue_apply.c - applies records of the log to the catalogue (catalogue.h,
 * SPEC.md 2.5 to 2.8, 2.13).
 *
 * Invariant: a record changes a copy of the summary, and the copy is put after
 * every check, so that a failure changes nothing. The caller's lock: one
 * writer.
 */
#include <assert.h>
#include <string.h>

#include "engine/index/catalogue_internal.h"
#include "format/bytes/assert.h"
#include "format/payload/first_text.h"
#include "format/payload/session_time.h"

/* The first user message is searched in this many own entries. */
enum {
    FIRST_TEXT_ENTRIES_MAX = 64
};

static_assert((int)WAL__FIRST_TEXT_MAX == (int)WAL__SUMMARY_FIRST_MAX,
              "a summary has room for a first text");

/* A record and the changed copy of its session's summary. */
struct change {
    const struct wal__catalogue *catalogue;
    const struct wal__log_record *record;
    struct wal__summary summary;
    uint8_t first[WAL__FIRST_TEXT_MAX]; /* holds a new summary.first_text */
};

/* A session without entries was last active when it was created. */
static void set_created(struct change *change, int64_t created_ms, bool is_new)
{
    struct wal__summary *summary = &change->summary;
    int64_t time_ms =
        wal__session_time_believed(created_ms, change->record->clock_ms);

    if (is_new || time_ms < summary->created_ms) {
        summary->created_ms = time_ms;
    }
    if (is_new) {
        summary->updated_ms = time_ms;
    }
}

static void add_activity(struct change *change, struct wal__span time)
{
    struct wal__summary *summary = &change->summary;
    int64_t time_ms =
        wal__session_time_of_entry(time, change->record->clock_ms);

    if ((summary->flags & WAL__SUMMARY_ACTIVE) == 0 ||
        time_ms > summary->updated_ms) {
        summary->updated_ms = time_ms;
    }
    if (time_ms < summary->created_ms) {
        summary->created_ms = time_ms;
    }
    summary->flags |= WAL__SUMMARY_ACTIVE;
}

static enum wal_status apply_session(struct change *change)
{
    const struct wal__log_record *record = change->record;
    struct wal__summary *summary = &change->summary;
    struct wal__session_record session;

    if (wal__session_record_decode(record->payload, record->version,
                                   &session) != WAL__FMT_OK) {
        return WAL_ECORRUPT;
    }
    if (summary->id.size > 0 && !wal__span_equal(summary->id, session.id)) {
        return WAL_ECORRUPT;
    }
    set_created(change, session.created_ms, summary->id.size == 0);
    summary->id = session.id;
    summary->cwd = session.cwd;
    summary->project = session.project;
    summary->title = session.title;
    summary->parent_id = session.parent_id;
    summary->source = session.source;
    summary->schema_version = session.schema_version;
    summary->session_position = record->position;
    summary->flags &= ~(uint32_t)(WAL__SUMMARY_FORK | WAL__SUMMARY_TRASHED |
                                  WAL__SUMMARY_MOVED);
    if ((session.flags & WAL__SESSION_RECORD_FORK) != 0) {
        summary->flags |= WAL__SUMMARY_FORK;
    }
    if ((session.flags & WAL__SESSION_RECORD_TRASHED) != 0) {
        summary->flags |= WAL__SUMMARY_TRASHED;
    }
    if ((session.flags & WAL__SESSION_RECORD_MOVED) != 0) {
        summary->flags |= WAL__SUMMARY_MOVED;
    }
    return WAL_OK;
}

/* The summary of another session that a FORK names. */
static enum wal_status get_fork_session(const struct change *change,
                                        uint32_t number,
                                        struct wal__summary *other)
{
    enum wal_status status;

    if (number == change->summary.number || number == WAL__STORE_NUMBER) {
        return WAL_ECORRUPT;
    }
    status = wal__catalogue_get(change->catalogue, number, other);
    return status == WAL_ENOTFOUND ? WAL_ECORRUPT : status;
}

/* Sets the head and the first user message of a fork of stream 0. */
static void init_from_source(struct change *change,
                             const struct wal__fork_record *fork,
                             const struct wal__summary *source)
{
    struct wal__summary *summary = &change->summary;
    uint64_t point = change->record->frame->parent;

    summary->head_sequence = point;
    summary->head_id = fork->entry_id;
    if (source->first_sequence != 0 && source->first_sequence <= point) {
        summary->first_sequence = source->first_sequence;
        summary->first_owner = source->first_owner;
        summary->first_text.size = 0;
    }
}

static enum wal_status apply_fork(struct change *change)
{
    const struct wal__log_record *record = change->record;
    struct wal__summary *summary = &change->summary;
    struct wal__fork_record fork;
    struct wal__summary owner;
    struct wal__summary source;
    enum wal_status status;

    if (wal__fork_record_decode(record->payload, &fork) != WAL__FMT_OK) {
        return WAL_ECORRUPT;
    }
    status = get_fork_session(change, fork.owner, &owner);
    if (status == WAL_OK) {
        status = get_fork_session(change, fork.source, &source);
    }
    if (status != WAL_OK) {
        return status;
    }
    summary->flags |= WAL__SUMMARY_FORK;
    summary->flags &= ~(uint32_t)WAL__SUMMARY_STRAIGHT;
    summary->fork_sequence = record->frame->parent;
    summary->fork_record = record->frame->sequence;
    summary->fork_owner = fork.owner;
    summary->fork_source = fork.source;
    summary->inherited = fork.inherited;
    summary->depth = fork.depth;
    if (fork.stream == 0) {
        init_from_source(change, &fork, &source);
    }
    return WAL_OK;
}

static void find_first_text(struct change *change,
                            const struct wal__entry_record *entry)
{
    struct wal__summary *summary = &change->summary;
    size_t size;

    if (wal__first_text(entry->payload, change->first, &size)) {
        WAL__ASSERT(size <= sizeof(change->first));
        summary->first_text = (struct wal__span){change->first, size};
        summary->first_owner = summary->number;
        summary->first_sequence = change->record->frame->sequence;
    }
}

/* Keeps the flag while each entry of stream 0 is under the one before it. */
static void apply_straight(struct wal__summary *summary,
                           const struct wal__frame *frame)
{
    bool continues = (frame->flags & WAL__FRAME_MOVES_HEAD) != 0 &&
                     frame->parent == summary->head_sequence;

    if (summary->entries == 0 && continues &&
        summary->head_sequence == summary->fork_sequence) {
        summary->flags |= WAL__SUMMARY_STRAIGHT;
    } else if (!continues) {
        summary->flags &= ~(uint32_t)WAL__SUMMARY_STRAIGHT;
    }
}

static enum wal_status apply_entry(struct change *change)
{
    const struct wal__frame *frame = change->record->frame;
    struct wal__summary *summary = &change->summary;
    bool moves_head = (frame->flags & WAL__FRAME_MOVES_HEAD) != 0;
    bool may_be_first = summary->first_sequence == 0 &&
                        summary->entries < FIRST_TEXT_ENTRIES_MAX;
    struct wal__entry_record entry;

    if (wal__entry_record_decode(change->record->payload, &entry) !=
        WAL__FMT_OK) {
        return WAL_ECORRUPT;
    }
    if ((frame->flags & WAL__FRAME_PROVISIONAL) != 0) {
        return WAL_OK; /* compaction may drop it: nothing is said of it */
    }
    add_activity(change, entry.time);
    if (frame->stream != 0) {
        return WAL_OK;
    }
    apply_straight(summary, frame);
    summary->entries++;
    if (moves_head) {
        summary->head_sequence = frame->sequence;
        summary->head_id = entry.id;
    }
    if (may_be_first) {
        find_first_text(change, &entry);
    }
    return WAL_OK;
}

static enum wal_status apply_head(struct change *change)
{
    static const struct wal__span name = {(const uint8_t *)"main", 4};
    const struct wal__frame *frame = change->record->frame;
    struct wal__summary *summary = &change->summary;
    struct wal__head_record head;

    if (wal__head_record_decode(change->record->payload, &head) !=
        WAL__FMT_OK) {
        return WAL_ECORRUPT;
    }
    if (frame->stream == 0 && wal__span_equal(head.name, name)) {
        summary->head_sequence = head.entry_id.size > 0 ? frame->parent : 0;
        summary->head_id = head.entry_id;
        summary->flags &= ~(uint32_t)WAL__SUMMARY_STRAIGHT;
    }
    return WAL_OK;
}

/* The entry stays the first user message; it has no text any more. */
static void apply_redact(struct change *change)
{
    struct wal__summary *summary = &change->summary;

    if (summary->first_sequence == change->record->frame->parent) {
        summary->first_text.size = 0;
    }
}

static enum wal_status apply_type(struct change *change)
{
    switch (change->record->frame->type) {
    case WAL__FRAME_SESSION:
        return apply_session(change);
    case WAL__FRAME_FORK:
        return apply_fork(change);
    case WAL__FRAME_ENTRY:
        return apply_entry(change);
    case WAL__FRAME_HEAD:
        return apply_head(change);
    case WAL__FRAME_DOC:
    case WAL__FRAME_DOC_DELETE:
        change->summary.documents++;
        return WAL_OK;
    case WAL__FRAME_REDACT:
        apply_redact(change);
        return WAL_OK;
    case WAL__FRAME_TOMBSTONE:
        change->summary.flags |= WAL__SUMMARY_DELETED;
        return WAL_OK;
    case WAL__FRAME_ACCEPT:
        change->summary.flags &= ~(uint32_t)WAL__SUMMARY_DAMAGED;
        return WAL_OK;
    default:
        return WAL_OK;
    }
}

/* Whether the record belongs to a session. A type of a newer library does if
 * its frame has a sequence and a session. */
static bool is_session_record(const struct wal__frame *frame)
{
    switch (frame->type) {
    case WAL__FRAME_SESSION:
    case WAL__FRAME_ENTRY:
    case WAL__FRAME_FORK:
    case WAL__FRAME_HEAD:
    case WAL__FRAME_DOC:
    case WAL__FRAME_DOC_DELETE:
    case WAL__FRAME_REDACT:
    case WAL__FRAME_TOMBSTONE:
    case WAL__FRAME_ACCEPT:
        return true;
    default:
        return wal__frame_is_sequenced(frame->type) && frame->session != 0;
    }
}

/* Whether the store itself may have records of this type: it has no entries,
 * only documents. */
static bool is_store_record(uint8_t type)
{
    switch (type) {
    case WAL__FRAME_SESSION:
    case WAL__FRAME_ENTRY:
    case WAL__FRAME_FORK:
    case WAL__FRAME_HEAD:
    case WAL__FRAME_REDACT:
    case WAL__FRAME_TOMBSTONE:
        return false;
    default:
        return true;
    }
}

/* Copies the summary that the record changes, or starts a new one. */
static enum wal_status load_summary(struct change *change)
{
    const struct wal__frame *frame = change->record->frame;
    bool is_store = frame->session == WAL__STORE_NUMBER;
    enum wal_status status;

    if (is_store && !is_store_record(frame->type)) {
        return WAL_ECORRUPT;
    }
    status =
        wal__catalogue_get(change->catalogue, frame->session, &change->summary);
    if (status != WAL_ENOTFOUND) {
        return status;
    }
    if (is_store) {
        wal__store_summary(&change->summary);
        change->summary.created_ms = change->record->clock_ms;
        return WAL_OK;
    }
    change->summary = (struct wal__summary){.number = frame->session};
    return frame->type == WAL__FRAME_SESSION ? WAL_OK : WAL_ECORRUPT;
}

/* flags: added to the summary. */
static enum wal_status apply(struct wal__catalogue *catalogue,
                             const struct wal__log_record *record,
                             uint32_t flags)
{
    struct change change;
    enum wal_status status;

    if (!is_session_record(record->frame)) {
        return WAL_OK;
    }
    change.catalogue = catalogue;
    change.record = record;
    status = load_summary(&change);
    if (status == WAL_OK) {
        status = apply_type(&change);
    }
    if (status != WAL_OK) {
        return status;
    }
    if (change.summary.number == WAL__STORE_NUMBER) {
        change.summary.updated_ms = record->clock_ms;
    }
    change.summary.flags |= flags;
    change.summary.last_sequence = record->frame->sequence;
    change.summary.bytes += wal__frame_total_size(record->frame->stored_size);
    return wal__catalogue_put(catalogue, &change.summary);
}

enum wal_status wal__catalogue_apply(struct wal__catalogue *catalogue,
                                     const struct wal__log_record *record)
{
    return apply(catalogue, record, 0);
}

enum wal_status
wal__catalogue_apply_deleted(struct wal__catalogue *catalogue,
                             const struct wal__log_record *record)
{
    return apply(catalogue, record, WAL__SUMMARY_DELETED);
}

enum wal_status wal__catalogue_set_segment(struct wal__catalogue *catalogue,
                                           uint32_t number, uint64_t segment)
{
    struct wal__summary summary;
    enum wal_status status = wal__catalogue_get(catalogue, number, &summary);

    if (status != WAL_OK || summary.segment == segment) {
        return status;
    }
    summary.segment = segment;
    return wal__catalogue_put(catalogue, &summary);
}
