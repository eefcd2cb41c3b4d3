/*
 * batch.c - appends and batches of rows, and waiting for those that were
 * submitted.
 */
#include "bindings/python/src/entry/batch.h"

#include <stdlib.h>
#include <time.h>

#include "bindings/python/src/core/call.h"
#include "bindings/python/src/core/interface.h"
#include "bindings/python/src/core/process.h"
#include "bindings/python/src/core/raise.h"

/* A batch whose texts are borrowed from the rows. */
struct batch_rows {
    struct wal_batch batch;
    struct wal_session_change change;
    void *entries;
    void *documents;
    void *heads;
};

/* Sets a zeroed struct; false: an exception is set. Free it in either case.
 * documents and heads may be null, change may be None. */
static bool batch_set(struct module_state *state, struct batch_rows *rows,
                      PyObject *entries, PyObject *documents, PyObject *heads,
                      PyObject *change)
{
    struct wal_batch *batch = &rows->batch;

    batch->struct_size = (uint32_t)sizeof(*batch);
    if (!value_rows(state, entries, "entries", &wal_entry_in, &rows->entries,
                    &batch->entry_count)) {
        return false;
    }
    batch->entries = rows->entries;
    if (documents != NULL) {
        if (!value_rows(state, documents, "documents", &wal_doc_in,
                        &rows->documents, &batch->document_count)) {
            return false;
        }
        batch->documents = rows->documents;
    }
    if (heads != NULL) {
        if (!value_rows(state, heads, "heads", &wal_head_in, &rows->heads,
                        &batch->head_count)) {
            return false;
        }
        batch->heads = rows->heads;
    }
    if (change != Py_None) {
        rows->change.struct_size = (uint32_t)sizeof(rows->change);
        if (!value_row(state, change, "change", &wal_session_change_in,
                       &rows->change)) {
            return false;
        }
        batch->change = &rows->change;
    }
    return true;
}

static void batch_free(struct batch_rows *rows)
{
    free(rows->entries);
    free(rows->documents);
    free(rows->heads);
}

static bool batch_options(struct module_state *state, PyObject *row,
                          struct wal_append_options *options)
{
    return value_row(state, row, "options", &wal_append_options_in, options);
}

PyObject *batch_result(const struct wal_append_result *result)
{
    return Py_BuildValue("IIKs", (unsigned)result->appended,
                         (unsigned)result->duplicates,
                         (unsigned long long)result->sequence, result->last_id);
}

/* A batch of which a part may be missing, and how to write it. */
struct request {
    struct batch_rows rows;
    struct wal_append_options options;
    bool is_batch; /* of more than entries */
};

static enum wal_status write_now(struct wal_session *session,
                                 const struct request *request,
                                 struct wal_append_result *result,
                                 struct wal_error *error)
{
    const struct wal_batch *batch = &request->rows.batch;

    if (request->is_batch) {
        return wal_batch_commit(session, batch, &request->options, result,
                                error);
    }
    return wal_append(session, batch->entries, batch->entry_count,
                      &request->options, result, error);
}

static enum wal_status write_later(struct wal_session *session,
                                   const struct request *request,
                                   struct wal_ticket **ticket,
                                   struct wal_error *error)
{
    const struct wal_batch *batch = &request->rows.batch;

    if (request->is_batch) {
        return wal_batch_submit(session, batch, &request->options, ticket,
                                error);
    }
    return wal_submit(session, batch->entries, batch->entry_count,
                      &request->options, ticket, error);
}

static PyObject *run(PyObject *module, PyObject *object,
                     struct request *request, bool submit)
{
    struct wal_append_result result = WAL_INIT(wal_append_result);
    struct wal_ticket *ticket = NULL;
    struct wal_session *session;
    PyObject *made = NULL;
    struct call call;

    session = call_begin(&call, module, object, HANDLE_SESSION);
    if (session == NULL) {
        return NULL;
    }
    call_unlock(&call);
    call.status = submit ? write_later(session, request, &ticket, &call.error)
                         : write_now(session, request, &result, &call.error);
    call_lock(&call);
    if (submit) {
        return call_handle(&call, HANDLE_TICKET, ticket);
    }
    if (!call_failed(&call)) {
        made = batch_result(&result);
    }
    call_end(&call);
    return made;
}

/* (session, entries, options) */
static PyObject *write_entries(PyObject *module, PyObject *const *args,
                               Py_ssize_t count, bool submit)
{
    struct module_state *state = module_state(module);
    struct request request = {.options = WAL_INIT(wal_append_options)};
    PyObject *made = NULL;

    if (!value_count(module, submit ? "submit" : "append", count, 3)) {
        return NULL;
    }
    if (batch_set(state, &request.rows, args[1], NULL, NULL, Py_None) &&
        batch_options(state, args[2], &request.options)) {
        made = run(module, args[0], &request, submit);
    }
    batch_free(&request.rows);
    return made;
}

/* (session, entries, documents, heads, change, options) */
static PyObject *write_batch(PyObject *module, PyObject *const *args,
                             Py_ssize_t count, bool submit)
{
    struct module_state *state = module_state(module);
    struct request request = {.options = WAL_INIT(wal_append_options),
                              .is_batch = true};
    PyObject *made = NULL;

    if (!value_count(module, submit ? "submit_commit" : "commit", count, 6)) {
        return NULL;
    }
    if (batch_set(state, &request.rows, args[1], args[2], args[3], args[4]) &&
        batch_options(state, args[5], &request.options)) {
        made = run(module, args[0], &request, submit);
    }
    batch_free(&request.rows);
    return made;
}

static PyObject *py_append(PyObject *module, PyObject *const *args,
                           Py_ssize_t count)
{
    return write_entries(module, args, count, false);
}

static PyObject *py_submit(PyObject *module, PyObject *const *args,
                           Py_ssize_t count)
{
    return write_entries(module, args, count, true);
}

static PyObject *py_commit(PyObject *module, PyObject *const *args,
                           Py_ssize_t count)
{
    return write_batch(module, args, count, false);
}

static PyObject *py_submit_commit(PyObject *module, PyObject *const *args,
                                  Py_ssize_t count)
{
    return write_batch(module, args, count, true);
}

/* Tickets ----------------------------------------------------------------- */

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

PyMethodDef batch_methods[] = {
    MODULE_FUNCTION("append", py_append),
    MODULE_FUNCTION("submit", py_submit),
    MODULE_FUNCTION("commit", py_commit),
    MODULE_FUNCTION("submit_commit", py_submit_commit),
    MODULE_FUNCTION("ticket_wait", ticket_wait),
    {0},
};
