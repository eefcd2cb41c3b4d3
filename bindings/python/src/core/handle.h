/*
 * handle.h - handles of the library as objects of Python.
 *
 * Invariants
 *   A handle of the library is closed once: by handle_close, by the object's
 *   end, or by the last call that uses it when it was closed meanwhile.
 *   While wal_close runs no other call on the store or its handles does: a
 *   store that is closing lets no call begin, waits for those that run, and
 *   keeps handles that are dropped meanwhile until it is done.
 *   In the child of fork() nothing of the library is called: the locks of other
 *   threads of the parent may be held for good there.
 */
#ifndef AGENTWAL_PYTHON_CORE_HANDLE_H
#define AGENTWAL_PYTHON_CORE_HANDLE_H

#include <pthread.h>
#include <sys/types.h>

#include "bindings/python/src/core/module.h"

enum handle_kind {
    HANDLE_STORE = 1,
    HANDLE_SESSION = 2,
    HANDLE_TICKET = 4,
    HANDLE_CURSOR = 8, /* of entries */
    HANDLE_BLOB = 16,
    HANDLE_WRITER = 32, /* of a blob */
    HANDLE_VIEW = 64,
    HANDLE_FOLLOW = 128, /* an import that goes on */
    HANDLE_SEARCH = 256,
    /* Of which several threads may use one at the same time. */
    HANDLE_SHARED = HANDLE_STORE | HANDLE_SESSION
};

struct call;
struct leftover;

/* What the handles of a store share. */
struct gate {
    uint32_t generation; /* of the process that opened the store (module.h) */
    bool is_closing;     /* no call begins */
    bool is_in_close;    /* wal_close runs */
    bool is_closed;
    struct call *calls; /* that run */
    pthread_mutex_t idle_lock;
    pthread_cond_t idle;
    bool was_idle; /* with idle_lock: the last of them ended */
    struct leftover *leftovers;
};

struct handle {
    PyObject_HEAD enum handle_kind kind;
    bool is_dropped; /* close it when the last call that uses it ends */
    uint32_t calls;  /* that use it */
    void *pointer;   /* of the library; null: closed */
    /* Of stores and sessions: taken, without the interpreter's lock, around calls whose slices hold
     * until the next call of the same function. */
    pthread_mutex_t slices;
    struct handle *store; /* null: it is one */
    struct gate *gate;    /* that of the store; owned by it */
    PyObject *extra;      /* kept as long as the handle, or null */
    void *memory;         /* freed with the handle, or null */
};

/* Wraps a pointer of the library, which the handle owns from then on, also when this fails. store
 * null: pointer is a store. */
PyObject *handle_new(struct module_state *state, enum handle_kind kind, void *pointer,
                     struct handle *store);

/* Closes the handle of the library, once no call uses it. */
void handle_close(struct handle *handle);

/* The kind in words. */
const char *handle_name(enum handle_kind kind);

#endif
