/*
 * claude_vocabulary.c - the vocabulary of Claude Code.
 *
 * Threads: no shared state; any thread may call any function.
 */
#include "convert/dialect/claude/claude_vocabulary.h"

const struct wal__word wal__claude_metadata[] = {
    {"custom-title",
     WAL__ITEM_TITLE,
     {{"customTitle", .at = WAL__ITEM_AT(text), .missing = "\"\""}}},
    {"ai-title", WAL__ITEM_TITLE, {{"aiTitle", .at = WAL__ITEM_AT(text)}}},
    {"summary", WAL__ITEM_TITLE, {{"summary", .at = WAL__ITEM_AT(text)}}},
    {"walconv-custom",
     WAL__ITEM_CUSTOM,
     {{"name", .at = WAL__ITEM_AT(name)},
      {"data", .at = WAL__ITEM_AT(data), .kind = WAL__FIELD_NON_NULL}}},
    {"walconv-label",
     WAL__ITEM_LABEL,
     {{"targetUuid", .at = WAL__ITEM_AT(target)},
      {"name", .at = WAL__ITEM_AT(text)}}},
    {"walconv-line",
     WAL__ITEM_LINE,
     {{"dialect", .at = WAL__ENTRY_AT(dialect)},
      {"data", .at = WAL__ENTRY_AT(line), .kind = WAL__FIELD_RAW}}},
    {.name = NULL},
};

const struct wal__word wal__claude_stops[] = {
    {"end_turn", .value = WAL__STOP_END},
    {"max_tokens", .value = WAL__STOP_LENGTH},
    {"tool_use", .value = WAL__STOP_TOOL},
    {"stop_sequence", .value = WAL__STOP_SEQUENCE},
    {"refusal", .value = WAL__STOP_REFUSAL},
    {"error", .value = WAL__STOP_ERROR},
    {"aborted", .value = WAL__STOP_ABORTED},
    {.name = NULL},
};

const struct wal__field wal__claude_usage[] = {
    {"input_tokens", WAL__USAGE_AT(input), .kind = WAL__FIELD_NUMBER,
     .missing = "0"},
    {"cache_creation_input_tokens", WAL__USAGE_AT(cache_write),
     .kind = WAL__FIELD_NUMBER},
    {"cache_read_input_tokens", WAL__USAGE_AT(cache_read),
     .kind = WAL__FIELD_NUMBER},
    {"output_tokens", WAL__USAGE_AT(output), .kind = WAL__FIELD_NUMBER,
     .missing = "0"},
    {.key = NULL},
};

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
