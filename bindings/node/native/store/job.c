/*
 * job.c - jobs in the thread pool (job.h).
 */
#include "bindings/node/native/store/job.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "bindings/node/native/base/value.h"
#include "bindings/node/native/store/store.h"

/* Frees a job and lets go what it holds. */
static void destroy(struct job *job)
{
    struct store *store = job->store;
    struct addon *addon = job->addon;

    if (job->kind->discard != NULL) {
        job->kind->discard(job);
    }
    if (job->work != NULL) {
        (void)napi_delete_async_work(addon->env, job->work);
    }
    if (job->watch_ref != NULL) {
        (void)napi_delete_reference(addon->env, job->watch_ref);
    }
    if (job->handle != NULL) {
        handle_unuse(job->handle);
    }
    arena_destroy(&job->arena);
    if (store != NULL) {
        store->jobs -= job->is_counted;
        store_continue_close(store);
        store_release(store);
    }
    free(job);
    addon_release(addon);
}

/* In the thread. */
static void execute(napi_env env, void *data)
{
    struct job *job = data;

    (void)env;
    job->error.struct_size = sizeof(job->error);
    job->status = job->kind->run(job, &job->error);
    if (job->store != NULL) {
        store_end_run(job->store);
    }
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
        value = job->kind->finish != NULL ? job->kind->finish(call, job)
                                          : make_undefined(call);
    }
    settle(call, job, value);
    arena_reset(&call->addon->scratch);
}

static void complete(napi_env env, napi_status status, void *data)
{
    struct job *job = data;
    struct call call;

    (void)status;
    call_begin(&call, env);
    finish(&call, job);
    destroy(job);
}

void *job_create(struct call *call, const struct job_kind *kind,
                 struct store *store, struct handle *handle)
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
    if (handle != NULL) {
        handle_use(handle);
    }
    if (job->store != NULL) {
        store_retain(job->store);
    }
    call->arena = &job->arena;
    return job;
}

static bool make_work(struct call *call, struct job *job)
{
    napi_value name = NULL;

    return call_ok(call, napi_create_string_utf8(call->env, "agentwal",
                                                 NAPI_AUTO_LENGTH, &name)) &&
           call_ok(call, napi_create_async_work(call->env, NULL, name, execute,
                                                complete, job, &job->work));
}

napi_value job_promise(struct call *call, struct job *job)
{
    napi_value promise = NULL;

    if (call->failed || !make_work(call, job) ||
        !call_ok(call,
                 napi_create_promise(call->env, &job->deferred, &promise))) {
        return NULL;
    }
    return promise;
}

void job_queue(struct job *job)
{
    if (job->store != NULL) {
        store_begin_run(job->store);
    }
    job->is_queued = true;
    if (napi_queue_async_work(job->addon->env, job->work) != napi_ok) {
        /* The environment ends. */
        if (job->store != NULL) {
            store_end_run(job->store);
        }
        destroy(job);
    }
}

void job_cancel(struct job *job)
{
    struct call call;

    if (job->deferred != NULL && job->status != WAL_OK) {
        call_begin(&call, job->addon->env);
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
    submissions_queue_job(job->store, job);
    return promise;
}

/* --- progress ----------------------------------------------------------- */

void job_watch_arg(struct call *call, struct job *job, napi_value array)
{
    napi_typedarray_type kind = napi_uint8_array;
    size_t length = 0;
    void *data = NULL;

    if (value_is_absent(call, array) || call->failed) {
        return;
    }
    if (!call_ok(call, napi_get_typedarray_info(call->env, array, &kind,
                                                &length, &data, NULL, NULL))) {
        return;
    }
    if (kind != napi_float64_array || length < 3 ||
        (uintptr_t)data % sizeof(double) != 0) {
        call_fail(call, WAL_EINVAL, "a Float64Array of three is expected");
        return;
    }
    if (call_ok(call,
                napi_create_reference(call->env, array, 1, &job->watch_ref))) {
        job->watch = data;
    }
}

static uint64_t double_bits(double number)
{
    uint64_t bits;

    memcpy(&bits, &number, sizeof(bits));
    return bits;
}

int32_t job_progress(void *ctx, uint64_t done, uint64_t total)
{
    struct job *job = ctx;

    if (job->watch == NULL) {
        return 0;
    }
    atomic_store_explicit(&job->watch->total, double_bits((double)total),
                          memory_order_relaxed);
    atomic_store_explicit(&job->watch->done, double_bits((double)done),
                          memory_order_relaxed);
    return atomic_load_explicit(&job->watch->stop, memory_order_relaxed) != 0;
}
