/*
 * document_items.c - reads the items of a session's documents
 * (document_items.h, SPEC.md 10.2).
 *
 * Threads: one thread at a time.
 */
#include "convert/render/document_items.h"

#include "engine/base/error.h"

struct documents {
    struct wal__session_items *items;
    struct wal_error *error;
    enum wal_status status;
};

static bool copy_value(struct documents *documents, const struct wal_doc *doc,
                       struct wal__json_span *value)
{
    *value = wal__arena_copy(
        &documents->items->scratch.arena,
        (struct wal__json_span){doc->value.data, (size_t)doc->value.size});
    if (value->data == NULL) {
        documents->status = wal__no_memory(documents->error);
    }
    return value->data != NULL;
}

static bool get_document(void *ctx, const char *key,
                         struct wal__json_span *value)
{
    struct documents *documents = ctx;
    struct wal_doc doc = {.struct_size = sizeof(doc)};
    struct wal_doc_cursor *docs = NULL;
    enum wal_status status;
    bool is_there = false;

    status =
        wal_doc_cursor_open(documents->items->store, documents->items->session,
                            NULL, &docs, documents->error);
    if (status == WAL_OK) {
        status = wal_doc_cursor_get(docs, wal__slice_from_text(key), 0, &doc,
                                    documents->error);
        is_there = status == WAL_OK && copy_value(documents, &doc, value);
    }
    wal_doc_cursor_close(docs);
    if (status == WAL_ECORRUPT) {
        documents->items->unreadable++;
    } else if (status != WAL_OK && status != WAL_ENOTFOUND) {
        documents->status = status;
    }
    return is_there;
}

/* Passes one document to `each`; false to stop. */
static bool emit_document(struct documents *documents,
                          const struct wal_doc *doc,
                          bool (*each)(void *each_ctx, const char *key,
                                       struct wal__json_span value),
                          void *each_ctx)
{
    struct wal__json_span value;
    char key[1025];

    if (doc->key.size >= sizeof(key) || !copy_value(documents, doc, &value)) {
        return doc->key.size >= sizeof(key);
    }
    for (size_t i = 0; i < doc->key.size; i++) {
        key[i] = ((const char *)doc->key.data)[i];
    }
    key[doc->key.size] = '\0';
    return each(each_ctx, key, value);
}

static bool scan_documents(void *ctx, const char *prefix,
                           bool (*each)(void *each_ctx, const char *key,
                                        struct wal__json_span value),
                           void *each_ctx)
{
    struct documents *documents = ctx;
    struct wal_doc_cursor_options options = {
        .struct_size = sizeof(options), .prefix = wal__slice_from_text(prefix)};
    struct wal_doc_cursor *docs = NULL;
    bool wants_more = true;
    enum wal_status status;

    status =
        wal_doc_cursor_open(documents->items->store, documents->items->session,
                            &options, &docs, documents->error);
    while (wants_more && status == WAL_OK) {
        struct wal_doc doc = {.struct_size = sizeof(doc)};
        status = wal_doc_cursor_next(docs, &doc, documents->error);
        if (status == WAL_ECORRUPT) {
            documents->items->unreadable++;
            status = WAL_OK;
        } else if (status == WAL_OK) {
            wants_more = emit_document(documents, &doc, each, each_ctx);
        }
    }
    wal_doc_cursor_close(docs);
    if (status != WAL_OK && status != WAL_END) {
        documents->status = status;
    }
    return wants_more && status == WAL_END;
}

enum wal_status wal__document_items_scan(
    struct wal__session_items *items, const char *prefix,
    bool (*each)(void *ctx, const char *key, struct wal__json_span value),
    void *ctx, struct wal_error *error)
{
    struct documents documents = {
        .items = items, .error = error, .status = WAL_OK};

    (void)scan_documents(&documents, prefix, each, ctx);
    return documents.status;
}

enum wal_status wal__document_items_read(struct wal__session_items *items,
                                         struct wal_error *error)
{
    struct documents documents = {
        .items = items, .error = error, .status = WAL_OK};
    const struct wal__model_documents tree = {
        .ctx = &documents, .get = get_document, .scan = scan_documents};

    if (items->dialect->read_ops->documents(&items->lines, &tree) !=
            WAL__JSON_OK &&
        !items->has_stopped && documents.status == WAL_OK) {
        return wal__no_memory(error);
    }
    return documents.status;
}
