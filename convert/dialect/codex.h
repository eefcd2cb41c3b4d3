/*
 * codex.h - the state that connects the lines of a rollout of Codex.
 *
 * Codex writes each visible message twice: as an event (user_message, agent_message; item_completed
 * in paginated threads) and as an item of the model's context. This matches events with items, in
 * either order; an event without a matching item is a message. Items of one answer of the model get
 * the same answer_id. After a rollback, the parent of the next item is the item before the turns
 * rolled back.
 *
 * Codex writes the counts of a call of the model after the items of its answer: in a
 * token_usage_record, and in an event token_count that results of its calls may precede. So the
 * last item of an answer, and the events and results that follow it, are held back until the next
 * line shows whether it has the counts. The first that has them counts.
 *
 * Invariant: an item's parent is the last item on the branch. Events are on no branch, so they do
 * not split an answer. Lines are passed on in their order.
 *
 * Threads: one thread at a time per reader.
 */
#ifndef AGENTWAL_CONVERT_DIALECT_CODEX_H
#define AGENTWAL_CONVERT_DIALECT_CODEX_H

#include "convert/model/dialect.h"

/* The originator of a header that the writer made: its provider is not known to be that of the
 * answers. */
#define WAL__CODEX_WRITER "walconv"

/* --- texts --------------------------------------------------------------- */

/* A text in a reusable buffer. */
struct wal__codex_text {
    uint8_t *data;
    size_t size;
    size_t capacity;
};

/* The functions return false if there is no memory. */

bool wal__codex_text_set(struct wal__model_reader *reader, struct wal__codex_text *text,
                         struct wal__json_span span);

/* Copies a text for an item; empty if the text is empty. */
bool wal__codex_text_copy(struct wal__model_reader *reader, const struct wal__codex_text *text,
                          struct wal__json_span *span);
bool wal__codex_text_equals(const struct wal__codex_text *text, struct wal__json_span span);

/* --- token counts -------------------------------------------------------- */

enum {
    WAL__CODEX_HELD_MAX = 16 /* an item and its events */
};

/* Token counts of a call of the model, or of all calls so far. */
enum wal__codex_count {
    WAL__CODEX_INPUT, /* with those read from a cache */
    WAL__CODEX_CACHED,
    WAL__CODEX_OUTPUT,
    WAL__CODEX_REASONING,
    WAL__CODEX_COUNTS
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
    uint64_t total[WAL__CODEX_COUNTS]; /* the last one */
};

/* Converts a line. `usage`: the counts of an answer's item, or NULL. */
typedef enum wal__json_status wal__codex_line_fn(struct wal__model_reader *reader,
                                                 const struct wal__model_line *line,
                                                 const struct wal__model_usage *usage);

/* Passes the lines on that need not be held back. */
enum wal__json_status wal__codex_hold(struct wal__model_reader *reader,
                                      struct wal__codex_held *held,
                                      const struct wal__model_line *line, wal__codex_line_fn *pass);

/* Passes on the lines that are held back. */
enum wal__json_status wal__codex_release(struct wal__model_reader *reader,
                                         struct wal__codex_held *held,
                                         const struct wal__model_usage *usage,
                                         wal__codex_line_fn *pass);

/* --- the state ----------------------------------------------------------- */

/* Matches events of one kind with items. */
struct wal__codex_echo {
    bool is_pending;        /* an event waits for its item */
    size_t unmatched_items; /* count of items that wait for their events */
    struct wal__codex_text id;
    struct wal__codex_text time;
    struct wal__codex_text text;
};

struct wal__codex {
    bool has_header;
    bool is_answering;                    /* the last item is part of an answer */
    struct wal__codex_text answer;        /* its answer_id */
    struct wal__codex_text last_line;     /* id in the log */
    struct wal__codex_text last_item;     /* id of the last item on the branch */
    struct wal__codex_text pending_lines; /* lines before the next item */
    struct wal__codex_text pending_id;    /* of the last of them */
    struct wal__codex_text model;
    struct wal__codex_text effort;
    struct wal__codex_text provider;
    struct wal__codex_echo user;
    struct wal__codex_echo agent;
    struct wal__codex_text turn;  /* last item before the pending user event */
    struct wal__json_span *turns; /* last item before each turn */
    size_t turn_count;
    size_t turn_capacity;
    struct wal__codex_held held;
};

/* Returns the reader's state; NULL: no memory. All other functions return false if there is no
 * memory or the sink returned false. */
struct wal__codex *wal__codex_state(struct wal__model_reader *reader);

/* Call these before and after each line. */
bool wal__codex_line_begin(struct wal__model_reader *reader, const struct wal__model_line *line);
bool wal__codex_line_end(struct wal__model_reader *reader, const struct wal__model_line *line);

/* Emits an item as a child of the last one. */
bool wal__codex_emit(struct wal__model_reader *reader, struct wal__model_item *item);

/* Emits an item of the model's context: a message, a call or a result. */
bool wal__codex_emit_message(struct wal__model_reader *reader, struct wal__model_item *item);

/* Records an event that may repeat an item. `text` is empty for an event that is never a
 * message. */
bool wal__codex_emit_event(struct wal__model_reader *reader, struct wal__codex_echo *echo,
                           const struct wal__model_line *line, struct wal__json_span text);

/* Ends the present answer. */
void wal__codex_end_answer(struct wal__codex *codex);

/* Rolls back the last `turns` turns. */
bool wal__codex_roll_back(struct wal__model_reader *reader, struct wal__model_item *item,
                          uint64_t turns);

/* Emits messages for the events without an item. */
bool wal__codex_flush(struct wal__model_reader *reader);

/* Emits the pending lines as one item, on the branch or on none. */
bool wal__codex_flush_lines(struct wal__model_reader *reader, bool is_off_branch);

#endif
