/*
 * convert.c - imports of the session files of other programs, and views.
 */
#include <stdlib.h>
#include <string.h>

#include "agentwal/convert.h"
#include "agentwal/import.h"
#include "bindings/python/src/core/call.h"
#include "bindings/python/src/core/interface.h"
#include "bindings/python/src/core/module.h"

/* --- imports that go on -------------------------------------------------------------- */

static int32_t on_report(void *ctx, const struct wal_import_report *report)
{
    return callback_item(ctx, 0, &wal_import_report_out, report, UINT32_MAX);
}

/* import_follow_open(store, paths, options, project): the handle keeps the callback and the
 * function. */
static PyObject *import_follow_open(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    struct module_state *state = module_state(module);
    struct wal_import_options options = WAL_INIT(wal_import_options);
    struct callback *callback = calloc(1, sizeof(*callback));
    struct wal_import_follow *follow = NULL;
    struct wal_slice *paths = NULL;
    struct wal_store *store;
    PyObject *made = NULL;
    uint32_t path_count;
    struct call call;

    if (callback == NULL) {
        return PyErr_NoMemory();
    }
    options.progress = callback_progress_of_path;
    options.report = on_report;
    options.project = callback_project;
    options.ctx = callback;
    if (!value_count(module, "import_follow_open", count, 4) ||
        !value_row(state, args[2], "options", &wal_import_options_in, &options) ||
        !value_slices(state, args[1], "paths", true, &paths, &path_count)) {
        free(callback);
        return NULL;
    }
    store = call_begin(&call, module, args[0], HANDLE_STORE);
    if (store != NULL) {
        call_unlock(&call);
        call.status =
            wal_import_follow_open(store, paths, path_count, &options, &follow, &call.error);
        call_lock(&call);
        made = call_handle(&call, HANDLE_FOLLOW, follow);
    }
    free(paths);
    if (made == NULL) {
        free(callback);
        return NULL;
    }
    ((struct handle *)made)->memory = callback;
    Py_INCREF(args[3]);
    ((struct handle *)made)->extra = args[3];
    return made;
}

/* import_follow_next(follow, timeout_ms) */
static PyObject *import_follow_next(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    struct wal_import_result result = WAL_INIT(wal_import_result);
    struct wal_import_follow *follow;
    struct callback *callback;
    PyObject *made = NULL;
    PyObject *project;
    uint32_t timeout;
    struct call call;

    if (!value_count(module, "import_follow_next", count, 2) ||
        !value_u32(module_state(module), args[1], "timeout_ms", &timeout)) {
        return NULL;
    }
    follow = call_begin(&call, module, args[0], HANDLE_FOLLOW);
    if (follow == NULL) {
        return NULL;
    }
    callback = call.handle->memory;
    project = call.handle->extra == NULL ? Py_None : call.handle->extra;
    if (callback_begin(callback, &call, Py_None, project, Py_None)) {
        call_unlock(&call);
        call.status = wal_import_follow_next(follow, timeout, &result, &call.error);
        call_lock(&call);
        if (!call_failed(&call)) {
            made = callback_lists(callback, value_dict(call.state, &wal_import_result_out, &result),
                                  (const char *const[]){"reports", NULL});
        }
    }
    callback_end(callback);
    call_end(&call);
    return made;
}

/* --- exports -------------------------------------------------------------- */

/* The losses of a view as a dict. */
static PyObject *losses_dict(const struct wal_view *view)
{
    PyObject *dict = PyDict_New();
    const char *name;
    uint64_t number;

    for (uint32_t i = 0; dict != NULL && wal_view_loss(view, i, &name, &number, NULL) == WAL_OK;
         i++) {
        if (!value_set(dict, name, PyLong_FromUnsignedLongLong(number))) {
            value_clear(&dict);
        }
    }
    return dict;
}

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
static enum wal_status export_session(struct wal_store *store, struct handle *session,
                                      const struct wal_view_options *options,
                                      struct wal_view **view, struct wal_error *error)
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
static PyObject *session_export(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    struct wal_view_options options = WAL_INIT(wal_view_options);
    struct output output = {NULL, 0, 0};
    struct wal_view *view = NULL;
    struct wal_store *store;
    PyObject *made = NULL;
    struct call call, other;

    if (!value_count(module, "session_export", count, 3) ||
        !value_text(module_state(module), args[2], "dialect", &options.dialect)) {
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
    call.status = export_session(store, other.handle, &options, &view, &call.error);
    call_lock(&call);
    if (!call_failed(&call)) {
        made = Py_BuildValue("NN", PyBytes_FromStringAndSize(output.data, (Py_ssize_t)output.size),
                             losses_dict(view));
    }
    wal_view_close(view);
    free(output.data);
    call_end(&other);
    call_end(&call);
    return made;
}

PyMethodDef convert_methods[] = {
    MODULE_FUNCTION("session_export", session_export),
    MODULE_FUNCTION("import_follow_open", import_follow_open),
    MODULE_FUNCTION("import_follow_next", import_follow_next),
    {0},
};
