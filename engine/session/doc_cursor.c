/*
 * doc_cursor.c - a cursor over documents (doc_cursor.h, SPEC.md 5.8). The versions are fixed when
 * it is opened; their records are read without a lock.
 *
 * The texts of keys are read from the log when documents are first ordered, and where a prefix is
 * searched.
 */
#include "engine/session/doc_cursor.h"

#include <inttypes.h>
#include <string.h>

#include "engine/store/documents.h"
#include "engine/store/input_text.h"
#include "format/bytes/assert.h"
#include "format/bytes/crc32.h"

static enum wal_status read_record(struct wal_doc_cursor *docs, uint64_t position,
                                   uint64_t sequence, struct wal__frame *frame,
                                   struct wal__doc_record *record, struct wal_error *error)
{
    struct wal__span payload;
    enum wal_status status =
        wal__log_read(&docs->core->log, position, &docs->scratch, frame, &payload, error);

    if (status == WAL_OK &&
        (frame->sequence != sequence || wal__doc_record_decode(payload, record) != WAL__FMT_OK)) {
        status = wal__fail_at(error, WAL_ECORRUPT, 0, NULL, wal__position_offset(position),
                              "the document with version %" PRIu64 " is damaged", sequence);
    }
    return status;
}

/* Context of reading keys. */
struct key_reader {
    struct wal_doc_cursor *docs;
    const struct wal__documents *documents;
    struct wal_error *error;
};

/* Reads the key of a version; the hash in the record's header verifies it. */
static enum wal_status read_key_at(struct wal_doc_cursor *docs,
                                   const struct wal__doc_version *version, uint64_t key_hash,
                                   struct wal__span *key, struct wal_error *error)
{
    struct wal__span first;
    struct wal__frame frame;
    enum wal_status status = wal__log_peek(&docs->core->log, version->position, WAL__DOC_KEY_END,
                                           &docs->scratch, &frame, &first, error);

    if (status == WAL_OK &&
        (frame.sequence != version->sequence || !wal__doc_record_key(first, key) ||
         wal__id_hash(key->data, key->size) != key_hash)) {
        status =
            wal__fail_at(error, WAL_ECORRUPT, 0, NULL, wal__position_offset(version->position),
                         "the document with version %" PRIu64 " is damaged", version->sequence);
    }
    return status;
}

/* Reads a document's key from any version that is readable: the key that orders it. An unreadable
 * key is WAL_ENOTFOUND: the document sorts first, and reading it reports the damage. WAL_ECORRUPT
 * is returned unless the indexes were rebuilt from the log already, since an index may be at
 * fault. */
static enum wal_status read_key(void *ctx, const struct wal__document *document,
                                struct wal__span *key)
{
    const struct key_reader *reader = ctx;
    const struct wal__doc_version *version = wal__documents_newest(reader->documents, document);
    struct wal_error error = {.struct_size = sizeof(error)};
    enum wal_status status;

    do {
        status = read_key_at(reader->docs, version, document->key_hash, key, &error);
        version = wal__documents_previous(reader->documents, version);
    } while ((status == WAL_ECORRUPT || status == WAL_EIO) && version != NULL);
    if (status == WAL_EIO || (status == WAL_ECORRUPT && reader->docs->core->rebuild_from_log)) {
        return WAL_ENOTFOUND;
    }
    if (status != WAL_OK) {
        wal__error_copy(reader->error, &error);
    }
    return status;
}

/* Adds the versions of a document that the flags ask for. */
static enum wal_status add_document(void *ctx, uint32_t rank, bool is_readable)
{
    const struct key_reader *reader = ctx;
    const struct wal__documents *documents = reader->documents;
    const struct wal__doc_version *version =
        wal__documents_newest(documents, &documents->items[rank]);
    bool history = (reader->docs->flags & WAL_DOC_CURSOR_HISTORY) != 0;
    enum wal_status status = WAL_OK;

    if (version->deleted && !history) {
        return WAL_OK;
    }
    do {
        struct wal__doc_cursor_item item = {.document = rank,
                                            .deleted = version->deleted,
                                            .is_unreadable = !is_readable,
                                            .sequence = version->sequence,
                                            .position = version->position};

        status = wal__buf_append(&reader->docs->items, &item, sizeof(item));
        version = wal__documents_previous(documents, version);
    } while (status == WAL_OK && history && version != NULL);
    return status;
}

/* WAL_ENOTFOUND when the session was deleted. */
static enum wal_status check_session(const struct wal_doc_cursor *docs, struct wal_error *error)
{
    struct wal__summary summary;

    return docs->number == WAL__STORE_NUMBER
               ? WAL_OK
               : wal__session_find(docs->core, docs->number, &summary, error);
}

/* Adds the documents with the prefix, or all that are not reserved. */
static enum wal_status visit(struct wal_doc_cursor *docs, struct wal__documents *documents,
                             struct wal__span prefix, struct wal_error *error)
{
    static const uint8_t not_reserved[] = {1};
    struct key_reader reader = {docs, documents, error};
    const struct wal__document_keys keys = {read_key, &reader};
    struct wal__document_range range = {prefix, prefix};
    enum wal_status status = WAL_ECORRUPT;

    if (prefix.size == 0) {
        range.from = (struct wal__span){not_reserved, sizeof(not_reserved)};
    }
    /* A key that was readable when it was sorted may be so no more: then all are sorted again. */
    for (int attempt = 0; attempt < 2 && status == WAL_ECORRUPT; attempt++) {
        docs->items.size = 0;
        status = wal__documents_visit(documents, &keys, &range, add_document, &reader);
    }
    return status;
}

/* State lock for writing. */
static enum wal_status collect(struct wal_doc_cursor *docs, struct wal__span prefix,
                               struct wal_error *error)
{
    struct wal__branch_slot *slot;
    enum wal_status status = check_session(docs, error);

    if (status == WAL_OK) {
        status = wal__core_load_documents(docs->core, docs->number, &slot, error);
    }
    if (status != WAL_OK || slot == NULL) {
        return status;
    }
    return visit(docs, &slot->documents, prefix, error);
}

static enum wal_status check_options(const struct wal_doc_cursor_options *options,
                                     struct wal__span *prefix, struct wal_error *error)
{
    const uint32_t known = WAL_DOC_CURSOR_KEYS | WAL_DOC_CURSOR_HISTORY;

    if ((options->flags & ~known) != 0) {
        return wal__invalid(error, "the flags of the document options are not valid");
    }
    return wal__text_check(options->prefix, WAL__KEY_MAX, "key prefix", prefix, error);
}

enum wal_status wal__doc_cursor_create_empty(struct wal__core *core, uint32_t number,
                                             struct wal_doc_cursor **docs, struct wal_error *error)
{
    struct wal_doc_cursor *made = wal__heap_zalloc(core->env.heap, sizeof(*made));

    if (made == NULL) {
        return wal__no_memory(error);
    }
    made->core = core;
    made->number = number;
    wal__buf_init(&made->items, core->env.heap);
    wal__record_buf_init(&made->scratch, core->env.heap);
    wal__buf_init(&made->copy, core->env.heap);
    *docs = made;
    return WAL_OK;
}

enum wal_status wal__doc_cursor_open(struct wal__core *core, uint32_t number,
                                     const struct wal_doc_cursor_options *options,
                                     struct wal_doc_cursor **docs, struct wal_error *error)
{
    const struct wal_doc_cursor_options none = {.struct_size = sizeof(none)};
    struct wal__span prefix = {NULL, 0};
    struct wal_doc_cursor *opened = NULL;
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
    status = wal__core_write_lock(core, error);
    if (status == WAL_OK) {
        status = collect(opened, prefix, error);
        wal__core_unlock(core);
    }
    if (status != WAL_OK) {
        wal__doc_cursor_close(opened);
        return status == WAL_ENOMEM ? wal__no_memory(error) : status;
    }
    *docs = opened;
    return WAL_OK;
}

static void fill_doc(const struct wal__doc_record *record, uint64_t version, uint32_t flags,
                     struct wal_doc *doc)
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

/* Finds where compaction put the versions that are still to be returned. One that it dropped keeps
 * its position, where it is not found. */
static enum wal_status find_again(struct wal_doc_cursor *docs, struct wal_error *error)
{
    struct wal__doc_cursor_item *items = (void *)docs->items.data;
    size_t count = docs->items.size / sizeof(*items);
    struct wal__branch_slot *slot = NULL;
    enum wal_status status = wal__core_write_lock(docs->core, error);

    if (status != WAL_OK) {
        return status;
    }
    status = check_session(docs, error);
    if (status == WAL_OK) {
        status = wal__core_load_documents(docs->core, docs->number, &slot, error);
    }
    for (size_t i = docs->next; slot != NULL && i < count; i++) {
        const struct wal__doc_version *version =
            wal__documents_find_version(&slot->documents, items[i].sequence);

        if (version != NULL) {
            items[i].position = version->position;
        }
    }
    wal__core_unlock(docs->core);
    return status;
}

/* Reads the record of the next item. */
static enum wal_status read_next(struct wal_doc_cursor *docs, struct wal__doc_record *record,
                                 struct wal_error *error)
{
    const struct wal__doc_cursor_item *items = (const void *)docs->items.data;
    const struct wal__doc_cursor_item *item = &items[docs->next];
    struct wal__frame frame;
    uint64_t looked = 0;
    enum wal_status status =
        read_record(docs, item->position, item->sequence, &frame, record, error);

    while (status == WAL_ECORRUPT && wal__core_look_again(docs->core, &looked)) {
        status = find_again(docs, error);
        if (status == WAL_OK) {
            status = read_record(docs, item->position, item->sequence, &frame, record, error);
        }
    }
    return status;
}

enum wal_status wal__doc_cursor_next(struct wal_doc_cursor *docs, struct wal_doc *doc,
                                     struct wal_error *error)
{
    const struct wal__doc_cursor_item *items = (const void *)docs->items.data;
    const struct wal__doc_cursor_item *item;
    struct wal__doc_record record;
    enum wal_status status;

    WAL__ASSERT(docs->next <= docs->items.size / sizeof(*items));
    if (docs->next == docs->items.size / sizeof(*items)) {
        wal__record_buf_release(&docs->scratch);
        return WAL_END;
    }
    item = &items[docs->next];
    status = read_next(docs, &record, error);
    if (status != WAL_ENOMEM) {
        docs->next++;
    }
    if (status == WAL_OK) {
        if ((docs->flags & WAL_DOC_CURSOR_KEYS) != 0) {
            record.value.size = 0;
        }
        fill_doc(&record, item->sequence, item->deleted ? WAL_DOC_DELETE : 0, doc);
    }
    return status;
}

/* The requested version, or the newest for 0; NULL when there is none. */
static const struct wal__doc_version *find_version(const struct wal__documents *documents,
                                                   const struct wal__document *document,
                                                   uint64_t version)
{
    const struct wal__doc_version *at = wal__documents_newest(documents, document);

    while (version != 0 && at != NULL && at->sequence != version) {
        at = wal__documents_previous(documents, at);
    }
    return at;
}

enum wal_status wal__doc_cursor_get(struct wal_doc_cursor *docs, struct wal__span key,
                                    uint64_t version, struct wal_doc *doc, struct wal_error *error)
{
    const struct wal__document *document = NULL;
    const struct wal__doc_version *at = NULL;
    struct wal__doc_version found = {0};
    struct wal__doc_record record;
    struct wal__branch_slot *slot;
    struct wal__frame frame;
    enum wal_status status = wal__core_write_lock(docs->core, error);

    docs->is_damaged = false;
    if (status != WAL_OK) {
        return status;
    }
    status = check_session(docs, error);
    if (status == WAL_OK) {
        status = wal__core_load_documents(docs->core, docs->number, &slot, error);
    }
    if (status == WAL_OK && slot != NULL) {
        document = wal__documents_find(&slot->documents, wal__id_hash(key.data, key.size));
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
        status = read_record(docs, found.position, found.sequence, &frame, &record, error);
        docs->is_damaged =
            status == WAL_ECORRUPT &&
            wal__log_has_record(&docs->core->log, found.position, found.sequence, &docs->scratch);
    }
    if (status == WAL_OK && (at == NULL || found.deleted || record.key.size != key.size ||
                             memcmp(record.key.data, key.data, key.size) != 0)) {
        return wal__fail(error, WAL_ENOTFOUND, "there is no document \"%.*s\"%s", (int)key.size,
                         (const char *)key.data, version == 0 ? "" : " of that version");
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
    wal__record_buf_deinit(&docs->scratch);
    wal__buf_deinit(&docs->copy);
    wal__heap_free(docs->core->env.heap, docs);
}

enum wal_status wal_doc_cursor_open(struct wal_store *store, struct wal_session *session,
                                    const struct wal_doc_cursor_options *options,
                                    struct wal_doc_cursor **docs, struct wal_error *error)
{
    uint64_t looked = 0;
    struct wal__core *core = store == NULL ? NULL : &store->core;
    uint32_t number = session == NULL ? WAL__STORE_NUMBER : session->number;
    struct wal_doc_cursor_options own;
    enum wal_status status;

    if (session != NULL && store != NULL && session->core != core) {
        return wal__invalid(error, "the session is of another store");
    }
    core = session != NULL ? session->core : core;
    status = wal__check_core(core, error);
    if (status == WAL_OK && docs == NULL) {
        status = wal__invalid(error, "the place for the cursor is null");
    }
    if (status == WAL_OK) {
        status = wal__struct_load(WAL__STRUCT(wal_doc_cursor_options), &own, options, error);
    }
    if (status == WAL_OK) {
        status = wal__check_key(own.prefix, error);
    }
    for (bool again = status == WAL_OK; again;
         again = wal__core_invalidate_derived(core, status, &looked)) {
        status = wal__doc_cursor_open(core, number, &own, docs, error);
    }
    if (status == WAL_OK) {
        wal__core_retain(core);
    }
    return status;
}

enum wal_status wal_doc_cursor_next(struct wal_doc_cursor *docs, struct wal_doc *doc,
                                    struct wal_error *error)
{
    struct wal_doc own;
    struct wal_doc *out;
    enum wal_status status =
        wal__check_output(docs == NULL ? NULL : docs->core, WAL__STRUCT(wal_doc), doc, error);

    if (status != WAL_OK) {
        return status;
    }
    out = wal__struct_target(WAL__STRUCT(wal_doc), doc, &own);
    status = wal__doc_cursor_next(docs, out, error);
    if (status == WAL_OK) {
        wal__struct_store(WAL__STRUCT(wal_doc), doc, out);
    }
    return status;
}

enum wal_status wal_doc_cursor_get(struct wal_doc_cursor *docs, struct wal_slice key,
                                   uint64_t version, struct wal_doc *doc, struct wal_error *error)
{
    uint64_t looked = 0;
    struct wal__span span;
    struct wal_doc own;
    struct wal_doc *out = &own;
    enum wal_status status =
        wal__check_output(docs == NULL ? NULL : docs->core, WAL__STRUCT(wal_doc), doc, error);

    if (status == WAL_OK) {
        status = wal__text_check(key, WAL__KEY_MAX, "document's key", &span, error);
    }
    if (status == WAL_OK) {
        status = wal__check_key(key, error);
    }
    if (status == WAL_OK) {
        out = wal__struct_target(WAL__STRUCT(wal_doc), doc, &own);
    }
    for (bool again = status == WAL_OK; again;
         again = wal__core_read_again(docs->core, status, docs->is_damaged, &looked)) {
        status = wal__doc_cursor_get(docs, span, version, out, error);
    }
    if (status == WAL_OK) {
        wal__struct_store(WAL__STRUCT(wal_doc), doc, out);
    }
    return status;
}

void wal_doc_cursor_close(struct wal_doc_cursor *docs)
{
    struct wal__core *core = docs == NULL ? NULL : docs->core;

    wal__doc_cursor_close(docs);
    wal__core_release(core);
}
