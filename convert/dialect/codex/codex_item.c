/*
 * codex_item.c - reads items of a model's context in the form of OpenAI's API.
 *
 * Threads: no shared state; any thread may call any function.
 */
#include "convert/dialect/codex/codex_item.h"

#include <string.h>

#include "convert/model/dialect.h"
#include "convert/model/model_member.h"
#include "format/json/json_value.h"

enum {
    I_TYPE,
    I_ROLE,
    I_CONTENT,
    I_MESSAGE,
    I_SUMMARY,
    I_ENCRYPTED,
    I_SIGNATURE,
    I_NAME,
    I_FUNCTION_NAME,
    I_ARGUMENTS,
    I_INPUT,
    I_ACTION,
    I_CALL,
    I_OUTPUT,
    I_RESULT,
    I_META,
    I_COUNT
};

static const struct wal__json_member item_wanted[I_COUNT] = {
    [I_TYPE] = {.key = "type"},
    [I_ROLE] = {.key = "role"},
    [I_CONTENT] = {.key = "content"},
    [I_MESSAGE] = {.key = "message"},
    [I_SUMMARY] = {.key = "summary"},
    [I_ENCRYPTED] = {.key = "encrypted_content"},
    [I_SIGNATURE] = {.key = "signature"},
    [I_NAME] = {.key = "name"},
    [I_FUNCTION_NAME] = {.parent = "function", .key = "name"},
    [I_ARGUMENTS] = {.key = "arguments"},
    [I_INPUT] = {.key = "input"},
    [I_ACTION] = {.key = "action"},
    [I_CALL] = {.key = "call_id"},
    [I_OUTPUT] = {.key = "output"},
    [I_RESULT] = {.key = "result"},
    [I_META] = {.key = "walconvMeta"},
};

struct decoder {
    struct wal__model_blocks blocks;
    struct wal__json_member members[I_COUNT];
    struct wal__model_item *item;
};

static bool is_type(const struct decoder *decoder, const char *type)
{
    return wal__line_string_is(&decoder->members[I_TYPE], type);
}

/* ----------------------------------------------------------- content --- */

static bool read_block(struct wal__model_blocks *blocks,
                       struct wal__json_span raw, uint32_t *fields)
{
    enum {
        TYPE,
        TEXT,
        URL,
        COUNT
    };
    struct wal__json_member members[COUNT] = {
        [TYPE] = {.key = "type"},
        [TEXT] = {.key = "text"},
        [URL] = {.key = "image_url"},
    };
    struct wal__model_block *block =
        wal__model_blocks_add(blocks, WAL__BLOCK_RAW, raw);

    if (block == NULL ||
        wal__model_members(raw, members, COUNT, fields) != WAL__JSON_OK) {
        return false;
    }
    if (wal__line_string_is(&members[TYPE], "input_image") &&
        members[URL].value.kind == WAL__JSON_STRING) {
        block->kind = WAL__BLOCK_IMAGE;
        return wal__model_set_image_url(blocks->arena, block,
                                        members[URL].value.span);
    }
    if ((wal__line_string_is(&members[TYPE], "input_text") ||
         wal__line_string_is(&members[TYPE], "output_text") ||
         wal__line_string_is(&members[TYPE], "text")) &&
        members[TEXT].value.kind == WAL__JSON_STRING) {
        block->kind = WAL__BLOCK_TEXT;
        block->text = members[TEXT].value.span;
    }
    return true;
}

static bool add_text(struct wal__model_blocks *blocks,
                     struct wal__json_span text)
{
    struct wal__model_block *block =
        wal__model_blocks_add(blocks, WAL__BLOCK_TEXT, text);

    if (block != NULL) {
        block->text = text;
    }
    return block != NULL && text.data != NULL;
}

static bool read_blocks(struct wal__model_blocks *blocks,
                        struct wal__json_span array, uint32_t *fields)
{
    struct wal__json_scan scan;
    struct wal__json_token value;

    wal__model_array_begin(&scan, array);
    while (wal__model_array_next(&scan, &value)) {
        if (!read_block(blocks, value.span, fields)) {
            return false;
        }
    }
    return true;
}

static bool read_content(struct decoder *decoder, struct wal__json_token value)
{
    if (value.kind == WAL__JSON_STRING) {
        return value.span.size <= 2 || add_text(&decoder->blocks, value.span);
    }
    return value.kind != WAL__JSON_ARRAY ||
           read_blocks(&decoder->blocks, value.span, &decoder->item->fields);
}

/* ------------------------------------------------------------- items --- */

/* Marks messages that the client inserts before a user's as meta. */
static void classify_meta(struct wal__model_item *item)
{
    static const struct {
        const char *prefix;
        const char *name;
    } prefixes[] = {
        {"<environment_context>", "\"environment_context\""},
        {"<user_instructions>", "\"user_instructions\""},
        {"# AGENTS.md instructions", "\"user_instructions\""},
    };

    if (item->block_count == 0 || item->blocks[0].kind != WAL__BLOCK_TEXT) {
        return;
    }
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
        size_t size = strlen(prefixes[i].prefix);
        if (item->blocks[0].text.size > size + 1 &&
            memcmp(item->blocks[0].text.data + 1, prefixes[i].prefix, size) ==
                0) {
            item->is_meta = true;
            item->name = wal__model_literal(prefixes[i].name);
        }
    }
}

static bool read_message(struct decoder *decoder, bool *is_item)
{
    struct wal__json_span role = wal__member_string(&decoder->members[I_ROLE]);
    struct wal__model_item *item = decoder->item;
    size_t key = decoder->members[I_CONTENT].value.kind == WAL__JSON_NONE
                     ? I_MESSAGE
                     : I_CONTENT;

    if (wal__model_text_is(role, "user")) {
        item->role = WAL__ROLE_USER;
    } else if (wal__model_text_is(role, "assistant")) {
        item->role = WAL__ROLE_ASSISTANT;
    } else if (wal__model_text_is(role, "developer") ||
               wal__model_text_is(role, "system")) {
        item->role = WAL__ROLE_SYSTEM;
    } else {
        *is_item = false;
        return true;
    }
    return read_content(decoder, decoder->members[key].value);
}

/* Joins the contents of two JSON strings with an empty line between them. */
static bool join(struct wal__arena *arena, struct wal__json_span *text,
                 struct wal__json_span more)
{
    static const char between[] = "\\n\\n";
    const size_t size = sizeof(between) - 1;
    uint8_t *joined;

    if (text->size <= 2 || more.size <= 2) {
        *text = more.size > 2 || text->size == 0 ? more : *text;
        return true;
    }
    joined = wal__arena_alloc(arena, text->size + more.size + size);
    if (joined == NULL) {
        return false;
    }
    memcpy(joined, text->data, text->size - 1);
    memcpy(joined + text->size - 1, between, size);
    memcpy(joined + text->size - 1 + size, more.data + 1, more.size - 1);
    *text = (struct wal__json_span){joined, text->size + more.size + size - 2};
    return true;
}

/* Appends the texts of an array of {type, text}. */
static bool join_texts(struct wal__arena *arena, struct wal__json_token array,
                       struct wal__json_span *text)
{
    struct wal__json_scan scan;
    struct wal__json_token value;

    if (array.kind != WAL__JSON_ARRAY) {
        return true;
    }
    wal__model_array_begin(&scan, array.span);
    while (wal__model_array_next(&scan, &value)) {
        struct wal__json_member member = {.key = "text"};
        if (wal__model_members(value.span, &member, 1, NULL) != WAL__JSON_OK ||
            (member.value.kind == WAL__JSON_STRING &&
             !join(arena, text, member.value.span))) {
            return false;
        }
    }
    return true;
}

static bool read_reasoning(struct decoder *decoder, struct wal__json_span raw)
{
    struct wal__arena *arena = decoder->blocks.arena;
    struct wal__model_block *block =
        wal__model_blocks_add(&decoder->blocks, WAL__BLOCK_THINKING, raw);
    const struct wal__json_member *members = decoder->members;

    decoder->item->role = WAL__ROLE_ASSISTANT;
    if (block == NULL ||
        !join_texts(arena, members[I_SUMMARY].value, &block->text) ||
        (block->text.size == 0 &&
         !join_texts(arena, members[I_CONTENT].value, &block->text))) {
        return false;
    }
    block->signature = wal__member_string(&members[I_ENCRYPTED]);
    if (block->signature.size == 0) {
        block->signature = wal__member_string(&members[I_SIGNATURE]);
    }
    block->is_redacted = block->text.size == 0 && block->signature.size > 0;
    return true;
}

/* Reads arguments: a string with JSON; a string with other text is kept. */
static bool read_arguments(struct wal__arena *arena,
                           const struct wal__json_member *member,
                           struct wal__json_span *arguments)
{
    struct wal__json_span text;

    *arguments = wal__member_non_null(member);
    if (arguments->size == 0) {
        *arguments = wal__model_literal("{}");
    }
    if (member->value.kind != WAL__JSON_STRING) {
        return true;
    }
    text = wal__arena_unescape(arena, member->value.span);
    if (text.data == NULL) {
        return false;
    }
    if (text.size == 0) {
        *arguments = wal__model_literal("{}");
    } else if (wal__json_validate(text.data, text.size, NULL) == WAL__JSON_OK) {
        *arguments = text;
    }
    return true;
}

/* Builds {"input": TEXT}, the arguments of a tool with free-text input. */
static bool wrap_input(struct wal__arena *arena, struct wal__json_span input,
                       struct wal__json_span *arguments)
{
    static const char begin[] = "{\"input\":";
    const size_t size = sizeof(begin) - 1;
    uint8_t *text = wal__arena_alloc(arena, size + input.size + 1);

    if (text == NULL) {
        return false;
    }
    memcpy(text, begin, size);
    memcpy(text + size, input.data, input.size);
    text[size + input.size] = '}';
    *arguments = (struct wal__json_span){text, size + input.size + 1};
    return true;
}

static bool read_call(struct decoder *decoder, struct wal__json_span raw)
{
    const struct wal__json_member *members = decoder->members;
    struct wal__arena *arena = decoder->blocks.arena;
    struct wal__model_block *block =
        wal__model_blocks_add(&decoder->blocks, WAL__BLOCK_TOOL_CALL, raw);

    decoder->item->role = WAL__ROLE_ASSISTANT;
    if (block == NULL) {
        return false;
    }
    block->id = wal__member_string(&members[I_CALL]);
    block->name = wal__member_string(
        &members[members[I_NAME].value.kind == WAL__JSON_STRING
                     ? I_NAME
                     : I_FUNCTION_NAME]);
    if (is_type(decoder, "local_shell_call")) {
        block->name = wal__model_literal("\"local_shell\"");
        return read_arguments(arena, &members[I_ACTION], &block->arguments);
    }
    if (is_type(decoder, "custom_tool_call")) {
        return wrap_input(arena,
                          members[I_INPUT].value.kind == WAL__JSON_STRING
                              ? members[I_INPUT].value.span
                              : wal__model_literal("\"\""),
                          &block->arguments);
    }
    return read_arguments(arena, &members[I_ARGUMENTS], &block->arguments);
}

static bool read_output(struct decoder *decoder)
{
    struct wal__arena *arena = decoder->blocks.arena;
    struct wal__json_token value =
        decoder
            ->members[decoder->members[I_OUTPUT].value.kind == WAL__JSON_NONE
                          ? I_RESULT
                          : I_OUTPUT]
            .value;
    struct wal__json_member type = {.key = "type"};

    decoder->item->role = WAL__ROLE_TOOL;
    decoder->item->call = wal__member_string(&decoder->members[I_CALL]);
    decoder->item->name = wal__member_string(&decoder->members[I_NAME]);
    if (value.kind == WAL__JSON_STRING || value.kind == WAL__JSON_ARRAY) {
        return read_content(decoder, value);
    }
    if (value.kind == WAL__JSON_NONE || value.kind == WAL__JSON_NULL) {
        return true;
    }
    if (wal__model_members(value.span, &type, 1, NULL) != WAL__JSON_OK) {
        return false;
    }
    return type.value.kind == WAL__JSON_STRING
               ? read_block(&decoder->blocks, value.span,
                            &decoder->item->fields)
               : add_text(&decoder->blocks,
                          wal__arena_escape(arena, value.span));
}

static bool is_call(const struct decoder *decoder)
{
    return is_type(decoder, "function_call") ||
           is_type(decoder, "custom_tool_call") ||
           is_type(decoder, "local_shell_call") ||
           is_type(decoder, "tool_call");
}

static bool is_output(const struct decoder *decoder)
{
    return is_type(decoder, "function_call_output") ||
           is_type(decoder, "custom_tool_call_output") ||
           is_type(decoder, "local_shell_call_output") ||
           is_type(decoder, "tool_result") ||
           is_type(decoder, "function_result");
}

bool wal__codex_item_read(struct wal__arena *arena, struct wal__json_span json,
                          struct wal__model_item *item, bool *is_item)
{
    struct decoder decoder = {.blocks = {.arena = arena}, .item = item};
    const struct wal__json_member *members = decoder.members;
    bool is_done = true;

    memcpy(decoder.members, item_wanted, sizeof(item_wanted));
    if (wal__model_members(json, decoder.members, I_COUNT, &item->fields) !=
        WAL__JSON_OK) {
        return false;
    }
    *is_item = true;
    if (is_type(&decoder, "message") ||
        (members[I_TYPE].value.kind == WAL__JSON_NONE &&
         members[I_ROLE].value.kind == WAL__JSON_STRING)) {
        is_done = read_message(&decoder, is_item);
    } else if (is_type(&decoder, "reasoning")) {
        is_done = read_reasoning(&decoder, json);
    } else if (is_call(&decoder)) {
        is_done = read_call(&decoder, json);
    } else if (is_output(&decoder)) {
        is_done = read_output(&decoder);
    } else {
        *is_item = false;
    }
    item->blocks = decoder.blocks.items;
    item->block_count = decoder.blocks.count;
    if (is_done && *is_item && item->role == WAL__ROLE_USER) {
        classify_meta(item);
        item->is_meta |= wal__member_is_true(&decoder.members[I_META]);
    }
    return is_done;
}

/* Whether a person or the model wrote the message, not the client. */
static bool is_conversational(const struct wal__model_item *item)
{
    return !item->is_meta &&
           (item->role == WAL__ROLE_USER || item->role == WAL__ROLE_ASSISTANT);
}

bool wal__codex_history_text(struct wal__arena *arena,
                             struct wal__json_span items,
                             struct wal__json_span *text)
{
    struct wal__json_scan scan;
    struct wal__json_token value;

    wal__model_array_begin(&scan, items);
    while (wal__model_array_next(&scan, &value)) {
        struct wal__model_item item = {.kind = WAL__ITEM_MESSAGE};
        bool is_item = false;
        if (!wal__codex_item_read(arena, value.span, &item, &is_item)) {
            return false;
        }
        for (size_t i = 0;
             is_item && is_conversational(&item) && i < item.block_count; i++) {
            if (item.blocks[i].kind == WAL__BLOCK_TEXT &&
                !join(arena, text, item.blocks[i].text)) {
                return false;
            }
        }
    }
    return true;
}
