/*
 * document.c - documents of a session, or of the store. The first argument of
 * each function is the session or null, the second the store.
 */
#include "bindings/node/native/base/value.h"
#include "bindings/node/native/interface.h"
#include "bindings/node/native/modules.h"
#include "bindings/node/native/store/job.h"
#include "bindings/node/native/store/store.h"

/* Whose documents they are: one of the two is set. */
struct owner {
    struct store *store;
    struct handle *session;
};

static struct owner read_owner(struct call *call)
{
    struct owner owner = {NULL, NULL};

    if (value_is_absent(call, call_arg(call, 0))) {
        owner.store = store_get(call, 1);
    } else {
        owner.session = handle_get(call, 0, &session_type);
    }
    return owner;
}

static struct wal_store *owner_store(const struct owner *owner)
{
    return owner->store == NULL ? NULL : owner->store->wal;
}

static struct wal_session *owner_session(const struct owner *owner)
{
    return owner->session == NULL ? NULL : owner->session->object;
}

/* --- reading ------------------------------------------------------------ */

/* document(session, store, key, version): the document with its value as text,
 * or null */
static napi_value get_document(struct call *call)
{
    struct wal_doc doc = WAL_INIT(wal_doc);
    struct owner owner = read_owner(call);
    struct wal_slice key = value_text(call, call_arg(call, 2));
    uint64_t version = value_u64(call, call_arg(call, 3));
    enum wal_status status;

    if (call->failed) {
        return NULL;
    }
    status = wal_doc_get(owner_store(&owner), owner_session(&owner), key,
                         version, &doc, call_error(call));
    if (status == WAL_ENOTFOUND) {
        return make_null(call);
    }
    return call_check(call, status) ? make_struct(call, &wal_doc_out, &doc)
                                    : NULL;
}

static enum wal_status next_document(void *cursor, void *doc,
                                     struct wal_error *error)
{
    return wal_doc_cursor_next(cursor, doc, error);
}

/* documents(session, store, prefix, flags): an array */
static napi_value list_documents(struct call *call)
{
    struct owner owner = read_owner(call);
    struct wal_doc_cursor_options options;
    struct wal_doc_cursor *cursor = NULL;
    napi_value documents;

    read_struct(call, 2, &wal_doc_cursor_options_in, &options);
    if (call->failed ||
        !call_check(call, wal_doc_cursor_open(owner_store(&owner),
                                              owner_session(&owner), &options,
                                              &cursor, call_error(call)))) {
        return NULL;
    }
    documents =
        make_rows(call, &wal_doc_out, next_document, cursor, UINT32_MAX);
    wal_doc_cursor_close(cursor);
    return documents;
}

/* --- writing ------------------------------------------------------------ */

struct put_job {
    struct job job;
    struct wal_doc doc;
    bool is_deletion;
    uint64_t version;
};

static enum wal_status put_run(struct job *job, struct wal_error *error)
{
    struct put_job *self = (struct put_job *)job;
    struct wal_session *session =
        job->handle == NULL ? NULL : job->handle->object;

    return self->is_deletion ? wal_doc_delete(job->store->wal, session,
                                              &self->doc, &self->version, error)
                             : wal_doc_put(job->store->wal, session, &self->doc,
                                           &self->version, error);
}

static napi_value put_finish(struct call *call, struct job *job)
{
    return make_number(call, ((struct put_job *)job)->version);
}

static const struct job_kind put_kind = {"put", sizeof(struct put_job), put_run,
                                         put_finish, NULL};

/* putDocument(session, store, key, value, flags, version): the newest version.
 * A value of undefined deletes it. */
static napi_value put_document(struct call *call)
{
    struct owner owner = read_owner(call);
    struct put_job *self =
        job_create(call, &put_kind, owner.store, owner.session);

    if (self == NULL) {
        return NULL;
    }
    self->is_deletion = value_is_absent(call, call_arg(call, 3));
    read_struct(call, 2, &wal_doc_in, &self->doc);
    return job_start(call, &self->job);
}

const struct call_method document_methods[] = {
    {"document", get_document},
    {"documents", list_documents},
    {"putDocument", put_document},
    {NULL, NULL},
};
