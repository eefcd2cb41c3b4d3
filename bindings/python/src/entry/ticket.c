/*
 * ticket.c - waiting for an append that was submitted.
 */
#include <time.h>

#include "bindings/python/src/core/call.h"
#include "bindings/python/src/core/process.h"
#include "bindings/python/src/core/raise.h"
#include "bindings/python/src/entry/batch.h"

enum {
    CLOSING_MS = 5 /* until the store that is being closed is looked at again */
};

/* Whether the store is being closed: the outcome is there when it is. */
static bool is_closing(const struct handle *handle)
{
    const struct gate *gate = handle->gate;

    return gate->is_closing && !gate->is_closed &&
           gate->generation == process_generation();
}

static void sleep_unlocked(void)
{
    struct timespec time = {.tv_nsec = CLOSING_MS * 1000000L};
    PyThreadState *thread = PyEval_SaveThread();

    (void)nanosleep(&time, NULL);
    PyEval_RestoreThread(thread);
}

/* ticket_wait(ticket, timeout_ms): None while it is pending. */
static PyObject *ticket_wait(PyObject *module, PyObject *const *args,
                             Py_ssize_t count)
{
    struct module_state *state = module_state(module);
    struct wal_append_result result = WAL_INIT(wal_append_result);
    struct handle *handle;
    struct wal_ticket *ticket;
    PyObject *made = NULL;
    int64_t timeout;
    struct call call;

    if (!value_count(module, "ticket_wait", count, 2) ||
        !value_i64(state, args[1], "timeout_ms", &timeout)) {
        return NULL;
    }
    handle = handle_of(state, args[0], HANDLE_TICKET);
    if (handle == NULL) {
        return NULL;
    }
    if (is_closing(handle)) {
        if (timeout != 0) {
            sleep_unlocked();
        }
        Py_RETURN_NONE;
    }
    ticket = call_begin(&call, module, args[0], HANDLE_TICKET);
    if (ticket == NULL) {
        return NULL;
    }
    if (timeout == 0) {
        call.status = wal_ticket_wait(ticket, 0, &result, &call.error);
    } else {
        call_unlock(&call);
        call.status = wal_ticket_wait(ticket, timeout, &result, &call.error);
        call_lock(&call);
    }
    if (call.status == WAL_EBUSY) {
        Py_INCREF(Py_None);
        made = Py_None;
    } else if (!call_failed(&call)) {
        made = batch_result(&result);
    }
    call_end(&call);
    return made;
}

PyMethodDef ticket_methods[] = {
    MODULE_FUNCTION("ticket_wait", ticket_wait),
    {0},
};
