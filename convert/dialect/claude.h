/*
 * claude.h - the vocabulary of Claude Code.
 *
 * Threads: no shared state; any thread may call any function.
 */
#ifndef AGENTWAL_CONVERT_DIALECT_CLAUDE_H
#define AGENTWAL_CONVERT_DIALECT_CLAUDE_H

#include "convert/model/model_content.h"
#include "convert/model/model_member.h"

/* Kinds of items, by the type of a row outside the conversation. */
extern const struct wal__word wal__claude_metadata[];

/* Stop reasons; those without a name are null. */
extern const struct wal__word wal__claude_stops[];

/* Fields of struct wal__model_usage. */
extern const struct wal__field wal__claude_usage[];

/* The names of blocks in all messages. */
extern const struct wal__block_form wal__claude_blocks;

#endif
