/*
 * handle.h - handles of the library that JavaScript holds: sessions, cursors,
 * views and the like. JavaScript has each as an external value, which its
 * classes keep to themselves.
 *
 * A handle keeps its store's memory. It may outlive the store's close: its
 * calls then fail with WAL_ECLOSED. The library's handle is closed by
 * handle_close, when JavaScript has lost it, or after the store, since what is
 * open keeps a store in memory; while a job uses it, that waits for the job,
 * and while the store closes, for the end of that.
 */
#ifndef AGENTWAL_NODE_HANDLE_H
#define AGENTWAL_NODE_HANDLE_H

#include "bindings/node/native/base/call.h"

struct store;

/* A kind of handles; constant, and known by its address. */
struct handle_type {
    const char *name;            /* for messages: "session" */
    void (*close)(void *object); /* frees the library's handle */
    bool is_shared; /* any number of threads may use it at the same time;
                     * otherwise a job has it alone: WAL_EBUSY for others */
};

struct handle {
    const struct handle_type *type; /* first, as in struct store */
    struct store *store;            /* retained */
    void *object;                   /* of the library; NULL: closed */
    uint32_t references; /* of JavaScript, of jobs, and of the list */
    uint32_t users;      /* jobs that use it */
    bool is_closing;     /* closed once no job uses it */
    struct handle *next; /* in the store's list, which has those with object */
    struct handle *previous;
};

/* Returns the external value of a new handle, which owns `object`. When the
 * call fails, it has closed the object. */
napi_value handle_make(struct call *call, const struct handle_type *type,
                       struct store *store, void *object);

/* Returns the handle of an argument for a call of the library. Fails the call
 * and returns NULL: WAL_EINVAL for what is no such handle, WAL_ECLOSED when it
 * or its store is closed, WAL_EBUSY when a job has it alone. */
struct handle *handle_get(struct call *call, size_t index,
                          const struct handle_type *type);

/* As handle_get, also when it is closed; for closing it. */
struct handle *handle_find(struct call *call, size_t index,
                           const struct handle_type *type);

void handle_close(struct handle *handle);

/* Of jobs: begin and end of the use of a handle. */
void handle_use(struct handle *handle);
void handle_unuse(struct handle *handle);

/* Closes the handles of a store that was closed. */
void handle_close_all(struct store *store);

#endif
