/*
 * store.c - opening a store, its state, and waiting for it.
 */
#include "bindings/python/src/core/callback.h"
#include "bindings/python/src/core/raise.h"
#include "bindings/python/src/core/rows.h"

#include "agentwal/admin.h"
#include "bindings/python/src/core/interface.h"

/* open(path, options) */
static PyObject *py_open(PyObject *module, PyObject *const *args,
                         Py_ssize_t count)
{
    struct module_state *state = module_state(module);
    struct wal_open_options options = WAL_INIT(wal_open_options);
    struct wal_store *store = NULL;
    const char *path = NULL;
    struct call call;

    if (!value_count(module, "open", count, 2) ||
        !value_row(state, args[1], "options", &wal_open_options_in, &options) ||
        (args[0] != Py_None &&
         !value_system_path(state, args[0], "path", &path))) {
        return NULL;
    }
    call_begin_free(&call, module);
    call_unlock(&call);
    call.status = wal_open(path, &options, &store, &call.error);
    call_lock(&call);
    if (call_failed(&call)) {
        return NULL;
    }
    return handle_new(state, HANDLE_STORE, store, NULL);
}

/* store_wait(store, sequence, durability, timeout_ms): None: time is over. */
static PyObject *store_wait(PyObject *module, PyObject *const *args,
                            Py_ssize_t count)
{
    struct module_state *state = module_state(module);
    struct wal_store *store;
    PyObject *made = NULL;
    uint64_t sequence;
    uint32_t durability;
    int64_t timeout;
    struct call call;

    if (!value_count(module, "store_wait", count, 4) ||
        !value_u64(state, args[1], "after", &sequence) ||
        !value_u32(state, args[2], "durability", &durability) ||
        !value_i64(state, args[3], "timeout_ms", &timeout)) {
        return NULL;
    }
    store = call_begin(&call, module, args[0], HANDLE_STORE);
    if (store == NULL) {
        return NULL;
    }
    call_unlock(&call);
    call.status =
        wal_store_wait(store, &sequence, durability, timeout, &call.error);
    call_lock(&call);
    if (call.status == WAL_EBUSY) {
        Py_INCREF(Py_None);
        made = Py_None;
    } else if (!call_failed(&call)) {
        made = PyLong_FromUnsignedLongLong(sequence);
    }
    call_end(&call);
    return made;
}

/* completion_fd(store, kind) */
static PyObject *completion_fd(PyObject *module, PyObject *const *args,
                               Py_ssize_t count)
{
    struct wal_store *store;
    PyObject *made = NULL;
    uint32_t kind;
    int32_t fd = -1;
    struct call call;

    if (!value_count(module, "completion_fd", count, 2) ||
        !value_u32(module_state(module), args[1], "kind", &kind)) {
        return NULL;
    }
    store = call_begin(&call, module, args[0], HANDLE_STORE);
    if (store == NULL) {
        return NULL;
    }
    call.status = wal_store_completion_fd(store, kind, &fd, &call.error);
    if (!call_failed(&call)) {
        made = PyLong_FromLong(fd);
    }
    call_end(&call);
    return made;
}

PyMethodDef store_methods[] = {
    MODULE_FUNCTION("open", py_open),
    MODULE_FUNCTION("store_wait", store_wait),
    MODULE_FUNCTION("completion_fd", completion_fd),
    {0},
};
