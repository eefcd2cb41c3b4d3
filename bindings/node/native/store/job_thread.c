/*
 * job_thread.c - threads of jobs that run for long (job_thread.h).
 *
 * Invariant: at the end of the environment a hook joins all threads, before
 * those of their threadsafe functions run, so that no thread is left that
 * would call one.
 */
#include "bindings/node/native/store/job_thread.h"

#include "bindings/node/native/base/thread.h"
#include "bindings/node/native/base/value.h"
#include "bindings/node/native/store/job.h"
#include "bindings/node/native/store/store.h"

static void *run(void *arg)
{
    struct job *job = arg;
    napi_threadsafe_function ring = job->thread.ring;

    pthread_setname_np(pthread_self(), "wal-node-job");
    job_execute(job);
    if (napi_call_threadsafe_function(ring, job, napi_tsfn_nonblocking) !=
        napi_closing) {
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
    for (struct job *job = addon->threads; job != NULL;
         job = job->thread.next) {
        if (store == NULL || job->store == store || job->other == store) {
            atomic_store_explicit(&job->must_end, true, memory_order_relaxed);
        }
    }
}

static void end_all(void *data)
{
    struct addon *addon = data;

    job_threads_stop(addon, NULL);
    for (struct job *job = addon->threads; job != NULL;
         job = job->thread.next) {
        join(job);
    }
}

static void on_environment_end(void *data)
{
    struct addon *addon = data;

    addon->hook = NULL;
    end_all(addon);
}

bool job_thread_prepare(struct call *call, struct job *job)
{
    napi_value name = NULL;

    if (!call_ok(call, napi_create_string_utf8(call->env, "agentwal",
                                               NAPI_AUTO_LENGTH, &name)) ||
        !call_ok(call, napi_create_threadsafe_function(
                           call->env, NULL, NULL, name, 0, 1, NULL, NULL, NULL,
                           on_end, &job->thread.ring))) {
        return false;
    }
    /* Hooks run in reverse order of their registration: this one is last. */
    addon_set_hook(call->addon, on_environment_end);
    return true;
}

bool job_thread_start(struct job *job)
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

void job_thread_release(struct job *job)
{
    if (job->thread.ring != NULL) {
        (void)napi_release_threadsafe_function(job->thread.ring,
                                               napi_tsfn_release);
        job->thread.ring = NULL;
    }
}

/* endJobs(): stops all jobs that run for long, and waits for their threads. To
 * be called when the process ends. */
static napi_value end_jobs(struct call *call)
{
    end_all(call->addon);
    return make_undefined(call);
}

const struct call_method job_thread_methods[] = {
    {"endJobs", end_jobs},
    {NULL, NULL},
};
