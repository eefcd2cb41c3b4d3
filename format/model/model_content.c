/*
 * model_content.c - reads the content of a message as current clients write it.
 *
 * Threads: no shared state; any thread may call any function.
 */
#include "format/model/model_content.h"

#include <string.h>

#include "format/bytes/assert.h"
#include "format/model/dialect.h"

enum {
    B_TYPE,
    B_TEXT,
    B_THINKING,
    B_SIGNATURE,
    B_PI_SIGNATURE,
    B_REDACTED,
    B_DATA,
    B_MIME,
    B_URL,
    B_WALCONV_URL,
    B_ID,
    B_NAME,
    B_INPUT,
    B_ARGUMENTS,
    B_CALL,
    B_CONTENT,
    B_ERROR,
    B_SOURCE_TYPE,
    B_SOURCE_MEDIA,
    B_SOURCE_DATA,
    B_SOURCE_URL,
    B_COUNT
};

static const struct wal__json_member block_wanted[B_COUNT] = {
    [B_TYPE] = {.key = "type"},
    [B_TEXT] = {.key = "text"},
    [B_THINKING] = {.key = "thinking"},
    [B_SIGNATURE] = {.key = "signature"},
    [B_PI_SIGNATURE] = {.key = "thinkingSignature"},
    [B_REDACTED] = {.key = "redacted"},
    [B_DATA] = {.key = "data"},
    [B_MIME] = {.key = "mimeType"},
    [B_URL] = {.key = "url"},
    [B_WALCONV_URL] =
        {.key = "walconvUrl"}, /* of an image that was written as a text */
    [B_ID] = {.key = "id"},
    [B_NAME] = {.key = "name"},
    [B_INPUT] = {.key = "input"},
    [B_ARGUMENTS] = {.key = "arguments"},
    [B_CALL] = {.key = "tool_use_id"},
    [B_CONTENT] = {.key = "content"},
    [B_ERROR] = {.key = "is_error"},
    [B_SOURCE_TYPE] = {.parent = "source", .key = "type"},
    [B_SOURCE_MEDIA] = {.parent = "source", .key = "media_type"},
    [B_SOURCE_DATA] = {.parent = "source", .key = "data"},
    [B_SOURCE_URL] = {.parent = "source", .key = "url"},
};

static struct wal__json_span first_value(const struct wal__json_member *members,
                                         size_t key, size_t other)
{
    struct wal__json_span span = wal__member_non_null(&members[key]);

    return span.size > 0 ? span : wal__member_non_null(&members[other]);
}

static void read_thinking(struct wal__model_block *block,
                          const struct wal__json_member *members)
{
    bool is_redacted =
        wal__line_string_is(&members[B_TYPE], "redacted_thinking");

    block->kind = WAL__BLOCK_THINKING;
    block->is_redacted =
        is_redacted || wal__member_is_true(&members[B_REDACTED]);
    block->text = wal__member_string(&members[B_THINKING]);
    block->signature = wal__member_string(
        &members[members[B_SIGNATURE].value.kind == WAL__JSON_STRING
                     ? B_SIGNATURE
                     : B_PI_SIGNATURE]);
    if (is_redacted && block->signature.size == 0) {
        block->signature = wal__member_string(&members[B_DATA]);
    }
}

static void read_image(struct wal__arena *arena, struct wal__model_block *block,
                       const struct wal__json_member *members)
{
    bool has_source = wal__line_string_is(&members[B_SOURCE_TYPE], "base64");

    block->url = wal__member_string(
        &members[wal__line_string_is(&members[B_SOURCE_TYPE], "url")
                     ? B_SOURCE_URL
                     : B_URL]);
    block->media = wal__arena_unescape(
        arena,
        wal__member_string(&members[has_source ? B_SOURCE_MEDIA : B_MIME]));
    block->data = wal__arena_unescape(
        arena,
        wal__member_string(&members[has_source ? B_SOURCE_DATA : B_DATA]));
    if (block->url.size > 0 || block->data.size > 0) {
        block->kind = WAL__BLOCK_IMAGE;
    }
}

static bool read_block(struct wal__model_blocks *blocks,
                       const struct wal__json_member *members,
                       struct wal__json_span raw)
{
    struct wal__json_span type = wal__member_string(&members[B_TYPE]);
    struct wal__model_block *block =
        wal__model_blocks_add(blocks, WAL__BLOCK_RAW, raw);

    if (block == NULL) {
        return false;
    }
    if (members[B_WALCONV_URL].value.kind == WAL__JSON_STRING) {
        block->kind = WAL__BLOCK_IMAGE;
        block->url = members[B_WALCONV_URL].value.span;
    } else if (wal__model_text_is(type, "text") &&
               members[B_TEXT].value.kind == WAL__JSON_STRING) {
        block->kind = WAL__BLOCK_TEXT;
        block->text = members[B_TEXT].value.span;
    } else if (wal__model_text_is(type, "thinking") ||
               wal__model_text_is(type, "redacted_thinking")) {
        read_thinking(block, members);
    } else if (wal__model_text_is(type, "tool_use") ||
               wal__model_text_is(type, "toolCall")) {
        block->kind = WAL__BLOCK_TOOL_CALL;
        block->id = wal__member_string(&members[B_ID]);
        block->name = wal__member_string(&members[B_NAME]);
        block->arguments = wal__content_unwrap_arguments(
            first_value(members, B_INPUT, B_ARGUMENTS));
    } else if (wal__model_text_is(type, "image")) {
        read_image(blocks->arena, block, members);
    }
    return true;
}

struct wal__json_span
wal__content_unwrap_arguments(struct wal__json_span object)
{
    static const char begin[] = "{\"" WAL__WRAPPED_ARGUMENTS "\":";
    const size_t size = sizeof(begin) - 1;
    struct wal__json_member wrapped = {.key = WAL__WRAPPED_ARGUMENTS};
    uint32_t unknown_count = 0;

    if (object.size > size && memcmp(object.data, begin, size) == 0 &&
        wal__model_members(object, &wrapped, 1, &unknown_count) ==
            WAL__JSON_OK &&
        unknown_count == 0 && wrapped.value.kind != WAL__JSON_NONE) {
        return wrapped.value.span;
    }
    return object;
}

static bool add_text(struct wal__model_blocks *blocks,
                     struct wal__json_span text)
{
    struct wal__model_block *block =
        wal__model_blocks_add(blocks, WAL__BLOCK_TEXT, text);

    if (block != NULL) {
        block->text = text;
    }
    return block != NULL;
}

static bool block_members(struct wal__json_span raw,
                          struct wal__json_member *members, uint32_t *fields)
{
    memcpy(members, block_wanted, sizeof(block_wanted));
    return wal__model_members(raw, members, B_COUNT, fields) == WAL__JSON_OK;
}

bool wal__content_read(struct wal__json_token content,
                       struct wal__model_blocks *blocks, uint32_t *fields)
{
    struct wal__json_member members[B_COUNT];
    struct wal__json_scan scan;
    struct wal__json_token value;

    if (content.kind == WAL__JSON_STRING) {
        return content.span.size <= 2 || add_text(blocks, content.span);
    }
    if (content.kind != WAL__JSON_ARRAY) {
        return true;
    }
    wal__model_array_begin(&scan, content.span);
    while (wal__model_array_next(&scan, &value)) {
        if (value.kind == WAL__JSON_STRING
                ? !add_text(blocks, value.span)
                : !block_members(value.span, members, fields) ||
                      !read_block(blocks, members, value.span)) {
            return false;
        }
    }
    return true;
}

bool wal__content_read_calls(struct wal__json_token calls,
                             struct wal__model_blocks *blocks)
{
    const struct wal__json_span none = {NULL, 0};
    enum {
        ID,
        NAME,
        ARGUMENTS,
        TOP_NAME,
        TOP_ARGUMENTS,
        INPUT,
        COUNT
    };
    struct wal__json_scan scan;
    struct wal__json_token value;

    if (calls.kind != WAL__JSON_ARRAY) {
        return true;
    }
    wal__model_array_begin(&scan, calls.span);
    while (wal__model_array_next(&scan, &value)) {
        struct wal__json_member members[COUNT] = {
            [ID] = {.key = "id"},
            [NAME] = {.parent = "function", .key = "name"},
            [ARGUMENTS] = {.parent = "function", .key = "arguments"},
            [TOP_NAME] = {.key = "name"},
            [TOP_ARGUMENTS] = {.key = "arguments"},
            [INPUT] = {.key = "input"},
        };
        struct wal__model_block *block =
            wal__model_blocks_add(blocks, WAL__BLOCK_TOOL_CALL, value.span);
        struct wal__json_span text;
        if (block == NULL || wal__model_members(value.span, members, COUNT,
                                                NULL) != WAL__JSON_OK) {
            return false;
        }
        block->id = wal__member_string(&members[ID]);
        block->name = wal__member_string(
            &members[members[NAME].value.kind == WAL__JSON_STRING ? NAME
                                                                  : TOP_NAME]);
        block->arguments = first_value(members, ARGUMENTS, TOP_ARGUMENTS);
        if (block->arguments.size == 0) {
            block->arguments = wal__member_non_null(&members[INPUT]);
        }
        text = block->arguments.size > 0 && block->arguments.data[0] == '"'
                   ? wal__arena_unescape(blocks->arena, block->arguments)
                   : none;
        if (text.size > 0 &&
            wal__json_validate(text.data, text.size, NULL) == WAL__JSON_OK) {
            block->arguments = text;
        } else if (text.size == 0 &&
                   members[ARGUMENTS].value.kind == WAL__JSON_STRING) {
            block->arguments.size = 0;
        }
    }
    return true;
}

bool wal__content_read_item(struct wal__json_token content,
                            struct wal__json_token calls,
                            struct wal__arena *arena,
                            struct wal__model_item *item)
{
    struct wal__model_blocks blocks = {.arena = arena};

    if (!wal__content_read(content, &blocks, &item->fields) ||
        !wal__content_read_calls(calls, &blocks)) {
        return false;
    }
    item->blocks = blocks.items;
    item->block_count = blocks.count;
    return true;
}

static bool add_piece(struct wal__content_pieces *pieces,
                      const struct wal__model_item *item,
                      struct wal__model_blocks *blocks)
{
    struct wal__model_item *items =
        wal__arena_grow(pieces->arena, pieces->items, pieces->count,
                        &pieces->capacity, sizeof(items[0]));

    if (items == NULL) {
        return false;
    }
    pieces->items = items;
    WAL__ASSERT(pieces->count < pieces->capacity);
    pieces->items[pieces->count] = *item;
    pieces->items[pieces->count].blocks = blocks->items;
    pieces->items[pieces->count].block_count = blocks->count;
    pieces->count++;
    *blocks = (struct wal__model_blocks){.arena = pieces->arena};
    return true;
}

static bool add_result(struct wal__content_pieces *pieces,
                       const struct wal__model_item *item,
                       const struct wal__json_member *members, uint32_t *fields)
{
    struct wal__model_blocks blocks = {.arena = pieces->arena};
    struct wal__model_item result = *item;

    result.role = WAL__ROLE_TOOL;
    result.is_meta = false;
    result.name.size = 0;
    result.call = wal__member_string(&members[B_CALL]);
    result.is_error = wal__member_is_true(&members[B_ERROR]);
    if (pieces->first_call.size == 0) {
        pieces->first_call = result.call;
    }
    return wal__content_read(members[B_CONTENT].value, &blocks, fields) &&
           add_piece(pieces, &result, &blocks);
}

static bool split_array(struct wal__content_pieces *pieces,
                        const struct wal__model_item *item,
                        struct wal__json_span content, uint32_t *fields)
{
    struct wal__model_blocks blocks = {.arena = pieces->arena};
    struct wal__json_member members[B_COUNT];
    struct wal__json_scan scan;
    struct wal__json_token value;

    wal__model_array_begin(&scan, content);
    while (wal__model_array_next(&scan, &value)) {
        bool is_done;
        if (value.kind == WAL__JSON_STRING) {
            is_done = add_text(&blocks, value.span);
        } else if (!block_members(value.span, members, fields)) {
            is_done = false;
        } else if (!wal__line_string_is(&members[B_TYPE], "tool_result")) {
            is_done = read_block(&blocks, members, value.span);
        } else {
            is_done = (blocks.count == 0 || add_piece(pieces, item, &blocks)) &&
                      add_result(pieces, item, members, fields);
        }
        if (!is_done) {
            return false;
        }
    }
    return blocks.count == 0 || add_piece(pieces, item, &blocks);
}

/* Derives the id of a piece that is not the last: the item's with a number. */
static bool derive_id(struct wal__content_pieces *pieces,
                      struct wal__json_span own, size_t number,
                      struct wal__json_span *id)
{
    uint8_t *text = wal__arena_alloc(pieces->arena, own.size + 16);
    size_t size = own.size - 1;

    WAL__ASSERT(own.size >= 2);
    if (text == NULL) {
        return false;
    }
    memcpy(text, own.data, size);
    text[size++] = '~';
    for (size_t unit = 100000; unit > 0; unit /= 10) {
        text[size++] = (uint8_t)('0' + number / unit % 10);
    }
    text[size++] = '"';
    WAL__ASSERT(size <= own.size + 16);
    *id = (struct wal__json_span){text, size};
    return true;
}

bool wal__content_split(struct wal__content_pieces *pieces,
                        const struct wal__model_item *item,
                        struct wal__json_token content)
{
    struct wal__model_blocks blocks = {.arena = pieces->arena};
    uint32_t fields = item->fields;

    if (content.kind == WAL__JSON_ARRAY
            ? !split_array(pieces, item, content.span, &fields)
            : !wal__content_read(content, &blocks, &fields)) {
        return false;
    }
    if (pieces->count == 0 && !add_piece(pieces, item, &blocks)) {
        return false;
    }
    for (size_t i = 0; i < pieces->count; i++) {
        struct wal__model_item *piece = &pieces->items[i];
        piece->fields = i == 0 ? fields : 0;
        if (i > 0) {
            piece->raw.size = 0;
        }
        if (i + 1 < pieces->count && item->id.size >= 2 &&
            !derive_id(pieces, item->id, i, &piece->id)) {
            return false;
        }
    }
    WAL__ASSERT(pieces->count > 0);
    pieces->items[0].raw_items_left = (uint32_t)(pieces->count - 1);
    return true;
}

bool wal__content_emit(struct wal__content_pieces *pieces,
                       struct wal__json_span parent,
                       struct wal__model_reader *reader)
{
    for (size_t i = 0; i < pieces->count; i++) {
        struct wal__model_item *piece = &pieces->items[i];
        piece->parent = parent;
        parent = piece->is_off_branch ? parent : piece->id;
        if (!wal__model_emit(reader, piece)) {
            return false;
        }
    }
    return true;
}
