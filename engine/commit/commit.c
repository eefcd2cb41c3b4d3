/*
 * commit.c - staging and the committer thread (SPEC.md 4.3).
 */
#include "engine/commit/commit.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include "engine/base/error.h"
#include "engine/commit/background.h"
#include "engine/commit/commit_cycle.h"
#include "engine/commit/group.h"
#include "engine/commit/wakeup.h"
#include "format/bytes/assert.h"

enum {
    DEFAULT_QUEUE = 256,
    DEFAULT_MARK_MS = 100,
    CONTENTION_MIN = 2, /* no crowd: who comes first commits at once */
    GROUP_OPS_MIN = 16, /* of a crowd, built while the others come */
    COMMIT_DELAY_NS_MAX = 200000, /* waiting for a crowd to come */
    FAST_SYNC_NS = 1000000, /* or less: who waits does not sleep at once */
    SPIN_NS_MAX = 2000000,  /* but looks for an answer for so long */
    SPINNING_MAX = 4,       /* callers who may be called to build next */
    PROMOTION_SPIN_NS = 50000,
    RETAINED_GROUPS_MAX = 64, /* groups in one turn for those who are awake */
    LEADER_SPIN_NS = 3000     /* until the next of them comes */
};

static bool is_contended(struct wal__committer *committer)
{
    return committer->running &&
           atomic_load(&committer->sync_waiters) > CONTENTION_MIN;
}

/* Whether all others run while this thread yields: one of a real-time class
 * keeps the kernel's own threads from the sync that is waited for. */
static bool has_fair_scheduling(void)
{
    int policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;

    return policy != SCHED_FIFO && policy != SCHED_RR;
}

/* How long to look for an answer before sleeping: to wake each of a crowd takes
 * longer than a quick sync. */
static uint64_t spin_budget_ns(struct wal__committer *committer)
{
    bool is_quick = atomic_load(&committer->log->last_sync_ns) < FAST_SYNC_NS;

    return is_contended(committer) && is_quick && has_fair_scheduling()
               ? SPIN_NS_MAX
               : 0;
}

/* --- building ----------------------------------------------------------- */

/* The first that is staged whose caller stays awake, when nothing that is
 * staged waits for a device. */
static struct wal__op *find_spinning(const struct wal__committer *committer)
{
    struct wal__op *op = committer->first;

    if (atomic_load(&committer->spinning) == 0 ||
        committer->durable_count > 0) {
        return NULL;
    }
    while (op != NULL && atomic_load(&op->spinning) != WAL__OP_SPINNING) {
        op = op->next;
    }
    return op;
}

/* Ends a turn of building, the mutex being held: a caller that is awake builds
 * what came meanwhile, else the thread. */
static void end_commit_cycle(struct wal__committer *committer)
{
    const struct wal__io *io = committer->log->env->io;
    struct wal__op *next = find_spinning(committer);

    committer->last_write_ns = io->monotonic_ns(io->ctx);
    committer->has_leader = next != NULL;
    if (next != NULL) {
        atomic_store(&next->spinning, WAL__OP_PROMOTED);
    } else if (committer->first != NULL ||
               (committer->needs_mark && committer->is_idle)) {
        pthread_cond_signal(&committer->work_available);
    }
    pthread_cond_broadcast(&committer->state_changed);
}

/* Takes everything that is staged, the mutex being held. */
static struct wal__op *dequeue_staged(struct wal__committer *committer)
{
    struct wal__op *list = committer->first;

    committer->first = NULL;
    committer->last = NULL;
    committer->staged_count = 0;
    committer->queued_count = 0;
    committer->retain_append_lock =
        committer->durable_count == 0 &&
        atomic_load(&committer->sync_waiters) == 0 &&
        atomic_load(&committer->spinning) > 0;
    committer->durable_count = 0;
    committer->dequeued = committer->submitted;
    pthread_cond_broadcast(&committer->state_changed); /* the queue has room */
    return list;
}

/* Waits until so many are staged, or the time is over. The mutex is held, and
 * left meanwhile. */
static void wait_for_followers(struct wal__committer *committer, uint32_t count,
                               uint64_t until)
{
    const struct wal__io *io = committer->log->env->io;

    pthread_mutex_unlock(&committer->mutex);
    while (committer->staged_count < count &&
           io->monotonic_ns(io->ctx) < until) {
        sched_yield();
    }
    pthread_mutex_lock(&committer->mutex);
}

static void enqueue(struct wal__committer *committer, struct wal__op *op)
{
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

/* Those whom no sync keeps come again at once: the lease is kept for the first
 * of them. */
static void spin_for_next_op(struct wal__committer *committer)
{
    const struct wal__io *io = committer->log->env->io;
    uint64_t until = io->monotonic_ns(io->ctx) + LEADER_SPIN_NS;

    while (committer->staged_count == 0 && io->monotonic_ns(io->ctx) < until) {
        sched_yield();
    }
    if (committer->staged_count == 0) {
        wal__log_release_retained_lock(committer->log);
    }
}

/* Builds what is staged, the mutex being held, and left meanwhile. Puts those
 * that wait for a sync to the end of a list, and gives its new end. */
static struct wal__op **build_staged(struct wal__committer *committer,
                                     struct wal__op **end)
{
    struct wal__op *list = dequeue_staged(committer);

    if (list == NULL) {
        return end;
    }
    pthread_mutex_unlock(&committer->mutex);
    *end = wal__commit_cycle_build(committer, list);
    while (*end != NULL) {
        end = &(*end)->next;
    }
    if (committer->log->append_lock_retained) {
        spin_for_next_op(committer);
    }
    pthread_mutex_lock(&committer->mutex);
    return end;
}

/* Builds, after a group that no sync is for, what came meanwhile of callers
 * that stay awake: to another processor all that a group touches would be new.
 * The lease is kept for it. */
static void build_while_retained(struct wal__committer *committer,
                                 struct wal__op **end)
{
    for (int i = 0;
         i < RETAINED_GROUPS_MAX && committer->log->append_lock_retained &&
         committer->durable_count == 0;
         i++) {
        end = build_staged(committer, end);
    }
}

/*
 * Builds what is staged in this thread and syncs it, the mutex being held, and
 * left meanwhile. `expected_ops` more are about to come, one after the other:
 * they are waited for, as long as a sync takes at most, and built in bits
 * meanwhile, so that one sync is for all.
 */
static void run_commit_cycle(struct wal__committer *committer,
                             uint32_t expected_ops)
{
    const struct wal__io *io = committer->log->env->io;
    uint64_t sync_ns = atomic_load(&committer->log->last_sync_ns);
    uint64_t until =
        io->monotonic_ns(io->ctx) +
        (sync_ns < COMMIT_DELAY_NS_MAX ? sync_ns : COMMIT_DELAY_NS_MAX);
    uint32_t left = committer->staged_count + expected_ops;
    struct wal__op *waiting = NULL;
    struct wal__op **end = &waiting;

    committer->has_leader = true;
    while (left > 0) {
        uint32_t staged;

        if (expected_ops > 0) {
            wait_for_followers(
                committer, left < GROUP_OPS_MIN ? left : GROUP_OPS_MIN, until);
        }
        staged = committer->staged_count;
        end = build_staged(committer, end);
        left = staged < left && io->monotonic_ns(io->ctx) < until
                   ? left - staged
                   : 0;
    }
    build_while_retained(committer, end);
    pthread_mutex_unlock(&committer->mutex);
    wal__log_release_retained_lock(committer->log);
    atomic_store(&committer->sync_waiters,
                 wal__commit_cycle_sync(committer, waiting));
    wal__background_request(committer);
    pthread_mutex_lock(&committer->mutex);
    committer->completed = committer->dequeued;
    end_commit_cycle(committer);
}

/* Waits for room in the queue, the mutex being held. */
static enum wal_status wait_for_queue_space(struct wal__committer *committer,
                                            bool no_wait,
                                            struct wal_error *error)
{
    while (committer->queued_count >= committer->queue_limit) {
        if (no_wait) {
            return wal__fail(error, WAL_EBUSY,
                             "the queue is full: %u operations wait",
                             committer->queued_count);
        }
        if (!committer->running) {
            run_commit_cycle(committer, 0);
        } else {
            pthread_cond_wait(&committer->state_changed, &committer->mutex);
        }
    }
    return WAL_OK;
}

/* Whose caller waits for no device, while somebody builds, is answered soon, or
 * builds next; the mutex is held. */
static void start_spinning(struct wal__committer *committer, struct wal__op *op)
{
    if (op->durability == WAL_WRITTEN && !op->async && committer->running &&
        atomic_load(&committer->spinning) < SPINNING_MAX) {
        atomic_store(&op->spinning, WAL__OP_SPINNING);
        atomic_fetch_add(&committer->spinning, 1);
    }
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
                                !is_contended(committer)));
    if (is_inline && !committer->has_leader) {
        run_commit_cycle(committer, 0);
    } else if (!committer->has_leader) {
        pthread_cond_signal(&committer->work_available);
    } else {
        start_spinning(committer, op);
    }
    pthread_mutex_unlock(&committer->mutex);
    return WAL_OK;
}

/* Builds because the last builder said so, the mutex being held. */
static void become_leader(struct wal__committer *committer)
{
    if (committer->durable_count == 0) {
        run_commit_cycle(committer, 0);
        return;
    }
    /* Not to wait for the sync of others. */
    committer->has_leader = false;
    pthread_cond_signal(&committer->work_available);
    pthread_cond_broadcast(&committer->state_changed);
}

/* Whether the caller of an operation is neither answered nor called. */
static bool must_spin(struct wal__op *op)
{
    return atomic_load(&op->state) != WAL__OP_DONE &&
           atomic_load(&op->spinning) == WAL__OP_SPINNING;
}

/* Who builds waits for no device, so that the answer, or the call to build what
 * came meanwhile, comes soon. */
static void spin_for_result(struct wal__committer *committer,
                            struct wal__op *op)
{
    const struct wal__io *io = committer->log->env->io;
    uint64_t until = io->monotonic_ns(io->ctx) + PROMOTION_SPIN_NS;

    while (must_spin(op) && io->monotonic_ns(io->ctx) < until) {
        sched_yield();
    }
    if (atomic_load(&op->state) != WAL__OP_DONE) {
        pthread_mutex_lock(&committer->mutex);
        if (atomic_exchange(&op->spinning, 0) == WAL__OP_PROMOTED) {
            become_leader(committer);
        }
        pthread_mutex_unlock(&committer->mutex);
    }
    atomic_fetch_sub(&committer->spinning, 1);
}

enum wal_status wal__committer_wait(struct wal__committer *committer,
                                    struct wal__op *op, int64_t timeout_ms)
{
    while (!committer->running && atomic_load(&op->state) != WAL__OP_DONE) {
        pthread_mutex_lock(&committer->mutex);
        if (!committer->has_leader && committer->first != NULL) {
            run_commit_cycle(committer, 0);
        }
        pthread_mutex_unlock(&committer->mutex);
    }
    if (atomic_load(&op->spinning) != 0) {
        spin_for_result(committer, op);
    }
    if (timeout_ms < 0 && wal__op_spin_wait(committer->log->env->io, op,
                                            spin_budget_ns(committer))) {
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
            run_commit_cycle(committer, 0);
        } else {
            pthread_cond_wait(&committer->state_changed, &committer->mutex);
        }
    }
    pthread_mutex_unlock(&committer->mutex);
    return wal__async_errors_take(&committer->async_errors, error);
}

enum wal_status wal__committer_sync(struct wal__committer *committer,
                                    struct wal_error *error)
{
    enum wal_status async_status = wal__committer_flush(committer, error);
    enum wal_status status;

    if (committer->log->env->read_only) {
        return async_status;
    }
    status = wal__log_sync(committer->log, atomic_load(&committer->log->end),
                           async_status == WAL_OK ? error : NULL);
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

enum wal_status wal__committer_write_mark(struct wal__committer *committer,
                                          struct wal_error *error)
{
    enum wal_status status;

    pthread_mutex_lock(&committer->mutex);
    while (committer->has_leader) {
        pthread_cond_wait(&committer->state_changed, &committer->mutex);
    }
    committer->has_leader = true;
    pthread_mutex_unlock(&committer->mutex);
    status = wal__group_write_mark(committer, error);
    pthread_mutex_lock(&committer->mutex);
    end_commit_cycle(committer);
    pthread_mutex_unlock(&committer->mutex);
    return status;
}

void wal__committer_schedule_mark(struct wal__committer *committer)
{
    const struct wal__io *io = committer->log->env->io;

    if (!committer->running) {
        return;
    }
    pthread_mutex_lock(&committer->mutex);
    if (!committer->needs_mark && !committer->has_leader) {
        committer->needs_mark = true;
        committer->last_write_ns =
            io->monotonic_ns(io->ctx) + committer->idle_mark_ns;
        pthread_cond_signal(&committer->work_available);
    }
    pthread_mutex_unlock(&committer->mutex);
}

/* --- threads ------------------------------------------------------------ */

/* Sleeps until there is work, or the mark is due (WAL_END). */
static bool wait_for_work(struct wal__committer *committer)
{
    const struct wal__io *io = committer->log->env->io;
    uint64_t now = io->monotonic_ns(io->ctx);
    uint64_t due = committer->last_write_ns + committer->idle_mark_ns;
    struct timespec until;

    if (!committer->needs_mark) {
        committer->is_idle = true;
        pthread_cond_wait(&committer->work_available, &committer->mutex);
        committer->is_idle = false;
        return false;
    }
    if (now >= due) {
        return true;
    }
    until.tv_sec = (time_t)(due / 1000000000);
    until.tv_nsec = (long)(due % 1000000000);
    pthread_cond_timedwait(&committer->work_available, &committer->mutex,
                           &until);
    return false;
}

static void *committer_main(void *arg)
{
    struct wal__committer *committer = arg;

    pthread_setname_np(pthread_self(), "wal-commit");
    pthread_mutex_lock(&committer->mutex);
    while (!committer->stopping || committer->first != NULL) {
        if (committer->has_leader) {
            pthread_cond_wait(&committer->state_changed, &committer->mutex);
        } else if (committer->first != NULL || is_contended(committer)) {
            run_commit_cycle(committer, committer->sync_waiters);
        } else if (wait_for_work(committer) && !committer->has_leader) {
            committer->has_leader = true;
            committer->needs_mark = false;
            pthread_mutex_unlock(&committer->mutex);
            /* A failure is poison, or is tried again after the next group. */
            (void)!wal__group_write_mark(committer, NULL);
            pthread_mutex_lock(&committer->mutex);
            end_commit_cycle(committer);
        }
    }
    pthread_mutex_unlock(&committer->mutex);
    return NULL;
}

static enum wal_status start_threads(struct wal__committer *committer)
{
    if (pthread_create(&committer->thread, NULL, committer_main, committer) !=
        0) {
        return WAL_ENOMEM;
    }
    if (pthread_create(&committer->background_thread, NULL,
                       wal__background_main, committer) != 0) {
        pthread_mutex_lock(&committer->mutex);
        committer->stopping = true;
        pthread_cond_signal(&committer->work_available);
        pthread_mutex_unlock(&committer->mutex);
        pthread_join(committer->thread, NULL);
        return WAL_ENOMEM;
    }
    /* The threads ask for it under the mutex. */
    pthread_mutex_lock(&committer->mutex);
    committer->running = true;
    pthread_mutex_unlock(&committer->mutex);
    return WAL_OK;
}

enum wal_status wal__committer_init(struct wal__committer *committer,
                                    struct wal__log *log,
                                    const struct wal__leader_client *client,
                                    wal__sync_dependencies *sync_dependencies,
                                    const struct wal_open_options *options,
                                    struct wal_error *error)
{
    pthread_mutexattr_t adaptive;
    pthread_condattr_t attributes;
    uint32_t mark_ms = options->idle_mark_ms;

    memset(committer, 0, sizeof(*committer));
    committer->log = log;
    committer->client = *client;
    committer->sync_dependencies = sync_dependencies;
    committer->queue_limit =
        options->queue_limit != 0 ? options->queue_limit : DEFAULT_QUEUE;
    committer->idle_mark_ns =
        (uint64_t)(mark_ms != 0 ? mark_ms : DEFAULT_MARK_MS) * 1000000;
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
    pthread_cond_init(&committer->background_work, NULL);
    pthread_condattr_destroy(&attributes);
    if (!log->env->io->threads || log->env->read_only) {
        return WAL_OK;
    }
    if (start_threads(committer) != WAL_OK) {
        wal__committer_deinit(committer);
        return wal__fail(error, WAL_ENOMEM,
                         "cannot start the committer thread");
    }
    return WAL_OK;
}

void wal__committer_stop(struct wal__committer *committer)
{
    if (!committer->running) {
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
    atomic_store(&committer->log->shared->rotation_waiting, 1);
    pthread_join(committer->thread, NULL);
    pthread_join(committer->background_thread, NULL);
    atomic_store(&committer->log->shared->rotation_waiting, 0);
    committer->running = false;
}

void wal__committer_deinit(struct wal__committer *committer)
{
    wal__async_errors_deinit(&committer->async_errors);
    pthread_mutex_destroy(&committer->mutex);
    pthread_mutex_destroy(&committer->background_mutex);
    pthread_cond_destroy(&committer->work_available);
    pthread_cond_destroy(&committer->state_changed);
    pthread_cond_destroy(&committer->background_work);
}
