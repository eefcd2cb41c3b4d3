/*
 * codex_state.h - what a rollout's lines mean together.
 *
 * Codex writes what people see twice: as an event (user_message,
 * agent_message) and as an item of the model's context. Here an event and its
 * item are told to be one, whichever comes first; an event that no item says
 * again is a message. Items that the model gave in one answer get a group.
 * A rollback puts what follows under what stood before the turns that it took
 * back.
 *
 * Invariant: an item's parent is the last item on the branch, and events are
 * on none: an answer is not cut by them.
 *
 * Threads: one thread at a time per reader.
 */
#ifndef AGENTWAL_FORMAT_DIALECT_CODEX_CODEX_STATE_H
#define AGENTWAL_FORMAT_DIALECT_CODEX_CODEX_STATE_H

#include "format/model/dialect.h"

/* Text that is kept from line to line, in memory that is used again. */
struct wal__codex_text {
    uint8_t *data;
    size_t size;
    size_t capacity;
};

/* Events of one kind, and the items that say the same. */
struct wal__codex_echo {
    bool is_pending;        /* an event for its item */
    size_t unmatched_items; /* that wait for their events */
    struct wal__codex_text id;
    struct wal__codex_text time;
    struct wal__codex_text text;
};

struct wal__codex {
    bool has_header;
    bool is_tagged;
    bool is_answering;                /* the last item is part of an answer */
    struct wal__codex_text answer;    /* its group */
    struct wal__codex_text last_line; /* id that the log has */
    struct wal__codex_text last_item; /* id of the last item on the branch */
    struct wal__codex_text
        pending_lines;                 /* lines that go before the next item */
    struct wal__codex_text pending_id; /* of the last of them */
    struct wal__codex_text model;
    struct wal__codex_text effort;
    struct wal__codex_text provider;
    struct wal__codex_echo user;
    struct wal__codex_echo agent;
    struct wal__codex_text turn;  /* what the event of a turn stood behind */
    struct wal__json_span *turns; /* what each turn stands behind */
    size_t turn_count;
    size_t turn_capacity;
};

/* The reader's state; NULL: no memory. All others answer false without memory
 * or when the sink wants no more. */
struct wal__codex *wal__codex_state(struct wal__model_reader *reader);

bool wal__codex_text_set(struct wal__model_reader *reader,
                         struct wal__codex_text *text,
                         struct wal__json_span span);
/* A copy that holds as long as an item needs it; empty where it is. */
bool wal__codex_text_copy(struct wal__model_reader *reader,
                          const struct wal__codex_text *text,
                          struct wal__json_span *span);
bool wal__codex_text_equals(const struct wal__codex_text *text,
                            struct wal__json_span span);

/* A line begins, and ends. */
bool wal__codex_line_begin(struct wal__model_reader *reader,
                           const struct wal__model_line *line);
bool wal__codex_line_end(struct wal__model_reader *reader,
                         const struct wal__model_line *line);

/* Gives an item under the last one. */
bool wal__codex_emit(struct wal__model_reader *reader,
                     struct wal__model_item *item);

/* Gives a message out of the model's context, or a call or a result. */
bool wal__codex_emit_message(struct wal__model_reader *reader,
                             struct wal__model_item *item);

/* An event that may say what an item says; `text` is empty for one that never
 * is a message. */
bool wal__codex_emit_event(struct wal__model_reader *reader,
                           struct wal__codex_echo *echo,
                           const struct wal__model_line *line,
                           struct wal__json_span text);

/* An answer is whole. */
void wal__codex_end_answer(struct wal__codex *codex);

/* Takes turns back. */
bool wal__codex_roll_back(struct wal__model_reader *reader,
                          struct wal__model_item *item, uint64_t turns);

/* Gives the messages that events alone said. */
bool wal__codex_flush(struct wal__model_reader *reader);

/* Gives the lines that wait for an item: as one on the branch, or aside. */
bool wal__codex_flush_lines(struct wal__model_reader *reader,
                            bool is_off_branch);

#endif
