/*
 * store.c - opening a store, its state, and waiting for it.
 */
#include "bindings/python/src/core/callback.h"
#include "bindings/python/src/core/raise.h"
#include "bindings/python/src/core/rows.h"

#include "agentwal/admin.h"
#include "bindings/python/src/store/open.h"

static const struct value_field open_fields[] = {
    VALUE_FIELD(wal_open_options, flags, VALUE_U32),
    VALUE_FIELD(wal_open_options, queue_limit, VALUE_U32),
    VALUE_FIELD(wal_open_options, lock_timeout_ms, VALUE_U32),
    VALUE_FIELD(wal_open_options, idle_mark_ms, VALUE_U32),
    VALUE_FIELD(wal_open_options, group_align, VALUE_U32),
    VALUE_FIELD(wal_open_options, schema_version, VALUE_U32),
};
const struct value_table open_table = {
    open_fields, sizeof(open_fields) / sizeof(*open_fields),
    sizeof(struct wal_open_options)};

static const struct value_field info_fields[] = {
    VALUE_FIELD(wal_store_info, status, VALUE_I32),
    VALUE_FIELD(wal_store_info, queue_status, VALUE_I32),
    VALUE_FIELD(wal_store_info, format_version, VALUE_U32),
    VALUE_FIELD(wal_store_info, tail, VALUE_U32),
    VALUE_FIELD(wal_store_info, uuid, VALUE_UUID),
    VALUE_FIELD(wal_store_info, tail_segment, VALUE_U64),
    VALUE_FIELD(wal_store_info, tail_offset, VALUE_U64),
    VALUE_FIELD(wal_store_info, tail_size, VALUE_U64),
    VALUE_FIELD(wal_store_info, tail_sequence, VALUE_U64),
    VALUE_FIELD(wal_store_info, sessions, VALUE_U64),
    VALUE_FIELD(wal_store_info, last_sequence, VALUE_U64),
    VALUE_FIELD(wal_store_info, segments, VALUE_U64),
    VALUE_FIELD(wal_store_info, log_bytes, VALUE_U64),
    VALUE_FIELD(wal_store_info, disk_bytes, VALUE_U64),
    VALUE_FIELD(wal_store_info, groups, VALUE_U64),
    VALUE_FIELD(wal_store_info, syncs, VALUE_U64),
    VALUE_FIELD(wal_store_info, acknowledged, VALUE_U64),
    VALUE_FIELD(wal_store_info, queued, VALUE_U64),
    VALUE_FIELD(wal_store_info, pack_segments, VALUE_U64),
    VALUE_FIELD(wal_store_info, pack_bytes, VALUE_U64),
    VALUE_FIELD(wal_store_info, pack_disk_bytes, VALUE_U64),
};
VALUE_TABLE(info_table, wal_store_info, info_fields);

static const struct value_field claim_fields[] = {
    VALUE_FIELD(wal_claim, flags, VALUE_U32),
    VALUE_FIELD(wal_claim, session_number, VALUE_U32),
    VALUE_FIELD(wal_claim, process_id, VALUE_I32),
    VALUE_FIELD(wal_claim, session_id, VALUE_TEXT),
};
VALUE_TABLE(claim_table, wal_claim, claim_fields);

/* open(path, options) */
static PyObject *py_open(PyObject *module, PyObject *const *args,
                         Py_ssize_t count)
{
    struct module_state *state = module_state(module);
    struct wal_open_options options = WAL_INIT(wal_open_options);
    struct wal_store *store = NULL;
    const char *path = NULL;
    struct call call;

    if (!value_count(module, "open", count, 2) ||
        !value_row(state, args[1], "options", &open_table, &options) ||
        (args[0] != Py_None &&
         !value_system_path(state, args[0], "path", &path))) {
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

static PyObject *py_version(PyObject *module, PyObject *const *args,
                            Py_ssize_t count)
{
    (void)args;
    if (!value_count(module, "version", count, 0)) {
        return NULL;
    }
    return PyUnicode_FromString(wal_version());
}

static PyObject *store_info(PyObject *module, PyObject *const *args,
                            Py_ssize_t count)
{
    struct wal_store_info info = WAL_INIT(wal_store_info);
    struct wal_store *store;
    PyObject *made = NULL;
    struct call call;

    if (!value_count(module, "store_info", count, 1)) {
        return NULL;
    }
    store = call_begin(&call, module, args[0], HANDLE_STORE);
    if (store == NULL) {
        return NULL;
    }
    call_unlock(&call);
    call.status = wal_store_get_info(store, &info, &call.error);
    call_lock(&call);
    if (!call_failed(&call)) {
        made = value_dict(&info_table, &info);
    }
    call_end(&call);
    return made;
}

typedef enum wal_status store_action(struct wal_store *store,
                                     struct wal_error *error);

/* A call of the library without arguments. */
static PyObject *act(PyObject *module, PyObject *const *args, Py_ssize_t count,
                     const char *name, store_action *action)
{
    struct wal_store *store;
    struct call call;

    if (!value_count(module, name, count, 1)) {
        return NULL;
    }
    store = call_begin(&call, module, args[0], HANDLE_STORE);
    if (store == NULL) {
        return NULL;
    }
    call_unlock(&call);
    call.status = action(store, &call.error);
    call_lock(&call);
    return call_none(&call);
}

static PyObject *store_sync(PyObject *module, PyObject *const *args,
                            Py_ssize_t count)
{
    return act(module, args, count, "store_sync", wal_sync);
}

static PyObject *store_flush(PyObject *module, PyObject *const *args,
                             Py_ssize_t count)
{
    return act(module, args, count, "store_flush", wal_flush);
}

static PyObject *store_accept_damage(PyObject *module, PyObject *const *args,
                                     Py_ssize_t count)
{
    return act(module, args, count, "store_accept_damage",
               wal_store_accept_damage);
}

/* store_wait(store, sequence, durability, timeout_ms): None: time is over. */
static PyObject *store_wait(PyObject *module, PyObject *const *args,
                            Py_ssize_t count)
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
    call.status =
        wal_store_wait(store, &sequence, durability, timeout, &call.error);
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
static PyObject *completion_fd(PyObject *module, PyObject *const *args,
                               Py_ssize_t count)
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

static enum wal_status next_claim(void *cursor, void *item,
                                  struct wal_error *error)
{
    return wal_claim_cursor_next(cursor, item, error);
}

static PyObject *claims(PyObject *module, PyObject *const *args,
                        Py_ssize_t count)
{
    struct rows rows = {.table = &claim_table};
    struct wal_claim_cursor *cursor = NULL;
    struct wal_store *store;
    PyObject *made = NULL;
    struct call call;

    if (!value_count(module, "claims", count, 1)) {
        return NULL;
    }
    store = call_begin(&call, module, args[0], HANDLE_STORE);
    if (store == NULL) {
        return NULL;
    }
    call_unlock(&call);
    call.status = wal_claim_cursor_open(store, &cursor, &call.error);
    if (call.status == WAL_OK) {
        call.status =
            rows_fill(&rows, next_claim, cursor, SIZE_MAX, &call.error);
    }
    wal_claim_cursor_close(cursor);
    call_lock(&call);
    if (!call_failed(&call)) {
        made = rows_list(&rows);
    }
    rows_free(&rows);
    call_end(&call);
    return made;
}

PyMethodDef store_methods[] = {
    MODULE_FUNCTION("open", py_open),
    MODULE_FUNCTION("version", py_version),
    MODULE_FUNCTION("store_info", store_info),
    MODULE_FUNCTION("store_sync", store_sync),
    MODULE_FUNCTION("store_flush", store_flush),
    MODULE_FUNCTION("store_accept_damage", store_accept_damage),
    MODULE_FUNCTION("store_wait", store_wait),
    MODULE_FUNCTION("completion_fd", completion_fd),
    MODULE_FUNCTION("claims", claims),
    {0},
};
