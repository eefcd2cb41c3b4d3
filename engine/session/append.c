/*
 * append.c - entries as the caller hands them in become an operation (SPEC.md
 * 5.1, 5.2): checked, encoded and checksummed in the caller's thread.
 */
#include <inttypes.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/session/session.h"
#include "engine/session/text.h"
#include "format/crc32.h"

enum {
    BATCH_MAX = 32 * 1024 * 1024,
    COUNT_MAX = 512 * 1024,
    STREAM_MAX = 255
};

static void release(struct wal__op *op)
{
    struct wal__append *append = op->subject;

    wal__buf_deinit(&append->parents);
    wal__heap_free(op->heap, append->items);
    wal__heap_free(op->heap, append);
}

/* The texts of an entry, checked. Made-up ones go to id and now. */
static enum wal_status
check_texts(const struct wal__env *env, const struct wal_entry *entry,
            struct wal__entry_record *record, char id[WAL__UUID_TEXT],
            char now[WAL__TIME_TEXT], struct wal_error *error)
{
    enum wal_status status = wal__text_check(entry->id, WAL__ID_MAX,
                                             "entry's id", &record->id, error);

    if (status == WAL_OK) {
        status = wal__text_check(entry->type, WAL__ID_MAX, "entry's type",
                                 &record->type, error);
    }
    if (status == WAL_OK) {
        status = wal__text_check(entry->timestamp, WAL__TIME_MAX,
                                 "entry's timestamp", &record->time, error);
    }
    if (status == WAL_OK) {
        status = wal__text_check(entry->run_id, WAL__ID_MAX, "run id",
                                 &record->run, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    if (record->type.size == 0) {
        return wal__fail(error, WAL_EINVAL, 0, NULL, 0,
                         "an entry needs a type");
    }
    if (record->id.size == 0 && entry->id.data != NULL) {
        return wal__fail(error, WAL_EINVAL, 0, NULL, 0,
                         "the entry's id is empty");
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
        return wal__text_check_json(entry->payload, WAL__PAYLOAD_MAX, false,
                                    "entry's payload", &record->payload, error);
    }
    record->form = WAL__ENTRY_LINE;
    if (entry->payload.size > 0 && entry->payload.data == NULL) {
        return wal__fail(error, WAL_EINVAL, 0, NULL, 0,
                         "the line has a size but no address");
    }
    if (!wal__text_span(entry->payload, WAL__PAYLOAD_MAX, &record->payload)) {
        return wal__fail(error, WAL_ETOOBIG, 0, NULL, 0,
                         "the line has %" PRIu64 " bytes; %d are possible",
                         entry->payload.size, WAL__PAYLOAD_MAX);
    }
    return WAL_OK;
}

/* The parent's id, kept for resolving. */
static enum wal_status add_parent(struct wal__append *append,
                                  struct wal__append_item *item,
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
        return wal__fail(error, WAL_EINVAL, 0, NULL, 0,
                         "an entry cannot be a root and have a parent");
    }
    item->parent_offset = (uint32_t)append->parents.size;
    item->parent_size = (uint8_t)parent.size;
    return wal__buf_append(&append->parents, parent.data, parent.size);
}

static enum wal_status check_flags(const struct wal_entry *entry,
                                   struct wal_error *error)
{
    const uint32_t known = WAL_ENTRY_ROOT | WAL_ENTRY_LINE |
                           WAL_ENTRY_HEAD_KEEP | WAL_ENTRY_HEAD_MOVE;
    const uint32_t both = WAL_ENTRY_HEAD_KEEP | WAL_ENTRY_HEAD_MOVE;

    if (entry->struct_size != sizeof(*entry)) {
        return wal__fail(error, WAL_EINVAL, 0, NULL, 0,
                         "the entry's struct_size is %u; it must be %zu",
                         entry->struct_size, sizeof(*entry));
    }
    if ((entry->flags & ~known) != 0 || (entry->flags & both) == both) {
        return wal__fail(error, WAL_EINVAL, 0, NULL, 0,
                         "the entry's flags are %#x", entry->flags);
    }
    if (entry->stream > STREAM_MAX) {
        return wal__fail(error, WAL_EINVAL, 0, NULL, 0,
                         "the stream is %u; %d is the highest", entry->stream,
                         STREAM_MAX);
    }
    return WAL_OK;
}

static enum wal_status add_entry(struct wal__op *op, struct wal__append *append,
                                 const struct wal_entry *entry,
                                 struct wal__append_item *item,
                                 struct wal_error *error)
{
    struct wal__entry_record record = {0};
    struct wal__op_frame *frame;
    char id[WAL__UUID_TEXT];
    char now[WAL__TIME_TEXT];
    enum wal_status status;
    uint8_t *payload;
    uint64_t size;
    uint8_t kind;

    status = check_flags(entry, error);
    if (status == WAL_OK) {
        status =
            check_texts(&append->core->env, entry, &record, id, now, error);
    }
    if (status == WAL_OK) {
        status = check_content(entry, &record, error);
    }
    if (status == WAL_OK) {
        status = add_parent(append, item, entry, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    item->flags = entry->flags;
    item->timed = entry->timestamp.size > 0;
    item->id_hash = wal__id_hash(record.id.data, record.id.size);
    memcpy(op->result.last_id, record.id.data, record.id.size);
    op->result.last_id[record.id.size] = '\0';
    kind = wal__kind_of(record.type);
    if (kind != WAL__KIND_NAMED) {
        record.type.size = 0;
    }
    size = wal__entry_record_size(&record);
    if (op->bytes.size + size > BATCH_MAX) {
        return wal__fail(error, WAL_ETOOBIG, 0, NULL, 0,
                         "the batch is larger than %d bytes", BATCH_MAX);
    }
    if (wal__op_add(op, (uint32_t)size, &frame, &payload) != WAL_OK) {
        return wal__fail(error, WAL_ENOMEM, 0, NULL, 0, "no memory");
    }
    wal__entry_record_encode(&record, payload);
    frame->frame.type = WAL__FRAME_ENTRY;
    frame->frame.stream = (uint8_t)entry->stream;
    frame->frame.kind = kind;
    frame->frame.session = append->session;
    frame->frame.id_hash = item->id_hash;
    return WAL_OK;
}

static enum wal_status check_options(const struct wal_append_options *options,
                                     struct wal__append *append,
                                     struct wal__op *op,
                                     struct wal_error *error)
{
    const uint32_t known = WAL_APPEND_EXPECT | WAL_APPEND_NO_WAIT;
    struct wal__span expected;
    enum wal_status status;

    if (options == NULL) {
        return WAL_OK;
    }
    if (options->struct_size != sizeof(*options) ||
        options->durability > WAL_QUEUED || (options->flags & ~known) != 0) {
        return wal__fail(error, WAL_EINVAL, 0, NULL, 0,
                         "the append's options are not valid");
    }
    op->durability = options->durability;
    append->expect = (options->flags & WAL_APPEND_EXPECT) != 0;
    status = wal__text_check(options->expected_tail, WAL__ID_MAX,
                             "expected tail", &expected, error);
    if (status == WAL_OK && expected.size > 0) {
        append->expected_size = (uint16_t)expected.size;
        memcpy(append->expected, expected.data, expected.size);
    }
    return status;
}

/* An operation with its subject, both empty. */
static struct wal__op *create_op(struct wal__core *core, uint32_t count)
{
    struct wal__op *op = wal__op_create(core->env.heap);
    struct wal__append *append;

    if (op == NULL) {
        return NULL;
    }
    append = wal__heap_zalloc(core->env.heap, sizeof(*append));
    if (append == NULL) {
        wal__op_release(op);
        return NULL;
    }
    append->core = core;
    wal__buf_init(&append->parents, core->env.heap);
    op->subject = append;
    op->release = release;
    op->resolve = wal__append_resolve;
    append->items =
        wal__heap_zalloc(core->env.heap, count * sizeof(append->items[0]));
    if (append->items == NULL) {
        wal__op_release(op);
        return NULL;
    }
    return op;
}

enum wal_status wal__append_create(struct wal_session *session,
                                   const struct wal_entry *entries,
                                   uint32_t count,
                                   const struct wal_append_options *options,
                                   struct wal__op **op, struct wal_error *error)
{
    struct wal__append *append;
    struct wal__op *created;
    enum wal_status status;

    if (entries == NULL || count == 0) {
        return wal__fail(error, WAL_EINVAL, 0, NULL, 0,
                         "there is nothing to append");
    }
    if (count > COUNT_MAX) {
        return wal__fail(error, WAL_ETOOBIG, 0, NULL, 0,
                         "the batch has %u entries; %d are possible", count,
                         COUNT_MAX);
    }
    created = create_op(session->core, count);
    if (created == NULL) {
        return wal__fail(error, WAL_ENOMEM, 0, NULL, 0, "no memory");
    }
    append = created->subject;
    append->session = session->number;
    status = check_options(options, append, created, error);
    for (uint32_t i = 0; i < count && status == WAL_OK; i++) {
        status =
            add_entry(created, append, &entries[i], &append->items[i], error);
    }
    if (status != WAL_OK) {
        wal__op_release(created);
        return status;
    }
    wal__op_finish(created);
    created->demand.texts = session->text_size;
    *op = created;
    return WAL_OK;
}
