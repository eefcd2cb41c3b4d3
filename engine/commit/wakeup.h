/*
 * wakeup.h - telling those who wait for an operation, and waiting (SPEC.md
 * 4.3). Any thread.
 *
 * Who answers wakes a few; each of them wakes two more on its way back, so
 * that a large group is woken by all processors together instead of by one.
 *
 * Invariant: who sleeps on an operation when it is answered is in exactly one
 * tree of wakes, and passes the wake on.
 */
#ifndef AGENTWAL_ENGINE_COMMIT_WAKEUP_H
#define AGENTWAL_ENGINE_COMMIT_WAKEUP_H

#include "engine/commit/commit.h"

enum {
    WAL__WAKEUP_ROOTS = 3
};

struct wal__wakeup {
    const struct wal__io *io;
    const uint32_t *roots[WAL__WAKEUP_ROOTS]; /* oldest first */
    uint32_t count;
};

/* Begins answering some operations. */
void wal__wakeup_begin(struct wal__wakeup *wakeup, const struct wal__io *io);
/* The operation's status and results stand; gives its reference up. */
void wal__wakeup_add(struct wal__wakeup *wakeup, struct wal__op *op);
/* Wakes who sleeps on them. */
void wal__wakeup_end(struct wal__wakeup *wakeup);

/* Looks for so long whether the operation is answered, and lets others run in
 * between: for an answer that comes sooner than a sleeper is awake. */
bool wal__op_spin_wait(const struct wal__io *io, const struct wal__op *op,
                       uint64_t spin_ns);
/* Sleeps until the operation is answered: true, or until the time is over. */
bool wal__op_futex_wait(const struct wal__io *io, struct wal__op *op,
                        int64_t timeout_ms);

#endif
