/*
 * store.c - calls that are not rows of interface.txt: opening a store and waiting for it, pages of
 * sessions, and reading a blob.
 */
#include "agentwal/blob.h"
#include "bindings/python/src/core/call.h"
#include "bindings/python/src/core/interface.h"
#include "bindings/python/src/core/module.h"
#include "bindings/python/src/core/value.h"

/* open(path, options) */
static PyObject *py_open(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    struct module_state *state = module_state(module);
    struct wal_open_options options = WAL_INIT(wal_open_options);
    struct wal_key key = WAL_INIT(wal_key);
    struct wal_store *store = NULL;
    const char *path = NULL;
    struct call call;

    options.key = &key;
    if (!value_count(module, "open", count, 2) ||
        !value_row(state, args[1], "options", &wal_open_options_in, &options) ||
        (args[0] != Py_None && !value_system_path(state, args[0], "path", &path))) {
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
static PyObject *store_wait(PyObject *module, PyObject *const *args, Py_ssize_t count)
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
    call.status = wal_store_wait(store, &sequence, durability, timeout, &call.error);
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

/* --- lists of sessions ----------------------------------------------------- */

static enum wal_status next_session(void *cursor, void *item, struct wal_error *error)
{
    return wal_session_cursor_next(cursor, item, error);
}

/* Reads a page, and the position after it: empty at the end. */
static enum wal_status read_page(struct wal_store *store,
                                 const struct wal_session_cursor_options *which, uint32_t limit,
                                 struct list *rows, struct arena *arena,
                                 char position[WAL_CURSOR_TEXT_SIZE], struct wal_error *error)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_session_cursor *cursor = NULL;
    enum wal_status status;

    position[0] = '\0';
    status = wal_session_cursor_open(store, which, &cursor, error);
    if (status == WAL_OK) {
        status = list_fill(rows, arena, &wal_session_info_out, next_session, cursor, limit, error);
    }
    if (status == WAL_OK && rows->count == limit) {
        status = wal_session_cursor_encode(cursor, position, error);
        if (status == WAL_OK) {
            status = wal_session_cursor_next(cursor, &info, error);
        }
        if (status == WAL_END) {
            position[0] = '\0';
            status = WAL_OK;
        }
    }
    wal_session_cursor_close(cursor);
    return status;
}

/* session_list(store, options, limit): the rows, and the position or None. */
static PyObject *session_list(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    struct module_state *state = module_state(module);
    struct wal_session_cursor_options options = WAL_INIT(wal_session_cursor_options);
    struct list rows = {.first = NULL};
    char position[WAL_CURSOR_TEXT_SIZE];
    struct wal_store *store;
    PyObject *list = NULL;
    uint32_t limit;
    struct call call;

    if (!value_count(module, "session_list", count, 3) ||
        !value_row(state, args[1], "options", &wal_session_cursor_options_in, &options) ||
        !value_u32(state, args[2], "limit", &limit)) {
        return NULL;
    }
    store = call_begin(&call, module, args[0], HANDLE_STORE);
    if (store == NULL) {
        return NULL;
    }
    call_unlock(&call);
    call.status = read_page(store, &options, limit, &rows, &call.arena, position, &call.error);
    call_lock(&call);
    if (!call_failed(&call)) {
        list = value_list(state, &wal_session_info_out, &rows);
    }
    call_end(&call);
    if (list == NULL) {
        return NULL;
    }
    return Py_BuildValue("Nz", list, position[0] == '\0' ? NULL : position);
}

/* --- blobs ---------------------------------------------------------------- */

/* Reads into new bytes, of which no other thread knows. */
static PyObject *read_bytes(struct call *call, struct wal_blob *blob, uint64_t offset,
                            uint64_t size)
{
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
    PyObject *shorter;
    uint64_t got = 0;
    char *data;

    if (bytes == NULL) {
        return NULL;
    }
    data = PyBytes_AsString(bytes);
    call_unlock(call);
    call->status = wal_blob_read(blob, offset, data, size, &got, &call->error);
    call_lock(call);
    if (call_failed(call)) {
        Py_DECREF(bytes);
        return NULL;
    }
    if (got == size) {
        return bytes;
    }
    shorter = PyBytes_FromStringAndSize(data, (Py_ssize_t)got);
    Py_DECREF(bytes);
    return shorter;
}

/* blob_read(blob, offset, size) */
static PyObject *blob_read(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    struct module_state *state = module_state(module);
    uint64_t offset, size, left;
    struct wal_blob *blob;
    PyObject *made;
    struct call call;

    if (!value_count(module, "blob_read", count, 3) ||
        !value_u64(state, args[1], "offset", &offset) ||
        !value_u64(state, args[2], "size", &size)) {
        return NULL;
    }
    blob = call_begin(&call, module, args[0], HANDLE_BLOB);
    if (blob == NULL) {
        return NULL;
    }
    left = wal_blob_size(blob);
    left = offset < left ? left - offset : 0;
    made = read_bytes(&call, blob, offset, size < left ? size : left);
    call_end(&call);
    return made;
}

PyMethodDef store_methods[] = {
    MODULE_FUNCTION("open", py_open),
    MODULE_FUNCTION("store_wait", store_wait),
    MODULE_FUNCTION("session_list", session_list),
    MODULE_FUNCTION("blob_read", blob_read),
    {0},
};
