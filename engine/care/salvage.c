/*
 * salvage.c - makes a sound store from all readable records of a damaged one (agentwal/admin.h).
 *
 * The log is read twice. The first pass learns which sessions and which losses there are
 * (salvage_plan.c). Then all content is copied, whether a record refers to it or not. The second
 * pass repeats each record in OUT, oldest first. A deleted session is copied only as far as its
 * forks need it.
 *
 * Sessions are created, changed and deleted as their records do, so that they are listed in their
 * order; entries are appended in batches of one session. The engine refuses an entry that refers to
 * a missing one: such an entry is kept as a line, whose content the engine does not interpret.
 * Documents whose keys are reserved for the engine are checkpoints, and whether they are enabled
 * (SPEC.md 5.8, 5.16); memory for them is bounded by the longest list of files.
 *
 * Invariants: a record is either in OUT or reported. A session is created once. An entry has its
 * old parent, its nearest surviving ancestor as parent, or is a root; a change of parent is
 * reported. What cannot be written is removed.
 */
#include "engine/care/salvage.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agentwal/blob.h"
#include "engine/base/error.h"
#include "engine/base/moved_document.h"
#include "engine/base/struct_size.h"
#include "engine/care/record_copy.h"
#include "engine/files/checkpoint.h"
#include "engine/session/session.h"
#include "engine/session/store.h"
#include "engine/store/input_text.h"
#include "engine/store/keys_file.h"
#include "format/bytes/assert.h"
#include "format/index/file_list.h"

/* --- creation ------------------------------------------------------------- */

/* The texts of a session. */
struct session_texts {
    struct wal_session_options options;
    char name[32];                /* replaces an id that is lost or in use */
    uint8_t title[WAL__TEXT_MAX]; /* from its metadata */
};

/* Fills the texts from the session's SESSION record, or with a generated id if it is lost. In
 * format version 0 the title is a member of the metadata. */
static void read_texts(const struct wal__salvage_session *session, struct session_texts *texts)
{
    const struct wal__session_record *record = &session->record;
    struct wal__span title = record->title;

    *texts = (struct session_texts){.options = WAL_INIT(wal_session_options)};
    snprintf(texts->name, sizeof(texts->name), "salvaged-%" PRIu32, session->number);
    if (!session->has_record) {
        texts->options.id = wal__slice_from_text(texts->name);
        return;
    }
    if (record->schema_version == 0) {
        (void)wal__text_member(record->metadata, "title", texts->title, sizeof(texts->title),
                               &title);
    }
    wal__copy_session(record, &texts->options);
    texts->options.title = wal__text_slice(title);
}

static void copy_id(struct wal__salvage_session *session, struct wal_slice id)
{
    snprintf(session->id, sizeof(session->id), "%.*s", WAL_ARG(id));
}

/* Creates the session's copy, or a fork of `source` at an entry if `source` is not NULL. If another
 * session, whose tombstone may be lost, has the id, the generated one is used. */
static enum wal_status make_session(struct wal__salvage *salvage,
                                    struct wal__salvage_session *session,
                                    struct wal_session *source, const char *at,
                                    struct session_texts *texts)
{
    const struct wal_slice id = texts->options.id;
    enum wal_status status = WAL_EEXISTS;
    struct wal_session *made = NULL;

    for (int i = 0; i < 2 && status == WAL_EEXISTS; i++) {
        if (i > 0) {
            texts->options.id = wal__slice_from_text(texts->name);
        }
        status = source == NULL
                     ? wal_session_create(salvage->out, &texts->options, &made, &salvage->error)
                     : wal_session_fork(source, wal__slice_from_text(at), &texts->options, &made,
                                        &salvage->error);
    }
    if (status != WAL_OK) {
        return status;
    }
    session->handle = made;
    session->is_copied = true;
    copy_id(session, texts->options.id);
    salvage->result.sessions++;
    if (session->has_record && texts->options.id.data == texts->name) {
        wal__salvage_report(salvage, WAL_SALVAGE_SESSION, session->id, "",
                            "the session's id, %.*s, belongs to another "
                            "session",
                            WAL_ARG(id));
    }
    return WAL_OK;
}

/* Creates the copy of a session that is not a fork, or whose FORK record is lost. */
static void create(struct wal__salvage *salvage, struct wal__salvage_session *session)
{
    struct session_texts texts;
    enum wal_status status;

    read_texts(session, &texts);
    status = make_session(salvage, session, NULL, "", &texts);
    copy_id(session, texts.options.id);
    session->is_copied = true; /* it is tried once */
    if (!wal__salvage_check(salvage, status, WAL_SALVAGE_SESSION, session->id, "",
                            "the session cannot be created")) {
        return;
    }
    if (!session->has_record || session->from_index) {
        wal__salvage_report(salvage, WAL_SALVAGE_SESSION, session->id, "",
                            "the session's record is lost: its %s",
                            session->has_record ? "metadata is unknown, the rest comes from an "
                                                  "index"
                                                : "id, directory and metadata are unknown");
    }
    if (session->has_record && (session->record.flags & WAL__SESSION_RECORD_FORK) != 0) {
        wal__salvage_report(salvage, WAL_SALVAGE_SESSION, session->id, "",
                            "the session's fork point is lost: it has only the entries that "
                            "it did not inherit");
    }
}

/* Returns the session with its copy in OUT, which is created if it is missing; its handle may be
 * NULL. NULL: the salvage failed. */
static struct wal__salvage_session *salvage_open_session(struct wal__salvage *salvage,
                                                         uint32_t number)
{
    struct wal__salvage_session *session = wal__salvage_get_session(salvage, number);

    if (session != NULL && !session->is_copied) {
        create(salvage, session);
    }
    return salvage->failed == WAL_OK ? session : NULL;
}

/* As open_session; NULL unless records can be written to the copy. */
static struct wal__salvage_session *salvage_find_writable(struct wal__salvage *salvage,
                                                          uint32_t number)
{
    struct wal__salvage_session *session = salvage_open_session(salvage, number);

    return session == NULL || session->handle == NULL || session->is_removed ? NULL : session;
}

/* --- changes -------------------------------------------------------------- */

static int32_t set_texts(void *ctx, const struct wal_session_info *now,
                         struct wal_session_change *change)
{
    (void)now;
    wal__copy_change(ctx, change);
    return 0;
}

static void update(struct wal__salvage *salvage, const struct wal__salvage_session *session,
                   struct wal_session_options *options)
{
    (void)wal__salvage_check(
        salvage, wal_session_update(session->handle, set_texts, options, &salvage->error),
        WAL_SALVAGE_SESSION, session->id, "", "the session's texts cannot be changed");
}

static void keep_session(struct wal__salvage *salvage, struct wal__salvage_session *session)
{
    struct session_texts texts;

    if (session->handle != NULL && !session->is_removed) {
        read_texts(session, &texts);
        update(salvage, session, &texts.options);
    } else if ((session->record.flags & WAL__SESSION_RECORD_FORK) == 0) {
        (void)salvage_open_session(salvage, session->number);
    } /* The FORK record that follows creates a fork. */
}

/* --- forks ---------------------------------------------------------------- */

/* Creates the fork at the nearest surviving ancestor of its fork point. A fork inherits the texts
 * that it does not set, so they are set again. */
static void create_fork(struct wal__salvage *salvage, struct wal__salvage_session *session,
                        struct wal_session *source, uint64_t point)
{
    struct session_texts texts;
    uint64_t ancestor = point;
    const char *at = wal__salvage_find_ancestor(salvage, &ancestor);

    if (at[0] == '\0' && point != 0) {
        return;
    }
    read_texts(session, &texts);
    texts.options.parent_id = (struct wal_slice){NULL, 0};
    if (!wal__salvage_try(salvage, make_session(salvage, session, source, at, &texts))) {
        return;
    }
    if (session->has_record) {
        update(salvage, session, &texts.options);
    }
    if (ancestor != point) {
        wal__salvage_report_reparented(salvage, session->id, "", point, at);
    }
}

/* A fork that is not created here is created by salvage_open_session, which reports the loss. */
static void salvage_fork(struct wal__salvage *salvage, const struct wal__frame *frame,
                         const struct wal__fork_record *record)
{
    struct wal__salvage_session *session = wal__salvage_get_session(salvage, frame->session);
    const struct wal__salvage_session *source;

    if (session == NULL || session->is_copied ||
        wal__salvage_find_session(salvage, record->source) == NULL ||
        record->source == frame->session || record->source == WAL__STORE_NUMBER) {
        return;
    }
    source = salvage_open_session(salvage, record->source);
    if (source != NULL && source->handle != NULL) {
        create_fork(salvage, session, source->handle, frame->parent);
    }
}

/* --- deletion ------------------------------------------------------------- */

static void salvage_delete(struct wal__salvage *salvage, uint32_t number)
{
    struct wal__salvage_session *session = salvage_find_writable(salvage, number);

    if (session != NULL &&
        wal__salvage_check(salvage, wal_session_delete(session->handle, &salvage->error),
                           WAL_SALVAGE_SESSION, session->id, "",
                           "the session cannot be deleted again")) {
        session->is_removed = true;
        salvage->result.sessions--;
    }
}

/* After all else of the session, which refuses changes then. */
static void put_in_trash(struct wal__salvage *salvage, uint32_t number)
{
    struct wal__salvage_session *session = salvage_find_writable(salvage, number);

    if (session != NULL) {
        (void)wal__salvage_check(salvage, wal_session_trash(session->handle, &salvage->error),
                                 WAL_SALVAGE_SESSION, session->id, "",
                                 "the session cannot be put in the trash again");
    }
}

/* After all else but the trash. The document that says where to may be lost. */
static void mark_moved(struct wal__salvage *salvage, uint32_t number)
{
    struct wal_session_move move = WAL_INIT(wal_session_move);
    struct wal__salvage_session *session = salvage_find_writable(salvage, number);

    if (session == NULL) {
        return;
    }
    if (wal_session_get_move(session->handle, &move, NULL) != WAL_OK) {
        move.number = 1;
    }
    move.flags = WAL_SESSION_MOVE_AWAY;
    (void)wal__salvage_check(salvage, wal_session_set_move(session->handle, &move, &salvage->error),
                             WAL_SALVAGE_SESSION, session->id, "",
                             "the session cannot be marked as moved again");
}

/* Creates the sessions that are known from an index only, and repeats deletions whose tombstone is
 * lost. */
static void salvage_finish_sessions(struct wal__salvage *salvage)
{
    for (uint32_t i = 0; i < salvage->session_count && salvage->failed == WAL_OK; i++) {
        const struct wal__salvage_session *session = salvage->sessions[i];

        if (session->number == WAL__STORE_NUMBER || !session->is_needed) {
            continue;
        }
        if (session->has_record) {
            (void)salvage_open_session(salvage, session->number);
        }
        if (!session->is_deleted && salvage->failed == WAL_OK &&
            (session->record.flags & WAL__SESSION_RECORD_MOVED) != 0) {
            mark_moved(salvage, session->number);
        }
        if (session->is_deleted && salvage->failed == WAL_OK) {
            salvage_delete(salvage, session->number);
        } else if ((session->record.flags & WAL__SESSION_RECORD_TRASHED) != 0 &&
                   salvage->failed == WAL_OK) {
            put_in_trash(salvage, session->number);
        }
    }
}

/* Closes all session handles; call it before closing OUT. */
static void salvage_close_sessions(struct wal__salvage *salvage)
{
    for (uint32_t i = 0; i < salvage->session_count; i++) {
        wal_session_close(salvage->sessions[i]->handle);
        salvage->sessions[i]->handle = NULL;
    }
}

/* --- entries -------------------------------------------------------------- */

static enum wal_status append(struct wal__salvage *salvage,
                              const struct wal__salvage_session *session,
                              const struct wal_entry *entries, uint32_t count)
{
    const struct wal_append_options options = {
        .struct_size = sizeof(options),
        .durability = WAL_WRITTEN,
    };

    return wal_append(session->handle, entries, count, &options, NULL, &salvage->error);
}

/* --- payloads of the blob stream ------------------------------------------ */

static enum wal_status read_blob(struct wal__salvage *salvage, const struct wal__digest *digest,
                                 uint8_t *payload, uint64_t size)
{
    struct wal_blob *blob = NULL;
    uint64_t got = 0;
    enum wal_status status = wal_blob_open(salvage->out, digest->bytes, &blob, &salvage->error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal_blob_read(blob, 0, payload, size, &got, &salvage->error);
    wal_blob_close(blob);
    WAL__ASSERT(status != WAL_OK || got == size); /* it was checked */
    return status;
}

/* Reads an entry's payload from OUT into memory of large_heap. NULL: it is lost, *reason says why;
 * or the salvage failed. */
static uint8_t *load_payload(struct wal__salvage *salvage, const struct wal__entry_record *record,
                             const char **reason)
{
    struct wal__digest digest;
    enum wal_status status;
    uint8_t *payload;

    memcpy(digest.bytes, record->digest, WAL__DIGEST_SIZE);
    *reason = wal__salvage_check_content(salvage, &digest, record->payload_size);
    if (*reason != NULL) {
        return NULL;
    }
    payload = wal__heap_alloc(salvage->large_heap, record->payload_size);
    if (payload == NULL) {
        wal__salvage_fail(salvage, WAL_ENOMEM, NULL);
        return NULL;
    }
    status = read_blob(salvage, &digest, payload, record->payload_size);
    if (status != WAL_OK) {
        wal__heap_free(salvage->large_heap, payload);
        wal__salvage_fail(salvage, status, &salvage->error);
        return NULL;
    }
    return payload;
}

/* --- the batch ------------------------------------------------------------ */

/* Fills an entry of the batch from its record. False: its payload is lost, and the entry with it;
 * or the salvage failed. */
static bool build_entry(struct wal__salvage *salvage, const struct wal__salvage_session *session,
                        uint32_t i)
{
    struct wal__copy_batch *batch = &salvage->batch;
    const struct wal__frame *frame = &batch->frames[i];
    const struct wal__span bytes = {batch->bytes.data + batch->offsets[i], frame->stored_size};
    struct wal_entry *entry = &batch->entries[i];
    struct wal__entry_record record;
    uint64_t sequence = frame->sequence;
    const char *reason;
    enum wal__fmt fmt = wal__entry_record_decode(bytes, &record);

    WAL__ASSERT(fmt == WAL__FMT_OK); /* salvage_entry decoded it */
    wal__copy_entry(frame, &record, false, entry);
    if (record.is_erased && wal__copy_refers(frame->kind)) {
        /* Its redaction hides it; what it referred to is gone. */
        entry->flags |= WAL_ENTRY_LINE;
    }
    if (frame->kind == WAL__KIND_MESSAGE_DELTA_BATCH &&
        (frame->flags & WAL__FRAME_PROVISIONAL) == 0) {
        /* Others may be under it: as a line it is not provisional. */
        entry->flags |= WAL_ENTRY_LINE;
    }
    batch->payloads[i] = NULL;
    if (record.digest == NULL) {
        return true;
    }
    batch->payloads[i] = load_payload(salvage, &record, &reason);
    if (batch->payloads[i] != NULL) {
        entry->payload = (struct wal_slice){batch->payloads[i], record.payload_size};
        return true;
    }
    wal__salvage_report(salvage, WAL_SALVAGE_ENTRY, session->id,
                        wal__salvage_find_ancestor(salvage, &sequence),
                        "the entry is lost: its payload cannot be read: %s", reason);
    wal__salvage_remove_written(salvage, frame->sequence, frame->parent);
    return false;
}

/* Builds the entries; those that are lost leave the batch. */
static void build_batch(struct wal__salvage *salvage, const struct wal__salvage_session *session)
{
    struct wal__copy_batch *batch = &salvage->batch;
    uint32_t kept = 0;

    for (uint32_t i = 0; i < batch->count; i++) {
        batch->frames[kept] = batch->frames[i];
        batch->offsets[kept] = batch->offsets[i];
        if (salvage->failed == WAL_OK && build_entry(salvage, session, kept)) {
            kept++;
        }
    }
    batch->count = kept;
}

/* Sets the parent of an entry; *parent is its sequence, 0 for a root. */
static void set_parent(const struct wal__salvage *salvage, uint32_t i, uint64_t *parent,
                       struct wal_entry *entry)
{
    const char *id;

    *parent = salvage->batch.frames[i].parent;
    id = wal__salvage_find_ancestor(salvage, parent);
    entry->parent_id = wal__slice_from_text(id);
    if (id[0] == '\0') {
        *parent = 0;
        entry->flags |= WAL_ENTRY_ROOT;
    }
}

static void record_appended(struct wal__salvage *salvage,
                            const struct wal__salvage_session *session, uint32_t i, uint64_t parent)
{
    const struct wal__frame *frame = &salvage->batch.frames[i];
    uint64_t own = frame->sequence;

    salvage->result.entries++;
    if (parent != frame->parent) {
        wal__salvage_report_reparented(salvage, session->id,
                                       wal__salvage_find_ancestor(salvage, &own), frame->parent,
                                       salvage->batch.entries[i].parent_id.data);
    }
}

/* Appends an entry alone after its batch was refused. */
static void append_alone(struct wal__salvage *salvage, const struct wal__salvage_session *session,
                         uint32_t i)
{
    const struct wal__frame *frame = &salvage->batch.frames[i];
    struct wal_entry *entry = &salvage->batch.entries[i];
    uint64_t own = frame->sequence;
    const char *id = wal__salvage_find_ancestor(salvage, &own);
    enum wal_status status;
    uint64_t parent;

    set_parent(salvage, i, &parent, entry);
    status = append(salvage, session, entry, 1);
    if (status == WAL_ENOPARENT) {
        /* The parent is in a session that this one is no longer a fork of. */
        parent = 0;
        entry->parent_id = wal__slice_from_text("");
        entry->flags |= WAL_ENTRY_ROOT;
        status = append(salvage, session, entry, 1);
    }
    if ((status == WAL_ENOTFOUND || status == WAL_EINVAL) && (entry->flags & WAL_ENTRY_LINE) == 0 &&
        wal__copy_refers(frame->kind)) {
        entry->flags |= WAL_ENTRY_LINE;
        status = append(salvage, session, entry, 1);
        if (status == WAL_OK) {
            wal__salvage_report(salvage, WAL_SALVAGE_ENTRY, session->id, id,
                                "the entry that it refers to is missing; it is kept as a line");
        }
    }
    if (wal__salvage_check(salvage, status, WAL_SALVAGE_ENTRY, session->id, id,
                           "cannot be appended")) {
        record_appended(salvage, session, i, parent);
    } else {
        wal__salvage_remove_written(salvage, frame->sequence, frame->parent);
    }
}

static void append_batch(struct wal__salvage *salvage, const struct wal__salvage_session *session)
{
    struct wal__copy_batch *batch = &salvage->batch;
    uint64_t parents[WAL__COPY_BATCH];
    enum wal_status status;

    build_batch(salvage, session);
    if (batch->count == 0 || salvage->failed != WAL_OK) {
        return;
    }
    for (uint32_t i = 0; i < batch->count; i++) {
        set_parent(salvage, i, &parents[i], &batch->entries[i]);
    }
    status = append(salvage, session, batch->entries, batch->count);
    for (uint32_t i = 0; i < batch->count && salvage->failed == WAL_OK; i++) {
        if (status == WAL_OK) {
            record_appended(salvage, session, i, parents[i]);
        } else {
            append_alone(salvage, session, i);
        }
    }
}

static void salvage_flush(struct wal__salvage *salvage)
{
    uint32_t count = salvage->batch.count;
    const struct wal__salvage_session *session;

    if (count == 0 || salvage->failed != WAL_OK) {
        return;
    }
    session = salvage_open_session(salvage, salvage->batch_session);
    if (session != NULL && session->is_removed) {
        wal__salvage_report(salvage, WAL_SALVAGE_SESSION, session->id, "",
                            "%" PRIu32 " %s after the session's deletion, left "
                            "out",
                            count, count == 1 ? "entry is" : "entries are");
    } else if (session != NULL && session->handle != NULL) {
        append_batch(salvage, session);
        wal__copy_batch_empty(&salvage->batch, salvage->large_heap);
        return;
    }                         /* A session that could not be created is reported. */
    salvage->batch.count = 0; /* no payload was loaded */
    wal__copy_batch_empty(&salvage->batch, salvage->large_heap);
}

/* Adds an entry to the batch; a full batch or wal__salvage_flush appends it. */
static void salvage_entry(struct wal__salvage *salvage, const struct wal__frame *frame,
                          const uint8_t *payload)
{
    const struct wal__span bytes = {payload, frame->stored_size};
    const struct wal__salvage_erased erased = {frame->sequence, frame->session};
    struct wal__copy_batch *batch = &salvage->batch;
    struct wal__entry_record record;

    if (salvage->batch_session != frame->session || wal__copy_batch_is_full(batch)) {
        salvage_flush(salvage);
    }
    if (wal__entry_record_decode(bytes, &record) != WAL__FMT_OK) {
        const struct wal__salvage_session *session = salvage_open_session(salvage, frame->session);

        wal__salvage_report(salvage, WAL_SALVAGE_ENTRY, session == NULL ? "" : session->id, "",
                            "the entry of sequence %" PRIu64 " is not well-formed",
                            frame->sequence);
        salvage->result.lost_entries++;
        return;
    }
    salvage->batch_session = frame->session;
    if (wal__copy_batch_add(batch, frame, bytes, &record) != WAL_OK) {
        wal__salvage_fail(salvage, WAL_ENOMEM, NULL);
        return;
    }
    wal__salvage_add_written(salvage, frame->sequence, record.id);
    if (record.is_erased && wal__buf_append(&salvage->erased, &erased, sizeof(erased)) != WAL_OK) {
        wal__salvage_fail(salvage, WAL_ENOMEM, NULL);
    }
}

/* --- reserved documents --------------------------------------------------- */

static const char checkpointing_key[] = "\0checkpointing";
static const char rewind_key[] = "\0rewind";

/* The files of a list whose content is in OUT. */
struct file_states {
    struct wal_file *items; /* heap */
    uint64_t count;
    uint64_t lost;          /* number of the others */
    struct wal__span first; /* path of the first of them */
};

static void add_state(struct wal__salvage *salvage, struct file_states *states,
                      const struct wal__file_record *record)
{
    struct wal_file *file = &states->items[states->count];

    if (record->kind != WAL__FILE_ABSENT &&
        wal__salvage_check_content(salvage, &record->digest, record->size) != NULL) {
        states->first = states->lost++ == 0 ? record->path : states->first;
        return;
    }
    *file = (struct wal_file){
        .struct_size = sizeof(*file),
        .kind = record->kind,
        .mode = record->mode,
        .path = wal__text_slice(record->path),
        .size = record->size,
        .mtime_ns = record->mtime_ns,
    };
    memcpy(file->digest, record->digest.bytes, WAL__DIGEST_SIZE);
    states->count++;
}

/* Reads the list; false if it is not valid, or the salvage failed. */
static bool read_states(struct wal__salvage *salvage, struct wal__span bytes,
                        struct file_states *states)
{
    struct wal__file_record record;
    struct wal__file_list list;

    if (wal__file_list_decode(bytes, &list) != WAL__FMT_OK) {
        return false;
    }
    states->items =
        wal__heap_resize(salvage->heap, NULL, (size_t)list.count + 1, sizeof(*states->items));
    if (states->items == NULL) {
        wal__salvage_fail(salvage, WAL_ENOMEM, NULL);
        return false;
    }
    while (list.remaining > 0) {
        if (wal__file_list_next(&list, &record) != WAL__FMT_OK) {
            return false;
        }
        add_state(salvage, states, &record);
    }
    return salvage->failed == WAL_OK;
}

/* Creates the checkpoint with its link to an entry, or if the session does not have that entry
 * without one. A checkpoint that a fork inherited and added files to keeps its link, although the
 * fork may not have the entry. */
static enum wal_status create_checkpoint(struct wal__salvage *salvage,
                                         const struct wal__salvage_session *session,
                                         const struct wal__checkpoint *checkpoint,
                                         const struct file_states *states)
{
    struct wal_checkpoint_options options = {
        .struct_size = sizeof(options),
        .id = wal__text_slice(checkpoint->id),
        .root = wal__text_slice(checkpoint->root),
        .created_ms = checkpoint->created_ms,
        .entry_id = wal__text_slice(checkpoint->entry),
        .flags = checkpoint->entry.size == 0 ? WAL_CHECKPOINT_UNLINKED : 0U,
    };
    const struct wal_slice entry = options.entry_id;
    struct wal_checkpoint_info info = WAL_INIT(wal_checkpoint_info);
    struct wal_file_cursor *made = NULL;
    enum wal_status status = wal_checkpoint_import(session->handle, states->items, states->count,
                                                   &options, NULL, &salvage->error);

    if (status != WAL_ENOTFOUND || entry.size == 0) {
        return status;
    }
    options.entry_id = (struct wal_slice){NULL, 0};
    options.flags = WAL_CHECKPOINT_UNLINKED;
    status = wal_checkpoint_import(session->handle, states->items, states->count, &options, &made,
                                   &salvage->error);
    if (status == WAL_OK) {
        status = wal_checkpoint_get_info(made, &info, &salvage->error);
    }
    if (status == WAL_OK && info.entry_id.size == 0) {
        wal__salvage_report(salvage, WAL_SALVAGE_CHECKPOINT, session->id, "",
                            "the entry of the checkpoint %.*s is lost: %.*s", WAL_ARG(options.id),
                            WAL_ARG(entry));
    }
    wal_file_cursor_close(made);
    return status;
}

static void import_checkpoint(struct wal__salvage *salvage,
                              const struct wal__salvage_session *session,
                              const struct wal__checkpoint *checkpoint,
                              const struct file_states *states)
{
    const struct wal_slice id = wal__text_slice(checkpoint->id);
    enum wal_status status = create_checkpoint(salvage, session, checkpoint, states);

    salvage->result.documents +=
        wal__salvage_check(salvage, status, WAL_SALVAGE_CHECKPOINT, session->id, "",
                           "the checkpoint %.*s cannot be created", WAL_ARG(id));
    if (states->lost > 0) {
        wal__salvage_report(salvage, WAL_SALVAGE_CHECKPOINT, session->id, "",
                            "%" PRIu64 " %s of the checkpoint %.*s, the first of them %.*s",
                            states->lost, states->lost == 1 ? "file is lost" : "files are lost",
                            WAL_ARG(id), (int)(states->first.size < 180 ? states->first.size : 180),
                            (const char *)states->first.data);
    }
}

/* Reads the list of a checkpoint from OUT and creates the checkpoint. NULL, or why it is lost. */
static const char *copy_checkpoint(struct wal__salvage *salvage,
                                   const struct wal__salvage_session *session,
                                   const struct wal__checkpoint *checkpoint)
{
    struct file_states states = {.items = NULL};
    const char *fault = NULL;
    struct wal__buf list;

    wal__buf_init(&list, salvage->heap);
    if (!wal__salvage_try(salvage, wal__blob_load(salvage->out_blobs, &checkpoint->list, &list,
                                                  &salvage->error))) {
        fault = wal__salvage_blob_fault(salvage, &checkpoint->list);
    } else if (read_states(salvage, (struct wal__span){list.data, list.size}, &states)) {
        import_checkpoint(salvage, session, checkpoint, &states);
    } else {
        fault = "it is not a valid list of files";
    }
    wal__heap_free(salvage->heap, states.items);
    wal__buf_deinit(&list);
    return fault;
}

static void put_checkpoint(struct wal__salvage *salvage, const struct wal__salvage_session *session,
                           struct wal__span id, struct wal__span value)
{
    const char *fault = "its document is not well-formed";
    struct wal__checkpoint checkpoint;

    wal__checkpoint_init(&checkpoint, salvage->heap);
    if (wal__salvage_try(salvage,
                         wal__checkpoint_decode(&checkpoint, id, value, 0, &salvage->error))) {
        fault = copy_checkpoint(salvage, session, &checkpoint);
    }
    if (fault != NULL) {
        wal__salvage_report(salvage, WAL_SALVAGE_CHECKPOINT, session->id, "",
                            "the checkpoint %.*s is lost: its list of files: %s", (int)id.size,
                            (const char *)id.data, fault);
    }
    wal__checkpoint_deinit(&checkpoint);
}

static void delete_checkpoint(struct wal__salvage *salvage,
                              const struct wal__salvage_session *session, struct wal_slice id)
{
    enum wal_status status = wal_checkpoint_delete(session->handle, id, &salvage->error);

    if (status != WAL_ENOTFOUND) {
        salvage->result.documents +=
            wal__salvage_check(salvage, status, WAL_SALVAGE_CHECKPOINT, session->id, "",
                               "the checkpoint %.*s cannot be deleted", WAL_ARG(id));
    }
}

static void set_checkpointing(struct wal__salvage *salvage,
                              const struct wal__salvage_session *session, bool on)
{
    salvage->result.documents += wal__salvage_check(
        salvage, wal_session_set_checkpointing(session->handle, on, &salvage->error),
        WAL_SALVAGE_CHECKPOINT, session->id, "", "checkpointing cannot be switched on or off");
}

/* Where the session is marked as moved when all of it is copied. */
static void put_move(struct wal__salvage *salvage, const struct wal__salvage_session *session,
                     struct wal__span value)
{
    const struct wal__span id = {(const uint8_t *)session->id, strlen(session->id)};
    struct wal_session_move move = WAL_INIT(wal_session_move);

    if (wal__moved_decode(value, id, &move)) {
        salvage->result.documents += wal__salvage_check(
            salvage, wal_session_set_move(session->handle, &move, &salvage->error),
            WAL_SALVAGE_SESSION, session->id, "", "where the session moved to cannot be written");
    }
}

static bool is_key(struct wal__span key, const char *name, size_t size)
{
    return key.size == size - 1 && memcmp(key.data, name, size - 1) == 0;
}

/* Repeats a document whose key is reserved for the engine. */
static void salvage_reserved_doc(struct wal__salvage *salvage,
                                 const struct wal__salvage_session *session,
                                 const struct wal__frame *frame,
                                 const struct wal__doc_record *record)
{
    static const char off[] = "false";
    const struct wal__span key = record->key;
    const struct wal__span value = record->value;
    bool is_put = frame->type == WAL__FRAME_DOC;
    struct wal__span id;

    if (is_key(key, checkpointing_key, sizeof(checkpointing_key))) {
        set_checkpointing(salvage, session,
                          !is_put || value.size != strlen(off) ||
                              memcmp(value.data, off, value.size) != 0);
    } else if (key.size > WAL__CHECKPOINT_PREFIX_SIZE &&
               memcmp(key.data, wal__checkpoint_prefix, WAL__CHECKPOINT_PREFIX_SIZE) == 0) {
        id.data = key.data + WAL__CHECKPOINT_PREFIX_SIZE;
        id.size = key.size - WAL__CHECKPOINT_PREFIX_SIZE;
        if (is_put) {
            put_checkpoint(salvage, session, id, value);
        } else {
            delete_checkpoint(salvage, session, (struct wal_slice){id.data, id.size});
        }
    } else if (is_put && wal__span_equal(key, wal__moved_key())) {
        put_move(salvage, session, value);
    } else if (is_put && is_key(key, rewind_key, sizeof(rewind_key)) &&
               session->rewind_sequence == frame->sequence) {
        wal__salvage_report(salvage, WAL_SALVAGE_CHECKPOINT, session->id, "",
                            "an unfinished rewind was not copied");
    }
}

/* --- heads, documents and redactions -------------------------------------- */

static enum wal_status commit(struct wal__salvage *salvage,
                              const struct wal__salvage_session *session,
                              const struct wal_batch *batch)
{
    const struct wal_append_options options = {
        .struct_size = sizeof(options),
        .durability = WAL_WRITTEN,
    };

    return wal_batch_commit(session->handle, batch, &options, NULL, &salvage->error);
}

/* --- heads ---------------------------------------------------------------- */

static void salvage_head(struct wal__salvage *salvage, const struct wal__frame *frame,
                         const struct wal__head_record *record)
{
    const struct wal__salvage_session *session = salvage_find_writable(salvage, frame->session);
    uint64_t ancestor = frame->parent;
    const char *target = wal__salvage_find_ancestor(salvage, &ancestor);
    const struct wal_head head = {
        .struct_size = sizeof(head),
        .stream = frame->stream,
        .name = wal__text_slice(record->name),
        .note = wal__text_slice(record->note),
        .entry_id = wal__slice_from_text(target),
    };
    const struct wal_batch batch = {
        .struct_size = sizeof(batch),
        .head_count = 1,
        .heads = &head,
    };
    enum wal_status status;

    if (session == NULL) {
        return;
    }
    if (target[0] == '\0' && frame->parent != 0) {
        wal__salvage_report(salvage, WAL_SALVAGE_HEAD, session->id, "",
                            "a move of the head %.*s is not repeated: its "
                            "target, sequence %" PRIu64 ", is lost",
                            WAL_ARG(head.name), frame->parent);
        return;
    }
    status = commit(salvage, session, &batch);
    if (status == WAL_ENOTFOUND && target[0] == '\0') {
        return; /* a missing head need not be removed */
    }
    if (wal__salvage_check(salvage, status, WAL_SALVAGE_HEAD, session->id, "",
                           "the head %.*s cannot be moved", WAL_ARG(head.name)) &&
        ancestor != frame->parent) {
        wal__salvage_report(salvage, WAL_SALVAGE_HEAD, session->id, "",
                            "the target of the head %.*s, sequence %" PRIu64
                            ", is lost; it is moved to %s",
                            WAL_ARG(head.name), frame->parent, target);
    }
}

/* --- documents ------------------------------------------------------------ */

/* Writes a version; of a document of the store if `session` is NULL. */
static enum wal_status put_doc(struct wal__salvage *salvage,
                               const struct wal__salvage_session *session, struct wal_doc *doc)
{
    const struct wal_batch batch = {
        .struct_size = sizeof(batch),
        .document_count = 1,
        .documents = doc,
    };
    bool is_deletion = (doc->flags & WAL_DOC_DELETE) != 0;

    if (session != NULL) {
        return commit(salvage, session, &batch);
    }
    doc->flags = 0;
    return is_deletion ? wal_doc_delete(salvage->out, NULL, doc, NULL, &salvage->error)
                       : wal_doc_put(salvage->out, NULL, doc, NULL, &salvage->error);
}

static void salvage_doc(struct wal__salvage *salvage, const struct wal__frame *frame,
                        const struct wal__doc_record *record)
{
    bool is_store = frame->session == WAL__STORE_NUMBER;
    const struct wal__salvage_session *session =
        is_store ? NULL : salvage_find_writable(salvage, frame->session);
    struct wal_doc doc = {
        .struct_size = sizeof(doc),
        .flags = frame->type == WAL__FRAME_DOC_DELETE ? WAL_DOC_DELETE : 0U,
        .key = wal__text_slice(record->key),
        .value = wal__text_slice(record->value),
    };

    if (session == NULL && !is_store) {
        return;
    }
    if (!is_store && record->key.size > 0 && record->key.data[0] == 0) {
        salvage_reserved_doc(salvage, session, frame, record);
        return;
    }
    salvage->result.documents += wal__salvage_check(
        salvage, put_doc(salvage, session, &doc), WAL_SALVAGE_DOCUMENT, is_store ? "" : session->id,
        "", "a version of the document %.*s, sequence %" PRIu64 ", cannot be written",
        WAL_ARG(doc.key), frame->sequence);
}

/* --- redactions ----------------------------------------------------------- */

/* Returns whether the session sees the entry and its content. */
static bool is_visible(const struct wal__salvage_session *session, struct wal_slice id)
{
    struct wal_entry entry = WAL_INIT(wal_entry);
    struct wal_entry_cursor *cursor = NULL;
    bool visible = false;

    if (wal_entry_cursor_open(session->handle, NULL, &cursor, NULL) == WAL_OK) {
        visible = wal_entry_cursor_get(cursor, id, &entry, NULL) == WAL_OK;
        wal_entry_cursor_close(cursor);
    }
    return visible;
}

/* Redacts an entry in a session that sees it. `is_lost`: its redaction is, and was not left out
 * with a deleted session. */
static void redact_in_session(struct wal__salvage *salvage, uint32_t number,
                              const struct wal__redact_record *record, bool is_lost)
{
    const struct wal__salvage_session *session = wal__salvage_find_session(salvage, number);
    const struct wal_slice target = wal__text_slice(record->target_id);
    const struct wal_slice entry = wal__text_slice(record->entry_id);
    char id[WAL_ID_SIZE];

    if (salvage->failed != WAL_OK || session == NULL || session->handle == NULL ||
        session->is_removed || !is_visible(session, target)) {
        return;
    }
    snprintf(id, sizeof(id), "%.*s", WAL_ARG(target));
    if (wal__salvage_check(
            salvage,
            wal_session_redact(session->handle, target, wal__text_slice(record->reason), NULL,
                               &salvage->error),
            WAL_SALVAGE_ENTRY, session->id, id,
            "its redaction %.*s is lost, and it cannot be redacted", WAL_ARG(entry)) &&
        is_lost) {
        wal__salvage_report(salvage, WAL_SALVAGE_ENTRY, session->id, id,
                            "its redaction %.*s is lost; it was redacted again", WAL_ARG(entry));
    }
}

/* A redaction is an entry, before its REDACT record in the log, and appending it hides its target
 * again. If that entry is lost the target is redacted again, so that OUT shows no hidden
 * content. */
static void salvage_redact(struct wal__salvage *salvage, const struct wal__frame *frame,
                           const struct wal__redact_record *record)
{
    const struct wal__salvage_session *holder = wal__salvage_find_session(salvage, record->session);
    bool is_lost = holder != NULL && holder->is_needed;

    redact_in_session(salvage, record->session, record, is_lost);
    redact_in_session(salvage, frame->session, record, is_lost);
}

/* Undoes a redaction again, in the session that has the entry. One that is not redacted in OUT
 * needs nothing: its redaction is lost too. */
static void salvage_restore(struct wal__salvage *salvage, const struct wal__frame *frame)
{
    const struct wal__salvage_session *session = wal__salvage_find_session(salvage, frame->session);
    uint64_t sequence = frame->parent;
    const char *id = wal__salvage_find_ancestor(salvage, &sequence);
    enum wal_status status = WAL_ENOTFOUND;

    if (session != NULL && session->handle != NULL && !session->is_removed &&
        sequence == frame->parent) {
        status = wal_session_unredact(session->handle, wal__slice_from_text(id), &salvage->error);
    }
    if (status != WAL_ENOTFOUND) {
        (void)wal__salvage_check(salvage, status, WAL_SALVAGE_ENTRY, session->id, id,
                                 "it stays redacted");
    }
}

/* Returns whether a session is one, or a fork of it. */
static bool inherits(const struct wal__salvage *salvage, const struct wal__salvage_session *session,
                     uint32_t number)
{
    /* A source has a lower number. */
    while (session != NULL && session->number > number && session->fork_source < session->number) {
        session = wal__salvage_find_session(salvage, session->fork_source);
    }
    return session != NULL && session->number == number;
}

/* Redacts the entries without content that no redaction hides. Call it after the last record. */
static void salvage_redact_erased(struct wal__salvage *salvage)
{
    const struct wal__salvage_erased *erased =
        (const struct wal__salvage_erased *)(const void *)salvage->erased.data;
    size_t count = salvage->erased.size / sizeof(*erased);

    for (size_t i = 0; i < count; i++) {
        uint64_t sequence = erased[i].sequence;
        const char *id = wal__salvage_find_ancestor(salvage, &sequence);
        const struct wal__redact_record record = {
            .entry_id = {(const uint8_t *)"record", 6},
            .target_id = {(const uint8_t *)id, strlen(id)},
            .reason = {(const uint8_t *)"", 0},
        };

        for (uint32_t k = 0; k < salvage->session_count && sequence == erased[i].sequence &&
                             salvage->failed == WAL_OK;
             k++) {
            const struct wal__salvage_session *session = salvage->sessions[k];

            if (inherits(salvage, session, erased[i].session)) {
                redact_in_session(salvage, session->number, &record, true);
            }
        }
    }
}

/* --- the second pass over the log ----------------------------------------- */

/* Repeats a record in OUT; false if it is not well-formed. */
static bool copy_by_type(struct wal__salvage *salvage, const struct wal__damaged_segment *segment,
                         const struct wal__frame *frame, struct wal__span payload)
{
    union {
        struct wal__redact_record redact;
        struct wal__fork_record fork;
        struct wal__head_record head;
        struct wal__doc_record doc;
    } record;
    struct wal__salvage_session *session;

    switch (frame->type) {
    case WAL__FRAME_SESSION:
        session = wal__salvage_get_session(salvage, frame->session);
        if (session == NULL || !wal__salvage_keep_session(salvage, segment, session, payload)) {
            return false;
        }
        keep_session(salvage, session);
        return true;
    case WAL__FRAME_FORK:
        if (wal__fork_record_decode(payload, &record.fork) != WAL__FMT_OK) {
            return false;
        }
        salvage_fork(salvage, frame, &record.fork);
        return true;
    case WAL__FRAME_HEAD:
        if (wal__head_record_decode(payload, &record.head) != WAL__FMT_OK) {
            return false;
        }
        salvage_head(salvage, frame, &record.head);
        return true;
    case WAL__FRAME_DOC:
    case WAL__FRAME_DOC_DELETE:
        if (wal__doc_record_decode(payload, &record.doc) != WAL__FMT_OK) {
            return false;
        }
        salvage_doc(salvage, frame, &record.doc);
        return true;
    case WAL__FRAME_REDACT:
        if (wal__redact_record_decode(payload, &record.redact) != WAL__FMT_OK) {
            return false;
        }
        salvage_redact(salvage, frame, &record.redact);
        return true;
    case WAL__FRAME_RESTORE:
        salvage_restore(salvage, frame);
        return true;
    case WAL__FRAME_TOMBSTONE:
        salvage_delete(salvage, frame->session);
        return true;
    default:
        return true;
    }
}

static void report_compressed(struct wal__salvage *salvage, const struct wal__frame *frame)
{
    const struct wal__salvage_session *session =
        frame->session == WAL__STORE_NUMBER ? NULL : salvage_open_session(salvage, frame->session);

    wal__salvage_report(salvage, WAL_SALVAGE_SESSION, session == NULL ? "" : session->id, "",
                        "the record of sequence %" PRIu64 " is compressed and was not read",
                        frame->sequence);
}

static void report_malformed(struct wal__salvage *salvage,
                             const struct wal__damaged_segment *segment,
                             const struct wal__frame *frame, uint64_t offset)
{
    const struct wal_salvage_report report = {
        .struct_size = sizeof(report),
        .kind = WAL_SALVAGE_RANGE,
        .first_sequence = frame->sequence,
        .last_sequence = frame->sequence,
        .file = wal__slice_from_text(segment->name),
        .offset = offset,
        .size = wal__frame_total_size(frame->stored_size),
        .reason = WAL_STR("the record is not well-formed"),
    };

    wal__salvage_send_report(salvage, &report);
}

static enum wal_status copy_record(void *ctx, const struct wal__damaged_segment *segment,
                                   const struct wal__frame *frame, uint64_t offset,
                                   const uint8_t *bytes)
{
    const struct wal__span payload = {bytes, frame->stored_size};
    struct wal__salvage *salvage = ctx;
    const struct wal__salvage_session *session = wal__salvage_find_session(salvage, frame->session);

    if (frame->session == 0 ||
        (session != NULL && !session->is_needed && frame->session != WAL__STORE_NUMBER)) {
        return salvage->failed;
    }
    if ((frame->flags & WAL__FRAME_LZ4) != 0) {
        report_compressed(salvage, frame);
        return salvage->failed;
    }
    if (frame->type == WAL__FRAME_ENTRY) {
        salvage_entry(salvage, frame, bytes);
        return salvage->failed;
    }
    salvage_flush(salvage);
    if (salvage->failed == WAL_OK && !copy_by_type(salvage, segment, frame, payload)) {
        report_malformed(salvage, segment, frame, offset);
    }
    return salvage->failed;
}

/* Copies the log from the oldest segment to the newest. */
static void copy_log(struct wal__salvage *salvage)
{
    const struct wal__damaged_visitor visitor = {
        .ctx = salvage, .record = copy_record, .progress = wal__salvage_progress};
    struct wal__damaged_store *damaged = &salvage->damaged;

    for (struct wal__damaged_segment *segment = wal__damaged_first(&damaged->log);
         segment != NULL && salvage->failed == WAL_OK; segment = segment->next) {
        uint32_t found = damaged->damage_count;
        enum wal_status status = wal__damaged_scan(damaged, segment, &visitor);

        if (status != WAL_OK) {
            wal__salvage_fail(salvage, status, NULL);
            return;
        }
        wal__salvage_report_damage(salvage, found);
        salvage_flush(salvage);
    }
}

/* --- OUT ------------------------------------------------------------------ */

/* Returns whether the directory of `out` is the store or below it. */
static bool is_inside(const struct wal__io *io, const char *out, const struct wal__io_stat *store)
{
    const char *slash = strrchr(out, '/');
    char path[WAL__PATH_MAX];
    struct wal__io_stat last = {.inode = 0};
    struct wal__io_stat at;
    int err = 0;
    size_t size = slash == NULL ? 0 : (size_t)(slash - out) + 1;

    if (size + 2 > sizeof(path)) {
        return false;
    }
    memcpy(path, out, size);
    memcpy(path + size, ".", 2);
    size++;
    while (io->path_stat(io->ctx, size == 2 && path[0] == '/' ? "/" : path, &at, &err) == WAL_OK) {
        if (at.device == store->device && at.inode == store->inode) {
            return true;
        }
        if ((at.device == last.device && at.inode == last.inode) ||
            size + sizeof("/..") > sizeof(path)) {
            return false; /* the root directory is its own parent */
        }
        last = at;
        memcpy(path + size, "/..", sizeof("/.."));
        size += strlen("/..");
    }
    return false;
}

/* Creates the directory `out`; *made identifies it. */
static enum wal_status make_output(const struct wal__io *io, const char *path, const char *out,
                                   struct wal__io_stat *made, struct wal_error *error)
{
    struct wal__io_stat store;
    enum wal_status status;
    int err = 0;

    status = io->path_stat(io->ctx, path, &store, &err);
    if (status != WAL_OK) {
        return wal__fail_at(error, status, err, path, 0, "cannot read the store");
    }
    if (io->path_stat(io->ctx, out, made, &err) == WAL_ENOTFOUND) {
        if (is_inside(io, out, &store)) {
            return wal__fail(error, WAL_EINVAL,
                             "is inside the store that is salvaged; choose "
                             "another directory");
        }
        status = io->make_directory(io->ctx, out, &err);
        if (status == WAL_OK) {
            status = io->path_stat(io->ctx, out, made, &err);
        }
    } else {
        status = WAL_EEXISTS;
    }
    if (status == WAL_EEXISTS) {
        return wal__fail(error, status, "exists; salvage needs a directory that does not exist");
    }
    return status == WAL_OK ? WAL_OK
                            : wal__fail_at(error, status == WAL_EREADONLY ? WAL_EACCESS : status,
                                           err, out, 0, "cannot be created");
}

/* --- the salvage ---------------------------------------------------------- */

/* Copies everything readable to OUT and closes it. */
static void write_output(struct wal__salvage *salvage)
{
    struct wal__content_guard guard = {NULL, 0};
    enum wal_status status =
        wal__content_guard_enter(&guard, &salvage->out->core.control, &salvage->error);

    if (status != WAL_OK) {
        wal__salvage_fail(salvage, status, &salvage->error);
    }
    wal__salvage_blobs(salvage);
    copy_log(salvage);
    salvage_redact_erased(salvage);
    salvage_finish_sessions(salvage);
    wal__salvage_count_lost(salvage);
    if (salvage->failed == WAL_OK) {
        status = wal_sync(salvage->out, &salvage->error);
        if (status != WAL_OK) {
            wal__salvage_fail(salvage, status, &salvage->error);
        }
    }
    salvage_close_sessions(salvage);
    wal__content_guard_leave(&guard);
    status = wal_close(salvage->out, &salvage->error);
    if (status != WAL_OK) {
        wal__salvage_fail(salvage, status, &salvage->error);
    }
}

/* Reads the log, opens OUT, which exists and is empty, and fills it. */
static void run(struct wal__salvage *salvage, const char *out)
{
    const struct wal__damaged_store *damaged = &salvage->damaged;
    const struct wal__env *env = &damaged->env;
    const uint32_t align = damaged->group_align;
    const struct wal_open_options options = {
        .struct_size = sizeof(options),
        .flags = WAL_OPEN_CREATE | WAL_OPEN_EXCLUSIVE | salvage->options->flags,
        .group_align = align > WAL__FRAME_ALIGN ? align : 0,
        .key = salvage->options->key,
    };
    enum wal_status status;

    for (const struct wal__damaged_segment *segment = damaged->log.tail; segment != NULL;
         segment = segment->previous) {
        salvage->total += 2 * segment->size;
    }
    for (const struct wal__damaged_segment *segment = damaged->pack.tail; segment != NULL;
         segment = segment->previous) {
        salvage->total += segment->size;
    }
    wal__salvage_plan(salvage);
    if (salvage->failed != WAL_OK) {
        return;
    }
    status = wal__store_open(out, &options, env->heap, env->io, &salvage->out, &salvage->error);
    if (status != WAL_OK) {
        wal__salvage_fail(salvage, status, &salvage->error);
        return;
    }
    salvage->out_blobs = &salvage->out->core.blobs;
    write_output(salvage);
}

/* *salvage is zero. */
static void init(struct wal__salvage *salvage, const char *out,
                 const struct wal_salvage_options *options, const struct wal__heap *heap,
                 const struct wal__io *io)
{
    salvage->options = options;
    salvage->heap = heap;
    salvage->why.struct_size = sizeof(salvage->why);
    salvage->error.struct_size = sizeof(salvage->error);
    salvage->result.struct_size = sizeof(salvage->result);
    wal__spill_init(&salvage->spill, heap, out);
    /* Files are not encrypted. */
    salvage->large_heap =
        io == &wal__io_posix && options->key == NULL ? &salvage->spill.heap : salvage->heap;
    wal__hashmap_init(&salvage->session_map, heap);
    wal__hashmap_init(&salvage->lost_map, heap);
    wal__hashmap_init(&salvage->lost_blobs, heap);
    wal__buf_init(&salvage->scanned, heap);
    wal__buf_init(&salvage->written_ids, salvage->large_heap);
    wal__buf_init(&salvage->erased, heap);
    wal__buf_init(&salvage->batch.bytes, heap);
    wal__buf_init(&salvage->content, heap);
    wal__buf_init(&salvage->base, heap);
}

enum wal_status wal__salvage(const char *path, const char *out,
                             const struct wal_salvage_options *options,
                             const struct wal__heap *heap, const struct wal__io *io,
                             struct wal_salvage_result *result, struct wal_error *error)
{
    struct wal__env env = {.heap = heap, .io = io, .read_only = true};
    struct wal__salvage *salvage = wal__heap_zalloc(heap, sizeof(*salvage));
    struct wal__io_stat made;
    struct wal__io_stat stat;
    enum wal_status status;
    int err = 0;

    if (salvage == NULL) {
        return wal__no_memory(error);
    }
    init(salvage, out, options, heap, io);
    snprintf(env.root, sizeof(env.root), "%s", path);
    status = wal__damaged_open_keys(&env, options->key, error);
    if (status == WAL_OK) {
        status = wal__damaged_open(&salvage->damaged, &env, error);
    }
    if (status == WAL_OK && salvage->damaged.is_encrypted && env.keyring == NULL) {
        status = wal__fail_at(error, WAL_EKEY, 0, path, 0,
                              "the store is encrypted: its key is needed to salvage it");
    }
    if (status == WAL_OK) {
        status = make_output(io, path, out, &made, error);
    }
    if (status == WAL_OK) {
        run(salvage, out);
        status = salvage->failed;
        if (status != WAL_OK) {
            wal__error_copy(error, &salvage->why);
            /* If it is still the directory that was made. */
            if (io->path_stat(io->ctx, out, &stat, &err) == WAL_OK && stat.device == made.device &&
                stat.inode == made.inode) {
                wal__copy_remove_store(io, out);
            }
        } else {
            *result = salvage->result;
        }
    }
    wal__buf_deinit(&salvage->batch.bytes);
    wal__buf_deinit(&salvage->erased);
    wal__salvage_ancestors_deinit(salvage);
    wal__salvage_blobs_deinit(salvage);
    wal__salvage_plan_deinit(salvage);
    wal__spill_deinit(&salvage->spill);
    wal__damaged_close(&salvage->damaged);
    wal__keyring_destroy(env.keyring);
    wal__heap_free(heap, salvage);
    return status;
}

enum wal_status wal_salvage(const char *path, const char *out,
                            const struct wal_salvage_options *options,
                            struct wal_salvage_result *result, struct wal_error *error)
{
    const struct wal__struct *type = WAL__STRUCT(wal_salvage_result);
    struct wal_salvage_result done = WAL_INIT(wal_salvage_result);
    struct wal_salvage_options own;
    struct wal_key key;
    enum wal_status status =
        wal__struct_load(WAL__STRUCT(wal_salvage_options), &own, options, error);

    if (status == WAL_OK && own.key != NULL) {
        status = wal__struct_load(WAL__STRUCT(wal_key), &key, own.key, error);
        own.key = &key;
    }
    if (status == WAL_OK && own.key != NULL) {
        status = wal__key_check(own.key, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    if (path == NULL || out == NULL || path[0] == '\0' || out[0] == '\0') {
        return wal__invalid(error, "a path is null or empty");
    }
    if (strlen(path) + WAL__DAMAGED_NAME_SIZE >= WAL__PATH_MAX ||
        strlen(out) + WAL__DAMAGED_NAME_SIZE >= WAL__PATH_MAX) {
        return wal__fail(error, WAL_ETOOBIG, "a path is too long");
    }
    if ((own.flags & ~(uint32_t)WAL_OPEN_NETWORK_FS) != 0) {
        return wal__invalid(error, "the flags of the salvage are %#x", own.flags);
    }
    status = wal__struct_check_optional(type, result, error);
    if (status != WAL_OK) {
        return status;
    }
    status = wal__salvage(path, out, &own, &wal__heap_libc, &wal__io_posix, &done, error);
    if (status == WAL_OK) {
        wal__struct_store(type, result, &done);
    }
    return status;
}
