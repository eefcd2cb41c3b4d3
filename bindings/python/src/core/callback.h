/*
 * callback.h - functions of the caller that calls of the library run, in the
 * thread of the call.
 *
 * An exception stops the call, and is raised in place of its failure. Signals
 * are handled meanwhile, so that an interrupt stops it too.
 */
#ifndef AGENTWAL_PYTHON_CORE_CALLBACK_H
#define AGENTWAL_PYTHON_CORE_CALLBACK_H

#include "bindings/python/src/core/call.h"

struct callback {
    struct call *call;  /* that runs */
    PyObject *progress; /* a function of two numbers, or null */
    PyObject *reports;  /* a list */
    PyObject *others;   /* likewise, or null */
    uint64_t next_ms;   /* when progress is reported next */
};

/* Prepares for a call; progress may be None. False: an exception is set. */
bool callback_begin(struct callback *callback, struct call *call,
                    PyObject *progress);
/* Frees what it holds. */
void callback_end(struct callback *callback);

/* Takes the interpreter's lock; false, without it: an exception is set, stop
 * the call. */
bool callback_enter(struct callback *callback);
/* Releases it; returns 0, or 1 to stop the call when ok is false: then an
 * exception is set. */
int32_t callback_leave(struct callback *callback, bool ok);

/* A progress function of the library, whose ctx is a struct callback: reports
 * progress, at most some times a second; is 1 to stop the call. */
int32_t callback_progress(void *ctx, uint64_t done, uint64_t total);

/* Adds to a list, and lets go of, an object; false: an exception is set. With
 * the interpreter's lock. */
bool callback_add(PyObject *list, PyObject *object);

#endif
