/*
 * write_batch.c - builds an operation from the batch of a caller (SPEC.md 5.2):
 * everything is checked, encoded and checksummed in the caller's thread. Any
 * thread; the caller holds no lock.
 */
#include "engine/write/write_batch.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/base/prefetch.h"
#include "engine/store/input_text.h"
#include "format/bytes/assert.h"
#include "format/bytes/crc32.h"

enum {
    BATCH_SIZE_MAX = 32 * 1024 * 1024,
    ENTRIES_MAX = 512 * 1024,
    DOCS_MAX = 64 * 1024,
    OWNERS_MAX = 1024
};

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

struct wal__op *wal__batch_alloc_op(struct wal__core *core, uint32_t session,
                                    uint32_t entry_count)
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
        batch->entries = wal__heap_zalloc(
            core->env.heap, entry_count * sizeof(batch->entries[0]));
        if (batch->entries == NULL) {
            wal__op_release(op);
            return NULL;
        }
    }
    return op;
}

/* --- documents ---------------------------------------------------------- */

static enum wal_status check_doc(const struct wal_doc *doc,
                                 struct wal__doc_record *record,
                                 struct wal_error *error)
{
    const uint32_t known = WAL_DOC_EXPECT | WAL_DOC_DELETE | WAL_DOC_STORE;
    enum wal_status status;

    if ((doc->flags & ~known) != 0) {
        return wal__invalid(error, "the flags of the document are not valid");
    }
    status = wal__text_check(doc->key, WAL__KEY_MAX, "document's key",
                             &record->key, error);
    if (status != WAL_OK) {
        return status;
    }
    if (record->key.size == 0) {
        return wal__invalid(error, "a document needs a key");
    }
    if ((doc->flags & WAL_DOC_DELETE) != 0) {
        return WAL_OK;
    }
    return wal__text_check_json(doc->value, WAL__PAYLOAD_MAX, false, "document",
                                &record->value, error);
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
            return wal__invalid(error, "the key \"%.*s\" is in the batch twice",
                                (int)key.size, (const char *)key.data);
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
        return wal__fail(error, WAL_ETOOBIG,
                         "the batch is larger than %d bytes", BATCH_SIZE_MAX);
    }
    record.modified_ms = batch->is_copy && doc->modified_ms != 0
                             ? doc->modified_ms
                             : io->now_ms(io->ctx);
    if (wal__op_add_frame(op, (uint32_t)size, &frame, &payload) != WAL_OK) {
        return wal__no_memory(error);
    }
    wal__doc_record_encode(&record, payload);
    item->frame = op->frame_count - 1;
    item->number =
        (doc->flags & WAL_DOC_STORE) != 0 ? WAL__STORE_NUMBER : batch->session;
    item->flags = doc->flags;
    item->expected_version = doc->version;
    frame->frame.type = (doc->flags & WAL_DOC_DELETE) != 0
                            ? WAL__FRAME_DOC_DELETE
                            : WAL__FRAME_DOC;
    frame->frame.session = item->number;
    frame->frame.id_hash = wal__id_hash(record.key.data, record.key.size);
    return add_unique_key(op, record.key, error);
}

static enum wal_status check_size(const struct wal__op *op,
                                  struct wal_error *error)
{
    return op->bytes.size <= BATCH_SIZE_MAX
               ? WAL_OK
               : wal__fail(error, WAL_ETOOBIG,
                           "the batch has %zu bytes; the limit is %d",
                           op->bytes.size, BATCH_SIZE_MAX);
}

/* --- heads -------------------------------------------------------------- */

static enum wal_status check_head(const struct wal_head *head,
                                  struct wal__head_record *record,
                                  struct wal_error *error)
{
    static const struct wal__span main_name = {(const uint8_t *)"main", 4};
    enum wal_status status;

    if ((head->flags & ~(uint32_t)WAL_HEAD_EXPECT) != 0 ||
        head->stream >= WAL__BATCH_STREAMS) {
        return wal__invalid(error,
                            "the flags or stream of the head are not valid");
    }
    status = wal__text_check(head->name, WAL__ID_MAX, "head's name",
                             &record->name, error);
    if (status != WAL_OK) {
        return status;
    }
    if (record->name.size == 0) {
        record->name = main_name;
    }
    status = wal__text_check(head->entry_id, WAL__ID_MAX, "entry's id",
                             &record->entry_id, error);
    if (status != WAL_OK) {
        return status;
    }
    return wal__text_check(head->note, WAL__TEXT_MAX, "head's note",
                           &record->note, error);
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
        status = wal__text_check(head->expected, WAL__ID_MAX,
                                 "expected entry's id", &expected, error);
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
    if (wal__buf_append(&batch->texts, expected.data, expected.size) !=
            WAL_OK ||
        wal__op_add_frame(op, (uint32_t)wal__head_record_size(&record), &frame,
                          &payload) != WAL_OK) {
        return wal__no_memory(error);
    }
    wal__head_record_encode(&record, payload);
    item->frame = op->frame_count - 1;
    frame->frame.type = WAL__FRAME_HEAD;
    frame->frame.stream = (uint8_t)head->stream;
    frame->frame.session = batch->session;
    frame->frame.id_hash = wal__id_hash(record.name.data, record.name.size);
    for (uint32_t i = 0; i < batch->head_count; i++) {
        const struct wal__frame *other =
            &op->frames[batch->heads[i].frame].frame;

        if (other->stream == frame->frame.stream &&
            other->id_hash == frame->frame.id_hash) {
            return wal__invalid(
                error, "the head \"%.*s\" is in the batch twice",
                (int)record.name.size, (const char *)record.name.data);
        }
    }
    batch->head_count++;
    return WAL_OK;
}

/* --- the batch --------------------------------------------------------- */

static enum wal_status check_options(const struct wal_append_options *options,
                                     struct wal__op *op,
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
        return wal__invalid(
            error, "the durability or flags of the append options are not "
                   "valid");
    }
    op->durability = options->durability;
    batch->expects_head = (options->flags & WAL_APPEND_EXPECT) != 0;
    status = wal__text_check(options->expected_tail, WAL__ID_MAX,
                             "expected tail", &expected, error);
    if (status == WAL_OK && expected.size > 0) {
        WAL__ASSERT(expected.size <= sizeof(batch->expected_head));
        batch->expected_head_size = (uint16_t)expected.size;
        memcpy(batch->expected_head, expected.data, expected.size);
    }
    return status;
}

enum wal_status wal__batch_check_counts(const struct wal_batch *batch,
                                        struct wal_error *error)
{
    if ((batch->entry_count > 0 && batch->entries == NULL) ||
        (batch->document_count > 0 && batch->documents == NULL) ||
        (batch->head_count > 0 && batch->heads == NULL)) {
        return wal__invalid(error, "the batch has a count whose array is NULL");
    }
    if (batch->entry_count == 0 && batch->document_count == 0 &&
        batch->head_count == 0 && batch->change == NULL) {
        return wal__invalid(error, "the batch is empty");
    }
    if (batch->entry_count > ENTRIES_MAX) {
        return wal__fail(error, WAL_ETOOBIG,
                         "the batch has %u entries; the limit is %d",
                         batch->entry_count, ENTRIES_MAX);
    }
    if (batch->document_count > DOCS_MAX ||
        batch->head_count > WAL__HEADS_MAX) {
        return wal__fail(error, WAL_ETOOBIG,
                         "the batch has %u documents and %u heads; the limits "
                         "are %d and %d",
                         batch->document_count, batch->head_count, DOCS_MAX,
                         WAL__HEADS_MAX);
    }
    return WAL_OK;
}

/* Allocates the arrays of documents and heads. */
static enum wal_status alloc_records(struct wal__batch *batch,
                                     const struct wal_batch *requested,
                                     struct wal_error *error)
{
    const struct wal__heap *heap = batch->core->env.heap;

    if (requested->document_count > 0) {
        batch->docs = wal__heap_zalloc(heap, requested->document_count *
                                                 sizeof(batch->docs[0]));
    }
    if (requested->head_count > 0) {
        batch->heads = wal__heap_zalloc(heap, requested->head_count *
                                                  sizeof(batch->heads[0]));
        batch->previous_head[0] = '\0';
    }
    if ((requested->document_count > 0 && batch->docs == NULL) ||
        (requested->head_count > 0 && batch->heads == NULL)) {
        return wal__no_memory(error);
    }
    return WAL_OK;
}

static enum wal_status add_records(struct wal__op *op,
                                   const struct wal_batch *requested,
                                   struct wal_error *error)
{
    enum wal_status status = alloc_records(op->request, requested, error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__batch_add_entries(op, requested->entries,
                                    requested->entry_count, error);
    for (uint32_t i = 0; i < requested->document_count && status == WAL_OK;
         i++) {
        status = add_doc(op, &requested->documents[i], error);
    }
    for (uint32_t i = 0; i < requested->head_count && status == WAL_OK; i++) {
        status = add_head(op, &requested->heads[i], error);
    }
    if (status != WAL_OK) {
        return status;
    }
    return requested->change == NULL
               ? WAL_OK
               : wal__batch_add_change(op, requested->change, error);
}

/* Bounds the number of other sessions that own targets of the batch's
 * redactions: they are ancestors. Takes no lock, since a caller that queues
 * must not wait for the disk. */
static enum wal_status bound_owners(const struct wal_session *session,
                                    const struct wal__batch *batch,
                                    uint32_t *owners, struct wal_error *error)
{
    *owners = session->depth < batch->redact_count ? session->depth
                                                   : batch->redact_count;
    return *owners <= OWNERS_MAX
               ? WAL_OK
               : wal__fail(error, WAL_ETOOBIG,
                           "the batch has redactions for up to %" PRIu32
                           " sessions; the limit is %d",
                           *owners, OWNERS_MAX);
}

enum wal_status wal__batch_create(struct wal_session *session,
                                  const struct wal_batch *requested,
                                  const struct wal_append_options *options,
                                  enum wal__batch_mode mode,
                                  struct wal__op **op, struct wal_error *error)
{
    struct wal__batch *batch;
    struct wal__op *created;
    uint32_t owners = 0;
    enum wal_status status = wal__batch_check_counts(requested, error);

    if (status != WAL_OK) {
        return status;
    }
    if (requested->entry_count > 0) {
        wal__prefetch_read(requested->entries[0].payload.data,
                           requested->entries[0].payload.size);
    }
    created = wal__batch_alloc_op(session->core, session->number,
                                  requested->entry_count);
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
    created->reservation.texts +=
        session->text_size + (uint64_t)owners * WAL__SUMMARY_TEXT_MAX;
    *op = created;
    return WAL_OK;
failed:
    wal__op_release(created);
    return status;
}
