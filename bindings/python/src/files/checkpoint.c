/*
 * checkpoint.c - checkpoints of files.
 */
#include "agentwal/checkpoint.h"

#include <stdlib.h>

#include "bindings/python/src/core/call.h"
#include "bindings/python/src/core/rows.h"

static const struct value_field option_fields[] = {
    VALUE_FIELD(wal_checkpoint_options, flags, VALUE_U32),
    VALUE_FIELD(wal_checkpoint_options, threads, VALUE_U32),
    VALUE_FIELD(wal_checkpoint_options, id, VALUE_TEXT),
    VALUE_FIELD(wal_checkpoint_options, root, VALUE_PATH),
    VALUE_FIELD(wal_checkpoint_options, created_ms, VALUE_I64),
    VALUE_FIELD(wal_checkpoint_options, entry_id, VALUE_TEXT),
};
VALUE_TABLE(option_table, wal_checkpoint_options, option_fields);

static const struct value_field info_fields[] = {
    VALUE_FIELD(wal_checkpoint_info, flags, VALUE_U32),
    VALUE_FIELD(wal_checkpoint_info, id, VALUE_TEXT),
    VALUE_FIELD(wal_checkpoint_info, root, VALUE_TEXT),
    VALUE_FIELD(wal_checkpoint_info, created_ms, VALUE_I64),
    VALUE_FIELD(wal_checkpoint_info, files, VALUE_U64),
    VALUE_FIELD(wal_checkpoint_info, bytes, VALUE_U64),
    VALUE_FIELD(wal_checkpoint_info, new_blobs, VALUE_U64),
    VALUE_FIELD(wal_checkpoint_info, new_bytes, VALUE_U64),
    VALUE_FIELD(wal_checkpoint_info, version, VALUE_U64),
    VALUE_FIELD(wal_checkpoint_info, entry_id, VALUE_TEXT),
};
VALUE_TABLE(info_table, wal_checkpoint_info, info_fields);

/* A file that a caller describes. */
static const struct value_field given_fields[] = {
    VALUE_FIELD(wal_file, kind, VALUE_U32),
    VALUE_FIELD(wal_file, mode, VALUE_U32),
    VALUE_FIELD(wal_file, path, VALUE_PATH),
    VALUE_FIELD(wal_file, mtime_ns, VALUE_I64),
    VALUE_FIELD(wal_file, digest, VALUE_DIGEST),
};
VALUE_TABLE(given_table, wal_file, given_fields);

static const struct value_field file_fields[] = {
    VALUE_FIELD(wal_file, kind, VALUE_U32),
    VALUE_FIELD(wal_file, mode, VALUE_U32),
    VALUE_FIELD(wal_file, path, VALUE_PATH),
    VALUE_FIELD(wal_file, size, VALUE_U64),
    VALUE_FIELD(wal_file, mtime_ns, VALUE_I64),
    VALUE_FIELD(wal_file, digest, VALUE_DIGEST),
};
VALUE_TABLE(file_table, wal_file, file_fields);

/* The checkpoint of a cursor, as a row; closes the cursor. Without the
 * interpreter's lock. */
static enum wal_status read_info(struct wal_file_cursor *cursor,
                                 struct rows *rows, struct wal_error *error)
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
static PyObject *checkpoint_create(PyObject *module, PyObject *const *args,
                                   Py_ssize_t count)
{
    struct module_state *state = module_state(module);
    struct wal_checkpoint_options options = WAL_INIT(wal_checkpoint_options);
    struct rows rows = {.table = &info_table};
    struct wal_file_cursor *cursor = NULL;
    struct wal_slice *paths = NULL;
    struct wal_session *session;
    PyObject *made = NULL;
    uint32_t path_count;
    struct call call;

    if (!value_count(module, "checkpoint_create", count, 3) ||
        !value_row(state, args[2], "options", &option_table, &options) ||
        !value_slices(state, args[1], "paths", true, &paths, &path_count)) {
        return NULL;
    }
    session = call_begin(&call, module, args[0], HANDLE_SESSION);
    if (session != NULL) {
        call_unlock(&call);
        call.status = wal_checkpoint_create(session, paths, path_count,
                                            &options, &cursor, &call.error);
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
static PyObject *checkpoint_import(PyObject *module, PyObject *const *args,
                                   Py_ssize_t count)
{
    struct module_state *state = module_state(module);
    struct wal_checkpoint_options options = WAL_INIT(wal_checkpoint_options);
    struct rows rows = {.table = &info_table};
    struct wal_file_cursor *cursor = NULL;
    struct wal_session *session;
    PyObject *made = NULL;
    void *files = NULL;
    uint32_t file_count;
    struct call call;

    if (!value_count(module, "checkpoint_import", count, 3) ||
        !value_row(state, args[2], "options", &option_table, &options) ||
        !value_rows(state, args[1], "files", &given_table, &files,
                    &file_count)) {
        return NULL;
    }
    session = call_begin(&call, module, args[0], HANDLE_SESSION);
    if (session != NULL) {
        call_unlock(&call);
        call.status = wal_checkpoint_import(session, files, file_count,
                                            &options, &cursor, &call.error);
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
static struct wal_session *begin_by_id(struct call *call, PyObject *module,
                                       PyObject *const *args, Py_ssize_t count,
                                       const char *name, struct wal_slice *id)
{
    if (!value_count(module, name, count, 2) ||
        !value_text(module_state(module), args[1], "id", id)) {
        return NULL;
    }
    return call_begin(call, module, args[0], HANDLE_SESSION);
}

/* checkpoint_get(session, id): None when there is none. */
static PyObject *checkpoint_get(PyObject *module, PyObject *const *args,
                                Py_ssize_t count)
{
    struct rows rows = {.table = &info_table};
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

static enum wal_status next_file(void *cursor, void *item,
                                 struct wal_error *error)
{
    return wal_file_cursor_next(cursor, item, error);
}

static enum wal_status next_checkpoint(void *cursor, void *item,
                                       struct wal_error *error)
{
    return wal_checkpoint_cursor_next(cursor, item, error);
}

/* Ends a call that made rows. */
static PyObject *finish_list(struct call *call, struct rows *rows)
{
    PyObject *made = call_failed(call) ? NULL : rows_list(rows);

    rows_free(rows);
    call_end(call);
    return made;
}

/* checkpoint_files(session, id) */
static PyObject *checkpoint_files(PyObject *module, PyObject *const *args,
                                  Py_ssize_t count)
{
    struct rows rows = {.table = &file_table};
    struct wal_file_cursor *cursor = NULL;
    struct wal_session *session;
    struct wal_slice id;
    struct call call;

    session = begin_by_id(&call, module, args, count, "checkpoint_files", &id);
    if (session == NULL) {
        return NULL;
    }
    call_unlock(&call);
    call.status = wal_file_cursor_open(session, id, &cursor, &call.error);
    if (call.status == WAL_OK) {
        call.status =
            rows_fill(&rows, next_file, cursor, SIZE_MAX, &call.error);
    }
    wal_file_cursor_close(cursor);
    call_lock(&call);
    return finish_list(&call, &rows);
}

/* checkpoint_list(session) */
static PyObject *checkpoint_list(PyObject *module, PyObject *const *args,
                                 Py_ssize_t count)
{
    struct rows rows = {.table = &info_table};
    struct wal_checkpoint_cursor *cursor = NULL;
    struct wal_session *session;
    struct call call;

    if (!value_count(module, "checkpoint_list", count, 1)) {
        return NULL;
    }
    session = call_begin(&call, module, args[0], HANDLE_SESSION);
    if (session == NULL) {
        return NULL;
    }
    call_unlock(&call);
    call.status = wal_checkpoint_cursor_open(session, &cursor, &call.error);
    if (call.status == WAL_OK) {
        call.status =
            rows_fill(&rows, next_checkpoint, cursor, SIZE_MAX, &call.error);
    }
    wal_checkpoint_cursor_close(cursor);
    call_lock(&call);
    return finish_list(&call, &rows);
}

/* checkpoint_delete(session, id) */
static PyObject *checkpoint_delete(PyObject *module, PyObject *const *args,
                                   Py_ssize_t count)
{
    struct wal_session *session;
    struct wal_slice id;
    struct call call;

    session = begin_by_id(&call, module, args, count, "checkpoint_delete", &id);
    if (session == NULL) {
        return NULL;
    }
    call_unlock(&call);
    call.status = wal_checkpoint_delete(session, id, &call.error);
    call_lock(&call);
    return call_none(&call);
}

PyMethodDef checkpoint_methods[] = {
    MODULE_FUNCTION("checkpoint_create", checkpoint_create),
    MODULE_FUNCTION("checkpoint_import", checkpoint_import),
    MODULE_FUNCTION("checkpoint_get", checkpoint_get),
    MODULE_FUNCTION("checkpoint_files", checkpoint_files),
    MODULE_FUNCTION("checkpoint_list", checkpoint_list),
    MODULE_FUNCTION("checkpoint_delete", checkpoint_delete),
    {0},
};
