/*
 * lock_owner.h - the names of lock holders in the control page (SPEC.md 4.1).
 *
 * Invariant: the holder of a lock publishes and clears its own name, so that a
 * name is wrong only between the two; the name of a dead process is ignored.
 * Any thread.
 */
#ifndef AGENTWAL_ENGINE_LOG_LOCK_OWNER_H
#define AGENTWAL_ENGINE_LOG_LOCK_OWNER_H

#include "engine/log/control.h"

/* Publishes this process as the holder. */
void wal__lock_owner_publish(const struct wal__control *control,
                             struct wal__lock_owner *owner);
/* Returns the process id of a live holder, or 0. */
uint32_t wal__lock_owner_find(const struct wal__control *control,
                              struct wal__lock_owner *owner);

/* Tries once to acquire the compaction lock. WAL_ELOCKED: error->holder is the
 * process that compacts the store, or 0 when unknown. No other thread of this
 * process may hold it: the caller's mutex ensures that. */
enum wal_status wal__compact_lock_acquire(struct wal__control *control,
                                          struct wal_error *error) WAL_MUST_USE;
void wal__compact_lock_release(struct wal__control *control);
/* Fills *error for the process that compacts, or 0; returns WAL_ELOCKED. */
enum wal_status wal__compact_lock_refused(const struct wal__control *control,
                                          uint32_t holder,
                                          struct wal_error *error);

#endif
