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
#include <string.h>

#include "format/model/dialect.h"
#include "format/model/model_content.h"

enum {
    L_TYPE,
    L_ID,
    L_TIME,
    L_CWD,
    L_PROVIDER,
    L_MODEL,
    L_MESSAGE,
    L_ENDPOINT_PROVIDER,
    L_ENDPOINT_MODEL,
    L_COUNT
};

static const struct wal__json_member line_wanted[L_COUNT] = {
    [L_TYPE] = {.key = "type"},
    [L_ID] = {.key = "id"},
    [L_TIME] = {.key = "timestamp"},
    [L_CWD] = {.key = "cwd"},
    [L_PROVIDER] = {.key = "provider"},
    [L_MODEL] = {.key = "model"},
    [L_MESSAGE] = {.key = "message"},
    [L_ENDPOINT_PROVIDER] = {.parent = "endpoint", .key = "provider"},
    [L_ENDPOINT_MODEL] = {.parent = "endpoint", .key = "model"},
};

enum {
    B_TYPE,
    B_TEXT,
    B_THINKING,
    B_SIGNATURE,
    B_ID,
    B_NAME,
    B_ARGUMENTS,
    B_IMAGE_URL,
    B_REDACTED,
    B_COUNT
};

static const struct wal__json_member block_wanted[B_COUNT] = {
    [B_TYPE] = {.key = "type"},
    [B_TEXT] = {.key = "text"},
    [B_THINKING] = {.key = "thinking"},
    [B_SIGNATURE] = {.key = "thinking_signature"},
    [B_ID] = {.key = "id"},
    [B_NAME] = {.key = "name"},
    [B_ARGUMENTS] = {.key = "arguments"},
    [B_IMAGE_URL] = {.key = "image_url"},
    [B_REDACTED] = {.key = "redacted"},
};

static bool read_block(struct wal__model_blocks *blocks,
                       struct wal__json_span raw, uint32_t *fields)
{
    struct wal__model_block *block =
        wal__model_blocks_add(blocks, WAL__BLOCK_RAW, raw);
    struct wal__json_member members[B_COUNT];
    const struct wal__json_member *type = &members[B_TYPE];

    memcpy(members, block_wanted, sizeof(members));
    if (block == NULL ||
        wal__model_members(raw, members, B_COUNT, fields) != WAL__JSON_OK) {
        return false;
    }
    if (wal__line_string_is(type, "text")) {
        block->kind = WAL__BLOCK_TEXT;
        block->text = wal__member_string(&members[B_TEXT]);
    } else if (wal__line_string_is(type, "thinking")) {
        block->kind = WAL__BLOCK_THINKING;
        block->text = wal__member_string(&members[B_THINKING]);
        block->signature = wal__member_string(&members[B_SIGNATURE]);
        block->is_redacted =
            block->text.size == 0 || wal__member_is_true(&members[B_REDACTED]);
    } else if (wal__line_string_is(type, "toolCall")) {
        block->kind = WAL__BLOCK_TOOL_CALL;
        block->id = wal__member_string(&members[B_ID]);
        block->name = wal__member_string(&members[B_NAME]);
        block->arguments = wal__content_unwrap_arguments(
            wal__member_non_null(&members[B_ARGUMENTS]));
    } else if (wal__line_string_is(type, "image") &&
               members[B_IMAGE_URL].value.kind == WAL__JSON_STRING) {
        block->kind = WAL__BLOCK_IMAGE;
        return wal__model_set_image_url(blocks->arena, block,
                                        members[B_IMAGE_URL].value.span);
    }
    if (block->kind == WAL__BLOCK_TEXT && block->text.size == 0) {
        block->text = wal__model_literal("\"\"");
    }
    return true;
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

static void read_role(struct wal__model_item *item, struct wal__json_span role,
                      struct wal__json_span call)
{
    if (wal__model_text_is(role, "assistant")) {
        item->role = WAL__ROLE_ASSISTANT;
    } else if (wal__model_text_is(role, "system")) {
        item->role = WAL__ROLE_SYSTEM;
    } else if (wal__model_text_is(role, "tool")) {
        item->role = WAL__ROLE_TOOL;
        item->call = call;
    }
}

static bool read_message(struct wal__model_reader *reader,
                         struct wal__model_item *item,
                         struct wal__json_span message)
{
    enum {
        ROLE,
        CONTENT,
        CALLS,
        CALL,
        COUNT
    };
    struct wal__json_member members[COUNT] = {
        [ROLE] = {.key = "role"},
        [CONTENT] = {.key = "content"},
        [CALLS] = {.key = "tool_calls"},
        [CALL] = {.key = "tool_call_id"},
    };
    struct wal__model_blocks blocks = {.arena = reader->scratch};

    item->kind = WAL__ITEM_MESSAGE;
    if (wal__model_members(message, members, COUNT, &item->fields) !=
            WAL__JSON_OK ||
        !read_content(members[CONTENT].value, &blocks, &item->fields) ||
        !wal__content_read_calls(members[CALLS].value, &blocks)) {
        return false;
    }
    read_role(item, wal__member_string(&members[ROLE]),
              wal__member_string(&members[CALL]));
    item->blocks = blocks.items;
    item->block_count = blocks.count;
    if (has_unknown_block(&blocks)) {
        item->raw.size = 0;
    }
    return true;
}

static enum wal__json_status rollouts_line(struct wal__model_reader *reader,
                                           const struct wal__model_line *line)
{
    struct wal__json_member members[L_COUNT];
    const struct wal__json_member *type = &members[L_TYPE];
    struct wal__model_session session = {.dialect = reader->dialect};
    struct wal__model_item item = {.id = line->id,
                                   .parent = line->parent,
                                   .time = line->time,
                                   .raw = line->text};
    enum wal__json_status status;

    memcpy(members, line_wanted, sizeof(members));
    status = wal__model_members(line->text, members, L_COUNT, &item.fields);
    if (status != WAL__JSON_OK) {
        return status;
    }
    if (wal__line_string_is(type, "session") && line->parent.size == 0) {
        session.id = wal__member_string(&members[L_ID]);
        session.time = wal__member_string(&members[L_TIME]);
        session.cwd = wal__member_string(&members[L_CWD]);
        session.provider = wal__member_string(&members[L_PROVIDER]);
        session.model = wal__member_string(&members[L_MODEL]);
        session.raw = line->text;
        item.kind = WAL__ITEM_HEADER;
        item.session = &session;
    } else if (wal__line_string_is(type, "message") &&
               members[L_MESSAGE].value.kind == WAL__JSON_OBJECT) {
        if (!read_message(reader, &item, members[L_MESSAGE].value.span)) {
            return WAL__JSON_NO_SPACE;
        }
    } else if (wal__line_string_is(type, "config_change")) {
        item.kind = WAL__ITEM_MODEL_CHANGE;
        item.provider = wal__member_string(&members[L_ENDPOINT_PROVIDER]);
        item.model = wal__member_string(&members[L_ENDPOINT_MODEL]);
    } else {
        item.kind = WAL__ITEM_LINE;
        item.data = line->text;
    }
    return wal__model_emit(reader, &item) ? WAL__JSON_OK : WAL__JSON_NO_SPACE;
}

const struct wal__dialect_read_ops wal__rollouts_read_ops = {
    .line = rollouts_line,
};
