/*
 * codex_item.h - reads items of a model's context in the form of OpenAI's API.
 *
 * Messages, reasoning, function calls and their outputs. The arguments of other
 * calls become an object, which other clients require.
 *
 * Invariant: an item of another type is not converted; its line is kept.
 *
 * Threads: no shared state; any thread may call any function.
 */
#ifndef AGENTWAL_CONVERT_DIALECT_CODEX_CODEX_ITEM_H
#define AGENTWAL_CONVERT_DIALECT_CODEX_CODEX_ITEM_H

#include "convert/model/model.h"

/* Sets role, blocks and related fields; sets *is_item to false if the model
 * cannot represent the item. False: no memory. */
bool wal__codex_item_read(struct wal__arena *arena, struct wal__json_span json,
                          struct wal__model_item *item, bool *is_item);

/* Joins the texts of the messages in an array of items to one JSON string.
 * False: no memory. */
bool wal__codex_history_text(struct wal__arena *arena,
                             struct wal__json_span items,
                             struct wal__json_span *text);

#endif
