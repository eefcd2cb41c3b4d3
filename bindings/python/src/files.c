/*
 * files.c - blobs: content by its SHA-256; checkpoints of files, their differences, and rewinds.
 */
#include <stdlib.h>

#include "agentwal/blob.h"
#include "agentwal/checkpoint.h"
#include "bindings/python/src/core/call.h"
#include "bindings/python/src/core/interface.h"
#include "bindings/python/src/core/module.h"
#include "bindings/python/src/core/value.h"

/* --- blobs ---------------------------------------------------------------- */

/* Content that is borrowed until it is released: a str, or any object with the buffer interface. */
struct content {
    struct wal_slice slice;
    Py_buffer view;
    bool has_view;
};

static bool content_take(struct module_state *state, PyObject *value, struct content *content)
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
    content->slice = (struct wal_slice){content->view.buf, (uint64_t)content->view.len};
    return true;
}

static void content_release(struct content *content)
{
    if (content->has_view) {
        PyBuffer_Release(&content->view);
    }
}

/* blob_put(store, content): the digest. */
static PyObject *blob_put(PyObject *module, PyObject *const *args, Py_ssize_t count)
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
static PyObject *blob_create(PyObject *module, PyObject *const *args, Py_ssize_t count)
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
static PyObject *blob_write(PyObject *module, PyObject *const *args, Py_ssize_t count)
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

/* --- checkpoints ---------------------------------------------------------- */

/* The checkpoint of a cursor, as a row; closes the cursor. Without the interpreter's lock. */
static enum wal_status read_info(struct wal_file_cursor *cursor, struct rows *rows,
                                 struct wal_error *error)
{
    struct wal_checkpoint_info info = WAL_INIT(wal_checkpoint_info);
    enum wal_status status = wal_checkpoint_get_info(cursor, &info, error);

    if (status == WAL_OK && !rows_add(rows, &info)) {
        status = WAL_ENOMEM;
    }
    wal_file_cursor_close(cursor);
    return status;
}

/* Ends a call that made one row. */
static PyObject *finish_info(struct call *call, struct rows *rows)
{
    PyObject *made = call_failed(call) ? NULL : rows_first(rows);

    rows_free(rows);
    call_end(call);
    return made;
}

/* checkpoint_create(session, paths, options) */
static PyObject *checkpoint_create(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    struct module_state *state = module_state(module);
    struct wal_checkpoint_options options = WAL_INIT(wal_checkpoint_options);
    struct rows rows = {.table = &wal_checkpoint_info_out};
    struct wal_file_cursor *cursor = NULL;
    struct wal_slice *paths = NULL;
    struct wal_session *session;
    PyObject *made = NULL;
    uint32_t path_count;
    struct call call;

    if (!value_count(module, "checkpoint_create", count, 3) ||
        !value_row(state, args[2], "options", &wal_checkpoint_options_in, &options) ||
        !value_slices(state, args[1], "paths", true, &paths, &path_count)) {
        return NULL;
    }
    session = call_begin(&call, module, args[0], HANDLE_SESSION);
    if (session != NULL) {
        call_unlock(&call);
        call.status =
            wal_checkpoint_create(session, paths, path_count, &options, &cursor, &call.error);
        if (call.status == WAL_OK) {
            call.status = read_info(cursor, &rows, &call.error);
        }
        call_lock(&call);
        made = finish_info(&call, &rows);
    }
    free(paths);
    return made;
}

/* checkpoint_import(session, files, options) */
static PyObject *checkpoint_import(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    struct module_state *state = module_state(module);
    struct wal_checkpoint_options options = WAL_INIT(wal_checkpoint_options);
    struct rows rows = {.table = &wal_checkpoint_info_out};
    struct wal_file_cursor *cursor = NULL;
    struct wal_session *session;
    PyObject *made = NULL;
    void *files = NULL;
    uint32_t file_count;
    struct call call;

    if (!value_count(module, "checkpoint_import", count, 3) ||
        !value_row(state, args[2], "options", &wal_checkpoint_options_in, &options) ||
        !value_rows(state, args[1], "files", &wal_file_in, &files, &file_count)) {
        return NULL;
    }
    session = call_begin(&call, module, args[0], HANDLE_SESSION);
    if (session != NULL) {
        call_unlock(&call);
        call.status =
            wal_checkpoint_import(session, files, file_count, &options, &cursor, &call.error);
        if (call.status == WAL_OK) {
            call.status = read_info(cursor, &rows, &call.error);
        }
        call_lock(&call);
        made = finish_info(&call, &rows);
    }
    free(files);
    return made;
}

/* Begins (session, id). */
static struct wal_session *begin_by_id(struct call *call, PyObject *module, PyObject *const *args,
                                       Py_ssize_t count, const char *name, struct wal_slice *id)
{
    if (!value_count(module, name, count, 2) ||
        !value_text(module_state(module), args[1], "id", id)) {
        return NULL;
    }
    return call_begin(call, module, args[0], HANDLE_SESSION);
}

/* checkpoint_get(session, id): None when there is none. */
static PyObject *checkpoint_get(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    struct rows rows = {.table = &wal_checkpoint_info_out};
    struct wal_file_cursor *cursor = NULL;
    struct wal_session *session;
    struct wal_slice id;
    struct call call;

    session = begin_by_id(&call, module, args, count, "checkpoint_get", &id);
    if (session == NULL) {
        return NULL;
    }
    call_unlock(&call);
    call.status = wal_file_cursor_open(session, id, &cursor, &call.error);
    if (call.status == WAL_OK) {
        call.status = read_info(cursor, &rows, &call.error);
    }
    call_lock(&call);
    if (call.status == WAL_ENOTFOUND) {
        call_end(&call);
        Py_RETURN_NONE;
    }
    return finish_info(&call, &rows);
}

/* Differences and rewinds ------------------------------------------------- */

static enum wal_status next_change(void *cursor, void *item, struct wal_error *error)
{
    return wal_file_change_cursor_next(cursor, item, error);
}

/* Reads the totals and the changes of a cursor, and closes it. Without the interpreter's lock. */
static enum wal_status read_changes(struct wal_file_change_cursor *cursor,
                                    struct wal_file_changes_info *totals, struct rows *rows,
                                    struct wal_error *error)
{
    enum wal_status status = wal_file_changes_get_info(cursor, totals, error);

    if (status == WAL_OK) {
        status = rows_fill(rows, next_change, cursor, SIZE_MAX, error);
    }
    wal_file_change_cursor_close(cursor);
    return status;
}

/* Ends a call: a struct as a dict, and the changes. */
static PyObject *finish(struct call *call, const struct value_table *table, const void *filled,
                        struct rows *rows)
{
    PyObject *made = NULL;

    if (!call_failed(call)) {
        made = Py_BuildValue("NN", value_dict(table, filled), rows_list(rows));
    }
    rows_free(rows);
    call_end(call);
    return made;
}

/* checkpoint_diff(session, before, after) */
static PyObject *checkpoint_diff(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    struct module_state *state = module_state(module);
    struct wal_file_changes_info totals = WAL_INIT(wal_file_changes_info);
    struct wal_file_change_cursor *cursor = NULL;
    struct rows rows = {.table = &wal_file_change_out};
    struct wal_slice before, after;
    struct wal_session *session;
    struct call call;

    if (!value_count(module, "checkpoint_diff", count, 3) ||
        !value_text(state, args[1], "before", &before) ||
        !value_text(state, args[2], "after", &after)) {
        return NULL;
    }
    session = call_begin(&call, module, args[0], HANDLE_SESSION);
    if (session == NULL) {
        return NULL;
    }
    call_unlock(&call);
    call.status = wal_checkpoint_diff(session, before, after, &cursor, &call.error);
    if (call.status == WAL_OK) {
        call.status = read_changes(cursor, &totals, &rows, &call.error);
    }
    call_lock(&call);
    return finish(&call, &wal_file_changes_info_out, &totals, &rows);
}

/* session_diff(session) */
static PyObject *session_diff(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    struct wal_file_changes_info totals = WAL_INIT(wal_file_changes_info);
    struct wal_file_change_cursor *cursor = NULL;
    struct rows rows = {.table = &wal_file_change_out};
    struct wal_session *session;
    struct call call;

    if (!value_count(module, "session_diff", count, 1)) {
        return NULL;
    }
    session = call_begin(&call, module, args[0], HANDLE_SESSION);
    if (session == NULL) {
        return NULL;
    }
    call_unlock(&call);
    call.status = wal_session_diff(session, &cursor, &call.error);
    if (call.status == WAL_OK) {
        call.status = read_changes(cursor, &totals, &rows, &call.error);
    }
    call_lock(&call);
    return finish(&call, &wal_file_changes_info_out, &totals, &rows);
}

/* rewind(session, checkpoint, options) */
static PyObject *rewind_files(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    struct module_state *state = module_state(module);
    struct wal_file_changes_info totals = WAL_INIT(wal_file_changes_info);
    struct wal_rewind_options options = WAL_INIT(wal_rewind_options);
    struct wal_rewind_result result = WAL_INIT(wal_rewind_result);
    struct wal_file_change_cursor *cursor = NULL;
    struct rows rows = {.table = &wal_file_change_out};
    struct wal_session *session;
    struct wal_slice checkpoint;
    struct call call;

    if (!value_count(module, "rewind", count, 3) ||
        !value_text(state, args[1], "checkpoint", &checkpoint) ||
        !value_row(state, args[2], "options", &wal_rewind_options_in, &options)) {
        return NULL;
    }
    session = call_begin(&call, module, args[0], HANDLE_SESSION);
    if (session == NULL) {
        return NULL;
    }
    call_unlock(&call);
    call.status = wal_rewind(session, checkpoint, &options, &result, &cursor, &call.error);
    if (call.status == WAL_OK && cursor != NULL) {
        call.status = read_changes(cursor, &totals, &rows, &call.error);
    }
    call_lock(&call);
    return finish(&call, &wal_rewind_result_out, &result, &rows);
}

PyMethodDef file_methods[] = {
    MODULE_FUNCTION("blob_put", blob_put),
    MODULE_FUNCTION("blob_create", blob_create),
    MODULE_FUNCTION("blob_write", blob_write),
    MODULE_FUNCTION("blob_read", blob_read),
    MODULE_FUNCTION("checkpoint_create", checkpoint_create),
    MODULE_FUNCTION("checkpoint_import", checkpoint_import),
    MODULE_FUNCTION("checkpoint_get", checkpoint_get),
    MODULE_FUNCTION("checkpoint_diff", checkpoint_diff),
    MODULE_FUNCTION("session_diff", session_diff),
    MODULE_FUNCTION("rewind", rewind_files),
    {0},
};
