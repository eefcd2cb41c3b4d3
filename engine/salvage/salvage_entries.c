/*
 * salvage_entries.c - appends the entries of the damaged store to OUT, in
 * batches of one session.
 *
 * Invariant: an entry has its old parent, its nearest surviving ancestor as
 * parent, or is a root; a change of parent is reported. The engine refuses an
 * entry that refers to a missing one: such an entry is kept as a line, whose
 * content the engine does not interpret.
 */
#include <inttypes.h>
#include <string.h>

#include "agentwal/blob.h"
#include "engine/salvage/salvage.h"
#include "engine/store/input_text.h"
#include "engine/transfer/record_copy.h"
#include "format/bytes/assert.h"

enum {
    BATCH_SIZE = 1024 * 1024 /* bytes */
};

static enum wal_status append(struct wal__salvage *salvage,
                              const struct wal__salvage_session *session,
                              const struct wal_entry *entries, uint32_t count)
{
    const struct wal_append_options options = {
        .struct_size = sizeof(options),
        .durability = WAL_WRITTEN,
    };

    return wal_append(session->handle, entries, count, &options, NULL,
                      &salvage->error);
}

/* --- payloads of the blob stream ------------------------------------------ */

static enum wal_status read_blob(struct wal__salvage *salvage,
                                 const struct wal__digest *digest,
                                 uint8_t *payload, uint64_t size)
{
    struct wal_blob *blob = NULL;
    uint64_t got = 0;
    enum wal_status status =
        wal_blob_open(salvage->out, digest->bytes, &blob, &salvage->error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal_blob_read(blob, 0, payload, size, &got, &salvage->error);
    wal_blob_close(blob);
    WAL__ASSERT(status != WAL_OK || got == size); /* it was checked */
    return status;
}

/* Reads an entry's payload from OUT into memory of large_heap. NULL: it is
 * lost, *reason says why; or the salvage failed. */
static uint8_t *load_payload(struct wal__salvage *salvage,
                             const struct wal__entry_record *record,
                             const char **reason)
{
    struct wal__digest digest;
    enum wal_status status;
    uint8_t *payload;

    memcpy(digest.bytes, record->digest, WAL__DIGEST_SIZE);
    *reason =
        wal__salvage_check_content(salvage, &digest, record->payload_size);
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

static void fill_entry(struct wal_entry *entry, const struct wal__frame *frame,
                       const struct wal__entry_record *record)
{
    wal__copy_entry(frame, record, false, entry);
    if (record->is_erased && wal__copy_refers(frame->kind)) {
        /* Its redaction hides it; what it referred to is gone. */
        entry->flags |= WAL_ENTRY_LINE;
    }
    if (frame->kind == WAL__KIND_MESSAGE_DELTA_BATCH &&
        (frame->flags & WAL__FRAME_PROVISIONAL) == 0) {
        /* Others may be under it: as a line it is not provisional. */
        entry->flags |= WAL_ENTRY_LINE;
    }
}

/* Fills an entry of the batch from its record. False: its payload is lost, and
 * the entry with it; or the salvage failed. */
static bool build_entry(struct wal__salvage *salvage,
                        const struct wal__salvage_session *session, uint32_t i)
{
    struct wal__salvage_batch *batch = &salvage->batch;
    const struct wal__frame *frame = &batch->frames[i];
    const struct wal__span bytes = {batch->bytes.data + batch->offsets[i],
                                    frame->stored_size};
    struct wal__entry_record record;
    uint64_t sequence = frame->sequence;
    const char *reason;
    enum wal__fmt fmt = wal__entry_record_decode(bytes, &record);

    WAL__ASSERT(fmt == WAL__FMT_OK); /* wal__salvage_entry decoded it */
    fill_entry(&batch->entries[i], frame, &record);
    batch->payloads[i] = NULL;
    if (record.digest == NULL) {
        return true;
    }
    batch->payloads[i] = load_payload(salvage, &record, &reason);
    if (batch->payloads[i] != NULL) {
        batch->entries[i].payload =
            (struct wal_slice){batch->payloads[i], record.payload_size};
        return true;
    }
    wal__salvage_report(salvage, WAL_SALVAGE_ENTRY, session->id,
                        wal__salvage_find_ancestor(salvage, &sequence),
                        "the entry is lost: its payload cannot be read: %s",
                        reason);
    wal__salvage_remove_written(salvage, frame->sequence, frame->parent);
    return false;
}

/* Builds the entries; those that are lost leave the batch. */
static void build_batch(struct wal__salvage *salvage,
                        const struct wal__salvage_session *session)
{
    struct wal__salvage_batch *batch = &salvage->batch;
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
static void set_parent(const struct wal__salvage *salvage, uint32_t i,
                       uint64_t *parent, struct wal_entry *entry)
{
    const char *id;

    *parent = salvage->batch.frames[i].parent;
    id = wal__salvage_find_ancestor(salvage, parent);
    entry->parent_id = wal__salvage_text(id);
    if (id[0] == '\0') {
        *parent = 0;
        entry->flags |= WAL_ENTRY_ROOT;
    }
}

static void record_appended(struct wal__salvage *salvage,
                            const struct wal__salvage_session *session,
                            uint32_t i, uint64_t parent)
{
    const struct wal__frame *frame = &salvage->batch.frames[i];
    uint64_t own = frame->sequence;

    salvage->result.entries++;
    if (parent != frame->parent) {
        wal__salvage_report_reparented(
            salvage, session->id, wal__salvage_find_ancestor(salvage, &own),
            frame->parent, salvage->batch.entries[i].parent_id.data);
    }
}

/* Appends an entry alone after its batch was refused. */
static void append_alone(struct wal__salvage *salvage,
                         const struct wal__salvage_session *session, uint32_t i)
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
        entry->parent_id = wal__salvage_text("");
        entry->flags |= WAL_ENTRY_ROOT;
        status = append(salvage, session, entry, 1);
    }
    if ((status == WAL_ENOTFOUND || status == WAL_EINVAL) &&
        (entry->flags & WAL_ENTRY_LINE) == 0 && wal__copy_refers(frame->kind)) {
        entry->flags |= WAL_ENTRY_LINE;
        status = append(salvage, session, entry, 1);
        if (status == WAL_OK) {
            wal__salvage_report(
                salvage, WAL_SALVAGE_ENTRY, session->id, id,
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

static void append_batch(struct wal__salvage *salvage,
                         const struct wal__salvage_session *session)
{
    struct wal__salvage_batch *batch = &salvage->batch;
    uint64_t parents[WAL__SALVAGE_BATCH];
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

static void empty_batch(struct wal__salvage *salvage)
{
    struct wal__salvage_batch *batch = &salvage->batch;

    for (uint32_t i = 0; i < batch->count; i++) {
        wal__heap_free(salvage->large_heap, batch->payloads[i]);
    }
    batch->count = 0;
    batch->size = 0;
    batch->bytes.size = 0;
}

void wal__salvage_flush(struct wal__salvage *salvage)
{
    uint32_t count = salvage->batch.count;
    const struct wal__salvage_session *session;

    if (count == 0 || salvage->failed != WAL_OK) {
        return;
    }
    session = wal__salvage_open_session(salvage, salvage->batch.session);
    if (session != NULL && session->is_removed) {
        wal__salvage_report(salvage, WAL_SALVAGE_SESSION, session->id, "",
                            "%" PRIu32 " %s after the session's deletion, left "
                            "out",
                            count, count == 1 ? "entry is" : "entries are");
    } else if (session != NULL && session->handle != NULL) {
        append_batch(salvage, session);
        empty_batch(salvage);
        return;
    } /* A session that could not be created is reported. */
    salvage->batch.count = 0; /* no payload was loaded */
    empty_batch(salvage);
}

void wal__salvage_entry(struct wal__salvage *salvage,
                        const struct wal__frame *frame, const uint8_t *payload)
{
    const struct wal__span bytes = {payload, frame->stored_size};
    const struct wal__salvage_erased erased = {frame->sequence, frame->session};
    struct wal__salvage_batch *batch = &salvage->batch;
    struct wal__entry_record record;

    if (batch->session != frame->session ||
        batch->count == WAL__SALVAGE_BATCH || batch->size >= BATCH_SIZE) {
        wal__salvage_flush(salvage);
    }
    if (wal__entry_record_decode(bytes, &record) != WAL__FMT_OK) {
        const struct wal__salvage_session *session =
            wal__salvage_open_session(salvage, frame->session);

        wal__salvage_report(
            salvage, WAL_SALVAGE_ENTRY, session == NULL ? "" : session->id, "",
            "the entry of sequence %" PRIu64 " is not well-formed",
            frame->sequence);
        salvage->result.lost_entries++;
        return;
    }
    batch->session = frame->session;
    batch->frames[batch->count] = *frame;
    batch->offsets[batch->count] = batch->bytes.size;
    if (wal__buf_append(&batch->bytes, bytes.data, bytes.size) != WAL_OK) {
        wal__salvage_fail(salvage, WAL_ENOMEM, NULL);
        return;
    }
    batch->payloads[batch->count++] = NULL;
    batch->size += frame->stored_size;
    batch->size += record.digest != NULL ? record.payload_size : 0;
    wal__salvage_add_written(salvage, frame->sequence, record.id);
    if (record.is_erased &&
        wal__buf_append(&salvage->erased, &erased, sizeof(erased)) != WAL_OK) {
        wal__salvage_fail(salvage, WAL_ENOMEM, NULL);
    }
}
