/*
 * leader.c - the right to write to a log: acquiring it, and what its holder
 * does apart from groups (SPEC.md 4.1 to 4.3).
 *
 * Begin acquires the append lock, or takes over the one that the previous
 * leader of this process retained, then the state lock, and brings this process
 * to the published end, in this order:
 *
 *  1. Poisons the log when a process died while it synced.
 *  2. Applies what other processes published (replay.c).
 *  3. Heals a poisoned log (heal.c), and applies what that published.
 *  4. Looks after the published end, unless this process was the last to hold
 *     the lock: a writer that died may have left a group there, which counts
 *     when it is whole.
 *
 * Every caller that waits for a sync, and finds the log poisoned, begins in the
 * same way, and so heals it. It tries WAL__HEAL_ATTEMPTS times: processes may
 * die one after the other while they heal.
 *
 * Invariants: begin either holds append lock and state lock, with everything
 * applied that is published, or holds neither. append_lock_held is true exactly
 * while this process holds the lock byte, also while it is retained;
 * append_lock_retained implies it.
 */
#include "engine/log/leader.h"

#include <inttypes.h>

#include "engine/base/error.h"
#include "engine/log/group.h"
#include "engine/log/index_file.h"
#include "engine/log/locks.h"
#include "format/bytes/assert.h"

/* --- the append lock ---------------------------------------------------- */

enum wal_status wal__log_lock_append(struct wal__log *log,
                                     struct wal_error *error)
{
    enum wal_status status;

    WAL__ASSERT(log->append_lock_held == log->append_lock_retained);
    if (log->append_lock_retained) {
        /* The file LOCK is compared before a group is written. */
        log->append_lock_retained = false;
        return WAL_OK;
    }
    status = wal__control_lock(log->control, WAL__LOCK_APPEND + log->log_id,
                               log->log_id, error);
    log->append_lock_held = status == WAL_OK;
    if (status == WAL_OK) {
        status = wal__control_check_ratelimited(log->control, error);
        if (status != WAL_OK) {
            wal__log_unlock_append(log);
        }
    }
    return status;
}

void wal__log_unlock_append(struct wal__log *log)
{
    WAL__ASSERT(log->append_lock_held && !log->append_lock_retained);
    log->append_lock_held = false;
    wal__control_unlock(log->control, WAL__LOCK_APPEND + log->log_id,
                        log->log_id);
}

void wal__log_retain_append_lock(struct wal__log *log)
{
    WAL__ASSERT(log->append_lock_held && !log->append_lock_retained);
    log->append_lock_retained = !wal__control_has_waiters(
        log->control, WAL__LOCK_APPEND + log->log_id, log->log_id);
    if (!log->append_lock_retained) {
        wal__log_unlock_append(log);
    }
}

void wal__log_release_retained_lock(struct wal__log *log)
{
    WAL__ASSERT(log->append_lock_held || !log->append_lock_retained);
    if (log->append_lock_retained) {
        log->append_lock_retained = false;
        wal__log_unlock_append(log);
    }
}

/* --- begin and end ------------------------------------------------------ */

enum wal_status
wal__leader_apply_published(struct wal__log *log,
                            const struct wal__leader_client *client,
                            struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    if (wal__log_is_outdated(log)) {
        log->needs_reload = true; /* segments were replaced */
    }
    if (!log->needs_reload) {
        status = wal__log_catch_up(log, error);
    }
    if (status == WAL_ECORRUPT || status == WAL_ENOTFOUND ||
        (status != WAL_OK && wal__log_find_replaced(log))) {
        /* Perhaps of files that compaction has replaced: what the present ones
         * say is true. */
        log->needs_reload = true;
    }
    return log->needs_reload ? client->reload(client->ctx, error) : status;
}

/* Brings this process to the published end, under both locks. */
static enum wal_status catch_up(struct wal__log *log,
                                const struct wal__leader_client *client,
                                bool allow_heal, struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    WAL__ASSERT(log->append_lock_held);
    if (allow_heal) {
        wal__log_check_dead_syncer(log);
    } else {
        status = wal__log_check_poison(log, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    status = wal__leader_apply_published(log, client, error);
    if (status != WAL_OK) {
        return status;
    }
    if (wal__log_check_poison(log, NULL) != WAL_OK) {
        status = wal__log_heal(log, error);
        if (status == WAL_OK) {
            status = wal__leader_apply_published(log, client, error);
        }
        if (status != WAL_OK) {
            return status;
        }
    }
    return wal__log_take_over_dead_writer(log, error);
}

enum wal_status wal__leader_begin(struct wal__log *log,
                                  const struct wal__leader_client *client,
                                  bool allow_heal, struct wal_error *error)
{
    enum wal_status status = wal__log_lock_append(log, error);

    if (status != WAL_OK) {
        return status;
    }
    client->lock(client->ctx);
    status = catch_up(log, client, allow_heal, error);
    if (status != WAL_OK) {
        wal__leader_end(log, client);
    }
    return status;
}

void wal__leader_end(struct wal__log *log,
                     const struct wal__leader_client *client)
{
    WAL__ASSERT(log->append_lock_held && log->pending_group == NULL);
    client->unlock(client->ctx);
    wal__log_unlock_append(log);
}

void wal__leader_end_retaining_lock(struct wal__log *log,
                                    const struct wal__leader_client *client)
{
    WAL__ASSERT(log->append_lock_held && !log->append_lock_retained);
    WAL__ASSERT(log->pending_group == NULL);
    client->unlock(client->ctx);
    wal__log_retain_append_lock(log);
}

enum wal_status wal__leader_fail_unknown(const struct wal_error *cause,
                                         const struct wal_error *healing,
                                         struct wal_error *error)
{
    return wal__fail_at(
        error, WAL_EPOISONED,
        cause->sys_errno != 0 ? cause->sys_errno : healing->sys_errno, NULL, 0,
        "%.160s, and the log could not be healed: %.200s; whether what was "
        "written is kept is unknown: send it again with the same ids",
        cause->text, healing->text);
}

/* --- what a leader does ------------------------------------------------- */

enum wal_status wal__leader_sync(struct wal__log *log,
                                 const struct wal__leader_client *client,
                                 uint64_t position, struct wal_error *error)
{
    struct wal_error cause = {.struct_size = sizeof(cause)};
    struct wal_error healing = {.struct_size = sizeof(healing)};
    enum wal_status status = wal__log_sync(log, position, &cause);

    for (int i = 0; status == WAL_EPOISONED && i < WAL__HEAL_ATTEMPTS; i++) {
        if (wal__leader_begin(log, client, true, &healing) != WAL_OK) {
            break;
        }
        wal__leader_end(log, client);
        status = wal__log_sync(log, position, &cause);
    }
    if (status == WAL_OK || wal__log_is_durable(log, position)) {
        return WAL_OK;
    }
    if (status == WAL_EPOISONED) {
        return wal__leader_fail_unknown(&cause, &healing, error);
    }
    return wal__fail_at(error, WAL_EPOISONED, cause.sys_errno, NULL, 0,
                        "%.200s; whether what was written is kept is unknown: "
                        "send it again with the same ids",
                        cause.text);
}

/* Removes the index file of the tail segment, which an append makes stale. */
static enum wal_status remove_tail_index(struct wal__log *log,
                                         struct wal_error *error)
{
    enum wal_status status;
    uint64_t indexed = atomic_load(&log->shared->indexed_tail_id);

    if (indexed == 0) {
        return WAL_OK;
    }
    status = wal__index_file_remove(log, indexed);
    if (status != WAL_OK) {
        return wal__fail_at(error, status, 0, log->env->root, 0,
                            "cannot remove the index file of the tail segment "
                            "%016" PRIx64,
                            indexed);
    }
    atomic_store(&log->shared->indexed_tail_id, 0);
    return WAL_OK;
}

enum wal_status
wal__leader_reserve(struct wal__log *log,
                    const struct wal__log_reservation *reservation,
                    struct wal_error *error)
{
    /* Before a rotation, which writes to the tail segment, and may put another
     * index file in the place of this one. */
    enum wal_status status = remove_tail_index(log, error);

    WAL__ASSERT(log->append_lock_held);
    return status == WAL_OK ? wal__log_reserve(log, reservation, error)
                            : status;
}

static enum wal_status rotate(struct wal__log *log,
                              const struct wal__leader_client *client,
                              struct wal_error *error)
{
    enum wal_status status = wal__leader_begin(log, client, true, error);

    if (status == WAL_OK) {
        status = remove_tail_index(log, error);
        if (status == WAL_OK) {
            status = wal__log_rotate(log, error);
        }
        wal__leader_end(log, client);
    }
    return status;
}

enum wal_status wal__leader_rotate(struct wal__log *log,
                                   const struct wal__leader_client *client,
                                   struct wal_error *error)
{
    enum wal_status status = rotate(log, client, error);

    for (int i = 0; status == WAL_EPOISONED && i < WAL__HEAL_ATTEMPTS; i++) {
        status = rotate(log, client, error);
    }
    return status;
}

/* Returns whether the tail can take a commit mark, and needs it. */
static bool needs_mark(const struct wal__log *log)
{
    return log->tail_segment != NULL && !log->marked &&
           !log->tail_segment->sealed && !log->must_rotate &&
           atomic_load(&log->shared->closed_segment_id) !=
               log->tail_segment->id;
}

static enum wal_status write_mark(struct wal__log *log,
                                  const struct wal__leader_client *client,
                                  bool allow_heal, struct wal_error *error)
{
    enum wal_status status = wal__leader_begin(log, client, allow_heal, error);
    struct wal__group group;

    if (status != WAL_OK) {
        return status;
    }
    if (!needs_mark(log)) {
        goto done;
    }
    status = wal__log_sync(log, atomic_load(&log->end), error);
    if (status != WAL_OK) {
        goto done;
    }
    wal__group_init(&group, log);
    group.is_synced = true;
    status = wal__group_write(&group, log, error);
    wal__group_deinit(&group);
    if (status == WAL_OK) {
        status = wal__log_sync(log, atomic_load(&log->end), error);
    }

done:
    wal__leader_end(log, client);
    return status;
}

enum wal_status wal__leader_write_mark(struct wal__log *log,
                                       const struct wal__leader_client *client,
                                       bool allow_heal, struct wal_error *error)
{
    enum wal_status status = write_mark(log, client, allow_heal, error);

    for (int i = 0;
         allow_heal && status == WAL_EPOISONED && i < WAL__HEAL_ATTEMPTS; i++) {
        status = write_mark(log, client, true, error);
    }
    return status;
}
