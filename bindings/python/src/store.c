/*
 * store.c - opening a store, its state, waiting for it, compaction, salvage, merging stores, and
 * bundles.
 */
#include <stdlib.h>

#include "agentwal/admin.h"
#include "agentwal/transfer.h"
#include "bindings/python/src/core/call.h"
#include "bindings/python/src/core/interface.h"
#include "bindings/python/src/core/module.h"
#include "bindings/python/src/core/value.h"

/* --- stores --------------------------------------------------------------- */

/* open(path, options) */
static PyObject *py_open(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    struct module_state *state = module_state(module);
    struct wal_open_options options = WAL_INIT(wal_open_options);
    struct wal_store *store = NULL;
    const char *path = NULL;
    struct call call;

    if (!value_count(module, "open", count, 2) ||
        !value_row(state, args[1], "options", &wal_open_options_in, &options) ||
        (args[0] != Py_None && !value_system_path(state, args[0], "path", &path))) {
        return NULL;
    }
    call_begin_free(&call, module);
    call_unlock(&call);
    call.status = wal_open(path, &options, &store, &call.error);
    call_lock(&call);
    if (call_failed(&call)) {
        return NULL;
    }
    return handle_new(state, HANDLE_STORE, store, NULL);
}

/* store_wait(store, sequence, durability, timeout_ms): None: time is over. */
static PyObject *store_wait(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    struct module_state *state = module_state(module);
    struct wal_store *store;
    PyObject *made = NULL;
    uint64_t sequence;
    uint32_t durability;
    int64_t timeout;
    struct call call;

    if (!value_count(module, "store_wait", count, 4) ||
        !value_u64(state, args[1], "after", &sequence) ||
        !value_u32(state, args[2], "durability", &durability) ||
        !value_i64(state, args[3], "timeout_ms", &timeout)) {
        return NULL;
    }
    store = call_begin(&call, module, args[0], HANDLE_STORE);
    if (store == NULL) {
        return NULL;
    }
    call_unlock(&call);
    call.status = wal_store_wait(store, &sequence, durability, timeout, &call.error);
    call_lock(&call);
    if (call.status == WAL_EBUSY) {
        Py_INCREF(Py_None);
        made = Py_None;
    } else if (!call_failed(&call)) {
        made = PyLong_FromUnsignedLongLong(sequence);
    }
    call_end(&call);
    return made;
}

/* completion_fd(store, kind) */
static PyObject *completion_fd(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    struct wal_store *store;
    PyObject *made = NULL;
    uint32_t kind;
    int32_t fd = -1;
    struct call call;

    if (!value_count(module, "completion_fd", count, 2) ||
        !value_u32(module_state(module), args[1], "kind", &kind)) {
        return NULL;
    }
    store = call_begin(&call, module, args[0], HANDLE_STORE);
    if (store == NULL) {
        return NULL;
    }
    call.status = wal_store_completion_fd(store, kind, &fd, &call.error);
    if (!call_failed(&call)) {
        made = PyLong_FromLong(fd);
    }
    call_end(&call);
    return made;
}

/* --- compaction and salvage ----------------------------------------------- */

/* Compaction -------------------------------------------------------------- */

struct compact_ctx {
    struct callback callback; /* reports: sessions; others: refusals */
    PyObject *readers;
};

static int32_t on_progress(void *context, uint64_t done, uint64_t total)
{
    struct compact_ctx *ctx = context;

    return callback_progress(&ctx->callback, done, total);
}

static int32_t on_session(void *context, const struct wal_session_space *space)
{
    struct compact_ctx *ctx = context;

    if (!callback_enter(&ctx->callback)) {
        return 1;
    }
    return callback_leave(&ctx->callback, callback_add(ctx->callback.reports,
                                                       value_dict(&wal_session_space_out, space)));
}

static void on_refused(void *context, const struct wal_error *refusal)
{
    struct compact_ctx *ctx = context;

    if (callback_enter(&ctx->callback)) {
        PyObject *made = raise_make(ctx->callback.call->state, refusal);

        (void)callback_leave(&ctx->callback, callback_add(ctx->callback.others, made));
    }
}

static void on_reader(void *context, int32_t process, uint64_t bytes)
{
    struct compact_ctx *ctx = context;

    if (callback_enter(&ctx->callback)) {
        PyObject *made = Py_BuildValue("iK", (int)process, (unsigned long long)bytes);

        (void)callback_leave(&ctx->callback, callback_add(ctx->readers, made));
    }
}

/* The result with its lists. */
static PyObject *compacted(const struct compact_ctx *ctx,
                           const struct wal_store_compact_result *result)
{
    PyObject *dict = value_dict(&wal_store_compact_result_out, result);

    if (dict != NULL && (PyDict_SetItemString(dict, "sessions", ctx->callback.reports) != 0 ||
                         PyDict_SetItemString(dict, "refusals", ctx->callback.others) != 0 ||
                         PyDict_SetItemString(dict, "readers", ctx->readers) != 0)) {
        value_clear(&dict);
    }
    return dict;
}

/* store_compact(store, options, progress) */
static PyObject *store_compact(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    struct wal_store_compact_options options = WAL_INIT(wal_store_compact_options);
    struct wal_store_compact_result result = WAL_INIT(wal_store_compact_result);
    struct wal_store *store;
    struct compact_ctx ctx;
    PyObject *made = NULL;
    struct call call;

    if (!value_count(module, "store_compact", count, 3) ||
        !value_row(module_state(module), args[1], "options", &wal_store_compact_options_in,
                   &options)) {
        return NULL;
    }
    store = call_begin(&call, module, args[0], HANDLE_STORE);
    if (store == NULL) {
        return NULL;
    }
    ctx.readers = PyList_New(0);
    if (ctx.readers == NULL || !callback_begin(&ctx.callback, &call, args[2])) {
        Py_XDECREF(ctx.readers);
        call_end(&call);
        return NULL;
    }
    options.ctx = &ctx;
    options.progress = on_progress;
    options.refused = on_refused;
    options.session = on_session;
    options.reader = on_reader;
    call_unlock(&call);
    call.status = wal_store_compact(store, &options, &result, &call.error);
    call_lock(&call);
    if (!call_failed(&call)) {
        made = compacted(&ctx, &result);
    }
    callback_end(&ctx.callback);
    Py_DECREF(ctx.readers);
    call_end(&call);
    return made;
}

/* Salvage ----------------------------------------------------------------- */

enum {
    REPORTS_MAX = 1000 /* that are kept; all are counted */
};

static int32_t on_report(void *context, const struct wal_salvage_report *report)
{
    struct callback *callback = context;
    bool ok = true;

    if (!callback_enter(callback)) {
        return 1;
    }
    if (PyList_Size(callback->reports) < REPORTS_MAX) {
        ok = callback_add(callback->reports, value_dict(&wal_salvage_report_out, report));
    }
    return callback_leave(callback, ok);
}

/* salvage(path, out, flags, progress) */
static PyObject *salvage(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    struct module_state *state = module_state(module);
    struct wal_salvage_options options = WAL_INIT(wal_salvage_options);
    struct wal_salvage_result result = WAL_INIT(wal_salvage_result);
    struct callback callback;
    const char *path, *out;
    PyObject *made = NULL;
    struct call call;

    if (!value_count(module, "salvage", count, 4) ||
        !value_system_path(state, args[0], "path", &path) ||
        !value_system_path(state, args[1], "out", &out) ||
        !value_u32(state, args[2], "flags", &options.flags)) {
        return NULL;
    }
    call_begin_free(&call, module);
    if (!callback_begin(&callback, &call, args[3])) {
        return NULL;
    }
    options.progress = callback_progress;
    options.report = on_report;
    options.ctx = &callback;
    call_unlock(&call);
    call.status = wal_salvage(path, out, &options, &result, &call.error);
    call_lock(&call);
    if (!call_failed(&call)) {
        made = value_dict(&wal_salvage_result_out, &result);
    }
    if (made != NULL && PyDict_SetItemString(made, "reports", callback.reports) != 0) {
        value_clear(&made);
    }
    callback_end(&callback);
    return made;
}

/* --- transfers ------------------------------------------------------------ */

static PyObject *report_dict(struct module_state *state, const struct wal_transfer_report *report)
{
    PyObject *dict = value_dict(&wal_transfer_report_out, report);
    PyObject *error = NULL;

    if (dict == NULL) {
        return NULL;
    }
    if (report->error != NULL) {
        error = raise_make(state, report->error);
    } else {
        Py_INCREF(Py_None);
        error = Py_None;
    }
    if (error == NULL || PyDict_SetItemString(dict, "error", error) != 0) {
        value_clear(&dict);
    }
    Py_XDECREF(error);
    return dict;
}

static int32_t on_transfer_report(void *context, const struct wal_transfer_report *made)
{
    struct callback *callback = context;

    if (!callback_enter(callback)) {
        return 1;
    }
    return callback_leave(
        callback, callback_add(callback->reports, report_dict(callback->call->state, made)));
}

/* A transfer, and how it is run. */
struct transfer {
    struct call call;
    struct callback callback;
    struct wal_transfer_options options;
    struct wal_transfer_result result;
    struct wal_slice *sessions;
};

/* None: a session that both went on with is refused; a text: both are kept, and it names the
 * branches (struct wal_transfer_options.branch_name). */
static bool set_branch(struct transfer *transfer, PyObject *module, PyObject *branch)
{
    struct wal_transfer_options *options = &transfer->options;

    options->flags = branch == Py_None ? 0U : WAL_TRANSFER_KEEP_BOTH;
    return branch == Py_None ||
           value_text(module_state(module), branch, "branch_name", &options->branch_name);
}

/* Prepares for a call on a store; false: an exception is set, and nothing is to be ended. */
static void *transfer_begin(struct transfer *transfer, PyObject *module, PyObject *store,
                            PyObject *sessions, PyObject *progress)
{
    struct wal_transfer_options *options = &transfer->options;
    uint32_t count = 0;
    void *pointer;

    transfer->sessions = NULL;
    transfer->result = (struct wal_transfer_result)WAL_INIT(wal_transfer_result);
    if (!value_slices(module_state(module), sessions, "sessions", false, &transfer->sessions,
                      &count)) {
        return NULL;
    }
    pointer = call_begin(&transfer->call, module, store, HANDLE_STORE);
    if (pointer != NULL && !callback_begin(&transfer->callback, &transfer->call, progress)) {
        call_end(&transfer->call);
        pointer = NULL;
    }
    if (pointer == NULL) {
        free(transfer->sessions);
        return NULL;
    }
    options->sessions = transfer->sessions;
    options->session_count = count;
    options->progress = callback_progress;
    options->report = on_transfer_report;
    options->ctx = &transfer->callback;
    return pointer;
}

static PyObject *transfer_end(struct transfer *transfer)
{
    PyObject *made = NULL;

    if (!call_failed(&transfer->call)) {
        made = value_dict(&wal_transfer_result_out, &transfer->result);
    }
    if (made != NULL && PyDict_SetItemString(made, "reports", transfer->callback.reports) != 0) {
        value_clear(&made);
    }
    callback_end(&transfer->callback);
    call_end(&transfer->call);
    free(transfer->sessions);
    return made;
}

/* store_merge(from, to, sessions, branch, progress) */
static PyObject *store_merge(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    struct transfer transfer = {.options = WAL_INIT(wal_transfer_options)};
    struct wal_store *from, *to;
    PyObject *made = NULL;
    struct call source;

    if (!value_count(module, "store_merge", count, 5) || !set_branch(&transfer, module, args[3])) {
        return NULL;
    }
    from = call_begin(&source, module, args[0], HANDLE_STORE);
    if (from == NULL) {
        return NULL;
    }
    to = transfer_begin(&transfer, module, args[1], args[2], args[4]);
    if (to != NULL) {
        call_unlock(&transfer.call);
        transfer.call.status =
            wal_store_merge(from, to, &transfer.options, &transfer.result, &transfer.call.error);
        call_lock(&transfer.call);
        made = transfer_end(&transfer);
    }
    call_end(&source);
    return made;
}

typedef enum wal_status bundle_action(struct wal_store *store, struct wal_slice path,
                                      const struct wal_transfer_options *options,
                                      struct wal_transfer_result *result, struct wal_error *error);

/* (store, path, sessions, branch, directory, progress) */
static PyObject *bundle(PyObject *module, PyObject *const *args, Py_ssize_t count, const char *name,
                        bundle_action *action)
{
    struct module_state *state = module_state(module);
    struct transfer transfer = {.options = WAL_INIT(wal_transfer_options)};
    struct wal_store *store;
    struct wal_slice path;

    if (!value_count(module, name, count, 6) || !value_path(state, args[1], "path", &path) ||
        !set_branch(&transfer, module, args[3]) ||
        !value_path(state, args[4], "directory", &transfer.options.directory)) {
        return NULL;
    }
    store = transfer_begin(&transfer, module, args[0], args[2], args[5]);
    if (store == NULL) {
        return NULL;
    }
    call_unlock(&transfer.call);
    transfer.call.status =
        action(store, path, &transfer.options, &transfer.result, &transfer.call.error);
    call_lock(&transfer.call);
    return transfer_end(&transfer);
}

static PyObject *bundle_write(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    return bundle(module, args, count, "bundle_write", wal_bundle_write);
}

static PyObject *bundle_read(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    return bundle(module, args, count, "bundle_read", wal_bundle_read);
}

PyMethodDef store_methods[] = {
    MODULE_FUNCTION("open", py_open),
    MODULE_FUNCTION("store_wait", store_wait),
    MODULE_FUNCTION("completion_fd", completion_fd),
    MODULE_FUNCTION("store_compact", store_compact),
    MODULE_FUNCTION("salvage", salvage),
    MODULE_FUNCTION("store_merge", store_merge),
    MODULE_FUNCTION("bundle_write", bundle_write),
    MODULE_FUNCTION("bundle_read", bundle_read),
    {0},
};
