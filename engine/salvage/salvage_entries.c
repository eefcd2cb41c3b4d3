/*
 * salvage_entries.c - appends the entries of the damaged store to OUT.
 *
 * Invariant: an entry has its old parent, its nearest surviving ancestor as
 * parent, or is a root; a change of parent is reported. The engine refuses an
 * entry that refers to a missing one: such an entry is kept as a line, whose
 * content the engine does not interpret.
 */
#include <inttypes.h>
#include <string.h>

#include "engine/salvage/salvage.h"

enum {
    BATCH_COUNT = 256,       /* entries */
    BATCH_SIZE = 1024 * 1024 /* bytes */
};

static const struct wal_append_options written_options = {
    .struct_size = sizeof(written_options),
    .durability = WAL_WRITTEN,
};

/* --- batches -------------------------------------------------------------- */

static void discard_pending(struct wal__salvage *salvage)
{
    for (uint32_t i = 0; i < salvage->pending_count; i++) {
        wal__heap_free(salvage->large_heap, salvage->pending[i].payload);
        wal__heap_free(salvage->heap, salvage->pending[i].bytes);
    }
    salvage->pending_count = 0;
    salvage->pending_size = 0;
}

/* Records that an entry is in OUT. */
static void record_written(struct wal__salvage *salvage,
                           const struct wal__damaged_segment *segment,
                           struct wal__salvage_session *session,
                           const struct wal__salvage_pending *pending)
{
    if (!wal__salvage_grow(salvage, (void **)&salvage->written,
                           salvage->written_count, &salvage->written_capacity,
                           sizeof(*salvage->written))) {
        return;
    }
    salvage->written[salvage->written_count++] = (struct wal__salvage_written){
        pending->sequence, segment, pending->offset};
    wal__salvage_copy_id(session->last_id, pending->entry.id);
    session->last_sequence = pending->sequence;
    salvage->result.entries++;
    if (pending->lost_parent != 0) {
        wal__salvage_report_reparented(salvage, session->id, session->last_id,
                                       pending->lost_parent, pending->parent);
    }
}

/* Records an entry that is not in OUT: its children get its parent. */
static void record_skipped(struct wal__salvage *salvage, uint64_t sequence,
                           uint64_t parent)
{
    wal__salvage_add_lost(salvage, &(struct wal__salvage_lost){
                                       sequence, parent, WAL__FRAME_ENTRY});
}

static enum wal_status append_entry(const struct wal__salvage_session *session,
                                    const struct wal_entry *entry,
                                    struct wal_error *error)
{
    return wal_append(session->handle, entry, 1, &written_options, NULL, error);
}

static void set_parent_id(struct wal__salvage_pending *pending)
{
    pending->entry.parent_id = wal__salvage_text(pending->parent);
    if (pending->parent[0] == '\0') {
        pending->entry.flags |= WAL_ENTRY_ROOT;
    }
}

/* Gives an entry its nearest surviving ancestor as parent. */
static void reparent(struct wal__salvage *salvage,
                     struct wal__salvage_pending *pending)
{
    uint64_t ancestor = pending->parent_sequence;

    (void)wal__salvage_find_ancestor(salvage, &ancestor, pending->parent);
    if (ancestor == pending->parent_sequence) {
        /* The parent is in OUT, but in a session that this one is no longer a
         * fork of. */
        pending->parent[0] = '\0';
    }
    pending->lost_parent = pending->parent_sequence;
    set_parent_id(pending);
}

/* Whether the engine resolves references in entries of that kind. */
static bool has_references(const struct wal__salvage_pending *pending)
{
    return (pending->entry.flags & WAL_ENTRY_LINE) == 0 &&
           (pending->kind == WAL__KIND_COMPACTION_SUMMARY ||
            pending->kind == WAL__KIND_BRANCH_SUMMARY ||
            pending->kind == WAL__KIND_REDACTION);
}

/* Appends an entry alone after its batch was refused. */
static void append_alone(struct wal__salvage *salvage,
                         const struct wal__damaged_segment *segment,
                         struct wal__salvage_session *session,
                         struct wal__salvage_pending *pending)
{
    struct wal_error error = WAL_INIT(wal_error);
    enum wal_status status = append_entry(session, &pending->entry, &error);
    char id[WAL_ID_SIZE];

    wal__salvage_copy_id(id, pending->entry.id);
    if (status == WAL_ENOPARENT) {
        reparent(salvage, pending);
        status = append_entry(session, &pending->entry, &error);
    }
    if ((status == WAL_ENOTFOUND || status == WAL_EINVAL) &&
        has_references(pending)) {
        pending->entry.flags |= WAL_ENTRY_LINE;
        status = append_entry(session, &pending->entry, &error);
        if (status == WAL_OK) {
            wal__salvage_report(
                salvage, WAL_SALVAGE_ENTRY, session->id, id,
                "the entry that it refers to is missing; it is kept as a line");
        }
    }
    if (status == WAL_OK) {
        record_written(salvage, segment, session, pending);
    } else if (!wal__salvage_is_fatal(salvage, status, &error)) {
        record_skipped(salvage, pending->sequence, pending->parent_sequence);
        wal__salvage_report(salvage, WAL_SALVAGE_ENTRY, session->id, id,
                            "cannot be appended: %s",
                            wal__salvage_error_text(status, &error));
    }
}

static void append_pending(struct wal__salvage *salvage,
                           const struct wal__damaged_segment *segment,
                           struct wal__salvage_session *session)
{
    uint32_t count = salvage->pending_count;
    struct wal_entry entries[BATCH_COUNT];
    enum wal_status status;

    for (uint32_t i = 0; i < count; i++) {
        set_parent_id(&salvage->pending[i]);
        entries[i] = salvage->pending[i].entry;
    }
    status = wal_append(session->handle, entries, count, &written_options, NULL,
                        NULL);
    for (uint32_t i = 0; i < count && salvage->failed == WAL_OK; i++) {
        if (status == WAL_OK) {
            record_written(salvage, segment, session, &salvage->pending[i]);
        } else {
            append_alone(salvage, segment, session, &salvage->pending[i]);
        }
    }
}

void wal__salvage_flush(struct wal__salvage *salvage,
                        const struct wal__damaged_segment *segment)
{
    struct wal__salvage_session *session;
    uint32_t count = salvage->pending_count;

    if (count == 0 || salvage->failed != WAL_OK) {
        return;
    }
    session = wal__salvage_open_session(salvage, salvage->pending_session);
    if (session == NULL) {
        return;
    }
    if (session->handle != NULL && !session->is_removed) {
        append_pending(salvage, segment, session);
    } else if (session->is_removed) {
        wal__salvage_report(salvage, WAL_SALVAGE_SESSION, session->id, "",
                            "%" PRIu32 " %s after the session's deletion, left "
                            "out",
                            count, count == 1 ? "entry is" : "entries are");
    } /* A session that could not be created is reported. */
    discard_pending(salvage);
}

/* --- entries -------------------------------------------------------------- */

/* Sets the parent of an entry: an entry of the batch, the newest of the
 * session, or one that is read again; lost ancestors are skipped. */
static void set_parent(struct wal__salvage *salvage,
                       struct wal__salvage_pending *pending,
                       const struct wal__salvage_session *session,
                       uint64_t parent)
{
    uint64_t ancestor = parent;

    pending->parent[0] = '\0';
    for (uint32_t i = salvage->pending_count; i > 0 && parent != 0; i--) {
        const struct wal__salvage_pending *other = &salvage->pending[i - 1];

        if (other->sequence == parent) {
            wal__salvage_copy_id(pending->parent, other->entry.id);
            return;
        }
    }
    if (parent != 0 && session->last_sequence == parent) {
        memcpy(pending->parent, session->last_id, sizeof(pending->parent));
    } else if (parent != 0) {
        bool found =
            wal__salvage_find_ancestor(salvage, &ancestor, pending->parent);

        pending->lost_parent = !found || ancestor != parent ? parent : 0;
    }
}

/* The nearest ancestor of an entry whose parent is lost may be in the batch. */
static void flush_for_parent(struct wal__salvage *salvage,
                             const struct wal__damaged_segment *segment,
                             uint64_t parent)
{
    for (uint32_t i = 0; i < salvage->pending_count; i++) {
        if (salvage->pending[i].sequence == parent) {
            return;
        }
    }
    if (parent != 0 && wal__salvage_find_written(salvage, parent) == NULL) {
        wal__salvage_flush(salvage, segment);
    }
}

static void fill_entry(struct wal_entry *entry, const struct wal__frame *frame,
                       const struct wal__entry_record *record)
{
    struct wal__span kind = wal__kind_name(frame->kind);
    struct wal__span type = record->type.size > 0 ? record->type : kind;

    *entry = (struct wal_entry){
        .struct_size = sizeof(*entry),
        .flags = (frame->flags & WAL__FRAME_MOVES_HEAD) != 0
                     ? (uint32_t)WAL_ENTRY_HEAD_MOVE
                     : (uint32_t)WAL_ENTRY_HEAD_KEEP,
        .stream = frame->stream,
        .id = {record->id.data, record->id.size},
        .type = {type.data, type.size},
        .timestamp = {record->time.data, record->time.size},
        .run_id = {record->run.data, record->run.size},
        .payload = {record->payload.data, record->payload.size},
        .meta = {record->meta.data, record->meta.size},
    };
    if (record->form == WAL__ENTRY_LINE) {
        entry->flags |= WAL_ENTRY_LINE;
    }
}

/* Loads a payload of the blob stream. NULL: it is lost, and the entry with
 * it. */
static uint8_t *load_payload(struct wal__salvage *salvage,
                             const struct wal__salvage_session *session,
                             const struct wal__frame *frame,
                             const struct wal__entry_record *record)
{
    const char *reason;
    uint8_t *payload = wal__salvage_load_payload(salvage, record, &reason);
    char id[WAL_ID_SIZE];

    if (payload == NULL && salvage->failed == WAL_OK) {
        wal__salvage_copy_id(
            id, (struct wal_slice){record->id.data, record->id.size});
        wal__salvage_report(salvage, WAL_SALVAGE_ENTRY, session->id, id,
                            "the entry is lost: its payload cannot be read: %s",
                            reason);
        record_skipped(salvage, frame->sequence, frame->parent);
    }
    return payload;
}

/* Adds an entry to the batch, whose room is reserved. Takes over `bytes`. */
static void add_pending(struct wal__salvage *salvage,
                        const struct wal__salvage_session *session,
                        const struct wal__frame *frame, uint64_t offset,
                        uint8_t *bytes)
{
    struct wal__salvage_pending *pending =
        &salvage->pending[salvage->pending_count];
    struct wal__entry_record record;

    pending->payload = NULL;
    if (wal__entry_record_decode((struct wal__span){bytes, frame->stored_size},
                                 &record) != WAL__FMT_OK) {
        wal__salvage_report(salvage, WAL_SALVAGE_ENTRY, session->id, "",
                            "the entry of sequence %" PRIu64
                            " is not well-formed",
                            frame->sequence);
        salvage->result.lost_entries++;
        wal__heap_free(salvage->heap, bytes);
        return;
    }
    if (record.digest != NULL) {
        pending->payload = load_payload(salvage, session, frame, &record);
        if (pending->payload == NULL) {
            wal__heap_free(salvage->heap, bytes);
            return;
        }
    }
    fill_entry(&pending->entry, frame, &record);
    if (pending->payload != NULL) {
        pending->entry.payload =
            (struct wal_slice){pending->payload, record.payload_size};
        salvage->pending_size += record.payload_size;
    }
    pending->bytes = bytes;
    pending->sequence = frame->sequence;
    pending->parent_sequence = frame->parent;
    pending->lost_parent = 0;
    pending->offset = offset;
    pending->kind = frame->kind;
    set_parent(salvage, pending, session, frame->parent);
    salvage->pending_session = frame->session;
    salvage->pending_count++;
    salvage->pending_size += frame->stored_size;
}

void wal__salvage_entry(struct wal__salvage *salvage,
                        const struct wal__damaged_segment *segment,
                        const struct wal__frame *frame, uint64_t offset,
                        const uint8_t *payload)
{
    const struct wal__salvage_session *session;
    uint8_t *bytes;

    if (salvage->pending_session != frame->session ||
        salvage->pending_count >= BATCH_COUNT ||
        salvage->pending_size >= BATCH_SIZE) {
        wal__salvage_flush(salvage, segment);
    }
    flush_for_parent(salvage, segment, frame->parent);
    session = wal__salvage_open_session(salvage, frame->session);
    if (session == NULL ||
        !wal__salvage_grow(salvage, (void **)&salvage->pending,
                           salvage->pending_count, &salvage->pending_capacity,
                           sizeof(*salvage->pending))) {
        return;
    }
    bytes = wal__heap_alloc(salvage->heap, frame->stored_size);
    if (bytes == NULL) {
        wal__salvage_fail(salvage, WAL_ENOMEM, NULL);
        return;
    }
    memcpy(bytes, payload, frame->stored_size);
    add_pending(salvage, session, frame, offset, bytes);
}

void wal__salvage_entries_deinit(struct wal__salvage *salvage)
{
    discard_pending(salvage);
    wal__heap_free(salvage->heap, salvage->pending);
    wal__heap_free(salvage->heap, salvage->written);
    salvage->pending = NULL;
    salvage->written = NULL;
    salvage->written_count = 0;
    wal__damaged_file_close(&salvage->lookup);
}
