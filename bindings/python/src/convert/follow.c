/*
 * follow.c - imports that go on.
 */
#include <stdlib.h>

#include "bindings/python/src/convert/import.h"
#include "bindings/python/src/core/raise.h"

/* import_follow_open(store, paths, options, project): the handle keeps the
 * context, and the function. */
static PyObject *import_follow_open(PyObject *module, PyObject *const *args,
                                    Py_ssize_t count)
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
        call.status = wal_import_follow_open(store, paths, path_count, &options,
                                             &follow, &call.error);
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
static PyObject *import_follow_next(PyObject *module, PyObject *const *args,
                                    Py_ssize_t count)
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

/* import_follow_info(follow) */
static PyObject *import_follow_info(PyObject *module, PyObject *const *args,
                                    Py_ssize_t count)
{
    struct wal_import_follow_info info = WAL_INIT(wal_import_follow_info);
    struct wal_import_follow *follow;
    PyObject *made = NULL;
    struct call call;

    if (!value_count(module, "import_follow_info", count, 1)) {
        return NULL;
    }
    follow = call_begin(&call, module, args[0], HANDLE_FOLLOW);
    if (follow == NULL) {
        return NULL;
    }
    call.status = wal_import_follow_get_info(follow, &info, &call.error);
    if (!call_failed(&call)) {
        made = Py_BuildValue(
            "{sIsisKsK}", "is_scanning", (unsigned)info.is_scanning, "errno",
            (int)info.sys_errno, "folders", (unsigned long long)info.folders,
            "scans", (unsigned long long)info.scans);
    }
    call_end(&call);
    return made;
}

PyMethodDef follow_methods[] = {
    MODULE_FUNCTION("import_follow_open", import_follow_open),
    MODULE_FUNCTION("import_follow_next", import_follow_next),
    MODULE_FUNCTION("import_follow_info", import_follow_info),
    {0},
};
