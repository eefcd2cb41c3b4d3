/*
 * claude_block.h - writes the content of messages for Claude Code.
 *
 * Invariant: each block becomes one element of the array, in order.
 *
 * Threads: no shared state; any thread may call any function.
 */
#ifndef AGENTWAL_FORMAT_DIALECT_CLAUDE_CLAUDE_BLOCK_H
#define AGENTWAL_FORMAT_DIALECT_CLAUDE_CLAUDE_BLOCK_H

#include "format/json/json_out.h"
#include "format/model/model.h"

/* Writes a member with an array of blocks. */
void wal__claude_write_blocks(struct wal__json_out *out, const char *key,
                              const struct wal__model_block *blocks,
                              size_t count);

/* Writes the member `content`: a single text as a string, else blocks. */
void wal__claude_write_content(struct wal__json_out *out,
                               const struct wal__model_item *item);

#endif
