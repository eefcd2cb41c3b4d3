/*
 * view.c - views: a session as files of another program, and exports.
 */
#include "agentwal/convert.h"

#include <stdlib.h>
#include <string.h>

#include "bindings/python/src/core/callback.h"
#include "bindings/python/src/core/interface.h"
#include "bindings/python/src/core/raise.h"

/* view_open(store, session, dialect, root) */
static PyObject *view_open(PyObject *module, PyObject *const *args,
                           Py_ssize_t count)
{
    struct module_state *state = module_state(module);
    struct wal_view_options options = WAL_INIT(wal_view_options);
    struct wal_view *view = NULL;
    struct wal_session *session;
    struct wal_store *store;
    PyObject *made = NULL;
    struct call call, other;

    if (!value_count(module, "view_open", count, 4) ||
        !value_text(state, args[2], "dialect", &options.dialect) ||
        !value_path(state, args[3], "root", &options.root)) {
        return NULL;
    }
    if (options.root.size == 0) {
        raise_invalid(state, "root", "a directory is needed");
        return NULL;
    }
    store = call_begin(&call, module, args[0], HANDLE_STORE);
    if (store == NULL) {
        return NULL;
    }
    session = call_begin(&other, module, args[1], HANDLE_SESSION);
    if (session == NULL) {
        call_end(&call);
        return NULL;
    }
    call_unlock(&call);
    (void)pthread_mutex_lock(&other.handle->slices);
    call.status = wal_view_open(store, session, &options, &view, &call.error);
    (void)pthread_mutex_unlock(&other.handle->slices);
    call_lock(&call);
    made = call_handle(&call, HANDLE_VIEW, view);
    call_end(&other);
    return made;
}

/* The losses of a view as a dict. */
static PyObject *losses_dict(const struct wal_view *view)
{
    PyObject *dict = PyDict_New();
    const char *name;
    uint64_t number;

    for (uint32_t i = 0;
         dict != NULL && wal_view_loss(view, i, &name, &number, NULL) == WAL_OK;
         i++) {
        PyObject *value = PyLong_FromUnsignedLongLong(number);

        if (value == NULL || PyDict_SetItemString(dict, name, value) != 0) {
            value_clear(&dict);
        }
        Py_XDECREF(value);
    }
    return dict;
}

/* view_losses(view) */
static PyObject *view_losses(PyObject *module, PyObject *const *args,
                             Py_ssize_t count)
{
    struct wal_view *view;
    PyObject *made;
    struct call call;

    if (!value_count(module, "view_losses", count, 1)) {
        return NULL;
    }
    view = call_begin(&call, module, args[0], HANDLE_VIEW);
    if (view == NULL) {
        return NULL;
    }
    made = losses_dict(view);
    call_end(&call);
    return made;
}

/* view_issues(view): pairs of an offset and a reason. */
static PyObject *view_issues(PyObject *module, PyObject *const *args,
                             Py_ssize_t count)
{
    struct wal_view *view;
    const char *reason;
    uint64_t offset;
    PyObject *list;
    struct call call;

    if (!value_count(module, "view_issues", count, 1)) {
        return NULL;
    }
    view = call_begin(&call, module, args[0], HANDLE_VIEW);
    if (view == NULL) {
        return NULL;
    }
    list = PyList_New(0);
    for (uint32_t i = 0;
         list != NULL &&
         wal_view_issue(view, i, &offset, &reason, NULL) == WAL_OK;
         i++) {
        if (!callback_add(list, Py_BuildValue("Ks", (unsigned long long)offset,
                                              reason))) {
            value_clear(&list);
        }
    }
    call_end(&call);
    return list;
}

/* Exports ----------------------------------------------------------------- */

/* What a view put. */
struct output {
    char *data;
    size_t size;
    size_t capacity;
};

/* Without the interpreter's lock. */
static int32_t put(void *context, const void *data, uint64_t size)
{
    struct output *output = context;

    if (size > SIZE_MAX / 2 - output->size) {
        return 1;
    }
    if (output->size + size > output->capacity) {
        size_t capacity = 2 * (output->size + (size_t)size);
        char *grown = realloc(output->data, capacity);

        if (grown == NULL) {
            return 1;
        }
        output->data = grown;
        output->capacity = capacity;
    }
    if (size > 0) {
        memcpy(output->data + output->size, data, (size_t)size);
    }
    output->size += (size_t)size;
    return 0;
}

/* Opens a view that puts, and flushes it. Without the interpreter's lock. */
static enum wal_status export_session(struct wal_store *store,
                                      struct handle *session,
                                      const struct wal_view_options *options,
                                      struct wal_view **view,
                                      struct wal_error *error)
{
    enum wal_status status;

    (void)pthread_mutex_lock(&session->slices);
    status = wal_view_open(store, session->pointer, options, view, error);
    (void)pthread_mutex_unlock(&session->slices);
    if (status == WAL_OK) {
        status = wal_view_flush(*view, NULL, error);
    }
    /* Only memory fails a put. */
    return status == WAL_ECALLBACK ? WAL_ENOMEM : status;
}

/* session_export(store, session, dialect): the bytes, and the losses. */
static PyObject *session_export(PyObject *module, PyObject *const *args,
                                Py_ssize_t count)
{
    struct wal_view_options options = WAL_INIT(wal_view_options);
    struct output output = {NULL, 0, 0};
    struct wal_view *view = NULL;
    struct wal_store *store;
    PyObject *made = NULL;
    struct call call, other;

    if (!value_count(module, "session_export", count, 3) ||
        !value_text(module_state(module), args[2], "dialect",
                    &options.dialect)) {
        return NULL;
    }
    store = call_begin(&call, module, args[0], HANDLE_STORE);
    if (store == NULL) {
        return NULL;
    }
    if (call_begin(&other, module, args[1], HANDLE_SESSION) == NULL) {
        call_end(&call);
        return NULL;
    }
    options.put = put;
    options.ctx = &output;
    call_unlock(&call);
    call.status =
        export_session(store, other.handle, &options, &view, &call.error);
    call_lock(&call);
    if (!call_failed(&call)) {
        made = Py_BuildValue(
            "NN",
            PyBytes_FromStringAndSize(output.data, (Py_ssize_t)output.size),
            losses_dict(view));
    }
    wal_view_close(view);
    free(output.data);
    call_end(&other);
    call_end(&call);
    return made;
}

PyMethodDef view_methods[] = {
    MODULE_FUNCTION("view_open", view_open),
    MODULE_FUNCTION("view_losses", view_losses),
    MODULE_FUNCTION("view_issues", view_issues),
    MODULE_FUNCTION("session_export", session_export),
    {0},
};
