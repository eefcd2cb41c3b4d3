/*
 * opencode_part_read.h - parts of a message in OpenCode's storage, as items.
 *
 * What the model or the user said is an item; each result of a tool, which
 * stands in its call's part, is one of its own. Results end a step.
 *
 * Invariant: a part that is kept as it is has no ids in it; its message gives
 * them.
 *
 * Threads: one thread at a time per message.
 */
#ifndef AGENTWAL_FORMAT_DIALECT_OPENCODE_OPENCODE_PART_READ_H
#define AGENTWAL_FORMAT_DIALECT_OPENCODE_OPENCODE_PART_READ_H

#include "format/dialect/opencode/opencode_storage.h"
#include "format/model/model_content.h"

/* A message being read. */
struct wal__opencode_message {
    struct wal__opencode_storage *storage;
    struct wal__model_blocks blocks;
    struct wal__model_item item;
    struct wal__json_span part;      /* id of the one being read */
    struct wal__model_item *results; /* that wait for the end of a step */
    size_t result_count;
    size_t result_capacity;
    bool has_user_text;       /* a text is no synthetic one */
    bool is_emitted;          /* an item of it was */
    bool has_compaction_part; /* of a compaction */
};

/* Failures of all of these are in the storage's has_failed. */

/* Takes the next part of a message. */
void wal__opencode_part_read(struct wal__opencode_message *message,
                             const struct wal__opencode_document *part);

/* Gives what there is of a message: a step, or all. */
void wal__opencode_flush(struct wal__opencode_message *message, bool is_end);

/* Gives a summary: the message's texts are those of a compaction. */
void wal__opencode_emit_summary(struct wal__opencode_message *message);

#endif
