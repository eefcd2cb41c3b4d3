/*
 * claude_block.c - writes the content of messages for Claude Code.
 *
 * Threads: no shared state; any thread may call any function.
 */
#include "format/dialect/claude/claude_block.h"

#include "format/model/model_content.h"
#include "format/model/model_write.h"

static void write_image(struct wal__json_out *out,
                        const struct wal__model_block *block)
{
    wal__json_out_member_str(out, "type", "image");
    wal__json_out_key(out, "source");
    wal__json_out_open(out, '{');
    if (block->url.size > 0) {
        wal__json_out_member_str(out, "type", "url");
        wal__json_out_member(out, "url", block->url);
    } else {
        wal__json_out_member_str(out, "type", "base64");
        wal__json_out_member_text(out, "media_type", block->media);
        wal__json_out_member_text(out, "data", block->data);
    }
    wal__json_out_close(out, '}');
}

static void write_thinking(struct wal__json_out *out,
                           const struct wal__model_block *block)
{
    if (block->is_redacted) {
        wal__json_out_member_str(out, "type", "redacted_thinking");
        wal__json_out_member(out, "data",
                             wal__model_or(block->signature, "\"\""));
        return;
    }
    wal__json_out_member_str(out, "type", "thinking");
    wal__json_out_member(out, "thinking", wal__model_or(block->text, "\"\""));
    wal__json_out_optional(out, "signature", block->signature);
}

static void write_block(struct wal__json_out *out,
                        const struct wal__model_block *block)
{
    if (block->kind == WAL__BLOCK_RAW) {
        wal__json_out_compact(out, block->raw);
        return;
    }
    wal__json_out_open(out, '{');
    switch (block->kind) {
    case WAL__BLOCK_TEXT:
        wal__json_out_member_str(out, "type", "text");
        wal__json_out_member(out, "text", block->text);
        break;
    case WAL__BLOCK_THINKING:
        write_thinking(out, block);
        break;
    case WAL__BLOCK_TOOL_CALL:
        wal__content_write_call(out, block, "tool_use", "input");
        break;
    case WAL__BLOCK_IMAGE:
        write_image(out, block);
        break;
    case WAL__BLOCK_RAW:
        break;
    }
    wal__json_out_close(out, '}');
}

void wal__claude_write_blocks(struct wal__json_out *out, const char *key,
                              const struct wal__model_block *blocks,
                              size_t count)
{
    wal__json_out_key(out, key);
    wal__json_out_open(out, '[');
    for (size_t i = 0; i < count; i++) {
        write_block(out, &blocks[i]);
    }
    wal__json_out_close(out, ']');
}

void wal__claude_write_content(struct wal__json_out *out,
                               const struct wal__model_item *item)
{
    if (item->block_count == 1 && item->blocks[0].kind == WAL__BLOCK_TEXT) {
        wal__json_out_member(out, "content", item->blocks[0].text);
    } else if (item->block_count == 0) {
        wal__json_out_member_str(out, "content", "");
    } else {
        wal__claude_write_blocks(out, "content", item->blocks,
                                 item->block_count);
    }
}
