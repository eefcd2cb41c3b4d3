/*
 * document.c - documents of a session or of the store.
 */
#include "bindings/python/src/core/call.h"
#include "bindings/python/src/core/interface.h"
#include "bindings/python/src/core/rows.h"

/* A call on documents of a handle. */
struct target {
    struct call call;
    struct wal_store *store;     /* null: of a session */
    struct wal_session *session; /* or null */
};

static bool target_begin(struct target *target, PyObject *module,
                         PyObject *object)
{
    void *pointer = call_begin(&target->call, module, object, HANDLE_SHARED);

    if (pointer == NULL) {
        return false;
    }
    target->store = NULL;
    target->session = NULL;
    if (target->call.handle->kind == HANDLE_STORE) {
        target->store = pointer;
    } else {
        target->session = pointer;
    }
    return true;
}

/* doc_get(handle, key, version): the document or None. */
static PyObject *doc_get(PyObject *module, PyObject *const *args,
                         Py_ssize_t count)
{
    struct module_state *state = module_state(module);
    struct wal_doc document = WAL_INIT(wal_doc);
    struct rows rows = {.table = &wal_doc_out};
    struct wal_slice key;
    PyObject *made = NULL;
    struct target target;
    struct call *call = &target.call;
    uint64_t version;

    if (!value_count(module, "doc_get", count, 3) ||
        !value_text(state, args[1], "key", &key) ||
        !value_u64(state, args[2], "version", &version) ||
        !target_begin(&target, module, args[0])) {
        return NULL;
    }
    call_unlock(call);
    (void)pthread_mutex_lock(&call->handle->slices);
    call->status = wal_doc_get(target.store, target.session, key, version,
                               &document, &call->error);
    if (call->status == WAL_OK && !rows_add(&rows, &document)) {
        call->status = WAL_ENOMEM;
    }
    (void)pthread_mutex_unlock(&call->handle->slices);
    call_lock(call);
    if (call->status == WAL_ENOTFOUND) {
        Py_INCREF(Py_None);
        made = Py_None;
    } else if (!call_failed(call)) {
        made = rows_first(&rows);
    }
    rows_free(&rows);
    call_end(call);
    return made;
}

typedef enum wal_status document_action(struct wal_store *store,
                                        struct wal_session *session,
                                        const struct wal_doc *doc,
                                        uint64_t *version,
                                        struct wal_error *error);

/* (handle, document): the newest version. */
static PyObject *change(PyObject *module, PyObject *const *args,
                        Py_ssize_t count, const char *name,
                        document_action *action)
{
    struct wal_doc document = WAL_INIT(wal_doc);
    PyObject *made = NULL;
    struct target target;
    struct call *call = &target.call;
    uint64_t version = 0;

    if (!value_count(module, name, count, 2) ||
        !value_row(module_state(module), args[1], "document", &wal_doc_in,
                   &document) ||
        !target_begin(&target, module, args[0])) {
        return NULL;
    }
    document.flags &= (uint32_t)WAL_DOC_EXPECT;
    call_unlock(call);
    call->status =
        action(target.store, target.session, &document, &version, &call->error);
    call_lock(call);
    if (!call_failed(call)) {
        made = PyLong_FromUnsignedLongLong(version);
    }
    call_end(call);
    return made;
}

static PyObject *doc_put(PyObject *module, PyObject *const *args,
                         Py_ssize_t count)
{
    return change(module, args, count, "doc_put", wal_doc_put);
}

static PyObject *doc_delete(PyObject *module, PyObject *const *args,
                            Py_ssize_t count)
{
    return change(module, args, count, "doc_delete", wal_doc_delete);
}

static enum wal_status next_document(void *cursor, void *item,
                                     struct wal_error *error)
{
    return wal_doc_cursor_next(cursor, item, error);
}

/* doc_list(handle, flags, prefix) */
static PyObject *doc_list(PyObject *module, PyObject *const *args,
                          Py_ssize_t count)
{
    struct module_state *state = module_state(module);
    struct wal_doc_cursor_options options = WAL_INIT(wal_doc_cursor_options);
    struct rows rows = {.table = &wal_doc_out};
    struct wal_doc_cursor *cursor = NULL;
    PyObject *made = NULL;
    struct target target;
    struct call *call = &target.call;

    if (!value_count(module, "doc_list", count, 3) ||
        !value_u32(state, args[1], "flags", &options.flags) ||
        !value_text(state, args[2], "prefix", &options.prefix) ||
        !target_begin(&target, module, args[0])) {
        return NULL;
    }
    call_unlock(call);
    call->status = wal_doc_cursor_open(target.store, target.session, &options,
                                       &cursor, &call->error);
    if (call->status == WAL_OK) {
        call->status =
            rows_fill(&rows, next_document, cursor, SIZE_MAX, &call->error);
    }
    wal_doc_cursor_close(cursor);
    call_lock(call);
    if (!call_failed(call)) {
        made = rows_list(&rows);
    }
    rows_free(&rows);
    call_end(call);
    return made;
}

PyMethodDef document_methods[] = {
    MODULE_FUNCTION("doc_get", doc_get),
    MODULE_FUNCTION("doc_put", doc_put),
    MODULE_FUNCTION("doc_delete", doc_delete),
    MODULE_FUNCTION("doc_list", doc_list),
    {0},
};
