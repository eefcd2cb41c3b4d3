/*
 * model_content.c - reads and writes the content of messages (model_content.h).
 */
#include "convert/model/model_content.h"

#include <string.h>

#include "convert/model/model_write.h"
#include "format/bytes/assert.h"

/* The only member of arguments that were not an object when they were written. Returns its value,
 * or else the object. */
#define WAL__WRAPPED_ARGUMENTS "walconvArguments"

/* A block, and members that are not fields of the model. */
struct source {
    struct wal__model_block block; /* first: offsets in it are offsets here */
    struct wal__json_span type;
    struct wal__json_span image_url; /* of an image that was written as a text */
    struct wal__json_span data;      /* of an image, or redacted thinking */
    struct wal__json_span media;
    struct wal__json_span source_type;
    struct wal__json_span source_url;
    struct wal__json_span source_data;
    struct wal__json_span source_media;
    struct wal__json_span call; /* of a result */
    struct wal__json_span name; /* of its tool */
    struct wal__json_token content;
    struct wal__json_span response; /* of a part that is a result */
    bool is_error;
    bool is_thought;
    bool is_result;
};

#define SOURCE_AT(field) offsetof(struct source, field)

/* Any member of a result, which is a separate item. */
static const struct wal__field block_fields[] = {
    {"type", .at = SOURCE_AT(type)},
    {"walconvUrl", .at = SOURCE_AT(image_url)},
    {"tool_use_id", .at = SOURCE_AT(call)},
    {"content", .at = SOURCE_AT(content), .kind = WAL__FIELD_TOKEN},
    {"is_error", .at = SOURCE_AT(is_error), .kind = WAL__FIELD_TRUE},
    {.key = NULL},
};

static const struct wal__word block_words[] = {
    {"text", WAL__BLOCK_TEXT, {{"text", .at = WAL__BLOCK_AT(text)}}},
    {"thinking",
     WAL__BLOCK_THINKING,
     {{"thinking", .at = WAL__BLOCK_AT(text)},
      {"signature", .at = WAL__BLOCK_AT(signature)},
      {"thinkingSignature", .at = WAL__BLOCK_AT(signature)},
      {"redacted", .at = WAL__BLOCK_AT(is_redacted), .kind = WAL__FIELD_TRUE}}},
    {"redacted_thinking",
     WAL__BLOCK_THINKING,
     {{"thinking", .at = WAL__BLOCK_AT(text)},
      {"signature", .at = WAL__BLOCK_AT(signature)},
      {"thinkingSignature", .at = WAL__BLOCK_AT(signature)},
      {"data", .at = WAL__BLOCK_AT(signature)}}},
    {"tool_use",
     WAL__BLOCK_TOOL_CALL,
     {{"id", .at = WAL__BLOCK_AT(id)},
      {"name", .at = WAL__BLOCK_AT(name)},
      {"input", .at = WAL__BLOCK_AT(arguments), .kind = WAL__FIELD_NON_NULL},
      {"arguments", .at = WAL__BLOCK_AT(arguments), .kind = WAL__FIELD_NON_NULL}}},
    {"toolCall",
     WAL__BLOCK_TOOL_CALL,
     {{"id", .at = WAL__BLOCK_AT(id)},
      {"name", .at = WAL__BLOCK_AT(name)},
      {"input", .at = WAL__BLOCK_AT(arguments), .kind = WAL__FIELD_NON_NULL},
      {"arguments", .at = WAL__BLOCK_AT(arguments), .kind = WAL__FIELD_NON_NULL}}},
    {"image",
     WAL__BLOCK_IMAGE,
     {{"url", .at = WAL__BLOCK_AT(url)},
      {"data", .at = SOURCE_AT(data)},
      {"mimeType", .at = SOURCE_AT(media)},
      {"type", .parent = "source", .at = SOURCE_AT(source_type)},
      {"url", .parent = "source", .at = SOURCE_AT(source_url)},
      {"data", .parent = "source", .at = SOURCE_AT(source_data)},
      {"media_type", .parent = "source", .at = SOURCE_AT(source_media)}}},
    {.name = NULL},
};

const struct wal__field wal__usage_fields[] = {
    {"input_tokens", WAL__USAGE_AT(input), .kind = WAL__FIELD_NUMBER},
    {"output_tokens", WAL__USAGE_AT(output), .kind = WAL__FIELD_NUMBER},
    {"cache_read_input_tokens", WAL__USAGE_AT(cache_read), .kind = WAL__FIELD_NUMBER},
    {"cache_creation_input_tokens", WAL__USAGE_AT(cache_write), .kind = WAL__FIELD_NUMBER},
    {.key = NULL},
};

static void finish_image(struct wal__arena *arena, struct source *source)
{
    struct wal__model_block *block = &source->block;
    bool is_base64 = wal__model_text_is(source->source_type, "base64");

    if (wal__model_text_is(source->source_type, "url")) {
        block->url = source->source_url;
    }
    block->media = wal__arena_unescape(arena, is_base64 ? source->source_media : source->media);
    block->data = wal__arena_unescape(arena, is_base64 ? source->source_data : source->data);
    if (block->url.size == 0 && block->data.size == 0) {
        block->kind = WAL__BLOCK_RAW;
    }
}

/* A part of a Content of Google's API. It has no type, but one of these members. */
static const struct wal__field part_fields[] = {
    {"text", .at = WAL__BLOCK_AT(text)},
    {"thought", .at = SOURCE_AT(is_thought), .kind = WAL__FIELD_TRUE},
    {"thoughtSignature", .at = WAL__BLOCK_AT(signature)},
    {"id", .parent = "functionCall", .at = WAL__BLOCK_AT(id)},
    {"name", .parent = "functionCall", .at = WAL__BLOCK_AT(name)},
    {"args", .parent = "functionCall", .at = WAL__BLOCK_AT(arguments), .kind = WAL__FIELD_NON_NULL},
    {"id", .parent = "functionResponse", .at = SOURCE_AT(call)},
    {"name", .parent = "functionResponse", .at = SOURCE_AT(name)},
    {"response", .parent = "functionResponse", .at = SOURCE_AT(response), .kind = WAL__FIELD_RAW},
    {"parts", .parent = "functionResponse", .at = SOURCE_AT(content), .kind = WAL__FIELD_TOKEN},
    {"mimeType", .parent = "inlineData", .at = SOURCE_AT(media)},
    {"data", .parent = "inlineData", .at = SOURCE_AT(data)},
    {"mimeType", .parent = "fileData", .at = SOURCE_AT(source_media)},
    {"fileUri", .parent = "fileData", .at = WAL__BLOCK_AT(url)},
    {.key = NULL},
};

static bool read_part(struct wal__arena *arena, struct source *source, uint32_t *fields)
{
    struct wal__model_block *block = &source->block;
    uint32_t unknown_count = 0;

    if (wal__fields_read(block->raw, part_fields, source, &unknown_count) != WAL__JSON_OK) {
        return false;
    }
    if (source->response.size > 0) {
        source->is_result = true;
    } else if (block->id.size + block->name.size + block->arguments.size > 0) {
        block->kind = WAL__BLOCK_TOOL_CALL;
        block->arguments = wal__content_unwrap_arguments(block->arguments);
    } else if (source->data.size > 0 || block->url.size > 0) {
        block->kind = WAL__BLOCK_IMAGE;
        block->media = wal__arena_unescape(arena, wal__model_or(source->media, "\"\""));
        block->data = wal__arena_unescape(arena, wal__model_or(source->data, "\"\""));
    } else if (source->is_thought && block->text.size + block->signature.size > 0) {
        block->kind = WAL__BLOCK_THINKING;
        block->is_redacted = block->text.size == 0;
    } else if (block->text.size > 0) {
        block->kind = WAL__BLOCK_TEXT;
    }
    if (block->kind != WAL__BLOCK_RAW || source->is_result) {
        *fields += unknown_count;
    }
    return true;
}

/* Reads a value of an array of blocks. */
static bool read_source(struct wal__arena *arena, struct wal__json_span raw, struct source *source,
                        uint32_t *fields)
{
    struct wal__model_block *block = &source->block;
    const struct wal__word *word;
    uint32_t unknown_count = 0;

    *source = (struct source){.block = {.kind = WAL__BLOCK_RAW, .raw = raw}};
    if (wal__word_read(raw, block_fields, block_words, &source->type, source, &unknown_count,
                       &word) != WAL__JSON_OK) {
        return false;
    }
    if (source->type.size == 0 && source->image_url.size == 0) {
        *source = (struct source){.block = {.kind = WAL__BLOCK_RAW, .raw = raw}};
        return read_part(arena, source, fields);
    }
    *fields += unknown_count;
    source->is_result = wal__model_text_is(source->type, "tool_result");
    if (source->image_url.size > 0) {
        *block = (struct wal__model_block){
            .kind = WAL__BLOCK_IMAGE, .url = source->image_url, .raw = raw};
        return true;
    }
    block->kind = word != NULL ? word->value : WAL__BLOCK_RAW;
    if (block->kind == WAL__BLOCK_TEXT && block->text.size == 0) {
        block->kind = WAL__BLOCK_RAW;
    }
    if (wal__model_text_is(source->type, "redacted_thinking")) {
        block->is_redacted = true;
    }
    if (block->kind == WAL__BLOCK_IMAGE) {
        finish_image(arena, source);
    }
    block->arguments = wal__content_unwrap_arguments(block->arguments);
    return true;
}

struct wal__json_span wal__content_unwrap_arguments(struct wal__json_span object)
{
    static const char begin[] = "{\"" WAL__WRAPPED_ARGUMENTS "\":";
    const size_t size = sizeof(begin) - 1;
    struct wal__json_member wrapped = {.key = WAL__WRAPPED_ARGUMENTS};
    uint32_t unknown_count = 0;

    if (object.size > size && memcmp(object.data, begin, size) == 0 &&
        wal__model_members(object, &wrapped, 1, &unknown_count) == WAL__JSON_OK &&
        unknown_count == 0 && wrapped.value.kind != WAL__JSON_NONE) {
        return wrapped.value.span;
    }
    return object;
}

bool wal__content_read(struct wal__json_token content, struct wal__model_blocks *blocks,
                       uint32_t *fields)
{
    struct source source;
    struct wal__json_scan scan;
    struct wal__json_token value;

    if (content.kind == WAL__JSON_STRING) {
        return content.span.size <= 2 ||
               wal__model_blocks_add_text(blocks, WAL__BLOCK_TEXT, content.span);
    }
    if (content.kind != WAL__JSON_ARRAY) {
        return true;
    }
    wal__model_array_begin(&scan, content.span);
    while (wal__model_array_next(&scan, &value)) {
        if (value.kind == WAL__JSON_STRING
                ? !wal__model_blocks_add_text(blocks, WAL__BLOCK_TEXT, value.span)
                : !read_source(blocks->arena, value.span, &source, fields) ||
                      !wal__model_blocks_append(blocks, &source.block)) {
            return false;
        }
    }
    return true;
}

static const struct wal__field call_fields[] = {
    {"id", .at = WAL__BLOCK_AT(id)},
    {"toolCallId", .at = WAL__BLOCK_AT(id)},
    {"name", .parent = "function", .at = WAL__BLOCK_AT(name)},
    {"name", .at = WAL__BLOCK_AT(name)},
    {"arguments", .parent = "function", .at = WAL__BLOCK_AT(arguments),
     .kind = WAL__FIELD_NON_NULL},
    {"arguments", .at = WAL__BLOCK_AT(arguments), .kind = WAL__FIELD_NON_NULL},
    {"input", .at = WAL__BLOCK_AT(arguments), .kind = WAL__FIELD_NON_NULL},
    {"arguments", .parent = "function", .at = SOURCE_AT(data)},
    {.key = NULL},
};

bool wal__content_read_calls(struct wal__json_token calls, struct wal__model_blocks *blocks)
{
    struct wal__json_scan scan;
    struct wal__json_token value;

    if (calls.kind != WAL__JSON_ARRAY) {
        return true;
    }
    wal__model_array_begin(&scan, calls.span);
    while (wal__model_array_next(&scan, &value)) {
        struct source call = {.block = {.kind = WAL__BLOCK_TOOL_CALL, .raw = value.span}};
        struct wal__json_span *arguments = &call.block.arguments;
        struct wal__json_span text = {NULL, 0};
        if (wal__fields_read(value.span, call_fields, &call, NULL) != WAL__JSON_OK) {
            return false;
        }
        if (arguments->size > 0 && arguments->data[0] == '"') {
            text = wal__arena_unescape(blocks->arena, *arguments);
        }
        if (text.size > 0 && wal__json_validate(text.data, text.size, NULL) == WAL__JSON_OK) {
            *arguments = text;
        } else if (text.size == 0 && call.data.size > 0) {
            arguments->size = 0;
        }
        *arguments = wal__content_unwrap_arguments(*arguments);
        if (!wal__model_blocks_append(blocks, &call.block)) {
            return false;
        }
    }
    return true;
}

bool wal__content_read_item(struct wal__json_token content, struct wal__json_token calls,
                            struct wal__arena *arena, struct wal__model_item *item)
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

static bool add_piece(struct wal__content_pieces *pieces, const struct wal__model_item *item,
                      struct wal__model_blocks *blocks)
{
    struct wal__model_item *items = wal__arena_grow(pieces->arena, pieces->items, pieces->count,
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

/* Adds the text of a part that is a result: what its tool returned, or any other object. */
static bool read_response(struct wal__model_blocks *blocks, struct wal__json_span response,
                          bool *is_error, uint32_t *fields)
{
    struct wal__json_member members[] = {{.key = "output"}, {.key = "error"}};
    struct wal__json_span text;
    uint32_t unknown_count = 0;

    if (wal__model_members(response, members, 2, &unknown_count) != WAL__JSON_OK) {
        return false;
    }
    text = wal__member_string(&members[0]);
    *is_error = text.size == 0 && members[1].value.kind == WAL__JSON_STRING;
    if (*is_error) {
        text = members[1].value.span;
    }
    if (text.size > 0) {
        *fields += unknown_count;
    } else {
        text = wal__arena_escape(blocks->arena, response);
    }
    return text.data != NULL && wal__model_blocks_add_text(blocks, WAL__BLOCK_TEXT, text);
}

static bool add_result(struct wal__content_pieces *pieces, const struct wal__model_item *item,
                       const struct source *source, uint32_t *fields)
{
    struct wal__model_blocks blocks = {.arena = pieces->arena};
    struct wal__model_item result = *item;

    result.role = WAL__ROLE_TOOL;
    result.is_meta = false;
    result.name = source->name;
    result.call = source->call;
    result.is_error = source->is_error;
    if (pieces->first_call.size == 0) {
        pieces->first_call = result.call;
    }
    return (source->response.size == 0 ||
            read_response(&blocks, source->response, &result.is_error, fields)) &&
           wal__content_read(source->content, &blocks, fields) &&
           add_piece(pieces, &result, &blocks);
}

static bool split_array(struct wal__content_pieces *pieces, const struct wal__model_item *item,
                        struct wal__json_span content, uint32_t *fields)
{
    struct wal__model_blocks blocks = {.arena = pieces->arena};
    struct source source;
    struct wal__json_scan scan;
    struct wal__json_token value;

    wal__model_array_begin(&scan, content);
    while (wal__model_array_next(&scan, &value)) {
        bool is_done;
        if (value.kind == WAL__JSON_STRING) {
            is_done = wal__model_blocks_add_text(&blocks, WAL__BLOCK_TEXT, value.span);
        } else if (!read_source(pieces->arena, value.span, &source, fields)) {
            is_done = false;
        } else if (!source.is_result) {
            is_done = wal__model_blocks_append(&blocks, &source.block);
        } else {
            is_done = (blocks.count == 0 || add_piece(pieces, item, &blocks)) &&
                      add_result(pieces, item, &source, fields);
        }
        if (!is_done) {
            return false;
        }
    }
    return blocks.count == 0 || add_piece(pieces, item, &blocks);
}

bool wal__content_split(struct wal__content_pieces *pieces, const struct wal__model_item *item,
                        struct wal__json_token content)
{
    struct wal__model_blocks blocks = {.arena = pieces->arena};
    uint32_t fields = item->fields;

    if (content.kind == WAL__JSON_ARRAY ? !split_array(pieces, item, content.span, &fields)
                                        : !wal__content_read(content, &blocks, &fields)) {
        return false;
    }
    if (pieces->count == 0 && !add_piece(pieces, item, &blocks)) {
        return false;
    }
    pieces->items[0].fields = fields;
    for (size_t i = 1; i < pieces->count; i++) {
        pieces->items[i].fields = 0;
    }
    return wal__content_number(pieces, item->id);
}

bool wal__content_number(struct wal__content_pieces *pieces, struct wal__json_span id)
{
    WAL__ASSERT(pieces->count > 0);
    for (size_t i = 0; i < pieces->count; i++) {
        struct wal__model_item *piece = &pieces->items[i];
        uint8_t digits[WAL__MODEL_DIGITS];
        piece->id = id;
        if (i > 0) {
            piece->raw.size = 0;
        }
        if (i + 1 < pieces->count && id.size >= 2) {
            /* A million and the number: six digits of it. */
            struct wal__json_span number = wal__model_digits(1000000 + i, digits);
            number.data++;
            number.size--;
            piece->id = wal__model_append(pieces->arena, id, "~", number);
        }
        if (piece->id.data == NULL && id.data != NULL) {
            return false;
        }
    }
    pieces->items[0].raw_items_left = (uint32_t)(pieces->count - 1);
    return true;
}

bool wal__content_add(struct wal__content_pieces *pieces, const struct wal__model_item *item)
{
    struct wal__model_blocks blocks = {.items = item->blocks, .count = item->block_count};

    return add_piece(pieces, item, &blocks);
}

bool wal__content_emit(struct wal__content_pieces *pieces, struct wal__json_span parent,
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

/* --- writing -------------------------------------------------------------- */

void wal__content_write_arguments(struct wal__json_out *out, const char *key,
                                  struct wal__json_span arguments)
{
    size_t at = 0;

    while (at < arguments.size && arguments.data[at] <= ' ') {
        at++;
    }
    wal__json_out_key(out, key);
    if (at < arguments.size && arguments.data[at] == '{') {
        wal__json_out_compact(out, arguments);
        return;
    }
    wal__json_out_open(out, '{');
    if (at < arguments.size) {
        wal__json_out_member(out, WAL__WRAPPED_ARGUMENTS, arguments);
    }
    wal__json_out_close(out, '}');
}

static void write_text(struct wal__json_out *out, const struct wal__block_form *form,
                       const struct wal__model_block *block)
{
    wal__model_print(out, "'type':$,'text':%", wal__model_literal(form->text),
                     wal__model_or(block->text, "\"\""));
}

static void write_thinking(struct wal__json_out *out, const struct wal__block_form *form,
                           const struct wal__model_block *block)
{
    if (block->is_redacted && form->redacted != NULL) {
        wal__model_print(out, "'type':$,'data':%", wal__model_literal(form->redacted),
                         wal__model_or(block->signature, "\"\""));
        return;
    }
    wal__model_print(out, "'type':'thinking','thinking':%", wal__model_or(block->text, "\"\""));
    wal__json_out_optional(out, form->signature, block->signature);
    wal__model_put(out, block->is_redacted ? "'redacted':true" : "");
}

static void write_call(struct wal__json_out *out, const struct wal__block_form *form,
                       const struct wal__model_block *block)
{
    const char *missing = form->omits_empty ? "" : "\"\"";

    wal__model_print(out, "'type':$,'id':?,'name':?", wal__model_literal(form->call),
                     wal__model_or(block->id, missing), wal__model_or(block->name, missing));
    if (form->omits_empty) {
        wal__json_out_optional(out, form->arguments, block->arguments);
    } else {
        wal__content_write_arguments(out, form->arguments, block->arguments);
    }
}

void wal__content_write_block(struct wal__json_out *out, const struct wal__block_form *form,
                              const struct wal__model_block *block)
{
    if (block->kind == WAL__BLOCK_RAW) {
        wal__json_out_compact(out, block->raw);
        return;
    }
    wal__json_out_open(out, '{');
    switch (block->kind) {
    case WAL__BLOCK_TEXT:
        write_text(out, form, block);
        break;
    case WAL__BLOCK_THINKING:
        if (form->signature != NULL) {
            write_thinking(out, form, block);
        } else {
            write_text(out, form, block);
        }
        break;
    case WAL__BLOCK_TOOL_CALL:
        write_call(out, form, block);
        break;
    case WAL__BLOCK_IMAGE:
        WAL__ASSERT(form->image != NULL);
        form->image(out, block);
        break;
    case WAL__BLOCK_RAW:
        break;
    }
    wal__json_out_close(out, '}');
}

void wal__content_write_blocks(struct wal__json_out *out, const char *key,
                               const struct wal__block_form *form,
                               const struct wal__model_block *blocks, size_t count)
{
    wal__json_out_member_open(out, key, '[');
    for (size_t i = 0; i < count; i++) {
        wal__content_write_block(out, form, &blocks[i]);
    }
    wal__json_out_close(out, ']');
}

static void put_text(struct wal__json_out *out, const char *text)
{
    wal__json_out_string_text(out, wal__model_literal(text));
}

void wal__content_write_texts(struct wal__json_out *out, const char *key,
                              const struct wal__model_block *blocks, size_t count,
                              const char *separator, bool omits_empty)
{
    bool is_first = true;

    wal__json_out_key(out, key);
    wal__json_out_string_begin(out);
    for (size_t i = 0; i < count; i++) {
        if (blocks[i].kind != WAL__BLOCK_TEXT || (omits_empty && blocks[i].text.size <= 2)) {
            continue;
        }
        if (!is_first) {
            put_text(out, separator);
        }
        wal__json_out_string_json(out, blocks[i].text);
        is_first = false;
    }
    wal__json_out_string_end(out);
}

void wal__content_write_url(struct wal__json_out *out, const char *key,
                            const struct wal__model_block *block)
{
    if (key != NULL) {
        wal__json_out_key(out, key);
    }
    if (block->url.size > 0) {
        wal__json_out_value(out, block->url);
        return;
    }
    wal__json_out_string_begin(out);
    put_text(out, "data:");
    wal__json_out_string_text(out, block->media);
    put_text(out, ";base64,");
    wal__json_out_string_text(out, block->data);
    wal__json_out_string_end(out);
}

/* --- parts of Google's API ------------------------------------------------ */

static void write_image_part(struct wal__json_out *out, const struct wal__model_block *block)
{
    if (block->url.size > 0) {
        wal__model_print(out, "'fileData':{'mimeType':$,'fileUri':%}", block->media, block->url);
    } else {
        wal__model_print(out, "'inlineData':{'mimeType':$,'data':$}", block->media, block->data);
    }
}

static void write_part(struct wal__json_out *out, const struct wal__model_block *block)
{
    if (block->kind == WAL__BLOCK_RAW) {
        wal__json_out_compact(out, block->raw);
        return;
    }
    wal__json_out_open(out, '{');
    if (block->kind == WAL__BLOCK_TOOL_CALL) {
        wal__model_print(out, "'functionCall':{'id':%,'name':%", wal__model_or(block->id, "\"\""),
                         wal__model_or(block->name, "\"\""));
        wal__content_write_arguments(out, "args", block->arguments);
        wal__json_out_close(out, '}');
    } else if (block->kind == WAL__BLOCK_IMAGE) {
        write_image_part(out, block);
    } else if (!block->is_redacted) {
        wal__json_out_member(out, "text", wal__model_or(block->text, "\"\""));
    }
    if (block->kind == WAL__BLOCK_THINKING) {
        wal__model_print(out, "'thought':true,'thoughtSignature':?", block->signature);
    }
    wal__json_out_close(out, '}');
}

void wal__content_write_parts(struct wal__json_out *out, const char *key,
                              const struct wal__model_block *blocks, size_t count)
{
    wal__json_out_member_open(out, key, '[');
    for (size_t i = 0; i < count; i++) {
        write_part(out, &blocks[i]);
    }
    wal__json_out_close(out, ']');
}

void wal__content_write_response(struct wal__json_out *out, const struct wal__model_item *item)
{
    bool has_image = wal__model_has_block(item->blocks, item->block_count, WAL__BLOCK_IMAGE);

    wal__model_print(out, "{'functionResponse':{'id':%,'name':%,'response':{",
                     wal__model_or(item->call, "\"\""), wal__model_or(item->name, "\"\""));
    wal__content_write_texts(out, item->is_error ? "error" : "output", item->blocks,
                             item->block_count, "\n", false);
    wal__json_out_close(out, '}');
    if (has_image) {
        wal__json_out_member_open(out, "parts", '[');
        for (size_t i = 0; i < item->block_count; i++) {
            if (item->blocks[i].kind == WAL__BLOCK_IMAGE) {
                write_part(out, &item->blocks[i]);
            }
        }
        wal__json_out_close(out, ']');
    }
    wal__model_put(out, "}}");
}

bool wal__content_is_response(const struct wal__model_item *item)
{
    return item->block_count > 0 && item->blocks[0].kind == WAL__BLOCK_TEXT &&
           (item->block_count == 1 ||
            (item->block_count == 2 && item->blocks[1].kind == WAL__BLOCK_IMAGE));
}
