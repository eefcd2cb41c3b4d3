/*
 * compact.c - compaction, backup and migration of a store.
 */
#include "agentwal/admin.h"
#include "bindings/python/src/core/callback.h"
#include "bindings/python/src/core/raise.h"
#include "bindings/python/src/core/value.h"
#include "bindings/python/src/store/open.h"

static const struct value_field compact_fields[] = {
    VALUE_FIELD(wal_store_compact_options, flags, VALUE_U32),
    VALUE_FIELD(wal_store_compact_options, dead_percent, VALUE_U32),
    VALUE_FIELD(wal_store_compact_options, max_bytes, VALUE_U64),
    VALUE_FIELD(wal_store_compact_options, rate, VALUE_U64),
};
VALUE_TABLE(compact_table, wal_store_compact_options, compact_fields);

static const struct value_field compacted_fields[] = {
    VALUE_FIELD(wal_store_compact_result, segments, VALUE_U64),
    VALUE_FIELD(wal_store_compact_result, rewritten, VALUE_U64),
    VALUE_FIELD(wal_store_compact_result, refused, VALUE_U64),
    VALUE_FIELD(wal_store_compact_result, bytes_before, VALUE_U64),
    VALUE_FIELD(wal_store_compact_result, bytes_after, VALUE_U64),
    VALUE_FIELD(wal_store_compact_result, dead_bytes, VALUE_U64),
    VALUE_FIELD(wal_store_compact_result, kept_records, VALUE_U64),
    VALUE_FIELD(wal_store_compact_result, dropped_records, VALUE_U64),
    VALUE_FIELD(wal_store_compact_result, erased_records, VALUE_U64),
    VALUE_FIELD(wal_store_compact_result, dropped_contents, VALUE_U64),
};
VALUE_TABLE(compacted_table, wal_store_compact_result, compacted_fields);

static const struct value_field space_fields[] = {
    VALUE_FIELD(wal_session_space, flags, VALUE_U32),
    VALUE_FIELD(wal_session_space, session_number, VALUE_U32),
    VALUE_FIELD(wal_session_space, session_id, VALUE_TEXT),
    VALUE_FIELD(wal_session_space, own_bytes, VALUE_U64),
    VALUE_FIELD(wal_session_space, shared_bytes, VALUE_U64),
    VALUE_FIELD(wal_session_space, reclaimable_bytes, VALUE_U64),
};
VALUE_TABLE(space_table, wal_session_space, space_fields);

static const struct value_field backup_fields[] = {
    VALUE_FIELD(wal_store_backup_result, segments, VALUE_U64),
    VALUE_FIELD(wal_store_backup_result, copied, VALUE_U64),
    VALUE_FIELD(wal_store_backup_result, removed, VALUE_U64),
    VALUE_FIELD(wal_store_backup_result, bytes, VALUE_U64),
    VALUE_FIELD(wal_store_backup_result, shared_bytes, VALUE_U64),
    VALUE_FIELD(wal_store_backup_result, last_sequence, VALUE_U64),
};
VALUE_TABLE(backup_table, wal_store_backup_result, backup_fields);

static const struct value_field migrate_fields[] = {
    VALUE_FIELD(wal_migrate_result, from, VALUE_U32),
    VALUE_FIELD(wal_migrate_result, to, VALUE_U32),
    VALUE_FIELD(wal_migrate_result, sessions, VALUE_U64),
};
const struct value_table migrate_table = {
    migrate_fields, sizeof(migrate_fields) / sizeof(*migrate_fields),
    sizeof(struct wal_migrate_result)};

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
        callback_add(ctx->callback.reports, value_dict(&space_table, space)));
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
    PyObject *dict = value_dict(&compacted_table, result);

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
        !value_row(module_state(module), args[1], "options", &compact_table,
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

static int32_t on_backup_progress(void *context, uint64_t done, uint64_t total)
{
    return callback_progress(context, done, total);
}

/* store_backup(store, path, progress) */
static PyObject *store_backup(PyObject *module, PyObject *const *args,
                              Py_ssize_t count)
{
    struct wal_store_backup_options options =
        WAL_INIT(wal_store_backup_options);
    struct wal_store_backup_result result = WAL_INIT(wal_store_backup_result);
    struct callback callback;
    struct wal_store *store;
    PyObject *made = NULL;
    const char *path;
    struct call call;

    if (!value_count(module, "store_backup", count, 3) ||
        !value_system_path(module_state(module), args[1], "path", &path)) {
        return NULL;
    }
    store = call_begin(&call, module, args[0], HANDLE_STORE);
    if (store == NULL) {
        return NULL;
    }
    if (!callback_begin(&callback, &call, args[2])) {
        call_end(&call);
        return NULL;
    }
    options.progress = on_backup_progress;
    options.ctx = &callback;
    call_unlock(&call);
    call.status = wal_store_backup(store, path, &options, &result, &call.error);
    call_lock(&call);
    if (!call_failed(&call)) {
        made = value_dict(&backup_table, &result);
    }
    callback_end(&callback);
    call_end(&call);
    return made;
}

/* migrate(path, options) */
static PyObject *migrate(PyObject *module, PyObject *const *args,
                         Py_ssize_t count)
{
    struct module_state *state = module_state(module);
    struct wal_migrate_result result = WAL_INIT(wal_migrate_result);
    struct wal_open_options options = WAL_INIT(wal_open_options);
    const char *path;
    struct call call;

    if (!value_count(module, "migrate", count, 2) ||
        !value_system_path(state, args[0], "path", &path) ||
        !value_row(state, args[1], "options", &open_table, &options)) {
        return NULL;
    }
    call_begin_free(&call, module);
    call_unlock(&call);
    call.status = wal_store_migrate(path, &options, &result, &call.error);
    call_lock(&call);
    return call_failed(&call) ? NULL : value_dict(&migrate_table, &result);
}

PyMethodDef compact_methods[] = {
    MODULE_FUNCTION("store_compact", store_compact),
    MODULE_FUNCTION("store_backup", store_backup),
    MODULE_FUNCTION("migrate", migrate),
    {0},
};
