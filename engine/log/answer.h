/*
 * answer.h - telling those who wait for an operation, and waiting (SPEC.md
 * 4.3). Any thread.
 *
 * Who answers wakes a few; each of them wakes two more on its way back, so
 * that a large group is woken by all processors together instead of by one.
 *
 * Invariant: who sleeps on an operation when it is answered is in exactly one
 * tree of wakes, and passes the wake on.
 */
#ifndef WAL_LOG_ANSWER_H
#define WAL_LOG_ANSWER_H

#include "engine/log/commit.h"

enum {
    WAL__ANSWER_ROOTS = 3
};

struct wal__answer {
    const struct wal__io *io;
    const uint32_t *roots[WAL__ANSWER_ROOTS]; /* oldest first */
    uint32_t count;
};

/* Begins answering some operations. */
void wal__answer_begin(struct wal__answer *answer, const struct wal__io *io);
/* The operation's status and results stand; gives its reference up. */
void wal__answer_op(struct wal__answer *answer, struct wal__op *op);
/* Wakes who sleeps on them. */
void wal__answer_end(struct wal__answer *answer);

/* Looks for so long whether the operation is answered, and lets others run in
 * between: for an answer that comes sooner than a sleeper is awake. */
bool wal__answer_look(const struct wal__io *io, const struct wal__op *op,
                      uint64_t patience_ns);
/* Sleeps until the operation is answered: true, or until the time is over. */
bool wal__answer_wait(const struct wal__io *io, struct wal__op *op,
                      int64_t timeout_ms);

#endif
