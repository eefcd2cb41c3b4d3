/*
 * list.c - lists of sessions.
 */
#include "bindings/python/src/core/rows.h"
#include "bindings/python/src/session/session.h"

static const struct value_field list_fields[] = {
    VALUE_FIELD(wal_session_cursor_options, flags, VALUE_U32),
    VALUE_FIELD(wal_session_cursor_options, cwd, VALUE_TEXT),
    VALUE_FIELD(wal_session_cursor_options, project, VALUE_TEXT),
    VALUE_FIELD(wal_session_cursor_options, prefix, VALUE_TEXT),
    VALUE_FIELD(wal_session_cursor_options, source, VALUE_TEXT),
    VALUE_FIELD(wal_session_cursor_options, parent, VALUE_TEXT),
    VALUE_FIELD(wal_session_cursor_options, lineage_of, VALUE_TEXT),
    VALUE_FIELD(wal_session_cursor_options, after, VALUE_TEXT),
    VALUE_FIELD(wal_session_cursor_options, changed_after, VALUE_I64),
    VALUE_FIELD(wal_session_cursor_options, recorded_after, VALUE_U64),
};
VALUE_TABLE(list_table, wal_session_cursor_options, list_fields);

static enum wal_status next_session(void *cursor, void *item,
                                    struct wal_error *error)
{
    return wal_session_cursor_next(cursor, item, error);
}

/* Reads a page, and the position after it: empty at the end. */
static enum wal_status read_page(struct wal_store *store,
                                 const struct wal_session_cursor_options *which,
                                 uint32_t limit, struct rows *rows,
                                 char position[WAL_CURSOR_TEXT_SIZE],
                                 struct wal_error *error)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_session_cursor *cursor = NULL;
    enum wal_status status;

    position[0] = '\0';
    status = wal_session_cursor_open(store, which, &cursor, error);
    if (status == WAL_OK) {
        status = rows_fill(rows, next_session, cursor, limit, error);
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
static PyObject *session_list(PyObject *module, PyObject *const *args,
                              Py_ssize_t count)
{
    struct module_state *state = module_state(module);
    struct wal_session_cursor_options options =
        WAL_INIT(wal_session_cursor_options);
    struct rows rows = {.table = &session_info_table};
    char position[WAL_CURSOR_TEXT_SIZE];
    struct wal_store *store;
    PyObject *list = NULL;
    uint32_t limit;
    struct call call;

    if (!value_count(module, "session_list", count, 3) ||
        !value_row(state, args[1], "options", &list_table, &options) ||
        !value_u32(state, args[2], "limit", &limit)) {
        return NULL;
    }
    store = call_begin(&call, module, args[0], HANDLE_STORE);
    if (store == NULL) {
        return NULL;
    }
    call_unlock(&call);
    call.status =
        read_page(store, &options, limit, &rows, position, &call.error);
    call_lock(&call);
    if (!call_failed(&call)) {
        list = rows_list(&rows);
    }
    rows_free(&rows);
    call_end(&call);
    if (list == NULL) {
        return NULL;
    }
    return Py_BuildValue("Nz", list, position[0] == '\0' ? NULL : position);
}

PyMethodDef list_methods[] = {
    MODULE_FUNCTION("session_list", session_list),
    {0},
};
