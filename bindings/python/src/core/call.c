/*
 * call.c - a call of the library on a handle (call.h).
 */
#include "bindings/python/src/core/call.h"

#include <string.h>
#include <time.h>

#include "bindings/python/src/core/interface.h"

/* --- calls ---------------------------------------------------------------- */

struct handle *handle_of(struct module_state *state, PyObject *object, enum handle_kind kinds)
{
    struct handle *handle = (struct handle *)object;

    if (Py_TYPE(object) != state->handle_type) {
        raise_type(state, "handle", "a handle", object);
        return NULL;
    }
    if (((unsigned)handle->kind & (unsigned)kinds) == 0) {
        PyErr_Format(state->invalid_type, "handle: %s is needed, not %s", handle_name(kinds),
                     handle_name(handle->kind));
        return NULL;
    }
    return handle;
}

/* The store that a handle belongs to. */
static struct handle *handle_store(struct handle *handle)
{
    return handle->store != NULL ? handle->store : handle;
}

bool call_refuses(struct module_state *state, const struct handle *handle)
{
    const struct gate *gate = handle->gate;
    char text[128];

    if (gate->generation != process_generation()) {
        raise_status(state, WAL_EFORKED,
                     "the handle belongs to the parent process: open the store "
                     "again in the child of fork()");
        return true;
    }
    /* The outcome of a ticket remains when its store is closed. */
    if (gate->is_closing && !(handle->kind == HANDLE_TICKET && gate->is_closed)) {
        raise_status(state, WAL_ECLOSED, "the store was closed");
        return true;
    }
    if (handle->pointer == NULL || handle->is_dropped) {
        (void)PyOS_snprintf(text, sizeof(text), "%s was closed", handle_name(handle->kind));
        raise_status(state, WAL_ECLOSED, text);
        return true;
    }
    if (handle->calls > 0 && ((unsigned)handle->kind & (unsigned)HANDLE_SHARED) == 0) {
        (void)PyOS_snprintf(text, sizeof(text),
                            "%s is used by another call: use one for each "
                            "thread",
                            handle_name(handle->kind));
        raise_status(state, WAL_EBUSY, text);
        return true;
    }
    return false;
}

void call_begin_free(struct call *call, PyObject *module)
{
    memset(call, 0, sizeof(*call));
    call->state = module_state(module);
    call->error.struct_size = (uint32_t)sizeof(call->error);
}

void *call_begin(struct call *call, PyObject *module, PyObject *object, enum handle_kind kinds)
{
    struct module_state *state = module_state(module);
    struct handle *handle = handle_of(state, object, kinds);

    if (handle == NULL || call_refuses(state, handle)) {
        return NULL;
    }
    call_begin_free(call, module);
    Py_INCREF((PyObject *)handle);
    handle->calls++;
    call->handle = handle;
    call->thread = pthread_self();
    call_list(call, handle->gate);
    return handle->pointer;
}

void call_list(struct call *call, struct gate *gate)
{
    call->next = gate->calls;
    gate->calls = call;
}

void call_unlist(struct call *call, struct gate *gate)
{
    struct call **place = &gate->calls;

    while (*place != call) {
        place = &(*place)->next;
    }
    *place = call->next;
    if (gate->calls == NULL && gate->is_closing) {
        (void)pthread_mutex_lock(&gate->idle_lock);
        gate->was_idle = true;
        (void)pthread_cond_signal(&gate->idle);
        (void)pthread_mutex_unlock(&gate->idle_lock);
    }
}

void call_end(struct call *call)
{
    struct handle *handle = call->handle;

    arena_destroy(&call->arena);
    if (handle == NULL) {
        return;
    }
    call->handle = NULL;
    handle->calls--;
    call_unlist(call, handle->gate);
    if (handle->calls == 0 && handle->is_dropped) {
        handle_close(handle);
    }
    Py_DECREF((PyObject *)handle);
}

void call_unlock(struct call *call)
{
    call->saved = PyEval_SaveThread();
}

void call_lock(struct call *call)
{
    PyEval_RestoreThread(call->saved);
    call->saved = NULL;
}

bool call_failed(struct call *call)
{
    if (call->is_raised) {
        return true;
    }
    if (call->status >= 0) {
        return false;
    }
    call->error.status = call->status;
    raise_error(call->state, &call->error);
    return true;
}

PyObject *call_none(struct call *call)
{
    bool failed = call_failed(call);

    call_end(call);
    if (failed) {
        return NULL;
    }
    Py_RETURN_NONE;
}

PyObject *call_object(struct call *call, enum handle_kind kind, void *pointer)
{
    return pointer == NULL ? Py_NewRef(Py_None)
                           : handle_new(call->state, kind, pointer, handle_store(call->handle));
}

PyObject *call_handle(struct call *call, enum handle_kind kind, void *pointer)
{
    PyObject *made = call_failed(call) ? NULL : call_object(call, kind, pointer);

    call_end(call);
    return made;
}

bool call_is_of_this_thread(const struct gate *gate)
{
    for (const struct call *call = gate->calls; call != NULL; call = call->next) {
        if (pthread_equal(call->thread, pthread_self())) {
            return true;
        }
    }
    return false;
}

/* --- functions of the caller ---------------------------------------------- */

enum {
    PROGRESS_MS = 50 /* between two reports */
};

/* A function of the caller, or null; false: it is none. */
static bool take_function(struct call *call, PyObject *given, const char *name, PyObject **function)
{
    *function = given == Py_None ? NULL : given;
    if (*function != NULL && !PyCallable_Check(given)) {
        raise_type(call->state, name, "a function or None", given);
        return false;
    }
    return true;
}

bool callback_begin(struct callback *callback, struct call *call, PyObject *progress,
                    PyObject *project, PyObject *change)
{
    bool ok;

    memset(callback, 0, sizeof(*callback));
    callback->call = call;
    ok = take_function(call, progress, "on_progress", &callback->progress) &&
         take_function(call, project, "project", &callback->project) &&
         take_function(call, change, "change", &callback->change);
    for (size_t i = 0; ok && i < CALLBACK_LISTS; i++) {
        callback->lists[i] = PyList_New(0);
        ok = callback->lists[i] != NULL;
    }
    return ok;
}

void callback_end(struct callback *callback)
{
    value_clear(&callback->row);
    for (size_t i = 0; i < CALLBACK_LISTS; i++) {
        value_clear(&callback->lists[i]);
    }
}

bool callback_enter(struct callback *callback)
{
    if (callback->call->is_raised) {
        return false;
    }
    call_lock(callback->call);
    return true;
}

int32_t callback_leave(struct callback *callback, bool ok)
{
    callback->call->is_raised = !ok;
    call_unlock(callback->call);
    return ok ? 0 : 1;
}

static uint64_t now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

int32_t callback_progress(void *ctx, uint64_t done, uint64_t total)
{
    struct callback *callback = ctx;
    uint64_t now = now_ms();
    bool ok;

    if (callback->call->is_raised) {
        return 1;
    }
    if (now < callback->next_ms && done != total) {
        return 0;
    }
    callback->next_ms = now + PROGRESS_MS;
    if (!callback_enter(callback)) {
        return 1;
    }
    ok = PyErr_CheckSignals() == 0;
    if (ok && callback->progress != NULL) {
        PyObject *got = PyObject_CallFunction(callback->progress, "KK", (unsigned long long)done,
                                              (unsigned long long)total);

        ok = got != NULL;
        Py_XDECREF(got);
    }
    return callback_leave(callback, ok);
}

int32_t callback_progress_of_path(void *ctx, struct wal_slice path, uint64_t done, uint64_t total)
{
    (void)path;
    return callback_progress(ctx, done, total);
}

/* Copies the id of a project, a str; false: an exception is set. */
static bool copy_project(struct module_state *state, PyObject *id, char *project, uint64_t size)
{
    struct wal_slice text;

    if (!value_text(state, id, "project", &text)) {
        return false;
    }
    if (text.size >= size) {
        raise_invalid(state, "project", "the id is too long");
        return false;
    }
    if (text.size > 0) {
        memcpy(project, text.data, (size_t)text.size);
    }
    project[text.size] = '\0';
    return true;
}

int32_t callback_project(void *ctx, struct wal_slice directory, char *project, uint64_t size)
{
    struct callback *callback = ctx;
    bool is_named = false;
    PyObject *path;
    PyObject *id = NULL;

    if (callback->project == NULL || !callback_enter(callback)) {
        return 1;
    }
    path = value_str(directory);
    if (path != NULL) {
        id = PyObject_CallFunctionObjArgs(callback->project, path, NULL);
        Py_DECREF(path);
    }
    if (id != NULL && id != Py_None) {
        is_named = copy_project(callback->call->state, id, project, size);
    }
    Py_XDECREF(id);
    (void)callback_leave(callback, PyErr_Occurred() == NULL);
    return is_named ? 0 : 1;
}

/* With the interpreter's lock. */
static bool compute_change(struct callback *callback, const struct wal_session_info *now,
                           struct wal_session_change *change)
{
    struct module_state *state = callback->call->state;
    PyObject *info = value_dict(state, &wal_session_info_out, now);

    value_clear(&callback->row);
    if (info != NULL) {
        callback->row = PyObject_CallFunctionObjArgs(callback->change, info, NULL);
        Py_DECREF(info);
    }
    return callback->row != NULL &&
           value_row(state, callback->row, "change", &wal_session_change_in, change);
}

int32_t callback_change(void *ctx, const struct wal_session_info *now,
                        struct wal_session_change *change)
{
    struct callback *callback = ctx;

    if (!callback_enter(callback)) {
        return 1;
    }
    return callback_leave(callback, compute_change(callback, now, change));
}

int32_t callback_item(void *ctx, uint32_t list, const struct table *table, const void *item,
                      Py_ssize_t limit)
{
    struct callback *callback = ctx;
    PyObject *items = callback->lists[list];
    bool ok = true;

    if (!callback_enter(callback)) {
        return 1;
    }
    if (PyList_Size(items) < limit) {
        ok = value_add(items, value_dict(callback->call->state, table, item));
    }
    return callback_leave(callback, ok);
}

PyObject *callback_lists(const struct callback *callback, PyObject *dict, const char *const *names)
{
    for (size_t i = 0; dict != NULL && names[i] != NULL; i++) {
        if (PyDict_SetItemString(dict, names[i], callback->lists[i]) != 0) {
            value_clear(&dict);
        }
    }
    return dict;
}
