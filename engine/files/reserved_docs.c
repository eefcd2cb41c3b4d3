/*
 * reserved_docs.c - reads and writes the engine's documents of a session
 * (reserved_docs.h). Any thread.
 */
#include "engine/files/reserved_docs.h"

#include <string.h>

#include "engine/base/error.h"
#include "engine/session/doc_cursor.h"
#include "engine/session/write_batch.h"
#include "engine/store/input_text.h"
#include "format/bytes/assert.h"

static bool is_reserved(struct wal__span key)
{
    return key.size > 0 && key.data[0] == 0;
}

static enum wal_status try_get(struct wal_doc_cursor *docs,
                               struct wal__span key, struct wal__buf *value,
                               uint64_t *version, struct wal_error *error)
{
    struct wal_doc doc = {.struct_size = sizeof(doc)};
    enum wal_status status = wal__doc_cursor_get(docs, key, 0, &doc, error);

    if (status != WAL_OK) {
        return status;
    }
    if (value != NULL) {
        value->size = 0;
        status = wal__buf_append(value, doc.value.data, (size_t)doc.value.size);
        if (status != WAL_OK) {
            return wal__no_memory(error);
        }
    }
    if (version != NULL) {
        *version = doc.version;
    }
    return WAL_OK;
}

enum wal_status wal__reserved_doc_get(struct wal_session *session,
                                      struct wal__span key,
                                      struct wal__buf *value, uint64_t *version,
                                      struct wal_error *error)
{
    uint64_t looked = 0;
    struct wal_doc_cursor docs = {.core = session->core,
                                  .number = session->number};
    enum wal_status status;

    WAL__ASSERT(is_reserved(key));
    wal__record_buf_init(&docs.scratch, session->core->env.heap);
    do {
        status = try_get(&docs, key, value, version, error);
    } while (
        wal__core_read_again(session->core, status, docs.is_damaged, &looked));
    wal__record_buf_deinit(&docs.scratch);
    return status;
}

static enum wal_status commit(struct wal_session *session,
                              const struct wal_doc *doc, uint64_t *version,
                              struct wal_error *error)
{
    uint64_t looked = 0;
    const struct wal_batch batch = {
        .struct_size = sizeof(batch), .documents = doc, .document_count = 1};
    enum wal_status status;

    do {
        struct wal__op *op = NULL;

        status = wal__batch_create(session, &batch, NULL, WAL__BATCH_PLAIN, &op,
                                   error);
        if (status == WAL_OK) {
            status = wal__session_commit(session->core, op, error);
            if (status == WAL_OK && version != NULL) {
                *version = ((struct wal__batch *)op->request)->docs[0].version;
            }
            wal__op_release(op);
        }
    } while (wal__core_invalidate_derived(session->core, status, &looked));
    return status;
}

enum wal_status wal__reserved_doc_put(struct wal_session *session,
                                      struct wal__span key,
                                      struct wal__span value, uint64_t expected,
                                      uint64_t *version,
                                      struct wal_error *error)
{
    struct wal_doc doc = {.struct_size = sizeof(doc),
                          .key = wal__text_slice(key),
                          .value = wal__text_slice(value)};

    WAL__ASSERT(is_reserved(key));
    if (expected != WAL__DOC_ANY_VERSION) {
        doc.flags = WAL_DOC_EXPECT;
        doc.version = expected;
    }
    return commit(session, &doc, version, error);
}

enum wal_status wal__reserved_doc_delete(struct wal_session *session,
                                         struct wal__span key,
                                         struct wal_error *error)
{
    const struct wal_doc doc = {.struct_size = sizeof(doc),
                                .flags = WAL_DOC_DELETE,
                                .key = wal__text_slice(key)};

    WAL__ASSERT(is_reserved(key));
    return commit(session, &doc, NULL, error);
}
