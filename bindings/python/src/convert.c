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

/* --- imports -------------------------------------------------------------- */

/* The functions of an import; the context of the library's. */
struct import_ctx {
    struct callback callback;
    PyObject *project; /* or null */
};

/* Functions that the library calls ---------------------------------------- */

static int32_t on_progress(void *context, struct wal_slice path, uint64_t done, uint64_t total)
{
    struct import_ctx *ctx = context;

    (void)path;
    return callback_progress(&ctx->callback, done, total);
}

static PyObject *issue_list(const struct wal_import_report *report)
{
    const char *item = (const char *)report->issues;
    PyObject *list = PyList_New(0);

    for (uint64_t i = 0; list != NULL && i < report->issue_count; i++) {
        if (!callback_add(list, value_dict(&wal_import_issue_out, item))) {
            value_clear(&list);
        }
        item += report->issues->struct_size;
    }
    return list;
}

static PyObject *error_or_none(struct module_state *state, const struct wal_error *error)
{
    if (error == NULL) {
        Py_RETURN_NONE;
    }
    return raise_make(state, error);
}

static PyObject *report_dict(struct module_state *state, const struct wal_import_report *report)
{
    PyObject *dict = value_dict(&wal_import_report_out, report);
    PyObject *issues = dict == NULL ? NULL : issue_list(report);
    PyObject *error = issues == NULL ? NULL : error_or_none(state, report->error);

    if (error == NULL || PyDict_SetItemString(dict, "issues", issues) != 0 ||
        PyDict_SetItemString(dict, "error", error) != 0) {
        value_clear(&dict);
    }
    Py_XDECREF(issues);
    Py_XDECREF(error);
    return dict;
}

static int32_t on_report(void *context, const struct wal_import_report *report)
{
    struct import_ctx *ctx = context;
    struct callback *callback = &ctx->callback;
    PyObject *dict;

    if (!callback_enter(callback)) {
        return 1;
    }
    dict = report_dict(callback->call->state, report);
    return callback_leave(callback, callback_add(callback->reports, dict));
}

/* Copies the id of a project, a str; false: an exception is set. */
static bool copy_project(struct module_state *state, PyObject *id, char *project, uint64_t size)
{
    struct wal_slice text;

    if (!value_text(state, id, "project", &text)) {
        return false;
    }
    if (text.size >= size) {
        raise_invalid(state, "project", "the id is too long");
        return false;
    }
    if (text.size > 0) {
        memcpy(project, text.data, (size_t)text.size);
    }
    project[text.size] = '\0';
    return true;
}

static int32_t on_project(void *context, struct wal_slice directory, char *project, uint64_t size)
{
    struct import_ctx *ctx = context;
    struct callback *callback = &ctx->callback;
    bool is_named = false;
    PyObject *path;
    PyObject *id = NULL;

    if (ctx->project == NULL || !callback_enter(callback)) {
        return 1;
    }
    path = value_str(directory);
    if (path != NULL) {
        id = PyObject_CallFunctionObjArgs(ctx->project, path, NULL);
        Py_DECREF(path);
    }
    if (id != NULL && id != Py_None) {
        is_named = copy_project(callback->call->state, id, project, size);
    }
    Py_XDECREF(id);
    (void)callback_leave(callback, PyErr_Occurred() == NULL);
    return is_named ? 0 : 1;
}

/* The context ------------------------------------------------------------- */

/* Sets options from a row, with the functions of a context. */
static bool import_options(struct module_state *state, PyObject *row,
                           struct wal_import_options *options, struct import_ctx *ctx)
{
    options->progress = on_progress;
    options->report = on_report;
    options->project = on_project;
    options->ctx = ctx;
    return value_row(state, row, "options", &wal_import_options_in, options);
}

/* Prepares for a call; progress and project may be None. */
static bool import_begin(struct import_ctx *ctx, struct call *call, PyObject *progress,
                         PyObject *project)
{
    ctx->project = project == Py_None ? NULL : project;
    if (ctx->project != NULL && !PyCallable_Check(project)) {
        raise_type(call->state, "project", "a function or None", project);
        return false;
    }
    return callback_begin(&ctx->callback, call, progress);
}

static PyObject *left_out_dict(const struct wal_import_result *result)
{
    PyObject *dict = PyDict_New();

    for (uint32_t i = 0; dict != NULL && i < WAL_IMPORT_LEFT_OUT_SIZE; i++) {
        const char *name = wal_import_left_out_name(i);
        PyObject *number = PyLong_FromUnsignedLongLong(result->left_out[i]);

        if (number == NULL || (name != NULL && PyDict_SetItemString(dict, name, number) != 0)) {
            value_clear(&dict);
        }
        Py_XDECREF(number);
    }
    return dict;
}

/* Ends a call: the result with its reports. */
static PyObject *import_end(struct import_ctx *ctx, struct call *call,
                            const struct wal_import_result *result)
{
    PyObject *dict = NULL;

    if (!call_failed(call)) {
        PyObject *left_out = left_out_dict(result);

        dict = left_out == NULL ? NULL : value_dict(&wal_import_result_out, result);
        if (dict != NULL && (PyDict_SetItemString(dict, "left_out", left_out) != 0 ||
                             PyDict_SetItemString(dict, "reports", ctx->callback.reports) != 0)) {
            value_clear(&dict);
        }
        Py_XDECREF(left_out);
    }
    callback_end(&ctx->callback);
    call_end(call);
    return dict;
}

/* Calls ------------------------------------------------------------------- */

/* import_tree(store, paths, options, progress, project) */
static PyObject *import_tree(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    struct module_state *state = module_state(module);
    struct wal_import_options options = WAL_INIT(wal_import_options);
    struct wal_import_result result = WAL_INIT(wal_import_result);
    struct wal_slice *paths = NULL;
    struct import_ctx ctx;
    struct wal_store *store;
    PyObject *made = NULL;
    uint32_t path_count;
    struct call call;

    if (!value_count(module, "import_tree", count, 5) ||
        !import_options(state, args[2], &options, &ctx) ||
        !value_slices(state, args[1], "paths", true, &paths, &path_count)) {
        return NULL;
    }
    store = call_begin(&call, module, args[0], HANDLE_STORE);
    if (store != NULL && !import_begin(&ctx, &call, args[3], args[4])) {
        call_end(&call);
    } else if (store != NULL) {
        call_unlock(&call);
        call.status = wal_import_tree(store, paths, path_count, &options, &result, &call.error);
        call_lock(&call);
        made = import_end(&ctx, &call, &result);
    }
    free(paths);
    return made;
}

/* import_scan(paths, options, progress) */
static PyObject *import_scan(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    struct module_state *state = module_state(module);
    struct wal_import_options options = WAL_INIT(wal_import_options);
    struct wal_import_result result = WAL_INIT(wal_import_result);
    struct wal_slice *paths = NULL;
    struct import_ctx ctx;
    PyObject *made = NULL;
    uint32_t path_count;
    struct call call;

    if (!value_count(module, "import_scan", count, 3) ||
        !import_options(state, args[1], &options, &ctx) ||
        !value_slices(state, args[0], "paths", true, &paths, &path_count)) {
        return NULL;
    }
    call_begin_free(&call, module);
    if (import_begin(&ctx, &call, args[2], Py_None)) {
        call_unlock(&call);
        call.status = wal_import_scan(paths, path_count, &options, &result, &call.error);
        call_lock(&call);
        made = import_end(&ctx, &call, &result);
    }
    free(paths);
    return made;
}

/* import_clients(): (name, dialect, folder or None) each. */
static PyObject *import_clients(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    PyObject *list;

    (void)args;
    if (!value_count(module, "import_clients", count, 0)) {
        return NULL;
    }
    list = PyList_New(0);
    for (uint32_t i = 0; list != NULL; i++) {
        struct wal_import_client client = WAL_INIT(wal_import_client);
        enum wal_status status = wal_import_client(i, &client, NULL);
        PyObject *folder;

        if (status == WAL_END) {
            break;
        }
        if (status == WAL_ENOTFOUND) {
            Py_INCREF(Py_None);
            folder = Py_None;
        } else {
            folder = PyUnicode_DecodeFSDefault(client.folder);
        }
        if (!callback_add(list, Py_BuildValue("ssN", client.name, client.dialect, folder))) {
            value_clear(&list);
        }
    }
    return list;
}

/* Going on ---------------------------------------------------------------- */

/* import_follow_open(store, paths, options, project): the handle keeps the context, and the
 * function. */
static PyObject *import_follow_open(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    struct module_state *state = module_state(module);
    struct wal_import_options options = WAL_INIT(wal_import_options);
    struct import_ctx *ctx = calloc(1, sizeof(*ctx));
    struct wal_import_follow *follow = NULL;
    struct wal_slice *paths = NULL;
    struct wal_store *store;
    PyObject *made = NULL;
    uint32_t path_count;
    struct call call;

    if (ctx == NULL) {
        return PyErr_NoMemory();
    }
    if (!value_count(module, "import_follow_open", count, 4) ||
        !import_options(state, args[2], &options, ctx) ||
        !value_slices(state, args[1], "paths", true, &paths, &path_count)) {
        free(ctx);
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
        free(ctx);
        return NULL;
    }
    ((struct handle *)made)->memory = ctx;
    Py_INCREF(args[3]);
    ((struct handle *)made)->extra = args[3];
    return made;
}

/* import_follow_next(follow, timeout_ms) */
static PyObject *import_follow_next(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    struct wal_import_result result = WAL_INIT(wal_import_result);
    struct wal_import_follow *follow;
    struct import_ctx *ctx;
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
    ctx = call.handle->memory;
    project = call.handle->extra == NULL ? Py_None : call.handle->extra;
    if (!import_begin(ctx, &call, Py_None, project)) {
        call_end(&call);
        return NULL;
    }
    call_unlock(&call);
    call.status = wal_import_follow_next(follow, timeout, &result, &call.error);
    call_lock(&call);
    return import_end(ctx, &call, &result);
}

/* --- views ---------------------------------------------------------------- */

/* view_open(store, session, dialect, root) */
static PyObject *view_open(PyObject *module, PyObject *const *args, Py_ssize_t count)
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

    for (uint32_t i = 0; dict != NULL && wal_view_loss(view, i, &name, &number, NULL) == WAL_OK;
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
static PyObject *view_losses(PyObject *module, PyObject *const *args, Py_ssize_t count)
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
static PyObject *view_issues(PyObject *module, PyObject *const *args, Py_ssize_t count)
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
    for (uint32_t i = 0; list != NULL && wal_view_issue(view, i, &offset, &reason, NULL) == WAL_OK;
         i++) {
        if (!callback_add(list, Py_BuildValue("Ks", (unsigned long long)offset, reason))) {
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
    MODULE_FUNCTION("view_open", view_open),
    MODULE_FUNCTION("view_losses", view_losses),
    MODULE_FUNCTION("view_issues", view_issues),
    MODULE_FUNCTION("session_export", session_export),
    MODULE_FUNCTION("import_tree", import_tree),
    MODULE_FUNCTION("import_scan", import_scan),
    MODULE_FUNCTION("import_clients", import_clients),
    MODULE_FUNCTION("import_follow_open", import_follow_open),
    MODULE_FUNCTION("import_follow_next", import_follow_next),
    {0},
};
