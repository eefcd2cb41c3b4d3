/*
 * committer.c - submission, waiting, and the committer thread (SPEC.md 4.3).
 *
 * Invariant: the queue, the counts and has_leader change under the mutex only.
 * The mutex is not held while anything is written, synced or waited for.
 */
#include "engine/log/committer.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include "engine/base/cpu_pause.h"
#include "engine/base/error.h"
#include "engine/base/thread.h"
#include "engine/log/append_lock.h"
#include "engine/log/background.h"
#include "engine/log/commit_cycle.h"
#include "engine/log/idle_work.h"
#include "engine/log/wakeup.h"
#include "format/bytes/assert.h"

enum {
    DEFAULT_QUEUE = 256,
    DEFAULT_MARK_MS = 100,
    DEFAULT_DURABLE_MARK_MS = 5000, /* longer than between steps of an agent */
    FAST_SYNC_NS = 400000,   /* up to here waiters spin before they sleep */
    SPIN_NS_MAX = 2000000,   /* for a result, under contention */
    WRITTEN_SPIN_NS = 50000, /* for a result that waits for no device */
    WRITTEN_LOOKS = 400      /* for it, before the processor is yielded */
};

/* Whether sched_yield() lets all other threads run: a thread of a real-time
 * class would keep the kernel's threads from the sync that it waits for. */
static bool has_fair_scheduling(void)
{
    int policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;

    return policy != SCHED_FIFO && policy != SCHED_RR;
}

/* How long to spin for a result before sleeping: under contention, waking all
 * sleepers takes longer than a fast sync. */
static uint64_t spin_budget_ns(struct wal__committer *committer,
                               const struct wal__op *op)
{
    bool is_quick = atomic_load(&committer->log->last_sync_ns) < FAST_SYNC_NS;
    uint64_t budget = 0;

    if (op->durability == WAL_WRITTEN && !op->async) {
        budget = WRITTEN_SPIN_NS;
    } else if (wal__commit_cycle_is_contended(committer) && is_quick &&
               !atomic_load(&committer->is_outnumbered)) {
        budget = SPIN_NS_MAX;
    }
    return budget > 0 && has_fair_scheduling() ? budget : 0;
}

/* --- submission --------------------------------------------------------- */

static void enqueue(struct wal__committer *committer, struct wal__op *op)
{
    WAL__ASSERT((committer->first == NULL) == (committer->last == NULL));
    WAL__ASSERT(atomic_load(&op->state) == WAL__OP_PENDING);
    op->next = NULL;
    if (committer->last == NULL) {
        committer->first = op;
    } else {
        committer->last->next = op;
    }
    committer->last = op;
    committer->staged_count++;
    committer->submitted++;
    committer->queued_count += op->durability == WAL_QUEUED;
    committer->durable_count += op->durability == WAL_DURABLE;
}

/* Waits for queue space. With the mutex. */
static enum wal_status wait_for_queue_space(struct wal__committer *committer,
                                            bool no_wait,
                                            struct wal_error *error)
{
    while (committer->queued_count >= committer->queue_limit) {
        if (no_wait) {
            return wal__fail(error, WAL_EBUSY,
                             "the queue is full: %u operations are queued; "
                             "flush the store, or submit without "
                             "WAL_APPEND_NO_WAIT",
                             committer->queued_count);
        }
        if (!committer->running) {
            wal__commit_cycle_run(committer, 0);
        } else {
            pthread_cond_wait(&committer->state_changed, &committer->mutex);
        }
    }
    return WAL_OK;
}

enum wal_status wal__committer_submit(struct wal__committer *committer,
                                      struct wal__op *op, bool no_wait,
                                      struct wal_error *error)
{
    bool is_queued = op->durability == WAL_QUEUED;
    enum wal_status status =
        is_queued ? wal__async_errors_take(&committer->async_errors, error)
                  : WAL_OK;
    bool is_inline;

    WAL__ASSERT(op->frame_count == 0 || op->reservation.size > 0);
    if (status != WAL_OK) {
        return status;
    }
    pthread_mutex_lock(&committer->mutex);
    status =
        is_queued ? wait_for_queue_space(committer, no_wait, error) : WAL_OK;
    if (status != WAL_OK) {
        pthread_mutex_unlock(&committer->mutex);
        return status;
    }
    wal__op_retain(op);
    enqueue(committer, op);
    is_inline = !is_queued && (!committer->running ||
                               (committer->staged_count == 1 && !op->async &&
                                !wal__commit_cycle_is_contended(committer)));
    if (is_inline && !committer->has_leader) {
        wal__commit_cycle_run(committer, 0);
    } else if (!committer->has_leader) {
        pthread_cond_signal(&committer->work_available);
    }
    pthread_mutex_unlock(&committer->mutex);
    if (op->durability == WAL_WRITTEN) {
        wal__write_map_prepare(&committer->log->write_map,
                               committer->log->env->io);
    }
    return WAL_OK;
}

/* Whether a leader of another thread writes the operation soon: that takes less
 * time than to yield the processor. */
static bool is_written_soon(const struct wal__op *op)
{
    for (int i = 0; i < WRITTEN_LOOKS; i++) {
        if (atomic_load_explicit(&op->state, memory_order_acquire) ==
            WAL__OP_DONE) {
            return true;
        }
        wal__cpu_pause();
    }
    return false;
}

enum wal_status wal__committer_wait(struct wal__committer *committer,
                                    struct wal__op *op, int64_t timeout_ms)
{
    while (!committer->running && atomic_load(&op->state) != WAL__OP_DONE) {
        pthread_mutex_lock(&committer->mutex);
        if (!committer->has_leader && committer->first != NULL) {
            wal__commit_cycle_run(committer, 0);
        }
        pthread_mutex_unlock(&committer->mutex);
    }
    if (atomic_load(&op->state) == WAL__OP_DONE ||
        (timeout_ms < 0 && op->durability == WAL_WRITTEN &&
         is_written_soon(op))) {
        return op->status;
    }
    if (timeout_ms < 0 && wal__op_spin_wait(committer->log->env->io, op,
                                            spin_budget_ns(committer, op))) {
        return op->status;
    }
    if (!wal__op_futex_wait(committer->log->env->io, op, timeout_ms)) {
        return WAL_EBUSY;
    }
    return op->status;
}

enum wal_status wal__committer_flush(struct wal__committer *committer,
                                     struct wal_error *error)
{
    uint64_t submitted;

    pthread_mutex_lock(&committer->mutex);
    submitted = committer->submitted;
    while (committer->completed < submitted) {
        if (!committer->has_leader) {
            wal__commit_cycle_run(committer, 0);
        } else {
            pthread_cond_wait(&committer->state_changed, &committer->mutex);
        }
    }
    pthread_mutex_unlock(&committer->mutex);
    return wal__async_errors_take(&committer->async_errors, error);
}

/* Makes the caller the leader, though nothing may be staged. */
void wal__committer_pause(struct wal__committer *committer)
{
    pthread_mutex_lock(&committer->mutex);
    while (committer->has_leader) {
        pthread_cond_wait(&committer->state_changed, &committer->mutex);
    }
    committer->has_leader = true;
    pthread_mutex_unlock(&committer->mutex);
}

void wal__committer_resume(struct wal__committer *committer)
{
    pthread_mutex_lock(&committer->mutex);
    wal__commit_cycle_end(committer);
    pthread_mutex_unlock(&committer->mutex);
}

enum wal_status wal__committer_sync(struct wal__committer *committer,
                                    struct wal_error *error)
{
    enum wal_status async_status = wal__committer_flush(committer, error);
    struct wal__log *log = committer->log;
    /* Others may have written beyond the end that this handle has applied. */
    uint64_t end = atomic_load(&log->shared->written);
    enum wal_status status;

    if (log->env->read_only) {
        return async_status;
    }
    status = wal__log_sync(log, end, NULL);
    if (status != WAL_OK) {
        wal__committer_pause(committer);
        status = wal__leader_sync(log, &committer->client, end,
                                  async_status == WAL_OK ? error : NULL);
        wal__committer_resume(committer);
    }
    return async_status == WAL_OK ? status : async_status;
}

uint32_t wal__committer_queued_count(struct wal__committer *committer)
{
    uint32_t queued;

    pthread_mutex_lock(&committer->mutex);
    queued = committer->queued_count;
    pthread_mutex_unlock(&committer->mutex);
    return queued;
}

/* Of the leader, without the mutex. */
static enum wal_status write_mark(struct wal__committer *committer,
                                  bool allow_heal, struct wal_error *error)
{
    enum wal_status status = wal__leader_write_mark(
        committer->log, &committer->client, allow_heal, error);

    committer->needs_mark = false;
    return status;
}

enum wal_status wal__committer_write_mark(struct wal__committer *committer,
                                          struct wal_error *error)
{
    enum wal_status status;

    wal__committer_pause(committer);
    status = write_mark(committer, true, error);
    wal__committer_resume(committer);
    return status;
}

enum wal_status wal__committer_rotate(struct wal__committer *committer,
                                      struct wal_error *error)
{
    enum wal_status status;

    wal__committer_pause(committer);
    status = wal__leader_rotate(committer->log, &committer->client, error);
    wal__committer_resume(committer);
    return status;
}

enum wal_status wal__committer_call(struct wal__committer *committer,
                                    wal__leader_fn *fn, void *ctx,
                                    struct wal_error *error)
{
    enum wal_status status;

    wal__committer_pause(committer);
    status = wal__leader_begin(committer->log, &committer->client, true, error);
    if (status == WAL_OK) {
        status = fn(ctx, error);
        wal__leader_end(committer->log, &committer->client);
    }
    wal__committer_resume(committer);
    return status;
}

void wal__committer_schedule_mark(struct wal__committer *committer)
{
    const struct wal__io *io = committer->log->env->io;

    if (!committer->running) {
        return;
    }
    pthread_mutex_lock(&committer->mutex);
    if (!committer->has_leader && !committer->needs_mark) {
        committer->needs_mark = true;
        committer->last_write_ns =
            io->monotonic_ns(io->ctx) + committer->idle_mark_ns;
    }
    if (!committer->has_leader && wal__idle_work_is_overslept(committer)) {
        pthread_cond_signal(&committer->work_available);
    }
    pthread_mutex_unlock(&committer->mutex);
}

/* --- threads ------------------------------------------------------------ */

/* Sleeps until there may be work; returns whether something is due
 * (idle_work.h). With the mutex. */
static bool wait_for_work(struct wal__committer *committer)
{
    const struct wal__io *io = committer->log->env->io;
    uint64_t due = wal__idle_work_due_ns(committer);
    const struct timespec until = {(time_t)(due / 1000000000),
                                   (long)(due % 1000000000)};

    if (io->monotonic_ns(io->ctx) >= due) {
        return true;
    }
    committer->sleeps_until_ns = due;
    if (due == UINT64_MAX) {
        pthread_cond_wait(&committer->work_available, &committer->mutex);
    } else {
        pthread_cond_timedwait(&committer->work_available, &committer->mutex,
                               &until);
    }
    committer->sleeps_until_ns = 0;
    return false;
}

/* Does what is due, as the leader, without the mutex. */
static void do_due(struct wal__committer *committer)
{
    if (committer->log->append_lock_retained) {
        wal__log_release_retained_lock(committer->log);
    } else {
        /* After a failure the log is poisoned, or the mark is written after the
         * next group. */
        (void)!write_mark(committer, false, NULL);
    }
}

static void *committer_main(void *arg)
{
    struct wal__committer *committer = arg;

    pthread_setname_np(pthread_self(), "wal-commit");
    pthread_mutex_lock(&committer->mutex);
    while (!committer->stopping || committer->first != NULL) {
        if (committer->has_leader) {
            pthread_cond_wait(&committer->state_changed, &committer->mutex);
        } else if (committer->first != NULL ||
                   wal__commit_cycle_is_contended(committer)) {
            wal__commit_cycle_run(committer, committer->sync_waiters);
        } else if (wait_for_work(committer) && !committer->has_leader) {
            committer->has_leader = true;
            pthread_mutex_unlock(&committer->mutex);
            do_due(committer);
            pthread_mutex_lock(&committer->mutex);
            wal__commit_cycle_end(committer);
        }
    }
    pthread_mutex_unlock(&committer->mutex);
    return NULL;
}

static enum wal_status start_threads(struct wal__committer *committer)
{
    if (wal__thread_start(&committer->background_thread, wal__background_main,
                          committer) != 0) {
        return WAL_ENOMEM;
    }
    committer->has_background = true;
    if (committer->log->env->read_only) {
        return WAL_OK;
    }
    if (wal__thread_start(&committer->thread, committer_main, committer) != 0) {
        wal__committer_stop(committer);
        return WAL_ENOMEM;
    }
    /* The threads read it under the mutex. */
    pthread_mutex_lock(&committer->mutex);
    committer->running = true;
    pthread_mutex_unlock(&committer->mutex);
    return WAL_OK;
}

enum wal_status wal__committer_init(struct wal__committer *committer,
                                    struct wal__log *log,
                                    const struct wal__committer_client *client,
                                    const struct wal_open_options *options,
                                    struct wal_error *error)
{
    pthread_mutexattr_t adaptive;
    pthread_condattr_t attributes;
    uint32_t mark_ms = options->idle_mark_ms;

    memset(committer, 0, sizeof(*committer));
    committer->log = log;
    committer->client = client->leader;
    committer->sync_dependencies = client->sync_dependencies;
    committer->close_replaced = client->close_replaced;
    committer->look_again = client->look_again;
    committer->queue_limit =
        options->queue_limit != 0 ? options->queue_limit : DEFAULT_QUEUE;
    committer->idle_mark_ns =
        (uint64_t)(mark_ms != 0 ? mark_ms : DEFAULT_MARK_MS) * 1000000;
    committer->durable_mark_ns =
        (uint64_t)(mark_ms != 0 ? mark_ms : DEFAULT_DURABLE_MARK_MS) * 1000000;
    wal__buf_init(&committer->group_iov, log->env->heap);
    wal__buf_init(&committer->group_sessions, log->env->heap);
    wal__async_errors_init(&committer->async_errors);
    pthread_mutexattr_init(&adaptive);
    pthread_mutexattr_settype(&adaptive, PTHREAD_MUTEX_ADAPTIVE_NP);
    pthread_mutex_init(&committer->mutex, &adaptive);
    pthread_mutexattr_destroy(&adaptive);
    pthread_mutex_init(&committer->background_mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&committer->work_available, &attributes);
    pthread_cond_init(&committer->state_changed, NULL);
    pthread_cond_init(&committer->background_work, &attributes);
    pthread_condattr_destroy(&attributes);
    if (!log->env->io->threads) {
        return WAL_OK;
    }
    if (start_threads(committer) != WAL_OK) {
        wal__committer_deinit(committer);
        return wal__fail(error, WAL_ENOMEM,
                         "cannot start the committer's threads");
    }
    return WAL_OK;
}

void wal__committer_stop(struct wal__committer *committer)
{
    if (!committer->has_background) {
        return;
    }
    pthread_mutex_lock(&committer->background_mutex);
    pthread_mutex_lock(&committer->mutex);
    committer->stopping = true;
    pthread_cond_signal(&committer->work_available);
    pthread_cond_broadcast(&committer->state_changed);
    pthread_cond_signal(&committer->background_work);
    pthread_mutex_unlock(&committer->mutex);
    pthread_mutex_unlock(&committer->background_mutex);
    if (committer->running) {
        atomic_store(&committer->log->shared->rotation_waiting, 1);
        pthread_join(committer->thread, NULL);
    }
    pthread_join(committer->background_thread, NULL);
    committer->has_background = false;
    if (committer->running) {
        wal__log_release_retained_lock(committer->log);
        atomic_store(&committer->log->shared->rotation_waiting, 0);
    }
    committer->running = false;
}

void wal__committer_deinit(struct wal__committer *committer)
{
    wal__async_errors_deinit(&committer->async_errors);
    wal__buf_deinit(&committer->group_iov);
    wal__buf_deinit(&committer->group_sessions);
    pthread_mutex_destroy(&committer->mutex);
    pthread_mutex_destroy(&committer->background_mutex);
    pthread_cond_destroy(&committer->work_available);
    pthread_cond_destroy(&committer->state_changed);
    pthread_cond_destroy(&committer->background_work);
}
