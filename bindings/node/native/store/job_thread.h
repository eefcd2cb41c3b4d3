/*
 * job_thread.h - threads of jobs that run for long (job.h), one for each: they
 * would keep those of the pool from other work, and the end of a Worker waits
 * for the pool before it calls a hook that could stop them.
 */
#ifndef AGENTWAL_NODE_JOB_THREAD_H
#define AGENTWAL_NODE_JOB_THREAD_H

#include <pthread.h>

#include "bindings/node/native/base/call.h"

struct job;
struct store;

struct job_thread {
    pthread_t id;
    bool is_joinable;
    napi_threadsafe_function ring; /* reports the end of the job; or NULL */
    struct job *next;              /* in the list of the addon */
};

/* Prepares a job to be started. False: the call has failed. */
bool job_thread_prepare(struct call *call, struct job *job);

/* Starts the thread, which completes the job. False: there is none left. */
bool job_thread_start(struct job *job);

/* Lets go what job_thread_prepare made, for a job without a thread. */
void job_thread_release(struct job *job);

/* Asks the jobs of a store to end soon, or with NULL all. */
void job_threads_stop(struct addon *addon, const struct store *store);

#endif
