/*
 * claude_block.c - writes the content of messages for Claude Code.
 *
 * Threads: no shared state; any thread may call any function.
 */
#include "format/dialect/claude/claude_block.h"

static void write_image(struct wal__json_out *out,
                        const struct wal__model_block *block)
{
    wal__json_out_member_str(out, "type", "image");
    wal__json_out_member_open(out, "source", '{');
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

const struct wal__block_form wal__claude_blocks = {
    .text = "text",
    .signature = "signature",
    .redacted = "redacted_thinking",
    .call = "tool_use",
    .arguments = "input",
    .image = write_image,
};

void wal__claude_write_content(struct wal__json_out *out,
                               const struct wal__model_item *item)
{
    if (item->block_count == 1 && item->blocks[0].kind == WAL__BLOCK_TEXT) {
        wal__json_out_member(out, "content", item->blocks[0].text);
    } else if (item->block_count == 0) {
        wal__json_out_member_str(out, "content", "");
    } else {
        wal__content_write_blocks(out, "content", &wal__claude_blocks,
                                  item->blocks, item->block_count);
    }
}
