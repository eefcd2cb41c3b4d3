/*
 * view_list.c - the views that a store knows of.
 */
#include "agentwal/convert.h"
#include "bindings/python/src/convert/view.h"
#include "bindings/python/src/core/call.h"
#include "bindings/python/src/core/rows.h"

static const struct value_field view_fields[] = {
    VALUE_FIELD(wal_view_info, session, VALUE_CHARS),
    VALUE_FIELD(wal_view_info, dialect, VALUE_CHARS),
    VALUE_FIELD(wal_view_info, root, VALUE_CHARS),
    VALUE_FIELD(wal_view_info, flags, VALUE_U32),
};
VALUE_TABLE(view_table, wal_view_info, view_fields);

static enum wal_status next_view(void *cursor, void *item,
                                 struct wal_error *error)
{
    return wal_view_cursor_next(cursor, item, error);
}

/* view_list(store, flags, session) */
static PyObject *view_list(PyObject *module, PyObject *const *args,
                           Py_ssize_t count)
{
    struct module_state *state = module_state(module);
    struct wal_view_cursor_options options = WAL_INIT(wal_view_cursor_options);
    struct rows rows = {.table = &view_table};
    struct wal_view_cursor *cursor = NULL;
    struct wal_store *store;
    PyObject *made = NULL;
    struct call call;

    if (!value_count(module, "view_list", count, 3) ||
        !value_u32(state, args[1], "flags", &options.flags) ||
        !value_text(state, args[2], "session", &options.session)) {
        return NULL;
    }
    store = call_begin(&call, module, args[0], HANDLE_STORE);
    if (store == NULL) {
        return NULL;
    }
    call_unlock(&call);
    call.status = wal_view_cursor_open(store, &options, &cursor, &call.error);
    if (call.status == WAL_OK) {
        call.status =
            rows_fill(&rows, next_view, cursor, SIZE_MAX, &call.error);
    }
    wal_view_cursor_close(cursor);
    call_lock(&call);
    if (!call_failed(&call)) {
        made = rows_list(&rows);
    }
    rows_free(&rows);
    call_end(&call);
    return made;
}

/* view_find(store, path): None when there is none. */
static PyObject *view_find(PyObject *module, PyObject *const *args,
                           Py_ssize_t count)
{
    struct wal_view_info info = WAL_INIT(wal_view_info);
    struct wal_store *store;
    struct wal_slice path;
    PyObject *made = NULL;
    struct call call;

    if (!value_count(module, "view_find", count, 2) ||
        !value_path(module_state(module), args[1], "path", &path)) {
        return NULL;
    }
    store = call_begin(&call, module, args[0], HANDLE_STORE);
    if (store == NULL) {
        return NULL;
    }
    call_unlock(&call);
    call.status = wal_view_find(store, path, &info, &call.error);
    call_lock(&call);
    if (call.status == WAL_ENOTFOUND) {
        Py_INCREF(Py_None);
        made = Py_None;
    } else if (!call_failed(&call)) {
        made = value_dict(&view_table, &info);
    }
    call_end(&call);
    return made;
}

/* view_root_add(store, dialect, root) */
static PyObject *view_root_add(PyObject *module, PyObject *const *args,
                               Py_ssize_t count)
{
    struct module_state *state = module_state(module);
    struct wal_slice dialect, root;
    struct wal_store *store;
    struct call call;

    if (!value_count(module, "view_root_add", count, 3) ||
        !value_text(state, args[1], "dialect", &dialect) ||
        !value_path(state, args[2], "root", &root)) {
        return NULL;
    }
    store = call_begin(&call, module, args[0], HANDLE_STORE);
    if (store == NULL) {
        return NULL;
    }
    call_unlock(&call);
    call.status = wal_view_root_add(store, dialect, root, &call.error);
    call_lock(&call);
    return call_none(&call);
}

/* view_update(store, view) */
static PyObject *view_update(PyObject *module, PyObject *const *args,
                             Py_ssize_t count)
{
    struct wal_view_flush_result result = WAL_INIT(wal_view_flush_result);
    struct wal_view_info info = WAL_INIT(wal_view_info);
    struct wal_store *store;
    PyObject *made = NULL;
    struct call call;

    if (!value_count(module, "view_update", count, 2) ||
        !value_row(module_state(module), args[1], "view", &view_table, &info)) {
        return NULL;
    }
    store = call_begin(&call, module, args[0], HANDLE_STORE);
    if (store == NULL) {
        return NULL;
    }
    call_unlock(&call);
    call.status = wal_view_update(store, &info, &result, &call.error);
    call_lock(&call);
    if (!call_failed(&call)) {
        made = value_dict(&view_flush_table, &result);
    }
    call_end(&call);
    return made;
}

/* view_dialects() */
static PyObject *view_dialects(PyObject *module, PyObject *const *args,
                               Py_ssize_t count)
{
    (void)args;
    if (!value_count(module, "view_dialects", count, 0)) {
        return NULL;
    }
    return value_names(wal_view_dialect);
}

PyMethodDef view_list_methods[] = {
    MODULE_FUNCTION("view_list", view_list),
    MODULE_FUNCTION("view_find", view_find),
    MODULE_FUNCTION("view_root_add", view_root_add),
    MODULE_FUNCTION("view_update", view_update),
    MODULE_FUNCTION("view_dialects", view_dialects),
    {0},
};
