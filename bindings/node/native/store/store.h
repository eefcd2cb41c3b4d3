/*
 * store.h - an open store of an environment: its state, its jobs, and closing
 * it.
 *
 * Life: open -> closing (no new calls; what was asked for before is completed,
 * but for jobs that run for long, which are stopped) -> shutting (wal_close
 * runs, in a thread) -> closed. The memory is freed when JavaScript, handles
 * and jobs have released it.
 *
 * Invariant: while it is shutting, no other call of the library runs on the
 * store or its handles.
 */
#ifndef AGENTWAL_NODE_STORE_H
#define AGENTWAL_NODE_STORE_H

#include <pthread.h>

#include "bindings/node/native/store/handle.h"
#include "bindings/node/native/store/submission.h"
#include "bindings/node/native/store/watcher.h"

struct job;
struct waiter;

enum store_state {
    STORE_OPEN,
    STORE_CLOSING,
    STORE_SHUTTING,
    STORE_CLOSED
};

struct store {
    const void *tag; /* first, as in struct handle */
    struct addon *addon;
    struct wal_store *wal; /* NULL once it is closed */
    uint32_t references;
    enum store_state state;
    uint32_t jobs; /* started and not ended, but for that of the close */
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

/* Returns the external value of a store, which owns `wal`. When the call fails,
 * it has closed it. */
napi_value store_make(struct call *call, struct wal_store *wal);

/* Returns the open store of an argument; fails the call and returns NULL:
 * WAL_EINVAL, WAL_ECLOSED. */
struct store *store_get(struct call *call, size_t index);

/* Reads the arguments of opening a store: path, flags, queueLimit, lockTimeout,
 * groupAlign, schemaVersion. */
void store_read_open(struct call *call, const char **path,
                     struct wal_open_options *options);

void store_retain(struct store *store);
void store_release(struct store *store);
bool store_is_open(const struct store *store);
bool store_is_shutting(const struct store *store);

/* A job ended, or nothing is in the backlog any more: begins the close that
 * waits for it. */
void store_continue_close(struct store *store);

/* Of jobs: the thread part is queued; it begins, which is refused when the
 * environment ends; it is over. The last two are called in that thread. */
void store_queue_run(struct store *store);
bool store_begin_run(struct store *store);
void store_end_run(struct store *store);
/* The thread part was not queued after all. */
void store_unqueue_run(struct store *store);

/* Makes the hook that closes the store at the end of the environment the first
 * that runs. To be called when a threadsafe function was made, which has a hook
 * too. */
void store_renew_hook(struct store *store);

#endif
