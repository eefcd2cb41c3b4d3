/*
 * batch_entries.c - encodes the entries of a batch as frames of an operation
 * (SPEC.md 5.1, 5.2), in the caller's thread. Any thread; the caller holds no
 * lock.
 */
#include <inttypes.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/base/prefetch.h"
#include "engine/store/input_text.h"
#include "engine/store/payload.h"
#include "engine/write/write_batch.h"
#include "format/bytes/assert.h"
#include "format/bytes/crc32.h"
#include "format/json/json_scan.h"

enum {
    BATCH_SIZE_MAX = 32 * 1024 * 1024,
    STREAM_MAX = 255
};

/* Checks the texts of an entry. A generated id or time is written to id or
 * now. */
static enum wal_status
check_texts(const struct wal__env *env, const struct wal_entry *entry,
            struct wal__entry_record *record, char id[WAL__UUID_TEXT],
            char now[WAL__TIME_TEXT], struct wal_error *error)
{
    enum wal_status status = wal__text_check(entry->id, WAL__ID_MAX,
                                             "entry's id", &record->id, error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__text_check(entry->type, WAL__ID_MAX, "entry's type",
                             &record->type, error);
    if (status != WAL_OK) {
        return status;
    }
    status = wal__text_check(entry->timestamp, WAL__TIME_MAX,
                             "entry's timestamp", &record->time, error);
    if (status != WAL_OK) {
        return status;
    }
    status = wal__text_check(entry->run_id, WAL__ID_MAX, "run id", &record->run,
                             error);
    if (status != WAL_OK) {
        return status;
    }
    if (record->type.size == 0) {
        return wal__invalid(error, "an entry needs a type");
    }
    if (record->id.size == 0 && entry->id.data != NULL) {
        return wal__invalid(error, "the entry's id is empty");
    }
    if (record->id.size == 0) {
        wal__text_uuid(env, id);
        record->id.data = (const uint8_t *)id;
        record->id.size = WAL__UUID_TEXT;
    }
    if (record->time.size == 0) {
        wal__text_now(env, now);
        record->time.data = (const uint8_t *)now;
        record->time.size = WAL__TIME_TEXT;
    }
    return WAL_OK;
}

/* Bytes of a payload at most (SPEC.md 6). */
#define FIELDS_SIZE_MAX (UINT64_C(1) << 30)

static enum wal_status check_content(const struct wal_entry *entry,
                                     struct wal__entry_record *record,
                                     struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    if (entry->meta.size > 0) {
        status = wal__text_check_json(entry->meta, WAL__METADATA_MAX, true,
                                      "entry's meta", &record->meta, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    if ((entry->flags & WAL_ENTRY_LINE) == 0) {
        record->form = WAL__ENTRY_FIELDS;
        return wal__text_check_json(entry->payload, FIELDS_SIZE_MAX, false,
                                    "entry's payload", &record->payload, error);
    }
    record->form = WAL__ENTRY_LINE;
    if (entry->payload.size > 0 && entry->payload.data == NULL) {
        return wal__invalid(error, "the line has a size but its data is NULL");
    }
    if (!wal__text_span(entry->payload, WAL__PAYLOAD_BLOB_MAX,
                        &record->payload)) {
        return wal__fail(error, WAL_ETOOBIG,
                         "the line has %" PRIu64
                         " bytes; the limit is %" PRIu64,
                         entry->payload.size, WAL__PAYLOAD_BLOB_MAX);
    }
    return WAL_OK;
}

/* Stores the parent's id, to be resolved under the append lock. */
static enum wal_status add_parent(struct wal__batch *batch,
                                  struct wal__batch_entry *item,
                                  const struct wal_entry *entry,
                                  struct wal_error *error)
{
    struct wal__span parent;
    enum wal_status status = wal__text_check(entry->parent_id, WAL__ID_MAX,
                                             "parent's id", &parent, error);

    if (status != WAL_OK) {
        return status;
    }
    if (parent.size > 0 && (entry->flags & WAL_ENTRY_ROOT) != 0) {
        return wal__invalid(
            error, "a root entry (WAL_ENTRY_ROOT) must not have a parent_id");
    }
    WAL__ASSERT(parent.size <= UINT8_MAX);
    item->parent_offset = (uint32_t)batch->texts.size;
    item->parent_size = (uint8_t)parent.size;
    if (parent.size > 0 &&
        wal__buf_append(&batch->texts, parent.data, parent.size) != WAL_OK) {
        return wal__no_memory(error);
    }
    return WAL_OK;
}

static enum wal_status check_flags(const struct wal_entry *entry,
                                   struct wal_error *error)
{
    const uint32_t known = WAL_ENTRY_ROOT | WAL_ENTRY_LINE |
                           WAL_ENTRY_HEAD_KEEP | WAL_ENTRY_HEAD_MOVE;
    const uint32_t both = WAL_ENTRY_HEAD_KEEP | WAL_ENTRY_HEAD_MOVE;

    if ((entry->flags & ~known) != 0 || (entry->flags & both) == both) {
        return wal__invalid(error, "the flags %#x of the entry are not valid",
                            entry->flags);
    }
    if (entry->stream > STREAM_MAX) {
        return wal__invalid(error, "the stream is %u; the highest is %d",
                            entry->stream, STREAM_MAX);
    }
    return WAL_OK;
}

/* Whether the entry is provisional: a delta that is neither a line nor a copy
 * of one that is not (SPEC.md 5.1). */
static bool is_provisional(const struct wal__batch *batch,
                           const struct wal_entry *entry, uint8_t kind)
{
    return kind == WAL__KIND_MESSAGE_DELTA_BATCH && !batch->is_copy &&
           (entry->flags & WAL_ENTRY_LINE) == 0;
}

/* The first provisional entry of a store adds the feature to it. */
static enum wal_status allow_provisional(const struct wal__batch *batch,
                                         const struct wal_entry *entry,
                                         struct wal_error *error)
{
    if ((entry->flags & WAL_ENTRY_HEAD_MOVE) != 0) {
        return wal__invalid(error, "a delta (%s) does not move the head",
                            WAL_TYPE_MESSAGE_DELTA_BATCH);
    }
    return wal__core_require_feature(batch->core, WAL__INCOMPAT_PROVISIONAL,
                                     error);
}

/* Encodes the frame of a checked entry. */
static enum wal_status add_frame(struct wal__op *op,
                                 const struct wal_entry *entry,
                                 const struct wal__entry_record *record,
                                 uint64_t id_hash, uint8_t kind,
                                 struct wal_error *error)
{
    const struct wal__batch *batch = op->request;
    uint64_t size = wal__entry_record_size(record);
    struct wal__op_frame *frame;
    uint8_t *payload;

    WAL__ASSERT(record->payload.size <= WAL__PAYLOAD_INLINE_MAX);
    if (op->bytes.size + size > BATCH_SIZE_MAX) {
        return wal__fail(error, WAL_ETOOBIG,
                         "the batch is larger than %d bytes", BATCH_SIZE_MAX);
    }
    if (wal__op_add_frame(op, (uint32_t)size, &frame, &payload) != WAL_OK) {
        return wal__no_memory(error);
    }
    wal__entry_record_encode(record, payload);
    frame->frame.type = WAL__FRAME_ENTRY;
    frame->frame.stream = (uint8_t)entry->stream;
    frame->frame.kind = kind;
    frame->frame.flags =
        is_provisional(batch, entry, kind) ? WAL__FRAME_PROVISIONAL : 0;
    frame->frame.session = batch->session;
    frame->frame.id_hash = id_hash;
    return WAL_OK;
}

static enum wal_status add_entry(struct wal__op *op,
                                 const struct wal_entry *entry,
                                 struct wal__batch_entry *item,
                                 struct wal_error *error)
{
    struct wal__batch *batch = op->request;
    struct wal__entry_record record = {0};
    struct wal__out_of_line out_of_line = {0};
    char id[WAL__UUID_TEXT];
    char now[WAL__TIME_TEXT];
    enum wal_status status;
    uint8_t kind;

    wal__op_prefetch(op, entry->payload.size);
    status = check_flags(entry, error);
    if (status != WAL_OK) {
        return status;
    }
    status = check_texts(&batch->core->env, entry, &record, id, now, error);
    if (status != WAL_OK) {
        return status;
    }
    status = check_content(entry, &record, error);
    if (status != WAL_OK) {
        return status;
    }
    status = add_parent(batch, item, entry, error);
    if (status != WAL_OK) {
        return status;
    }
    item->flags = entry->flags;
    item->has_time = entry->timestamp.size > 0;
    item->id_hash = wal__id_hash(record.id.data, record.id.size);
    WAL__ASSERT(record.id.size > 0 && record.id.size <= WAL__ID_MAX);
    memcpy(op->result.last_id, record.id.data, record.id.size);
    op->result.last_id[record.id.size] = '\0';
    kind = wal__kind_from_name(record.type);
    if (kind != WAL__KIND_NAMED) {
        record.type.size = 0;
    }
    if (is_provisional(batch, entry, kind)) {
        status = allow_provisional(batch, entry, error);
        if (status != WAL_OK) {
            return status;
        }
    }
    status =
        wal__payload_store(batch->core, kind, &record, &out_of_line, op, error);
    if (status == WAL_OK) {
        status = add_frame(op, entry, &record, item->id_hash, kind, error);
    }
    wal__out_of_line_deinit(&out_of_line);
    return status;
}

/* Reads the target and reason of a redaction. An imported line has them in its
 * member `payload`, or names no target. */
static bool read_redaction(const struct wal__entry_record *record,
                           uint8_t target[WAL__ID_MAX], uint8_t *reason,
                           struct wal__redact_record *redact)
{
    struct wal__json_token token;
    struct wal__span object = record->payload;

    if (record->form == WAL__ENTRY_LINE &&
        wal__json_find(object.data, object.size, "payload", &token) ==
            WAL__JSON_OK) {
        object.data = token.span.data;
        object.size = token.span.size;
    }
    if (!wal__text_member(object, "targetEntryId", target, WAL__ID_MAX,
                          &redact->target_id) ||
        redact->target_id.size == 0) {
        return false;
    }
    if (!wal__text_member(object, "reason", reason, WAL__TEXT_MAX,
                          &redact->reason)) {
        redact->reason = (struct wal__span){reason, 0};
    }
    return true;
}

/* Adds the REDACT record of a redaction; an imported line without a target, or
 * a copy that was redacted itself, gets none. */
static enum wal_status add_redact(struct wal__op *op, uint32_t entry,
                                  struct wal_error *error)
{
    struct wal__batch *batch = op->request;
    struct wal__redact_record redact = {.session = batch->session};
    struct wal__entry_record record;
    struct wal__op_frame *frame;
    uint8_t target[WAL__ID_MAX];
    uint8_t id[WAL__ID_MAX];
    uint8_t reason[WAL__TEXT_MAX];
    uint8_t *payload;

    WAL__ASSERT(entry < batch->entry_count);
    if (wal__entry_record_decode(wal__batch_payload(op, entry), &record) !=
        WAL__FMT_OK) {
        return WAL_EINVAL;
    }
    if (!read_redaction(&record, target, reason, &redact)) {
        return record.form == WAL__ENTRY_LINE || batch->is_copy
                   ? WAL_OK
                   : wal__invalid(error, "a redaction's payload needs the text "
                                         "targetEntryId, the id of an entry");
    }
    WAL__ASSERT(record.id.size <= sizeof(id));
    memcpy(id, record.id.data, record.id.size);
    redact.entry_id.data = id;
    redact.entry_id.size = record.id.size;
    if (wal__op_add_frame(op, (uint32_t)wal__redact_record_size(&redact),
                          &frame, &payload) != WAL_OK) {
        return wal__no_memory(error);
    }
    wal__redact_record_encode(&redact, payload);
    frame->frame.type = WAL__FRAME_REDACT;
    frame->frame.id_hash = batch->entries[entry].id_hash;
    batch->redacts[batch->redact_count].frame = op->frame_count - 1;
    batch->redacts[batch->redact_count].entry = entry;
    batch->redacts[batch->redact_count].required =
        record.form == WAL__ENTRY_FIELDS && !batch->is_copy;
    batch->redact_count++;
    return WAL_OK;
}

static enum wal_status add_redacts(struct wal__op *op, struct wal_error *error)
{
    struct wal__batch *batch = op->request;
    enum wal_status status = WAL_OK;
    uint32_t count = 0;

    WAL__ASSERT(batch->redacts == NULL && batch->redact_count == 0);
    for (uint32_t i = 0; i < batch->entry_count; i++) {
        count += op->frames[i].frame.kind == WAL__KIND_REDACTION;
    }
    if (count == 0) {
        return WAL_OK;
    }
    batch->redacts =
        wal__heap_zalloc(op->heap, count * sizeof(batch->redacts[0]));
    if (batch->redacts == NULL) {
        return wal__no_memory(error);
    }
    for (uint32_t i = 0; i < batch->entry_count && status == WAL_OK; i++) {
        if (op->frames[i].frame.kind == WAL__KIND_REDACTION) {
            status = add_redact(op, i, error);
        }
    }
    WAL__ASSERT(batch->redact_count <= count);
    return status;
}

enum wal_status wal__batch_add_entries(struct wal__op *op,
                                       const struct wal_entry *entries,
                                       uint32_t count, struct wal_error *error)
{
    struct wal__batch *batch = op->request;
    enum wal_status status = WAL_OK;

    WAL__ASSERT(count == batch->entry_count && op->frame_count == 0);
    for (uint32_t i = 0; i < count && status == WAL_OK; i++) {
        if (i + 1 < count) {
            wal__prefetch_read(entries[i + 1].payload.data,
                               entries[i + 1].payload.size);
        }
        status = add_entry(op, &entries[i], &batch->entries[i], error);
    }
    return status == WAL_OK ? add_redacts(op, error) : status;
}
