/*
 * salvage_entries.c - entries of a damaged store, appended to the salvaged one.
 *
 * Invariant: an entry stands under its parent, under the nearest ancestor that
 * is left, or is a root; a change of parent is noted. What an entry refers to
 * may be lost, and the engine takes no entry that refers to nothing: such a one
 * is kept as a line, which is not looked into.
 *
 * Threads: one.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/walcheck/salvage.h"

enum {
    BATCH_COUNT = 256,
    BATCH_SIZE = 1024 * 1024
};

/* --- parents -------------------------------------------------------------- */

static const struct salvage_written *find_written(const struct salvage *salvage,
                                                  uint64_t sequence)
{
    size_t low = 0;
    size_t high = salvage->seen_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (salvage->seen[middle].sequence < sequence) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < salvage->seen_count && salvage->seen[low].sequence == sequence
               ? &salvage->seen[low]
               : NULL;
}

/* Rank of the first lost record whose sequence number is not below. */
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

/* An entry that OUT did not take: what stands under it goes on above it. */
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
                     const struct salvage_written *seen)
{
    struct wal__entry_record record;
    struct wal__frame frame;
    const uint8_t *bytes;

    if (salvage->open != seen->segment) {
        if (salvage->open != NULL) {
            cli_file_close(&salvage->file);
        }
        salvage->open = NULL;
        if (cli_file_open(&salvage->file, seen->segment->path) != 0) {
            return NULL;
        }
        salvage->open = seen->segment;
    }
    bytes = cli_file_fetch(&salvage->file, seen->offset, WAL__FRAME_SIZE);
    if (bytes == NULL ||
        wal__frame_decode(bytes, salvage->file.size - seen->offset,
                          seen->segment->header.salt, seen->offset,
                          &frame) != WAL__FMT_OK) {
        return NULL;
    }
    bytes = cli_file_fetch(&salvage->file, seen->offset,
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
        const struct salvage_written *seen = find_written(salvage, at);
        const struct check_lost_record *lost;

        if (seen != NULL) {
            char *id = read_id(salvage, seen);

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
    for (size_t i = 0; i < salvage->waiting_count; i++) {
        salvage_unmap_payload(salvage->waiting[i].map,
                              salvage->waiting[i].entry.payload.size);
        free(salvage->waiting[i].bytes);
        free(salvage->waiting[i].parent);
    }
    salvage->waiting_count = 0;
    salvage->waiting_size = 0;
}

/* The entry is in OUT. */
static void record_written(struct salvage *salvage,
                           struct salvage_session *session,
                           const struct salvage_pending *waiting)
{
    char id[WAL__ID_MAX + 1];

    memcpy(id, waiting->entry.id.data, waiting->entry.id.size);
    id[waiting->entry.id.size] = '\0';
    salvage->seen =
        cli_reserve(salvage->seen, salvage->seen_count, &salvage->seen_capacity,
                    sizeof(*salvage->seen));
    salvage->seen[salvage->seen_count++] = (struct salvage_written){
        waiting->sequence, salvage->segment, waiting->offset};
    free(session->last_id);
    session->last_id = cli_copy_text(id, strlen(id));
    session->last_sequence = waiting->sequence;
    salvage->entries_written++;
    if (waiting->lost_parent != 0) {
        salvage_note_reparented(salvage, session->id, id, waiting->lost_parent,
                                waiting->parent);
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

/* Puts an entry under what is left above its parent. */
static void reparent(struct salvage *salvage, struct salvage_pending *waiting)
{
    uint64_t left = waiting->parent_sequence;
    char *parent = salvage_nearest_ancestor(salvage, &left);

    if (left == waiting->parent_sequence) {
        /* It is in OUT: in a session that this one is no fork of any more. */
        free(parent);
        parent = NULL;
    }
    free(waiting->parent);
    waiting->parent = parent;
    waiting->lost_parent = waiting->parent_sequence;
    waiting->entry.parent_id = cli_slice(parent == NULL ? "" : parent);
    if (parent == NULL) {
        waiting->entry.flags |= WAL_ENTRY_ROOT;
    }
}

/* Whether the engine looks into entries of that type for what they name. */
static bool refers(const struct salvage_pending *waiting)
{
    return (waiting->entry.flags & WAL_ENTRY_LINE) == 0 &&
           (waiting->kind == WAL__KIND_COMPACTION_SUMMARY ||
            waiting->kind == WAL__KIND_BRANCH_SUMMARY ||
            waiting->kind == WAL__KIND_REDACTION);
}

/* An entry that was refused in its batch, by itself. */
static void append_singly(struct salvage *salvage,
                          struct salvage_session *session,
                          struct salvage_pending *waiting)
{
    struct wal_error error = CLI_ERROR_INIT;
    char *id = cli_copy_text(waiting->entry.id.data, waiting->entry.id.size);
    enum wal_status status = append_entry(session, &waiting->entry, &error);

    if (status == WAL_ENOPARENT) {
        reparent(salvage, waiting);
        status = append_entry(session, &waiting->entry, &error);
    }
    if ((status == WAL_ENOTFOUND || status == WAL_EINVAL) && refers(waiting)) {
        waiting->entry.flags |= WAL_ENTRY_LINE;
        status = append_entry(session, &waiting->entry, &error);
        if (status == WAL_OK) {
            salvage_note(salvage, session->id, id,
                         "what it refers to is not there: it is kept as a "
                         "line");
        }
    }
    if (status == WAL_OK) {
        record_written(salvage, session, waiting);
    } else if (!salvage_is_fatal(salvage, status, &error)) {
        record_skipped(salvage, (struct check_lost_record){
                                    waiting->sequence, waiting->parent_sequence,
                                    salvage->waiting_session});
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
    size_t count = salvage->waiting_count;
    enum wal_status status;

    if (count == 0) {
        return;
    }
    session = salvage_session(salvage, salvage->waiting_session);
    if (session->handle == NULL || session->deleted) {
        if (session->deleted) {
            salvage_note(salvage, session->id, "",
                         "%zu %s behind the session's deletion, left out",
                         count,
                         cli_plural(count, "entry stands", "entries stand"));
        }
        discard_pending(salvage); /* it is noted that there is no session */
        return;
    }
    entries = cli_alloc(count * sizeof(*entries));
    for (size_t i = 0; i < count; i++) {
        entries[i] = salvage->waiting[i].entry;
    }
    status = wal_append(session->handle, entries, (uint32_t)count, &options,
                        NULL, NULL);
    free(entries);
    for (size_t i = 0; i < count && salvage->failed == WAL_OK; i++) {
        if (status == WAL_OK) {
            record_written(salvage, session, &salvage->waiting[i]);
        } else {
            append_singly(salvage, session, &salvage->waiting[i]);
        }
    }
    discard_pending(salvage);
}

/* The parent of an entry: in its batch, the newest of its session, or read
 * again; what is lost is stepped over. */
static void set_parent(struct salvage *salvage, struct salvage_pending *waiting,
                       const struct salvage_session *session, uint64_t parent)
{
    uint64_t left = parent;

    if (parent == 0) {
        waiting->entry.flags |= WAL_ENTRY_ROOT;
        return;
    }
    for (size_t i = salvage->waiting_count; i > 0; i--) {
        const struct salvage_pending *other = &salvage->waiting[i - 1];

        if (other->sequence == parent) {
            waiting->parent =
                cli_copy_text(other->entry.id.data, other->entry.id.size);
            waiting->entry.parent_id = cli_slice(waiting->parent);
            return;
        }
    }
    if (session->last_sequence == parent) {
        waiting->parent =
            cli_copy_text(session->last_id, strlen(session->last_id));
    } else {
        waiting->parent = salvage_nearest_ancestor(salvage, &left);
        waiting->lost_parent =
            waiting->parent == NULL || left != parent ? parent : 0;
    }
    if (waiting->parent == NULL) {
        waiting->entry.flags |= WAL_ENTRY_ROOT;
    } else {
        waiting->entry.parent_id = cli_slice(waiting->parent);
    }
}

/* A lost parent may have led to one that waits in the batch. */
static void flush_for_parent(struct salvage *salvage, uint64_t parent)
{
    for (size_t i = 0; i < salvage->waiting_count; i++) {
        if (salvage->waiting[i].sequence == parent) {
            return;
        }
    }
    if (parent != 0 && find_written(salvage, parent) == NULL) {
        salvage_flush(salvage);
    }
}

static void fill_pending(struct salvage_pending *waiting,
                         const struct wal__frame *frame,
                         const struct wal__entry_record *record)
{
    struct wal__span kind = wal__kind_name(frame->kind);
    struct wal__span type = record->type.size > 0 ? record->type : kind;

    waiting->entry = (struct wal_entry){
        .struct_size = sizeof(waiting->entry),
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
        waiting->entry.flags |= WAL_ENTRY_LINE;
    }
}

/* A payload out of line; null: it is lost, and its entry with it. */
static void *payload_of(struct salvage *salvage,
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
                     "it is lost: its payload cannot be read: %s", why);
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
    struct salvage_pending *waiting;
    struct wal__entry_record record;
    struct salvage_session *session;
    uint8_t *bytes;
    void *map = NULL;

    if (salvage->waiting_session != frame->session ||
        salvage->waiting_count >= BATCH_COUNT ||
        salvage->waiting_size >= BATCH_SIZE) {
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
        map = payload_of(salvage, session, frame, &record);
        if (map == NULL) {
            free(bytes);
            return;
        }
    }
    salvage->waiting =
        cli_reserve(salvage->waiting, salvage->waiting_count,
                    &salvage->waiting_capacity, sizeof(*salvage->waiting));
    waiting = &salvage->waiting[salvage->waiting_count];
    *waiting = (struct salvage_pending){
        .bytes = bytes,
        .map = map,
        .sequence = frame->sequence,
        .parent_sequence = frame->parent,
        .offset = offset,
        .kind = frame->kind,
    };
    fill_pending(waiting, frame, &record);
    if (map != NULL) {
        waiting->entry.payload =
            (struct wal_slice){map, (size_t)record.payload_size};
    }
    set_parent(salvage, waiting, session, frame->parent);
    salvage->waiting_session = frame->session;
    salvage->waiting_count++;
    salvage->waiting_size += frame->stored_size;
    salvage->waiting_size += map == NULL ? 0 : record.payload_size;
}

void salvage_entries_deinit(struct salvage *salvage)
{
    discard_pending(salvage);
    free(salvage->waiting);
    free(salvage->seen);
    if (salvage->open != NULL) {
        cli_file_close(&salvage->file);
    }
}
