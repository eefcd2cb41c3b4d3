/*
 * fork.c - forks, redaction and compaction of a session.
 */
#include "bindings/python/src/core/raise.h"
#include "bindings/python/src/entry/batch.h"
#include "bindings/python/src/session/session.h"

/* Options of a fork, or None. *given is null then. */
static bool fork_options(struct module_state *state, PyObject *row,
                         struct wal_session_options *options,
                         const struct wal_session_options **given)
{
    *given = NULL;
    if (row == Py_None) {
        return true;
    }
    *given = options;
    return value_row(state, row, "options", &session_option_table, options);
}

/* session_fork(session, at, options) */
static PyObject *session_fork(PyObject *module, PyObject *const *args,
                              Py_ssize_t count)
{
    struct module_state *state = module_state(module);
    struct wal_session_options options = WAL_INIT(wal_session_options);
    const struct wal_session_options *given;
    struct wal_session *session, *fork = NULL;
    struct wal_slice at;
    struct call call;

    if (!value_count(module, "session_fork", count, 3) ||
        !value_text(state, args[1], "at", &at) ||
        !fork_options(state, args[2], &options, &given)) {
        return NULL;
    }
    session = call_begin(&call, module, args[0], HANDLE_SESSION);
    if (session == NULL) {
        return NULL;
    }
    call_unlock(&call);
    call.status = wal_session_fork(session, at, given, &fork, &call.error);
    call_lock(&call);
    return call_handle(&call, HANDLE_SESSION, fork);
}

/* session_redact(session, id, reason) */
static PyObject *session_redact(PyObject *module, PyObject *const *args,
                                Py_ssize_t count)
{
    struct module_state *state = module_state(module);
    struct wal_append_result result = WAL_INIT(wal_append_result);
    struct wal_session *session;
    struct wal_slice id, reason;
    PyObject *made = NULL;
    struct call call;

    if (!value_count(module, "session_redact", count, 3) ||
        !value_text(state, args[1], "entry", &id) ||
        !value_text(state, args[2], "reason", &reason)) {
        return NULL;
    }
    session = call_begin(&call, module, args[0], HANDLE_SESSION);
    if (session == NULL) {
        return NULL;
    }
    call_unlock(&call);
    call.status = wal_session_redact(session, id, reason, &result, &call.error);
    call_lock(&call);
    if (!call_failed(&call)) {
        made = batch_result(&result);
    }
    call_end(&call);
    return made;
}

/* session_compact(session, first_kept, summary, into): the fork or None, and
 * the result. */
static PyObject *session_compact(PyObject *module, PyObject *const *args,
                                 Py_ssize_t count)
{
    struct module_state *state = module_state(module);
    struct wal_append_result result = WAL_INIT(wal_append_result);
    struct wal_compact_options options = WAL_INIT(wal_compact_options);
    struct wal_session_options into = WAL_INIT(wal_session_options);
    struct wal_session *session, *fork = NULL;
    PyObject *handle;
    struct call call;

    if (!value_count(module, "session_compact", count, 4) ||
        !value_text(state, args[1], "first_kept", &options.first_kept) ||
        !value_text(state, args[2], "summary", &options.summary) ||
        !fork_options(state, args[3], &into, &options.into)) {
        return NULL;
    }
    session = call_begin(&call, module, args[0], HANDLE_SESSION);
    if (session == NULL) {
        return NULL;
    }
    call_unlock(&call);
    call.status = wal_session_compact(session, &options,
                                      options.into == NULL ? NULL : &fork,
                                      &result, &call.error);
    call_lock(&call);
    if (call.status == WAL_OK && fork == NULL) {
        call_end(&call);
        return Py_BuildValue("ON", Py_None, batch_result(&result));
    }
    handle = call_handle(&call, HANDLE_SESSION, fork);
    return handle == NULL ? NULL
                          : Py_BuildValue("NN", handle, batch_result(&result));
}

PyMethodDef fork_methods[] = {
    MODULE_FUNCTION("session_fork", session_fork),
    MODULE_FUNCTION("session_redact", session_redact),
    MODULE_FUNCTION("session_compact", session_compact),
    {0},
};
