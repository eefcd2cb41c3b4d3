/*
 * session.c - opening, listing, forking and changing sessions; interface.txt has most other calls
 * on them.
 */
#include "agentwal/admin.h"
#include "bindings/python/src/core/call.h"
#include "bindings/python/src/core/interface.h"
#include "bindings/python/src/core/module.h"
#include "bindings/python/src/core/value.h"

/* --- sessions ------------------------------------------------------------- */

/* (store, options) */
static struct wal_store *begin_create(struct call *call, PyObject *module, PyObject *const *args,
                                      Py_ssize_t count, const char *name,
                                      struct wal_session_options *options)
{
    if (!value_count(module, name, count, 2) ||
        !value_row(module_state(module), args[1], "options", &wal_session_options_in, options)) {
        return NULL;
    }
    return call_begin(call, module, args[0], HANDLE_STORE);
}

static PyObject *session_open_or_create(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    struct wal_session_options options = WAL_INIT(wal_session_options);
    struct wal_session *session = NULL;
    struct wal_store *store;
    PyObject *handle;
    int32_t created = 0;
    struct call call;

    store = begin_create(&call, module, args, count, "session_open_or_create", &options);
    if (store == NULL) {
        return NULL;
    }
    call_unlock(&call);
    call.status = wal_session_open_or_create(store, &options, &session, &created, &call.error);
    call_lock(&call);
    handle = call_handle(&call, HANDLE_SESSION, session);
    if (handle == NULL) {
        return NULL;
    }
    return Py_BuildValue("NN", handle, PyBool_FromLong(created));
}

/* Lists ------------------------------------------------------------------- */

static enum wal_status next_session(void *cursor, void *item, struct wal_error *error)
{
    return wal_session_cursor_next(cursor, item, error);
}

/* Reads a page, and the position after it: empty at the end. */
static enum wal_status read_page(struct wal_store *store,
                                 const struct wal_session_cursor_options *which, uint32_t limit,
                                 struct rows *rows, char position[WAL_CURSOR_TEXT_SIZE],
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
static PyObject *session_list(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    struct module_state *state = module_state(module);
    struct wal_session_cursor_options options = WAL_INIT(wal_session_cursor_options);
    struct rows rows = {.table = &wal_session_info_out};
    char position[WAL_CURSOR_TEXT_SIZE];
    struct wal_store *store;
    PyObject *list = NULL;
    uint32_t limit;
    struct call call;

    if (!value_count(module, "session_list", count, 3) ||
        !value_row(state, args[1], "options", &wal_session_cursor_options_in, &options) ||
        !value_u32(state, args[2], "limit", &limit)) {
        return NULL;
    }
    store = call_begin(&call, module, args[0], HANDLE_STORE);
    if (store == NULL) {
        return NULL;
    }
    call_unlock(&call);
    call.status = read_page(store, &options, limit, &rows, position, &call.error);
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

/* Forks ------------------------------------------------------------------- */

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
    return value_row(state, row, "options", &wal_session_options_in, options);
}

/* session_fork(session, at, options) */
static PyObject *session_fork(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    struct module_state *state = module_state(module);
    struct wal_session_options options = WAL_INIT(wal_session_options);
    const struct wal_session_options *given;
    struct wal_session *session, *fork = NULL;
    struct wal_slice at;
    struct call call;

    if (!value_count(module, "session_fork", count, 3) || !value_text(state, args[1], "at", &at) ||
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
static PyObject *session_redact(PyObject *module, PyObject *const *args, Py_ssize_t count)
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

/* session_compact(session, first_kept, summary, into): the fork or None, and the result. */
static PyObject *session_compact(PyObject *module, PyObject *const *args, Py_ssize_t count)
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
    call.status = wal_session_compact(session, &options, options.into == NULL ? NULL : &fork,
                                      &result, &call.error);
    call_lock(&call);
    if (call.status == WAL_OK && fork == NULL) {
        call_end(&call);
        return Py_BuildValue("ON", Py_None, batch_result(&result));
    }
    handle = call_handle(&call, HANDLE_SESSION, fork);
    return handle == NULL ? NULL : Py_BuildValue("NN", handle, batch_result(&result));
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
    PyObject *info = value_dict(&wal_session_info_out, now);
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
    return value_row(state, row, "change", &wal_session_change_in, change);
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

static bool change_begin(struct change_ctx *ctx, struct call *call, PyObject *function)
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
static PyObject *session_update(PyObject *module, PyObject *const *args, Py_ssize_t count)
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
    call.status = wal_session_update(session, change_session, &ctx, &call.error);
    call_lock(&call);
    change_end(&ctx);
    return call_none(&call);
}

/* session_migrate(session, to, function or None) */
static PyObject *session_migrate(PyObject *module, PyObject *const *args, Py_ssize_t count)
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
    call.status = wal_session_migrate(session, to, has_function ? change_session : NULL, &ctx,
                                      &result, &call.error);
    call_lock(&call);
    change_end(&ctx);
    if (!call_failed(&call)) {
        made = value_dict(&wal_migrate_result_out, &result);
    }
    call_end(&call);
    return made;
}

/* --- documents ------------------------------------------------------------ */

/* A call on documents of a handle. */
struct target {
    struct call call;
    struct wal_store *store;     /* null: of a session */
    struct wal_session *session; /* or null */
};

static bool target_begin(struct target *target, PyObject *module, PyObject *object)
{
    void *pointer = call_begin(&target->call, module, object, HANDLE_SHARED);

    if (pointer == NULL) {
        return false;
    }
    target->store = NULL;
    target->session = NULL;
    if (target->call.handle->kind == HANDLE_STORE) {
        target->store = pointer;
    } else {
        target->session = pointer;
    }
    return true;
}

/* doc_get(handle, key, version): the document or None. */
static PyObject *doc_get(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    struct module_state *state = module_state(module);
    struct wal_doc document = WAL_INIT(wal_doc);
    struct rows rows = {.table = &wal_doc_out};
    struct wal_slice key;
    PyObject *made = NULL;
    struct target target;
    struct call *call = &target.call;
    uint64_t version;

    if (!value_count(module, "doc_get", count, 3) || !value_text(state, args[1], "key", &key) ||
        !value_u64(state, args[2], "version", &version) ||
        !target_begin(&target, module, args[0])) {
        return NULL;
    }
    call_unlock(call);
    (void)pthread_mutex_lock(&call->handle->slices);
    call->status = wal_doc_get(target.store, target.session, key, version, &document, &call->error);
    if (call->status == WAL_OK && !rows_add(&rows, &document)) {
        call->status = WAL_ENOMEM;
    }
    (void)pthread_mutex_unlock(&call->handle->slices);
    call_lock(call);
    if (call->status == WAL_ENOTFOUND) {
        Py_INCREF(Py_None);
        made = Py_None;
    } else if (!call_failed(call)) {
        made = rows_first(&rows);
    }
    rows_free(&rows);
    call_end(call);
    return made;
}

typedef enum wal_status document_action(struct wal_store *store, struct wal_session *session,
                                        const struct wal_doc *doc, uint64_t *version,
                                        struct wal_error *error);

/* (handle, document): the newest version. */
static PyObject *change(PyObject *module, PyObject *const *args, Py_ssize_t count, const char *name,
                        document_action *action)
{
    struct wal_doc document = WAL_INIT(wal_doc);
    PyObject *made = NULL;
    struct target target;
    struct call *call = &target.call;
    uint64_t version = 0;

    if (!value_count(module, name, count, 2) ||
        !value_row(module_state(module), args[1], "document", &wal_doc_in, &document) ||
        !target_begin(&target, module, args[0])) {
        return NULL;
    }
    document.flags &= (uint32_t)WAL_DOC_EXPECT;
    call_unlock(call);
    call->status = action(target.store, target.session, &document, &version, &call->error);
    call_lock(call);
    if (!call_failed(call)) {
        made = PyLong_FromUnsignedLongLong(version);
    }
    call_end(call);
    return made;
}

static PyObject *doc_put(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    return change(module, args, count, "doc_put", wal_doc_put);
}

static PyObject *doc_delete(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    return change(module, args, count, "doc_delete", wal_doc_delete);
}

static enum wal_status next_document(void *cursor, void *item, struct wal_error *error)
{
    return wal_doc_cursor_next(cursor, item, error);
}

/* doc_list(handle, flags, prefix) */
static PyObject *doc_list(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    struct module_state *state = module_state(module);
    struct wal_doc_cursor_options options = WAL_INIT(wal_doc_cursor_options);
    struct rows rows = {.table = &wal_doc_out};
    struct wal_doc_cursor *cursor = NULL;
    PyObject *made = NULL;
    struct target target;
    struct call *call = &target.call;

    if (!value_count(module, "doc_list", count, 3) ||
        !value_u32(state, args[1], "flags", &options.flags) ||
        !value_text(state, args[2], "prefix", &options.prefix) ||
        !target_begin(&target, module, args[0])) {
        return NULL;
    }
    call_unlock(call);
    call->status =
        wal_doc_cursor_open(target.store, target.session, &options, &cursor, &call->error);
    if (call->status == WAL_OK) {
        call->status = rows_fill(&rows, next_document, cursor, SIZE_MAX, &call->error);
    }
    wal_doc_cursor_close(cursor);
    call_lock(call);
    if (!call_failed(call)) {
        made = rows_list(&rows);
    }
    rows_free(&rows);
    call_end(call);
    return made;
}

PyMethodDef session_methods[] = {
    MODULE_FUNCTION("session_open_or_create", session_open_or_create),
    MODULE_FUNCTION("session_list", session_list),
    MODULE_FUNCTION("session_fork", session_fork),
    MODULE_FUNCTION("session_redact", session_redact),
    MODULE_FUNCTION("session_compact", session_compact),
    MODULE_FUNCTION("session_update", session_update),
    MODULE_FUNCTION("session_migrate", session_migrate),
    MODULE_FUNCTION("doc_get", doc_get),
    MODULE_FUNCTION("doc_put", doc_put),
    MODULE_FUNCTION("doc_delete", doc_delete),
    MODULE_FUNCTION("doc_list", doc_list),
    {0},
};
