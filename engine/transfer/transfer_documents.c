/*
 * transfer_documents.c - repeats versions of documents, those of the engine too
 * (SPEC.md 5.8).
 */
#include <stdlib.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/checkpoint/checkpoint_document.h"
#include "engine/store/input_text.h"
#include "engine/transfer/transfer.h"

/* --- versions ------------------------------------------------------------- */

static enum wal_status put_document(struct wal__transfer *transfer,
                                    struct wal__transfer_session *session,
                                    struct wal_doc *doc)
{
    const struct wal_batch batch = {
        .struct_size = sizeof(batch), .document_count = 1, .documents = doc};
    enum wal_status status;

    if (session != NULL) {
        status = wal__transfer_commit(session->handle, &batch, NULL,
                                      &transfer->error);
    } else if ((doc->flags & WAL_DOC_DELETE) != 0) {
        doc->flags = 0;
        status = wal_doc_delete(transfer->to_store, NULL, doc, NULL,
                                &transfer->error);
    } else {
        status =
            wal_doc_put(transfer->to_store, NULL, doc, NULL, &transfer->error);
    }
    return status;
}

enum wal_status
wal__transfer_repeat_document(struct wal__transfer *transfer,
                              struct wal__transfer_session *session,
                              uint64_t position)
{
    struct wal_doc doc = WAL_INIT(wal_doc);
    struct wal__doc_record record;
    struct wal__frame frame;
    struct wal__span id;
    enum wal_status status =
        wal__transfer_read_doc(transfer->from, position, &transfer->scratch,
                               &frame, &record, &transfer->error);

    if (status != WAL_OK) {
        return status;
    }
    doc.flags = frame.type == WAL__FRAME_DOC_DELETE ? WAL_DOC_DELETE : 0U;
    doc.key = wal__text_slice(record.key);
    doc.value = wal__text_slice(record.value);
    doc.modified_ms = record.modified_ms;
    if (session != NULL && frame.type == WAL__FRAME_DOC &&
        record.key.size > WAL__CHECKPOINT_PREFIX_SIZE &&
        memcmp(record.key.data, wal__checkpoint_prefix,
               WAL__CHECKPOINT_PREFIX_SIZE) == 0) {
        id.data = record.key.data + WAL__CHECKPOINT_PREFIX_SIZE;
        id.size = record.key.size - WAL__CHECKPOINT_PREFIX_SIZE;
        status = wal__transfer_checkpoint(transfer, id, record.value);
    }
    if (status == WAL_OK) {
        status = put_document(transfer, session, &doc);
        if (status == WAL_ENOTFOUND && frame.type == WAL__FRAME_DOC_DELETE) {
            return WAL_OK;
        }
    }
    return status;
}

void wal__transfer_document(struct wal__transfer *transfer,
                            struct wal__transfer_session *session,
                            uint64_t position)
{
    enum wal_status status;

    if (transfer->batch.session == session) {
        wal__transfer_flush(transfer);
    }
    status = wal__transfer_repeat_document(transfer, session, position);
    if (wal__transfer_try(transfer, session, status)) {
        session->documents++;
        transfer->result.documents++;
    }
}

/* --- what a fork saw ------------------------------------------------------ */

/* The newest version of a document that a session sees. */
struct seen {
    uint64_t key_hash;
    uint64_t sequence;
    uint64_t position;
    bool is_deletion;
};

static int compare_seen(const void *a, const void *b)
{
    const struct seen *x = a;
    const struct seen *y = b;

    if (x->key_hash != y->key_hash) {
        return x->key_hash < y->key_hash ? -1 : 1;
    }
    return x->sequence > y->sequence ? -1 : x->sequence < y->sequence;
}

/* Adds the versions of one session below `limit`. */
static enum wal_status add_seen(const struct wal__transfer_records *records,
                                uint64_t limit, struct wal__buf *out)
{
    const struct wal__transfer_record *items =
        (const void *)records->items.data;
    enum wal_status status = WAL_OK;

    for (size_t i = 0;
         i < records->items.size / sizeof(*items) && status == WAL_OK; i++) {
        const struct seen seen = {items[i].id_hash, items[i].sequence,
                                  items[i].position,
                                  items[i].type == WAL__FRAME_DOC_DELETE};

        if ((items[i].type == WAL__FRAME_DOC ||
             items[i].type == WAL__FRAME_DOC_DELETE) &&
            items[i].sequence < limit) {
            status = wal__buf_append(out, &seen, sizeof(seen));
        }
    }
    return status;
}

/* Lists what a fork saw when it was made: of each key the newest version in its
 * ancestors. */
static enum wal_status list_seen(struct wal__transfer *transfer,
                                 struct wal__core *core, uint32_t number,
                                 struct wal__buf *out)
{
    struct wal__transfer_records *records = &transfer->to_records;
    struct wal__summary summary = {.fork_record = 1};
    enum wal_status status = WAL_OK;
    struct seen *items;
    size_t kept = 0;

    while (status == WAL_OK) {
        uint64_t limit;

        status = wal__core_read_lock(core, &transfer->error);
        if (status != WAL_OK) {
            return status;
        }
        status = wal__catalogue_get(&core->catalogue, number, &summary);
        limit = summary.fork_record;
        number = summary.fork_source;
        wal__core_unlock(core);
        if (status != WAL_OK || limit == 0) {
            break;
        }
        status = wal__transfer_collect(core, number, records, &transfer->error);
        if (status == WAL_OK) {
            status = add_seen(records, limit, out);
        }
    }
    if (out->size > 0) {
        qsort(out->data, out->size / sizeof(*items), sizeof(*items),
              compare_seen);
    }
    items = (void *)out->data;
    for (size_t i = 0; i < out->size / sizeof(*items); i++) {
        if (kept == 0 || items[kept - 1].key_hash != items[i].key_hash) {
            items[kept++] = items[i];
        }
    }
    out->size = kept * sizeof(*items);
    return status == WAL_OK ? WAL_OK
                            : wal__fail(&transfer->error, status,
                                        "the documents cannot be read: %s",
                                        wal_status_text(status));
}

enum wal_status wal__transfer_hide_document(struct wal__transfer *transfer,
                                            struct wal__transfer_session *fork,
                                            uint64_t position)
{
    struct wal_doc doc = WAL_INIT(wal_doc);
    struct wal__doc_record record;
    struct wal__frame frame;
    enum wal_status status =
        wal__transfer_read_doc(transfer->to, position, &transfer->to_scratch,
                               &frame, &record, &transfer->error);

    if (status != WAL_OK) {
        return status;
    }
    doc.flags = WAL_DOC_DELETE;
    doc.key = wal__text_slice(record.key);
    status = put_document(transfer, fork, &doc);
    return status == WAL_ENOTFOUND ? WAL_OK : status;
}

static const struct seen *find_seen(const struct wal__buf *list,
                                    uint64_t key_hash)
{
    const struct seen *items = (const void *)list->data;
    size_t count = list->size / sizeof(*items);

    for (size_t i = 0; i < count && items[i].key_hash <= key_hash; i++) {
        if (items[i].key_hash == key_hash) {
            return &items[i];
        }
    }
    return NULL;
}

void wal__transfer_restore_documents(struct wal__transfer *transfer,
                                     struct wal__transfer_session *session)
{
    const struct seen *items;
    struct wal__buf from;
    struct wal__buf to;
    enum wal_status status;

    wal__buf_init(&from, transfer->heap);
    wal__buf_init(&to, transfer->heap);
    status = list_seen(transfer, transfer->from, session->number, &from);
    if (status == WAL_OK) {
        status =
            list_seen(transfer, transfer->to, session->handle->number, &to);
    }
    items = (const void *)from.data;
    for (size_t i = 0; i < from.size / sizeof(*items) && status == WAL_OK;
         i++) {
        if (!items[i].is_deletion) {
            status = wal__transfer_repeat_document(transfer, session,
                                                   items[i].position);
        }
    }
    items = (const void *)to.data;
    for (size_t i = 0; i < to.size / sizeof(*items) && status == WAL_OK; i++) {
        const struct seen *seen = find_seen(&from, items[i].key_hash);

        if (!items[i].is_deletion && (seen == NULL || seen->is_deletion)) {
            status = wal__transfer_hide_document(transfer, session,
                                                 items[i].position);
        }
    }
    wal__buf_deinit(&from);
    wal__buf_deinit(&to);
    (void)wal__transfer_try(transfer, session, status);
}

/* --- documents of the store ----------------------------------------------- */

void wal__transfer_store_documents(struct wal__transfer *transfer)
{
    const struct wal__transfer_record *items;
    enum wal_status status =
        wal__transfer_collect(transfer->from, WAL__STORE_NUMBER,
                              &transfer->from_records, &transfer->error);

    if (status == WAL_OK) {
        status = wal__transfer_collect(transfer->to, WAL__STORE_NUMBER,
                                       &transfer->to_records, &transfer->error);
    }
    if (status == WAL_OK) {
        status = wal__transfer_compare_versions(transfer, WAL__TRANSFER_REPORT,
                                                &transfer->error);
    }
    items = (const void *)transfer->from_records.items.data;
    for (size_t i = 0; i < transfer->from_records.items.size / sizeof(*items) &&
                       status == WAL_OK && transfer->failed == WAL_OK;
         i++) {
        if (!items[i].is_present && (items[i].type == WAL__FRAME_DOC ||
                                     items[i].type == WAL__FRAME_DOC_DELETE)) {
            status = wal__transfer_repeat_document(transfer, NULL,
                                                   items[i].position);
            transfer->result.documents += status == WAL_OK;
        }
    }
    if (status != WAL_OK) {
        wal__transfer_fail(transfer, status);
    }
}
