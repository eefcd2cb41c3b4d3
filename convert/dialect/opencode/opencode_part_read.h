/*
 * opencode_part_read.h - converts the parts of a message of OpenCode to items.
 *
 * The content of a message is one item. Each tool result, which is in the part
 * of its call, is a separate item. Results end a step, unless they name the
 * item that they follow.
 *
 * Invariant: the ids in a part that is kept as a raw block are removed; the
 * writer adds them again.
 *
 * Threads: one thread at a time per message.
 */
#ifndef AGENTWAL_CONVERT_DIALECT_OPENCODE_OPENCODE_PART_READ_H
#define AGENTWAL_CONVERT_DIALECT_OPENCODE_OPENCODE_PART_READ_H

#include "convert/dialect/opencode/opencode_storage.h"
#include "convert/model/model_content.h"

/* A message being read. */
struct wal__opencode_message {
    struct wal__opencode_storage *storage;
    struct wal__model_blocks blocks;
    struct wal__model_item item;
    struct wal__json_span part;      /* id of the present part */
    struct wal__model_item *results; /* to emit at the end of the step */
    size_t result_count;
    size_t result_capacity;
    bool has_user_text;              /* a part is not synthetic text */
    bool is_emitted;                 /* an item of the message was emitted */
    bool has_compaction_part;        /* the mark of a compaction */
    struct wal__json_span last_part; /* id of the part before, if it is raw */
    bool is_raw; /* the client's form of it can be written unchanged */
};

/* The functions below report failures in the storage's has_failed. */

/* Reads the next part of a message. */
void wal__opencode_part_read(struct wal__opencode_message *message,
                             const struct wal__opencode_document *document);

/* Whether a tool's part of that status has the call's result. */
bool wal__opencode_has_result(struct wal__json_span status);

/* Emits the content and the results read so far: a step, or the rest. */
void wal__opencode_flush(struct wal__opencode_message *message, bool is_end);

/* Emits a compaction whose summary is the texts of the message. */
void wal__opencode_emit_summary(struct wal__opencode_message *message);

#endif
