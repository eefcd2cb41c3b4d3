/*
 * job.h - calls of the library that wait, in a thread of the pool that Node.js has for such (4
 * threads by default), with a promise for JavaScript.
 *
 * A module describes a kind of job, and has a struct for it that begins with a struct job:
 *
 *   struct fork_job {
 *       struct job job;
 *       struct wal_slice at;
 *       struct wal_session *fork;
 *   };
 *
 *   static enum wal_status fork_run(struct job *job, struct wal_error *error)
 *   {
 *       struct fork_job *self = (struct fork_job *)job;
 *
 *       return wal_session_fork(job->handle->object, self->at, NULL,
 *                               &self->fork, error);
 *   }
 *
 *   static napi_value fork_finish(struct call *call, struct job *job)
 *   {
 *       struct fork_job *self = (struct fork_job *)job;
 *       struct wal_session *fork = self->fork;
 *
 *       self->fork = NULL;
 *       return handle_make(call, &session_type, job->store, fork);
 *   }
 *
 *   static void fork_discard(struct job *job)
 *   {
 *       wal_session_close(((struct fork_job *)job)->fork);
 *   }
 *
 *   static const struct job_kind fork_kind = {
 *       "fork", sizeof(struct fork_job), fork_run, fork_finish, fork_discard};
 *
 *   static napi_value session_fork(struct call *call)
 *   {
 *       struct handle *session = handle_get(call, 0, &session_type);
 *       struct fork_job *job = job_create(call, &fork_kind, NULL, session);
 *
 *       if (job == NULL) {
 *           return NULL;
 *       }
 *       job->at = value_text(call, call_arg(call, 1));
 *       return job_start(call, &job->job);
 *   }
 *
 * Jobs and submissions of a store begin in the order in which JavaScript asked for them; jobs run
 * at the same time. The close of a store waits for its jobs, and stops those that run for long.
 */
#ifndef AGENTWAL_BINDINGS_NODE_NATIVE_STORE_JOB_H
#define AGENTWAL_BINDINGS_NODE_NATIVE_STORE_JOB_H

#include <pthread.h>
#include <stdatomic.h>

#include "bindings/node/native/base/call.h"
#include "bindings/node/native/store/store.h"

/*
 * Threads of jobs that run for long (job.h), one for each: they
 * would keep those of the pool from other work, and the end of a Worker waits
 * for the pool before it calls a hook that could stop them.
 */

struct job;
struct store;

struct job_thread {
    pthread_t id;
    bool is_joinable;
    napi_threadsafe_function ring; /* reports the end of the job; or NULL */
    struct job *next;              /* in the list of the addon */
};

/* Asks the jobs of a store to end soon, or with NULL all. */
void job_threads_stop(struct addon *addon, const struct store *store);
struct job;
struct store;

struct job_kind {
    const char *name;
    size_t size; /* of the struct that begins with struct job */
    /* Calls the library, in a thread: nothing of Node-API here. A failure is put into *error. */
    enum wal_status (*run)(struct job *job, struct wal_error *error);
    /* Makes the promise's value, after success; NULL: undefined. What it fails the call with
     * rejects the promise. */
    napi_value (*finish)(struct call *call, struct job *job);
    /* Frees what run made and finish did not take; or NULL. Always called once, also for a job that
     * did not run. */
    void (*discard)(struct job *job);
};

struct job_watch {
    _Atomic uint64_t stop;  /* bits of a double: not 0: stop soon */
    _Atomic uint64_t done;  /* bits of a double */
    _Atomic uint64_t total; /* bits of a double */
};

struct job {
    const struct job_kind *kind;
    struct store *store;   /* or NULL; retained */
    struct store *other;   /* another one that it uses; or NULL; retained */
    struct handle *handle; /* or NULL; in use */
    struct arena arena;    /* of its arguments */
    enum wal_status status;
    struct wal_error error;
    struct addon *addon; /* retained */
    napi_async_work work;
    napi_deferred deferred;
    napi_ref watch_ref;      /* keeps `watch`; or NULL */
    struct job_watch *watch; /* memory that JavaScript sees; or NULL */
    bool is_counted;         /* among the jobs of its stores */
    bool is_long;            /* it has a separate thread */
    _Atomic bool must_end;   /* stop soon: its store closes */
    struct job_thread thread;
};

/*
 * Returns a job, zeroed after its struct job; call->arena is then that of the job, so that what
 * value.h reads holds until the job ends. The store is that of the handle if there is one; both may
 * be NULL. NULL when the call has failed.
 */
void *job_create(struct call *call, const struct job_kind *kind, struct store *store,
                 struct handle *handle);

/* Says that the job uses another store, too. */
void job_use_store(struct job *job, struct store *other);

/* Starts the job and returns its promise. When the call has failed, destroys the job and returns
 * NULL. */
napi_value job_start(struct call *call, struct job *job);

/*
 * Jobs that run for long. job_watch_arg makes the job one: it then runs in a separate thread, and
 * must call job_progress or job_must_stop often. The argument is a Float64Array of three from
 * JavaScript, or undefined: [stop, done, total] (lib/base/progress.js makes it).
 *
 * In the thread, job_progress sets the two others, and returns whether the job is to stop: then
 * `run` returns WAL_ECALLBACK. It has the signature of the progress functions of the library, with
 * the job as ctx. When the store closes, the promise is rejected with WAL_ECLOSED.
 */
void job_watch_arg(struct call *call, struct job *job, napi_value array);
int32_t job_progress(void *ctx, uint64_t done, uint64_t total);
bool job_must_stop(struct job *job);

/* Settles the promise of a job that ran, and frees it. */
void job_complete(struct job *job);

/* Makes the promise of a job. */
napi_value job_promise(struct call *call, struct job *job);

/* Gives the job to the pool. */
void job_queue(struct job *job);

/* Ends a job that was not queued, with a failure unless status is WAL_OK. */
void job_cancel(struct job *job);

#endif
