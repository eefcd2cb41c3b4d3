/*
 * claude_answer.h - links the rows of one answer of a model, and the results of
 * its calls, into one chain.
 *
 * Claude Code writes an answer as one row per block. Results of concurrent
 * calls are children of their calls' rows, so the path from the tip to the root
 * misses some of them. Here the parent of each row of an answer, and of each
 * result, is the previous one, and a row that continues after any of them
 * becomes a child of the last.
 *
 * Invariant: memory is bounded. The rows of old answers keep their parents.
 *
 * Threads: one thread at a time per struct.
 */
#ifndef AGENTWAL_CONVERT_DIALECT_CLAUDE_CLAUDE_ANSWER_H
#define AGENTWAL_CONVERT_DIALECT_CLAUDE_CLAUDE_ANSWER_H

#include "format/json/json_text.h"

enum {
    WAL__CLAUDE_ANSWER_COUNT = 64,   /* newest answers to remember */
    WAL__CLAUDE_ANSWER_SLOTS = 1024, /* of rows and calls, by hash */
    WAL__CLAUDE_ANSWER_ID_SIZE = 64  /* rows with longer ids are not linked */
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

/* Zeroed: no rows. */
struct wal__claude_answers {
    uint64_t serial;
    struct wal__claude_answer answers[WAL__CLAUDE_ANSWER_COUNT];
    struct wal__claude_answer_slot rows[WAL__CLAUDE_ANSWER_SLOTS];
    struct wal__claude_answer_slot calls[WAL__CLAUDE_ANSWER_SLOTS];
};

/* Returns the parent for a row that names `parent`. It is valid until the next
 * row is added. */
struct wal__json_span
wal__claude_answer_parent(const struct wal__claude_answers *answers,
                          struct wal__json_span parent);

/* Adds a row of a model to its answer. */
void wal__claude_answer_add_row(struct wal__claude_answers *answers,
                                struct wal__json_span id,
                                struct wal__json_span parent,
                                struct wal__json_span message_id);

/* Records that the row `id` contains a tool call. */
void wal__claude_answer_add_call(struct wal__claude_answers *answers,
                                 struct wal__json_span id,
                                 struct wal__json_span call);

/* Adds the row with a call's result to the answer of the call. */
void wal__claude_answer_add_result(struct wal__claude_answers *answers,
                                   struct wal__json_span id,
                                   struct wal__json_span parent,
                                   struct wal__json_span call);

#endif
