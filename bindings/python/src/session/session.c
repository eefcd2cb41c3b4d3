/*
 * session.c - creating and opening sessions, and their state.
 */
#include "bindings/python/src/session/session.h"

#include "bindings/python/src/core/raise.h"
#include "bindings/python/src/core/rows.h"

static const struct value_field option_fields[] = {
    VALUE_FIELD(wal_session_options, id, VALUE_TEXT),
    VALUE_FIELD(wal_session_options, cwd, VALUE_TEXT),
    VALUE_FIELD(wal_session_options, project, VALUE_TEXT),
    VALUE_FIELD(wal_session_options, title, VALUE_TEXT),
    VALUE_FIELD(wal_session_options, parent_id, VALUE_TEXT),
    VALUE_FIELD(wal_session_options, source, VALUE_TEXT),
    VALUE_FIELD(wal_session_options, metadata, VALUE_CONTENT),
    VALUE_FIELD(wal_session_options, schema_version, VALUE_U32),
    VALUE_FIELD(wal_session_options, created_ms, VALUE_I64),
};
const struct value_table session_option_table = {
    option_fields, sizeof(option_fields) / sizeof(*option_fields),
    sizeof(struct wal_session_options)};

static const struct value_field info_fields[] = {
    VALUE_FIELD(wal_session_info, id, VALUE_TEXT),
    VALUE_FIELD(wal_session_info, number, VALUE_U32),
    VALUE_FIELD(wal_session_info, flags, VALUE_U32),
    VALUE_FIELD(wal_session_info, schema_version, VALUE_U32),
    VALUE_FIELD(wal_session_info, cwd, VALUE_TEXT),
    VALUE_FIELD(wal_session_info, project, VALUE_TEXT),
    VALUE_FIELD(wal_session_info, title, VALUE_TEXT),
    VALUE_FIELD(wal_session_info, parent_id, VALUE_TEXT),
    VALUE_FIELD(wal_session_info, head, VALUE_TEXT),
    VALUE_FIELD(wal_session_info, source, VALUE_TEXT),
    VALUE_FIELD(wal_session_info, metadata, VALUE_CONTENT),
    VALUE_FIELD(wal_session_info, first_text, VALUE_TEXT),
    VALUE_FIELD(wal_session_info, created_ms, VALUE_I64),
    VALUE_FIELD(wal_session_info, updated_ms, VALUE_I64),
    VALUE_FIELD(wal_session_info, entries, VALUE_U64),
    VALUE_FIELD(wal_session_info, inherited, VALUE_U64),
    VALUE_FIELD(wal_session_info, bytes, VALUE_U64),
    VALUE_FIELD(wal_session_info, last_sequence, VALUE_U64),
    VALUE_FIELD(wal_session_info, metadata_version, VALUE_U64),
    VALUE_FIELD(wal_session_info, documents, VALUE_U64),
};
const struct value_table session_info_table = {
    info_fields, sizeof(info_fields) / sizeof(*info_fields),
    sizeof(struct wal_session_info)};

/* (store, options) */
static struct wal_store *begin_create(struct call *call, PyObject *module,
                                      PyObject *const *args, Py_ssize_t count,
                                      const char *name,
                                      struct wal_session_options *options)
{
    if (!value_count(module, name, count, 2) ||
        !value_row(module_state(module), args[1], "options",
                   &session_option_table, options)) {
        return NULL;
    }
    return call_begin(call, module, args[0], HANDLE_STORE);
}

static PyObject *session_create(PyObject *module, PyObject *const *args,
                                Py_ssize_t count)
{
    struct wal_session_options options = WAL_INIT(wal_session_options);
    struct wal_session *session = NULL;
    struct wal_store *store;
    struct call call;

    store =
        begin_create(&call, module, args, count, "session_create", &options);
    if (store == NULL) {
        return NULL;
    }
    call_unlock(&call);
    call.status = wal_session_create(store, &options, &session, &call.error);
    call_lock(&call);
    return call_handle(&call, HANDLE_SESSION, session);
}

static PyObject *session_open_or_create(PyObject *module, PyObject *const *args,
                                        Py_ssize_t count)
{
    struct wal_session_options options = WAL_INIT(wal_session_options);
    struct wal_session *session = NULL;
    struct wal_store *store;
    PyObject *handle;
    int32_t created = 0;
    struct call call;

    store = begin_create(&call, module, args, count, "session_open_or_create",
                         &options);
    if (store == NULL) {
        return NULL;
    }
    call_unlock(&call);
    call.status = wal_session_open_or_create(store, &options, &session,
                                             &created, &call.error);
    call_lock(&call);
    handle = call_handle(&call, HANDLE_SESSION, session);
    if (handle == NULL) {
        return NULL;
    }
    return Py_BuildValue("NN", handle, PyBool_FromLong(created));
}

typedef enum wal_status open_action(struct wal_store *store,
                                    struct wal_slice text,
                                    struct wal_session **session,
                                    struct wal_error *error);

/* (store, text); missing: None in place of NotFound. */
static PyObject *open_by(PyObject *module, PyObject *const *args,
                         Py_ssize_t count, const char *name,
                         open_action *action, bool missing)
{
    struct wal_session *session = NULL;
    struct wal_store *store;
    struct wal_slice text;
    struct call call;

    if (!value_count(module, name, count, 2) ||
        !value_text(module_state(module), args[1], "id", &text)) {
        return NULL;
    }
    store = call_begin(&call, module, args[0], HANDLE_STORE);
    if (store == NULL) {
        return NULL;
    }
    call_unlock(&call);
    call.status = action(store, text, &session, &call.error);
    call_lock(&call);
    if (missing && call.status == WAL_ENOTFOUND) {
        call_end(&call);
        Py_RETURN_NONE;
    }
    return call_handle(&call, HANDLE_SESSION, session);
}

static PyObject *session_open(PyObject *module, PyObject *const *args,
                              Py_ssize_t count)
{
    return open_by(module, args, count, "session_open", wal_session_open,
                   false);
}

static PyObject *session_open_latest(PyObject *module, PyObject *const *args,
                                     Py_ssize_t count)
{
    return open_by(module, args, count, "session_open_latest",
                   wal_session_open_latest, true);
}

static PyObject *session_undelete(PyObject *module, PyObject *const *args,
                                  Py_ssize_t count)
{
    struct wal_store *store;
    struct wal_slice id;
    struct call call;

    if (!value_count(module, "session_undelete", count, 2) ||
        !value_text(module_state(module), args[1], "id", &id)) {
        return NULL;
    }
    store = call_begin(&call, module, args[0], HANDLE_STORE);
    if (store == NULL) {
        return NULL;
    }
    call_unlock(&call);
    call.status = wal_session_undelete(store, id, &call.error);
    call_lock(&call);
    return call_none(&call);
}

static PyObject *session_info(PyObject *module, PyObject *const *args,
                              Py_ssize_t count)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct rows rows = {.table = &session_info_table};
    struct wal_session *session;
    PyObject *made = NULL;
    struct call call;

    if (!value_count(module, "session_info", count, 1)) {
        return NULL;
    }
    session = call_begin(&call, module, args[0], HANDLE_SESSION);
    if (session == NULL) {
        return NULL;
    }
    call_unlock(&call);
    (void)pthread_mutex_lock(&call.handle->slices);
    call.status = wal_session_get_info(session, &info, &call.error);
    if (call.status == WAL_OK && !rows_add(&rows, &info)) {
        call.status = WAL_ENOMEM;
    }
    (void)pthread_mutex_unlock(&call.handle->slices);
    call_lock(&call);
    if (!call_failed(&call)) {
        made = rows_first(&rows);
    }
    rows_free(&rows);
    call_end(&call);
    return made;
}

PyMethodDef session_methods[] = {
    MODULE_FUNCTION("session_create", session_create),
    MODULE_FUNCTION("session_open", session_open),
    MODULE_FUNCTION("session_open_latest", session_open_latest),
    MODULE_FUNCTION("session_open_or_create", session_open_or_create),
    MODULE_FUNCTION("session_undelete", session_undelete),
    MODULE_FUNCTION("session_info", session_info),
    {0},
};
