/*
 * rollouts_read.c - converts session files of rollouts to items.
 *
 * A line is an item: the header, a message, or a config_change, which is a
 * change of the model. Content is a string, null, or blocks: text, thinking,
 * toolCall, image.
 *
 * Invariant: a line does not refer to others, so it can be written unchanged,
 * except a message with a block that the client's reader rejects.
 *
 * Threads: one thread at a time per reader.
 */
#include "convert/model/dialect.h"
#include "convert/model/model_content.h"
#include "convert/model/model_write.h"
#include "convert/model/vocabulary.h"

struct line {
    struct wal__entry entry; /* first: offsets in it are offsets in the line */
    struct wal__json_span message;
};

static const struct wal__field line_fields[] = {
    {"type", .at = WAL__ENTRY_AT(type)},
    {"message", .at = offsetof(struct line, message),
     .kind = WAL__FIELD_CONTAINER},
    {.key = NULL},
};

static const struct wal__word line_words[] = {
    {"session",
     WAL__ITEM_HEADER,
     {{"id", .at = WAL__SESSION_AT(id)},
      {"timestamp", .at = WAL__SESSION_AT(time)},
      {"cwd", .at = WAL__SESSION_AT(cwd)},
      {"provider", .at = WAL__SESSION_AT(provider)},
      {"model", .at = WAL__SESSION_AT(model)}}},
    {"message", .value = WAL__ITEM_MESSAGE},
    {"config_change",
     WAL__ITEM_MODEL_CHANGE,
     {{"provider", .parent = "endpoint", .at = WAL__ITEM_AT(provider)},
      {"model", .parent = "endpoint", .at = WAL__ITEM_AT(model)}}},
    {.name = NULL},
};

static const struct wal__field message_fields[] = {
    {"role", .at = WAL__ENTRY_AT(role)},
    {"content", .at = WAL__ENTRY_AT(content), .kind = WAL__FIELD_TOKEN},
    {"tool_calls", .at = WAL__ENTRY_AT(calls), .kind = WAL__FIELD_TOKEN},
    {.key = NULL},
};

static const struct wal__word roles[] = {
    {"assistant", .value = WAL__ROLE_ASSISTANT},
    {"system", .value = WAL__ROLE_SYSTEM},
    {"tool", WAL__ROLE_TOOL, {{"tool_call_id", .at = WAL__ITEM_AT(call)}}},
    {.name = NULL},
};

struct source {
    struct wal__model_block block; /* first: offsets in it are offsets here */
    struct wal__json_span type;
    struct wal__json_span image_url;
};

static const struct wal__field block_fields[] = {
    {"type", .at = offsetof(struct source, type)},
    {.key = NULL},
};

static const struct wal__word block_words[] = {
    {"text", WAL__BLOCK_TEXT, {{"text", .at = WAL__BLOCK_AT(text)}}},
    {"thinking",
     WAL__BLOCK_THINKING,
     {{"thinking", .at = WAL__BLOCK_AT(text)},
      {"thinking_signature", .at = WAL__BLOCK_AT(signature)},
      {"redacted", .at = WAL__BLOCK_AT(is_redacted), .kind = WAL__FIELD_TRUE}}},
    {"toolCall",
     WAL__BLOCK_TOOL_CALL,
     {{"id", .at = WAL__BLOCK_AT(id)},
      {"name", .at = WAL__BLOCK_AT(name)},
      {"arguments", .at = WAL__BLOCK_AT(arguments),
       .kind = WAL__FIELD_NON_NULL}}},
    {"image",
     WAL__BLOCK_IMAGE,
     {{"image_url", .at = offsetof(struct source, image_url)}}},
    {.name = NULL},
};

static bool read_block(struct wal__model_blocks *blocks,
                       struct wal__json_span raw, uint32_t *fields)
{
    struct wal__model_block *block =
        wal__model_blocks_add(blocks, WAL__BLOCK_RAW, raw);
    struct source source = {.block = {.raw = raw}};
    const struct wal__word *word;

    if (block == NULL ||
        wal__word_read(raw, block_fields, block_words, &source.type, &source,
                       fields, &word) != WAL__JSON_OK) {
        return false;
    }
    if (word == NULL ||
        (word->value == WAL__BLOCK_IMAGE && source.image_url.size == 0)) {
        return true;
    }
    *block = source.block;
    block->kind = word->value;
    block->arguments = wal__content_unwrap_arguments(block->arguments);
    if (block->kind == WAL__BLOCK_TEXT) {
        block->text = wal__model_or(block->text, "\"\"");
    }
    block->is_redacted |=
        block->kind == WAL__BLOCK_THINKING && block->text.size == 0;
    return block->kind != WAL__BLOCK_IMAGE ||
           wal__model_set_image_url(blocks->arena, block, source.image_url);
}

static bool read_content(struct wal__json_token content,
                         struct wal__model_blocks *blocks, uint32_t *fields)
{
    struct wal__json_scan scan;
    struct wal__json_token value;

    if (content.kind != WAL__JSON_ARRAY) {
        return wal__content_read(content, blocks, fields);
    }
    wal__model_array_begin(&scan, content.span);
    while (wal__model_array_next(&scan, &value)) {
        if (!read_block(blocks, value.span, fields)) {
            return false;
        }
    }
    return true;
}

static bool has_unknown_block(const struct wal__model_blocks *blocks)
{
    for (size_t i = 0; i < blocks->count; i++) {
        if (blocks->items[i].kind == WAL__BLOCK_RAW) {
            return true;
        }
    }
    return false;
}

static bool read_message(struct wal__model_reader *reader, struct line *line)
{
    struct wal__model_blocks blocks = {.arena = reader->scratch};
    struct wal__entry *entry = &line->entry;
    struct wal__model_item *item = &entry->item;
    const struct wal__word *role;

    if (wal__word_read(line->message, message_fields, roles, &entry->role, line,
                       &item->fields, &role) != WAL__JSON_OK ||
        !read_content(entry->content, &blocks, &item->fields) ||
        !wal__content_read_calls(entry->calls, &blocks)) {
        return false;
    }
    item->role = role != NULL ? role->value : WAL__ROLE_USER;
    item->blocks = blocks.items;
    item->block_count = blocks.count;
    if (has_unknown_block(&blocks)) {
        item->raw.size = 0;
    }
    return true;
}

static enum wal__json_status rollouts_line(struct wal__model_reader *reader,
                                           const struct wal__model_line *text)
{
    struct line line = {.entry.item = {.id = text->id,
                                       .parent = text->parent,
                                       .time = text->time,
                                       .raw = text->text}};
    struct wal__model_item *item = &line.entry.item;
    const struct wal__word *word;
    enum wal__json_status status;

    status = wal__word_read(text->text, line_fields, line_words,
                            &line.entry.type, &line, &item->fields, &word);
    if (status != WAL__JSON_OK) {
        return status;
    }
    item->kind = word != NULL ? word->value : WAL__ITEM_LINE;
    if ((item->kind == WAL__ITEM_HEADER && text->parent.size > 0) ||
        (item->kind == WAL__ITEM_MESSAGE &&
         (line.message.size == 0 || line.message.data[0] != '{'))) {
        item->kind = WAL__ITEM_LINE;
    }
    if (item->kind == WAL__ITEM_HEADER) {
        line.entry.session.raw = text->text;
        line.entry.session.dialect = reader->dialect;
        item->session = &line.entry.session;
    } else if (item->kind == WAL__ITEM_LINE) {
        item->data = text->text;
    } else if (item->kind == WAL__ITEM_MESSAGE &&
               !read_message(reader, &line)) {
        return WAL__JSON_NO_SPACE;
    }
    return wal__model_emit(reader, item) ? WAL__JSON_OK : WAL__JSON_NO_SPACE;
}

const struct wal__dialect_read_ops wal__rollouts_read_ops = {
    .line = rollouts_line,
};
