/*
 * salvage_entries.c - appends the entries of the damaged store to OUT.
 *
 * Invariant: an entry has its old parent, its nearest surviving ancestor as
 * parent, or is a root; a change of parent is noted. The engine refuses an
 * entry that refers to a missing one: such an entry is kept as a line, whose
 * content the engine does not interpret.
 *
 * Threads: the main thread.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/walcheck/salvage.h"

enum {
    BATCH_COUNT = 256,       /* entries */
    BATCH_SIZE = 1024 * 1024 /* bytes */
};

/* --- parents -------------------------------------------------------------- */

static const struct salvage_written *find_written(const struct salvage *salvage,
                                                  uint64_t sequence)
{
    size_t low = 0;
    size_t high = salvage->written_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (salvage->written[middle].sequence < sequence) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < salvage->written_count &&
                   salvage->written[low].sequence == sequence
               ? &salvage->written[low]
               : NULL;
}

/* The rank of the first lost record whose sequence is at least `sequence`. */
static size_t lost_rank(const struct salvage *salvage, uint64_t sequence)
{
    size_t low = 0;
    size_t high = salvage->lost_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (salvage->lost[middle].sequence < sequence) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static const struct check_lost_record *find_lost(const struct salvage *salvage,
                                                 uint64_t sequence)
{
    size_t rank = lost_rank(salvage, sequence);

    return rank < salvage->lost_count &&
                   salvage->lost[rank].sequence == sequence
               ? &salvage->lost[rank]
               : NULL;
}

/* Records an entry that is not in OUT: its children get its parent. */
static void record_skipped(struct salvage *salvage,
                           struct check_lost_record lost)
{
    size_t rank = lost_rank(salvage, lost.sequence);

    salvage->lost =
        cli_reserve(salvage->lost, salvage->lost_count, &salvage->lost_capacity,
                    sizeof(*salvage->lost));
    memmove(salvage->lost + rank + 1, salvage->lost + rank,
            (salvage->lost_count - rank) * sizeof(*salvage->lost));
    salvage->lost[rank] = lost;
    salvage->lost_count++;
}

/* Reads the id of an entry again. */
static char *read_id(struct salvage *salvage,
                     const struct salvage_written *written)
{
    struct wal__entry_record record;
    struct wal__frame frame;
    const uint8_t *bytes;

    if (salvage->open_segment != written->segment) {
        if (salvage->open_segment != NULL) {
            cli_file_close(&salvage->file);
        }
        salvage->open_segment = NULL;
        if (cli_file_open(&salvage->file, written->segment->path) != 0) {
            return NULL;
        }
        salvage->open_segment = written->segment;
    }
    bytes = cli_file_fetch(&salvage->file, written->offset, WAL__FRAME_SIZE);
    if (bytes == NULL ||
        wal__frame_decode(bytes, salvage->file.size - written->offset,
                          written->segment->header.salt, written->offset,
                          &frame) != WAL__FMT_OK) {
        return NULL;
    }
    bytes = cli_file_fetch(&salvage->file, written->offset,
                           wal__frame_total_size(frame.stored_size));
    if (bytes == NULL ||
        wal__entry_record_decode(
            (struct wal__span){bytes + WAL__FRAME_SIZE, frame.stored_size},
            &record) != WAL__FMT_OK) {
        return NULL;
    }
    return cli_copy_text(record.id.data, record.id.size);
}

char *salvage_nearest_ancestor(struct salvage *salvage, uint64_t *sequence)
{
    uint64_t at = *sequence;

    while (at != 0) {
        const struct salvage_written *written = find_written(salvage, at);
        const struct check_lost_record *lost;

        if (written != NULL) {
            char *id = read_id(salvage, written);

            if (id != NULL) {
                *sequence = at;
            }
            return id;
        }
        lost = find_lost(salvage, at);
        if (lost == NULL || lost->parent >= at) {
            return NULL;
        }
        at = lost->parent;
    }
    return NULL;
}

/* --- batches -------------------------------------------------------------- */

static void discard_pending(struct salvage *salvage)
{
    for (size_t i = 0; i < salvage->pending_count; i++) {
        salvage_unmap_payload(salvage->pending[i].map,
                              salvage->pending[i].entry.payload.size);
        free(salvage->pending[i].bytes);
        free(salvage->pending[i].parent);
    }
    salvage->pending_count = 0;
    salvage->pending_size = 0;
}

/* Records that an entry is in OUT. */
static void record_written(struct salvage *salvage,
                           struct salvage_session *session,
                           const struct salvage_pending *pending)
{
    char id[WAL__ID_MAX + 1];

    memcpy(id, pending->entry.id.data, pending->entry.id.size);
    id[pending->entry.id.size] = '\0';
    salvage->written =
        cli_reserve(salvage->written, salvage->written_count,
                    &salvage->written_capacity, sizeof(*salvage->written));
    salvage->written[salvage->written_count++] = (struct salvage_written){
        pending->sequence, salvage->segment, pending->offset};
    free(session->last_id);
    session->last_id = cli_copy_text(id, strlen(id));
    session->last_sequence = pending->sequence;
    salvage->entries_written++;
    if (pending->lost_parent != 0) {
        salvage_note_reparented(salvage, session->id, id, pending->lost_parent,
                                pending->parent);
    }
}

static enum wal_status append_entry(struct salvage_session *session,
                                    const struct wal_entry *entry,
                                    struct wal_error *error)
{
    const struct wal_append_options options = {
        .struct_size = sizeof(options),
        .durability = WAL_WRITTEN,
    };

    return wal_append(session->handle, entry, 1, &options, NULL, error);
}

/* Gives an entry its nearest surviving ancestor as parent. */
static void reparent(struct salvage *salvage, struct salvage_pending *pending)
{
    uint64_t ancestor = pending->parent_sequence;
    char *parent = salvage_nearest_ancestor(salvage, &ancestor);

    if (ancestor == pending->parent_sequence) {
        /* The parent is in OUT, but in a session that this one is no longer a
         * fork of. */
        free(parent);
        parent = NULL;
    }
    free(pending->parent);
    pending->parent = parent;
    pending->lost_parent = pending->parent_sequence;
    pending->entry.parent_id = cli_slice(parent == NULL ? "" : parent);
    if (parent == NULL) {
        pending->entry.flags |= WAL_ENTRY_ROOT;
    }
}

/* Whether the engine resolves references in entries of that kind. */
static bool has_references(const struct salvage_pending *pending)
{
    return (pending->entry.flags & WAL_ENTRY_LINE) == 0 &&
           (pending->kind == WAL__KIND_COMPACTION_SUMMARY ||
            pending->kind == WAL__KIND_BRANCH_SUMMARY ||
            pending->kind == WAL__KIND_REDACTION);
}

/* Appends an entry alone after its batch was refused. */
static void append_alone(struct salvage *salvage,
                         struct salvage_session *session,
                         struct salvage_pending *pending)
{
    struct wal_error error = CLI_ERROR_INIT;
    char *id = cli_copy_text(pending->entry.id.data, pending->entry.id.size);
    enum wal_status status = append_entry(session, &pending->entry, &error);

    if (status == WAL_ENOPARENT) {
        reparent(salvage, pending);
        status = append_entry(session, &pending->entry, &error);
    }
    if ((status == WAL_ENOTFOUND || status == WAL_EINVAL) &&
        has_references(pending)) {
        pending->entry.flags |= WAL_ENTRY_LINE;
        status = append_entry(session, &pending->entry, &error);
        if (status == WAL_OK) {
            salvage_note(
                salvage, session->id, id,
                "the entry that it refers to is missing; it is kept as a line");
        }
    }
    if (status == WAL_OK) {
        record_written(salvage, session, pending);
    } else if (!salvage_is_fatal(salvage, status, &error)) {
        record_skipped(salvage, (struct check_lost_record){
                                    pending->sequence, pending->parent_sequence,
                                    salvage->pending_session});
        salvage_note(salvage, session->id, id, "cannot be appended: %s",
                     error.text[0] != '\0' ? error.text
                                           : wal_status_text(status));
    }
    free(id);
}

void salvage_flush(struct salvage *salvage)
{
    const struct wal_append_options options = {
        .struct_size = sizeof(options),
        .durability = WAL_WRITTEN,
    };
    struct salvage_session *session;
    struct wal_entry *entries;
    size_t count = salvage->pending_count;
    enum wal_status status;

    if (count == 0) {
        return;
    }
    session = salvage_session(salvage, salvage->pending_session);
    if (session->handle == NULL || session->deleted) {
        if (session->deleted) {
            salvage_note(salvage, session->id, "",
                         "%zu %s after the session's deletion, left out", count,
                         cli_plural(count, "entry is", "entries are"));
        }
        discard_pending(salvage); /* the missing session is noted already */
        return;
    }
    entries = cli_alloc(count * sizeof(*entries));
    for (size_t i = 0; i < count; i++) {
        entries[i] = salvage->pending[i].entry;
    }
    status = wal_append(session->handle, entries, (uint32_t)count, &options,
                        NULL, NULL);
    free(entries);
    for (size_t i = 0; i < count && salvage->failed == WAL_OK; i++) {
        if (status == WAL_OK) {
            record_written(salvage, session, &salvage->pending[i]);
        } else {
            append_alone(salvage, session, &salvage->pending[i]);
        }
    }
    discard_pending(salvage);
}

/* Sets the parent of an entry: an entry of the batch, the newest of the
 * session, or one that is read again; lost ancestors are skipped. */
static void set_parent(struct salvage *salvage, struct salvage_pending *pending,
                       const struct salvage_session *session, uint64_t parent)
{
    uint64_t ancestor = parent;

    if (parent == 0) {
        pending->entry.flags |= WAL_ENTRY_ROOT;
        return;
    }
    for (size_t i = salvage->pending_count; i > 0; i--) {
        const struct salvage_pending *other = &salvage->pending[i - 1];

        if (other->sequence == parent) {
            pending->parent =
                cli_copy_text(other->entry.id.data, other->entry.id.size);
            pending->entry.parent_id = cli_slice(pending->parent);
            return;
        }
    }
    if (session->last_sequence == parent) {
        pending->parent =
            cli_copy_text(session->last_id, strlen(session->last_id));
    } else {
        pending->parent = salvage_nearest_ancestor(salvage, &ancestor);
        pending->lost_parent =
            pending->parent == NULL || ancestor != parent ? parent : 0;
    }
    if (pending->parent == NULL) {
        pending->entry.flags |= WAL_ENTRY_ROOT;
    } else {
        pending->entry.parent_id = cli_slice(pending->parent);
    }
}

/* The nearest ancestor of an entry whose parent is lost may be in the batch. */
static void flush_for_parent(struct salvage *salvage, uint64_t parent)
{
    for (size_t i = 0; i < salvage->pending_count; i++) {
        if (salvage->pending[i].sequence == parent) {
            return;
        }
    }
    if (parent != 0 && find_written(salvage, parent) == NULL) {
        salvage_flush(salvage);
    }
}

static void fill_pending(struct salvage_pending *pending,
                         const struct wal__frame *frame,
                         const struct wal__entry_record *record)
{
    struct wal__span kind = wal__kind_name(frame->kind);
    struct wal__span type = record->type.size > 0 ? record->type : kind;

    pending->entry = (struct wal_entry){
        .struct_size = sizeof(pending->entry),
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
        pending->entry.flags |= WAL_ENTRY_LINE;
    }
}

/* Maps a payload of the blob stream. Null: it is lost, and the entry with
 * it. */
static void *map_payload(struct salvage *salvage,
                         const struct salvage_session *session,
                         const struct wal__frame *frame,
                         const struct wal__entry_record *record)
{
    const char *why;
    void *map = salvage_map_payload(salvage, record, &why);
    char *id;

    if (map == NULL && salvage->failed == WAL_OK) {
        id = cli_copy_text(record->id.data, record->id.size);
        salvage_note(salvage, session->id, id,
                     "the entry is lost: its payload cannot be read: %s", why);
        record_skipped(salvage, (struct check_lost_record){frame->sequence,
                                                           frame->parent,
                                                           frame->session});
        free(id);
    }
    return map;
}

void salvage_entry(struct salvage *salvage, const struct wal__frame *frame,
                   uint64_t offset, const uint8_t *payload)
{
    struct salvage_pending *pending;
    struct wal__entry_record record;
    struct salvage_session *session;
    uint8_t *bytes;
    void *map = NULL;

    if (salvage->pending_session != frame->session ||
        salvage->pending_count >= BATCH_COUNT ||
        salvage->pending_size >= BATCH_SIZE) {
        salvage_flush(salvage);
    }
    flush_for_parent(salvage, frame->parent);
    session = salvage_session(salvage, frame->session);
    bytes = cli_alloc(frame->stored_size);
    memcpy(bytes, payload, frame->stored_size);
    if (wal__entry_record_decode((struct wal__span){bytes, frame->stored_size},
                                 &record) != WAL__FMT_OK) {
        salvage_note(salvage, session->id, "",
                     "the entry of sequence %" PRIu64 " is not well-formed",
                     frame->sequence);
        free(bytes);
        return;
    }
    if (record.digest != NULL) {
        map = map_payload(salvage, session, frame, &record);
        if (map == NULL) {
            free(bytes);
            return;
        }
    }
    salvage->pending =
        cli_reserve(salvage->pending, salvage->pending_count,
                    &salvage->pending_capacity, sizeof(*salvage->pending));
    pending = &salvage->pending[salvage->pending_count];
    *pending = (struct salvage_pending){
        .bytes = bytes,
        .map = map,
        .sequence = frame->sequence,
        .parent_sequence = frame->parent,
        .offset = offset,
        .kind = frame->kind,
    };
    fill_pending(pending, frame, &record);
    if (map != NULL) {
        pending->entry.payload =
            (struct wal_slice){map, (size_t)record.payload_size};
    }
    set_parent(salvage, pending, session, frame->parent);
    salvage->pending_session = frame->session;
    salvage->pending_count++;
    salvage->pending_size += frame->stored_size;
    salvage->pending_size += map == NULL ? 0 : record.payload_size;
}

void salvage_entries_deinit(struct salvage *salvage)
{
    discard_pending(salvage);
    free(salvage->pending);
    free(salvage->written);
    if (salvage->open_segment != NULL) {
        cli_file_close(&salvage->file);
    }
}
