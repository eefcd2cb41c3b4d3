/*
 * handle.c - handles of the library as objects of Python (handle.h).
 */
#include "bindings/python/src/core/handle.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "agentwal/blob.h"
#include "agentwal/convert.h"
#include "agentwal/import.h"
#include "bindings/python/src/core/call.h"
#include "bindings/python/src/core/module.h"
#include "bindings/python/src/core/value.h"

/* A handle that was dropped while wal_close ran. */
struct leftover {
    struct leftover *next;
    enum handle_kind kind;
    void *pointer;
};

enum {
    CLOSE_WAIT_MS = 100 /* until signals are handled */
};

const char *handle_name(enum handle_kind kind)
{
    switch (kind) {
    case HANDLE_STORE:
        return "a store";
    case HANDLE_SESSION:
        return "a session";
    case HANDLE_TICKET:
        return "a ticket";
    case HANDLE_CURSOR:
        return "an iterator";
    case HANDLE_BLOB:
        return "a blob";
    case HANDLE_WRITER:
        return "a writer of a blob";
    case HANDLE_VIEW:
        return "a view";
    case HANDLE_FOLLOW:
        return "an import";
    case HANDLE_SEARCH:
        return "a search";
    case HANDLE_SHARED:
        return "a store or a session";
    }
    return "a handle";
}

/* Closes a handle of the library other than a store. */
static void close_pointer(enum handle_kind kind, void *pointer)
{
    switch (kind) {
    case HANDLE_SESSION:
        wal_session_close(pointer);
        break;
    case HANDLE_TICKET:
        wal_ticket_destroy(pointer);
        break;
    case HANDLE_CURSOR:
        wal_entry_cursor_close(pointer);
        break;
    case HANDLE_BLOB:
        wal_blob_close(pointer);
        break;
    case HANDLE_WRITER:
        wal_blob_discard(pointer);
        break;
    case HANDLE_VIEW:
        wal_view_close(pointer);
        break;
    case HANDLE_FOLLOW:
        wal_import_follow_close(pointer);
        break;
    case HANDLE_SEARCH:
        search_close(pointer);
        break;
    case HANDLE_STORE:
    case HANDLE_SHARED:
        break;
    }
}

/* Closes a pointer without the interpreter's lock; wal_close waits for it as for a call. */
static void close_unlocked(struct gate *gate, enum handle_kind kind, void *pointer)
{
    struct call call = {.thread = pthread_self()};

    call_list(&call, gate);
    call_unlock(&call);
    close_pointer(kind, pointer);
    call_lock(&call);
    call_unlist(&call, gate);
}

/* Closes a pointer now, or when wal_close is done. Without memory for that it is leaked, with the
 * memory of its store. */
static void release_pointer(struct gate *gate, enum handle_kind kind, void *pointer)
{
    struct leftover *leftover;

    if (gate->generation != process_generation()) {
        return;
    }
    if (!gate->is_in_close) {
        if (kind == HANDLE_TICKET || kind == HANDLE_CURSOR) {
            close_pointer(kind, pointer);
        } else {
            close_unlocked(gate, kind, pointer);
        }
        return;
    }
    leftover = malloc(sizeof(*leftover));
    if (leftover != NULL) {
        *leftover = (struct leftover){gate->leftovers, kind, pointer};
        gate->leftovers = leftover;
    }
}

static void close_leftovers(struct gate *gate)
{
    while (gate->leftovers != NULL) {
        struct leftover *leftover = gate->leftovers;

        gate->leftovers = leftover->next;
        close_pointer(leftover->kind, leftover->pointer);
        free(leftover);
    }
}

static bool make_gate(struct handle *handle)
{
    handle->gate = calloc(1, sizeof(*handle->gate));
    if (handle->gate == NULL) {
        (void)PyErr_NoMemory();
        return false;
    }
    handle->gate->generation = process_generation();
    (void)pthread_mutex_init(&handle->gate->idle_lock, NULL);
    (void)pthread_cond_init(&handle->gate->idle, NULL);
    return true;
}

PyObject *handle_new(struct module_state *state, enum handle_kind kind, void *pointer,
                     struct handle *store)
{
    struct handle *handle = PyObject_GC_New(struct handle, state->handle_type);

    if (handle == NULL) {
        if (store != NULL) {
            release_pointer(store->gate, kind, pointer);
        } else {
            (void)wal_close(pointer, NULL);
        }
        return NULL;
    }
    handle->kind = kind;
    handle->is_dropped = false;
    handle->calls = 0;
    handle->pointer = pointer;
    handle->store = store;
    handle->gate = NULL;
    handle->extra = NULL;
    handle->memory = NULL;
    (void)pthread_mutex_init(&handle->slices, NULL);
    if (store != NULL) {
        Py_INCREF((PyObject *)store);
        handle->gate = store->gate;
    } else if (!make_gate(handle)) {
        (void)wal_close(pointer, NULL);
        handle->pointer = NULL;
        Py_DECREF((PyObject *)handle);
        return NULL;
    }
    PyObject_GC_Track(handle);
    return (PyObject *)handle;
}

void handle_close(struct handle *handle)
{
    void *pointer = handle->pointer;

    if (handle->calls > 0) {
        handle->is_dropped = true;
    } else if (pointer != NULL) {
        handle->pointer = NULL;
        release_pointer(handle->gate, handle->kind, pointer);
    }
}

/* Runs wal_close. */
static enum wal_status close_store(struct handle *handle, struct wal_error *error)
{
    struct gate *gate = handle->gate;
    struct wal_store *store = handle->pointer;
    PyThreadState *thread;
    enum wal_status status;

    gate->is_closing = true;
    gate->is_in_close = true;
    handle->pointer = NULL;
    thread = PyEval_SaveThread();
    status = wal_close(store, error);
    PyEval_RestoreThread(thread);
    gate->is_in_close = false;
    gate->is_closed = true;
    close_leftovers(gate);
    /* All was done; handles of Python may be open. */
    return status == WAL_EBUSY ? WAL_OK : status;
}

/* Waits for calls that run, or for another thread that closes. */
static void wait_until_idle(struct gate *gate)
{
    struct timespec end;
    PyThreadState *thread = PyEval_SaveThread();

    (void)clock_gettime(CLOCK_REALTIME, &end);
    end.tv_nsec += CLOSE_WAIT_MS * 1000000L;
    if (end.tv_nsec >= 1000000000L) {
        end.tv_nsec -= 1000000000L;
        end.tv_sec++;
    }
    (void)pthread_mutex_lock(&gate->idle_lock);
    if (!gate->was_idle) {
        (void)pthread_cond_timedwait(&gate->idle, &gate->idle_lock, &end);
    }
    gate->was_idle = false;
    (void)pthread_mutex_unlock(&gate->idle_lock);
    PyEval_RestoreThread(thread);
}

/* store_close(store): False while calls of other threads run. */
static PyObject *py_store_close(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    struct module_state *state = module_state(module);
    struct wal_error error = WAL_INIT(wal_error);
    struct handle *handle;
    struct gate *gate;

    if (!value_count(module, "store_close", count, 1)) {
        return NULL;
    }
    handle = handle_of(state, args[0], HANDLE_STORE);
    if (handle == NULL) {
        return NULL;
    }
    gate = handle->gate;
    if (gate->generation != process_generation()) {
        raise_status(state, WAL_EFORKED, NULL);
        return NULL;
    }
    if (gate->is_closed) {
        Py_RETURN_TRUE;
    }
    if (call_is_of_this_thread(gate)) {
        raise_status(state, WAL_EBUSY,
                     "the store cannot be closed by a function that one of its "
                     "calls runs: close it when the call has returned");
        return NULL;
    }
    gate->is_closing = true;
    if (gate->calls != NULL || gate->is_in_close) {
        wait_until_idle(gate);
        Py_RETURN_FALSE;
    }
    if (close_store(handle, &error) != WAL_OK) {
        raise_error(state, &error);
        return NULL;
    }
    Py_RETURN_TRUE;
}

static PyObject *py_handle_close(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    struct handle *handle;

    if (!value_count(module, "handle_close", count, 1)) {
        return NULL;
    }
    handle = handle_of(module_state(module), args[0], (enum handle_kind) ~(unsigned)HANDLE_STORE);
    if (handle == NULL) {
        return NULL;
    }
    handle_close(handle);
    Py_RETURN_NONE;
}

static PyObject *py_is_open(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    struct handle *handle;

    if (!value_count(module, "is_open", count, 1)) {
        return NULL;
    }
    handle = handle_of(module_state(module), args[0], (enum handle_kind) ~0u);
    if (handle == NULL) {
        return NULL;
    }
    return PyBool_FromLong(handle->pointer != NULL && !handle->is_dropped &&
                           !handle->gate->is_closing);
}

PyMethodDef handle_methods[] = {
    MODULE_FUNCTION("store_close", py_store_close),
    MODULE_FUNCTION("handle_close", py_handle_close),
    MODULE_FUNCTION("is_open", py_is_open),
    {0},
};

static int traverse(PyObject *object, visitproc visit, void *arg)
{
    struct handle *handle = (struct handle *)object;

    Py_VISIT(Py_TYPE(object));
    Py_VISIT(handle->store);
    Py_VISIT(handle->extra);
    return 0;
}

/* A store has no references, so that `store` is in no cycle. */
static int clear(PyObject *object)
{
    Py_CLEAR(((struct handle *)object)->extra);
    return 0;
}

static void deallocate(PyObject *object)
{
    struct handle *handle = (struct handle *)object;
    PyTypeObject *type = Py_TYPE(object);

    PyObject_GC_UnTrack(object);
    if (handle->store != NULL) {
        handle_close(handle);
    } else if (handle->pointer != NULL && handle->gate->generation == process_generation()) {
        (void)close_store(handle, NULL);
    }
    if (handle->store == NULL && handle->gate != NULL) {
        (void)pthread_cond_destroy(&handle->gate->idle);
        (void)pthread_mutex_destroy(&handle->gate->idle_lock);
        free(handle->gate);
    }
    (void)pthread_mutex_destroy(&handle->slices);
    free(handle->memory);
    Py_XDECREF(handle->extra);
    Py_XDECREF((PyObject *)handle->store);
    PyObject_GC_Del(object);
    Py_DECREF(type);
}

static PyType_Slot slots[] = {
    {Py_tp_dealloc, (void *)(uintptr_t)deallocate},
    {Py_tp_traverse, (void *)(uintptr_t)traverse},
    {Py_tp_clear, (void *)(uintptr_t)clear},
    {Py_tp_doc, "A handle of the library."},
    {0, NULL},
};

const PyType_Spec handle_spec = {
    .name = "agentwal._wal.Handle",
    .basicsize = sizeof(struct handle),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION |
             Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
