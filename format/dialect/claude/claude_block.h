/*
 * claude_block.h - the content of messages as Claude Code has it.
 *
 * Invariant: an item of an array is written for each block, in their order.
 *
 * Threads: no shared state; any thread may call any function.
 */
#ifndef AGENTWAL_FORMAT_DIALECT_CLAUDE_CLAUDE_BLOCK_H
#define AGENTWAL_FORMAT_DIALECT_CLAUDE_CLAUDE_BLOCK_H

#include "format/json/json_out.h"
#include "format/model/model.h"

/* A member with an array of them. */
void wal__claude_write_blocks(struct wal__json_out *out, const char *key,
                              const struct wal__model_block *blocks,
                              size_t count);

/* The member `content`: one text as a string, anything else as blocks. */
void wal__claude_write_content(struct wal__json_out *out,
                               const struct wal__model_item *item);

#endif
