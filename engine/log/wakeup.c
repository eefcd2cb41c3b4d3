/*
 * wakeup.c - the wake tree (SPEC.md 4.3).
 *
 * Invariant: wake_next of an operation is set before its state becomes
 * WAL__OP_DONE, and is read by its waiter only after that.
 */
#include "engine/log/wakeup.h"

#include <sched.h>
#include <string.h>

#include "format/bytes/assert.h"

enum {
    RECHECK_NS = 1000000000
};

void wal__wakeup_begin(struct wal__wakeup *wakeup, const struct wal__io *io)
{
    memset(wakeup, 0, sizeof(*wakeup));
    wakeup->io = io;
}

void wal__wakeup_add(struct wal__wakeup *wakeup, struct wal__op *op)
{
    const uint32_t *state = (const uint32_t *)&op->state;
    uint32_t before;

    WAL__ASSERT(wakeup->count <= WAL__WAKEUP_ROOTS);
    WAL__ASSERT(op->wake_next[0] == NULL && op->wake_next[1] == NULL);

    if (wakeup->count == WAL__WAKEUP_ROOTS) {
        op->wake_next[0] = wakeup->roots[0];
        op->wake_next[1] = wakeup->roots[1];
    }
    before = atomic_exchange(&op->state, WAL__OP_DONE);
    WAL__ASSERT(before != WAL__OP_DONE);
    if (before == WAL__OP_HAS_WAITER) {
        if (wakeup->count == WAL__WAKEUP_ROOTS) {
            wakeup->roots[0] = wakeup->roots[2];
            wakeup->count = 1;
        }
        wakeup->roots[wakeup->count] = state;
        wakeup->count++;
    }
    wal__op_release(op);
}

void wal__wakeup_end(struct wal__wakeup *wakeup)
{
    for (uint32_t i = 0; i < wakeup->count; i++) {
        wakeup->io->futex_wake(wakeup->io->ctx, wakeup->roots[i], UINT32_MAX);
    }
}

/* Records that a thread sleeps, or no longer does; false when the state is not
 * `from`: the operation is done. */
static bool try_set_state(struct wal__op *op, uint32_t from, uint32_t to)
{
    return atomic_compare_exchange_strong(&op->state, &from, to);
}

bool wal__op_spin_wait(const struct wal__io *io, const struct wal__op *op,
                       uint64_t spin_ns)
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

bool wal__op_futex_wait(const struct wal__io *io, struct wal__op *op,
                        int64_t timeout_ms)
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
        io->futex_wait(io->ctx, (const uint32_t *)&op->state,
                       WAL__OP_HAS_WAITER, left);
    }
    WAL__ASSERT(op->wake_next[0] != NULL || op->wake_next[1] == NULL);
    for (int i = 0; i < 2 && op->wake_next[i] != NULL; i++) {
        io->futex_wake(io->ctx, op->wake_next[i], UINT32_MAX);
    }
    return true;
}
