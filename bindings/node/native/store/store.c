/*
 * store.c - the life of a store (store.h); interface.txt has its other calls.
 */
#include "bindings/node/native/store/store.h"

#include <stdlib.h>

#include "bindings/node/native/base/value.h"
#include "bindings/node/native/interface.h"
#include "bindings/node/native/modules.h"
#include "bindings/node/native/store/job.h"
#include "bindings/node/native/store/waiter.h"

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

bool store_is_shutting(const struct store *store)
{
    return store->state == STORE_SHUTTING;
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
    napi_valuetype found = napi_undefined;
    napi_value value = call_arg(call, index);
    void *data = NULL;

    if (call->failed || !call_ok(call, napi_typeof(call->env, value, &found))) {
        return NULL;
    }
    if (found != napi_external ||
        !call_ok(call, napi_get_value_external(call->env, value, &data)) ||
        ((struct store *)data)->tag != store_tag) {
        call_fail(call, WAL_EINVAL, "a store is expected");
        return NULL;
    }
    return data;
}

/* --- closing ------------------------------------------------------------ */

/* Ends the threads and closes the store. Any thread; no other call runs.
 * WAL_EBUSY: handles are open, which are closed later. */
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
        (void)napi_remove_env_cleanup_hook(store->addon->env,
                                           on_environment_end, store);
    }
    addon_unhold(store->addon);
}

/* Waits for the jobs that run, and for those that are queued; at the end of the
 * environment these do not run, since Bun would drop them. */
static void wait_for_jobs(struct store *store, bool is_ending)
{
    pthread_mutex_lock(&store->mutex);
    store->is_abandoned = is_ending;
    while (store->running > 0 || (store->queued > 0 && !is_ending)) {
        pthread_cond_wait(&store->idle, &store->mutex);
    }
    pthread_mutex_unlock(&store->mutex);
}

/* Takes out the job of a close that waits for what was asked before; or
 * NULL. */
static struct job *take_close_job(struct store *store)
{
    struct job *job = store->close_job;

    store->close_job = NULL;
    return job;
}

/* Closes the store in this thread; its close_job has been taken out. */
static enum wal_status shut_now(struct store *store, bool is_ending,
                                struct wal_error *error)
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

static const struct job_kind close_kind = {
    "close", sizeof(struct job), close_run, close_finish, close_discard};

void store_continue_close(struct store *store)
{
    struct job *job = store->close_job;

    if (job != NULL && store->jobs == 0 &&
        store->submissions.backlog.first == NULL) {
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

/* Closes a store that is open or whose close waits, and settles the promise of
 * that. */
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
    } else if (store_is_shutting(store)) {
        wait_for_jobs(store, false);
        end(store, false);
    }
    store_release(store);
    return make_undefined(call);
}

/* --- opening ------------------------------------------------------------ */

/* JavaScript has lost the external value. lib/store/store.js closes stores that
 * are lost, and the hook those that are left at the end. */
static void finalize(napi_env env, void *data, void *hint)
{
    (void)env;
    (void)hint;
    store_release(data);
}

napi_value store_make(struct call *call, struct wal_store *wal)
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
    if (!call_ok(call, napi_create_external(call->env, store, finalize, NULL,
                                            &value))) {
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

void store_read_open(struct call *call, const char **path,
                     struct wal_open_options *options)
{
    read_struct(call, 1, &wal_open_options_in, options);
    *path = (options->flags & WAL_OPEN_MEMORY) != 0
                ? NULL
                : value_path(call, call_arg(call, 0));
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

static const struct job_kind open_kind = {"open", sizeof(struct open_job),
                                          open_run, open_finish, open_discard};

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
    if (call->failed ||
        !call_check(call, wal_open(path, &options, &wal, call_error(call)))) {
        return NULL;
    }
    return store_make(call, wal);
}

const struct call_method store_methods[] = {
    {"open", open_store},     {"openSync", open_now}, {"close", close_store},
    {"closeSync", close_now}, {NULL, NULL},
};
