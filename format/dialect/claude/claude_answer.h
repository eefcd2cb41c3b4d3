/*
 * claude_answer.h - the rows of one answer of a model, and the results of its
 * calls, as one chain.
 *
 * Claude Code writes an answer as a row for each block. Calls that run at the
 * same time get their results under their own rows, so that the way from the
 * tip to the root misses some of them. Here each row of an answer, and each
 * result, goes under the one before it, and what goes on behind any of them
 * goes under the last.
 *
 * Invariant: memory is bounded. Of answers that are far back, rows stay where
 * they are.
 *
 * Threads: one thread at a time per struct.
 */
#ifndef AGENTWAL_FORMAT_DIALECT_CLAUDE_CLAUDE_ANSWER_H
#define AGENTWAL_FORMAT_DIALECT_CLAUDE_CLAUDE_ANSWER_H

#include "format/json/json_text.h"

enum {
    WAL__CLAUDE_ANSWER_COUNT = 64,   /* answers that are remembered */
    WAL__CLAUDE_ANSWER_SLOTS = 1024, /* rows and calls, by hash */
    WAL__CLAUDE_ANSWER_ID_SIZE =
        64 /* of ids; longer ones are left as they are */
};

struct wal__claude_answer {
    uint64_t message_id; /* hash of its message's id */
    uint64_t serial;     /* 0: free */
    size_t size;         /* of last */
    uint8_t last[WAL__CLAUDE_ANSWER_ID_SIZE];
};

struct wal__claude_answer_slot {
    uint64_t hash;
    uint64_t serial; /* of the answer */
};

/* Zeroed: nothing was seen. */
struct wal__claude_answers {
    uint64_t serial;
    struct wal__claude_answer answers[WAL__CLAUDE_ANSWER_COUNT];
    struct wal__claude_answer_slot rows[WAL__CLAUDE_ANSWER_SLOTS];
    struct wal__claude_answer_slot calls[WAL__CLAUDE_ANSWER_SLOTS];
};

/* The parent of a row that names this one. It holds until the next row is
 * taken into an answer. */
struct wal__json_span
wal__claude_answer_parent(const struct wal__claude_answers *answers,
                          struct wal__json_span parent);

/* Takes a row of a model into its answer. */
void wal__claude_answer_add_row(struct wal__claude_answers *answers,
                                struct wal__json_span id,
                                struct wal__json_span parent,
                                struct wal__json_span message_id);

/* Says that the row of this id calls a tool. */
void wal__claude_answer_add_call(struct wal__claude_answers *answers,
                                 struct wal__json_span id,
                                 struct wal__json_span call);

/* Takes the row with a call's result into the answer that the call is of. */
void wal__claude_answer_add_result(struct wal__claude_answers *answers,
                                   struct wal__json_span id,
                                   struct wal__json_span parent,
                                   struct wal__json_span call);

#endif
