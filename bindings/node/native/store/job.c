/*
 * job.c - jobs in the thread pool (job.h).
 */
#include "bindings/node/native/store/job.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "bindings/node/native/base/value.h"
#include "engine/base/system.h"

static void job_execute(struct job *job);
static void job_drop(struct job *job);

/* --- threads of jobs that run for long ------------------------------------ */

/*
 * Invariant: at the end of the environment a hook joins all threads, before those of their
 * threadsafe functions run, so that no thread is left that would call one.
 */

static void *run(void *arg)
{
    struct job *job = arg;
    napi_threadsafe_function ring = job->thread.ring;

    wal__system_name_thread("wal-node-job");
    job_execute(job);
    if (napi_call_threadsafe_function(ring, job, napi_tsfn_nonblocking) != napi_closing) {
        (void)napi_release_threadsafe_function(ring, napi_tsfn_release);
    }
    return NULL;
}

static void join(struct job *job)
{
    if (job->thread.is_joinable) {
        pthread_join(job->thread.id, NULL);
        job->thread.is_joinable = false;
    }
}

static void remove_from_list(struct job *job)
{
    struct job **place = &job->addon->threads;

    while (*place != job) {
        place = &(*place)->thread.next;
    }
    *place = job->thread.next;
}

/* In the thread of JavaScript. */
static void on_end(napi_env env, napi_value function, void *context, void *data)
{
    struct job *job = data;

    (void)function;
    (void)context;
    join(job);
    remove_from_list(job);
    job->thread.ring = NULL;
    if (env != NULL) {
        job_complete(job);
    } else {
        job_drop(job);
    }
}

void job_threads_stop(struct addon *addon, const struct store *store)
{
    for (struct job *job = addon->threads; job != NULL; job = job->thread.next) {
        if (store == NULL || job->store == store || job->other == store) {
            atomic_store_explicit(&job->must_end, true, memory_order_relaxed);
        }
    }
}

static void end_all(void *data)
{
    struct addon *addon = data;

    job_threads_stop(addon, NULL);
    for (struct job *job = addon->threads; job != NULL; job = job->thread.next) {
        join(job);
    }
}

static void on_environment_end(void *data)
{
    struct addon *addon = data;

    addon->hook = NULL;
    end_all(addon);
}

/* Prepares a job to be started. False: the call has failed. */
static bool job_thread_prepare(struct call *call, struct job *job)
{
    napi_value name = NULL;

    if (!call_ok(call, napi_create_string_utf8(call->env, "agentwal", NAPI_AUTO_LENGTH, &name)) ||
        !call_ok(call, napi_create_threadsafe_function(call->env, NULL, NULL, name, 0, 1, NULL,
                                                       NULL, NULL, on_end, &job->thread.ring))) {
        return false;
    }
    /* Hooks run in reverse order of their registration: this one is last. */
    addon_set_hook(call->addon, on_environment_end);
    return true;
}

/* Starts the thread, which completes the job. False: there is none left. */
static bool job_thread_start(struct job *job)
{
    if ((job->store != NULL && !store_is_open(job->store)) ||
        (job->other != NULL && !store_is_open(job->other))) {
        atomic_store_explicit(&job->must_end, true, memory_order_relaxed);
    }
    job->thread.is_joinable = thread_start(&job->thread.id, run, job);
    if (job->thread.is_joinable) {
        job->thread.next = job->addon->threads;
        job->addon->threads = job;
    }
    return job->thread.is_joinable;
}

/* Lets go what job_thread_prepare made, for a job without a thread. */
static void job_thread_release(struct job *job)
{
    if (job->thread.ring != NULL) {
        (void)napi_release_threadsafe_function(job->thread.ring, napi_tsfn_release);
        job->thread.ring = NULL;
    }
}

/* endJobs(): stops all jobs that run for long, and waits for their threads. To be called when the
 * process ends. */
static napi_value end_jobs(struct call *call)
{
    end_all(call->addon);
    return make_undefined(call);
}

const struct call_method job_thread_methods[] = {
    {"endJobs", end_jobs},
    {NULL, NULL},
};

/* --- jobs ----------------------------------------------------------------- */

static void leave_store(struct job *job, struct store *store)
{
    if (store != NULL) {
        store->jobs -= job->is_counted;
        store_continue_close(store);
        store_release(store);
    }
}

/* Frees a job at the end of the environment. */
static void job_drop(struct job *job)
{
    struct addon *addon = job->addon;

    if (job->kind->discard != NULL) {
        job->kind->discard(job);
    }
    if (job->handle != NULL) {
        handle_unuse(job->handle);
    }
    arena_destroy(&job->arena);
    leave_store(job, job->store);
    leave_store(job, job->other);
    free(job);
    addon_unhold(addon);
    addon_release(addon);
}

/* Frees a job and lets go what it holds. */
static void destroy(struct job *job)
{
    struct addon *addon = job->addon;

    if (job->work != NULL && !addon->is_ended) {
        (void)napi_delete_async_work(addon->env, job->work);
    }
    if (job->watch_ref != NULL && !addon->is_ended) {
        (void)napi_delete_reference(addon->env, job->watch_ref);
    }
    job_thread_release(job);
    job_drop(job);
}

static void queue_run(struct job *job)
{
    if (job->store != NULL) {
        store_queue_run(job->store);
    }
    if (job->other != NULL) {
        store_queue_run(job->other);
    }
}

static void unqueue_run(struct job *job)
{
    if (job->store != NULL) {
        store_unqueue_run(job->store);
    }
    if (job->other != NULL) {
        store_unqueue_run(job->other);
    }
}

static void end_run(struct job *job)
{
    if (job->store != NULL) {
        store_end_run(job->store);
    }
    if (job->other != NULL) {
        store_end_run(job->other);
    }
}

/* False: the environment ends. */
static bool begin_run(struct job *job)
{
    if (job->store != NULL && !store_begin_run(job->store)) {
        if (job->other != NULL) {
            store_unqueue_run(job->other);
        }
        return false;
    }
    if (job->other != NULL && !store_begin_run(job->other)) {
        store_end_run(job->store);
        return false;
    }
    return true;
}

static void fail(struct job *job, enum wal_status status, const char *text)
{
    job->status = status;
    job->error = (struct wal_error){.struct_size = sizeof(job->error), .status = (int32_t)status};
    memcpy(job->error.text, text, strlen(text) + 1);
}

/* Runs the job, in its thread. */
static void job_execute(struct job *job)
{
    job->error.struct_size = sizeof(job->error);
    if (!begin_run(job)) {
        job->status = WAL_ECLOSED;
        return;
    }
    job->status = job_must_stop(job) ? WAL_ECALLBACK : job->kind->run(job, &job->error);
    if (job->status == WAL_ECALLBACK && job->is_long) {
        bool is_closed = atomic_load_explicit(&job->must_end, memory_order_relaxed);

        fail(job, is_closed ? WAL_ECLOSED : WAL_ECALLBACK,
             is_closed ? "the store was closed" : "the call was stopped");
    }
    end_run(job);
}

/* In the thread. */
static void execute(napi_env env, void *data)
{
    (void)env;
    job_execute(data);
}

/* Settles the promise by what the call made or failed with. */
static void settle(struct call *call, struct job *job, napi_value value)
{
    napi_value failure;

    if (!call->failed && value != NULL) {
        (void)napi_resolve_deferred(call->env, job->deferred, value);
        return;
    }
    failure = call_take_failure(call);
    if (failure != NULL) {
        (void)napi_reject_deferred(call->env, job->deferred, failure);
    }
}

static void finish(struct call *call, struct job *job)
{
    napi_value value = NULL;

    if (job->status < WAL_OK) {
        call->addon->error = job->error;
        call->failed = true;
    } else {
        value = job->kind->finish != NULL ? job->kind->finish(call, job) : make_undefined(call);
    }
    settle(call, job, value);
    arena_reset(&call->addon->scratch);
}

void job_complete(struct job *job)
{
    struct call call;

    /* Bun ends jobs of a Worker after its environment. */
    if (!job->addon->is_ended) {
        call_begin(&call, job->addon);
        finish(&call, job);
    }
    destroy(job);
}

static void complete(napi_env env, napi_status status, void *data)
{
    (void)env;
    (void)status;
    job_complete(data);
}

void *job_create(struct call *call, const struct job_kind *kind, struct store *store,
                 struct handle *handle)
{
    struct job *job;

    if (call->failed) {
        return NULL;
    }
    job = calloc(1, kind->size);
    if (job == NULL) {
        call_fail(call, WAL_ENOMEM, "no memory for a call");
        return NULL;
    }
    job->kind = kind;
    job->handle = handle;
    job->store = handle != NULL ? handle->store : store;
    job->addon = call->addon;
    addon_retain(call->addon);
    addon_hold(call->addon);
    if (handle != NULL) {
        handle_use(handle);
    }
    if (job->store != NULL) {
        store_retain(job->store);
    }
    call->arena = &job->arena;
    return job;
}

void job_use_store(struct job *job, struct store *other)
{
    store_retain(other);
    job->other = other;
}

static bool make_work(struct call *call, struct job *job)
{
    napi_value name = NULL;

    if (job->is_long) {
        return job_thread_prepare(call, job);
    }
    return call_ok(call, napi_create_string_utf8(call->env, "agentwal", NAPI_AUTO_LENGTH, &name)) &&
           call_ok(call, napi_create_async_work(call->env, NULL, name, execute, complete, job,
                                                &job->work));
}

napi_value job_promise(struct call *call, struct job *job)
{
    napi_value promise = NULL;

    if (call->failed || !make_work(call, job) ||
        !call_ok(call, napi_create_promise(call->env, &job->deferred, &promise))) {
        return NULL;
    }
    return promise;
}

void job_queue(struct job *job)
{
    queue_run(job);
    if (job->is_long) {
        if (!job_thread_start(job)) {
            unqueue_run(job);
            fail(job, WAL_ENOMEM, "cannot start a thread");
            job_cancel(job);
        }
    } else if (napi_queue_async_work(job->addon->env, job->work) != napi_ok) {
        /* The environment ends. */
        unqueue_run(job);
        destroy(job);
    }
}

void job_cancel(struct job *job)
{
    struct call call;

    if (job->deferred != NULL && job->status != WAL_OK) {
        call_begin(&call, job->addon);
        finish(&call, job);
    }
    destroy(job);
}

napi_value job_start(struct call *call, struct job *job)
{
    napi_value promise;

    if (job == NULL) {
        return NULL;
    }
    promise = job_promise(call, job);
    if (promise == NULL) {
        destroy(job);
        return NULL;
    }
    if (job->store == NULL) {
        job_queue(job);
        return promise;
    }
    job->is_counted = true;
    job->store->jobs++;
    if (job->other != NULL) {
        job->other->jobs++;
    }
    submissions_queue_job(job->store, job);
    return promise;
}

/* --- progress ----------------------------------------------------------- */

void job_watch_arg(struct call *call, struct job *job, napi_value array)
{
    napi_typedarray_type kind = napi_uint8_array;
    size_t length = 0;
    void *data = NULL;

    job->is_long = true;
    if (value_is_absent(call, array) || call->failed) {
        return;
    }
    if (!call_ok(call,
                 napi_get_typedarray_info(call->env, array, &kind, &length, &data, NULL, NULL))) {
        return;
    }
    if (kind != napi_float64_array || length < 3 || (uintptr_t)data % sizeof(double) != 0) {
        call_fail(call, WAL_EINVAL, "a Float64Array of three is expected");
        return;
    }
    if (call_ok(call, napi_create_reference(call->env, array, 1, &job->watch_ref))) {
        job->watch = data;
    }
}

static uint64_t double_bits(double number)
{
    uint64_t bits;

    memcpy(&bits, &number, sizeof(bits));
    return bits;
}

bool job_must_stop(struct job *job)
{
    return atomic_load_explicit(&job->must_end, memory_order_relaxed) ||
           (job->watch != NULL &&
            atomic_load_explicit(&job->watch->stop, memory_order_relaxed) != 0);
}

int32_t job_progress(void *ctx, uint64_t done, uint64_t total)
{
    struct job *job = ctx;

    if (job->watch != NULL) {
        atomic_store_explicit(&job->watch->total, double_bits((double)total), memory_order_relaxed);
        atomic_store_explicit(&job->watch->done, double_bits((double)done), memory_order_relaxed);
    }
    return job_must_stop(job);
}
