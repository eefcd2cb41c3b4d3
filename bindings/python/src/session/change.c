/*
 * change.c - changes of a session.
 */
#include "agentwal/admin.h"
#include "agentwal/checkpoint.h"
#include "bindings/python/src/core/callback.h"
#include "bindings/python/src/core/raise.h"
#include "bindings/python/src/entry/batch.h"
#include "bindings/python/src/session/session.h"
#include "bindings/python/src/store/open.h"

PyObject *session_act(PyObject *module, PyObject *const *args, Py_ssize_t count,
                      const char *name, session_action *action)
{
    struct wal_session *session;
    struct call call;

    if (!value_count(module, name, count, 1)) {
        return NULL;
    }
    session = call_begin(&call, module, args[0], HANDLE_SESSION);
    if (session == NULL) {
        return NULL;
    }
    call_unlock(&call);
    call.status = action(session, &call.error);
    call_lock(&call);
    return call_none(&call);
}

/* session_remove(session, flags, expected sequence) */
static PyObject *session_remove(PyObject *module, PyObject *const *args,
                                Py_ssize_t count)
{
    struct wal_session_remove_options options =
        WAL_INIT(wal_session_remove_options);
    struct wal_session *session;
    struct module_state *state = module_state(module);
    struct call call;

    if (!value_count(module, "session_remove", count, 3) ||
        !value_u32(state, args[1], "flags", &options.flags) ||
        !value_u64(state, args[2], "expect_sequence",
                   &options.expected_sequence)) {
        return NULL;
    }
    session = call_begin(&call, module, args[0], HANDLE_SESSION);
    if (session == NULL) {
        return NULL;
    }
    call_unlock(&call);
    call.status = wal_session_remove(session, &options, &call.error);
    call_lock(&call);
    return call_none(&call);
}

static PyObject *session_accept_damage(PyObject *module, PyObject *const *args,
                                       Py_ssize_t count)
{
    return session_act(module, args, count, "session_accept_damage",
                       wal_session_accept_damage);
}

static PyObject *session_claim(PyObject *module, PyObject *const *args,
                               Py_ssize_t count)
{
    return session_act(module, args, count, "session_claim", wal_session_claim);
}

static PyObject *session_unclaim(PyObject *module, PyObject *const *args,
                                 Py_ssize_t count)
{
    return session_act(module, args, count, "session_unclaim",
                       wal_session_unclaim);
}

static enum wal_status checkpointing_on(struct wal_session *session,
                                        struct wal_error *error)
{
    return wal_session_set_checkpointing(session, 1, error);
}

static enum wal_status checkpointing_off(struct wal_session *session,
                                         struct wal_error *error)
{
    return wal_session_set_checkpointing(session, 0, error);
}

/* set_checkpointing(session, on) */
static PyObject *set_checkpointing(PyObject *module, PyObject *const *args,
                                   Py_ssize_t count)
{
    if (!value_count(module, "set_checkpointing", count, 2)) {
        return NULL;
    }
    return session_act(module, args, 1, "set_checkpointing",
                       args[1] == Py_True ? checkpointing_on
                                          : checkpointing_off);
}

/* Changes by a function --------------------------------------------------- */

struct change_ctx {
    struct callback callback;
    PyObject *function;
    PyObject *row; /* whose texts the change borrows */
};

/* With the interpreter's lock. */
static bool compute(struct change_ctx *ctx, const struct wal_session_info *now,
                    struct wal_session_change *change)
{
    struct module_state *state = ctx->callback.call->state;
    PyObject *info = value_dict(&session_info_table, now);
    PyObject *row;

    if (info == NULL) {
        return false;
    }
    row = PyObject_CallFunctionObjArgs(ctx->function, info, NULL);
    Py_DECREF(info);
    if (row == NULL) {
        return false;
    }
    Py_XDECREF(ctx->row);
    ctx->row = row;
    return value_row(state, row, "change", &batch_change_table, change);
}

static int32_t change_session(void *context, const struct wal_session_info *now,
                              struct wal_session_change *change)
{
    struct change_ctx *ctx = context;

    if (!callback_enter(&ctx->callback)) {
        return 1;
    }
    return callback_leave(&ctx->callback, compute(ctx, now, change));
}

static bool change_begin(struct change_ctx *ctx, struct call *call,
                         PyObject *function)
{
    ctx->row = NULL;
    ctx->function = function;
    if (function != Py_None && !PyCallable_Check(function)) {
        raise_type(call->state, "change", "a function", function);
        return false;
    }
    return callback_begin(&ctx->callback, call, NULL);
}

static void change_end(struct change_ctx *ctx)
{
    Py_CLEAR(ctx->row);
    callback_end(&ctx->callback);
}

/* session_update(session, function) */
static PyObject *session_update(PyObject *module, PyObject *const *args,
                                Py_ssize_t count)
{
    struct wal_session *session;
    struct change_ctx ctx;
    struct call call;

    if (!value_count(module, "session_update", count, 2)) {
        return NULL;
    }
    session = call_begin(&call, module, args[0], HANDLE_SESSION);
    if (session == NULL) {
        return NULL;
    }
    if (!change_begin(&ctx, &call, args[1])) {
        call_end(&call);
        return NULL;
    }
    call_unlock(&call);
    call.status =
        wal_session_update(session, change_session, &ctx, &call.error);
    call_lock(&call);
    change_end(&ctx);
    return call_none(&call);
}

/* session_migrate(session, to, function or None) */
static PyObject *session_migrate(PyObject *module, PyObject *const *args,
                                 Py_ssize_t count)
{
    struct wal_migrate_result result = WAL_INIT(wal_migrate_result);
    bool has_function;
    struct wal_session *session;
    PyObject *made = NULL;
    struct change_ctx ctx;
    struct call call;
    uint32_t to;

    if (!value_count(module, "session_migrate", count, 3) ||
        !value_u32(module_state(module), args[1], "to", &to)) {
        return NULL;
    }
    has_function = args[2] != Py_None;
    session = call_begin(&call, module, args[0], HANDLE_SESSION);
    if (session == NULL) {
        return NULL;
    }
    if (!change_begin(&ctx, &call, args[2])) {
        call_end(&call);
        return NULL;
    }
    call_unlock(&call);
    call.status =
        wal_session_migrate(session, to, has_function ? change_session : NULL,
                            &ctx, &result, &call.error);
    call_lock(&call);
    change_end(&ctx);
    if (!call_failed(&call)) {
        made = value_dict(&migrate_table, &result);
    }
    call_end(&call);
    return made;
}

PyMethodDef change_methods[] = {
    MODULE_FUNCTION("session_remove", session_remove),
    MODULE_FUNCTION("session_accept_damage", session_accept_damage),
    MODULE_FUNCTION("session_claim", session_claim),
    MODULE_FUNCTION("session_unclaim", session_unclaim),
    MODULE_FUNCTION("set_checkpointing", set_checkpointing),
    MODULE_FUNCTION("session_update", session_update),
    MODULE_FUNCTION("session_migrate", session_migrate),
    {0},
};
