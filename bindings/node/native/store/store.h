/*
 * store.h - an open store of an environment: its state, its jobs, and closing it.
 *
 * Life: open -> closing (no new calls; what was asked for before is completed, but for jobs that
 * run for long, which are stopped) -> shutting (wal_close runs, in a thread) -> closed. The memory
 * is freed when JavaScript, handles and jobs have released it.
 *
 * Invariant: while it is shutting, no other call of the library runs on the store or its handles.
 */
#ifndef AGENTWAL_BINDINGS_NODE_NATIVE_STORE_STORE_H
#define AGENTWAL_BINDINGS_NODE_NATIVE_STORE_STORE_H

#include <agentwal.h>
#include <pthread.h>

#include "bindings/node/native/base/call.h"
#include "bindings/node/native/store/submission.h"

/*
 * Handles of the library that JavaScript holds: sessions, cursors, views and the like. JavaScript
 * has each as an external value, which its classes keep to themselves.
 *
 * A handle keeps its store's memory. It may outlive the store's close: its calls then fail with
 * WAL_ECLOSED. The library's handle is closed by handle_close, when JavaScript has lost it, or
 * after the store, since what is open keeps a store in memory; while a job uses it, that waits for
 * the job, and while the store closes, for the end of that.
 */

struct store;

/* A kind of handles; constant, and known by its address. */
struct handle_type {
    const char *name;            /* for messages: "session" */
    void (*close)(void *object); /* frees the library's handle */
    bool is_shared;              /* any number of threads may use it at the same time;
                     * otherwise a job has it alone: WAL_EBUSY for others */
};

struct handle {
    const struct handle_type *type; /* first, as in struct store */
    struct store *store;            /* retained */
    void *object;                   /* of the library; NULL: closed */
    uint32_t references;            /* of JavaScript, of jobs, and of the list */
    uint32_t users;                 /* jobs that use it */
    bool is_closing;                /* closed once no job uses it */
    struct handle *next;            /* in the store's list, which has those with object */
    struct handle *previous;
};

/* Returns the external value of a new handle, which owns `object`. When the call fails, it has
 * closed the object. */
napi_value handle_make(struct call *call, const struct handle_type *type, struct store *store,
                       void *object);

/* Returns the handle of an argument for a call of the library. Fails the call and returns NULL:
 * WAL_EINVAL for what is no such handle, WAL_ECLOSED when it or its store is closed, WAL_EBUSY when
 * a job has it alone. */
struct handle *handle_get(struct call *call, size_t index, const struct handle_type *type);

void handle_close(struct handle *handle);

/* Of jobs: begin and end of the use of a handle. */
void handle_use(struct handle *handle);
void handle_unuse(struct handle *handle);

/*
 * Threads of a store that wait for records of any process: one for written and one for durable
 * records, and one for those that are stored in the remote; each is started by the first that asks.
 *
 * A thread waits in wal_store_wait, with a timeout so that it sees a stop, and calls the function
 * of JavaScript that asked with the newest number; then it sleeps until it is asked again.
 */

struct store;
struct watcher;

enum {
    WATCHERS = WAL_CLUSTER + 1 /* of a store, by durability; no WAL_QUEUED */
};

struct job;
struct waiter;

enum store_state { STORE_OPEN, STORE_CLOSING, STORE_SHUTTING, STORE_CLOSED };

struct store {
    const void *tag; /* first, as in struct handle */
    struct addon *addon;
    struct wal_store *wal; /* NULL once it is closed */
    uint32_t references;
    enum store_state state;
    uint32_t jobs;         /* started and not ended, but for that of the close */
    struct job *close_job; /* waits until there are none; or NULL */
    struct submissions submissions;
    struct waiter *waiter;              /* or NULL */
    struct watcher *watchers[WATCHERS]; /* or NULL */
    struct handle *handles;             /* that are open */
    pthread_mutex_t mutex;
    pthread_cond_t idle;
    /* Under the mutex. */
    uint32_t queued;   /* jobs whose thread part has not begun */
    uint32_t running;  /* jobs whose thread part has begun and is not over */
    bool is_abandoned; /* the environment ends: none begins any more */
};

/* Returns the open store of an argument; fails the call and returns NULL: WAL_EINVAL,
 * WAL_ECLOSED. */
struct store *store_get(struct call *call, size_t index);

/* Reads the arguments of opening a store: path, flags, queueLimit, lockTimeout, groupAlign,
 * schemaVersion. */
void store_read_open(struct call *call, const char **path, struct wal_open_options *options);
void store_retain(struct store *store);
void store_release(struct store *store);
bool store_is_open(const struct store *store);

/* A job ended, or nothing is in the backlog any more: begins the close that waits for it. */
void store_continue_close(struct store *store);

/* Of jobs: the thread part is queued; it begins, which is refused when the environment ends; it is
 * over. The last two are called in that thread. */
void store_queue_run(struct store *store);
bool store_begin_run(struct store *store);
void store_end_run(struct store *store);

/* The thread part was not queued after all. */
void store_unqueue_run(struct store *store);

/* Makes the hook that closes the store at the end of the environment the first that runs. To be
 * called when a threadsafe function was made, which has a hook too. */
void store_renew_hook(struct store *store);

#endif
