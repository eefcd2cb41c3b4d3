/*
 * blob.c - blobs: content by its SHA-256.
 */
#include "agentwal/blob.h"

#include "bindings/python/src/core/call.h"
#include "bindings/python/src/core/raise.h"
#include "bindings/python/src/core/value.h"

/* Content that is borrowed until it is released: a str, or any object with the
 * buffer interface. */
struct content {
    struct wal_slice slice;
    Py_buffer view;
    bool has_view;
};

static bool content_take(struct module_state *state, PyObject *value,
                         struct content *content)
{
    content->has_view = false;
    if (PyUnicode_Check(value)) {
        return value_text(state, value, "content", &content->slice);
    }
    if (PyObject_GetBuffer(value, &content->view, PyBUF_SIMPLE) != 0) {
        PyErr_Clear();
        raise_type(state, "content", "a str or contiguous bytes", value);
        return false;
    }
    content->has_view = true;
    content->slice =
        (struct wal_slice){content->view.buf, (uint64_t)content->view.len};
    return true;
}

static void content_release(struct content *content)
{
    if (content->has_view) {
        PyBuffer_Release(&content->view);
    }
}

/* blob_put(store, content): the digest. */
static PyObject *blob_put(PyObject *module, PyObject *const *args,
                          Py_ssize_t count)
{
    uint8_t digest[WAL_DIGEST_SIZE];
    struct content content;
    struct wal_store *store;
    PyObject *made = NULL;
    struct call call;

    if (!value_count(module, "blob_put", count, 2) ||
        !content_take(module_state(module), args[1], &content)) {
        return NULL;
    }
    store = call_begin(&call, module, args[0], HANDLE_STORE);
    if (store != NULL) {
        call_unlock(&call);
        call.status = wal_blob_put(store, content.slice, digest, &call.error);
        call_lock(&call);
        if (!call_failed(&call)) {
            made = value_hex(digest, WAL_DIGEST_SIZE);
        }
        call_end(&call);
    }
    content_release(&content);
    return made;
}

/* blob_create(store, named) */
static PyObject *blob_create(PyObject *module, PyObject *const *args,
                             Py_ssize_t count)
{
    struct wal_blob_writer *writer = NULL;
    struct wal_store *store;
    struct call call;
    bool named;

    if (!value_count(module, "blob_create", count, 2)) {
        return NULL;
    }
    named = args[1] == Py_True;
    store = call_begin(&call, module, args[0], HANDLE_STORE);
    if (store == NULL) {
        return NULL;
    }
    call_unlock(&call);
    call.status = named ? wal_blob_create_named(store, &writer, &call.error)
                        : wal_blob_create(store, &writer, &call.error);
    call_lock(&call);
    return call_handle(&call, HANDLE_WRITER, writer);
}

/* blob_write(writer, piece) */
static PyObject *blob_write(PyObject *module, PyObject *const *args,
                            Py_ssize_t count)
{
    struct wal_blob_writer *writer;
    struct content content;
    PyObject *made = NULL;
    struct call call;

    if (!value_count(module, "blob_write", count, 2) ||
        !content_take(module_state(module), args[1], &content)) {
        return NULL;
    }
    writer = call_begin(&call, module, args[0], HANDLE_WRITER);
    if (writer != NULL) {
        call_unlock(&call);
        call.status = wal_blob_write(writer, content.slice, &call.error);
        call_lock(&call);
        made = call_none(&call);
    }
    content_release(&content);
    return made;
}

/* Reads into new bytes, of which no other thread knows. */
static PyObject *read_bytes(struct call *call, struct wal_blob *blob,
                            uint64_t offset, uint64_t size)
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
static PyObject *blob_read(PyObject *module, PyObject *const *args,
                           Py_ssize_t count)
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

PyMethodDef blob_methods[] = {
    MODULE_FUNCTION("blob_put", blob_put),
    MODULE_FUNCTION("blob_create", blob_create),
    MODULE_FUNCTION("blob_write", blob_write),
    MODULE_FUNCTION("blob_read", blob_read),
    {0},
};
