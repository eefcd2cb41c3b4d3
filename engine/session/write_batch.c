/*
 * write_batch.c - builds an operation from the batch of a caller (SPEC.md 5.1,
 * 5.2): everything that does not depend on the state of the store is checked,
 * encoded and checksummed here, in the caller's thread, so that the leader only
 * resolves the frames (batch_resolve.c) and copies them.
 *
 *   create
 *     check the counts; allocate the operation
 *     add a frame for each entry: texts checked, an id and a time generated
 *       where the caller gave none, the payload compressed or put out of line
 *     add a REDACT for each entry that is a redaction
 *     add documents and heads
 *     add the SESSION record
 *     reserve texts and sessions of the catalogue; checksum
 *
 * The SESSION record. A change of metadata writes the whole record anew (SPEC.md 5.9). It is made
 * from the newest one, which is read here under the state lock; resolving fails with stale_read
 * when a newer one was appended since, and the caller makes the batch anew. A change that changes
 * nothing adds no frame.
 *
 * Memory. What an entry needs in addition to its frame is in batch->entries, with the same rank;
 * texts that resolving needs are copied to batch->texts, by offset, since the buffer may move.
 *
 * Threads: any. The caller holds no lock.
 */
#include "engine/session/write_batch.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/session/session.h"
#include "engine/store/input_text.h"
#include "engine/store/payload.h"
#include "format/bytes/assert.h"
#include "format/bytes/crc32.h"
#include "format/json/json_scan.h"
#include "format/segment/record.h"

enum {
    BATCH_SIZE_MAX = 32 * 1024 * 1024,
    ENTRIES_MAX = 512 * 1024,
    DOCS_MAX = 64 * 1024,
    OWNERS_MAX = 1024,
    STREAM_MAX = 255,
    SUMMARY_MAX = 4 * 1024 * 1024 /* of a compaction */
};

/* --- entries -------------------------------------------------------------- */

/* Checks the texts of an entry. A generated id or time is written to id or now. */
static enum wal_status check_texts(const struct wal__env *env, const struct wal_entry *entry,
                                   struct wal__entry_record *record, char id[WAL__UUID_TEXT],
                                   char now[WAL__TIME_TEXT], struct wal_error *error)
{
    enum wal_status status =
        wal__text_check(entry->id, WAL__ID_MAX, "entry's id", &record->id, error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__text_check(entry->type, WAL__ID_MAX, "entry's type", &record->type, error);
    if (status != WAL_OK) {
        return status;
    }
    status =
        wal__text_check(entry->timestamp, WAL__TIME_MAX, "entry's timestamp", &record->time, error);
    if (status != WAL_OK) {
        return status;
    }
    status = wal__text_check(entry->run_id, WAL__ID_MAX, "run id", &record->run, error);
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
                                     struct wal__entry_record *record, struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    if (entry->meta.size > 0) {
        status = wal__text_check_json(entry->meta, WAL__METADATA_MAX, true, "entry's meta",
                                      &record->meta, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    if ((entry->flags & WAL_ENTRY_LINE) == 0) {
        record->form = WAL__ENTRY_FIELDS;
        return wal__text_check_json(entry->payload, FIELDS_SIZE_MAX, false, "entry's payload",
                                    &record->payload, error);
    }
    record->form = WAL__ENTRY_LINE;
    if (entry->payload.size > 0 && entry->payload.data == NULL) {
        return wal__invalid(error, "the line has a size but its data is NULL");
    }
    if (!wal__text_span(entry->payload, WAL__PAYLOAD_BLOB_MAX, &record->payload)) {
        return wal__fail(error, WAL_ETOOBIG,
                         "the line has %" PRIu64 " bytes; the limit is %" PRIu64,
                         entry->payload.size, WAL__PAYLOAD_BLOB_MAX);
    }
    return WAL_OK;
}

/* Stores the parent's id, to be resolved under the append lock. */
static enum wal_status add_parent(struct wal__batch *batch, struct wal__batch_entry *item,
                                  const struct wal_entry *entry, struct wal_error *error)
{
    struct wal__span parent;
    enum wal_status status =
        wal__text_check(entry->parent_id, WAL__ID_MAX, "parent's id", &parent, error);

    if (status != WAL_OK) {
        return status;
    }
    if (parent.size > 0 && (entry->flags & WAL_ENTRY_ROOT) != 0) {
        return wal__invalid(error, "a root entry (WAL_ENTRY_ROOT) must not have a parent_id");
    }
    WAL__ASSERT(parent.size <= UINT8_MAX);
    item->parent_offset = (uint32_t)batch->texts.size;
    item->parent_size = (uint8_t)parent.size;
    if (parent.size > 0 && wal__buf_append(&batch->texts, parent.data, parent.size) != WAL_OK) {
        return wal__no_memory(error);
    }
    return WAL_OK;
}

static enum wal_status check_flags(const struct wal_entry *entry, bool is_copy,
                                   struct wal_error *error)
{
    const uint32_t known = WAL_ENTRY_ROOT | WAL_ENTRY_LINE | WAL_ENTRY_HEAD_KEEP |
                           WAL_ENTRY_HEAD_MOVE | (is_copy ? (uint32_t)WAL__ENTRY_UNDONE : 0);
    const uint32_t both = WAL_ENTRY_HEAD_KEEP | WAL_ENTRY_HEAD_MOVE;

    if ((entry->flags & ~known) != 0 || (entry->flags & both) == both) {
        return wal__invalid(error, "the flags %#x of the entry are not valid", entry->flags);
    }
    if (entry->stream > STREAM_MAX) {
        return wal__invalid(error, "the stream is %u; the highest is %d", entry->stream,
                            STREAM_MAX);
    }
    return WAL_OK;
}

/* Whether the entry is provisional: a delta that is neither a line nor a copy of one that is not
 * (SPEC.md 5.1). */
static bool is_provisional(const struct wal__batch *batch, const struct wal_entry *entry,
                           uint8_t kind)
{
    return kind == WAL__KIND_MESSAGE_DELTA_BATCH && !batch->is_copy &&
           (entry->flags & WAL_ENTRY_LINE) == 0;
}

/* The first provisional entry of a store adds the feature to it. */
static enum wal_status allow_provisional(const struct wal__batch *batch,
                                         const struct wal_entry *entry, struct wal_error *error)
{
    if ((entry->flags & WAL_ENTRY_HEAD_MOVE) != 0) {
        return wal__invalid(error, "a delta (%s) does not move the head",
                            WAL_TYPE_MESSAGE_DELTA_BATCH);
    }
    return wal__core_require_feature(batch->core, WAL__INCOMPAT_PROVISIONAL, error);
}

/* Encodes the frame of a checked entry. */
static enum wal_status add_frame(struct wal__op *op, const struct wal_entry *entry,
                                 const struct wal__entry_record *record, uint64_t id_hash,
                                 uint8_t kind, struct wal_error *error)
{
    const struct wal__batch *batch = op->request;
    uint64_t size = wal__entry_record_size(record);
    struct wal__op_frame *frame;
    uint8_t *payload;

    WAL__ASSERT(record->payload.size <= WAL__PAYLOAD_INLINE_MAX);
    if (op->bytes.size + size > BATCH_SIZE_MAX) {
        return wal__fail(error, WAL_ETOOBIG, "the batch is larger than %d bytes", BATCH_SIZE_MAX);
    }
    if (wal__op_add_frame(op, (uint32_t)size, &frame, &payload) != WAL_OK) {
        return wal__no_memory(error);
    }
    wal__entry_record_encode(record, payload);
    frame->frame.type = WAL__FRAME_ENTRY;
    frame->frame.stream = (uint8_t)entry->stream;
    frame->frame.kind = kind;
    frame->frame.flags = is_provisional(batch, entry, kind) ? WAL__FRAME_PROVISIONAL : 0;
    frame->frame.session = batch->session;
    frame->frame.id_hash = id_hash;
    return WAL_OK;
}

static enum wal_status add_entry(struct wal__op *op, const struct wal_entry *entry,
                                 struct wal__batch_entry *item, struct wal_error *error)
{
    struct wal__batch *batch = op->request;
    struct wal__entry_record record = {0};
    struct wal__out_of_line out_of_line = {0};
    char id[WAL__UUID_TEXT];
    char now[WAL__TIME_TEXT];
    enum wal_status status;
    uint8_t kind;

    wal__op_prefetch(op, entry->payload.size);
    status = check_flags(entry, batch->is_copy, error);
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
    status = wal__payload_store(batch->core, kind, &record, &out_of_line, op, error);
    if (status == WAL_OK) {
        status = add_frame(op, entry, &record, item->id_hash, kind, error);
    }
    wal__out_of_line_deinit(&out_of_line);
    return status;
}

/* Reads the target and reason of a redaction. An imported line has them in its member `payload`, or
 * names no target. */
static bool read_redaction(const struct wal__entry_record *record, uint8_t target[WAL__ID_MAX],
                           uint8_t *reason, struct wal__redact_record *redact)
{
    struct wal__json_token token;
    struct wal__span object = record->payload;

    if (record->form == WAL__ENTRY_LINE &&
        wal__json_find(object.data, object.size, "payload", &token) == WAL__JSON_OK) {
        object.data = token.span.data;
        object.size = token.span.size;
    }
    if (!wal__text_member(object, "targetEntryId", target, WAL__ID_MAX, &redact->target_id) ||
        redact->target_id.size == 0) {
        return false;
    }
    if (!wal__text_member(object, "reason", reason, WAL__TEXT_MAX, &redact->reason)) {
        redact->reason = (struct wal__span){reason, 0};
    }
    return true;
}

/* Adds the REDACT record of a redaction; an imported line without a target, or a copy that was
 * redacted itself or hides nothing, gets none. */
static enum wal_status add_redact(struct wal__op *op, uint32_t entry, struct wal_error *error)
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
    if (wal__entry_record_decode(wal__batch_payload(op, entry), &record) != WAL__FMT_OK) {
        return WAL_EINVAL;
    }
    if ((batch->entries[entry].flags & WAL__ENTRY_UNDONE) != 0) {
        return WAL_OK;
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
    if (wal__op_add_frame(op, (uint32_t)wal__redact_record_size(&redact), &frame, &payload) !=
        WAL_OK) {
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
    batch->redacts = wal__heap_zalloc(op->heap, count * sizeof(batch->redacts[0]));
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

/* Adds the entries to the operation. */
static enum wal_status add_entries(struct wal__op *op, const struct wal_entry *entries,
                                   uint32_t count, struct wal_error *error)
{
    struct wal__batch *batch = op->request;
    enum wal_status status = WAL_OK;

    WAL__ASSERT(count == batch->entry_count && op->frame_count == 0);
    for (uint32_t i = 0; i < count && status == WAL_OK; i++) {
        if (i + 1 < count) {
            wal__prefetch_read(entries[i + 1].payload.data, entries[i + 1].payload.size);
        }
        status = add_entry(op, &entries[i], &batch->entries[i], error);
    }
    return status == WAL_OK ? add_redacts(op, error) : status;
}

/* --- the SESSION record --------------------------------------------------- */

/* Builds the record of a session whose SESSION record was lost, from the catalogue. */
static void record_from_summary(const struct wal__summary *summary,
                                struct wal__session_record *record)
{
    record->created_ms = summary->created_ms;
    record->schema_version = summary->schema_version != 0 ? summary->schema_version : 1;
    if ((summary->flags & WAL__SUMMARY_FORK) != 0) {
        record->flags = WAL__SESSION_RECORD_FORK;
    }
    if ((summary->flags & WAL__SUMMARY_TRASHED) != 0) {
        record->flags |= WAL__SESSION_RECORD_TRASHED;
    }
    if ((summary->flags & WAL__SUMMARY_MOVED) != 0) {
        record->flags |= WAL__SESSION_RECORD_MOVED;
    }
}

/* Copies the id of a summary, which is valid under the state lock only. */
static enum wal_status copy_id(struct wal__current_record *current,
                               const struct wal__summary *summary)
{
    uint8_t *at;
    enum wal_status status = wal__buf_reserve(&current->scratch.bytes, summary->id.size, &at);

    if (status == WAL_OK) {
        memcpy(at, summary->id.data, summary->id.size);
        current->record.id.data = at;
        current->record.id.size = summary->id.size;
    }
    return status;
}

/* Once; see wal__session_read_current. */
static enum wal_status read_current(struct wal__core *core, uint32_t number,
                                    struct wal__current_record *current, struct wal_error *error)
{
    struct wal__summary summary;
    enum wal_status status = wal__core_read_lock(core, error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__session_find(core, number, &summary, error);
    current->position = status == WAL_OK ? summary.session_position : 0;
    if (status == WAL_OK && current->position == 0) {
        record_from_summary(&summary, &current->record);
        status = copy_id(current, &summary);
    }
    wal__core_unlock(core);
    if (status != WAL_OK || current->position == 0) {
        return status;
    }
    return wal__core_read_session_record(core, current->position, &current->scratch,
                                         &current->record, &current->version, error);
}

enum wal_status wal__session_read_current(struct wal__core *core, uint32_t number,
                                          struct wal__current_record *current,
                                          struct wal_error *error)
{
    uint64_t looked = 0;
    enum wal_status status;

    do {
        status = read_current(core, number, current, error);
    } while (wal__core_invalidate_derived(core, status, &looked));
    return status;
}

/* Sets a text of the record, and *differs when that changes it. */
static enum wal_status set_text(struct wal_slice slice, const char *what, struct wal__span *text,
                                bool *differs, struct wal_error *error)
{
    struct wal__span value;
    enum wal_status status = wal__text_check(slice, WAL__TEXT_MAX, what, &value, error);

    if (status == WAL_OK) {
        *differs |= !wal__span_equal(value, *text);
        *text = value;
    }
    return status;
}

static enum wal_status set_metadata(const struct wal_session_change *change,
                                    struct wal__span *metadata, bool *differs,
                                    struct wal_error *error)
{
    struct wal__span value = {NULL, 0};
    enum wal_status status = WAL_OK;

    if (change->metadata.size > 0) {
        status = wal__text_check_json(change->metadata, WAL__METADATA_MAX, true, "metadata", &value,
                                      error);
    }
    if (status == WAL_OK) {
        *differs |= !wal__span_equal(value, *metadata);
        *metadata = value;
    }
    return status;
}

static enum wal_status apply_change(const struct wal_session_change *change,
                                    struct wal__session_record *record, bool *differs,
                                    struct wal_error *error)
{
    enum wal_status status;

    if ((change->fields & WAL_CHANGE_METADATA) != 0) {
        status = set_metadata(change, &record->metadata, differs, error);
        if (status != WAL_OK) {
            return status;
        }
    }
    if ((change->fields & WAL_CHANGE_TITLE) != 0) {
        status = set_text(change->title, "title", &record->title, differs, error);
        if (status != WAL_OK) {
            return status;
        }
    }
    if ((change->fields & WAL_CHANGE_CWD) != 0) {
        status = set_text(change->cwd, "cwd", &record->cwd, differs, error);
        if (status != WAL_OK) {
            return status;
        }
    }
    if ((change->fields & WAL_CHANGE_PROJECT) != 0) {
        status = set_text(change->project, "project id", &record->project, differs, error);
        if (status != WAL_OK) {
            return status;
        }
    }
    if ((change->fields & WAL_CHANGE_SCHEMA) != 0) {
        if (change->schema_version == 0) {
            return wal__invalid(error, "the schema version of a change must be 1 or higher");
        }
        *differs |= record->schema_version != change->schema_version;
        record->schema_version = change->schema_version;
    }
    return WAL_OK;
}

static enum wal_status check_version(const struct wal_session_change *change,
                                     const struct wal__current_record *current,
                                     struct wal_error *error)
{
    char actual[24];

    if ((change->fields & WAL_CHANGE_EXPECT) == 0 || change->expected_version == current->version) {
        return WAL_OK;
    }
    (void)snprintf(actual, sizeof(actual), "%" PRIu64, current->version);
    return wal__conflict(error, WAL_EXPECTATION_METADATA, actual,
                         "the metadata has version %s, not %" PRIu64, actual,
                         change->expected_version);
}

static enum wal_status add_record(struct wal__op *op, const struct wal__current_record *current,
                                  struct wal_error *error)
{
    struct wal__batch *batch = op->request;
    const struct wal__session_record *record = &current->record;
    size_t size = wal__session_record_size(record);
    struct wal__op_frame *frame;
    uint8_t *payload;

    WAL__ASSERT(!batch->has_change && batch->change_prepared);
    WAL__ASSERT(record->schema_version != 0);
    if (wal__op_add_frame(op, (uint32_t)size, &frame, &payload) != WAL_OK) {
        return wal__no_memory(error);
    }
    wal__session_record_encode(record, payload);
    frame->frame.type = WAL__FRAME_SESSION;
    frame->frame.session = batch->session;
    frame->frame.id_hash = wal__id_hash(record->id.data, record->id.size);
    op->reservation.texts += size - record->metadata.size;
    batch->has_change = true;
    batch->change_frame = op->frame_count - 1;
    return WAL_OK;
}

/* Adds the SESSION record with the change as the operation's last frame; adds nothing when it
 * changes nothing. Takes the state lock. */
static enum wal_status add_change(struct wal__op *op, const struct wal_session_change *change,
                                  struct wal_error *error)
{
    const uint32_t known = WAL_CHANGE_METADATA | WAL_CHANGE_TITLE | WAL_CHANGE_CWD |
                           WAL_CHANGE_PROJECT | WAL_CHANGE_SCHEMA | WAL_CHANGE_EXPECT |
                           WAL_CHANGE_EXPECT_SEQUENCE;
    struct wal__batch *batch = op->request;
    struct wal__current_record current = {.position = 0};
    enum wal_status status;
    bool differs = false;

    if (change->struct_size != sizeof(*change) || (change->fields & ~known) != 0) {
        return wal__invalid(error, "the struct_size or fields of the change are not "
                                   "valid");
    }
    batch->conditional = (change->fields & WAL_CHANGE_EXPECT) != 0;
    batch->expects_sequence = (change->fields & WAL_CHANGE_EXPECT_SEQUENCE) != 0;
    batch->expected_sequence = change->expected_sequence;
    if (change->fields == WAL_CHANGE_EXPECT_SEQUENCE) {
        return WAL_OK; /* no metadata that could be stale */
    }
    wal__record_buf_init(&current.scratch, op->heap);
    status = wal__session_read_current(batch->core, batch->session, &current, error);
    if (status != WAL_OK) {
        goto done;
    }
    status = apply_change(change, &current.record, &differs, error);
    if (status != WAL_OK) {
        goto done;
    }
    batch->change_prepared = true;
    batch->change_base = current.position;
    batch->expected_version = current.version;
    if (!differs) {
        goto done;
    }
    if (!batch->core->env.io->forgets) {
        status = check_version(change, &current, error);
    }
    if (status != WAL_OK) {
        goto done;
    }
    if (current.record.schema_version == 0) {
        wal__fail(error, WAL_ESCHEMA, "the session has no schema version; migrate it first");
        wal__error_set_actual(error, "0", 1);
        status = WAL_ESCHEMA;
        goto done;
    }
    status = add_record(op, &current, error);
done:
    wal__record_buf_deinit(&current.scratch);
    return status;
}

/* --- the operation -------------------------------------------------------- */

static void release(struct wal__op *op)
{
    struct wal__batch *batch = op->request;

    wal__buf_deinit(&batch->texts);
    wal__hashmap_deinit(&batch->keys);
    if (batch->entries != &batch->inline_entry) {
        wal__heap_free(op->heap, batch->entries);
    }
    wal__heap_free(op->heap, batch->redacts);
    wal__heap_free(op->heap, batch->docs);
    wal__heap_free(op->heap, batch->heads);
}

/* Creates an operation with an empty batch and room for entry_count entries; NULL when out of
 * memory. */
static struct wal__op *alloc_op(struct wal__core *core, uint32_t session, uint32_t entry_count)
{
    struct wal__op *op = wal__op_create(&core->ops);
    struct wal__batch *batch;

    if (op == NULL) {
        return NULL;
    }
    op->release = release;
    op->resolve = wal__batch_resolve;
    batch = op->request;
    memset(batch, 0, offsetof(struct wal__batch, expected_head));
    batch->core = core;
    batch->session = session;
    batch->entry_count = entry_count;
    wal__buf_init(&batch->texts, core->env.heap);
    wal__hashmap_init(&batch->keys, core->env.heap);
    batch->entries = &batch->inline_entry;
    if (entry_count > 1) {
        batch->entries = wal__heap_zalloc(core->env.heap, entry_count * sizeof(batch->entries[0]));
        if (batch->entries == NULL) {
            wal__op_release(op);
            return NULL;
        }
    }
    return op;
}

/* --- documents ------------------------------------------------------------ */

static enum wal_status check_doc(const struct wal_doc *doc, struct wal__doc_record *record,
                                 struct wal_error *error)
{
    const uint32_t known = WAL_DOC_EXPECT | WAL_DOC_DELETE | WAL_DOC_STORE;
    enum wal_status status;

    if ((doc->flags & ~known) != 0) {
        return wal__invalid(error, "the flags of the document are not valid");
    }
    status = wal__text_check(doc->key, WAL__KEY_MAX, "document's key", &record->key, error);
    if (status != WAL_OK) {
        return status;
    }
    if (record->key.size == 0) {
        return wal__invalid(error, "a document needs a key");
    }
    if ((doc->flags & WAL_DOC_DELETE) != 0) {
        return WAL_OK;
    }
    return wal__text_check_json(doc->value, WAL__PAYLOAD_MAX, false, "document", &record->value,
                                error);
}

/* Adds the key of the document added last; each key may occur once. */
static enum wal_status add_unique_key(struct wal__op *op, struct wal__span key,
                                      struct wal_error *error)
{
    struct wal__batch *batch = op->request;
    const struct wal__batch_doc *item = &batch->docs[batch->doc_count];
    uint64_t hash = op->frames[item->frame].frame.id_hash;
    uint32_t cursor = 0;
    uint32_t other;

    while (wal__hashmap_find(&batch->keys, hash, &cursor, &other)) {
        if (batch->docs[other].number == item->number &&
            op->frames[batch->docs[other].frame].frame.id_hash == hash) {
            return wal__invalid(error, "the key \"%.*s\" is in the batch twice", (int)key.size,
                                (const char *)key.data);
        }
    }
    if (wal__hashmap_add(&batch->keys, hash, batch->doc_count) != WAL_OK) {
        return wal__no_memory(error);
    }
    batch->doc_count++;
    return WAL_OK;
}

static enum wal_status add_doc(struct wal__op *op, const struct wal_doc *doc,
                               struct wal_error *error)
{
    struct wal__batch *batch = op->request;
    struct wal__batch_doc *item = &batch->docs[batch->doc_count];
    const struct wal__io *io = batch->core->env.io;
    struct wal__doc_record record = {0};
    struct wal__op_frame *frame;
    uint8_t *payload;
    enum wal_status status = check_doc(doc, &record, error);
    uint64_t size = wal__doc_record_size(&record);

    WAL__ASSERT(batch->doc_count < DOCS_MAX);
    if (status != WAL_OK) {
        return status;
    }
    if (op->bytes.size + size > BATCH_SIZE_MAX) {
        return wal__fail(error, WAL_ETOOBIG, "the batch is larger than %d bytes", BATCH_SIZE_MAX);
    }
    record.modified_ms =
        batch->is_copy && doc->modified_ms != 0 ? doc->modified_ms : io->now_ms(io->ctx);
    if (wal__op_add_frame(op, (uint32_t)size, &frame, &payload) != WAL_OK) {
        return wal__no_memory(error);
    }
    wal__doc_record_encode(&record, payload);
    item->frame = op->frame_count - 1;
    item->number = (doc->flags & WAL_DOC_STORE) != 0 ? WAL__STORE_NUMBER : batch->session;
    item->flags = doc->flags;
    item->expected_version = doc->version;
    frame->frame.type = (doc->flags & WAL_DOC_DELETE) != 0 ? WAL__FRAME_DOC_DELETE : WAL__FRAME_DOC;
    frame->frame.session = item->number;
    frame->frame.id_hash = wal__id_hash(record.key.data, record.key.size);
    return add_unique_key(op, record.key, error);
}

static enum wal_status check_size(const struct wal__op *op, struct wal_error *error)
{
    return op->bytes.size <= BATCH_SIZE_MAX
               ? WAL_OK
               : wal__fail(error, WAL_ETOOBIG, "the batch has %zu bytes; the limit is %d",
                           op->bytes.size, BATCH_SIZE_MAX);
}

/* --- heads ---------------------------------------------------------------- */

static enum wal_status check_head(const struct wal_head *head, struct wal__head_record *record,
                                  struct wal_error *error)
{
    static const struct wal__span main_name = {(const uint8_t *)"main", 4};
    enum wal_status status;

    if ((head->flags & ~(uint32_t)WAL_HEAD_EXPECT) != 0 || head->stream >= WAL__BATCH_STREAMS) {
        return wal__invalid(error, "the flags or stream of the head are not valid");
    }
    status = wal__text_check(head->name, WAL__ID_MAX, "head's name", &record->name, error);
    if (status != WAL_OK) {
        return status;
    }
    if (record->name.size == 0) {
        record->name = main_name;
    }
    status = wal__text_check(head->entry_id, WAL__ID_MAX, "entry's id", &record->entry_id, error);
    if (status != WAL_OK) {
        return status;
    }
    return wal__text_check(head->note, WAL__TEXT_MAX, "head's note", &record->note, error);
}

static enum wal_status add_head(struct wal__op *op, const struct wal_head *head,
                                struct wal_error *error)
{
    struct wal__batch *batch = op->request;
    struct wal__batch_head *item = &batch->heads[batch->head_count];
    struct wal__head_record record = {0};
    struct wal__op_frame *frame;
    struct wal__span expected;
    uint8_t *payload;
    enum wal_status status = check_head(head, &record, error);

    WAL__ASSERT(batch->head_count < WAL__HEADS_MAX);
    if (status == WAL_OK) {
        status =
            wal__text_check(head->expected, WAL__ID_MAX, "expected entry's id", &expected, error);
    }
    if (status == WAL_OK) {
        status = check_size(op, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    item->flags = head->flags;
    item->expected_offset = (uint32_t)batch->texts.size;
    item->expected_size = (uint8_t)expected.size;
    if (wal__buf_append(&batch->texts, expected.data, expected.size) != WAL_OK ||
        wal__op_add_frame(op, (uint32_t)wal__head_record_size(&record), &frame, &payload) !=
            WAL_OK) {
        return wal__no_memory(error);
    }
    wal__head_record_encode(&record, payload);
    item->frame = op->frame_count - 1;
    frame->frame.type = WAL__FRAME_HEAD;
    frame->frame.stream = (uint8_t)head->stream;
    frame->frame.session = batch->session;
    frame->frame.id_hash = wal__id_hash(record.name.data, record.name.size);
    for (uint32_t i = 0; i < batch->head_count; i++) {
        const struct wal__frame *other = &op->frames[batch->heads[i].frame].frame;

        if (other->stream == frame->frame.stream && other->id_hash == frame->frame.id_hash) {
            return wal__invalid(error, "the head \"%.*s\" is in the batch twice",
                                (int)record.name.size, (const char *)record.name.data);
        }
    }
    batch->head_count++;
    return WAL_OK;
}

/* --- the batch ------------------------------------------------------------ */

static enum wal_status check_options(const struct wal_append_options *options, struct wal__op *op,
                                     struct wal_error *error)
{
    const uint32_t known = WAL_APPEND_EXPECT | WAL_APPEND_NO_WAIT;
    struct wal__batch *batch = op->request;
    struct wal__span expected;
    enum wal_status status;

    if (options == NULL) {
        return WAL_OK;
    }
    if (options->durability > WAL_QUEUED || (options->flags & ~known) != 0) {
        return wal__invalid(error, "the durability or flags of the append options are not "
                                   "valid");
    }
    op->durability = options->durability;
    batch->expects_head = (options->flags & WAL_APPEND_EXPECT) != 0;
    status =
        wal__text_check(options->expected_tail, WAL__ID_MAX, "expected tail", &expected, error);
    if (status == WAL_OK && expected.size > 0) {
        WAL__ASSERT(expected.size <= sizeof(batch->expected_head));
        batch->expected_head_size = (uint16_t)expected.size;
        memcpy(batch->expected_head, expected.data, expected.size);
    }
    return status;
}

enum wal_status wal__batch_check_counts(const struct wal_batch *batch, struct wal_error *error)
{
    if ((batch->entry_count > 0 && batch->entries == NULL) ||
        (batch->document_count > 0 && batch->documents == NULL) ||
        (batch->head_count > 0 && batch->heads == NULL)) {
        return wal__invalid(error, "the batch has a count whose array is NULL");
    }
    if (batch->entry_count == 0 && batch->document_count == 0 && batch->head_count == 0 &&
        batch->change == NULL) {
        return wal__invalid(error, "the batch is empty");
    }
    if (batch->entry_count > ENTRIES_MAX) {
        return wal__fail(error, WAL_ETOOBIG, "the batch has %u entries; the limit is %d",
                         batch->entry_count, ENTRIES_MAX);
    }
    if (batch->document_count > DOCS_MAX || batch->head_count > WAL__HEADS_MAX) {
        return wal__fail(error, WAL_ETOOBIG,
                         "the batch has %u documents and %u heads; the limits "
                         "are %d and %d",
                         batch->document_count, batch->head_count, DOCS_MAX, WAL__HEADS_MAX);
    }
    return WAL_OK;
}

/* Allocates the arrays of documents and heads. */
static enum wal_status alloc_records(struct wal__batch *batch, const struct wal_batch *requested,
                                     struct wal_error *error)
{
    const struct wal__heap *heap = batch->core->env.heap;

    if (requested->document_count > 0) {
        batch->docs = wal__heap_zalloc(heap, requested->document_count * sizeof(batch->docs[0]));
    }
    if (requested->head_count > 0) {
        batch->heads = wal__heap_zalloc(heap, requested->head_count * sizeof(batch->heads[0]));
        batch->previous_head[0] = '\0';
    }
    if ((requested->document_count > 0 && batch->docs == NULL) ||
        (requested->head_count > 0 && batch->heads == NULL)) {
        return wal__no_memory(error);
    }
    return WAL_OK;
}

static enum wal_status add_records(struct wal__op *op, const struct wal_batch *requested,
                                   struct wal_error *error)
{
    enum wal_status status = alloc_records(op->request, requested, error);

    if (status != WAL_OK) {
        return status;
    }
    status = add_entries(op, requested->entries, requested->entry_count, error);
    for (uint32_t i = 0; i < requested->document_count && status == WAL_OK; i++) {
        status = add_doc(op, &requested->documents[i], error);
    }
    for (uint32_t i = 0; i < requested->head_count && status == WAL_OK; i++) {
        status = add_head(op, &requested->heads[i], error);
    }
    if (status != WAL_OK) {
        return status;
    }
    return requested->change == NULL ? WAL_OK : add_change(op, requested->change, error);
}

/* Bounds the number of other sessions that own targets of the batch's redactions: they are
 * ancestors. Takes no lock, since a caller that queues must not wait for the disk. */
static enum wal_status bound_owners(const struct wal_session *session,
                                    const struct wal__batch *batch, uint32_t *owners,
                                    struct wal_error *error)
{
    *owners = session->depth < batch->redact_count ? session->depth : batch->redact_count;
    return *owners <= OWNERS_MAX ? WAL_OK
                                 : wal__fail(error, WAL_ETOOBIG,
                                             "the batch has redactions for up to %" PRIu32
                                             " sessions; the limit is %d",
                                             *owners, OWNERS_MAX);
}

enum wal_status wal__batch_create(struct wal_session *session, const struct wal_batch *requested,
                                  const struct wal_append_options *options,
                                  enum wal__batch_mode mode, struct wal__op **op,
                                  struct wal_error *error)
{
    struct wal__batch *batch;
    struct wal__op *created;
    uint32_t owners = 0;
    enum wal_status status = wal__batch_check_counts(requested, error);

    if (status != WAL_OK) {
        return status;
    }
    if (requested->entry_count > 0) {
        wal__prefetch_read(requested->entries[0].payload.data, requested->entries[0].payload.size);
    }
    created = alloc_op(session->core, session->number, requested->entry_count);
    if (created == NULL) {
        return wal__no_memory(error);
    }
    batch = created->request;
    batch->is_migration = mode == WAL__BATCH_MIGRATION;
    batch->is_copy = mode == WAL__BATCH_COPY;
    status = check_options(options, created, error);
    if (status != WAL_OK) {
        goto failed;
    }
    status = add_records(created, requested, error);
    if (status != WAL_OK) {
        goto failed;
    }
    status = check_size(created, error);
    if (status != WAL_OK) {
        goto failed;
    }
    status = bound_owners(session, batch, &owners, error);
    if (status != WAL_OK) {
        goto failed;
    }
    WAL__ASSERT(batch->entry_count == requested->entry_count);
    WAL__ASSERT(batch->doc_count == requested->document_count &&
                batch->head_count == requested->head_count);
    wal__op_finish(created);
    created->reservation.sessions = 2 + owners;
    created->reservation.texts += session->text_size + (uint64_t)owners * WAL__SUMMARY_TEXT_MAX;
    *op = created;
    return WAL_OK;
failed:
    wal__op_release(created);
    return status;
}

/* --- payloads of entries that the library writes -------------------------- */

static enum wal_status append_text(struct wal__buf *out, const char *text)
{
    return wal__buf_append(out, text, strlen(text));
}

/* Appends a JSON object of two texts. */
static enum wal_status append_object(struct wal__buf *out, const char *first,
                                     struct wal__span first_text, const char *second,
                                     struct wal__span second_text, struct wal_error *error)
{
    enum wal_status status = append_text(out, first);

    if (status != WAL_OK) {
        goto failed;
    }
    status = wal__text_quote(out, first_text);
    if (status != WAL_OK) {
        goto failed;
    }
    status = append_text(out, second);
    if (status != WAL_OK) {
        goto failed;
    }
    status = wal__text_quote(out, second_text);
    if (status != WAL_OK) {
        goto failed;
    }
    status = append_text(out, "}");
    if (status != WAL_OK) {
        goto failed;
    }
    return WAL_OK;
failed:
    return wal__fail(error, status, "%s", wal_status_text(status));
}

enum wal_status wal__payload_build_compaction(const struct wal_compact_options *options,
                                              struct wal__span *first_kept,
                                              struct wal__buf *payload, struct wal_error *error)
{
    struct wal__span summary;
    enum wal_status status;

    status = wal__text_check(options->first_kept, WAL__ID_MAX, "first kept entry's id", first_kept,
                             error);
    if (status != WAL_OK) {
        return status;
    }
    status = wal__text_check(options->summary, SUMMARY_MAX, "summary", &summary, error);
    if (status != WAL_OK) {
        return status;
    }
    if (first_kept->size == 0) {
        return wal__invalid(error, "a compaction needs the id of the first entry to keep");
    }
    return append_object(payload, "{\"firstKeptEntryId\":", *first_kept, ",\"summary\":", summary,
                         error);
}

enum wal_status wal__payload_build_redaction(struct wal_slice target, struct wal_slice reason,
                                             struct wal__buf *payload, struct wal_error *error)
{
    struct wal__span target_text;
    struct wal__span reason_text;
    enum wal_status status =
        wal__text_check(target, WAL__ID_MAX, "entry's id", &target_text, error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__text_check(reason, WAL__TEXT_MAX, "reason", &reason_text, error);
    if (status != WAL_OK) {
        return status;
    }
    if (target_text.size == 0) {
        return wal__invalid(error, "a redaction needs the id of the entry to hide");
    }
    return append_object(payload, "{\"targetEntryId\":", target_text, ",\"reason\":", reason_text,
                         error);
}
