/*
 * document_reader.c - a cursor over documents (document_reader.h, SPEC.md 5.8).
 * The versions are fixed when it is opened; their records are read without a
 * lock.
 *
 * The texts of keys are read from the log when documents are first ordered, and
 * cached in the session's slot.
 */
#include "engine/read/document_reader.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/store/input_text.h"
#include "format/bytes/assert.h"
#include "format/bytes/crc32.h"

static enum wal_status read_record(struct wal_doc_cursor *docs,
                                   uint64_t position, uint64_t sequence,
                                   struct wal__frame *frame,
                                   struct wal__doc_record *record,
                                   struct wal_error *error)
{
    struct wal__span payload;
    enum wal_status status = wal__log_read(
        &docs->core->log, position, &docs->scratch, frame, &payload, error);

    if (status == WAL_OK &&
        (frame->sequence != sequence ||
         wal__doc_record_decode(payload, record) != WAL__FMT_OK)) {
        status = wal__fail_at(
            error, WAL_ECORRUPT, 0, NULL, wal__position_offset(position),
            "the document with version %" PRIu64 " is damaged", sequence);
    }
    return status;
}

/* Reads the text of a document's key from any version that is readable. */
static enum wal_status read_key(struct wal_doc_cursor *docs,
                                struct wal__documents *documents,
                                struct wal__document *document,
                                struct wal_error *error)
{
    const struct wal__doc_version *version =
        wal__documents_newest(documents, document);
    struct wal__doc_record record;
    struct wal__frame frame;
    enum wal_status status;

    WAL__ASSERT(document->key_size == 0);
    do {
        status = read_record(docs, version->position, version->sequence, &frame,
                             &record, error);
        version = wal__documents_previous(documents, version);
    } while ((status == WAL_ECORRUPT || status == WAL_EIO) && version != NULL);
    return status == WAL_OK
               ? wal__documents_set_key(documents, document, record.key)
               : status;
}

/* Reads the key of a document unless it is cached. An unreadable key is left
 * empty: the document sorts first, and reading it reports the damage.
 * WAL_ECORRUPT is returned unless the indexes were rebuilt from the log
 * already, since an index may be at fault. */
static enum wal_status load_key(struct wal_doc_cursor *docs,
                                struct wal__documents *documents,
                                struct wal__document *document,
                                struct wal_error *error)
{
    struct wal_error local_error = {.struct_size = sizeof(local_error)};
    enum wal_status status;

    if (document->key_size > 0) {
        return WAL_OK;
    }
    status = read_key(docs, documents, document, &local_error);
    if (status == WAL_EIO ||
        (status == WAL_ECORRUPT && docs->core->rebuild_from_log)) {
        return WAL_OK;
    }
    if (status != WAL_OK) {
        wal__error_copy(error, &local_error);
    }
    return status;
}

/* Adds a version; its key is at `offset` in keys. */
static enum wal_status add_version(struct wal_doc_cursor *docs,
                                   const struct wal__document *document,
                                   const struct wal__doc_version *version,
                                   size_t offset)
{
    struct wal__doc_cursor_item item = {.key_offset = offset,
                                        .key_size = document->key_size,
                                        .deleted = version->deleted,
                                        .sequence = version->sequence,
                                        .position = version->position};

    WAL__ASSERT(offset + document->key_size <= docs->keys.size);
    return wal__buf_append(&docs->items, &item, sizeof(item));
}

/* Adds the versions of a document that the flags ask for. */
static enum wal_status add_document(struct wal_doc_cursor *docs,
                                    const struct wal__documents *documents,
                                    const struct wal__document *document)
{
    const struct wal__doc_version *version =
        wal__documents_newest(documents, document);
    size_t offset = docs->keys.size;
    bool history = (docs->flags & WAL_DOC_CURSOR_HISTORY) != 0;
    enum wal_status status = WAL_OK;

    if (version->deleted && !history) {
        return WAL_OK;
    }
    status = wal__buf_append(&docs->keys, document->key, document->key_size);
    do {
        if (status == WAL_OK) {
            status = add_version(docs, document, version, offset);
        }
        version = wal__documents_previous(documents, version);
    } while (status == WAL_OK && history && version != NULL);
    return status;
}

/* Whether the document is selected. An unreadable key matches every prefix;
 * reserved keys match only a prefix. */
static bool has_prefix(const struct wal__document *document,
                       struct wal__span prefix)
{
    const struct wal__span key = {document->key, document->key_size};

    if (key.size == 0) {
        return true;
    }
    if (prefix.size == 0) {
        return !wal__doc_key_is_reserved(key);
    }
    return key.size >= prefix.size &&
           memcmp(key.data, prefix.data, prefix.size) == 0;
}

/* By key, then newest first. */
static int compare(const void *left, const void *right, void *ctx)
{
    const uint8_t *keys = ctx;
    const struct wal__doc_cursor_item *a = left;
    const struct wal__doc_cursor_item *b = right;
    size_t size = a->key_size < b->key_size ? a->key_size : b->key_size;
    int order = size == 0
                    ? 0
                    : memcmp(keys + a->key_offset, keys + b->key_offset, size);

    if (order != 0) {
        return order;
    }
    if (a->key_size != b->key_size) {
        return a->key_size < b->key_size ? -1 : 1;
    }
    return a->sequence > b->sequence ? -1 : a->sequence < b->sequence;
}

static void sort(struct wal_doc_cursor *docs)
{
    struct wal__doc_cursor_item *items = (void *)docs->items.data;
    size_t count = docs->items.size / sizeof(*items);

    WAL__ASSERT(docs->items.size % sizeof(*items) == 0);
    if (count > 0) {
        qsort_r(items, count, sizeof(*items), compare, docs->keys.data);
    }
}

/* WAL_ENOTFOUND when the session was deleted. */
static enum wal_status check_session(const struct wal_doc_cursor *docs,
                                     struct wal_error *error)
{
    struct wal__summary summary;

    return docs->number == WAL__STORE_NUMBER
               ? WAL_OK
               : wal__session_find(docs->core, docs->number, &summary, error);
}

/* State lock for writing. */
static enum wal_status collect(struct wal_doc_cursor *docs,
                               struct wal__span prefix, struct wal_error *error)
{
    struct wal__branch_slot *slot;
    enum wal_status status = check_session(docs, error);

    if (status == WAL_OK) {
        status =
            wal__core_load_documents(docs->core, docs->number, &slot, error);
    }
    if (status != WAL_OK || slot == NULL) {
        return status;
    }
    for (uint32_t i = 0; i < slot->documents.count && status == WAL_OK; i++) {
        struct wal__document *document = &slot->documents.items[i];

        status = load_key(docs, &slot->documents, document, error);
        if (status == WAL_OK && has_prefix(document, prefix)) {
            status = add_document(docs, &slot->documents, document);
        }
    }
    return status;
}

static enum wal_status
check_options(const struct wal_doc_cursor_options *options,
              struct wal__span *prefix, struct wal_error *error)
{
    const uint32_t known = WAL_DOC_CURSOR_KEYS | WAL_DOC_CURSOR_HISTORY;

    if ((options->flags & ~known) != 0) {
        return wal__invalid(error,
                            "the flags of the document options are not valid");
    }
    return wal__text_check(options->prefix, WAL__KEY_MAX, "key prefix", prefix,
                           error);
}

enum wal_status wal__doc_cursor_create_empty(struct wal__core *core,
                                             uint32_t number,
                                             struct wal_doc_cursor **docs,
                                             struct wal_error *error)
{
    struct wal_doc_cursor *made =
        wal__heap_zalloc(core->env.heap, sizeof(*made));

    if (made == NULL) {
        return wal__no_memory(error);
    }
    made->core = core;
    made->number = number;
    wal__buf_init(&made->items, core->env.heap);
    wal__buf_init(&made->keys, core->env.heap);
    wal__buf_init(&made->scratch, core->env.heap);
    *docs = made;
    return WAL_OK;
}

enum wal_status
wal__doc_cursor_open(struct wal__core *core, uint32_t number,
                     const struct wal_doc_cursor_options *options,
                     struct wal_doc_cursor **docs, struct wal_error *error)
{
    const struct wal_doc_cursor_options none = {.struct_size = sizeof(none)};
    struct wal__span prefix = {NULL, 0};
    struct wal_doc_cursor *opened;
    enum wal_status status;

    options = options == NULL ? &none : options;
    status = check_options(options, &prefix, error);
    if (status != WAL_OK) {
        return status;
    }
    status = wal__doc_cursor_create_empty(core, number, &opened, error);
    if (status != WAL_OK) {
        return status;
    }
    opened->flags = options->flags;
    if (core->noop) {
        *docs = opened;
        return WAL_OK;
    }
    status = wal__core_write_lock(core, error);
    if (status == WAL_OK) {
        status = collect(opened, prefix, error);
        wal__core_unlock(core);
    }
    if (status != WAL_OK) {
        wal__doc_cursor_close(opened);
        return status == WAL_ENOMEM ? wal__no_memory(error) : status;
    }
    sort(opened);
    *docs = opened;
    return WAL_OK;
}

static void fill_doc(const struct wal__doc_record *record, uint64_t version,
                     uint32_t flags, struct wal_doc *doc)
{
    uint32_t size = doc->struct_size;

    memset(doc, 0, sizeof(*doc));
    doc->struct_size = size;
    doc->flags = flags;
    doc->key = wal__text_slice(record->key);
    doc->value = wal__text_slice(record->value);
    doc->version = version;
    doc->modified_ms = record->modified_ms;
}

enum wal_status wal__doc_cursor_next(struct wal_doc_cursor *docs,
                                     struct wal_doc *doc,
                                     struct wal_error *error)
{
    const struct wal__doc_cursor_item *items = (const void *)docs->items.data;
    const struct wal__doc_cursor_item *item;
    struct wal__doc_record record;
    struct wal__frame frame;
    enum wal_status status;

    WAL__ASSERT(docs->next <= docs->items.size / sizeof(*items));
    if (docs->next == docs->items.size / sizeof(*items)) {
        return WAL_END;
    }
    item = &items[docs->next];
    WAL__ASSERT(item->key_offset + item->key_size <= docs->keys.size);
    status = read_record(docs, item->position, item->sequence, &frame, &record,
                         error);
    if (status != WAL_ENOMEM) {
        docs->next++;
    }
    if (status == WAL_OK) {
        if ((docs->flags & WAL_DOC_CURSOR_KEYS) != 0) {
            record.value.size = 0;
        }
        fill_doc(&record, item->sequence, item->deleted ? WAL_DOC_DELETE : 0,
                 doc);
    }
    return status;
}

/* The requested version, or the newest for 0; NULL when there is none. */
static const struct wal__doc_version *
find_version(const struct wal__documents *documents,
             const struct wal__document *document, uint64_t version)
{
    const struct wal__doc_version *at =
        wal__documents_newest(documents, document);

    while (version != 0 && at != NULL && at->sequence != version) {
        at = wal__documents_previous(documents, at);
    }
    return at;
}

enum wal_status wal__doc_cursor_get(struct wal_doc_cursor *docs,
                                    struct wal__span key, uint64_t version,
                                    struct wal_doc *doc,
                                    struct wal_error *error)
{
    const struct wal__document *document = NULL;
    const struct wal__doc_version *at = NULL;
    struct wal__doc_version found = {0};
    struct wal__doc_record record;
    struct wal__branch_slot *slot;
    struct wal__frame frame;
    enum wal_status status = wal__core_write_lock(docs->core, error);

    if (status != WAL_OK) {
        return status;
    }
    status = check_session(docs, error);
    if (status == WAL_OK) {
        status =
            wal__core_load_documents(docs->core, docs->number, &slot, error);
    }
    if (status == WAL_OK && slot != NULL) {
        document = wal__documents_find(&slot->documents,
                                       wal__id_hash(key.data, key.size));
    }
    if (document != NULL) {
        at = find_version(&slot->documents, document, version);
    }
    if (at != NULL) {
        found = *at;
    }
    wal__core_unlock(docs->core);
    if (status != WAL_OK) {
        return status;
    }
    if (at != NULL && !found.deleted) {
        status = read_record(docs, found.position, found.sequence, &frame,
                             &record, error);
    }
    if (status == WAL_OK &&
        (at == NULL || found.deleted || record.key.size != key.size ||
         memcmp(record.key.data, key.data, key.size) != 0)) {
        return wal__fail(error, WAL_ENOTFOUND,
                         "there is no document \"%.*s\"%s", (int)key.size,
                         (const char *)key.data,
                         version == 0 ? "" : " of that version");
    }
    if (status == WAL_OK) {
        fill_doc(&record, found.sequence, 0, doc);
    }
    return status;
}

void wal__doc_cursor_close(struct wal_doc_cursor *docs)
{
    if (docs == NULL) {
        return;
    }
    wal__buf_deinit(&docs->items);
    wal__buf_deinit(&docs->keys);
    wal__buf_deinit(&docs->scratch);
    wal__heap_free(docs->core->env.heap, docs);
}
