/*
 * rewind.c - differences between checkpoints, and rewinds.
 */
#include "agentwal/checkpoint.h"
#include "bindings/python/src/core/call.h"
#include "bindings/python/src/core/rows.h"

static const struct value_field change_fields[] = {
    VALUE_FIELD(wal_file_change, flags, VALUE_U32),
    VALUE_FIELD(wal_file_change, path, VALUE_PATH),
    VALUE_FIELD(wal_file_change, kind_before, VALUE_U32),
    VALUE_FIELD(wal_file_change, kind_after, VALUE_U32),
    VALUE_FIELD(wal_file_change, mode_before, VALUE_U32),
    VALUE_FIELD(wal_file_change, mode_after, VALUE_U32),
    VALUE_FIELD(wal_file_change, insertions, VALUE_U64),
    VALUE_FIELD(wal_file_change, deletions, VALUE_U64),
};
VALUE_TABLE(change_table, wal_file_change, change_fields);

static const struct value_field totals_fields[] = {
    VALUE_FIELD(wal_file_changes_info, files, VALUE_U64),
    VALUE_FIELD(wal_file_changes_info, insertions, VALUE_U64),
    VALUE_FIELD(wal_file_changes_info, deletions, VALUE_U64),
    VALUE_FIELD(wal_file_changes_info, binary, VALUE_U64),
};
VALUE_TABLE(totals_table, wal_file_changes_info, totals_fields);

static const struct value_field option_fields[] = {
    VALUE_FIELD(wal_rewind_options, flags, VALUE_U32),
    VALUE_FIELD(wal_rewind_options, root, VALUE_PATH),
    VALUE_FIELD(wal_rewind_options, expected, VALUE_TEXT),
};
VALUE_TABLE(option_table, wal_rewind_options, option_fields);

static const struct value_field result_fields[] = {
    VALUE_FIELD(wal_rewind_result, can_rewind, VALUE_I32),
    VALUE_FIELD(wal_rewind_result, status, VALUE_I32),
    VALUE_FIELD(wal_rewind_result, files_changed, VALUE_U64),
    VALUE_FIELD(wal_rewind_result, insertions, VALUE_U64),
    VALUE_FIELD(wal_rewind_result, deletions, VALUE_U64),
    VALUE_FIELD(wal_rewind_result, binary, VALUE_U64),
    VALUE_FIELD(wal_rewind_result, changed_elsewhere, VALUE_U64),
    VALUE_FIELD(wal_rewind_result, undo, VALUE_CHARS),
    VALUE_FIELD(wal_rewind_result, error, VALUE_CHARS),
    VALUE_FIELD(wal_rewind_result, previous_head, VALUE_CHARS),
    VALUE_FIELD(wal_rewind_result, new_head, VALUE_CHARS),
};
VALUE_TABLE(result_table, wal_rewind_result, result_fields);

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
    struct rows rows = {.table = &change_table};
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
    return finish(&call, &totals_table, &totals, &rows);
}

/* session_diff(session) */
static PyObject *session_diff(PyObject *module, PyObject *const *args,
                              Py_ssize_t count)
{
    struct wal_file_changes_info totals = WAL_INIT(wal_file_changes_info);
    struct wal_file_change_cursor *cursor = NULL;
    struct rows rows = {.table = &change_table};
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
    return finish(&call, &totals_table, &totals, &rows);
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
    struct rows rows = {.table = &change_table};
    struct wal_session *session;
    struct wal_slice checkpoint;
    struct call call;

    if (!value_count(module, "rewind", count, 3) ||
        !value_text(state, args[1], "checkpoint", &checkpoint) ||
        !value_row(state, args[2], "options", &option_table, &options)) {
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
    return finish(&call, &result_table, &result, &rows);
}

PyMethodDef rewind_methods[] = {
    MODULE_FUNCTION("checkpoint_diff", checkpoint_diff),
    MODULE_FUNCTION("session_diff", session_diff),
    MODULE_FUNCTION("rewind", rewind_files),
    {0},
};
