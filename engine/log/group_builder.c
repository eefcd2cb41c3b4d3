/*
 * group_builder.c - turning operations into groups of the log (SPEC.md 4.3).
 *
 * Two callbacks are made for each operation: resolve decides whether it may be
 * appended, and the log client's apply adds each of its records to the
 * indexes, before the group is written.
 *
 * Invariant: append lock and state lock are held from the first record that is
 * applied until the group is published, so that no reader sees a record that is
 * not in the log.
 */
#include "engine/log/group_builder.h"

#include <string.h>

#include "engine/base/error.h"
#include "engine/log/group.h"
#include "format/bytes/assert.h"

enum {
    OTHERS_MANY = 3, /* times as many records by others as by this process */
    GROUP_SIZE_MAX = 33 * 1024 * 1024,
    GROUP_OPS_MAX = WAL__COMMIT_SESSIONS_MAX / 2
};

static void set_result(struct wal__op *op, enum wal_status status,
                       const struct wal_error *error)
{
    op->status = status;
    if (error != NULL) {
        wal__error_copy(&op->error, error);
    }
}

/* Fails all operations of [first, end) that have not failed yet. */
static void set_missing_results(struct wal__op *first,
                                const struct wal__op *end,
                                enum wal_status status,
                                const struct wal_error *error)
{
    for (struct wal__op *op = first; op != end; op = op->next) {
        if (op->status == WAL_OK) {
            set_result(op, status, error);
        }
    }
}

/* Catches up before the append lock is acquired, which other processes wait
 * for. A failure recurs under the lock, and is reported then. */
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
static enum wal_status add_op(struct wal__committer *committer,
                              struct wal__group *group,
                              struct wal__buf *sessions, struct wal__op *op)
{
    struct wal__log *log = committer->log;
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < op->frame_count && status == WAL_OK; i++) {
        struct wal__op_frame *frame = &op->frames[i];
        uint8_t *bytes = op->bytes.data + frame->offset;
        struct wal__log_record record = {.frame = &frame->frame,
                                         .clock_ms = group->clock_ms,
                                         .version =
                                             log->tail_segment->header.version};

        if (frame->skipped) {
            continue;
        }
        WAL__ASSERT(frame->offset % 8 == 0 &&
                    frame->offset +
                            wal__frame_total_size(frame->frame.stored_size) <=
                        op->bytes.size);
        record.payload.data = bytes + WAL__FRAME_SIZE;
        record.payload.size = frame->frame.stored_size;
        record.position =
            wal__position(log->tail_segment->id, wal__group_offset(group, log));
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

/* Resolves the operations [first, *end) and writes those that are not refused
 * as one group. Stops before one for which damage was found: *end is that one,
 * with WAL_ECORRUPT. WAL_EPOISONED: the write failed, and they have no result
 * yet. */
static enum wal_status write_group(struct wal__committer *committer,
                                   struct wal__op *first, struct wal__op **end,
                                   struct wal_error *error)
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

/* Returns the end of the operations from `first` that fit one group, at least
 * one of them, and what they need together. */
static struct wal__op *select_group(struct wal__op *first,
                                    struct wal__log_reservation *reservation)
{
    struct wal__op *op = first;
    uint32_t count = 0;

    memset(reservation, 0, sizeof(*reservation));
    reservation->uses_reserve = true;
    while (op != NULL && count < GROUP_OPS_MAX &&
           (count == 0 ||
            (reservation->size + op->reservation.size <= GROUP_SIZE_MAX &&
             reservation->sessions + op->reservation.sessions <=
                 WAL__COMMIT_SESSIONS_MAX))) {
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

/* Decides about the operation for which damage was found: it is resolved again
 * when what it read may be of files that compaction has replaced. */
static enum wal_status look_again(struct wal__committer *committer,
                                  struct building *building,
                                  struct wal_error *error)
{
    bool again = false;
    enum wal_status status = committer->look_again(
        committer->client.ctx, &building->looked, &again, error);

    if (status != WAL_OK || again) {
        building->first->status = WAL_OK;
    } else {
        building->looked = 0;
    }
    return status;
}

/* Writes one group. WAL_EPOISONED: what building->first begins with has no
 * result, and the log must be healed. */
static enum wal_status build_one(struct wal__committer *committer,
                                 struct building *building,
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
 * Heals the log after a write or sync failed, by acquiring the append lock
 * again. Where a write failed, its group was not published: after healing it is
 * not in the log, and is written anew. Sets all results on failure, and holds
 * nothing then.
 */
static bool begin_again(struct wal__committer *committer,
                        struct building *building,
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
                            wal__leader_fail_unknown(cause, &healing, &error),
                            &error);
    }
    set_missing_results(building->first, NULL, status, &healing);
    return false;
}

/* Writes groups until all operations have a result. Returns false when the
 * locks are not held any more. */
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

void wal__group_build(struct wal__committer *committer, struct wal__op *first)
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
                 others > OTHERS_MANY * (log->last_sequence -
                                         committer->own_sequence - others));
    committer->own_sequence = log->last_sequence;
    if (committer->retain_append_lock &&
        wal__log_check_poison(log, NULL) == WAL_OK) {
        wal__leader_end_retaining_lock(log, &committer->client);
    } else {
        wal__leader_end(log, &committer->client);
    }
}
