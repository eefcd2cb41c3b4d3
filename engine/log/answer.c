/*
 * answer.c - trees of wakes (SPEC.md 4.3).
 */
#include "engine/log/answer.h"

#include <sched.h>
#include <string.h>

enum {
    LOOK_AGAIN_NS = 1000000000
};

void wal__answer_begin(struct wal__answer *answer, const struct wal__io *io)
{
    memset(answer, 0, sizeof(*answer));
    answer->io = io;
}

void wal__answer_op(struct wal__answer *answer, struct wal__op *op)
{
    const uint32_t *state = (const uint32_t *)&op->state;

    if (answer->count == WAL__ANSWER_ROOTS) {
        op->wake_next[0] = answer->roots[0];
        op->wake_next[1] = answer->roots[1];
    }
    if (atomic_exchange(&op->state, WAL__OP_DONE) == WAL__OP_AWAITED) {
        if (answer->count == WAL__ANSWER_ROOTS) {
            answer->roots[0] = answer->roots[2];
            answer->count = 1;
        }
        answer->roots[answer->count] = state;
        answer->count++;
    }
    wal__op_release(op);
}

void wal__answer_end(struct wal__answer *answer)
{
    for (uint32_t i = 0; i < answer->count; i++) {
        answer->io->wake(answer->io->ctx, answer->roots[i], UINT32_MAX);
    }
}

/* Says that somebody sleeps, or no longer does; false when it is answered. */
static bool change_state(struct wal__op *op, uint32_t from, uint32_t to)
{
    return atomic_compare_exchange_strong(&op->state, &from, to);
}

bool wal__answer_look(const struct wal__io *io, const struct wal__op *op,
                      uint64_t patience_ns)
{
    uint64_t until = io->ticks_ns(io->ctx) + patience_ns;

    while (atomic_load(&op->state) != WAL__OP_DONE) {
        if (io->ticks_ns(io->ctx) >= until) {
            return false;
        }
        sched_yield();
    }
    return true;
}

bool wal__answer_wait(const struct wal__io *io, struct wal__op *op,
                      int64_t timeout_ms)
{
    uint64_t begin = timeout_ms >= 0 ? io->ticks_ns(io->ctx) : 0;
    uint64_t left = LOOK_AGAIN_NS;

    if (!change_state(op, WAL__OP_PENDING, WAL__OP_AWAITED)) {
        return true;
    }
    while (atomic_load(&op->state) != WAL__OP_DONE) {
        if (timeout_ms >= 0) {
            uint64_t gone = io->ticks_ns(io->ctx) - begin;

            if (gone >= (uint64_t)timeout_ms * 1000000 &&
                change_state(op, WAL__OP_AWAITED, WAL__OP_PENDING)) {
                return false;
            }
            left = (uint64_t)timeout_ms * 1000000;
            left = left > gone ? left - gone : 0;
        }
        io->wait(io->ctx, (const uint32_t *)&op->state, WAL__OP_AWAITED, left);
    }
    for (int i = 0; i < 2 && op->wake_next[i] != NULL; i++) {
        io->wake(io->ctx, op->wake_next[i], UINT32_MAX);
    }
    return true;
}
