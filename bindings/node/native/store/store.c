/*
 * store.c - the life of a store (store.h); interface.txt has its other calls.
 */
#include "bindings/node/native/store/store.h"

#include <pthread.h>
#include <stdlib.h>

#include "bindings/node/native/base/value.h"
#include "bindings/node/native/interface.h"
#include "bindings/node/native/store/job.h"
#include "bindings/node/native/store/submission.h"
#include "engine/base/system.h"

/* --- threads that wait for records ---------------------------------------- */

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
static void report(struct watcher *watcher, uint64_t newest, enum wal_status status,
                   const struct wal_error *error)
{
    pthread_mutex_lock(&watcher->mutex);
    watcher->is_wanted = false;
    watcher->newest = newest;
    watcher->status = status;
    if (status != WAL_OK) {
        watcher->error = *error;
    }
    pthread_mutex_unlock(&watcher->mutex);
    if (napi_call_threadsafe_function(watcher->ring, NULL, napi_tsfn_nonblocking) == napi_closing) {
        watcher->is_lost = true;
    }
}

static void *run(void *arg)
{
    struct watcher *watcher = arg;
    uint64_t sequence;

    wal__system_name_thread("wal-node-watch");
    while (!watcher->is_lost && wait_for_work(watcher, &sequence)) {
        struct wal_error error = {.struct_size = sizeof(error)};
        enum wal_status status =
            wal_store_wait(watcher->store->wal, &sequence, watcher->durability, WAIT_MS, &error);

        if (status != WAL_EBUSY) {
            report(watcher, sequence, status, &error);
        }
    }
    return NULL;
}

/* In the thread of JavaScript: calls the function with (newest, error). */
static void on_ring(napi_env env, napi_value function, void *context, void *data)
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
    arguments[1] =
        status == WAL_OK ? make_undefined(&call) : call_make_error(&call, &call.addon->error);
    if (!call.failed && arguments[1] != NULL) {
        (void)napi_call_function(env, make_undefined(&call), function, 2, arguments, NULL);
    }
}

/* Frees a watcher that was stopped. NULL is permitted. */
static void watcher_destroy(struct watcher *watcher)
{
    if (watcher != NULL && !watcher->is_lost) {
        (void)napi_release_threadsafe_function(watcher->ring, napi_tsfn_release);
    }
}

static void watcher_finalize(napi_env env, void *data, void *hint)
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

static struct watcher *make_watcher(struct call *call, struct store *store, uint32_t durability,
                                    napi_value function)
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
    if (!call_ok(call, napi_create_string_utf8(call->env, "agentwal", NAPI_AUTO_LENGTH, &name)) ||
        !call_ok(call, napi_create_threadsafe_function(call->env, function, NULL, name, 1, 1, NULL,
                                                       watcher_finalize, watcher, on_ring,
                                                       &watcher->ring))) {
        watcher_finalize(call->env, NULL, watcher);
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

/* Ends the thread. Any thread; NULL is permitted. */
static void watcher_stop(struct watcher *watcher)
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

/* --- functions of JavaScript -------------------------------------------- */

static uint32_t read_durability(struct call *call, size_t index)
{
    uint32_t durability = value_u32(call, call_arg(call, index));

    if (!call->failed && (durability >= WATCHERS || durability == WAL_QUEUED)) {
        call_fail(call, WAL_EINVAL, "records are \"durable\", \"written\" or \"cluster\"");
    }
    return call->failed ? 0 : durability;
}

/* watch(store, durability, after, function): calls the function once, when there is a number higher
 * than `after`; keeps the event loop alive until unwatch. The function is that of the first call
 * for a durability. */
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

/* newest(store, durability, after): the newest number, or `after` if there is no higher one; does
 * not wait. */
static napi_value newest(struct call *call)
{
    struct store *store = store_get(call, 0);
    uint32_t durability = read_durability(call, 1);
    uint64_t sequence = value_u64(call, call_arg(call, 2));
    enum wal_status status;

    if (call->failed) {
        return NULL;
    }
    status = wal_store_wait(store->wal, &sequence, durability, 0, call_error(call));
    if (status != WAL_EBUSY && !call_check(call, status)) {
        return NULL;
    }
    return make_number(call, sequence);
}

/* --- handles -------------------------------------------------------------- */

static void release(struct handle *handle)
{
    if (--handle->references == 0) {
        store_release(handle->store);
        free(handle);
    }
}

/* The list holds a reference. */
static void add_to_list(struct handle *handle)
{
    struct store *store = handle->store;

    handle->next = store->handles;
    if (handle->next != NULL) {
        handle->next->previous = handle;
    }
    store->handles = handle;
    handle->references++;
}

static void remove_from_list(struct handle *handle)
{
    if (handle->previous != NULL) {
        handle->previous->next = handle->next;
    } else {
        handle->store->handles = handle->next;
    }
    if (handle->next != NULL) {
        handle->next->previous = handle->previous;
    }
    release(handle);
}

void handle_close(struct handle *handle)
{
    void *object = handle->object;

    if (object == NULL) {
        return;
    }
    handle->is_closing = true;
    if (handle->users > 0 || handle->store->state == STORE_SHUTTING) {
        return;
    }
    handle->object = NULL;
    handle->type->close(object);
    remove_from_list(handle);
}

/* Closes the handles of a store that was closed. */
static void handle_close_all(struct store *store)
{
    struct handle *next;

    for (struct handle *handle = store->handles; handle != NULL; handle = next) {
        next = handle->next;
        handle_close(handle);
    }
}

void handle_use(struct handle *handle)
{
    handle->references++;
    handle->users++;
}

void handle_unuse(struct handle *handle)
{
    handle->users--;
    if (handle->is_closing) {
        handle_close(handle);
    }
    release(handle);
}

/* JavaScript has lost the external value. */
static void handle_finalize(napi_env env, void *data, void *hint)
{
    struct handle *handle = data;

    (void)env;
    (void)hint;
    handle_close(handle);
    release(handle);
}

napi_value handle_make(struct call *call, const struct handle_type *type, struct store *store,
                       void *object)
{
    struct handle *handle = calloc(1, sizeof(*handle));
    napi_value value = NULL;

    if (handle == NULL) {
        type->close(object);
        call_fail(call, WAL_ENOMEM, "no memory for a %s", type->name);
        return NULL;
    }
    *handle = (struct handle){.type = type, .store = store, .object = object, .references = 1};
    store_retain(store);
    add_to_list(handle);
    if (!call_ok(call, napi_create_external(call->env, handle, handle_finalize, NULL, &value))) {
        handle_close(handle);
        release(handle);
        return NULL;
    }
    if (store->state == STORE_CLOSED) {
        handle_close(handle);
    }
    return value;
}

/* What an argument refers to, a store or a handle; or NULL. */
static void *external_of(struct call *call, size_t index)
{
    napi_valuetype found = napi_undefined;
    napi_value value = call_arg(call, index);
    void *data = NULL;

    if (!call->failed && call_ok(call, napi_typeof(call->env, value, &found)) &&
        found == napi_external) {
        (void)call_ok(call, napi_get_value_external(call->env, value, &data));
    }
    return data;
}

/* closeHandle(handle): of any type, also one that was closed before. */
static napi_value close_handle(struct call *call)
{
    struct handle *handle = external_of(call, 0);

    if (handle == NULL) {
        call_fail(call, WAL_EINVAL, "a handle is expected");
        return NULL;
    }
    handle_close(handle);
    return make_undefined(call);
}

struct handle *handle_get(struct call *call, size_t index, const struct handle_type *type)
{
    struct handle *handle = external_of(call, index);

    if (handle == NULL || handle->type != type) {
        call_fail(call, WAL_EINVAL, "a %s is expected", type->name);
        return NULL;
    }
    if (!store_is_open(handle->store)) {
        call_fail(call, WAL_ECLOSED, "the store of the %s was closed", type->name);
        return NULL;
    }
    if (handle->object == NULL || handle->is_closing) {
        call_fail(call, WAL_ECLOSED, "the %s was closed", type->name);
        return NULL;
    }
    if (handle->users > 0 && !type->is_shared) {
        call_fail(call, WAL_EBUSY,
                  "the %s is in use by another call; wait "
                  "for that one first",
                  type->name);
        return NULL;
    }
    return handle;
}

/* --- stores --------------------------------------------------------------- */

/* Its address is the tag. */
static const char store_tag[] = "store";

void store_retain(struct store *store)
{
    store->references++;
}

void store_release(struct store *store)
{
    struct addon *addon = store->addon;

    if (--store->references > 0) {
        return;
    }
    pthread_mutex_destroy(&store->mutex);
    pthread_cond_destroy(&store->idle);
    free(store);
    addon_release(addon);
}

bool store_is_open(const struct store *store)
{
    return store->state == STORE_OPEN;
}

void store_queue_run(struct store *store)
{
    pthread_mutex_lock(&store->mutex);
    store->queued++;
    pthread_mutex_unlock(&store->mutex);
}

void store_unqueue_run(struct store *store)
{
    pthread_mutex_lock(&store->mutex);
    store->queued--;
    pthread_mutex_unlock(&store->mutex);
}

bool store_begin_run(struct store *store)
{
    bool result;

    pthread_mutex_lock(&store->mutex);
    result = !store->is_abandoned;
    store->queued--;
    store->running += result;
    pthread_mutex_unlock(&store->mutex);
    return result;
}

void store_end_run(struct store *store)
{
    pthread_mutex_lock(&store->mutex);
    store->running--;
    pthread_cond_signal(&store->idle);
    pthread_mutex_unlock(&store->mutex);
}

/* The store of an argument, in any state; fails the call and returns NULL. */
static struct store *find(struct call *call, size_t index)
{
    struct store *store = external_of(call, index);

    if (store == NULL || store->tag != store_tag) {
        call_fail(call, WAL_EINVAL, "a store is expected");
        return NULL;
    }
    return store;
}

/* --- closing ------------------------------------------------------------ */

/* Ends the threads and closes the store. Any thread; no other call runs. WAL_EBUSY: handles are
 * open, which are closed later. */
static enum wal_status shut(struct store *store, struct wal_error *error)
{
    enum wal_status status;

    waiter_stop(store->waiter);
    for (size_t i = 0; i < WATCHERS; i++) {
        watcher_stop(store->watchers[i]);
    }
    status = wal_close(store->wal, error);
    store->wal = NULL;
    return status == WAL_EBUSY ? WAL_OK : status;
}

static void on_environment_end(void *data);

/* After shut: reports outcomes and frees what the store had, once. */
static void end(struct store *store, bool is_ending)
{
    if (store->state == STORE_CLOSED) {
        return;
    }
    store->state = STORE_CLOSED;
    submissions_end(store, is_ending);
    handle_close_all(store);
    waiter_destroy(store->waiter);
    store->waiter = NULL;
    for (size_t i = 0; i < WATCHERS; i++) {
        watcher_destroy(store->watchers[i]);
        store->watchers[i] = NULL;
    }
    if (!is_ending) {
        (void)napi_remove_env_cleanup_hook(store->addon->env, on_environment_end, store);
    }
    addon_unhold(store->addon);
}

/* Waits for the jobs that run, and for those that are queued; at the end of the environment these
 * do not run, since Bun would drop them. */
static void wait_for_jobs(struct store *store, bool is_ending)
{
    pthread_mutex_lock(&store->mutex);
    store->is_abandoned = is_ending;
    while (store->running > 0 || (store->queued > 0 && !is_ending)) {
        pthread_cond_wait(&store->idle, &store->mutex);
    }
    pthread_mutex_unlock(&store->mutex);
}

/* Takes out the job of a close that waits for what was asked before; or NULL. */
static struct job *take_close_job(struct store *store)
{
    struct job *job = store->close_job;

    store->close_job = NULL;
    return job;
}

/* Closes the store in this thread; its close_job has been taken out. */
static enum wal_status shut_now(struct store *store, bool is_ending, struct wal_error *error)
{
    enum wal_status status;

    store->state = STORE_CLOSING;
    job_threads_stop(store->addon, store);
    if (!is_ending) {
        submissions_flush_backlog(store);
    }
    wait_for_jobs(store, is_ending);
    store->state = STORE_SHUTTING;
    status = shut(store, error);
    end(store, is_ending);
    return status;
}

static void on_environment_end(void *data)
{
    struct store *store = data;
    struct job *close_job = take_close_job(store);

    if (store->state == STORE_SHUTTING) {
        wait_for_jobs(store, true);
        if (store->wal != NULL) {
            (void)shut(store, NULL);
        }
        end(store, true);
    } else if (store->state != STORE_CLOSED) {
        (void)shut_now(store, true, NULL);
    }
    if (close_job != NULL) {
        job_cancel(close_job);
    }
}

void store_renew_hook(struct store *store)
{
    napi_env env = store->addon->env;

    (void)napi_remove_env_cleanup_hook(env, on_environment_end, store);
    (void)napi_add_env_cleanup_hook(env, on_environment_end, store);
}

static enum wal_status close_run(struct job *job, struct wal_error *error)
{
    return shut(job->store, error);
}

/* The store is closed, whatever wal_close said. */
static void close_discard(struct job *job)
{
    struct store *store = job->store;

    if (store->state == STORE_SHUTTING) {
        end(store, false);
    }
}

static napi_value close_finish(struct call *call, struct job *job)
{
    end(job->store, false);
    return make_undefined(call);
}

static const struct job_kind close_kind = {"close", sizeof(struct job), close_run, close_finish,
                                           close_discard};

void store_continue_close(struct store *store)
{
    struct job *job = store->close_job;

    if (job != NULL && store->jobs == 0 && store->submissions.backlog.first == NULL) {
        store->close_job = NULL;
        store->state = STORE_SHUTTING;
        job_queue(job);
    }
}

/* close(store): a promise. Called once for a store. */
static napi_value close_store(struct call *call)
{
    struct store *store = store_get(call, 0);
    struct job *job = job_create(call, &close_kind, store, NULL);
    napi_value promise;

    if (job == NULL) {
        return NULL;
    }
    promise = job_promise(call, job);
    if (promise == NULL) {
        job_cancel(job);
        return NULL;
    }
    store->state = STORE_CLOSING;
    job_threads_stop(store->addon, store);
    store->close_job = job;
    store_continue_close(store);
    return promise;
}

/* Closes a store that is open or whose close waits, and settles the promise of that. */
static void close_waiting(struct call *call, struct store *store)
{
    struct wal_error error = {.struct_size = sizeof(error)};
    struct job *job = take_close_job(store);
    enum wal_status status = shut_now(store, false, &error);

    if (job != NULL) {
        job->status = status;
        job->error = error;
        job_complete(job);
    }
    if (!call_check(call, status)) {
        *call_error(call) = error;
    }
}

/* closeSync(store): also of a store whose close is under way. */
static napi_value close_now(struct call *call)
{
    struct store *store = find(call, 0);

    if (store == NULL) {
        return NULL;
    }
    store_retain(store);
    if (store_is_open(store) || store->close_job != NULL) {
        close_waiting(call, store);
    } else if (store->state == STORE_SHUTTING) {
        wait_for_jobs(store, false);
        end(store, false);
    }
    store_release(store);
    return make_undefined(call);
}

/* --- opening ------------------------------------------------------------ */

/* JavaScript has lost the external value. lib/store/store.js closes stores that are lost, and the
 * hook those that are left at the end. */
static void finalize(napi_env env, void *data, void *hint)
{
    (void)env;
    (void)hint;
    store_release(data);
}

/* Returns the external value of a store, which owns `wal`. When the call fails, it has closed
 * it. */
static napi_value store_make(struct call *call, struct wal_store *wal)
{
    struct store *store = calloc(1, sizeof(*store));
    napi_value value = NULL;

    if (store == NULL) {
        (void)wal_close(wal, NULL);
        call_fail(call, WAL_ENOMEM, "no memory for a store");
        return NULL;
    }
    store->tag = store_tag;
    store->addon = call->addon;
    store->wal = wal;
    store->references = 1;
    pthread_mutex_init(&store->mutex, NULL);
    pthread_cond_init(&store->idle, NULL);
    addon_retain(call->addon);
    if (!call_ok(call, napi_create_external(call->env, store, finalize, NULL, &value))) {
        (void)wal_close(wal, NULL);
        store_release(store);
        return NULL;
    }
    (void)napi_add_env_cleanup_hook(call->env, on_environment_end, store);
    addon_hold(call->addon);
    return value;
}

struct store *store_get(struct call *call, size_t index)
{
    struct store *store = find(call, index);

    if (store != NULL && !store_is_open(store)) {
        call_fail(call, WAL_ECLOSED, "the store was closed");
        return NULL;
    }
    return store;
}

struct open_job {
    struct job job;
    const char *path;
    struct wal_open_options options;
    struct wal_store *wal;
};

void store_read_open(struct call *call, const char **path, struct wal_open_options *options)
{
    read_struct(call, 1, &wal_open_options_in, options);
    *path = (options->flags & WAL_OPEN_MEMORY) != 0 ? NULL : value_path(call, call_arg(call, 0));
}

static enum wal_status open_run(struct job *job, struct wal_error *error)
{
    struct open_job *self = (struct open_job *)job;

    return wal_open(self->path, &self->options, &self->wal, error);
}

static napi_value open_finish(struct call *call, struct job *job)
{
    struct open_job *self = (struct open_job *)job;
    struct wal_store *wal = self->wal;

    self->wal = NULL;
    return store_make(call, wal);
}

static void open_discard(struct job *job)
{
    (void)wal_close(((struct open_job *)job)->wal, NULL);
}

static const struct job_kind open_kind = {"open", sizeof(struct open_job), open_run, open_finish,
                                          open_discard};

static napi_value open_store(struct call *call)
{
    struct open_job *job = job_create(call, &open_kind, NULL, NULL);

    if (job == NULL) {
        return NULL;
    }
    store_read_open(call, &job->path, &job->options);
    return job_start(call, &job->job);
}

static napi_value open_now(struct call *call)
{
    struct wal_store *wal = NULL;
    struct wal_open_options options;
    const char *path;

    store_read_open(call, &path, &options);
    if (call->failed || !call_check(call, wal_open(path, &options, &wal, call_error(call)))) {
        return NULL;
    }
    return store_make(call, wal);
}

const struct call_method store_methods[] = {
    {"open", open_store},   {"openSync", open_now},
    {"close", close_store}, {"closeSync", close_now},
    {"watch", watch},       {"unwatch", unwatch},
    {"newest", newest},     {"closeHandle", close_handle},
    {NULL, NULL},
};
