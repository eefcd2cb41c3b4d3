/*
 * transfer.c - merging stores, and bundles.
 */
#include "agentwal/transfer.h"

#include <stdlib.h>

#include "bindings/python/src/core/callback.h"
#include "bindings/python/src/core/interface.h"
#include "bindings/python/src/core/raise.h"
#include "bindings/python/src/core/value.h"

static PyObject *report_dict(struct module_state *state,
                             const struct wal_transfer_report *report)
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

static int32_t on_report(void *context, const struct wal_transfer_report *made)
{
    struct callback *callback = context;

    if (!callback_enter(callback)) {
        return 1;
    }
    return callback_leave(
        callback, callback_add(callback->reports,
                               report_dict(callback->call->state, made)));
}

/* A transfer, and how it is run. */
struct transfer {
    struct call call;
    struct callback callback;
    struct wal_transfer_options options;
    struct wal_transfer_result result;
    struct wal_slice *sessions;
};

/* None: a session that both went on with is refused; a text: both are kept, and
 * it names the branches (struct wal_transfer_options.branch_name). */
static bool set_branch(struct transfer *transfer, PyObject *module,
                       PyObject *branch)
{
    struct wal_transfer_options *options = &transfer->options;

    options->flags = branch == Py_None ? 0U : WAL_TRANSFER_KEEP_BOTH;
    return branch == Py_None ||
           value_text(module_state(module), branch, "branch_name",
                      &options->branch_name);
}

/* Prepares for a call on a store; false: an exception is set, and nothing is to
 * be ended. */
static void *transfer_begin(struct transfer *transfer, PyObject *module,
                            PyObject *store, PyObject *sessions,
                            PyObject *progress)
{
    struct wal_transfer_options *options = &transfer->options;
    uint32_t count = 0;
    void *pointer;

    transfer->sessions = NULL;
    transfer->result =
        (struct wal_transfer_result)WAL_INIT(wal_transfer_result);
    if (!value_slices(module_state(module), sessions, "sessions", false,
                      &transfer->sessions, &count)) {
        return NULL;
    }
    pointer = call_begin(&transfer->call, module, store, HANDLE_STORE);
    if (pointer != NULL &&
        !callback_begin(&transfer->callback, &transfer->call, progress)) {
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
    options->report = on_report;
    options->ctx = &transfer->callback;
    return pointer;
}

static PyObject *transfer_end(struct transfer *transfer)
{
    PyObject *made = NULL;

    if (!call_failed(&transfer->call)) {
        made = value_dict(&wal_transfer_result_out, &transfer->result);
    }
    if (made != NULL && PyDict_SetItemString(made, "reports",
                                             transfer->callback.reports) != 0) {
        value_clear(&made);
    }
    callback_end(&transfer->callback);
    call_end(&transfer->call);
    free(transfer->sessions);
    return made;
}

/* store_merge(from, to, sessions, branch, progress) */
static PyObject *store_merge(PyObject *module, PyObject *const *args,
                             Py_ssize_t count)
{
    struct transfer transfer = {.options = WAL_INIT(wal_transfer_options)};
    struct wal_store *from, *to;
    PyObject *made = NULL;
    struct call source;

    if (!value_count(module, "store_merge", count, 5) ||
        !set_branch(&transfer, module, args[3])) {
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
            wal_store_merge(from, to, &transfer.options, &transfer.result,
                            &transfer.call.error);
        call_lock(&transfer.call);
        made = transfer_end(&transfer);
    }
    call_end(&source);
    return made;
}

typedef enum wal_status
bundle_action(struct wal_store *store, struct wal_slice path,
              const struct wal_transfer_options *options,
              struct wal_transfer_result *result, struct wal_error *error);

/* (store, path, sessions, branch, directory, progress) */
static PyObject *bundle(PyObject *module, PyObject *const *args,
                        Py_ssize_t count, const char *name,
                        bundle_action *action)
{
    struct module_state *state = module_state(module);
    struct transfer transfer = {.options = WAL_INIT(wal_transfer_options)};
    struct wal_store *store;
    struct wal_slice path;

    if (!value_count(module, name, count, 6) ||
        !value_path(state, args[1], "path", &path) ||
        !set_branch(&transfer, module, args[3]) ||
        !value_path(state, args[4], "directory", &transfer.options.directory)) {
        return NULL;
    }
    store = transfer_begin(&transfer, module, args[0], args[2], args[5]);
    if (store == NULL) {
        return NULL;
    }
    call_unlock(&transfer.call);
    transfer.call.status = action(store, path, &transfer.options,
                                  &transfer.result, &transfer.call.error);
    call_lock(&transfer.call);
    return transfer_end(&transfer);
}

static PyObject *bundle_write(PyObject *module, PyObject *const *args,
                              Py_ssize_t count)
{
    return bundle(module, args, count, "bundle_write", wal_bundle_write);
}

static PyObject *bundle_read(PyObject *module, PyObject *const *args,
                             Py_ssize_t count)
{
    return bundle(module, args, count, "bundle_read", wal_bundle_read);
}

PyMethodDef transfer_methods[] = {
    MODULE_FUNCTION("store_merge", store_merge),
    MODULE_FUNCTION("bundle_write", bundle_write),
    MODULE_FUNCTION("bundle_read", bundle_read),
    {0},
};
