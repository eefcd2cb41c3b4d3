/*
 * transfer_entries.c - appends the entries of a session to its copy, in
 * batches.
 *
 * Invariant: the content of an entry that is redacted in `from` is not copied.
 */
#include <string.h>

#include "engine/base/error.h"
#include "engine/store/input_text.h"
#include "engine/store/payload.h"
#include "engine/transfer/record_copy.h"
#include "engine/transfer/transfer.h"
#include "engine/write/write_batch.h"
#include "format/bytes/assert.h"

enum {
    BATCH_SIZE = 1024 * 1024, /* bytes */
    ATTEMPTS_MAX = 1000
};

/* --- committing ----------------------------------------------------------- */

enum wal_status wal__transfer_commit(struct wal_session *session,
                                     const struct wal_batch *batch,
                                     uint32_t *appended,
                                     struct wal_error *error)
{
    const struct wal_append_options options = {
        .struct_size = sizeof(options),
        .durability = WAL_WRITTEN,
    };
    uint64_t looked = 0;
    bool again = true;
    enum wal_status status = WAL_OK;

    for (int i = 0; i < ATTEMPTS_MAX && again; i++) {
        struct wal__op *op = NULL;

        status = wal__batch_create(session, batch, &options, WAL__BATCH_COPY,
                                   &op, error);
        if (status != WAL_OK) {
            return status;
        }
        status = wal__session_commit(session->core, op, error);
        if (appended != NULL) {
            *appended = op->result.appended;
        }
        again = (status == WAL_ECONFLICT &&
                 ((const struct wal__batch *)op->request)->stale_read) ||
                wal__core_invalidate_derived(session->core, status, &looked);
        wal__op_release(op);
    }
    return status;
}

/* --- the batch ------------------------------------------------------------ */

/* Appends what a hidden redaction hides: readers follow its REDACT record. */
static enum wal_status add_target(struct wal__transfer *transfer,
                                  const struct wal__frame *frame,
                                  const struct wal__entry_record *entry)
{
    const struct wal__transfer_redaction *items =
        (const void *)transfer->redactions.data;
    size_t count = transfer->redactions.size / sizeof(*items);
    enum wal_status status = WAL_OK;

    for (size_t i = 0; i < count && frame->kind == WAL__KIND_REDACTION; i++) {
        struct wal__redact_record record;

        if (items[i].id_hash != frame->id_hash) {
            continue;
        }
        status =
            wal__transfer_read_redact(transfer, items[i].position, &record);
        if (status != WAL_OK) {
            return status;
        }
        if (record.session == frame->session &&
            wal__span_equal(record.entry_id, entry->id)) {
            status = wal__copy_redaction(&record, &transfer->batch.remains);
            return status == WAL_OK ? WAL_OK : wal__no_memory(&transfer->error);
        }
    }
    return status;
}

/* Appends what readers follow in the payload of a hidden entry to `remains`,
 * or an empty object. */
static enum wal_status add_remains(struct wal__transfer *transfer,
                                   const struct wal__frame *frame,
                                   const struct wal__entry_record *record,
                                   struct wal_entry *entry, size_t *offset)
{
    struct wal__buf *remains = &transfer->batch.remains;
    enum wal_status status;

    *offset = remains->size;
    status = add_target(transfer, frame, record);
    if (status != WAL_OK) {
        return status;
    }
    status = wal__payload_append_remains(record->payload, frame->kind, remains);
    if (status == WAL_OK && remains->size == *offset) {
        status = wal__buf_append(remains, "{}", 2);
    }
    entry->payload.size = remains->size - *offset;
    return status == WAL_OK ? WAL_OK : wal__no_memory(&transfer->error);
}

static enum wal_status build_entry(struct wal__transfer *transfer, uint32_t i,
                                   size_t *remains)
{
    struct wal__transfer_batch *batch = &transfer->batch;
    const struct wal__frame *frame = &batch->frames[i];
    const struct wal__span bytes = {batch->bytes.data + batch->offsets[i],
                                    frame->stored_size};
    struct wal_entry *entry = &batch->entries[i];
    struct wal__entry_record record;
    bool is_hidden = wal__transfer_is_hidden(transfer, frame->sequence);
    enum wal__fmt fmt = wal__entry_record_decode(bytes, &record);
    enum wal_status status;

    WAL__ASSERT(fmt == WAL__FMT_OK); /* wal__transfer_entry decoded it */
    wal__copy_entry(frame, &record, is_hidden, entry);
    *remains = SIZE_MAX;
    if (batch->parents[i] == SIZE_MAX) {
        entry->flags |= WAL_ENTRY_ROOT;
    } else {
        const char *id =
            (const char *)batch->parent_ids.data + batch->parents[i];

        entry->parent_id = (struct wal_slice){id, strlen(id)};
    }
    if (is_hidden || record.is_erased) {
        return add_remains(transfer, frame, &record, entry, remains);
    }
    if (record.digest == NULL) {
        return WAL_OK;
    }
    status = wal__transfer_payload(transfer, &record, &batch->payloads[i]);
    entry->payload =
        (struct wal_slice){batch->payloads[i], record.payload_size};
    return status;
}

/* Fills the entries of the batch. */
static enum wal_status build_entries(struct wal__transfer *transfer)
{
    struct wal__transfer_batch *batch = &transfer->batch;
    size_t remains[WAL__TRANSFER_BATCH];
    enum wal_status status = WAL_OK;

    batch->remains.size = 0;
    for (uint32_t i = 0; i < batch->count && status == WAL_OK; i++) {
        status = build_entry(transfer, i, &remains[i]);
    }
    for (uint32_t i = 0; i < batch->count && status == WAL_OK; i++) {
        if (remains[i] != SIZE_MAX) {
            batch->entries[i].payload.data = batch->remains.data + remains[i];
        }
    }
    return status;
}

static void empty_batch(struct wal__transfer *transfer)
{
    struct wal__transfer_batch *batch = &transfer->batch;

    for (uint32_t i = 0; i < batch->count; i++) {
        wal__heap_free(transfer->large_heap, batch->payloads[i]);
    }
    batch->session = NULL;
    batch->count = 0;
    batch->size = 0;
    batch->bytes.size = 0;
    batch->parent_ids.size = 0;
}

/* Commits the entries that wait, all of this session or none, with heads and a
 * change. */
static void commit_parts(struct wal__transfer *transfer,
                         struct wal__transfer_session *session,
                         const struct wal_head *heads, uint32_t head_count,
                         const struct wal_session_change *change)
{
    struct wal__transfer_batch *waiting = &transfer->batch;
    const struct wal_batch batch = {
        .struct_size = sizeof(batch),
        .entry_count = waiting->count,
        .entries = waiting->entries,
        .head_count = head_count,
        .heads = heads,
        .change = change,
    };
    uint32_t appended = 0;
    enum wal_status status = build_entries(transfer);

    if (status == WAL_OK &&
        (batch.entry_count > 0 || head_count > 0 || change != NULL)) {
        status = wal__transfer_commit(session->handle, &batch, &appended,
                                      &transfer->error);
    }
    if (wal__transfer_try(transfer, session, status)) {
        session->entries += appended;
        transfer->result.entries += appended;
    }
    empty_batch(transfer);
}

void wal__transfer_flush(struct wal__transfer *transfer)
{
    struct wal__transfer_session *session = transfer->batch.session;

    if (session == NULL) {
        return;
    }
    if (wal__transfer_goes_on(transfer, session)) {
        commit_parts(transfer, session, NULL, 0, NULL);
    } else {
        empty_batch(transfer);
    }
}

void wal__transfer_flush_with(struct wal__transfer *transfer,
                              struct wal__transfer_session *session,
                              const struct wal_head *heads, uint32_t head_count,
                              const struct wal_session_change *change)
{
    if (transfer->batch.session != session) {
        wal__transfer_flush(transfer);
    }
    while (head_count > WAL__HEADS_MAX &&
           wal__transfer_goes_on(transfer, session)) {
        commit_parts(transfer, session, heads, WAL__HEADS_MAX, NULL);
        heads += WAL__HEADS_MAX;
        head_count -= WAL__HEADS_MAX;
    }
    if (wal__transfer_goes_on(transfer, session)) {
        commit_parts(transfer, session, heads, head_count, change);
    }
}

/* Adds the id of an entry's parent to the batch. */
static enum wal_status add_parent(struct wal__transfer *transfer,
                                  const struct wal__transfer_session *session,
                                  const struct wal__frame *frame,
                                  size_t *offset)
{
    struct wal__transfer_id *id = &transfer->from_id;
    struct wal__buf *ids = &transfer->batch.parent_ids;
    enum wal_status status;

    *offset = SIZE_MAX;
    if (frame->parent == 0) {
        return WAL_OK;
    }
    status = wal__transfer_read_id(transfer->from, session->number,
                                   frame->stream, frame->parent,
                                   &transfer->scratch, id, &transfer->error);
    if (status != WAL_OK) {
        return status;
    }
    *offset = ids->size;
    return wal__buf_append(ids, id->bytes, id->size + 1) == WAL_OK
               ? WAL_OK
               : wal__no_memory(&transfer->error);
}

static enum wal_status add_entry(struct wal__transfer *transfer,
                                 struct wal__transfer_session *session,
                                 uint64_t position)
{
    struct wal__transfer_batch *batch = &transfer->batch;
    uint32_t i = batch->count;
    struct wal__entry_record record;
    struct wal__span bytes;
    enum wal_status status =
        wal__log_read(&transfer->from->log, position, &transfer->scratch,
                      &batch->frames[i], &bytes, &transfer->error);

    if (status == WAL_OK &&
        (batch->frames[i].type != WAL__FRAME_ENTRY ||
         wal__entry_record_decode(bytes, &record) != WAL__FMT_OK)) {
        status = wal__fail(&transfer->error, WAL_ECORRUPT,
                           "an entry is not well-formed");
    }
    if (status != WAL_OK) {
        return status;
    }
    batch->offsets[i] = batch->bytes.size;
    batch->size += bytes.size;
    batch->size += record.digest != NULL ? record.payload_size : 0;
    if (wal__buf_append(&batch->bytes, bytes.data, bytes.size) != WAL_OK) {
        return wal__no_memory(&transfer->error);
    }
    status =
        add_parent(transfer, session, &batch->frames[i], &batch->parents[i]);
    if (status != WAL_OK) {
        return status;
    }
    /* The next entry is often its child. */
    bytes.data = batch->bytes.data + batch->offsets[i];
    if (wal__entry_record_decode(bytes, &record) == WAL__FMT_OK) {
        memcpy(transfer->from_id.bytes, record.id.data, record.id.size);
        transfer->from_id.bytes[record.id.size] = '\0';
        transfer->from_id.size = record.id.size;
        transfer->from_id.sequence = batch->frames[i].sequence;
    }
    batch->payloads[i] = NULL;
    batch->session = session;
    batch->count++;
    return WAL_OK;
}

void wal__transfer_entry(struct wal__transfer *transfer,
                         struct wal__transfer_session *session,
                         uint64_t position)
{
    const struct wal__transfer_batch *batch = &transfer->batch;

    if (batch->session != session || batch->count == WAL__TRANSFER_BATCH ||
        batch->size >= BATCH_SIZE) {
        wal__transfer_flush(transfer);
    }
    if (wal__transfer_goes_on(transfer, session)) {
        (void)wal__transfer_try(transfer, session,
                                add_entry(transfer, session, position));
    }
}
