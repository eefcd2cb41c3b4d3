/*
 * codex_item.h - an item of a model's context, as OpenAI's interface has it.
 *
 * Messages, reasoning, calls of functions and what they gave. A call that is
 * no function's gets arguments that are an object, as other clients want them.
 *
 * Invariant: an item of another type is none; it stays in its line.
 *
 * Threads: no shared state; any thread may call any function.
 */
#ifndef AGENTWAL_FORMAT_DIALECT_CODEX_CODEX_ITEM_H
#define AGENTWAL_FORMAT_DIALECT_CODEX_CODEX_ITEM_H

#include "format/model/model.h"

/* Sets role, blocks and what belongs to them; *is_item is false where the
 * model has no place for it. False: no memory. */
bool wal__codex_item_read(struct wal__arena *arena, struct wal__json_span json,
                          struct wal__model_item *item, bool *is_item);

/* The texts of the messages in an array of items as one JSON string. */
bool wal__codex_history_text(struct wal__arena *arena,
                             struct wal__json_span items,
                             struct wal__json_span *text);

#endif
