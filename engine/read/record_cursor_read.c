/*
 * record_cursor_read.c - one record as a struct wal_record (record_cursor.h).
 * Without a lock.
 */
#include <inttypes.h>

#include "engine/base/error.h"
#include "engine/read/document_reader.h"
#include "engine/read/record_cursor.h"
#include "engine/store/input_text.h"
#include "engine/store/payload.h"

static enum wal_status fail_damaged(uint64_t position, uint64_t sequence,
                                    struct wal_error *error)
{
    return wal__fail_at(
        error, WAL_ECORRUPT, 0, NULL, wal__position_offset(position),
        "the record with sequence number %" PRIu64 " is damaged", sequence);
}

/* Sets the payload of an entry that is stored as a blob. */
static enum wal_status load_payload(struct wal_record_cursor *cursor,
                                    const struct wal__entry_record *record,
                                    struct wal_error *error)
{
    struct wal_entry *entry = &cursor->entry;
    enum wal_status status;

    entry->payload = (struct wal_slice){NULL, 0};
    if (record->payload_size > cursor->payload_limit) {
        entry->flags |= WAL_ENTRY_OUT_OF_LINE;
        memcpy(entry->payload_digest, record->digest, WAL_DIGEST_SIZE);
        return WAL_OK;
    }
    status = wal__payload_load(cursor->core, record, &cursor->payload, error);
    if (status == WAL_OK) {
        entry->payload =
            (struct wal_slice){cursor->payload.data, cursor->payload.size};
    }
    return status;
}

static enum wal_status read_entry(struct wal_record_cursor *cursor,
                                  const struct wal__frame *frame,
                                  struct wal__span payload, uint64_t position,
                                  struct wal_error *error)
{
    struct wal__entry_record record;
    struct wal_entry *entry = &cursor->entry;

    if (wal__entry_record_decode(payload, &record) != WAL__FMT_OK) {
        return fail_damaged(position, frame->sequence, error);
    }
    if (record.is_erased) {
        return WAL_ENOTFOUND;
    }
    memset(entry, 0, sizeof(*entry));
    entry->struct_size = sizeof(*entry);
    entry->flags = record.form == WAL__ENTRY_LINE ? WAL_ENTRY_LINE : 0U;
    entry->flags |= frame->parent == 0 ? WAL_ENTRY_ROOT : 0U;
    entry->stream = frame->stream;
    entry->id = wal__text_slice(record.id);
    entry->type = wal__text_slice(frame->kind == WAL__KIND_NAMED
                                      ? record.type
                                      : wal__kind_name(frame->kind));
    entry->timestamp = wal__text_slice(record.time);
    entry->run_id = wal__text_slice(record.run);
    entry->payload = wal__text_slice(record.payload);
    entry->payload_size = record.payload_size;
    entry->meta = wal__text_slice(record.meta);
    entry->sequence = frame->sequence;
    return record.digest == NULL ? WAL_OK
                                 : load_payload(cursor, &record, error);
}

static enum wal_status read_doc(struct wal_record_cursor *cursor,
                                const struct wal__frame *frame,
                                struct wal__span payload, uint64_t position,
                                struct wal_error *error)
{
    struct wal__doc_record record;
    struct wal_doc *doc = &cursor->doc;

    if (wal__doc_record_decode(payload, &record) != WAL__FMT_OK) {
        return fail_damaged(position, frame->sequence, error);
    }
    if (wal__doc_key_is_reserved(record.key)) {
        return WAL_ENOTFOUND;
    }
    memset(doc, 0, sizeof(*doc));
    doc->struct_size = sizeof(*doc);
    doc->flags = frame->type == WAL__FRAME_DOC_DELETE ? WAL_DOC_DELETE : 0U;
    doc->key = wal__text_slice(record.key);
    doc->value = wal__text_slice(record.value);
    doc->version = frame->sequence;
    doc->modified_ms = record.modified_ms;
    return WAL_OK;
}

static enum wal_status read_session(struct wal_record_cursor *cursor,
                                    const struct wal__frame *frame,
                                    struct wal__span payload, uint64_t position,
                                    struct wal_error *error)
{
    struct wal__session_record record;
    struct wal_session_info *info = &cursor->info;
    if (wal__session_record_decode(payload,
                                   cursor->scratch.used->header.version,
                                   &record) != WAL__FMT_OK) {
        return fail_damaged(position, frame->sequence, error);
    }
    memset(info, 0, sizeof(*info));
    info->struct_size = sizeof(*info);
    info->schema_version = record.schema_version;
    info->number = frame->session;
    info->id = wal__text_slice(record.id);
    info->cwd = wal__text_slice(record.cwd);
    info->project = wal__text_slice(record.project);
    info->title = wal__text_slice(record.title);
    info->parent_id = wal__text_slice(record.parent_id);
    info->source = wal__text_slice(record.source);
    info->metadata = wal__text_slice(record.metadata);
    info->created_ms = record.created_ms;
    info->metadata_version = frame->sequence;
    return WAL_OK;
}

/* Reads the record into the member of its kind. */
static enum wal_status read_kind(struct wal_record_cursor *cursor,
                                 const struct wal__frame *frame,
                                 struct wal__span payload, uint64_t position,
                                 struct wal_record *record,
                                 struct wal_error *error)
{
    enum wal_status status;

    if (frame->type == WAL__FRAME_ENTRY) {
        status = read_entry(cursor, frame, payload, position, error);
        record->kind = WAL_RECORD_ENTRY;
        record->entry = &cursor->entry;
    } else if (frame->type == WAL__FRAME_SESSION) {
        status = read_session(cursor, frame, payload, position, error);
        record->kind = WAL_RECORD_SESSION;
        record->session = &cursor->info;
    } else {
        status = read_doc(cursor, frame, payload, position, error);
        record->kind = WAL_RECORD_DOC;
        record->doc = &cursor->doc;
    }
    return status;
}

enum wal_status
wal__record_cursor_read(struct wal_record_cursor *cursor, uint64_t position,
                        const struct wal__record_cursor_item *item,
                        struct wal_record *record, struct wal_error *error)
{
    struct wal_record read = WAL_INIT(wal_record);
    struct wal__frame frame;
    struct wal__span payload;
    enum wal_status status;

    wal__buf_deinit(&cursor->payload);
    status = wal__log_read(&cursor->core->log, position, &cursor->scratch,
                           &frame, &payload, error);
    if (status != WAL_OK) {
        return status;
    }
    if (frame.sequence != item->sequence || frame.session != item->session ||
        frame.type != item->type) {
        return fail_damaged(position, item->sequence, error);
    }
    read.flags = cursor->session_flags;
    read.session_number = item->session;
    read.sequence = item->sequence;
    read.session_id =
        (struct wal_slice){cursor->session_id.data, cursor->session_id.size};
    status = read_kind(cursor, &frame, payload, position, &read, error);
    if (status == WAL_OK) {
        *record = read;
    }
    return status;
}
