/*
 * callback.c - functions of the caller (callback.h).
 */
#include "bindings/python/src/core/callback.h"

#include <string.h>
#include <time.h>

#include "bindings/python/src/core/raise.h"

enum {
    PROGRESS_MS = 50 /* between two reports */
};

bool callback_begin(struct callback *callback, struct call *call,
                    PyObject *progress)
{
    memset(callback, 0, sizeof(*callback));
    callback->call = call;
    if (progress != NULL && progress != Py_None) {
        if (!PyCallable_Check(progress)) {
            raise_type(call->state, "on_progress", "a function or None",
                       progress);
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
        PyObject *got = PyObject_CallFunction(callback->progress, "KK",
                                              (unsigned long long)done,
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
