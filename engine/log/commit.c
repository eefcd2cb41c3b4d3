/*
 * commit.c - staging and the committer thread (SPEC.md 4.3).
 */
#include "engine/log/commit.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include "engine/base/assert.h"
#include "engine/base/error.h"
#include "engine/log/answer.h"
#include "engine/log/group.h"
#include "engine/log/help.h"
#include "engine/log/round.h"

enum {
    DEFAULT_QUEUE = 256,
    DEFAULT_MARK_MS = 100,
    FEW = 2,                 /* no crowd: who comes first commits at once */
    BIT = 16,                /* of a crowd, built while the others come */
    GATHER_NS_MAX = 200000,  /* waiting for a crowd to come */
    QUICK_SYNC_NS = 1000000, /* or less: who waits does not sleep at once */
    PATIENCE_NS = 2000000,   /* but looks for an answer for so long */
    AWAKE_MAX = 4,           /* callers who may be called to build next */
    AWAKE_NS = 50000,
    ROUNDS_MAX = 64, /* groups in one turn for those who are awake */
    AGAIN_NS = 3000  /* until the next of them comes */
};

static bool is_crowded(struct wal__committer *committer)
{
    return committer->running && atomic_load(&committer->crowd) > FEW;
}

/* Whether all others run while this thread yields: one of a real-time class
 * keeps the kernel's own threads from the sync that is waited for. */
static bool yields_to_all(void)
{
    int policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;

    return policy != SCHED_FIFO && policy != SCHED_RR;
}

/* How long to look for an answer before sleeping: to wake each of a crowd takes
 * longer than a quick sync. */
static uint64_t patience(struct wal__committer *committer)
{
    bool is_quick = atomic_load(&committer->log->sync_ns) < QUICK_SYNC_NS;

    return is_crowded(committer) && is_quick && yields_to_all() ? PATIENCE_NS
                                                                : 0;
}

/* --- building ----------------------------------------------------------- */

/* The first that is staged whose caller stays awake, when nothing that is
 * staged waits for a device. */
static struct wal__op *find_awake(const struct wal__committer *committer)
{
    struct wal__op *op = committer->first;

    if (atomic_load(&committer->awake) == 0 || committer->durable > 0) {
        return NULL;
    }
    while (op != NULL && atomic_load(&op->awake) != WAL__OP_AWAKE) {
        op = op->next;
    }
    return op;
}

/* Ends a turn of building, the mutex being held: a caller that is awake builds
 * what came meanwhile, else the thread. */
static void end_turn(struct wal__committer *committer)
{
    const struct wal__io *io = committer->log->env->io;
    struct wal__op *next = find_awake(committer);

    committer->busy_ns = io->ticks_ns(io->ctx);
    committer->building = next != NULL;
    if (next != NULL) {
        atomic_store(&next->awake, WAL__OP_CALLED);
    } else if (committer->first != NULL ||
               (committer->unmarked && committer->resting)) {
        pthread_cond_signal(&committer->work);
    }
    pthread_cond_broadcast(&committer->quiet);
}

/* Takes everything that is staged, the mutex being held. */
static struct wal__op *take_staged(struct wal__committer *committer)
{
    struct wal__op *list = committer->first;

    committer->first = NULL;
    committer->last = NULL;
    committer->staged = 0;
    committer->queued = 0;
    committer->lingers = committer->durable == 0 &&
                         atomic_load(&committer->crowd) == 0 &&
                         atomic_load(&committer->awake) > 0;
    committer->durable = 0;
    committer->taken = committer->submitted;
    pthread_cond_broadcast(&committer->quiet); /* the queue has room */
    return list;
}

/* Waits until so many are staged, or the time is over. The mutex is held, and
 * left meanwhile. */
static void gather(struct wal__committer *committer, uint32_t count,
                   uint64_t until)
{
    const struct wal__io *io = committer->log->env->io;

    pthread_mutex_unlock(&committer->mutex);
    while (committer->staged < count && io->ticks_ns(io->ctx) < until) {
        sched_yield();
    }
    pthread_mutex_lock(&committer->mutex);
}

static void stage(struct wal__committer *committer, struct wal__op *op)
{
    op->next = NULL;
    if (committer->last == NULL) {
        committer->first = op;
    } else {
        committer->last->next = op;
    }
    committer->last = op;
    committer->staged++;
    committer->submitted++;
    committer->queued += op->durability == WAL_QUEUED;
    committer->durable += op->durability == WAL_DURABLE;
}

/* Those whom no sync keeps come again at once: the lease is kept for the first
 * of them. */
static void await_one(struct wal__committer *committer)
{
    const struct wal__io *io = committer->log->env->io;
    uint64_t until = io->ticks_ns(io->ctx) + AGAIN_NS;

    while (committer->staged == 0 && io->ticks_ns(io->ctx) < until) {
        sched_yield();
    }
    if (committer->staged == 0) {
        wal__log_end_lease(committer->log);
    }
}

/* Builds what is staged, the mutex being held, and left meanwhile. Puts those
 * that wait for a sync to the end of a list, and gives its new end. */
static struct wal__op **build_staged(struct wal__committer *committer,
                                     struct wal__op **end)
{
    struct wal__op *list = take_staged(committer);

    if (list == NULL) {
        return end;
    }
    pthread_mutex_unlock(&committer->mutex);
    *end = wal__round_build(committer, list);
    while (*end != NULL) {
        end = &(*end)->next;
    }
    if (committer->log->passed_on) {
        await_one(committer);
    }
    pthread_mutex_lock(&committer->mutex);
    return end;
}

/* Builds, after a group that no sync is for, what came meanwhile of callers
 * that stay awake: to another processor all that a group touches would be new.
 * The lease is kept for it. */
static void build_rounds(struct wal__committer *committer, struct wal__op **end)
{
    for (int i = 0;
         i < ROUNDS_MAX && committer->log->passed_on && committer->durable == 0;
         i++) {
        end = build_staged(committer, end);
    }
}

/*
 * Builds what is staged in this thread and syncs it, the mutex being held, and
 * left meanwhile. `returning` more are about to come, one after the other: they
 * are waited for, as long as a sync takes at most, and built in bits meanwhile,
 * so that one sync is for all.
 */
static void run_turn(struct wal__committer *committer, uint32_t returning)
{
    const struct wal__io *io = committer->log->env->io;
    uint64_t sync_ns = atomic_load(&committer->log->sync_ns);
    uint64_t until = io->ticks_ns(io->ctx) +
                     (sync_ns < GATHER_NS_MAX ? sync_ns : GATHER_NS_MAX);
    uint32_t left = committer->staged + returning;
    struct wal__op *waiting = NULL;
    struct wal__op **end = &waiting;

    committer->building = true;
    while (left > 0) {
        uint32_t staged;

        if (returning > 0) {
            gather(committer, left < BIT ? left : BIT, until);
        }
        staged = committer->staged;
        end = build_staged(committer, end);
        left =
            staged < left && io->ticks_ns(io->ctx) < until ? left - staged : 0;
    }
    build_rounds(committer, end);
    pthread_mutex_unlock(&committer->mutex);
    wal__log_end_lease(committer->log);
    atomic_store(&committer->crowd, wal__round_sync(committer, waiting));
    wal__help_ask(committer);
    pthread_mutex_lock(&committer->mutex);
    committer->built = committer->taken;
    end_turn(committer);
}

/* Waits for room in the queue, the mutex being held. */
static enum wal_status make_room(struct wal__committer *committer, bool no_wait,
                                 struct wal_error *error)
{
    while (committer->queued >= committer->queue_limit) {
        if (no_wait) {
            return wal__fail(error, WAL_EBUSY, 0, NULL, 0,
                             "the queue is full: %u operations wait",
                             committer->queued);
        }
        if (!committer->running) {
            run_turn(committer, 0);
        } else {
            pthread_cond_wait(&committer->quiet, &committer->mutex);
        }
    }
    return WAL_OK;
}

/* Whose caller waits for no device, while somebody builds, is answered soon, or
 * builds next; the mutex is held. */
static void keep_awake(struct wal__committer *committer, struct wal__op *op)
{
    if (op->durability == WAL_WRITTEN && !op->apart && committer->running &&
        atomic_load(&committer->awake) < AWAKE_MAX) {
        atomic_store(&op->awake, WAL__OP_AWAKE);
        atomic_fetch_add(&committer->awake, 1);
    }
}

enum wal_status wal__committer_submit(struct wal__committer *committer,
                                      struct wal__op *op, bool no_wait,
                                      struct wal_error *error)
{
    bool queues = op->durability == WAL_QUEUED;
    enum wal_status status =
        queues ? wal__news_tell(&committer->news, error) : WAL_OK;
    bool inside;

    if (status != WAL_OK) {
        return status;
    }
    pthread_mutex_lock(&committer->mutex);
    status = queues ? make_room(committer, no_wait, error) : WAL_OK;
    if (status != WAL_OK) {
        pthread_mutex_unlock(&committer->mutex);
        return status;
    }
    wal__op_retain(op);
    stage(committer, op);
    inside = !queues &&
             (!committer->running ||
              (committer->staged == 1 && !op->apart && !is_crowded(committer)));
    if (inside && !committer->building) {
        run_turn(committer, 0);
    } else if (!committer->building) {
        pthread_cond_signal(&committer->work);
    } else {
        keep_awake(committer, op);
    }
    pthread_mutex_unlock(&committer->mutex);
    return WAL_OK;
}

/* Builds because the last builder said so, the mutex being held. */
static void lead(struct wal__committer *committer)
{
    if (committer->durable == 0) {
        run_turn(committer, 0);
        return;
    }
    /* Not to wait for the sync of others. */
    committer->building = false;
    pthread_cond_signal(&committer->work);
    pthread_cond_broadcast(&committer->quiet);
}

/* Whether the caller of an operation is neither answered nor called. */
static bool must_wait(struct wal__op *op)
{
    return atomic_load(&op->state) != WAL__OP_DONE &&
           atomic_load(&op->awake) == WAL__OP_AWAKE;
}

/* Who builds waits for no device, so that the answer, or the call to build what
 * came meanwhile, comes soon. */
static void stay_awake(struct wal__committer *committer, struct wal__op *op)
{
    const struct wal__io *io = committer->log->env->io;
    uint64_t until = io->ticks_ns(io->ctx) + AWAKE_NS;

    while (must_wait(op) && io->ticks_ns(io->ctx) < until) {
        sched_yield();
    }
    if (atomic_load(&op->state) != WAL__OP_DONE) {
        pthread_mutex_lock(&committer->mutex);
        if (atomic_exchange(&op->awake, 0) == WAL__OP_CALLED) {
            lead(committer);
        }
        pthread_mutex_unlock(&committer->mutex);
    }
    atomic_fetch_sub(&committer->awake, 1);
}

enum wal_status wal__committer_wait(struct wal__committer *committer,
                                    struct wal__op *op, int64_t timeout_ms)
{
    while (!committer->running && atomic_load(&op->state) != WAL__OP_DONE) {
        pthread_mutex_lock(&committer->mutex);
        if (!committer->building && committer->first != NULL) {
            run_turn(committer, 0);
        }
        pthread_mutex_unlock(&committer->mutex);
    }
    if (atomic_load(&op->awake) != 0) {
        stay_awake(committer, op);
    }
    if (timeout_ms < 0 &&
        wal__answer_look(committer->log->env->io, op, patience(committer))) {
        return op->status;
    }
    if (!wal__answer_wait(committer->log->env->io, op, timeout_ms)) {
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
    while (committer->built < submitted) {
        if (!committer->building) {
            run_turn(committer, 0);
        } else {
            pthread_cond_wait(&committer->quiet, &committer->mutex);
        }
    }
    pthread_mutex_unlock(&committer->mutex);
    return wal__news_tell(&committer->news, error);
}

enum wal_status wal__committer_sync(struct wal__committer *committer,
                                    struct wal_error *error)
{
    enum wal_status told = wal__committer_flush(committer, error);
    enum wal_status status;

    if (committer->log->env->read_only) {
        return told;
    }
    status = wal__log_sync(committer->log, atomic_load(&committer->log->end),
                           told == WAL_OK ? error : NULL);
    return told == WAL_OK ? status : told;
}

uint32_t wal__committer_queued(struct wal__committer *committer)
{
    uint32_t queued;

    pthread_mutex_lock(&committer->mutex);
    queued = committer->queued;
    pthread_mutex_unlock(&committer->mutex);
    return queued;
}

enum wal_status wal__committer_mark(struct wal__committer *committer,
                                    struct wal_error *error)
{
    enum wal_status status;

    pthread_mutex_lock(&committer->mutex);
    while (committer->building) {
        pthread_cond_wait(&committer->quiet, &committer->mutex);
    }
    committer->building = true;
    pthread_mutex_unlock(&committer->mutex);
    status = wal__group_mark(committer, error);
    pthread_mutex_lock(&committer->mutex);
    end_turn(committer);
    pthread_mutex_unlock(&committer->mutex);
    return status;
}

void wal__committer_notice(struct wal__committer *committer)
{
    const struct wal__io *io = committer->log->env->io;

    if (!committer->running) {
        return;
    }
    pthread_mutex_lock(&committer->mutex);
    if (!committer->unmarked && !committer->building) {
        committer->unmarked = true;
        committer->busy_ns = io->ticks_ns(io->ctx) + committer->idle_mark_ns;
        pthread_cond_signal(&committer->work);
    }
    pthread_mutex_unlock(&committer->mutex);
}

/* --- threads ------------------------------------------------------------ */

/* Sleeps until there is work, or the mark is due (WAL_END). */
static bool wait_for_work(struct wal__committer *committer)
{
    const struct wal__io *io = committer->log->env->io;
    uint64_t now = io->ticks_ns(io->ctx);
    uint64_t due = committer->busy_ns + committer->idle_mark_ns;
    struct timespec until;

    if (!committer->unmarked) {
        committer->resting = true;
        pthread_cond_wait(&committer->work, &committer->mutex);
        committer->resting = false;
        return false;
    }
    if (now >= due) {
        return true;
    }
    until.tv_sec = (time_t)(due / 1000000000);
    until.tv_nsec = (long)(due % 1000000000);
    pthread_cond_timedwait(&committer->work, &committer->mutex, &until);
    return false;
}

static void *committer_main(void *arg)
{
    struct wal__committer *committer = arg;

    pthread_setname_np(pthread_self(), "wal-commit");
    pthread_mutex_lock(&committer->mutex);
    while (!committer->stopping || committer->first != NULL) {
        if (committer->building) {
            pthread_cond_wait(&committer->quiet, &committer->mutex);
        } else if (committer->first != NULL || is_crowded(committer)) {
            run_turn(committer, committer->crowd);
        } else if (wait_for_work(committer) && !committer->building) {
            committer->building = true;
            committer->unmarked = false;
            pthread_mutex_unlock(&committer->mutex);
            /* A failure is poison, or is tried again after the next group. */
            (void)!wal__group_mark(committer, NULL);
            pthread_mutex_lock(&committer->mutex);
            end_turn(committer);
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
    if (pthread_create(&committer->spare_thread, NULL, wal__help_main,
                       committer) != 0) {
        pthread_mutex_lock(&committer->mutex);
        committer->stopping = true;
        pthread_cond_signal(&committer->work);
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
                                    const struct wal__turn_client *client,
                                    wal__secure *secure,
                                    const struct wal_open_options *options,
                                    struct wal_error *error)
{
    pthread_mutexattr_t adaptive;
    pthread_condattr_t attributes;
    uint32_t mark_ms = options->idle_mark_ms;

    memset(committer, 0, sizeof(*committer));
    committer->log = log;
    committer->client = *client;
    committer->secure = secure;
    committer->queue_limit =
        options->queue_limit != 0 ? options->queue_limit : DEFAULT_QUEUE;
    committer->idle_mark_ns =
        (uint64_t)(mark_ms != 0 ? mark_ms : DEFAULT_MARK_MS) * 1000000;
    wal__news_init(&committer->news);
    pthread_mutexattr_init(&adaptive);
    pthread_mutexattr_settype(&adaptive, PTHREAD_MUTEX_ADAPTIVE_NP);
    pthread_mutex_init(&committer->mutex, &adaptive);
    pthread_mutexattr_destroy(&adaptive);
    pthread_mutex_init(&committer->spare_mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&committer->work, &attributes);
    pthread_cond_init(&committer->quiet, NULL);
    pthread_cond_init(&committer->spare_work, NULL);
    pthread_condattr_destroy(&attributes);
    if (!log->env->io->threads || log->env->read_only) {
        return WAL_OK;
    }
    if (start_threads(committer) != WAL_OK) {
        wal__committer_deinit(committer);
        return wal__fail(error, WAL_ENOMEM, 0, NULL, 0,
                         "cannot start the committer thread");
    }
    return WAL_OK;
}

void wal__committer_stop(struct wal__committer *committer)
{
    if (!committer->running) {
        return;
    }
    pthread_mutex_lock(&committer->spare_mutex);
    pthread_mutex_lock(&committer->mutex);
    committer->stopping = true;
    pthread_cond_signal(&committer->work);
    pthread_cond_broadcast(&committer->quiet);
    pthread_cond_signal(&committer->spare_work);
    pthread_mutex_unlock(&committer->mutex);
    pthread_mutex_unlock(&committer->spare_mutex);
    atomic_store(&committer->log->shared->hurry, 1);
    pthread_join(committer->thread, NULL);
    pthread_join(committer->spare_thread, NULL);
    atomic_store(&committer->log->shared->hurry, 0);
    committer->running = false;
}

void wal__committer_deinit(struct wal__committer *committer)
{
    wal__news_deinit(&committer->news);
    pthread_mutex_destroy(&committer->mutex);
    pthread_mutex_destroy(&committer->spare_mutex);
    pthread_cond_destroy(&committer->work);
    pthread_cond_destroy(&committer->quiet);
    pthread_cond_destroy(&committer->spare_work);
}
