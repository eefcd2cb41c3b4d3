/*
 * opencode_emit.h - emits the items of OpenCode's messages.
 *
 * The items of a message are collected and emitted together, so that the first
 * one can have the whole message as its line: {"info":...,"parts":[...]}, the
 * form in which the client exports it.
 *
 * Invariant: each item is a child of the previous one, and has a unique id.
 *
 * Threads: one thread at a time per storage.
 */
#ifndef AGENTWAL_CONVERT_DIALECT_OPENCODE_OPENCODE_EMIT_H
#define AGENTWAL_CONVERT_DIALECT_OPENCODE_OPENCODE_EMIT_H

#include "convert/dialect/opencode/opencode_storage.h"

/* The functions below report failures in the storage's has_failed. */

/* Adds an item to those of the present message. */
void wal__opencode_emit(struct wal__opencode_storage *storage,
                        const struct wal__model_item *item);

/* Emits the items of the present message, whose id is given. `raw` is its line,
 * or empty if that cannot be written unchanged. The line of a message without
 * items goes before that of the next message, if that has one. */
void wal__opencode_emit_batch(struct wal__opencode_storage *storage,
                              struct wal__json_span id,
                              struct wal__json_span raw);

/* Emits the line of a message without items that waits for the next message, as
 * an item that only this dialect writes. */
void wal__opencode_emit_prefix(struct wal__opencode_storage *storage);

/* Keeps a result until the item that it follows was emitted. Returns false if
 * another one follows the same item. */
bool wal__opencode_defer(struct wal__opencode_storage *storage,
                         struct wal__json_span after,
                         const struct wal__model_item *result);

/* Emits the results that name an item which no message has. */
void wal__opencode_emit_deferred(struct wal__opencode_storage *storage);

/* Returns the line of a message, in scratch. */
struct wal__json_span
wal__opencode_message_line(struct wal__opencode_storage *storage,
                           const struct wal__opencode_document *message,
                           size_t first_part);

#endif
