/*
 * message_text.h - the texts of a message, of any dialect, without knowing which: for printing a
 * conversation and for searching it. docs/messages.md has the members that are read.
 *
 * The dialects keep a message in the payload itself, in its `message`, in its `payload`, or in the
 * `message` of that. Its content is a string, or a list of blocks with text, thinking, tool calls
 * and results; calls may also be in its `tool_calls`. A message of OpenCode has its role in `info`,
 * and `parts`; one of Google's API has `parts` too. Calls of Codex and their outputs are items
 * without a role; so is a command that a person ran in pi, with its output. Events of Copilot and
 * records of Gemini have a type instead of the role, and steps of Antigravity a source.
 *
 * A text of a user may consist of what its client wrote around, or in the place of, a person's
 * words, in tags: a slash command, the output of one, a reminder for the model. These are parts of
 * their own kinds, without the tags. What a person typed while an agent worked is in a queue
 * operation or an attachment, and is a message like others.
 *
 * Invariant: every function is total over valid JSON. Tokens are inside the text, or constants.
 *
 * Threads: no shared state; any thread may call any function.
 */
#ifndef AGENTWAL_FORMAT_PAYLOAD_MESSAGE_TEXT_H
#define AGENTWAL_FORMAT_PAYLOAD_MESSAGE_TEXT_H

#include "format/json/json_scan.h"

struct wal__message {
    bool is_meta;                /* in the user's name, but no person's */
    bool is_summary;             /* with which a compaction goes on */
    bool is_queued;              /* put into the queue: a later payload may repeat it */
    struct wal__json_token role; /* a string */
    struct wal__json_token content;
    struct wal__json_token calls;    /* `tool_calls`: an array, or anything else */
    struct wal__json_token thoughts; /* before the content: a text or an array of objects */
    struct wal__json_token files;    /* after the content: an array; images are of interest */
    struct wal__json_token messages; /* of Gemini, instead of the others: a list of messages */
    struct wal__json_token author;   /* of one in such a list: its role */
    struct wal__json_span item;      /* of Codex or pi, instead of the others; or empty */
    struct wal__json_span object;    /* that has the members above */
};

enum wal__message_part_kind {
    WAL__PART_TEXT,    /* text */
    WAL__PART_NOTE,    /* text of a client in a user's message */
    WAL__PART_COMMAND, /* of a person to the client; text: its name; value: what follows, or none */
    WAL__PART_THINKING, /* text */
    WAL__PART_CALL,     /* text: the tool's name; value: arguments, or none */
    WAL__PART_RESULT,   /* value: a string, or a list of blocks */
    WAL__PART_OTHER     /* text: the type of the block */
};

struct wal__message_part {
    enum wal__message_part_kind kind;
    bool is_whole;     /* the content is this text */
    bool is_bare;      /* an element of the content is this text */
    bool is_synthetic; /* a text that the client made */
    bool is_excerpt;   /* the spans of text and value are of characters without quotes */
    struct wal__json_token text;
    struct wal__json_token value;
    struct wal__json_span block;   /* the object that it is of; or empty */
    struct wal__json_token author; /* of a text: role of its message in a list; or none */
};

/* Decodes the text of a part, or its value if that is a string, into a buffer of the span's size;
 * returns the size. Of a note and a command SGR escape sequences are left out. */
size_t wal__message_decode(const struct wal__message_part *part,
                           const struct wal__json_token *string, uint8_t *buffer);

/* Whether a string of a part is its characters between quotes, with no escape sequence of a
 * terminal. */
bool wal__message_is_plain(const struct wal__message_part *part,
                           const struct wal__json_token *string);

typedef void wal__message_part_fn(void *ctx, const struct wal__message_part *part);

/* Whether a payload of this type, a JSON string, has a part of what a client sent to the model:
 * other payloads have those messages. */
bool wal__message_is_of_request(struct wal__json_span type);

/* Finds the message of a payload, which is JSON; false when it has none. */
bool wal__message_find(struct wal__json_span payload, struct wal__message *message);

/* Calls `each` for the parts of a message, in their order. */
void wal__message_visit(const struct wal__message *message, wal__message_part_fn *each, void *ctx);

/* Whether a user's message has notes of its client, and nothing else. */
bool wal__message_is_note(const struct wal__message *message);

/* A text in the queue, of a message that is_queued; of one with blocks the first text. */
struct wal__queued {
    struct wal__json_span text; /* a JSON string; or empty: nothing that could be repeated */
    bool is_removed;            /* from the queue */
};

enum wal__queued_fate {
    WAL__QUEUED_OPEN,
    WAL__QUEUED_REPEATED, /* the payload has the text, or the person took it back */
    WAL__QUEUED_LOST      /* the agent went on without repeating it: this is its only place */
};

void wal__queued_init(struct wal__queued *queued, const struct wal__message *message);

/* Reads the next payload after the text was put into the queue. */
enum wal__queued_fate wal__queued_read(struct wal__queued *queued, struct wal__json_span payload);

/* The same for one block of a content: a file of a part, of OpenCode. */
void wal__message_visit_block(struct wal__json_span block, wal__message_part_fn *each, void *ctx);

/* Calls `each` for the texts of a result, as parts of kind TEXT. */
void wal__message_visit_result(const struct wal__json_token *result, wal__message_part_fn *each,
                               void *ctx);

/* Finds the text of a payload that is not a message: a summary, a text, a content or a name; *key
 * is which. It is what a client shows: a part of kind NOTE. */
bool wal__message_find_note(struct wal__json_span payload, struct wal__json_token *note,
                            const char **key);

#endif
