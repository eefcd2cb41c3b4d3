/*
 * opencode_second.c - reads messages of version 2 of OpenCode, and the order of messages of both
 * versions (opencode_read.h).
 *
 * A message of version 2 has a type instead of a role, and its parts in it. The client orders these
 * by their number `seq`. They are placed among messages of version 1 by their times. A message of
 * version 1 whose file is not after those before it has its number in the session, `position`
 * (session_database.h).
 *
 * Threads: one thread at a time per storage.
 */
#include <string.h>

#include "convert/dialect/opencode.h"
#include "convert/dialect/opencode_read.h"
#include "convert/model/model_content.h"
#include "convert/model/model_write.h"
#include "format/json/json_out.h"
#include "format/json/json_text.h"

/* --- order ---------------------------------------------------------------- */

/* Reads what the order of messages depends on. */
static void read_order(struct opencode_document *message)
{
    struct wal__json_member m[] = {{.key = "role"},
                                   {.key = "type"},
                                   {.key = "seq"},
                                   {.key = "position"},
                                   {.parent = "time", .key = "created"}};

    message->number = -1;
    if (wal__model_members(message->value, m, 5, NULL) != WAL__JSON_OK) {
        return;
    }
    message->is_version_2 =
        m[0].value.kind != WAL__JSON_STRING && m[1].value.kind == WAL__JSON_STRING;
    if (m[4].value.kind != WAL__JSON_NUMBER ||
        wal__json_integer(m[4].value.span, &message->created) != WAL__JSON_OK) {
        message->created = 0;
    }
    m[2] = message->is_version_2 ? m[2] : m[3];
    if (m[2].value.kind != WAL__JSON_NUMBER ||
        wal__json_integer(m[2].value.span, &message->number) != WAL__JSON_OK) {
        message->number = -1;
    }
}

/* Sorts the messages that have numbers by them, by merging runs; `other` is as large. */
static void sort_numbered(struct opencode_document *items, size_t count,
                          struct opencode_document *other)
{
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t at = 0; at < count; at += 2 * width) {
            size_t a = at;
            size_t middle = count - at > width ? at + width : count;
            size_t b = middle;
            size_t end = count - at > 2 * width ? at + 2 * width : count;
            for (size_t to = at; to < end; to++) {
                bool is_first = a < middle && (b == end || items[a].number <= items[b].number);
                other[to] = is_first ? items[a++] : items[b++];
            }
        }
        memcpy(items, other, count * sizeof(items[0]));
    }
}

/* Moves the messages that match to `to`, in their order; returns their count. */
static size_t take(const struct opencode_documents *from, bool is_version_2, bool has_number,
                   struct opencode_document *to)
{
    size_t count = 0;

    for (size_t i = 0; i < from->count; i++) {
        const struct opencode_document *item = &from->items[i];
        if (item->is_version_2 == is_version_2 &&
            (is_version_2 || (item->number >= 0) == has_number)) {
            to[count++] = *item;
        }
    }
    return count;
}

/* Puts the messages into the order in which the client shows them. False: no memory. */
bool wal__opencode_sort(struct opencode_storage *storage)
{
    struct opencode_documents *messages = &storage->messages;
    struct opencode_document *items = messages->items;
    struct opencode_document *sorted;
    struct opencode_document *first;
    size_t is_numbered = 0;
    size_t plain;
    size_t placed;
    size_t second;
    size_t n = 0;

    for (size_t i = 0; i < messages->count; i++) {
        read_order(&items[i]);
        is_numbered += items[i].is_version_2 || items[i].number >= 0;
    }
    if (is_numbered == 0) {
        return true;
    }
    sorted = wal__arena_alloc(storage->reader->scratch, 2 * messages->count * sizeof(items[0]));
    if (sorted == NULL) {
        return false;
    }
    /* Version 1: each that has a position goes there. */
    first = sorted + messages->count;
    plain = take(messages, false, false, sorted);
    placed = take(messages, false, true, sorted + plain);
    sort_numbered(sorted + plain, placed, first);
    for (size_t a = 0, b = 0; n < plain + placed;) {
        bool is_plain = a < plain && (b == placed || sorted[plain + b].number > (int64_t)n);
        first[n++] = is_plain ? sorted[a++] : sorted[plain + b++];
    }
    /* Version 2: in its own order, each before the first that is later. */
    second = take(messages, true, false, sorted);
    sort_numbered(sorted, second, items);
    n = 0;
    for (size_t a = 0, b = 0; n < messages->count;) {
        bool is_first =
            b == second || (a < plain + placed && first[a].created <= sorted[b].created);
        items[n++] = is_first ? first[a++] : sorted[b++];
    }
    return true;
}

/* --- messages of version 2 ------------------------------------------------ */

struct info_2 {
    struct wal__json_span id;
    struct wal__json_span type;
    struct wal__json_span time;
    struct wal__json_span text;
    struct wal__json_span name;
    struct wal__json_span summary;
    struct wal__json_span call;
    struct wal__json_span command;
    struct wal__json_token output;
    struct wal__json_span status;
    struct wal__json_span provider;
    struct wal__json_span model;
    struct wal__json_span finish;
    struct wal__json_span error;
    struct wal__json_span error_text;
    struct wal__json_span content;
    struct wal__json_span files;
    struct wal__json_span cache;
    struct wal__model_usage usage;
};

#define INFO_2_AT(field) offsetof(struct info_2, field)

static const struct wal__field info_2_fields[] = {
    {"id", .at = INFO_2_AT(id)},
    {"type", .at = INFO_2_AT(type)},
    {"seq", .kind = WAL__FIELD_KNOWN},
    {"sessionID", .kind = WAL__FIELD_KNOWN},
    {"created", .parent = "time", .at = INFO_2_AT(time), .kind = WAL__FIELD_NUMBER},
    {"text", .at = INFO_2_AT(text)},
    {"name", .at = INFO_2_AT(name)},
    {"summary", .at = INFO_2_AT(summary)},
    {"shellID", .at = INFO_2_AT(call)},
    {"command", .at = INFO_2_AT(command)},
    {"output", .parent = "output", .at = INFO_2_AT(output), .kind = WAL__FIELD_TOKEN},
    {"status", .at = INFO_2_AT(status)},
    {"providerID", .parent = "model", .at = INFO_2_AT(provider)},
    {"id", .parent = "model", .at = INFO_2_AT(model)},
    {"finish", .at = INFO_2_AT(finish)},
    {"type", .parent = "error", .at = INFO_2_AT(error)},
    {"message", .parent = "error", .at = INFO_2_AT(error_text)},
    {"content", .at = INFO_2_AT(content), .kind = WAL__FIELD_CONTAINER},
    {"files", .at = INFO_2_AT(files), .kind = WAL__FIELD_CONTAINER},
    {"cost", .at = INFO_2_AT(usage.cost), .kind = WAL__FIELD_NUMBER},
    {"input", .parent = "tokens", .at = INFO_2_AT(usage.input), .kind = WAL__FIELD_NUMBER},
    {"output", .parent = "tokens", .at = INFO_2_AT(usage.output), .kind = WAL__FIELD_NUMBER},
    {"reasoning", .parent = "tokens", .at = INFO_2_AT(usage.reasoning), .kind = WAL__FIELD_NUMBER},
    {"cache", .parent = "tokens", .at = INFO_2_AT(cache), .kind = WAL__FIELD_CONTAINER},
    {.key = NULL},
};

/* Parts of an assistant's message. What the provider needs to have again was called `state`, or
 * `providerState`, before it was called `native`. */
static const struct wal__field part_2_fields[] = {
    {"type", .at = PART_AT(type)},
    {"text", .at = PART_AT(text)},
    {"id", .at = PART_AT(call)},
    {"name", .at = PART_AT(tool)},
    {"state", .at = PART_AT(state), .kind = WAL__FIELD_CONTAINER},
    {"native", .at = PART_AT(metadata), .kind = WAL__FIELD_CONTAINER},
    {"completed", .parent = "time", .at = PART_AT(end), .kind = WAL__FIELD_NUMBER},
    {.key = NULL},
};

static const struct wal__field state_2_fields[] = {
    {"status", .at = PART_AT(status)},
    {"input", .at = PART_AT(input), .kind = WAL__FIELD_NON_NULL},
    {"content", .at = PART_AT(content), .kind = WAL__FIELD_TOKEN},
    {"message", .parent = "error", .at = PART_AT(error), .kind = WAL__FIELD_TOKEN},
    {.key = NULL},
};

/* A file: its data, or where it is. */
struct file_2 {
    struct wal__json_span mime;
    struct wal__json_span name;
    struct wal__json_span data;
    struct wal__json_span uri;
};

static const struct wal__field file_2_fields[] = {
    {"mime", .at = offsetof(struct file_2, mime)},
    {"name", .at = offsetof(struct file_2, name)},
    {"data", .at = offsetof(struct file_2, data)},
    {"uri", .at = offsetof(struct file_2, uri)},
    {.key = NULL},
};

/* Reads a file. If it is an image, makes the block that and returns true. */
static bool read_image_2(struct opencode_message *message, struct wal__model_block *block,
                         struct wal__json_span json, struct file_2 *file)
{
    struct wal__arena *arena = message->storage->reader->scratch;

    if (wal__fields_read(json, file_2_fields, file, NULL) != WAL__JSON_OK || file->mime.size <= 7 ||
        memcmp(file->mime.data, "\"image/", 7) != 0 ||
        (file->data.size <= 2 && file->uri.size <= 2)) {
        return false;
    }
    block->kind = WAL__BLOCK_IMAGE;
    if (file->data.size > 2) {
        block->media = wal__arena_unescape(arena, file->mime);
        block->data = wal__arena_unescape(arena, file->data);
    } else {
        message->storage->has_failed |= !wal__model_set_image_url(arena, block, file->uri);
    }
    return true;
}

static void add_text_2(struct opencode_message *message, struct wal__json_span text)
{
    struct wal__model_block *block =
        text.size > 2 ? wal__opencode_add_block(message, WAL__BLOCK_TEXT) : NULL;

    if (block != NULL) {
        block->text = text;
    }
}

/* Adds each file of an array: an image, or as a part of version 1. */
static void add_files_2(struct opencode_message *message, struct wal__json_span array)
{
    struct wal__json_scan scan;
    struct wal__json_token value;

    wal__model_array_begin(&scan, array);
    while (!message->storage->has_failed && wal__model_array_next(&scan, &value)) {
        struct wal__model_block *block = wal__opencode_add_block(message, WAL__BLOCK_RAW);
        struct wal__json_memory text = {.capacity = value.span.size + 64};
        struct wal__json_out out = {.put = wal__json_memory_put, .ctx = &text};
        struct file_2 file = {.mime = {NULL, 0}};
        if (block == NULL || read_image_2(message, block, value.span, &file)) {
            continue;
        }
        text.data = wal__arena_alloc(message->storage->reader->scratch, text.capacity);
        if (text.data == NULL) {
            message->storage->has_failed = true;
            return;
        }
        wal__model_print(&out, "{'type':'file','mime':%,'url':", wal__model_or(file.mime, "\"\""));
        wal__json_out_string_begin(&out);
        if (file.data.size > 2) {
            wal__json_out_string_text(&out, wal__model_literal("data:"));
            wal__json_out_string_json(&out, file.mime);
            wal__json_out_string_text(&out, wal__model_literal(";base64,"));
        }
        wal__json_out_string_json(&out, file.data.size > 2 ? file.data : file.uri);
        wal__json_out_string_end(&out);
        wal__model_print(&out, "'filename':?}", file.name);
        block->raw = (struct wal__json_span){text.data, text.size};
    }
}

/* Adds a call, and its result if it has one. */
static void add_tool_2(struct opencode_message *message, const struct opencode_part *part)
{
    bool is_error = wal__model_text_is(part->status, "error");
    struct wal__model_blocks blocks = {.arena = message->storage->reader->scratch};
    struct wal__model_block *block = wal__opencode_add_block(message, WAL__BLOCK_TOOL_CALL);
    struct wal__model_item *result;

    if (block == NULL) {
        return;
    }
    block->id = part->call;
    block->name = part->tool;
    block->arguments = part->input;
    if (!is_error && !wal__opencode_has_result(part->status)) {
        return;
    }
    result = wal__opencode_add_result(message);
    if (result == NULL) {
        message->storage->has_failed = true;
        return;
    }
    *result = (struct wal__model_item){
        .kind = WAL__ITEM_MESSAGE,
        .role = WAL__ROLE_TOOL,
        .is_error = is_error,
        .id = wal__opencode_append_number(blocks.arena, message->item.id, message->result_count),
        .call = part->call,
        .name = part->tool,
        .time = part->end.size > 0 ? part->end : message->item.time,
    };
    if ((is_error && !wal__content_read(part->error, &blocks, &result->fields)) ||
        !wal__content_read(part->content, &blocks, &result->fields)) {
        message->storage->has_failed = true;
        return;
    }
    for (size_t i = 0; i < blocks.count; i++) {
        struct file_2 file = {.mime = {NULL, 0}};
        if (blocks.items[i].kind == WAL__BLOCK_RAW) {
            (void)read_image_2(message, &blocks.items[i], blocks.items[i].raw, &file);
        }
    }
    result->blocks = blocks.items;
    result->block_count = blocks.count;
}

static void read_part_2(struct opencode_message *message, struct wal__json_span json)
{
    struct opencode_part part = {.is_orphan = false};

    if (wal__fields_read(json, part_2_fields, &part, NULL) != WAL__JSON_OK) {
        return;
    }
    part.metadata = part.metadata.size > 0 ? part.metadata : part.state;
    if (wal__model_text_is(part.type, "text")) {
        add_text_2(message, part.text);
    } else if (wal__model_text_is(part.type, "reasoning")) {
        wal__opencode_read_reasoning(message, &part);
    } else if (wal__model_text_is(part.type, "tool") &&
               wal__fields_read(part.state, state_2_fields, &part, NULL) == WAL__JSON_OK) {
        add_tool_2(message, &part);
    } else {
        struct wal__model_block *block = wal__opencode_add_block(message, WAL__BLOCK_RAW);
        if (block != NULL) {
            block->raw = json;
        }
    }
}

static void read_assistant_2(struct opencode_message *message, const struct info_2 *info)
{
    struct wal__model_item *item = &message->item;
    struct wal__json_scan scan;
    struct wal__json_token value;

    item->role = WAL__ROLE_ASSISTANT;
    item->provider = info->provider;
    item->model = info->model;
    item->usage = info->usage;
    message->storage->has_failed |=
        !wal__model_add_reasoning(message->storage->reader->scratch, &item->usage);
    item->stop = wal__model_text_is(info->error, "aborted") ? WAL__STOP_ABORTED
                 : info->error.size > 0                     ? WAL__STOP_ERROR
                                        : wal__word_stop(wal__opencode_stops, info->finish);
    wal__model_array_begin(&scan, info->content);
    while (!message->storage->has_failed && wal__model_array_next(&scan, &value)) {
        read_part_2(message, value.span);
    }
}

/* Reads a command that a person ran in the client's shell, as a call. */
static void read_shell_2(struct opencode_message *message, const struct info_2 *info)
{
    struct opencode_part part = {.call = info->call,
                                 .tool = wal__model_literal("\"shell\""),
                                 .status = wal__model_literal("\"completed\""),
                                 .content = info->output};
    struct wal__json_memory text = {.capacity = info->command.size + 16};
    struct wal__json_out out = {.put = wal__json_memory_put, .ctx = &text};

    text.data = wal__arena_alloc(message->storage->reader->scratch, text.capacity);
    if (text.data == NULL) {
        message->storage->has_failed = true;
        return;
    }
    wal__model_print(&out, "{'command':?}", info->command);
    part.input = (struct wal__json_span){text.data, text.size};
    if (wal__model_text_is(info->status, "running")) {
        part.status = info->status;
    }
    message->item.role = WAL__ROLE_ASSISTANT;
    add_tool_2(message, &part);
}

/* Reads the message into items that are not yet emitted. */
static void read_type_2(struct opencode_message *message, const struct info_2 *info,
                        struct wal__json_span value)
{
    struct wal__model_item *item = &message->item;
    bool is_compaction = wal__model_text_is(info->type, "compaction");

    if (wal__model_text_is(info->type, "assistant")) {
        read_assistant_2(message, info);
    } else if (wal__model_text_is(info->type, "shell")) {
        read_shell_2(message, info);
    } else if (wal__model_text_is(info->type, "model-switched")) {
        item->kind = WAL__ITEM_MODEL_CHANGE;
        item->provider = info->provider;
        item->model = info->model;
    } else if (is_compaction && !wal__model_text_is(info->status, "failed")) {
        message->storage->first_kept.size = 0;
        add_text_2(message, info->summary);
        wal__opencode_emit_summary(message);
        return;
    } else if (is_compaction || wal__model_text_is(info->type, "synthetic") ||
               wal__model_text_is(info->type, "skill")) {
        item->is_meta = true;
        item->name = info->name;
        add_text_2(message, is_compaction ? info->error_text : info->text);
    } else if (wal__model_text_is(info->type, "user") || wal__model_text_is(info->type, "system")) {
        item->role = wal__model_text_is(info->type, "user") ? WAL__ROLE_USER : WAL__ROLE_SYSTEM;
        message->is_of_person = true;
        add_text_2(message, info->text);
        add_files_2(message, info->files);
    } else {
        item->kind = WAL__ITEM_CUSTOM;
        item->name = info->type;
        item->data = value;
    }
    if (item->kind == WAL__ITEM_MESSAGE) {
        wal__opencode_flush(message, true);
    } else {
        wal__opencode_emit(message->storage, item);
    }
}

void wal__opencode_read_second(struct opencode_storage *storage,
                               const struct opencode_document *document)
{
    struct opencode_message message = {.storage = storage,
                                       .blocks = {.arena = storage->reader->scratch}};
    struct info_2 info = {.id = {NULL, 0}};

    message.item.kind = WAL__ITEM_MESSAGE;
    if (wal__fields_read(document->value, info_2_fields, &info, &message.item.fields) !=
            WAL__JSON_OK ||
        wal__fields_read(info.cache, wal__opencode_cache_fields, &info.usage, NULL) !=
            WAL__JSON_OK) {
        return;
    }
    message.item.id = wal__opencode_storage_id(storage, document, info.id);
    message.item.time = info.time;
    read_type_2(&message, &info, document->value);
    wal__opencode_emit_batch(storage, message.item.id, (struct wal__json_span){NULL, 0});
}
