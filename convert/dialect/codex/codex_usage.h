/*
 * codex_usage.h - gives the answers of a rollout their token counts.
 *
 * Codex writes the counts of a call of the model after the items of its answer,
 * in an event token_count. So the last item of an answer, and the events that
 * follow it, are held back until the next line shows whether it is that event.
 *
 * Invariant: lines are passed on in their order.
 *
 * Threads: one thread at a time per reader.
 */
#ifndef AGENTWAL_CONVERT_DIALECT_CODEX_CODEX_USAGE_H
#define AGENTWAL_CONVERT_DIALECT_CODEX_CODEX_USAGE_H

#include "convert/dialect/codex/codex_text.h"

enum {
    WAL__CODEX_HELD_MAX = 4 /* an item and its events */
};

/* A line in reusable memory. */
struct wal__codex_held_line {
    struct wal__codex_text text;
    struct wal__codex_text id;
    struct wal__codex_text parent;
    struct wal__codex_text time;
    struct wal__model_line line; /* its other fields */
};

struct wal__codex_held {
    struct wal__codex_held_line lines[WAL__CODEX_HELD_MAX];
    size_t count;
    uint64_t input; /* of the last total: input, cached, output, reasoning */
    uint64_t cached;
    uint64_t output;
    uint64_t reasoning;
};

/* Converts a line. `usage`: the counts of an answer's item, or NULL. */
typedef enum wal__json_status
wal__codex_line_fn(struct wal__model_reader *reader,
                   const struct wal__model_line *line,
                   const struct wal__model_usage *usage);

/* Passes the lines on that need not be held back. */
enum wal__json_status wal__codex_hold(struct wal__model_reader *reader,
                                      struct wal__codex_held *held,
                                      const struct wal__model_line *line,
                                      wal__codex_line_fn *pass);

/* Passes on the lines that are held back. */
enum wal__json_status wal__codex_release(struct wal__model_reader *reader,
                                         struct wal__codex_held *held,
                                         const struct wal__model_usage *usage,
                                         wal__codex_line_fn *pass);

#endif
