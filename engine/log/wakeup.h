/*
 * wakeup.h - the wake tree: waking the callers of completed operations, and
 * their waiting (SPEC.md 4.3). Any thread.
 *
 * The thread that completes operations wakes at most WAL__WAKEUP_ROOTS
 * callers. Each of them wakes up to two more before it returns, so that many
 * processors share the waking of a large group.
 *
 * Invariant: a caller that sleeps on an operation when it is completed is in
 * exactly one wake tree, and wakes those below it.
 */
#ifndef AGENTWAL_ENGINE_LOG_WAKEUP_H
#define AGENTWAL_ENGINE_LOG_WAKEUP_H

#include "engine/log/op.h"

enum {
    WAL__WAKEUP_ROOTS = 3
};

struct wal__wakeup {
    const struct wal__io *io;
    const uint32_t *roots[WAL__WAKEUP_ROOTS]; /* futex words, oldest first */
    uint32_t count;
};

/* Begins the completion of some operations. */
void wal__wakeup_begin(struct wal__wakeup *wakeup, const struct wal__io *io);
/* Completes the operation, whose status and results are set, and releases it:
 * the caller must not use it afterwards. */
void wal__wakeup_add(struct wal__wakeup *wakeup, struct wal__op *op);
/* Wakes the roots. */
void wal__wakeup_end(struct wal__wakeup *wakeup);

/* Spins with sched_yield() for at most spin_ns; returns whether the operation
 * is done. For results that come sooner than a sleeping thread wakes up. */
bool wal__op_spin_wait(const struct wal__io *io, const struct wal__op *op,
                       uint64_t spin_ns);
/* Sleeps until the operation is done; false after timeout_ms, which is
 * infinite when negative. One thread per operation. */
bool wal__op_futex_wait(const struct wal__io *io, struct wal__op *op,
                        int64_t timeout_ms);

#endif
