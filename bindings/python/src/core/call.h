/*
 * call.h - a call of the library on a handle.
 *
 *     call_begin   takes the handle; fails when it is closed, forked or in use
 *     call_unlock  releases the interpreter's lock
 *     ...          the call; call.status and call.error are its result
 *     call_lock    takes the lock again
 *     call_failed  raises what failed
 *     call_end     lets go of the handle
 */
#ifndef AGENTWAL_BINDINGS_PYTHON_SRC_CORE_CALL_H
#define AGENTWAL_BINDINGS_PYTHON_SRC_CORE_CALL_H

#include "bindings/python/src/core/handle.h"
#include "bindings/python/src/core/module.h"
#include "bindings/python/src/core/value.h"

struct call {
    struct module_state *state;
    struct handle *handle; /* null: a call without a handle */
    struct call *next;     /* of the gate's list */
    pthread_t thread;
    PyThreadState *saved;
    bool is_raised;     /* a function of the caller raised an exception */
    struct arena arena; /* freed when the call ends */
    enum wal_status status;
    struct wal_error error;
};

/* The object as a handle of one of the kinds; null: an exception is set. */
struct handle *handle_of(struct module_state *state, PyObject *object, enum handle_kind kinds);

/* Raises why the handle cannot be used; false: it can. */
bool call_refuses(struct module_state *state, const struct handle *handle);

/* Begins a call; returns the pointer of the library, or null with an exception set: then there is
 * no call to end. */
void *call_begin(struct call *call, PyObject *module, PyObject *object, enum handle_kind kinds);

/* Begins a call without a handle. */
void call_begin_free(struct call *call, PyObject *module);
void call_end(struct call *call);
void call_unlock(struct call *call);
void call_lock(struct call *call);

/* Whether it failed; an exception is set then. */
bool call_failed(struct call *call);

/* Ends a call; returns None, or null if it failed. */
PyObject *call_none(struct call *call);

/* The pointer that a call made as a handle; None for null. */
PyObject *call_object(struct call *call, enum handle_kind kind, void *pointer);

/* Ends a call; returns the pointer that it made as a handle, or null if it failed. */
PyObject *call_handle(struct call *call, enum handle_kind kind, void *pointer);

/* Adds a call to those that a store waits for before it is closed, and removes it. */
void call_list(struct call *call, struct gate *gate);
void call_unlist(struct call *call, struct gate *gate);

/* Whether this thread runs a call on the store. */
bool call_is_of_this_thread(const struct gate *gate);

/*
 * Functions of the caller that calls of the library run, in the thread of the call.
 *
 * An exception stops the call, and is raised in place of its failure. Signals are handled
 * meanwhile, so that an interrupt stops it too.
 */

enum { CALLBACK_LISTS = 3 };

struct callback {
    struct call *call; /* that runs */
    /* Functions of the caller, or null; borrowed. */
    PyObject *progress; /* of two numbers */
    PyObject *project;  /* of a directory */
    PyObject *change;   /* of a session */
    PyObject *row;      /* that it returned, whose texts the change borrows; or null */
    PyObject *lists[CALLBACK_LISTS];
    uint64_t next_ms; /* when progress is reported next */
};

/* Prepares for a call; the functions may be None. False: an exception is set. */
bool callback_begin(struct callback *callback, struct call *call, PyObject *progress,
                    PyObject *project, PyObject *change);

/* Frees what it holds; zeroed, it holds nothing. */
void callback_end(struct callback *callback);

/* Takes the interpreter's lock; false, without it: an exception is set, stop the call. */
bool callback_enter(struct callback *callback);

/* Releases it; returns 0, or 1 to stop the call when ok is false: then an exception is set. */
int32_t callback_leave(struct callback *callback, bool ok);

/* A progress function of the library, whose ctx is a struct callback: reports progress, at most
 * some times a second; is 1 to stop the call. */
int32_t callback_progress(void *ctx, uint64_t done, uint64_t total);

/* The same of a wal_import_progress_fn. */
int32_t callback_progress_of_path(void *ctx, struct wal_slice path, uint64_t done, uint64_t total);

/* A wal_import_project_fn: asks the function of the caller. */
int32_t callback_project(void *ctx, struct wal_slice directory, char *project, uint64_t size);

/* A wal_update_fn: asks the function of the caller for the fields to set. */
int32_t callback_change(void *ctx, const struct wal_session_info *now,
                        struct wal_session_change *change);

/* Adds a struct to a list, unless that has `limit` items; is 1 to stop the call. ctx is a struct
 * callback. */
int32_t callback_item(void *ctx, uint32_t list, const struct table *table, const void *item,
                      Py_ssize_t limit);

/* Sets the lists in a dict under their names, of which NULL is the last; null, and the dict is
 * gone: an exception is set. dict may be null. */
PyObject *callback_lists(const struct callback *callback, PyObject *dict, const char *const *names);

#endif
