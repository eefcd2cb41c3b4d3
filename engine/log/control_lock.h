/*
 * control_lock.h - the lock bytes of a log (SPEC.md 4.1): append lock, sync
 * lock and preallocation lock, each WAL__LOCK_... + log_id, waited for by
 * several processes. `log_id` names the wait words of the log.
 *
 * A lock byte belongs to the open file of the process, and the kernel releases
 * it with the process. No other thread of this process may hold the same byte:
 * the caller's mutex ensures that.
 *
 * Lock order: in-process mutex, then lock byte; the append lock before the sync
 * lock and the preallocation lock; never the append locks of both logs.
 */
#ifndef AGENTWAL_ENGINE_LOG_CONTROL_LOCK_H
#define AGENTWAL_ENGINE_LOG_CONTROL_LOCK_H

#include "engine/log/control.h"

/* Tries once to lock, share or unlock any byte. WAL_ELOCKED: another process
 * holds it. */
enum wal_status wal__control_set_lock(struct wal__control *control,
                                      uint64_t byte, enum wal__io_lock mode,
                                      int *err) WAL_MUST_USE;

/* Acquires a lock; waits at most the store's lock timeout, or 20 times as long
 * while the holder runs. Woken by the holder, and at least every 5 ms.
 * WAL_ELOCKED: error->holder holds it. */
enum wal_status wal__control_lock(struct wal__control *control, uint64_t byte,
                                  uint32_t log_id,
                                  struct wal_error *error) WAL_MUST_USE;
/* As wal__control_lock, unless the durable end reaches `position` first:
 * WAL_END, and nothing is held. */
enum wal_status
wal__control_lock_unless_durable(struct wal__control *control, uint64_t byte,
                                 uint32_t log_id, uint64_t position,
                                 struct wal_error *error) WAL_MUST_USE;
/* Tries once. WAL_ELOCKED: another process holds it. */
enum wal_status wal__control_try_lock(struct wal__control *control,
                                      uint64_t byte, uint32_t log_id,
                                      int *err) WAL_MUST_USE;
/*
 * Takes the sync lock away from a holder that does not run: poisons the log and
 * begins a round with another lock byte. False when the holder runs. The former
 * holder may continue at any time: it can raise the durable end by what its
 * sync covered, and poison; both are harmless (SPEC.md 4.2). Any thread, after
 * waiting for the lock.
 */
bool wal__control_take_over_sync_lock(struct wal__control *control,
                                      uint32_t log_id);
/* Whether a process waits for a lock that this one holds. */
bool wal__control_has_waiters(struct wal__control *control, uint64_t byte,
                              uint32_t log_id);
/* Releases the lock and wakes a waiter; of the sync lock all, since one sync
 * serves most of them. */
void wal__control_unlock(struct wal__control *control, uint64_t byte,
                         uint32_t log_id);

#endif
