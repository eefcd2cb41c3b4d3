/*
 * transfer_records.c - finds and reads the records of sessions for a transfer.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/transfer/transfer.h"
#include "format/bytes/crc32.h"

/* --- sessions ------------------------------------------------------------- */

struct wal__transfer_session *
wal__transfer_find(const struct wal__transfer *transfer, uint32_t number)
{
    uint32_t cursor = 0;
    uint32_t rank;

    while (wal__hashmap_find(&transfer->session_map, wal__transfer_hash(number),
                             &cursor, &rank)) {
        if (transfer->sessions[rank]->number == number) {
            return transfer->sessions[rank];
        }
    }
    return NULL;
}

enum wal_status wal__transfer_open(struct wal__transfer *transfer,
                                   const char *id, struct wal_session **session)
{
    return wal_session_open(transfer->to_store,
                            (struct wal_slice){id, strlen(id)}, session,
                            &transfer->error);
}

/* --- the records of a session --------------------------------------------- */

static enum wal_status collect(void *ctx, const struct wal__posting *posting,
                               uint64_t position)
{
    struct wal__transfer_records *records = ctx;
    const struct wal__transfer_record record = {
        .sequence = posting->sequence,
        .position = position,
        .parent = posting->parent,
        .id_hash = posting->id_hash,
        .type = posting->type,
        .kind = posting->kind,
        .stream = posting->stream,
    };
    enum wal_status status = WAL_OK;

    if (posting->type == WAL__FRAME_ENTRY &&
        (posting->flags & WAL__FRAME_PROVISIONAL) != 0) {
        return WAL_OK; /* a copy is without deltas: they may go at any time */
    }
    if (posting->type == WAL__FRAME_REDACT) {
        status = wal__buf_append(&records->hidden, &posting->parent,
                                 sizeof(posting->parent));
    }
    return status == WAL_OK
               ? wal__buf_append(&records->items, &record, sizeof(record))
               : status;
}

static int compare_numbers(const void *a, const void *b)
{
    const uint64_t *x = a;
    const uint64_t *y = b;

    return *x < *y ? -1 : *x > *y;
}

static void sort_sequences(struct wal__buf *sequences)
{
    if (sequences->size > 0) {
        qsort(sequences->data, sequences->size / sizeof(uint64_t),
              sizeof(uint64_t), compare_numbers);
    }
}

enum wal_status wal__transfer_collect(struct wal__core *core, uint32_t number,
                                      struct wal__transfer_records *records,
                                      struct wal_error *error)
{
    struct wal__summary summary;
    enum wal_status status = wal__core_write_lock(core, error);

    if (status != WAL_OK) {
        return status;
    }
    records->items.size = 0;
    records->hidden.size = 0;
    records->end = core->log.last_sequence;
    status = wal__catalogue_get(&core->catalogue, number, &summary);
    if (status == WAL_OK) {
        status = wal__core_visit_postings(core, &summary, collect, records);
    } else if (status == WAL_ENOTFOUND && number == WAL__STORE_NUMBER) {
        status = WAL_OK;
    }
    wal__core_unlock(core);
    sort_sequences(&records->hidden);
    return status == WAL_OK
               ? WAL_OK
               : wal__fail(error, status, "cannot read the index: %s",
                           wal_status_text(status));
}

/* --- redactions ----------------------------------------------------------- */

static int compare_targets(const void *a, const void *b)
{
    const struct wal__transfer_redaction *x = a;
    const struct wal__transfer_redaction *y = b;

    return x->target < y->target ? -1 : x->target > y->target;
}

bool wal__transfer_is_hidden(const struct wal__transfer *transfer,
                             uint64_t sequence)
{
    const struct wal__transfer_redaction key = {.target = sequence};
    const struct wal__buf *items = &transfer->redactions;

    return items->size > 0 &&
           bsearch(&key, items->data,
                   items->size / sizeof(struct wal__transfer_redaction),
                   sizeof(struct wal__transfer_redaction),
                   compare_targets) != NULL;
}

enum wal_status wal__transfer_read_redact(struct wal__transfer *transfer,
                                          uint64_t position,
                                          struct wal__redact_record *record)
{
    struct wal__frame frame;
    struct wal__span payload;
    enum wal_status status =
        wal__log_read(&transfer->from->log, position, &transfer->to_scratch,
                      &frame, &payload, &transfer->error);

    if (status == WAL_OK &&
        (frame.type != WAL__FRAME_REDACT ||
         wal__redact_record_decode(payload, record) != WAL__FMT_OK)) {
        status = wal__fail(&transfer->error, WAL_ECORRUPT,
                           "a redaction is not well-formed");
    }
    return status;
}

bool wal__transfer_is_local(uint64_t key_hash)
{
    static const char rewind[] = "\0rewind";
    static const char moved[] = "\0moved";

    return key_hash == wal__id_hash(rewind, sizeof(rewind) - 1) ||
           key_hash == wal__id_hash(moved, sizeof(moved) - 1);
}

/* --- one record ----------------------------------------------------------- */

enum wal_status wal__transfer_read_doc(struct wal__core *core,
                                       uint64_t position,
                                       struct wal__record_buf *scratch,
                                       struct wal__frame *frame,
                                       struct wal__doc_record *record,
                                       struct wal_error *error)
{
    struct wal__span payload;
    enum wal_status status =
        wal__log_read(&core->log, position, scratch, frame, &payload, error);

    if (status == WAL_OK &&
        ((frame->type != WAL__FRAME_DOC &&
          frame->type != WAL__FRAME_DOC_DELETE) ||
         wal__doc_record_decode(payload, record) != WAL__FMT_OK)) {
        status = wal__fail_at(error, WAL_ECORRUPT, 0, NULL,
                              wal__position_offset(position),
                              "a document is not well-formed");
    }
    return status;
}

enum wal_status wal__transfer_read_entry(struct wal__core *core,
                                         uint64_t position,
                                         struct wal__record_buf *scratch,
                                         struct wal__frame *frame,
                                         struct wal__entry_record *record,
                                         struct wal_error *error)
{
    struct wal__span payload;
    enum wal_status status =
        wal__log_read(&core->log, position, scratch, frame, &payload, error);

    if (status == WAL_OK &&
        (frame->type != WAL__FRAME_ENTRY ||
         wal__entry_record_decode(payload, record) != WAL__FMT_OK)) {
        status = wal__fail_at(error, WAL_ECORRUPT, 0, NULL,
                              wal__position_offset(position),
                              "an entry is not well-formed");
    }
    return status;
}

enum wal_status wal__transfer_read_id(struct wal__core *core, uint32_t number,
                                      uint32_t stream, uint64_t sequence,
                                      struct wal__record_buf *scratch,
                                      struct wal__transfer_id *id,
                                      struct wal_error *error)
{
    struct wal__entry_location found;
    struct wal__span text;
    enum wal_status status;

    if (id->sequence == sequence) {
        return WAL_OK;
    }
    status = wal__core_write_lock(core, error);
    if (status != WAL_OK) {
        return status;
    }
    status =
        wal__core_find_sequence(core, number, stream, sequence, &found, error);
    wal__core_unlock(core);
    if (status == WAL_ENOTFOUND) {
        return wal__fail(error, WAL_EDAMAGED,
                         "an entry that others follow is lost; `agentwal "
                         "salvage` makes a store without it");
    }
    if (status == WAL_OK) {
        status =
            wal__core_read_id(core, found.position, sequence, scratch, &text);
    }
    if (status != WAL_OK) {
        return wal__fail(error, status, "the id of an entry cannot be read: %s",
                         wal_status_text(status));
    }
    memcpy(id->bytes, text.data, text.size);
    id->bytes[text.size] = '\0';
    id->size = text.size;
    id->sequence = sequence;
    return WAL_OK;
}

bool wal__transfer_has(const struct wal__buf *sequences, uint64_t sequence)
{
    const uint64_t *items = (const void *)sequences->data;
    size_t low = 0;
    size_t high = sequences->size / sizeof(*items);

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (items[middle] < sequence) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < sequences->size / sizeof(*items) && items[low] == sequence;
}
