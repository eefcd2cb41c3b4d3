/*
 * head.c - heads of a session.
 */
#include "bindings/python/src/core/rows.h"
#include "bindings/python/src/entry/batch.h"
#include "bindings/python/src/session/session.h"

static const struct value_field head_fields[] = {
    VALUE_FIELD(wal_head, name, VALUE_TEXT),
    VALUE_FIELD(wal_head, stream, VALUE_U32),
    VALUE_FIELD(wal_head, entry_id, VALUE_TEXT),
    VALUE_FIELD(wal_head, note, VALUE_TEXT),
    VALUE_FIELD(wal_head, version, VALUE_U64),
};
VALUE_TABLE(head_table, wal_head, head_fields);

/* head_get(session, stream, name): the entry id or None. */
static PyObject *head_get(PyObject *module, PyObject *const *args,
                          Py_ssize_t count)
{
    struct module_state *state = module_state(module);
    char id[WAL_ID_SIZE] = "";
    struct wal_session *session;
    struct wal_slice name;
    PyObject *made = NULL;
    uint32_t stream;
    struct call call;

    if (!value_count(module, "head_get", count, 3) ||
        !value_u32(state, args[1], "stream", &stream) ||
        !value_text(state, args[2], "name", &name)) {
        return NULL;
    }
    session = call_begin(&call, module, args[0], HANDLE_SESSION);
    if (session == NULL) {
        return NULL;
    }
    call_unlock(&call);
    call.status = wal_head_get(session, stream, name, id, &call.error);
    call_lock(&call);
    if (call.status == WAL_ENOTFOUND) {
        Py_INCREF(Py_None);
        made = Py_None;
    } else if (!call_failed(&call)) {
        made = PyUnicode_FromString(id);
    }
    call_end(&call);
    return made;
}

/* head_move(session, head): the entry id that it had, or "". */
static PyObject *head_move(PyObject *module, PyObject *const *args,
                           Py_ssize_t count)
{
    char previous[WAL_ID_SIZE] = "";
    struct wal_head head = WAL_INIT(wal_head);
    struct wal_session *session;
    PyObject *made = NULL;
    struct call call;

    if (!value_count(module, "head_move", count, 2) ||
        !value_row(module_state(module), args[1], "head", &batch_head_table,
                   &head)) {
        return NULL;
    }
    session = call_begin(&call, module, args[0], HANDLE_SESSION);
    if (session == NULL) {
        return NULL;
    }
    call_unlock(&call);
    call.status = wal_head_move(session, &head, previous, &call.error);
    call_lock(&call);
    if (!call_failed(&call)) {
        made = PyUnicode_FromString(previous);
    }
    call_end(&call);
    return made;
}

static enum wal_status next_head(void *cursor, void *item,
                                 struct wal_error *error)
{
    return wal_head_cursor_next(cursor, item, error);
}

static PyObject *head_list(PyObject *module, PyObject *const *args,
                           Py_ssize_t count)
{
    struct rows rows = {.table = &head_table};
    struct wal_head_cursor *cursor = NULL;
    struct wal_session *session;
    PyObject *made = NULL;
    struct call call;

    if (!value_count(module, "head_list", count, 1)) {
        return NULL;
    }
    session = call_begin(&call, module, args[0], HANDLE_SESSION);
    if (session == NULL) {
        return NULL;
    }
    call_unlock(&call);
    call.status = wal_head_cursor_open(session, &cursor, &call.error);
    if (call.status == WAL_OK) {
        call.status =
            rows_fill(&rows, next_head, cursor, SIZE_MAX, &call.error);
    }
    wal_head_cursor_close(cursor);
    call_lock(&call);
    if (!call_failed(&call)) {
        made = rows_list(&rows);
    }
    rows_free(&rows);
    call_end(&call);
    return made;
}

PyMethodDef head_methods[] = {
    MODULE_FUNCTION("head_get", head_get),
    MODULE_FUNCTION("head_move", head_move),
    MODULE_FUNCTION("head_list", head_list),
    {0},
};
