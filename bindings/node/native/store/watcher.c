/*
 * watcher.c - waiting for records (watcher.h).
 */
#include "bindings/node/native/store/watcher.h"

#include <pthread.h>
#include <stdlib.h>

#include "bindings/node/native/base/thread.h"
#include "bindings/node/native/base/value.h"
#include "bindings/node/native/modules.h"
#include "bindings/node/native/store/store.h"

enum {
    WAIT_MS = 50 /* until a stop is seen */
};

struct watcher {
    struct store *store; /* retained by `ring` */
    uint32_t durability;
    pthread_t thread;
    bool is_running;
    bool is_lost; /* the environment took `ring`; set by the thread */
    napi_threadsafe_function ring;
    pthread_mutex_t mutex;
    pthread_cond_t work;
    /* Under the mutex. */
    bool is_stopping;
    bool is_wanted;
    uint64_t after;  /* a higher number is waited for */
    uint64_t newest; /* that was found */
    enum wal_status status;
    struct wal_error error;
};

/* Sleeps until it is wanted; false: it is to stop. */
static bool wait_for_work(struct watcher *watcher, uint64_t *after)
{
    bool result;

    pthread_mutex_lock(&watcher->mutex);
    while (!watcher->is_wanted && !watcher->is_stopping) {
        pthread_cond_wait(&watcher->work, &watcher->mutex);
    }
    *after = watcher->after;
    result = !watcher->is_stopping;
    pthread_mutex_unlock(&watcher->mutex);
    return result;
}

/* Passes on what the wait found. */
static void report(struct watcher *watcher, uint64_t newest,
                   enum wal_status status, const struct wal_error *error)
{
    pthread_mutex_lock(&watcher->mutex);
    watcher->is_wanted = false;
    watcher->newest = newest;
    watcher->status = status;
    if (status != WAL_OK) {
        watcher->error = *error;
    }
    pthread_mutex_unlock(&watcher->mutex);
    if (napi_call_threadsafe_function(watcher->ring, NULL,
                                      napi_tsfn_nonblocking) == napi_closing) {
        watcher->is_lost = true;
    }
}

static void *run(void *arg)
{
    struct watcher *watcher = arg;
    uint64_t sequence;

    pthread_setname_np(pthread_self(), "wal-node-watch");
    while (!watcher->is_lost && wait_for_work(watcher, &sequence)) {
        struct wal_error error = {.struct_size = sizeof(error)};
        enum wal_status status =
            wal_store_wait(watcher->store->wal, &sequence, watcher->durability,
                           WAIT_MS, &error);

        if (status != WAL_EBUSY) {
            report(watcher, sequence, status, &error);
        }
    }
    return NULL;
}

/* In the thread of JavaScript: calls the function with (newest, error). */
static void on_ring(napi_env env, napi_value function, void *context,
                    void *data)
{
    struct watcher *watcher = context;
    struct call call;
    napi_value arguments[2];
    uint64_t newest;
    enum wal_status status;

    (void)data;
    if (env == NULL || function == NULL || !store_is_open(watcher->store)) {
        return;
    }
    call_begin(&call, watcher->store->addon);
    pthread_mutex_lock(&watcher->mutex);
    newest = watcher->newest;
    status = watcher->status;
    call.addon->error = watcher->error;
    pthread_mutex_unlock(&watcher->mutex);
    arguments[0] = make_number(&call, newest);
    arguments[1] = status == WAL_OK
                       ? make_undefined(&call)
                       : call_make_error(&call, &call.addon->error);
    if (!call.failed && arguments[1] != NULL) {
        (void)napi_call_function(env, make_undefined(&call), function, 2,
                                 arguments, NULL);
    }
}

static void finalize(napi_env env, void *data, void *hint)
{
    struct watcher *watcher = hint;
    struct store *store = watcher->store;

    (void)env;
    (void)data;
    pthread_mutex_destroy(&watcher->mutex);
    pthread_cond_destroy(&watcher->work);
    free(watcher);
    store_release(store);
}

static struct watcher *make_watcher(struct call *call, struct store *store,
                                    uint32_t durability, napi_value function)
{
    struct watcher *watcher = calloc(1, sizeof(*watcher));
    napi_value name = NULL;

    if (watcher == NULL) {
        call_fail(call, WAL_ENOMEM, "no memory for a thread");
        return NULL;
    }
    watcher->store = store;
    watcher->durability = durability;
    pthread_mutex_init(&watcher->mutex, NULL);
    pthread_cond_init(&watcher->work, NULL);
    store_retain(store);
    if (!call_ok(call, napi_create_string_utf8(call->env, "agentwal",
                                               NAPI_AUTO_LENGTH, &name)) ||
        !call_ok(call, napi_create_threadsafe_function(
                           call->env, function, NULL, name, 1, 1, NULL,
                           finalize, watcher, on_ring, &watcher->ring))) {
        finalize(call->env, NULL, watcher);
        return NULL;
    }
    (void)napi_unref_threadsafe_function(call->env, watcher->ring);
    store_renew_hook(store);
    if (!thread_start(&watcher->thread, run, watcher)) {
        call_fail(call, WAL_ENOMEM, "cannot start a thread");
        watcher_destroy(watcher);
        return NULL;
    }
    watcher->is_running = true;
    return watcher;
}

void watcher_stop(struct watcher *watcher)
{
    if (watcher == NULL || !watcher->is_running) {
        return;
    }
    pthread_mutex_lock(&watcher->mutex);
    watcher->is_stopping = true;
    pthread_cond_signal(&watcher->work);
    pthread_mutex_unlock(&watcher->mutex);
    pthread_join(watcher->thread, NULL);
    watcher->is_running = false;
}

void watcher_destroy(struct watcher *watcher)
{
    if (watcher != NULL && !watcher->is_lost) {
        (void)napi_release_threadsafe_function(watcher->ring,
                                               napi_tsfn_release);
    }
}

/* --- functions of JavaScript -------------------------------------------- */

static uint32_t read_durability(struct call *call, size_t index)
{
    uint32_t durability = value_u32(call, call_arg(call, index));

    if (!call->failed && (durability >= WATCHERS || durability == WAL_QUEUED)) {
        call_fail(call, WAL_EINVAL,
                  "records are \"durable\", \"written\" or \"cluster\"");
    }
    return call->failed ? 0 : durability;
}

/* watch(store, durability, after, function): calls the function once, when
 * there is a number higher than `after`; keeps the event loop alive until
 * unwatch. The function is that of the first call for a durability. */
static napi_value watch(struct call *call)
{
    struct store *store = store_get(call, 0);
    uint32_t durability = read_durability(call, 1);
    uint64_t after = value_u64(call, call_arg(call, 2));
    struct watcher *watcher;

    if (call->failed) {
        return NULL;
    }
    watcher = store->watchers[durability];
    if (watcher == NULL) {
        watcher = make_watcher(call, store, durability, call_arg(call, 3));
        store->watchers[durability] = watcher;
    }
    if (watcher == NULL) {
        return NULL;
    }
    pthread_mutex_lock(&watcher->mutex);
    watcher->is_wanted = true;
    watcher->after = after;
    pthread_cond_signal(&watcher->work);
    pthread_mutex_unlock(&watcher->mutex);
    (void)napi_ref_threadsafe_function(call->env, watcher->ring);
    return make_undefined(call);
}

/* unwatch(store, durability): nobody waits any more. */
static napi_value unwatch(struct call *call)
{
    struct store *store = store_get(call, 0);
    uint32_t durability = read_durability(call, 1);
    struct watcher *watcher;

    if (call->failed) {
        return NULL;
    }
    watcher = store->watchers[durability];
    if (watcher != NULL) {
        pthread_mutex_lock(&watcher->mutex);
        watcher->is_wanted = false;
        pthread_mutex_unlock(&watcher->mutex);
        (void)napi_unref_threadsafe_function(call->env, watcher->ring);
    }
    return make_undefined(call);
}

/* newest(store, durability, after): the newest number, or `after` if there is
 * no higher one; does not wait. */
static napi_value newest(struct call *call)
{
    struct store *store = store_get(call, 0);
    uint32_t durability = read_durability(call, 1);
    uint64_t sequence = value_u64(call, call_arg(call, 2));
    enum wal_status status;

    if (call->failed) {
        return NULL;
    }
    status =
        wal_store_wait(store->wal, &sequence, durability, 0, call_error(call));
    if (status != WAL_EBUSY && !call_check(call, status)) {
        return NULL;
    }
    return make_number(call, sequence);
}

const struct call_method watcher_methods[] = {
    {"watch", watch},
    {"unwatch", unwatch},
    {"newest", newest},
    {NULL, NULL},
};
