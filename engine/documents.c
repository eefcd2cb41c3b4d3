/*
 * documents.c - the public functions that read documents (agentwal.h):
 * arguments are checked here, everything else is below.
 */
#include "engine/base/error.h"
#include "engine/check.h"
#include "engine/noop.h"
#include "engine/session/docs.h"
#include "engine/session/text.h"

enum wal_status wal_docs_open(struct wal_store *store,
                              struct wal_session *session,
                              const struct wal_docs_options *options,
                              struct wal_docs **docs, struct wal_error *error)
{
    struct wal__core *core = store == NULL ? NULL : &store->core;
    uint32_t number = session == NULL ? WAL__STORE_NUMBER : session->number;
    enum wal_status status;

    if (session != NULL && store != NULL && session->core != core) {
        return wal__fail(error, WAL_EINVAL, 0, NULL, 0,
                         "the session is of another store");
    }
    core = session != NULL ? session->core : core;
    status = wal__check_core(core, error);
    if (status == WAL_OK && docs == NULL) {
        status = wal__fail(error, WAL_EINVAL, 0, NULL, 0,
                           "the place for the reader is null");
    }
    if (status == WAL_OK && options != NULL) {
        status = wal__check_key(options->prefix, error);
    }
    while (status == WAL_OK) {
        status = wal__docs_open(core, number, options, docs, error);
        if (!wal__core_distrust(core, status)) {
            break;
        }
        status = WAL_OK;
    }
    return status;
}

static enum wal_status check_read(const struct wal_docs *docs,
                                  const struct wal_doc *doc,
                                  struct wal_error *error)
{
    enum wal_status status =
        wal__check_core(docs == NULL ? NULL : docs->core, error);

    return status == WAL_OK
               ? wal__check_struct(doc, doc == NULL ? 0 : doc->struct_size,
                                   sizeof(*doc), error)
               : status;
}

enum wal_status wal_docs_next(struct wal_docs *docs, struct wal_doc *doc,
                              struct wal_error *error)
{
    enum wal_status status = check_read(docs, doc, error);

    return status == WAL_OK ? wal__docs_next(docs, doc, error) : status;
}

enum wal_status wal_docs_get(struct wal_docs *docs, struct wal_slice key,
                             uint64_t version, struct wal_doc *doc,
                             struct wal_error *error)
{
    struct wal__span span;
    enum wal_status status = check_read(docs, doc, error);

    if (status == WAL_OK) {
        status =
            wal__text_check(key, WAL__KEY_MAX, "document's key", &span, error);
    }
    if (status == WAL_OK) {
        status = wal__check_key(key, error);
    }
    if (status == WAL_OK && docs->core->noop) {
        return wal__noop_not_found(error);
    }
    while (status == WAL_OK) {
        status = wal__docs_get(docs, span, version, doc, error);
        if (!wal__core_distrust(docs->core, status)) {
            break;
        }
        status = WAL_OK;
    }
    return status;
}

void wal_docs_close(struct wal_docs *docs)
{
    wal__docs_close(docs);
}
