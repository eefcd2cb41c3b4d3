/*
 * codex_text.h - texts that persist between the lines of a rollout.
 *
 * Threads: one thread at a time per reader.
 */
#ifndef AGENTWAL_CONVERT_DIALECT_CODEX_CODEX_TEXT_H
#define AGENTWAL_CONVERT_DIALECT_CODEX_CODEX_TEXT_H

#include "convert/model/dialect.h"

/* A text in a reusable buffer. */
struct wal__codex_text {
    uint8_t *data;
    size_t size;
    size_t capacity;
};

/* The functions return false if there is no memory. */

bool wal__codex_text_set(struct wal__model_reader *reader,
                         struct wal__codex_text *text,
                         struct wal__json_span span);
bool wal__codex_text_add(struct wal__model_reader *reader,
                         struct wal__codex_text *text,
                         struct wal__json_span span);

/* Copies a text for an item; empty if the text is empty. */
bool wal__codex_text_copy(struct wal__model_reader *reader,
                          const struct wal__codex_text *text,
                          struct wal__json_span *span);
bool wal__codex_text_equals(const struct wal__codex_text *text,
                            struct wal__json_span span);

#endif
