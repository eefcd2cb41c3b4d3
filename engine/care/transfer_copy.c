/*
 * transfer_copy.c - repeats the records of a transfer in the other store: creates its sessions,
 * appends their entries in batches, repeats versions of documents, those of the engine too (SPEC.md
 * 5.8), completes the sessions, and deletes those that only their forks needed.
 *
 * A branch sees the documents of the trunk as they are when it is made, and is to have those of
 * `from`. The versions that both have are shared. Where the trunk has gone on with a document, the
 * branch begins with the last common version again. The further ones of `from` follow in their
 * order.
 *
 * Invariant: a session that is not complete has a mark as its metadata, which is replaced together
 * with its last entries. The content of an entry that is redacted in `from` is not copied.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/care/record_copy.h"
#include "engine/care/transfer.h"
#include "engine/files/checkpoint.h"
#include "engine/session/session.h"
#include "engine/session/write_batch.h"
#include "engine/store/input_text.h"
#include "engine/store/payload.h"
#include "format/bytes/assert.h"

/* --- entries -------------------------------------------------------------- */

enum { ATTEMPTS_MAX = 1000 };

/* --- committing ----------------------------------------------------------- */

/* Commits a batch of parts to a session without a sync. */
static enum wal_status transfer_commit(struct wal_session *session, const struct wal_batch *batch,
                                       uint32_t *appended, struct wal_error *error)
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

        status = wal__batch_create(session, batch, &options, WAL__BATCH_COPY, &op, error);
        if (status != WAL_OK) {
            return status;
        }
        status = wal__session_commit(session->core, op, error);
        if (appended != NULL) {
            *appended = op->result.appended;
        }
        again = (status == WAL_ECONFLICT && ((const struct wal__batch *)op->request)->stale_read) ||
                wal__core_invalidate_derived(session->core, status, &looked);
        wal__op_release(op);
    }
    return status;
}

/* --- the batch ------------------------------------------------------------ */

/* Finds the record by which a redaction hides an entry; *hides is false when it hides none. */
static enum wal_status find_redact(struct wal__transfer *transfer, const struct wal__frame *frame,
                                   const struct wal__entry_record *entry,
                                   struct wal__redact_record *record, bool *hides)
{
    const struct wal__transfer_redaction *items = (const void *)transfer->redactions.data;
    size_t count = transfer->redactions.size / sizeof(*items);
    enum wal_status status = WAL_OK;

    *hides = false;
    for (size_t i = 0; i < count && status == WAL_OK && !*hides; i++) {
        if (items[i].id_hash == frame->id_hash) {
            status = wal__transfer_read_redact(transfer, items[i].position, record);
            *hides = status == WAL_OK && record->session == frame->session &&
                     wal__span_equal(record->entry_id, entry->id);
        }
    }
    return status;
}

/* Appends what readers follow in the payload of a hidden entry to `remains`, or an empty object:
 * of a redaction what it hides by the record `redact`, unless that is null. */
static enum wal_status add_remains(struct wal__transfer *transfer, const struct wal__frame *frame,
                                   const struct wal__entry_record *record,
                                   const struct wal__redact_record *redact, struct wal_entry *entry,
                                   size_t *offset)
{
    struct wal__buf *remains = &transfer->batch.remains;
    enum wal_status status;

    *offset = remains->size;
    status = redact != NULL ? wal__copy_redaction(redact, remains) : WAL_OK;
    if (status != WAL_OK) {
        return wal__no_memory(&transfer->error);
    }
    status = wal__payload_append_remains(record->payload, frame->kind, remains);
    if (status == WAL_OK && remains->size == *offset) {
        status = wal__buf_append(remains, "{}", 2);
    }
    entry->payload.size = remains->size - *offset;
    return status == WAL_OK ? WAL_OK : wal__no_memory(&transfer->error);
}

/* Has the callback of the options change the texts of an entry of the batch. */
static enum wal_status rewrite_entry(struct wal__transfer *transfer, uint32_t i)
{
    const struct wal_transfer_options *options = transfer->options;
    struct wal__copy_batch *copies = &transfer->batch.copies;
    struct wal_entry *entry = &copies->entries[i];
    struct wal_slice payload = entry->payload;
    struct wal_slice meta = entry->meta;
    uint8_t *copy;

    options->rewrite(options->rewrite_ctx, &payload, &meta);
    if (payload.data == entry->payload.data && meta.data == entry->meta.data) {
        return WAL_OK;
    }
    copy = wal__heap_alloc(transfer->large_heap, payload.size + meta.size + 1);
    if (copy == NULL) {
        return wal__no_memory(&transfer->error);
    }
    memcpy(copy, payload.data, payload.size);
    if (meta.size > 0) {
        memcpy(copy + payload.size, meta.data, meta.size);
    }
    wal__heap_free(transfer->large_heap, copies->payloads[i]);
    copies->payloads[i] = copy;
    entry->payload = (struct wal_slice){copy, payload.size};
    entry->meta = (struct wal_slice){copy + payload.size, meta.size};
    return WAL_OK;
}

static enum wal_status build_entry(struct wal__transfer *transfer, uint32_t i, size_t *remains)
{
    struct wal__transfer_batch *batch = &transfer->batch;
    const struct wal__frame *frame = &batch->copies.frames[i];
    const struct wal__span bytes = {batch->copies.bytes.data + batch->copies.offsets[i],
                                    frame->stored_size};
    struct wal_entry *entry = &batch->copies.entries[i];
    struct wal__entry_record record;
    struct wal__redact_record redact;
    bool is_hidden = wal__transfer_is_hidden(transfer, frame->sequence);
    bool hides = false;
    enum wal__fmt fmt = wal__entry_record_decode(bytes, &record);
    enum wal_status status = WAL_OK;

    WAL__ASSERT(fmt == WAL__FMT_OK); /* wal__transfer_entry decoded it */
    wal__copy_entry(frame, &record, is_hidden, entry);
    *remains = SIZE_MAX;
    if (frame->kind == WAL__KIND_REDACTION) {
        status = find_redact(transfer, frame, &record, &redact, &hides);
        entry->flags |= hides ? 0 : (uint32_t)WAL__ENTRY_UNDONE;
    }
    if (status != WAL_OK) {
        return status;
    }
    if (batch->parents[i] == SIZE_MAX) {
        entry->flags |= WAL_ENTRY_ROOT;
    } else {
        const char *id = (const char *)batch->parent_ids.data + batch->parents[i];

        entry->parent_id = (struct wal_slice){id, strlen(id)};
    }
    if (is_hidden || record.is_erased) {
        return add_remains(transfer, frame, &record, hides ? &redact : NULL, entry, remains);
    }
    if (record.digest != NULL) {
        status = wal__transfer_payload(transfer, &record, &batch->copies.payloads[i]);
        entry->payload = (struct wal_slice){batch->copies.payloads[i], record.payload_size};
    }
    return status == WAL_OK && transfer->options->rewrite != NULL ? rewrite_entry(transfer, i)
                                                                  : status;
}

/* Fills the entries of the batch. */
static enum wal_status build_entries(struct wal__transfer *transfer)
{
    struct wal__transfer_batch *batch = &transfer->batch;
    size_t remains[WAL__COPY_BATCH];
    enum wal_status status = WAL_OK;

    batch->remains.size = 0;
    for (uint32_t i = 0; i < batch->copies.count && status == WAL_OK; i++) {
        status = build_entry(transfer, i, &remains[i]);
    }
    for (uint32_t i = 0; i < batch->copies.count && status == WAL_OK; i++) {
        if (remains[i] != SIZE_MAX) {
            batch->copies.entries[i].payload.data = batch->remains.data + remains[i];
        }
    }
    return status;
}

static void empty_batch(struct wal__transfer *transfer)
{
    struct wal__transfer_batch *batch = &transfer->batch;

    wal__copy_batch_empty(&batch->copies, transfer->large_heap);
    batch->session = NULL;
    batch->parent_ids.size = 0;
}

/* Commits the entries that wait, all of this session or none, with heads and a change. */
static void commit_parts(struct wal__transfer *transfer, struct wal__transfer_session *session,
                         const struct wal_head *heads, uint32_t head_count,
                         const struct wal_session_change *change)
{
    struct wal__transfer_batch *waiting = &transfer->batch;
    const struct wal_batch batch = {
        .struct_size = sizeof(batch),
        .entry_count = waiting->copies.count,
        .entries = waiting->copies.entries,
        .head_count = head_count,
        .heads = heads,
        .change = change,
    };
    uint32_t appended = 0;
    enum wal_status status = build_entries(transfer);

    if (status == WAL_OK && (batch.entry_count > 0 || head_count > 0 || change != NULL)) {
        status = transfer_commit(session->handle, &batch, &appended, &transfer->error);
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

/* The same with heads and a change of the session. */
static void transfer_flush_with(struct wal__transfer *transfer,
                                struct wal__transfer_session *session, const struct wal_head *heads,
                                uint32_t head_count, const struct wal_session_change *change)
{
    if (transfer->batch.session != session) {
        wal__transfer_flush(transfer);
    }
    while (head_count > WAL__HEADS_MAX && wal__transfer_goes_on(transfer, session)) {
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
                                  const struct wal__frame *frame, size_t *offset)
{
    struct wal__transfer_id *id = &transfer->from_id;
    struct wal__buf *ids = &transfer->batch.parent_ids;
    enum wal_status status;

    *offset = SIZE_MAX;
    if (frame->parent == 0) {
        return WAL_OK;
    }
    status = wal__transfer_read_id(transfer->from, session->number, frame->stream, frame->parent,
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
                                 struct wal__transfer_session *session, uint64_t position)
{
    struct wal__transfer_batch *batch = &transfer->batch;
    uint32_t i = batch->copies.count;
    struct wal__entry_record record;
    struct wal__span bytes;
    struct wal__frame frame;
    enum wal_status status = wal__log_read(&transfer->from->log, position, &transfer->scratch,
                                           &frame, &bytes, &transfer->error);

    if (status == WAL_OK && (frame.type != WAL__FRAME_ENTRY ||
                             wal__entry_record_decode(bytes, &record) != WAL__FMT_OK)) {
        status = wal__fail(&transfer->error, WAL_ECORRUPT, "an entry is not well-formed");
    }
    if (status != WAL_OK) {
        return status;
    }
    /* An entry whose parent cannot be read goes with the batch, which is emptied as the session is
     * refused. */
    batch->session = session;
    if (wal__copy_batch_add(&batch->copies, &frame, bytes, &record) != WAL_OK) {
        return wal__no_memory(&transfer->error);
    }
    status = add_parent(transfer, session, &frame, &batch->parents[i]);
    if (status != WAL_OK) {
        return status;
    }
    /* The next entry is often its child. */
    bytes.data = batch->copies.bytes.data + batch->copies.offsets[i];
    if (wal__entry_record_decode(bytes, &record) == WAL__FMT_OK) {
        memcpy(transfer->from_id.bytes, record.id.data, record.id.size);
        transfer->from_id.bytes[record.id.size] = '\0';
        transfer->from_id.size = record.id.size;
        transfer->from_id.sequence = frame.sequence;
    }
    return WAL_OK;
}

void wal__transfer_entry(struct wal__transfer *transfer, struct wal__transfer_session *session,
                         uint64_t position)
{
    const struct wal__transfer_batch *batch = &transfer->batch;

    if (batch->session != session || wal__copy_batch_is_full(&batch->copies)) {
        wal__transfer_flush(transfer);
    }
    if (wal__transfer_goes_on(transfer, session)) {
        (void)wal__transfer_try(transfer, session, add_entry(transfer, session, position));
    }
}

/* --- versions ------------------------------------------------------------- */

static enum wal_status put_document(struct wal__transfer *transfer,
                                    struct wal__transfer_session *session, struct wal_doc *doc)
{
    const struct wal_batch batch = {
        .struct_size = sizeof(batch), .document_count = 1, .documents = doc};
    enum wal_status status;

    if (session != NULL) {
        status = transfer_commit(session->handle, &batch, NULL, &transfer->error);
    } else if ((doc->flags & WAL_DOC_DELETE) != 0) {
        doc->flags = 0;
        status = wal_doc_delete(transfer->to_store, NULL, doc, NULL, &transfer->error);
    } else {
        status = wal_doc_put(transfer->to_store, NULL, doc, NULL, &transfer->error);
    }
    return status;
}

/* Repeats the version at this position of `from`, or deletes in the session the document of the one
 * at this position of `to`. */
static enum wal_status transfer_repeat_document(struct wal__transfer *transfer,
                                                struct wal__transfer_session *session,
                                                uint64_t position)
{
    struct wal_doc doc = WAL_INIT(wal_doc);
    struct wal__doc_record record;
    struct wal__frame frame;
    struct wal__span id;
    enum wal_status status = wal__transfer_read_doc(transfer->from, position, &transfer->scratch,
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
        memcmp(record.key.data, wal__checkpoint_prefix, WAL__CHECKPOINT_PREFIX_SIZE) == 0) {
        if (transfer->options->rewrite != NULL) {
            transfer->left_out = true;
            return WAL_OK;
        }
        id.data = record.key.data + WAL__CHECKPOINT_PREFIX_SIZE;
        id.size = record.key.size - WAL__CHECKPOINT_PREFIX_SIZE;
        status = wal__transfer_checkpoint(transfer, id, record.value);
    }
    if (status == WAL_OK && transfer->options->rewrite != NULL && frame.type == WAL__FRAME_DOC) {
        struct wal_slice none = {NULL, 0};

        transfer->options->rewrite(transfer->options->rewrite_ctx, &doc.value, &none);
    }
    if (status == WAL_OK) {
        status = put_document(transfer, session, &doc);
        if (status == WAL_ENOTFOUND && frame.type == WAL__FRAME_DOC_DELETE) {
            return WAL_OK;
        }
    }
    return status;
}

void wal__transfer_document(struct wal__transfer *transfer, struct wal__transfer_session *session,
                            uint64_t position)
{
    enum wal_status status;

    if (transfer->batch.session == session) {
        wal__transfer_flush(transfer);
    }
    transfer->left_out = false;
    status = transfer_repeat_document(transfer, session, position);
    if (wal__transfer_try(transfer, session, status) && !transfer->left_out) {
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

/* Adds the versions of one session below `limit`. */
static enum wal_status add_seen(const struct wal__transfer_records *records, uint64_t limit,
                                struct wal__buf *out)
{
    const struct wal__transfer_record *items = (const void *)records->items.data;
    enum wal_status status = WAL_OK;

    for (size_t i = 0; i < records->items.size / sizeof(*items) && status == WAL_OK; i++) {
        const struct seen seen = {items[i].id_hash, items[i].sequence, items[i].position,
                                  items[i].type == WAL__FRAME_DOC_DELETE};

        if ((items[i].type == WAL__FRAME_DOC || items[i].type == WAL__FRAME_DOC_DELETE) &&
            items[i].sequence < limit) {
            status = wal__buf_append(out, &seen, sizeof(seen));
        }
    }
    return status;
}

/* Lists what a fork saw when it was made: of each key the newest version in its ancestors. */
static enum wal_status list_seen(struct wal__transfer *transfer, struct wal__core *core,
                                 uint32_t number, struct wal__buf *out)
{
    struct wal__transfer_records *records = &transfer->to_records;
    struct wal__summary summary = {.fork_record = 1};
    enum wal_status status = WAL_OK;
    struct seen *items;
    size_t kept = 0;

    while (status == WAL_OK) {
        uint64_t limit;

        status = wal__transfer_read_numbers(transfer, core, number, &summary);
        limit = summary.fork_record;
        number = summary.fork_source;
        if (status != WAL_OK || limit == 0) {
            break;
        }
        status = wal__transfer_collect(core, number, records, &transfer->error);
        if (status == WAL_OK) {
            status = add_seen(records, limit, out);
        }
    }
    wal__buf_sort(out, sizeof(*items), wal__compare_u64_pair);
    items = (void *)out->data;
    for (size_t i = 0; i < out->size / sizeof(*items); i++) {
        if (kept > 0 && items[kept - 1].key_hash == items[i].key_hash) {
            kept--; /* it is older */
        }
        items[kept++] = items[i];
    }
    out->size = kept * sizeof(*items);
    return status == WAL_ENOMEM ? wal__no_memory(&transfer->error) : status;
}

static enum wal_status transfer_hide_document(struct wal__transfer *transfer,
                                              struct wal__transfer_session *fork, uint64_t position)
{
    struct wal_doc doc = WAL_INIT(wal_doc);
    struct wal__doc_record record;
    struct wal__frame frame;
    enum wal_status status = wal__transfer_read_doc(transfer->to, position, &transfer->to_scratch,
                                                    &frame, &record, &transfer->error);

    if (status != WAL_OK) {
        return status;
    }
    doc.flags = WAL_DOC_DELETE;
    doc.key = wal__text_slice(record.key);
    status = put_document(transfer, fork, &doc);
    return status == WAL_ENOTFOUND ? WAL_OK : status;
}

static const struct seen *find_seen_document(const struct wal__buf *list, uint64_t key_hash)
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

/* After a fork of a source that `to` had: changes the documents that the fork sees to those that it
 * saw in `from`. */
static void transfer_restore_documents(struct wal__transfer *transfer,
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
        status = list_seen(transfer, transfer->to, session->handle->number, &to);
    }
    items = (const void *)from.data;
    for (size_t i = 0; i < from.size / sizeof(*items) && status == WAL_OK; i++) {
        if (!items[i].is_deletion) {
            status = transfer_repeat_document(transfer, session, items[i].position);
        }
    }
    items = (const void *)to.data;
    for (size_t i = 0; i < to.size / sizeof(*items) && status == WAL_OK; i++) {
        const struct seen *seen = find_seen_document(&from, items[i].key_hash);

        if (!items[i].is_deletion && (seen == NULL || seen->is_deletion)) {
            status = transfer_hide_document(transfer, session, items[i].position);
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
    enum wal_status status = wal__transfer_collect(transfer->from, WAL__STORE_NUMBER,
                                                   &transfer->from_records, &transfer->error);

    if (status == WAL_OK) {
        status = wal__transfer_collect(transfer->to, WAL__STORE_NUMBER, &transfer->to_records,
                                       &transfer->error);
    }
    if (status == WAL_OK) {
        status = wal__transfer_compare_versions(transfer, WAL__TRANSFER_REPORT, &transfer->error);
    }
    items = (const void *)transfer->from_records.items.data;
    for (size_t i = 0; i < transfer->from_records.items.size / sizeof(*items) && status == WAL_OK &&
                       transfer->failed == WAL_OK;
         i++) {
        if (!items[i].is_present &&
            (items[i].type == WAL__FRAME_DOC || items[i].type == WAL__FRAME_DOC_DELETE)) {
            status = transfer_repeat_document(transfer, NULL, items[i].position);
            transfer->result.documents += status == WAL_OK;
        }
    }
    if (status != WAL_OK) {
        wal__transfer_fail(transfer, status);
    }
}

/* --- documents of branches ------------------------------------------------ */

/* The versions of one key. */
struct run {
    const struct wal__transfer_version *items;
    size_t count;
};

/* The documents of three sessions, by key. */
struct versions {
    struct wal__buf from;
    struct wal__buf trunk;
    struct wal__buf branch;
    size_t at[3];
};

static const struct wal__transfer_record *record_at(const struct wal__transfer_records *records,
                                                    size_t rank)
{
    return (const struct wal__transfer_record *)(const void *)records->items.data + rank;
}

/* Removes the versions that the branch does not see. */
static void apply_limit(const struct wal__transfer *transfer, uint64_t limit,
                        struct wal__buf *trunk)
{
    struct wal__transfer_version *items = (void *)trunk->data;
    size_t kept = 0;

    for (size_t i = 0; i < trunk->size / sizeof(*items); i++) {
        if (record_at(&transfer->trunk_records, items[i].record)->sequence < limit) {
            items[kept++] = items[i];
        }
    }
    trunk->size = kept * sizeof(*items);
}

static const struct wal__transfer_version *peek(const struct wal__buf *list, size_t at)
{
    const struct wal__transfer_version *items = (const void *)list->data;

    return at < list->size / sizeof(*items) ? &items[at] : NULL;
}

/* Takes the versions of this key from a list. */
static struct run take(const struct wal__buf *list, size_t *at, uint64_t key)
{
    const struct wal__transfer_version *first = peek(list, *at);
    struct run run = {first, 0};

    if (first != NULL && first->key_hash == key) {
        size_t end =
            wal__transfer_key_end((const void *)list->data, list->size / sizeof(*first), *at);

        run.count = end - *at;
        *at = end;
    }
    return run;
}

/* The lowest key that is left of `from` and the trunk; false: none is. */
static bool next_key(const struct versions *versions, uint64_t *key)
{
    const struct wal__transfer_version *from = peek(&versions->from, versions->at[0]);
    const struct wal__transfer_version *trunk = peek(&versions->trunk, versions->at[1]);

    if (from == NULL && trunk == NULL) {
        return false;
    }
    *key = trunk == NULL || (from != NULL && from->key_hash < trunk->key_hash) ? from->key_hash
                                                                               : trunk->key_hash;
    return true;
}

/* The versions of the branch whose key is lower were made there. */
static void skip_lower(const struct wal__buf *list, size_t *at, uint64_t key)
{
    const struct wal__transfer_version *version = peek(list, *at);

    while (version != NULL && version->key_hash < key) {
        version = peek(list, ++*at);
    }
}

static enum wal_status add_restore(struct wal__transfer *transfer,
                                   const struct wal__transfer_session *session, struct run from,
                                   struct run trunk, size_t common)
{
    struct wal__transfer_restore restore = {.rank = session->rank};

    if (common > 0) {
        restore.position =
            record_at(&transfer->from_records, from.items[common - 1].record)->position;
    } else {
        restore.is_hide = 1;
        restore.position =
            record_at(&transfer->trunk_records, trunk.items[trunk.count - 1].record)->position;
    }
    return wal__buf_append(&transfer->restores, &restore, sizeof(restore)) == WAL_OK
               ? WAL_OK
               : wal__no_memory(&transfer->error);
}

/* Returns whether the branch begins with the version that a restore makes. */
static bool is_restored(struct run from, struct run branch, size_t common)
{
    return branch.count > 0 &&
           (common > 0 ? wal__transfer_same_version(&branch.items[0], &from.items[common - 1])
                       : branch.items[0].is_deletion);
}

static enum wal_status compare_key(struct wal__transfer *transfer,
                                   const struct wal__transfer_session *session, struct run from,
                                   struct run trunk, struct run branch, bool repeats)
{
    struct wal__transfer_record *records = (void *)transfer->from_records.items.data;
    size_t common = 0;
    size_t present = 0;
    enum wal_status status = WAL_OK;

    while (common < from.count && common < trunk.count &&
           wal__transfer_same_version(&from.items[common], &trunk.items[common])) {
        common++;
    }
    if (trunk.count > common) {
        /* What is deleted in the trunk need not be hidden. */
        bool is_needed = common > 0 || !trunk.items[trunk.count - 1].is_deletion;

        if (is_needed && is_restored(from, branch, common)) {
            branch.items++;
            branch.count--;
        } else if (is_needed && (session->handle == NULL || repeats)) {
            status = add_restore(transfer, session, from, trunk, common);
        }
    }
    if (common < from.count) {
        present = wal__transfer_count_present(&from.items[common], from.count - common,
                                              branch.items, branch.count);
    }
    if (present == SIZE_MAX && !repeats) {
        return WAL_EEXISTS;
    }
    present = common + (present == SIZE_MAX ? 0 : present);
    for (size_t i = 0; i < present; i++) {
        records[from.items[i].record].is_present = true;
    }
    return status;
}

static enum wal_status compare(struct wal__transfer *transfer,
                               const struct wal__transfer_session *session,
                               struct versions *versions, bool repeats)
{
    enum wal_status status = WAL_OK;
    uint64_t key = 0;

    while (status == WAL_OK && next_key(versions, &key)) {
        struct run from = take(&versions->from, &versions->at[0], key);
        struct run trunk = take(&versions->trunk, &versions->at[1], key);
        struct run branch;

        skip_lower(&versions->branch, &versions->at[2], key);
        branch = take(&versions->branch, &versions->at[2], key);
        status = compare_key(transfer, session, from, trunk, branch, repeats);
    }
    return status;
}

enum wal_status wal__transfer_compare_branch_versions(struct wal__transfer *transfer,
                                                      const struct wal__transfer_session *session,
                                                      uint64_t limit, bool repeats)
{
    struct versions versions = {.at = {0}};
    struct wal_error *error = &transfer->error;
    enum wal_status status;

    wal__buf_init(&versions.from, transfer->heap);
    wal__buf_init(&versions.trunk, transfer->heap);
    wal__buf_init(&versions.branch, transfer->heap);
    status = wal__transfer_list_versions(transfer, transfer->from, &transfer->from_records,
                                         &versions.from, error);
    if (status == WAL_OK) {
        status = wal__transfer_list_versions(transfer, transfer->to, &transfer->trunk_records,
                                             &versions.trunk, error);
    }
    if (status == WAL_OK) {
        status = wal__transfer_list_versions(transfer, transfer->to, &transfer->to_records,
                                             &versions.branch, error);
    }
    if (status == WAL_OK) {
        apply_limit(transfer, limit, &versions.trunk);
        status = compare(transfer, session, &versions, repeats);
    }
    wal__buf_deinit(&versions.from);
    wal__buf_deinit(&versions.trunk);
    wal__buf_deinit(&versions.branch);
    return status == WAL_ENOMEM ? wal__no_memory(error) : status;
}

void wal__transfer_restore_branch(struct wal__transfer *transfer,
                                  struct wal__transfer_session *session)
{
    const struct wal__transfer_restore *items = (const void *)transfer->restores.data;
    size_t count = transfer->restores.size / sizeof(*items);
    enum wal_status status = WAL_OK;

    for (size_t i = 0; i < count && status == WAL_OK; i++) {
        if (items[i].rank != session->rank) {
            continue;
        }
        status = items[i].is_hide != 0
                     ? transfer_hide_document(transfer, session, items[i].position)
                     : transfer_repeat_document(transfer, session, items[i].position);
    }
    (void)wal__transfer_try(transfer, session, status);
}

/* --- texts ---------------------------------------------------------------- */

/* Reads the newest SESSION record of a session; the options borrow from scratch. */
static enum wal_status read_texts(struct wal__transfer *transfer,
                                  const struct wal__transfer_session *session,
                                  struct wal_session_options *options)
{
    struct wal__core *core = transfer->from;
    struct wal__session_record record;
    struct wal__summary summary;
    uint64_t sequence;
    enum wal_status status = wal__core_read_lock(core, &transfer->error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__catalogue_get(&core->catalogue, session->number, &summary);
    if (status == WAL_OK) {
        status = wal__core_read_session_record(core, summary.session_position, &transfer->scratch,
                                               &record, &sequence, &transfer->error);
    }
    wal__core_unlock(core);
    if (status == WAL_OK) {
        wal__copy_session(&record, options);
        options->created_ms = summary.created_ms;
    }
    return status;
}

/* Has the callback of the transfer change the texts of a session, which are kept in `texts`. */
static enum wal_status rewrite_session(struct wal__transfer *transfer,
                                       struct wal_session_options *options)
{
    struct wal_slice title = options->title;
    struct wal_slice metadata = options->metadata;

    transfer->options->rewrite(transfer->options->rewrite_ctx, &title, &metadata);
    transfer->texts.size = 0;
    if (wal__buf_append(&transfer->texts, title.data, title.size) != WAL_OK ||
        wal__buf_append(&transfer->texts, metadata.data, metadata.size) != WAL_OK) {
        return wal__no_memory(&transfer->error);
    }
    options->title = (struct wal_slice){transfer->texts.data, title.size};
    options->metadata = (struct wal_slice){transfer->texts.data + title.size, metadata.size};
    return WAL_OK;
}

/* --- creation ------------------------------------------------------------- */

/* Deletes the temporary copy of an older session that had the same id. */
static void free_id(struct wal__transfer *transfer, const struct wal__transfer_session *session)
{
    for (uint32_t i = 0; i < transfer->session_count; i++) {
        struct wal__transfer_session *other = transfer->sessions[i];

        if (other != session && other->is_temporary && !other->is_removed &&
            other->handle != NULL && strcmp(other->copy_id, session->copy_id) == 0) {
            wal__transfer_remove(transfer, other);
        }
    }
}

/* Forks a session before its first entry: its head may be after that now. */
static enum wal_status fork_at_start(struct wal__transfer *transfer, struct wal_session *source,
                                     const struct wal_session_options *options,
                                     struct wal_session **fork)
{
    const struct wal_slice none = {NULL, 0};
    uint64_t looked = 0;
    enum wal_status status;

    do {
        status = wal__session_fork(source, none, true, options, fork, &transfer->error);
    } while (wal__core_invalidate_derived(source->core, status, &looked));
    return status;
}

/* Forks the source at the entry that the FORK record at fork_position names. */
static enum wal_status fork_session(struct wal__transfer *transfer,
                                    struct wal__transfer_session *session,
                                    const struct wal_session_options *options)
{
    const struct wal__transfer_session *source = wal__transfer_find(transfer, session->fork_source);
    struct wal__fork_record record;
    enum wal_status status;

    if (source == NULL || source->state == WAL__TRANSFER_REFUSED || source->handle == NULL) {
        return wal__fail(&transfer->error, WAL_EEXISTS, "its source, %s, is refused",
                         source == NULL ? "" : source->id);
    }
    record.entry_id.size = 0;
    status = session->fork_point == 0
                 ? WAL_OK
                 : wal__transfer_read_fork(transfer->from, session->fork_position,
                                           &transfer->to_scratch, &record, &transfer->error);
    if (status == WAL_OK) {
        status = record.entry_id.size == 0
                     ? fork_at_start(transfer, source->handle, options, &session->handle)
                     : wal_session_fork(source->handle, wal__text_slice(record.entry_id), options,
                                        &session->handle, &transfer->error);
    }
    if (status == WAL_OK && source->state != WAL__TRANSFER_NEW) {
        transfer_restore_documents(transfer, session);
    }
    return status;
}

/* Forks the trunk of a branch at the last common entry; without one the branch is a session by
 * itself. */
static enum wal_status create_branch(struct wal__transfer *transfer,
                                     struct wal__transfer_session *session,
                                     struct wal_session_options *options)
{
    const struct wal_slice point = {session->branch_point, strlen(session->branch_point)};

    options->id = (struct wal_slice){session->copy_id, strlen(session->copy_id)};
    options->parent_id = (struct wal_slice){NULL, 0};
    return point.size > 0 ? wal_session_fork(session->trunk, point, options, &session->handle,
                                             &transfer->error)
                          : wal_session_create(transfer->to_store, options, &session->handle,
                                               &transfer->error);
}

void wal__transfer_create(struct wal__transfer *transfer, struct wal__transfer_session *session)
{
    struct wal_session_options options;
    enum wal_status status;

    wal__transfer_flush(transfer);
    free_id(transfer, session);
    status = read_texts(transfer, session, &options);
    if (status == WAL_OK) {
        options.metadata = wal__transfer_mark_text(
            session->is_temporary ? WAL__TRANSFER_MARKED_SOURCE : WAL__TRANSFER_MARKED);
        if (session->is_fork) {
            options.parent_id = (struct wal_slice){NULL, 0};
        }
        if (transfer->options->rewrite != NULL) {
            options.title = (struct wal_slice){NULL, 0}; /* it is rewritten at the end */
        }
        status = session->trunk != NULL ? create_branch(transfer, session, &options)
                 : session->is_fork     ? fork_session(transfer, session, &options)
                                        : wal_session_create(transfer->to_store, &options,
                                                             &session->handle, &transfer->error);
    }
    if (wal__transfer_try(transfer, session, status) && session->trunk != NULL) {
        wal__transfer_restore_branch(transfer, session);
    }
}

/* --- completion ----------------------------------------------------------- */

static bool same_head(const struct wal_head *a, const struct wal_head *b)
{
    return a->stream == b->stream && a->name.size == b->name.size &&
           (a->name.size == 0 || memcmp(a->name.data, b->name.data, a->name.size) == 0);
}

static bool has_head(const struct wal__buf *heads, const struct wal_head *head)
{
    const struct wal_head *items = (const void *)heads->data;

    for (size_t i = 0; i < heads->size / sizeof(*items); i++) {
        if (same_head(&items[i], head)) {
            return true;
        }
    }
    return false;
}

/* Appends the heads of a session, whose texts hold until *cursor is closed. */
static enum wal_status list_heads(struct wal_session *session, struct wal_head_cursor **cursor,
                                  struct wal__buf *heads, struct wal_error *error)
{
    struct wal_head head = WAL_INIT(wal_head);
    enum wal_status status = wal__head_cursor_open(session, cursor, error);

    while (status == WAL_OK) {
        status = wal__head_cursor_next(*cursor, &head);
        if (status == WAL_OK && wal__buf_append(heads, &head, sizeof(head)) != WAL_OK) {
            status = wal__no_memory(error);
        }
    }
    return status == WAL_END ? WAL_OK : status;
}

/* Adds the heads `main` that the entries which wait will move: they may be there then only. */
static enum wal_status add_moved(const struct wal__transfer *transfer,
                                 const struct wal__transfer_session *session,
                                 struct wal__buf *heads)
{
    const struct wal__transfer_batch *batch = &transfer->batch;
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; batch->session == session && i < batch->copies.count && status == WAL_OK;
         i++) {
        const struct wal_head head = {.struct_size = sizeof(head),
                                      .stream = batch->copies.frames[i].stream,
                                      .name = WAL_STR("main")};

        if ((batch->copies.frames[i].flags & WAL__FRAME_MOVES_HEAD) != 0 &&
            !has_head(heads, &head)) {
            status = wal__buf_append(heads, &head, sizeof(head));
        }
    }
    return status;
}

/* Finds the entry that the plan saw nearest before the one that a head is at. Its sequence is 0
 * where there is none. */
static enum wal_status find_seen(struct wal__transfer *transfer,
                                 const struct wal__transfer_session *session,
                                 const struct wal_head *head, struct wal__entry_location *found)
{
    const struct wal__span id = {(const uint8_t *)head->entry_id.data, (size_t)head->entry_id.size};
    struct wal__core *core = transfer->from;
    struct wal__frame frame;
    struct wal__span payload;
    enum wal_status status = wal__core_write_lock(core, &transfer->error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__core_find_id(core, session->number, id, found, &transfer->error);
    while (status == WAL_OK && found->sequence > session->seen) {
        status = wal__log_read(&core->log, found->position, &transfer->scratch, &frame, &payload,
                               &transfer->error);
        if (status == WAL_OK && frame.parent == 0) {
            found->sequence = 0;
        } else if (status == WAL_OK) {
            status = wal__core_find_sequence(core, session->number, head->stream, frame.parent,
                                             found, &transfer->error);
        }
    }
    wal__core_unlock(core);
    return status;
}

/* Takes heads that others have moved since the plan back to what is copied. Ids are kept in
 * *ids. */
static enum wal_status lower_heads(struct wal__transfer *transfer,
                                   const struct wal__transfer_session *session,
                                   struct wal__buf *heads, struct wal__buf *ids)
{
    struct wal_head *items = (void *)heads->data;
    size_t count = heads->size / sizeof(*items);
    enum wal_status status = WAL_OK;
    size_t moved = 0;
    size_t kept = 0;
    uint8_t *at = NULL;

    for (size_t i = 0; i < count; i++) {
        moved += items[i].version > session->seen;
    }
    if (moved > 0 && wal__buf_reserve(ids, moved * WAL_ID_SIZE, &at) != WAL_OK) {
        return wal__no_memory(&transfer->error);
    }
    for (size_t i = 0; i < count && status == WAL_OK; i++) {
        struct wal_head head = items[i];
        struct wal__entry_location found = {0};

        if (head.version > session->seen) {
            status = find_seen(transfer, session, &head, &found);
            if (status != WAL_OK || found.sequence == 0) {
                continue;
            }
            status =
                wal__transfer_read_id(transfer->from, session->number, head.stream, found.sequence,
                                      &transfer->scratch, &transfer->from_id, &transfer->error);
            if (status == WAL_OK) {
                memcpy(at, transfer->from_id.bytes, transfer->from_id.size);
                head.entry_id = (struct wal_slice){(const char *)at, transfer->from_id.size};
                at += WAL_ID_SIZE;
            }
        }
        items[kept++] = head;
    }
    heads->size = kept * sizeof(*items);
    return status;
}

/* Makes *from the moves that give the copy its heads. `all`: also those that it has; else only what
 * is missing. */
static enum wal_status plan_moves(const struct wal__buf *to, bool all, struct wal__buf *from)
{
    const struct wal_head *present = (const void *)to->data;
    size_t present_count = to->size / sizeof(*present);
    struct wal_head *items = (void *)from->data;
    size_t count = from->size / sizeof(*items);
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        if (all || !has_head(to, &items[i])) {
            items[kept] = items[i];
            items[kept++].flags = 0;
        }
    }
    for (size_t i = 0; i < present_count && all; i++) {
        struct wal_head removed = present[i];

        if (!has_head(from, &removed)) {
            removed.entry_id = (struct wal_slice){NULL, 0};
            removed.note = (struct wal_slice){NULL, 0};
            removed.flags = 0;
            from->size = kept * sizeof(*items);
            if (wal__buf_append(from, &removed, sizeof(removed)) != WAL_OK) {
                return WAL_ENOMEM;
            }
            kept++;
        }
    }
    from->size = kept * sizeof(*items);
    return WAL_OK;
}

/* Gives the copy the heads and, if `all`, the texts of the session. */
static void finish_session(struct wal__transfer *transfer, struct wal__transfer_session *session,
                           struct wal_session *original, bool all)
{
    struct wal_session_change change = WAL_INIT(wal_session_change);
    struct wal_head_cursor *from_cursor = NULL;
    struct wal_head_cursor *to_cursor = NULL;
    struct wal_session_options options;
    struct wal__buf from;
    struct wal__buf to;
    struct wal__buf ids;
    enum wal_status status;

    wal__buf_init(&from, transfer->heap);
    wal__buf_init(&to, transfer->heap);
    wal__buf_init(&ids, transfer->heap);
    status = list_heads(original, &from_cursor, &from, &transfer->error);
    if (status == WAL_OK) {
        status = lower_heads(transfer, session, &from, &ids);
    }
    if (status == WAL_OK) {
        status = list_heads(session->handle, &to_cursor, &to, &transfer->error);
    }
    if (status == WAL_OK &&
        (add_moved(transfer, session, &to) != WAL_OK || plan_moves(&to, all, &from) != WAL_OK)) {
        status = wal__no_memory(&transfer->error);
    }
    if (status == WAL_OK && all) {
        status = read_texts(transfer, session, &options);
    }
    if (status == WAL_OK && all && transfer->options->rewrite != NULL) {
        status = rewrite_session(transfer, &options);
    }
    if (wal__transfer_try(transfer, session, status)) {
        if (all) {
            wal__copy_change(&options, &change);
        }
        transfer_flush_with(transfer, session, (const void *)from.data,
                            (uint32_t)(from.size / sizeof(struct wal_head)), all ? &change : NULL);
    }
    wal__head_cursor_close(from_cursor);
    wal__head_cursor_close(to_cursor);
    wal__buf_deinit(&from);
    wal__buf_deinit(&to);
    wal__buf_deinit(&ids);
}

void wal__transfer_complete(struct wal__transfer *transfer, struct wal__transfer_session *session)
{
    bool all = session->state == WAL__TRANSFER_NEW || session->state == WAL__TRANSFER_INCOMPLETE ||
               session->is_continued;
    struct wal_session *original = NULL;

    session->is_complete = true;
    if (!session->is_wanted || session->state == WAL__TRANSFER_AHEAD) {
        if (transfer->batch.session == session) {
            wal__transfer_flush(transfer);
        }
        return;
    }
    if (wal__transfer_try(
            transfer, session,
            wal__session_open(transfer->from, session->number, &original, &transfer->error))) {
        finish_session(transfer, session, original, all);
        wal_session_close(original);
    }
}

/* --- redactions ----------------------------------------------------------- */

static enum wal_status redact(struct wal__transfer *transfer, struct wal__transfer_session *session,
                              const struct wal__redact_record *record)
{
    struct wal_slice target = wal__text_slice(record->target_id);
    struct wal_entry entry = WAL_INIT(wal_entry);
    const struct wal_batch batch = {
        .struct_size = sizeof(batch), .entry_count = 1, .entries = &entry};
    struct wal_entry found = WAL_INIT(wal_entry);
    struct wal__buf json;
    enum wal_status status = wal_entry_get(session->handle, target, &found, &transfer->error);

    if (status == WAL_EREDACTED || status == WAL_ENOTFOUND) {
        return WAL_OK;
    }
    if (status != WAL_OK) {
        return status;
    }
    entry.flags = WAL_ENTRY_HEAD_KEEP;
    entry.stream = found.stream;
    entry.id = wal__text_slice(record->entry_id);
    entry.parent_id = target;
    entry.type = WAL_STR(WAL_TYPE_REDACTION);
    wal__buf_init(&json, transfer->heap);
    status = wal__copy_redaction(record, &json);
    entry.payload = (struct wal_slice){json.data, json.size};
    if (status == WAL_OK) {
        status = transfer_commit(session->handle, &batch, NULL, &transfer->error);
    }
    if (status == WAL_EEXISTS) {
        entry.id = (struct wal_slice){NULL, 0};
        status = transfer_commit(session->handle, &batch, NULL, &transfer->error);
    }
    wal__buf_deinit(&json);
    return status;
}

void wal__transfer_redact(struct wal__transfer *transfer, struct wal__transfer_session *session)
{
    const struct wal__transfer_redaction *items = (const void *)transfer->redactions.data;
    size_t count = transfer->redactions.size / sizeof(*items);

    for (size_t i = 0; i < count; i++) {
        struct wal__redact_record record;
        enum wal_status status;

        if (items[i].rank != session->rank || session->handle == NULL || session->is_removed ||
            !wal__transfer_goes_on(transfer, session)) {
            continue;
        }
        status = wal__transfer_read_redact(transfer, items[i].position, &record);
        if (status == WAL_OK) {
            status = redact(transfer, session, &record);
        }
        (void)wal__transfer_try(transfer, session, status);
    }
}

/* --- deletion ------------------------------------------------------------- */

/* *is_used: the copy has entries that the session has not. A branch shares
 * entries with its trunk, and is not compared. */
static enum wal_status compare_copy(struct wal__transfer *transfer,
                                    struct wal__transfer_session *session, bool *is_used)
{
    struct wal__transfer_entries found;
    enum wal_status status;

    *is_used = false;
    if (session->trunk != NULL) {
        return WAL_OK;
    }
    status = wal__transfer_collect(transfer->from, session->number, &transfer->from_records,
                                   &transfer->error);
    if (status == WAL_OK) {
        status = wal__transfer_collect(transfer->to, session->handle->number, &transfer->to_records,
                                       &transfer->error);
    }
    transfer->from_id.sequence = 0;
    transfer->to_id.sequence = 0;
    if (status == WAL_OK) {
        status = wal__transfer_compare_entries(transfer, session, 0, &found);
    }
    *is_used = status == WAL_OK && (found.has_more || found.has_other);
    return status;
}

/* Deletes the copy, unless others append to it meanwhile: what they did is theirs, and the copy
 * stays as an incomplete one. */
static enum wal_status remove_unused(struct wal__transfer *transfer,
                                     struct wal__transfer_session *session)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_session_remove_options options = WAL_INIT(wal_session_remove_options);
    bool is_used = false;
    enum wal_status status = wal_session_get_info(session->handle, &info, &transfer->error);

    if (status == WAL_OK) {
        status = compare_copy(transfer, session, &is_used);
    }
    if (status != WAL_OK || is_used) {
        return status;
    }
    options.flags = WAL_SESSION_REMOVE_EXPECT;
    options.expected_sequence = info.last_sequence;
    status = wal_session_remove(session->handle, &options, &transfer->error);
    return status == WAL_ECONFLICT || status == WAL_ENOTFOUND ? WAL_OK : status;
}

void wal__transfer_remove(struct wal__transfer *transfer, struct wal__transfer_session *session)
{
    enum wal_status status;

    if (session->handle == NULL || session->is_removed ||
        !wal__transfer_goes_on(transfer, session)) {
        return;
    }
    wal__transfer_redact(transfer, session);
    status = remove_unused(transfer, session);
    session->is_removed = status == WAL_OK;
    (void)wal__transfer_try(transfer, session, status);
}

void wal__transfer_close_sessions(struct wal__transfer *transfer)
{
    for (uint32_t i = 0; i < transfer->session_count; i++) {
        wal_session_close(transfer->sessions[i]->handle);
        wal_session_close(transfer->sessions[i]->trunk);
        wal__heap_free(transfer->heap, transfer->sessions[i]->why);
        wal__heap_free(transfer->heap, transfer->sessions[i]);
    }
    wal__heap_free(transfer->heap, transfer->sessions);
    transfer->sessions = NULL;
    transfer->session_count = 0;
    transfer->session_capacity = 0;
}
