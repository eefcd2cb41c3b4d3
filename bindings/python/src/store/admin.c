/*
 * admin.c - compaction and salvage of a store.
 */
#include "agentwal/admin.h"
#include "bindings/python/src/core/callback.h"
#include "bindings/python/src/core/interface.h"
#include "bindings/python/src/core/raise.h"

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
    return callback_leave(
        &ctx->callback,
        callback_add(ctx->callback.reports,
                     value_dict(&wal_session_space_out, space)));
}

static void on_refused(void *context, const struct wal_error *refusal)
{
    struct compact_ctx *ctx = context;

    if (callback_enter(&ctx->callback)) {
        PyObject *made = raise_make(ctx->callback.call->state, refusal);

        (void)callback_leave(&ctx->callback,
                             callback_add(ctx->callback.others, made));
    }
}

static void on_reader(void *context, int32_t process, uint64_t bytes)
{
    struct compact_ctx *ctx = context;

    if (callback_enter(&ctx->callback)) {
        PyObject *made =
            Py_BuildValue("iK", (int)process, (unsigned long long)bytes);

        (void)callback_leave(&ctx->callback, callback_add(ctx->readers, made));
    }
}

/* The result with its lists. */
static PyObject *compacted(const struct compact_ctx *ctx,
                           const struct wal_store_compact_result *result)
{
    PyObject *dict = value_dict(&wal_store_compact_result_out, result);

    if (dict != NULL &&
        (PyDict_SetItemString(dict, "sessions", ctx->callback.reports) != 0 ||
         PyDict_SetItemString(dict, "refusals", ctx->callback.others) != 0 ||
         PyDict_SetItemString(dict, "readers", ctx->readers) != 0)) {
        value_clear(&dict);
    }
    return dict;
}

/* store_compact(store, options, progress) */
static PyObject *store_compact(PyObject *module, PyObject *const *args,
                               Py_ssize_t count)
{
    struct wal_store_compact_options options =
        WAL_INIT(wal_store_compact_options);
    struct wal_store_compact_result result = WAL_INIT(wal_store_compact_result);
    struct wal_store *store;
    struct compact_ctx ctx;
    PyObject *made = NULL;
    struct call call;

    if (!value_count(module, "store_compact", count, 3) ||
        !value_row(module_state(module), args[1], "options",
                   &wal_store_compact_options_in, &options)) {
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
        ok = callback_add(callback->reports,
                          value_dict(&wal_salvage_report_out, report));
    }
    return callback_leave(callback, ok);
}

/* salvage(path, out, flags, progress) */
static PyObject *salvage(PyObject *module, PyObject *const *args,
                         Py_ssize_t count)
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
    if (made != NULL &&
        PyDict_SetItemString(made, "reports", callback.reports) != 0) {
        value_clear(&made);
    }
    callback_end(&callback);
    return made;
}

PyMethodDef admin_methods[] = {
    MODULE_FUNCTION("store_compact", store_compact),
    MODULE_FUNCTION("salvage", salvage),
    {0},
};
