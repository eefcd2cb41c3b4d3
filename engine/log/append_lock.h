/*
 * append_lock.h - the append lock of a log: the lock byte that serialises the
 * writers of all processes (SPEC.md 4.1).
 *
 * The leader acquires it, or takes over one that the previous leader of this
 * process retained. One thread of a process at a time: the caller ensures it.
 * Lock order: append lock, state lock, then preallocation lock and sync lock.
 *
 * Invariant: append_lock_held is true exactly while this process holds the
 * lock byte, also while it is retained.
 */
#ifndef AGENTWAL_ENGINE_LOG_APPEND_LOCK_H
#define AGENTWAL_ENGINE_LOG_APPEND_LOCK_H

#include "engine/log/log.h"

/* Acquires the append lock within the store's lock timeout. WAL_ELOCKED:
 * error->holder holds it; WAL_ELOCKFILE: the file LOCK was replaced. Nothing is
 * held on failure. */
enum wal_status wal__log_lock_append(struct wal__log *log,
                                     struct wal_error *error) WAL_MUST_USE;
void wal__log_unlock_append(struct wal__log *log);

/* Leaves the lock to the next leader of this process, which follows at once;
 * releases it when another process waits for it. */
void wal__log_retain_append_lock(struct wal__log *log);
/* Releases a retained lock, if there is one: no leader followed. */
void wal__log_release_retained_lock(struct wal__log *log);

#endif
