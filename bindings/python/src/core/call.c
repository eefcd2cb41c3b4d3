/*
 * call.c - a call of the library on a handle (call.h).
 */
#include "bindings/python/src/core/call.h"

#include <string.h>
#include <time.h>

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
        (void)sem_post(&gate->idle);
    }
}

void call_end(struct call *call)
{
    struct handle *handle = call->handle;

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

PyObject *call_handle(struct call *call, enum handle_kind kind, void *pointer)
{
    PyObject *made = NULL;

    if (!call_failed(call)) {
        made = handle_new(call->state, kind, pointer, handle_store(call->handle));
    }
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

bool callback_begin(struct callback *callback, struct call *call, PyObject *progress)
{
    memset(callback, 0, sizeof(*callback));
    callback->call = call;
    if (progress != NULL && progress != Py_None) {
        if (!PyCallable_Check(progress)) {
            raise_type(call->state, "on_progress", "a function or None", progress);
            return false;
        }
        callback->progress = Py_NewRef(progress);
    }
    callback->reports = PyList_New(0);
    callback->others = PyList_New(0);
    if (callback->reports == NULL || callback->others == NULL) {
        callback_end(callback);
        return false;
    }
    return true;
}

void callback_end(struct callback *callback)
{
    Py_CLEAR(callback->progress);
    Py_CLEAR(callback->reports);
    Py_CLEAR(callback->others);
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

bool callback_add(PyObject *list, PyObject *object)
{
    bool ok = object != NULL && PyList_Append(list, object) == 0;

    Py_XDECREF(object);
    return ok;
}
