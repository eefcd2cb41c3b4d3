/*
 * salvage.c - a new store from what can be read of a damaged one.
 */
#include "agentwal/admin.h"
#include "bindings/python/src/core/callback.h"
#include "bindings/python/src/core/value.h"

enum {
    REPORTS_MAX = 1000 /* that are kept; all are counted */
};

static const struct value_field report_fields[] = {
    VALUE_FIELD(wal_salvage_report, kind, VALUE_U32),
    VALUE_FIELD(wal_salvage_report, session_id, VALUE_TEXT),
    VALUE_FIELD(wal_salvage_report, entry_id, VALUE_TEXT),
    VALUE_FIELD(wal_salvage_report, first_sequence, VALUE_U64),
    VALUE_FIELD(wal_salvage_report, last_sequence, VALUE_U64),
    VALUE_FIELD(wal_salvage_report, file, VALUE_PATH),
    VALUE_FIELD(wal_salvage_report, offset, VALUE_U64),
    VALUE_FIELD(wal_salvage_report, size, VALUE_U64),
    VALUE_FIELD(wal_salvage_report, reason, VALUE_TEXT),
};
VALUE_TABLE(report_table, wal_salvage_report, report_fields);

static const struct value_field result_fields[] = {
    VALUE_FIELD(wal_salvage_result, sessions, VALUE_U64),
    VALUE_FIELD(wal_salvage_result, entries, VALUE_U64),
    VALUE_FIELD(wal_salvage_result, documents, VALUE_U64),
    VALUE_FIELD(wal_salvage_result, blobs, VALUE_U64),
    VALUE_FIELD(wal_salvage_result, deleted_sessions, VALUE_U64),
    VALUE_FIELD(wal_salvage_result, lost_entries, VALUE_U64),
    VALUE_FIELD(wal_salvage_result, lost_blobs, VALUE_U64),
    VALUE_FIELD(wal_salvage_result, losses, VALUE_U64),
};
VALUE_TABLE(result_table, wal_salvage_result, result_fields);

static int32_t on_progress(void *context, uint64_t done, uint64_t total)
{
    return callback_progress(context, done, total);
}

static int32_t on_report(void *context, const struct wal_salvage_report *report)
{
    struct callback *callback = context;
    bool ok = true;

    if (!callback_enter(callback)) {
        return 1;
    }
    if (PyList_Size(callback->reports) < REPORTS_MAX) {
        ok = callback_add(callback->reports, value_dict(&report_table, report));
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
    options.progress = on_progress;
    options.report = on_report;
    options.ctx = &callback;
    call_unlock(&call);
    call.status = wal_salvage(path, out, &options, &result, &call.error);
    call_lock(&call);
    if (!call_failed(&call)) {
        made = value_dict(&result_table, &result);
    }
    if (made != NULL &&
        PyDict_SetItemString(made, "reports", callback.reports) != 0) {
        value_clear(&made);
    }
    callback_end(&callback);
    return made;
}

PyMethodDef salvage_methods[] = {
    MODULE_FUNCTION("salvage", salvage),
    {0},
};
