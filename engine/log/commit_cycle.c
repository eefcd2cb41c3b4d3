/*
 * commit_cycle.c - the leader's commit cycle (SPEC.md 4.3).
 *
 * Invariant: an operation that waits for a sync is completed after one that
 * covers it, or with that sync's failure. Called by the leader alone, with the
 * committer's mutex; the functions of the last two sections run without it.
 */
#include "engine/log/commit_cycle.h"

#include <sched.h>

#include "engine/base/error.h"
#include "engine/log/append_lock.h"
#include "engine/log/background.h"
#include "engine/log/group_builder.h"
#include "engine/log/idle_work.h"
#include "engine/log/wakeup.h"
#include "format/bytes/assert.h"

enum {
    CONTENTION_MIN = 2, /* up to here the first caller commits at once */
    GROUP_OPS_MIN = 16, /* of a group written while callers return */
    COMMIT_DELAY_NS_MAX = 200000, /* waiting for callers to return */
    GROUPS_MAX = 64,              /* that a leader writes for others */
    BURST_NS = 100000 /* between cycles: the append lock is retained */
};

bool wal__commit_cycle_is_contended(struct wal__committer *committer)
{
    return committer->running &&
           atomic_load(&committer->sync_waiters) > CONTENTION_MIN;
}

/* --- completion --------------------------------------------------------- */

static void complete_op(struct wal__committer *committer,
                        struct wal__wakeup *wakeup, struct wal__op *op)
{
    op->next = NULL;
    wal__content_guard_leave(&op->guard);
    if (op->status != WAL_OK) {
        wal__async_errors_record(&committer->async_errors, op);
    }
    wal__wakeup_add(wakeup, op);
}

/* has_async: one of the operations was submitted by wal_submit. */
static void end_wakeups(struct wal__committer *committer,
                        struct wal__wakeup *wakeup, bool has_async)
{
    wal__wakeup_end(wakeup);
    if (has_async) {
        wal__async_errors_signal(&committer->async_errors);
    }
}

/* --- writing ------------------------------------------------------------ */

/* Makes the blobs durable that the operations refer to, before any record
 * does: one sync for all, without the append lock. Fails the operations that
 * needed it when it fails. */
static void sync_list_dependencies(struct wal__committer *committer,
                                   struct wal__op *list)
{
    struct wal_error error = {.struct_size = sizeof(error)};
    enum wal_status status = WAL_OK;
    uint64_t end = 0;

    for (struct wal__op *op = list; op != NULL; op = op->next) {
        end = op->pack_end > end ? op->pack_end : end;
    }
    if (end != 0) {
        status =
            committer->sync_dependencies(committer->client.ctx, end, &error);
    }
    for (struct wal__op *op = list; status != WAL_OK && op != NULL;
         op = op->next) {
        if (op->pack_end != 0) {
            op->status = status;
            wal__error_copy(&op->error, &error);
        }
    }
}

/* Writes groups of the operations and completes those that wait for no sync;
 * returns the others. */
static struct wal__op *write_list(struct wal__committer *committer,
                                  struct wal__op *list)
{
    struct wal__op **at = &list;
    struct wal__wakeup wakeup;
    bool has_async = false;

    sync_list_dependencies(committer, list);
    wal__group_build(committer, list);
    wal__wakeup_begin(&wakeup, committer->log->env->io);
    while (*at != NULL) {
        struct wal__op *op = *at;

        if (op->durability == WAL_DURABLE && op->status == WAL_OK) {
            at = &op->next;
            continue;
        }
        *at = op->next;
        has_async |= op->async;
        complete_op(committer, &wakeup, op);
    }
    end_wakeups(committer, &wakeup, has_async);
    return list;
}

/* --- syncing ------------------------------------------------------------ */

/* Syncs what the operations of the list wait for, if it has any, and completes
 * them; returns their number. */
static uint32_t sync_list(struct wal__committer *committer,
                          struct wal__op *list)
{
    struct wal_error error = {.struct_size = sizeof(error)};
    enum wal_status status = WAL_OK;
    struct wal__wakeup wakeup;
    uint64_t position = 0;
    uint32_t count = 0;
    bool has_async = false;

    for (struct wal__op *op = list; op != NULL; op = op->next) {
        WAL__ASSERT(op->durability == WAL_DURABLE && op->status == WAL_OK);
        position = op->position > position ? op->position : position;
        count++;
    }
    if (count > 0) {
        status = wal__leader_sync(committer->log, &committer->client, position,
                                  &error);
    }
    if (status == WAL_OK) {
        atomic_fetch_add(&committer->acknowledged, count);
    }
    wal__wakeup_begin(&wakeup, committer->log->env->io);
    while (list != NULL) {
        struct wal__op *op = list;

        list = op->next;
        op->status = status;
        if (status != WAL_OK) {
            wal__error_copy(&op->error, &error);
        }
        has_async |= op->async;
        complete_op(committer, &wakeup, op);
    }
    end_wakeups(committer, &wakeup, has_async);
    return count;
}

/* --- the queue ---------------------------------------------------------- */

void wal__commit_cycle_end(struct wal__committer *committer)
{
    const struct wal__io *io = committer->log->env->io;
    uint64_t now = io->monotonic_ns(io->ctx);

    WAL__ASSERT(committer->has_leader);
    WAL__ASSERT(committer->completed <= committer->dequeued);
    if (now - committer->last_write_ns > BURST_NS) {
        wal__log_release_retained_lock(committer->log);
    }
    committer->last_write_ns = now;
    committer->has_leader = false;
    if (committer->first != NULL || wal__idle_work_is_overslept(committer)) {
        pthread_cond_signal(&committer->work_available);
    }
    pthread_cond_broadcast(&committer->state_changed);
}

/* Takes all staged operations, and decides whether the append lock is retained
 * after their group. */
static struct wal__op *dequeue_staged(struct wal__committer *committer)
{
    struct wal__op *list = committer->first;

    WAL__ASSERT((list == NULL) == (committer->staged_count == 0));
    WAL__ASSERT(committer->submitted - committer->dequeued ==
                committer->staged_count);
    WAL__ASSERT(committer->queued_count + committer->durable_count <=
                committer->staged_count);
    committer->first = NULL;
    committer->last = NULL;
    committer->staged_count = 0;
    committer->queued_count = 0;
    committer->retain_append_lock = committer->running &&
                                    committer->durable_count == 0 &&
                                    atomic_load(&committer->sync_waiters) == 0;
    committer->durable_count = 0;
    committer->dequeued = committer->submitted;
    pthread_cond_broadcast(&committer->state_changed); /* queue space */
    return list;
}

/* Waits until `count` operations are staged, or until the time `until`.
 * Releases the mutex meanwhile. */
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

/* --- the cycle ---------------------------------------------------------- */

/* Writes what is staged, releasing the mutex meanwhile. Appends the operations
 * that wait for a sync at *end, and returns the list's new end. */
static struct wal__op **write_staged(struct wal__committer *committer,
                                     struct wal__op **end)
{
    struct wal__op *list = dequeue_staged(committer);

    WAL__ASSERT(*end == NULL);
    if (list == NULL) {
        return end;
    }
    pthread_mutex_unlock(&committer->mutex);
    *end = write_list(committer, list);
    if (*end == NULL) {
        wal__background_request(committer);
    }
    while (*end != NULL) {
        end = &(*end)->next;
    }
    pthread_mutex_lock(&committer->mutex);
    return end;
}

/* After a group that needs no sync, writes what was staged meanwhile: all that
 * a group touches would be cold in another processor's cache. */
static void write_for_others(struct wal__committer *committer)
{
    struct wal__op *waiting = NULL;

    for (int i = 0; i < GROUPS_MAX && committer->first != NULL &&
                    committer->durable_count == 0;
         i++) {
        (void)write_staged(committer, &waiting);
        WAL__ASSERT(waiting == NULL);
    }
}

/* Syncs what the operations of the list wait for. Releases the mutex
 * meanwhile. */
static void sync_written(struct wal__committer *committer,
                         struct wal__op *waiting)
{
    pthread_mutex_unlock(&committer->mutex);
    wal__log_release_retained_lock(committer->log);
    atomic_store(&committer->sync_waiters, sync_list(committer, waiting));
    wal__background_request(committer);
    pthread_mutex_lock(&committer->mutex);
}

void wal__commit_cycle_run(struct wal__committer *committer,
                           uint32_t expected_ops)
{
    const struct wal__io *io = committer->log->env->io;
    uint64_t sync_ns = atomic_load(&committer->log->last_sync_ns);
    uint64_t until = 0;
    uint32_t left = committer->staged_count + expected_ops;
    struct wal__op *waiting = NULL;
    struct wal__op **end = &waiting;

    committer->has_leader = true;
    if (expected_ops > 0) {
        until = io->monotonic_ns(io->ctx) +
                (sync_ns < COMMIT_DELAY_NS_MAX ? sync_ns : COMMIT_DELAY_NS_MAX);
    }
    while (left > 0) {
        uint32_t staged;

        if (expected_ops > 0) {
            wait_for_followers(
                committer, left < GROUP_OPS_MIN ? left : GROUP_OPS_MIN, until);
        }
        staged = committer->staged_count;
        end = write_staged(committer, end);
        left = staged < left && io->monotonic_ns(io->ctx) < until
                   ? left - staged
                   : 0;
    }
    if (waiting != NULL) {
        sync_written(committer, waiting);
    } else {
        atomic_store(&committer->sync_waiters, 0);
        write_for_others(committer);
    }
    committer->completed = committer->dequeued;
    wal__commit_cycle_end(committer);
}
