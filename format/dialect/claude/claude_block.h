/*
 * claude_block.h - writes the content of messages for Claude Code.
 *
 * Invariant: each block becomes one element of the array, in order.
 *
 * Threads: no shared state; any thread may call any function.
 */
#ifndef AGENTWAL_FORMAT_DIALECT_CLAUDE_CLAUDE_BLOCK_H
#define AGENTWAL_FORMAT_DIALECT_CLAUDE_CLAUDE_BLOCK_H

#include "format/model/content_write.h"

/* The names of blocks in all messages. */
extern const struct wal__block_form wal__claude_blocks;

/* Writes the member `content`: a single text as a string, else blocks. */
void wal__claude_write_content(struct wal__json_out *out,
                               const struct wal__model_item *item);

#endif
