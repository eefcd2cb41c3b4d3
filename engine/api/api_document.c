/*
 * api_document.c - the public functions that read documents (agentwal.h):
 * arguments are checked here, everything else is below.
 */
#include "engine/base/error.h"
#include "engine/read/lookup.h"
#include "engine/store/input_text.h"
#include "engine/store/session.h"

enum wal_status
wal_doc_cursor_open(struct wal_store *store, struct wal_session *session,
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
        status = wal__invalid(error, "the place for the reader is null");
    }
    if (status == WAL_OK) {
        status = wal__struct_load(WAL__STRUCT(wal_doc_cursor_options), &own,
                                  options, error);
    }
    if (status == WAL_OK) {
        status = wal__check_key(own.prefix, error);
    }
    while (status == WAL_OK) {
        status = wal__doc_cursor_open(core, number, &own, docs, error);
        if (!wal__core_invalidate_derived(core, status, &looked)) {
            break;
        }
        status = WAL_OK;
    }
    if (status == WAL_OK) {
        wal__core_retain(core);
    }
    return status;
}

static enum wal_status check_read(const struct wal_doc_cursor *docs,
                                  const struct wal_doc *doc,
                                  struct wal_error *error)
{
    enum wal_status status =
        wal__check_core(docs == NULL ? NULL : docs->core, error);

    return status == WAL_OK
               ? wal__struct_check_output(WAL__STRUCT(wal_doc), doc, error)
               : status;
}

enum wal_status wal_doc_cursor_next(struct wal_doc_cursor *docs,
                                    struct wal_doc *doc,
                                    struct wal_error *error)
{
    struct wal_doc own;
    struct wal_doc *out;
    enum wal_status status = check_read(docs, doc, error);

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

enum wal_status wal_doc_cursor_get(struct wal_doc_cursor *docs,
                                   struct wal_slice key, uint64_t version,
                                   struct wal_doc *doc, struct wal_error *error)
{
    uint64_t looked = 0;
    struct wal__span span;
    struct wal_doc own;
    struct wal_doc *out = &own;
    enum wal_status status = check_read(docs, doc, error);

    if (status == WAL_OK) {
        status =
            wal__text_check(key, WAL__KEY_MAX, "document's key", &span, error);
    }
    if (status == WAL_OK) {
        status = wal__check_key(key, error);
    }
    if (status == WAL_OK) {
        out = wal__struct_target(WAL__STRUCT(wal_doc), doc, &own);
    }
    while (status == WAL_OK) {
        status = wal__doc_cursor_get(docs, span, version, out, error);
        if (!wal__core_read_again(docs->core, status, docs->is_damaged,
                                  &looked)) {
            break;
        }
        status = WAL_OK;
    }
    if (status == WAL_OK) {
        wal__struct_store(WAL__STRUCT(wal_doc), doc, out);
    }
    return status;
}

/* Where the document is looked up: the lookup of the session, or with a null
 * session of the store. */
static enum wal_status check_lookup(struct wal_store *store,
                                    struct wal_session *session,
                                    const struct wal_doc *doc,
                                    struct wal__core **core,
                                    struct wal_error *error)
{
    enum wal_status status;

    *core = store == NULL ? NULL : &store->core;
    if (session != NULL && store != NULL && session->core != *core) {
        return wal__invalid(error, "the session is of another store");
    }
    *core = session != NULL ? session->core : *core;
    status = wal__check_core(*core, error);
    return status == WAL_OK
               ? wal__struct_check_output(WAL__STRUCT(wal_doc), doc, error)
               : status;
}

enum wal_status wal_doc_get(struct wal_store *store,
                            struct wal_session *session, struct wal_slice key,
                            uint64_t version, struct wal_doc *doc,
                            struct wal_error *error)
{
    uint64_t looked = 0;
    bool is_damaged = false;
    struct wal__core *core = NULL;
    struct wal__span span;
    struct wal_doc own;
    struct wal_doc *out = &own;
    enum wal_status status = check_lookup(store, session, doc, &core, error);

    if (status == WAL_OK) {
        status =
            wal__text_check(key, WAL__KEY_MAX, "document's key", &span, error);
    }
    if (status == WAL_OK) {
        status = wal__check_key(key, error);
    }
    if (status == WAL_OK) {
        out = wal__struct_target(WAL__STRUCT(wal_doc), doc, &own);
    }
    while (status == WAL_OK) {
        status = wal__lookup_doc(
            core, session != NULL ? &session->lookup : &store->lookup,
            session != NULL ? session->number : WAL__STORE_NUMBER, span,
            version, out, &is_damaged, error);
        if (!wal__core_read_again(core, status, is_damaged, &looked)) {
            break;
        }
        status = WAL_OK;
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
