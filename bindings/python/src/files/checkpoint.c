/*
 * checkpoint.c - checkpoints of files, their differences, and rewinds.
 */
#include "agentwal/checkpoint.h"

#include <stdlib.h>

#include "bindings/python/src/core/call.h"
#include "bindings/python/src/core/interface.h"
#include "bindings/python/src/core/rows.h"

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
    struct rows rows = {.table = &wal_checkpoint_info_out};
    struct wal_file_cursor *cursor = NULL;
    struct wal_slice *paths = NULL;
    struct wal_session *session;
    PyObject *made = NULL;
    uint32_t path_count;
    struct call call;

    if (!value_count(module, "checkpoint_create", count, 3) ||
        !value_row(state, args[2], "options", &wal_checkpoint_options_in,
                   &options) ||
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
    struct rows rows = {.table = &wal_checkpoint_info_out};
    struct wal_file_cursor *cursor = NULL;
    struct wal_session *session;
    PyObject *made = NULL;
    void *files = NULL;
    uint32_t file_count;
    struct call call;

    if (!value_count(module, "checkpoint_import", count, 3) ||
        !value_row(state, args[2], "options", &wal_checkpoint_options_in,
                   &options) ||
        !value_rows(state, args[1], "files", &wal_file_in, &files,
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

static enum wal_status next_change(void *cursor, void *item,
                                   struct wal_error *error)
{
    return wal_file_change_cursor_next(cursor, item, error);
}

/* Reads the totals and the changes of a cursor, and closes it. Without the
 * interpreter's lock. */
static enum wal_status read_changes(struct wal_file_change_cursor *cursor,
                                    struct wal_file_changes_info *totals,
                                    struct rows *rows, struct wal_error *error)
{
    enum wal_status status = wal_file_changes_get_info(cursor, totals, error);

    if (status == WAL_OK) {
        status = rows_fill(rows, next_change, cursor, SIZE_MAX, error);
    }
    wal_file_change_cursor_close(cursor);
    return status;
}

/* Ends a call: a struct as a dict, and the changes. */
static PyObject *finish(struct call *call, const struct value_table *table,
                        const void *filled, struct rows *rows)
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
static PyObject *checkpoint_diff(PyObject *module, PyObject *const *args,
                                 Py_ssize_t count)
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
    call.status =
        wal_checkpoint_diff(session, before, after, &cursor, &call.error);
    if (call.status == WAL_OK) {
        call.status = read_changes(cursor, &totals, &rows, &call.error);
    }
    call_lock(&call);
    return finish(&call, &wal_file_changes_info_out, &totals, &rows);
}

/* session_diff(session) */
static PyObject *session_diff(PyObject *module, PyObject *const *args,
                              Py_ssize_t count)
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
static PyObject *rewind_files(PyObject *module, PyObject *const *args,
                              Py_ssize_t count)
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
        !value_row(state, args[2], "options", &wal_rewind_options_in,
                   &options)) {
        return NULL;
    }
    session = call_begin(&call, module, args[0], HANDLE_SESSION);
    if (session == NULL) {
        return NULL;
    }
    call_unlock(&call);
    call.status = wal_rewind(session, checkpoint, &options, &result, &cursor,
                             &call.error);
    if (call.status == WAL_OK && cursor != NULL) {
        call.status = read_changes(cursor, &totals, &rows, &call.error);
    }
    call_lock(&call);
    return finish(&call, &wal_rewind_result_out, &result, &rows);
}

PyMethodDef checkpoint_methods[] = {
    MODULE_FUNCTION("checkpoint_create", checkpoint_create),
    MODULE_FUNCTION("checkpoint_import", checkpoint_import),
    MODULE_FUNCTION("checkpoint_get", checkpoint_get),
    MODULE_FUNCTION("checkpoint_diff", checkpoint_diff),
    MODULE_FUNCTION("session_diff", session_diff),
    MODULE_FUNCTION("rewind", rewind_files),
    {0},
};
