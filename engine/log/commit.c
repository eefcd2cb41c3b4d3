/*
 * commit.c - group commit: from the staging of an operation to the wake-up of its caller (SPEC.md
 * 4.3). Callers encode and checksum in their threads; one leader at a time writes what all of them
 * staged, and syncs once for all.
 *
 *   submit: stage
 *     leader: one cycle
 *       dequeue all that is staged
 *       sync the pack up to the blobs that it names
 *       groups: begin (leader.c: lock, catch up, heal)
 *               for each operation: resolve, add its frames, apply
 *               write and publish (group.c)
 *               end
 *       sync what is waited for (sync.c)
 *       complete the operations, wake their callers
 *
 * The leader. A caller that finds the queue empty, no leader and no contention leads at once: a
 * single caller waits for no other thread. Otherwise its operation stays staged: the present leader
 * writes it if it needs no sync, or the committer thread leads for all that is staged. Without
 * threads (a simulated system) every cycle is led by a caller.
 *
 * Resolve and apply. Two callbacks are made for each operation: resolve decides whether it may be
 * appended, with everything applied that any process has published; the log client's apply adds
 * each of its records to the indexes, before the group is written. Append lock and state lock are
 * held from the first record that is applied until the group is published, so that no reader sees a
 * record that is not in the log. When the write fails, the indexes are rebuilt (needs_reload), the
 * log is healed, and the group is written anew: it was not published, so healing has not copied it.
 *
 * Contention. If one sync completed more than two operations, their callers are expected to return.
 * Nobody leads at once then: the committer thread waits for that number of operations, no longer
 * than a sync takes, and builds them in groups meanwhile, so that one sync covers all. While syncs
 * are fast, callers spin for their result, since waking all of them would take longer.
 *
 * Without a sync. The leader of a group that nobody waits to be synced writes what was staged
 * meanwhile too, and the process retains the append lock for the next leader, for a millisecond,
 * unless another process waits for it. A caller of WAL_WRITTEN looks for its result, then yields,
 * and then sleeps.
 *
 * The wake tree. The thread that completes operations wakes at most WAKEUP_ROOTS callers. Each of
 * them wakes up to two more before it returns, so that many processors share the waking of a large
 * group. A caller that sleeps on an operation when it is completed is in exactly one tree, and
 * wakes those below it.
 *
 * Two threads. The committer thread leads, releases a retained lock, and writes a commit mark when
 * nothing is written for a while, which makes durable what is not. The background thread
 * preallocates segments (SPEC.md 3.5), syncs what no caller waits for (4.2), and each second closes
 * what compactions replaced (3.9); no writer waits for it, except a rotation that finds
 * preallocation in progress.
 *
 * Invariants: the queue, the counts and has_leader change under `mutex` only, which is not held
 * while anything is written, synced or waited for. Requests to the background thread are read and
 * written under background_mutex, which it does not hold while it works. An operation that waits
 * for a sync is completed after one that covers it, or with that sync's failure. wake_next of an
 * operation is set before its state becomes WAL__OP_DONE, and is read by its waiter only after
 * that.
 */
#include "engine/log/commit.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include "engine/base/error.h"
#include "engine/base/system.h"
#include "engine/base/thread.h"
#include "engine/log/group.h"
#include "engine/log/leader.h"
#include "format/bytes/assert.h"

enum {
    DEFAULT_QUEUE = 256,
    DEFAULT_MARK_MS = 100,
    DEFAULT_DURABLE_MARK_MS = 5000, /* longer than between steps of an agent */
    RETAINED_NS = 1000000,          /* that an idle process retains the append lock */
    BURST_NS = 100000,              /* between cycles: the append lock is retained */
    CONTENTION_MIN = 2,             /* up to here the first caller commits at once */
    GROUP_OPS_MIN = 16,             /* of a group written while callers return */
    COMMIT_DELAY_NS_MAX = 200000,   /* waiting for callers to return */
    GROUPS_MAX = 64,                /* that a leader writes for others */
    GROUP_SIZE_MAX = 33 * 1024 * 1024,
    GROUP_OPS_MAX = WAL__COMMIT_SESSIONS_MAX / 2,
    OTHERS_MANY = 3,         /* times as many records by others as by this process */
    FAST_SYNC_NS = 400000,   /* up to here waiters spin before they sleep */
    SPIN_NS_MAX = 2000000,   /* for a result, under contention */
    WRITTEN_SPIN_NS = 50000, /* for a result that waits for no device */
    WRITTEN_LOOKS = 400,     /* for it, before the processor is yielded */
    RECHECK_NS = 1000000000, /* a sleep without a timeout */
    WAKEUP_ROOTS = 3,
    PREALLOC_PAUSE_US = 1000,
    CLOSE_REPLACED_S = 1 /* between two looks for files that were replaced */
};

/* Returns whether the last sync completed more than two durable operations, whose callers are then
 * expected to return. With or without the mutex. */
static bool is_contended(struct wal__committer *committer)
{
    return committer->running && atomic_load(&committer->sync_waiters) > CONTENTION_MIN;
}

/* --- building groups ---------------------------------------------------- */

/* Fails all operations of [first, end) that have not failed yet. */
static void set_missing_results(struct wal__op *first, const struct wal__op *end,
                                enum wal_status status, const struct wal_error *error)
{
    for (struct wal__op *op = first; op != end; op = op->next) {
        if (op->status == WAL_OK) {
            op->status = status;
            wal__error_copy(&op->error, error);
        }
    }
}

/* Catches up before the append lock is acquired, which other processes wait for. A failure recurs
 * under the lock, and is reported then. */
static void catch_up_before_lock(struct wal__committer *committer)
{
    struct wal__log *log = committer->log;

    if (atomic_load(&log->end) >= atomic_load(&log->shared->written)) {
        return;
    }
    committer->client.lock(committer->client.ctx);
    if (!log->needs_reload && wal__log_check_poison(log, NULL) == WAL_OK) {
        (void)!wal__log_catch_up(log, NULL);
    }
    committer->client.unlock(committer->client.ctx);
}

/* Adds to the sessions of a group: ascending, each once. */
static enum wal_status add_session(struct wal__buf *sessions, uint32_t session)
{
    uint32_t *numbers = (uint32_t *)(void *)sessions->data;
    size_t count = sessions->size / sizeof(session);
    size_t at = count;
    uint8_t *room;

    while (at > 0 && numbers[at - 1] > session) {
        at--;
    }
    if (at > 0 && numbers[at - 1] == session) {
        return WAL_OK;
    }
    if (wal__buf_reserve(sessions, sizeof(session), &room) != WAL_OK) {
        return WAL_ENOMEM;
    }
    numbers = (uint32_t *)(void *)sessions->data;
    memmove(numbers + at + 1, numbers + at, (count - at) * sizeof(session));
    WAL__ASSERT(at == 0 || numbers[at - 1] < session);
    WAL__ASSERT(at == count || numbers[at + 1] > session);
    numbers[at] = session;
    sessions->size += sizeof(session);
    return WAL_OK;
}

/* Adds the frames of a resolved operation to the group, and applies them. */
static enum wal_status add_op(struct wal__committer *committer, struct wal__group *group,
                              struct wal__buf *sessions, struct wal__op *op)
{
    struct wal__log *log = committer->log;
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < op->frame_count && status == WAL_OK; i++) {
        struct wal__op_frame *frame = &op->frames[i];
        uint8_t *bytes = op->bytes.data + frame->offset;
        struct wal__log_record record = {.frame = &frame->frame,
                                         .clock_ms = group->clock_ms,
                                         .version = log->tail_segment->header.version};

        if (frame->skipped) {
            continue;
        }
        WAL__ASSERT(frame->offset % 8 == 0 &&
                    frame->offset + wal__frame_total_size(frame->frame.stored_size) <=
                        op->bytes.size);
        record.payload.data = bytes + WAL__FRAME_SIZE;
        record.payload.size = frame->frame.stored_size;
        record.position = wal__position(log->tail_segment->id, wal__group_offset(group, log));
        status = wal__group_add(group, log, &frame->frame, bytes);
        if (status == WAL_OK) {
            status = add_session(sessions, frame->frame.session);
        }
        if (status == WAL_OK) {
            status = log->client.apply(log->client.ctx, &record);
        }
        op->written = true;
        if (frame->frame.type == WAL__FRAME_ENTRY) {
            op->result.sequence = frame->frame.sequence;
        }
    }
    group->durable |= op->written && op->durability == WAL_DURABLE;
    group->is_synced |= group->durable;
    return status;
}

/* Resolves the operations [first, *end) and writes those that are not refused as one group. Stops
 * before one for which damage was found: *end is that one, with WAL_ECORRUPT. WAL_EPOISONED: the
 * write failed, and they have no result yet. */
static enum wal_status write_group(struct wal__committer *committer, struct wal__op *first,
                                   struct wal__op **end, struct wal_error *error)
{
    struct wal__log *log = committer->log;
    enum wal_status status = WAL_OK;
    struct wal__group group;
    struct wal__buf *sessions = &committer->group_sessions;

    WAL__ASSERT(log->append_lock_held);
    WAL__ASSERT(log->pending_group == NULL);
    wal__group_init(&group, log);
    group.iov = committer->group_iov;
    group.iov.size = 0;
    sessions->size = 0;
    log->pending_group = &group;
    for (struct wal__op *op = first; op != *end; op = op->next) {
        if (op->status != WAL_OK) {
            continue;
        }
        op->next_sequence = group.next_sequence;
        op->written = false;
        wal__op_clear(op);
        op->status = op->resolve(committer->client.ctx, op);
        if (op->status == WAL_ECORRUPT) {
            *end = op;
            break;
        }
        if (op->status == WAL_OK) {
            status = add_op(committer, &group, sessions, op);
        }
        if (status != WAL_OK) {
            /* Records were applied that are not in the log. */
            log->needs_reload = true;
            wal__fail(error, status, "no memory");
            break;
        }
    }
    if (status == WAL_OK && group.frames > 0) {
        group.sessions = (const uint32_t *)(void *)sessions->data;
        group.session_count = (uint32_t)(sessions->size / sizeof(uint32_t));
        WAL__ASSERT(group.session_count <= WAL__COMMIT_SESSIONS_MAX);
        status = wal__group_write(&group, log, error);
        committer->needs_mark = true;
    }
    if (status != WAL_OK && status != WAL_EPOISONED) {
        set_missing_results(first, *end, status, error);
    }
    for (struct wal__op *op = first; op != *end; op = op->next) {
        op->position = atomic_load(&log->end);
    }
    log->pending_group = NULL;
    committer->group_iov = group.iov;
    return status == WAL_EPOISONED ? status : WAL_OK;
}

/* Returns the end of the operations from `first` that fit one group, at least one of them, and what
 * they need together. */
static struct wal__op *select_group(struct wal__op *first, struct wal__log_reservation *reservation)
{
    struct wal__op *op = first;
    uint32_t count = 0;

    memset(reservation, 0, sizeof(*reservation));
    reservation->uses_reserve = true;
    while (op != NULL && count < GROUP_OPS_MAX &&
           (count == 0 ||
            (reservation->size + op->reservation.size <= GROUP_SIZE_MAX &&
             reservation->sessions + op->reservation.sessions <= WAL__COMMIT_SESSIONS_MAX))) {
        reservation->size += op->reservation.size;
        reservation->frames += op->reservation.frames;
        reservation->sessions += op->reservation.sessions;
        reservation->texts += op->reservation.texts;
        reservation->uses_reserve &= op->reservation.uses_reserve;
        count++;
        op = op->next;
    }
    WAL__ASSERT(op != first && count <= GROUP_OPS_MAX);
    return op;
}

/* The operations that are written between leader_begin and leader_end. */
struct building {
    struct wal__op *first;          /* of those without a result */
    const struct wal__op *in_doubt; /* end of those whose write failed, or
                                     * `first` */
    uint64_t looked;                /* for `first` (wal__core_look_again) */
};

/* Decides about the operation for which damage was found: it is resolved again when what it read
 * may be of files that compaction has replaced. */
static enum wal_status look_again(struct wal__committer *committer, struct building *building,
                                  struct wal_error *error)
{
    bool again = false;
    enum wal_status status =
        committer->look_again(committer->client.ctx, &building->looked, &again, error);

    if (status != WAL_OK || again) {
        building->first->status = WAL_OK;
    } else {
        building->looked = 0;
    }
    return status;
}

/* Writes one group. WAL_EPOISONED: what building->first begins with has no result, and the log must
 * be healed. */
static enum wal_status build_one(struct wal__committer *committer, struct building *building,
                                 struct wal_error *error)
{
    struct wal__log_reservation reservation;
    struct wal__op *end = select_group(building->first, &reservation);
    const struct wal__op *selected = end;
    enum wal_status status = wal__log_check_poison(committer->log, error);

    building->in_doubt = building->first;
    if (status == WAL_OK) {
        status = wal__leader_reserve(committer->log, &reservation, error);
    }
    if (status == WAL_OK) {
        status = write_group(committer, building->first, &end, error);
        building->in_doubt = status == WAL_OK ? building->first : end;
    }
    if (status != WAL_OK) {
        return status;
    }
    if (building->first != end) {
        building->looked = 0;
    }
    building->first = end;
    building->in_doubt = end;
    return end != selected ? look_again(committer, building, error) : WAL_OK;
}

/*
 * Heals the log after a write or sync failed, by acquiring the append lock again. Where a write
 * failed, its group was not published: after healing it is not in the log, and is written anew.
 * Sets all results on failure, and holds nothing then.
 */
static bool begin_again(struct wal__committer *committer, struct building *building,
                        const struct wal_error *cause)
{
    struct wal_error healing = {.struct_size = sizeof(healing)};
    struct wal_error error = {.struct_size = sizeof(error)};
    struct wal__log *log = committer->log;
    enum wal_status status;

    wal__leader_end(log, &committer->client);
    status = wal__leader_begin(log, &committer->client, true, &healing);
    if (status == WAL_OK) {
        return true;
    }
    if (building->in_doubt != building->first) {
        set_missing_results(building->first, building->in_doubt,
                            wal__leader_fail_unknown(cause, &healing, &error), &error);
    }
    set_missing_results(building->first, NULL, status, &healing);
    return false;
}

/* Writes groups until all operations have a result. Returns false when the locks are not held any
 * more. */
static bool build_all(struct wal__committer *committer, struct wal__op *first)
{
    struct building building = {first, first, 0};
    struct wal_error error = {.struct_size = sizeof(error)};
    enum wal_status status = WAL_OK;
    int attempts = 0;

    while (status == WAL_OK && building.first != NULL) {
        status = build_one(committer, &building, &error);
        if (status == WAL_EPOISONED && attempts++ < WAL__HEAL_ATTEMPTS) {
            if (!begin_again(committer, &building, &error)) {
                return false;
            }
            status = WAL_OK;
        } else if (status == WAL_EPOISONED) {
            const struct wal_error again = {.text = "it fails repeatedly"};

            status = wal__leader_fail_unknown(&error, &again, &error);
        }
    }
    set_missing_results(building.first, NULL, status, &error);
    return true;
}

/*
 * Acquires the append lock, catches up, resolves the operations of the list
 * `first`, and writes them as one group, or as several where they do not fit
 * one. Sets status and position of each; completes none and syncs none.
 */
static void build_groups(struct wal__committer *committer, struct wal__op *first)
{
    struct wal__log *log = committer->log;
    struct wal_error error = {.struct_size = sizeof(error)};
    enum wal_status status;
    uint64_t others;

    catch_up_before_lock(committer);
    status = wal__leader_begin(log, &committer->client, true, &error);
    if (status != WAL_OK) {
        set_missing_results(first, NULL, status, &error);
        return;
    }
    WAL__ASSERT(log->append_lock_held);
    others = log->last_sequence - committer->own_sequence;
    if (!build_all(committer, first)) {
        return;
    }
    atomic_store(&committer->is_outnumbered,
                 others > OTHERS_MANY * (log->last_sequence - committer->own_sequence - others));
    committer->own_sequence = log->last_sequence;
    if (committer->retain_append_lock && wal__log_check_poison(log, NULL) == WAL_OK) {
        wal__leader_end_retaining_lock(log, &committer->client);
    } else {
        wal__leader_end(log, &committer->client);
    }
}

/* --- completing operations ---------------------------------------------- */

/* The callers to wake, once the operations of a list are completed. */
struct wakeup {
    const struct wal__io *io;
    const uint32_t *roots[WAKEUP_ROOTS]; /* futex words, oldest first */
    uint32_t count;
    bool has_async; /* an operation was submitted by wal_submit */
};

/* Completes an operation, whose status and results are set, and releases it: it must not be used
 * afterwards. */
static void complete_op(struct wal__committer *committer, struct wakeup *wakeup, struct wal__op *op)
{
    const uint32_t *state = (const uint32_t *)&op->state;
    uint32_t before;

    WAL__ASSERT(wakeup->count <= WAKEUP_ROOTS);
    WAL__ASSERT(op->wake_next[0] == NULL && op->wake_next[1] == NULL);
    op->next = NULL;
    wal__content_guard_leave(&op->guard);
    if (op->status != WAL_OK) {
        wal__async_errors_record(&committer->async_errors, op);
    }
    wakeup->has_async |= op->async;
    if (wakeup->count == WAKEUP_ROOTS) {
        op->wake_next[0] = wakeup->roots[0];
        op->wake_next[1] = wakeup->roots[1];
    }
    before = atomic_exchange(&op->state, WAL__OP_DONE);
    WAL__ASSERT(before != WAL__OP_DONE);
    if (before == WAL__OP_HAS_WAITER) {
        if (wakeup->count == WAKEUP_ROOTS) {
            wakeup->roots[0] = wakeup->roots[2];
            wakeup->count = 1;
        }
        wakeup->roots[wakeup->count] = state;
        wakeup->count++;
    }
    wal__op_release(op);
}

/* Wakes the roots, and signals the completion descriptor. */
static void end_wakeups(struct wal__committer *committer, const struct wakeup *wakeup)
{
    for (uint32_t i = 0; i < wakeup->count; i++) {
        wakeup->io->futex_wake(wakeup->io->ctx, wakeup->roots[i], UINT32_MAX);
    }
    if (wakeup->has_async) {
        wal__async_errors_signal(&committer->async_errors);
    }
}

/* --- when idle work is due ---------------------------------------------- */

/*
 * Returns the monotonic time at which the committer thread is to release the append lock that the
 * process retains, or else to write a commit mark; UINT64_MAX: neither. With the mutex.
 */
static uint64_t idle_work_due_ns(const struct wal__committer *committer)
{
    const struct wal__log *log = committer->log;

    if (log->append_lock_retained) {
        return committer->last_write_ns + RETAINED_NS;
    }
    if (!committer->needs_mark) {
        return UINT64_MAX;
    }
    /* A mark makes durable what is not. Otherwise the next group names the durable end as the mark
     * would, and usually comes before it. */
    return committer->last_write_ns + (wal__log_is_durable(log, atomic_load(&log->end))
                                           ? committer->durable_mark_ns
                                           : committer->idle_mark_ns);
}

/* Returns whether it is due before the committer thread wakes up, which may sleep until the mark of
 * an end that was durable when it fell asleep. */
static bool is_overslept(const struct wal__committer *committer)
{
    return idle_work_due_ns(committer) < committer->sleeps_until_ns;
}

/* --- the background thread ---------------------------------------------- */

/* Returns the time of the next look for files that were replaced. */
static struct timespec next_look(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    now.tv_sec += CLOSE_REPLACED_S;
    return now;
}

static bool is_past(const struct timespec *time)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec > time->tv_sec ||
           (now.tv_sec == time->tv_sec && now.tv_nsec >= time->tv_nsec);
}

/* Requests what the groups just written make necessary. Only the leader calls this, without the
 * mutex. */
static void request_background_work(struct wal__committer *committer)
{
    struct wal__prealloc_job job;
    /* The leader alone changes prealloc_tail_id. */
    bool prealloc = committer->log->tail_segment != NULL &&
                    committer->prealloc_tail_id != committer->log->tail_segment->id &&
                    wal__prealloc_is_needed(committer->log, &job);
    bool needs_sync = wal__log_needs_background_sync(committer->log);

    if (!prealloc && !needs_sync) {
        return;
    }
    WAL__ASSERT(!prealloc || job.id > committer->log->tail_segment->id);
    pthread_mutex_lock(&committer->background_mutex);
    if (prealloc) {
        committer->prealloc_tail_id = committer->log->tail_segment->id;
        committer->prealloc_job = job;
        committer->prealloc_requested = true;
    }
    committer->sync_requested |= needs_sync;
    if (committer->prealloc_requested || committer->sync_requested) {
        pthread_cond_signal(&committer->background_work);
    }
    pthread_mutex_unlock(&committer->background_mutex);
}

static void *background_main(void *arg)
{
    struct wal__committer *committer = arg;
    struct timespec look = next_look();

    wal__system_name_thread("wal-background");
    pthread_mutex_lock(&committer->background_mutex);
    while (!committer->stopping) {
        struct wal__prealloc_job job = committer->prealloc_job;
        bool prealloc = committer->prealloc_requested;

        if (is_past(&look)) {
            pthread_mutex_unlock(&committer->background_mutex);
            committer->close_replaced(committer->client.ctx);
            look = next_look();
            pthread_mutex_lock(&committer->background_mutex);
            continue;
        }
        if (!prealloc && !committer->sync_requested) {
            wal__system_cond_wait(&committer->background_work, &committer->background_mutex, &look);
            continue;
        }
        committer->prealloc_requested = false;
        committer->sync_requested = false;
        pthread_mutex_unlock(&committer->background_mutex);
        wal__log_background_sync(committer->log);
        if (prealloc) {
            /* After a failure the rotation makes a segment, and reports why it cannot. */
            (void)!wal__prealloc_create(committer->log, &job, PREALLOC_PAUSE_US, NULL);
        }
        pthread_mutex_lock(&committer->background_mutex);
    }
    pthread_mutex_unlock(&committer->background_mutex);
    return NULL;
}

/* --- the cycle ---------------------------------------------------------- */

/* Takes all staged operations, and decides whether the append lock is retained after their
 * group. */
static struct wal__op *dequeue_staged(struct wal__committer *committer)
{
    struct wal__op *list = committer->first;

    WAL__ASSERT((list == NULL) == (committer->staged_count == 0));
    WAL__ASSERT(committer->submitted - committer->dequeued == committer->staged_count);
    WAL__ASSERT(committer->queued_count + committer->durable_count <= committer->staged_count);
    committer->first = NULL;
    committer->last = NULL;
    committer->staged_count = 0;
    committer->queued_count = 0;
    committer->retain_append_lock = committer->running && committer->durable_count == 0 &&
                                    atomic_load(&committer->sync_waiters) == 0;
    committer->durable_count = 0;
    committer->dequeued = committer->submitted;
    pthread_cond_broadcast(&committer->state_changed); /* queue space */
    return list;
}

/* Makes the blobs durable that the operations refer to, before any record does: one sync for all,
 * without the append lock. Fails the operations that needed it when it fails. */
static void sync_list_dependencies(struct wal__committer *committer, struct wal__op *list)
{
    struct wal_error error = {.struct_size = sizeof(error)};
    enum wal_status status = WAL_OK;
    uint64_t end = 0;

    for (struct wal__op *op = list; op != NULL; op = op->next) {
        end = op->pack_end > end ? op->pack_end : end;
    }
    if (end != 0) {
        status = committer->sync_dependencies(committer->client.ctx, end, &error);
    }
    for (struct wal__op *op = list; status != WAL_OK && op != NULL; op = op->next) {
        if (op->pack_end != 0) {
            op->status = status;
            wal__error_copy(&op->error, &error);
        }
    }
}

/* Writes groups of the operations and completes those that wait for no sync; returns the others. */
static struct wal__op *write_list(struct wal__committer *committer, struct wal__op *list)
{
    struct wal__op **at = &list;
    struct wakeup wakeup = {.io = committer->log->env->io};

    sync_list_dependencies(committer, list);
    build_groups(committer, list);
    while (*at != NULL) {
        struct wal__op *op = *at;

        if (op->durability == WAL_DURABLE && op->status == WAL_OK) {
            at = &op->next;
            continue;
        }
        *at = op->next;
        complete_op(committer, &wakeup, op);
    }
    end_wakeups(committer, &wakeup);
    return list;
}

/* Writes what is staged, releasing the mutex meanwhile. Appends the operations that wait for a sync
 * at *end, and returns the list's new end. */
static struct wal__op **write_staged(struct wal__committer *committer, struct wal__op **end)
{
    struct wal__op *list = dequeue_staged(committer);

    WAL__ASSERT(*end == NULL);
    if (list == NULL) {
        return end;
    }
    pthread_mutex_unlock(&committer->mutex);
    *end = write_list(committer, list);
    if (*end == NULL) {
        request_background_work(committer);
    }
    while (*end != NULL) {
        end = &(*end)->next;
    }
    pthread_mutex_lock(&committer->mutex);
    return end;
}

/* After a group that needs no sync, writes what was staged meanwhile: all that a group touches
 * would be cold in another processor's cache. */
static void write_for_others(struct wal__committer *committer)
{
    struct wal__op *waiting = NULL;

    for (int i = 0; i < GROUPS_MAX && committer->first != NULL && committer->durable_count == 0;
         i++) {
        (void)write_staged(committer, &waiting);
        WAL__ASSERT(waiting == NULL);
    }
}

/* Waits until `count` operations are staged, or until the time `until`. Releases the mutex
 * meanwhile. */
static void wait_for_followers(struct wal__committer *committer, uint32_t count, uint64_t until)
{
    const struct wal__io *io = committer->log->env->io;

    pthread_mutex_unlock(&committer->mutex);
    while (committer->staged_count < count && io->monotonic_ns(io->ctx) < until) {
        sched_yield();
    }
    pthread_mutex_lock(&committer->mutex);
}

/* Syncs what the operations of the list wait for, if it has any, and completes them; returns their
 * number. */
static uint32_t sync_list(struct wal__committer *committer, struct wal__op *list)
{
    struct wal_error error = {.struct_size = sizeof(error)};
    enum wal_status status = WAL_OK;
    struct wakeup wakeup = {.io = committer->log->env->io};
    uint64_t position = 0;
    uint32_t count = 0;

    for (struct wal__op *op = list; op != NULL; op = op->next) {
        WAL__ASSERT(op->durability == WAL_DURABLE && op->status == WAL_OK);
        position = op->position > position ? op->position : position;
        count++;
    }
    if (count > 0) {
        status = wal__leader_sync(committer->log, &committer->client, position, &error);
    }
    if (status == WAL_OK) {
        atomic_fetch_add(&committer->acknowledged, count);
    }
    while (list != NULL) {
        struct wal__op *op = list;

        list = op->next;
        op->status = status;
        if (status != WAL_OK) {
            wal__error_copy(&op->error, &error);
        }
        complete_op(committer, &wakeup, op);
    }
    end_wakeups(committer, &wakeup);
    return count;
}

/* Syncs what the operations of the list wait for. Releases the mutex meanwhile. */
static void sync_written(struct wal__committer *committer, struct wal__op *waiting)
{
    pthread_mutex_unlock(&committer->mutex);
    wal__log_release_retained_lock(committer->log);
    atomic_store(&committer->sync_waiters, sync_list(committer, waiting));
    request_background_work(committer);
    pthread_mutex_lock(&committer->mutex);
}

/* Ends the leader's role. With the mutex. */
static void end_cycle(struct wal__committer *committer)
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
    if (committer->first != NULL || is_overslept(committer)) {
        pthread_cond_signal(&committer->work_available);
    }
    pthread_cond_broadcast(&committer->state_changed);
}

/*
 * Leads one cycle for everything that is staged. `expected_ops` more are expected to follow one
 * after the other: the leader waits for them at most as long as a sync takes, and writes them
 * meanwhile in groups, so that one sync covers all. With the mutex, which is released while the
 * cycle writes and syncs; no other thread leads.
 */
static void run_cycle(struct wal__committer *committer, uint32_t expected_ops)
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
            wait_for_followers(committer, left < GROUP_OPS_MIN ? left : GROUP_OPS_MIN, until);
        }
        staged = committer->staged_count;
        end = write_staged(committer, end);
        left = staged < left && io->monotonic_ns(io->ctx) < until ? left - staged : 0;
    }
    if (waiting != NULL) {
        sync_written(committer, waiting);
    } else {
        atomic_store(&committer->sync_waiters, 0);
        write_for_others(committer);
    }
    committer->completed = committer->dequeued;
    end_cycle(committer);
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
static enum wal_status wait_for_queue_space(struct wal__committer *committer, bool no_wait,
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
            run_cycle(committer, 0);
        } else {
            pthread_cond_wait(&committer->state_changed, &committer->mutex);
        }
    }
    return WAL_OK;
}

enum wal_status wal__committer_submit(struct wal__committer *committer, struct wal__op *op,
                                      bool no_wait, struct wal_error *error)
{
    bool is_queued = op->durability == WAL_QUEUED;
    enum wal_status status =
        is_queued ? wal__async_errors_take(&committer->async_errors, error) : WAL_OK;
    bool is_inline;

    WAL__ASSERT(op->frame_count == 0 || op->reservation.size > 0);
    if (status != WAL_OK) {
        return status;
    }
    pthread_mutex_lock(&committer->mutex);
    status = is_queued ? wait_for_queue_space(committer, no_wait, error) : WAL_OK;
    if (status != WAL_OK) {
        pthread_mutex_unlock(&committer->mutex);
        return status;
    }
    wal__op_retain(op);
    enqueue(committer, op);
    is_inline = !is_queued && (!committer->running || (committer->staged_count == 1 && !op->async &&
                                                       !is_contended(committer)));
    if (is_inline && !committer->has_leader) {
        run_cycle(committer, 0);
    } else if (!committer->has_leader) {
        pthread_cond_signal(&committer->work_available);
    }
    pthread_mutex_unlock(&committer->mutex);
    if (op->durability == WAL_WRITTEN) {
        wal__write_map_prepare(&committer->log->write_map, committer->log->env->io);
    }
    return WAL_OK;
}

uint32_t wal__committer_queued_count(struct wal__committer *committer)
{
    uint32_t queued;

    pthread_mutex_lock(&committer->mutex);
    queued = committer->queued_count;
    pthread_mutex_unlock(&committer->mutex);
    return queued;
}

/* --- waiting for a result ----------------------------------------------- */

/* How long to spin for a result before sleeping: under contention, waking all sleepers takes longer
 * than a fast sync. */
static uint64_t spin_budget_ns(struct wal__committer *committer, const struct wal__op *op)
{
    bool is_quick = atomic_load(&committer->log->last_sync_ns) < FAST_SYNC_NS;
    uint64_t budget = 0;

    if (op->durability == WAL_WRITTEN && !op->async) {
        budget = WRITTEN_SPIN_NS;
    } else if (is_contended(committer) && is_quick && !atomic_load(&committer->is_outnumbered)) {
        budget = SPIN_NS_MAX;
    }
    /* A thread of a real-time class that only yields would keep the kernel's threads from the sync
     * that it waits for. */
    return budget > 0 && !wal__system_is_real_time() ? budget : 0;
}

/* Returns whether a leader of another thread writes the operation soon: that takes less time than
 * to yield the processor. */
static bool is_written_soon(const struct wal__op *op)
{
    for (int i = 0; i < WRITTEN_LOOKS; i++) {
        if (atomic_load_explicit(&op->state, memory_order_acquire) == WAL__OP_DONE) {
            return true;
        }
        wal__cpu_pause();
    }
    return false;
}

/* Spins with sched_yield() for at most spin_ns; returns whether the operation is done. For results
 * that come sooner than a sleeping thread wakes up. */
static bool spin_until_done(const struct wal__io *io, const struct wal__op *op, uint64_t spin_ns)
{
    uint64_t until = io->monotonic_ns(io->ctx) + spin_ns;

    while (atomic_load(&op->state) != WAL__OP_DONE) {
        if (io->monotonic_ns(io->ctx) >= until) {
            return false;
        }
        sched_yield();
    }
    return true;
}

/* Records that a thread sleeps, or no longer does; false when the state is not
 * `from`: the operation is done. */
static bool try_set_state(struct wal__op *op, uint32_t from, uint32_t to)
{
    return atomic_compare_exchange_strong(&op->state, &from, to);
}

/* Sleeps until the operation is done; false after timeout_ms, which is infinite when negative. Then
 * wakes those below it in the tree. */
static bool sleep_until_done(const struct wal__io *io, struct wal__op *op, int64_t timeout_ms)
{
    uint64_t begin = timeout_ms >= 0 ? io->monotonic_ns(io->ctx) : 0;
    uint64_t left = RECHECK_NS;

    if (!try_set_state(op, WAL__OP_PENDING, WAL__OP_HAS_WAITER)) {
        return true;
    }
    while (atomic_load(&op->state) != WAL__OP_DONE) {
        if (timeout_ms >= 0) {
            uint64_t elapsed = io->monotonic_ns(io->ctx) - begin;

            if (elapsed >= (uint64_t)timeout_ms * 1000000 &&
                try_set_state(op, WAL__OP_HAS_WAITER, WAL__OP_PENDING)) {
                return false;
            }
            left = (uint64_t)timeout_ms * 1000000;
            left = left > elapsed ? left - elapsed : 0;
        }
        io->futex_wait(io->ctx, (const uint32_t *)&op->state, WAL__OP_HAS_WAITER, left);
    }
    WAL__ASSERT(op->wake_next[0] != NULL || op->wake_next[1] == NULL);
    for (int i = 0; i < 2 && op->wake_next[i] != NULL; i++) {
        io->futex_wake(io->ctx, op->wake_next[i], UINT32_MAX);
    }
    return true;
}

enum wal_status wal__committer_wait(struct wal__committer *committer, struct wal__op *op,
                                    int64_t timeout_ms)
{
    while (!committer->running && atomic_load(&op->state) != WAL__OP_DONE) {
        pthread_mutex_lock(&committer->mutex);
        if (!committer->has_leader && committer->first != NULL) {
            run_cycle(committer, 0);
        }
        pthread_mutex_unlock(&committer->mutex);
    }
    if (atomic_load(&op->state) == WAL__OP_DONE ||
        (timeout_ms < 0 && op->durability == WAL_WRITTEN && is_written_soon(op))) {
        return op->status;
    }
    if (timeout_ms < 0 &&
        spin_until_done(committer->log->env->io, op, spin_budget_ns(committer, op))) {
        return op->status;
    }
    if (!sleep_until_done(committer->log->env->io, op, timeout_ms)) {
        return WAL_EBUSY;
    }
    return op->status;
}

enum wal_status wal__committer_flush(struct wal__committer *committer, struct wal_error *error)
{
    uint64_t submitted;

    pthread_mutex_lock(&committer->mutex);
    submitted = committer->submitted;
    while (committer->completed < submitted) {
        if (!committer->has_leader) {
            run_cycle(committer, 0);
        } else {
            pthread_cond_wait(&committer->state_changed, &committer->mutex);
        }
    }
    pthread_mutex_unlock(&committer->mutex);
    return wal__async_errors_take(&committer->async_errors, error);
}

/* --- leading for something else ----------------------------------------- */

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
    end_cycle(committer);
    pthread_mutex_unlock(&committer->mutex);
}

enum wal_status wal__committer_sync(struct wal__committer *committer, struct wal_error *error)
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
        status =
            wal__leader_sync(log, &committer->client, end, async_status == WAL_OK ? error : NULL);
        wal__committer_resume(committer);
    }
    return async_status == WAL_OK ? status : async_status;
}

/* The leader calls it, without the mutex. */
static enum wal_status write_mark(struct wal__committer *committer, bool allow_heal,
                                  struct wal_error *error)
{
    enum wal_status status =
        wal__leader_write_mark(committer->log, &committer->client, allow_heal, error);

    committer->needs_mark = false;
    return status;
}

enum wal_status wal__committer_write_mark(struct wal__committer *committer, struct wal_error *error)
{
    enum wal_status status;

    wal__committer_pause(committer);
    status = write_mark(committer, true, error);
    wal__committer_resume(committer);
    return status;
}

enum wal_status wal__committer_rotate(struct wal__committer *committer, struct wal_error *error)
{
    enum wal_status status;

    wal__committer_pause(committer);
    status = wal__leader_rotate(committer->log, &committer->client, error);
    wal__committer_resume(committer);
    return status;
}

enum wal_status wal__committer_call(struct wal__committer *committer, wal__leader_fn *fn, void *ctx,
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
        committer->last_write_ns = io->monotonic_ns(io->ctx) + committer->idle_mark_ns;
    }
    if (!committer->has_leader && is_overslept(committer)) {
        pthread_cond_signal(&committer->work_available);
    }
    pthread_mutex_unlock(&committer->mutex);
}

/* --- the committer thread ----------------------------------------------- */

/* Sleeps until there may be work; returns whether something is due (idle_work_due_ns). With the
 * mutex. */
static bool wait_for_work(struct wal__committer *committer)
{
    const struct wal__io *io = committer->log->env->io;
    uint64_t due = idle_work_due_ns(committer);
    const struct timespec until = {(time_t)(due / 1000000000), (long)(due % 1000000000)};

    if (io->monotonic_ns(io->ctx) >= due) {
        return true;
    }
    committer->sleeps_until_ns = due;
    if (due == UINT64_MAX) {
        pthread_cond_wait(&committer->work_available, &committer->mutex);
    } else {
        wal__system_cond_wait(&committer->work_available, &committer->mutex, &until);
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
        /* After a failure the log is poisoned, or the mark is written after the next group. */
        (void)!write_mark(committer, false, NULL);
    }
}

static void *committer_main(void *arg)
{
    struct wal__committer *committer = arg;

    wal__system_name_thread("wal-commit");
    pthread_mutex_lock(&committer->mutex);
    while (!committer->stopping || committer->first != NULL) {
        if (committer->has_leader) {
            pthread_cond_wait(&committer->state_changed, &committer->mutex);
        } else if (committer->first != NULL || is_contended(committer)) {
            run_cycle(committer, committer->sync_waiters);
        } else if (wait_for_work(committer) && !committer->has_leader) {
            committer->has_leader = true;
            pthread_mutex_unlock(&committer->mutex);
            do_due(committer);
            pthread_mutex_lock(&committer->mutex);
            end_cycle(committer);
        }
    }
    pthread_mutex_unlock(&committer->mutex);
    return NULL;
}

/* --- beginning and end -------------------------------------------------- */

static enum wal_status start_threads(struct wal__committer *committer)
{
    if (wal__thread_start(&committer->background_thread, background_main, committer) != 0) {
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

enum wal_status wal__committer_init(struct wal__committer *committer, struct wal__log *log,
                                    const struct wal__committer_client *client,
                                    const struct wal_open_options *options, struct wal_error *error)
{
    uint32_t mark_ms = options->idle_mark_ms;

    memset(committer, 0, sizeof(*committer));
    committer->log = log;
    committer->client = client->leader;
    committer->sync_dependencies = client->sync_dependencies;
    committer->close_replaced = client->close_replaced;
    committer->look_again = client->look_again;
    committer->queue_limit = options->queue_limit != 0 ? options->queue_limit : DEFAULT_QUEUE;
    committer->idle_mark_ns = (uint64_t)(mark_ms != 0 ? mark_ms : DEFAULT_MARK_MS) * 1000000;
    committer->durable_mark_ns =
        (uint64_t)(mark_ms != 0 ? mark_ms : DEFAULT_DURABLE_MARK_MS) * 1000000;
    wal__buf_init(&committer->group_iov, log->env->heap);
    wal__buf_init(&committer->group_sessions, log->env->heap);
    wal__async_errors_init(&committer->async_errors);
    wal__system_mutex_init(&committer->mutex);
    pthread_mutex_init(&committer->background_mutex, NULL);
    wal__system_cond_init(&committer->work_available);
    pthread_cond_init(&committer->state_changed, NULL);
    wal__system_cond_init(&committer->background_work);
    if (!log->env->io->threads) {
        return WAL_OK;
    }
    if (start_threads(committer) != WAL_OK) {
        wal__committer_deinit(committer);
        return wal__fail(error, WAL_ENOMEM, "cannot start the committer's threads");
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
