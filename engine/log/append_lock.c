/*
 * append_lock.c - the append lock of a log (SPEC.md 4.1).
 *
 * Invariant: append_lock_retained implies append_lock_held.
 */
#include "engine/log/append_lock.h"

#include "engine/log/locks.h"
#include "format/bytes/assert.h"

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
