/*
 * opencode_part_read.c - converts the parts of a message of OpenCode to items.
 *
 * Threads: one thread at a time per message.
 */
#include "convert/dialect/opencode/opencode_part_read.h"

#include <string.h>

#include "convert/dialect/opencode/opencode_emit.h"
#include "convert/dialect/opencode/opencode_id.h"
#include "convert/model/model_content.h"
#include "convert/model/model_write.h"
#include "convert/model/vocabulary.h"
#include "format/bytes/assert.h"
#include "format/json/json_out.h"
#include "format/json/json_value.h"

struct part {
    struct wal__json_span id;
    struct wal__json_span type;
    struct wal__json_span text;
    struct wal__json_span signature;
    struct wal__json_span redacted;
    struct wal__json_span call;
    struct wal__json_span tool;
    struct wal__json_span mime;
    struct wal__json_span url;
    struct wal__json_span first_kept;
    struct wal__json_span metadata;
    struct wal__json_span state; /* of a tool: the following */
    struct wal__json_span status;
    struct wal__json_span input;
    struct wal__json_token output;
    struct wal__json_token error;
    struct wal__json_token content;
    struct wal__json_span end;
    struct wal__json_span attachments;
    struct wal__json_span after; /* id of the item that the result follows */
    bool is_synthetic;
    bool is_orphan;
};

#define PART_AT(field) offsetof(struct part, field)

static const struct wal__field part_fields[] = {
    {"id", .at = PART_AT(id)},
    {"type", .at = PART_AT(type)},
    {"text", .at = PART_AT(text)},
    {"synthetic", .at = PART_AT(is_synthetic), .kind = WAL__FIELD_TRUE},
    {"metadata", .at = PART_AT(metadata), .kind = WAL__FIELD_CONTAINER},
    {"callID", .at = PART_AT(call)},
    {"tool", .at = PART_AT(tool)},
    {"state", .at = PART_AT(state), .kind = WAL__FIELD_CONTAINER},
    {"mime", .at = PART_AT(mime)},
    {"url", .at = PART_AT(url)},
    {"tail_start_id", .at = PART_AT(first_kept)},
    {.key = NULL},
};

static const struct wal__field metadata_fields[] = {
    {"signature", .parent = "anthropic", .at = PART_AT(signature)},
    {"redactedData", .parent = "anthropic", .at = PART_AT(redacted)},
    {.key = NULL},
};

static const struct wal__field state_fields[] = {
    {"status", .at = PART_AT(status)},
    {"input", .at = PART_AT(input), .kind = WAL__FIELD_NON_NULL},
    {"output", .at = PART_AT(output), .kind = WAL__FIELD_TOKEN},
    {"error", .at = PART_AT(error), .kind = WAL__FIELD_TOKEN},
    {"end", .parent = "time", .at = PART_AT(end), .kind = WAL__FIELD_NUMBER},
    {"attachments", .at = PART_AT(attachments), .kind = WAL__FIELD_CONTAINER},
    {"walconvContent", .parent = "metadata", .at = PART_AT(content),
     .kind = WAL__FIELD_TOKEN},
    {"walconvAlone", .parent = "metadata", .at = PART_AT(is_orphan),
     .kind = WAL__FIELD_TRUE},
    {"walconvAfter", .parent = "metadata", .at = PART_AT(after)},
    {.key = NULL},
};

static struct wal__model_block *add_block(struct wal__opencode_message *message,
                                          enum wal__model_block_kind kind)
{
    const struct wal__json_span none = {NULL, 0};
    struct wal__model_block *block =
        wal__model_blocks_add(&message->blocks, kind, none);

    message->storage->has_failed |= block == NULL;
    return block;
}

struct raw {
    uint8_t *data;
    size_t size;
    size_t capacity;
};

static bool put_raw(void *ctx, const void *data, size_t size)
{
    struct raw *raw = ctx;

    WAL__ASSERT(size <= raw->capacity - raw->size);
    memcpy(raw->data + raw->size, data, size);
    raw->size += size;
    return true;
}

/* Reads a part of an unknown type as a raw block, without its ids. */
static void read_raw(struct wal__opencode_message *message,
                     struct wal__json_span part)
{
    static const struct wal__json_override ids[] = {
        {"id", {NULL, 0}}, {"sessionID", {NULL, 0}}, {"messageID", {NULL, 0}}};
    struct wal__arena *arena = message->storage->reader->scratch;
    struct raw raw = {wal__arena_alloc(arena, part.size + 2), 0, part.size + 2};
    struct wal__json_out out = {.put = put_raw, .ctx = &raw};
    struct wal__model_block *block = add_block(message, WAL__BLOCK_RAW);

    if (raw.data == NULL || block == NULL) {
        message->storage->has_failed = true;
        return;
    }
    wal__json_out_overridden(&out, part, ids, 3);
    block->raw = (struct wal__json_span){raw.data, raw.size};
}

static void read_text(struct wal__opencode_message *message,
                      const struct part *part)
{
    struct wal__model_block *block = add_block(message, WAL__BLOCK_TEXT);

    message->has_user_text |= !part->is_synthetic;
    if (block != NULL) {
        block->text = wal__model_or(part->text, "\"\"");
    }
}

static void read_reasoning(struct wal__opencode_message *message,
                           struct part *part)
{
    struct wal__model_block *block = add_block(message, WAL__BLOCK_THINKING);

    if (block == NULL || wal__fields_read(part->metadata, metadata_fields, part,
                                          NULL) != WAL__JSON_OK) {
        return;
    }
    block->text = part->text;
    block->is_redacted = part->redacted.size > 0;
    block->signature = block->is_redacted ? part->redacted : part->signature;
}

static void read_image(struct wal__opencode_message *message,
                       const struct part *part, struct wal__model_block *block)
{
    struct wal__arena *arena = message->storage->reader->scratch;

    if (!wal__model_set_image_url(arena, block, part->url)) {
        message->storage->has_failed = true;
    }
}

static bool is_image(const struct part *part)
{
    return part->mime.size > 7 && memcmp(part->mime.data, "\"image/", 7) == 0 &&
           part->url.size > 0;
}

static void read_file(struct wal__opencode_message *message,
                      const struct part *part, struct wal__json_span json)
{
    struct wal__model_block *block;

    if (!is_image(part)) {
        read_raw(message, json);
        return;
    }
    block = add_block(message, WAL__BLOCK_IMAGE);
    if (block != NULL) {
        read_image(message, part, block);
    }
}

/* Reads the attachments of a result. */
static bool read_attachments(struct wal__opencode_message *message,
                             struct wal__model_blocks *blocks,
                             struct wal__json_span attachments)
{
    const struct wal__json_span none = {NULL, 0};
    struct wal__json_scan scan;
    struct wal__json_token value;

    wal__model_array_begin(&scan, attachments);
    while (wal__model_array_next(&scan, &value)) {
        struct part part = {.is_orphan = false};
        struct wal__model_block *block;
        if (wal__fields_read(value.span, part_fields, &part, NULL) !=
            WAL__JSON_OK) {
            return false;
        }
        block = wal__model_blocks_add(
            blocks, is_image(&part) ? WAL__BLOCK_IMAGE : WAL__BLOCK_RAW, none);
        if (block == NULL) {
            return false;
        }
        if (block->kind == WAL__BLOCK_IMAGE) {
            read_image(message, &part, block);
        } else {
            block->raw = value.span;
        }
    }
    return true;
}

static bool read_result_content(struct wal__opencode_message *message,
                                const struct part *part,
                                struct wal__model_item *result)
{
    struct wal__model_blocks blocks = {.arena =
                                           message->storage->reader->scratch};
    bool has_content = part->content.kind == WAL__JSON_ARRAY;
    struct wal__json_token text = result->is_error ? part->error : part->output;

    if (!wal__content_read(has_content ? part->content : text, &blocks,
                           &result->fields) ||
        (!has_content &&
         !read_attachments(message, &blocks, part->attachments))) {
        return false;
    }
    result->blocks = blocks.items;
    result->block_count = blocks.count;
    return true;
}

static struct wal__model_item *add_result(struct wal__opencode_message *message)
{
    struct wal__model_item *items = wal__arena_grow(
        message->storage->reader->scratch, message->results,
        message->result_count, &message->result_capacity, sizeof(items[0]));

    if (items == NULL) {
        return NULL;
    }
    message->results = items;
    return &message->results[message->result_count++];
}

bool wal__opencode_has_result(struct wal__json_span status)
{
    return wal__model_text_is(status, "completed") ||
           wal__model_text_is(status, "success") ||
           wal__model_text_is(status, "error");
}

static void read_tool_result(struct wal__opencode_message *message,
                             const struct part *part)
{
    bool is_error = wal__model_text_is(part->status, "error");
    struct wal__model_item *item;
    struct wal__model_item result = {
        .kind = WAL__ITEM_MESSAGE,
        .role = WAL__ROLE_TOOL,
        .is_error = is_error,
        .id = message->part,
        .call = part->call,
        .name = part->tool,
        .time = part->end.size > 0 ? part->end : message->item.time,
    };

    if (!wal__opencode_has_result(part->status)) {
        return;
    }
    if (!read_result_content(message, part, &result)) {
        message->storage->has_failed = true;
        return;
    }
    if (part->after.size > 2 &&
        wal__opencode_defer(message->storage, part->after, &result)) {
        message->is_raw = false; /* its items are not together */
        return;
    }
    item = add_result(message);
    if (item == NULL) {
        message->storage->has_failed = true;
        return;
    }
    *item = result;
}

static void read_tool(struct wal__opencode_message *message, struct part *part)
{
    struct wal__model_block *block;

    if (wal__fields_read(part->state, state_fields, part, NULL) !=
        WAL__JSON_OK) {
        return;
    }
    if (!part->is_orphan) {
        block = add_block(message, WAL__BLOCK_TOOL_CALL);
        if (block == NULL) {
            return;
        }
        block->id = part->call;
        block->name = part->tool;
        block->arguments = wal__content_unwrap_arguments(part->input);
    }
    read_tool_result(message, part);
}

void wal__opencode_flush(struct wal__opencode_message *message, bool is_end)
{
    struct wal__model_item *item = &message->item;
    bool has_content =
        message->blocks.count > 0 ||
        (is_end && !message->is_emitted && message->result_count == 0 &&
         !message->has_compaction_part);

    if (has_content) {
        item->blocks = message->blocks.items;
        item->block_count = message->blocks.count;
        if (item->role == WAL__ROLE_USER && !item->is_meta) {
            item->is_meta = item->block_count > 0 && !message->has_user_text;
        }
        wal__opencode_emit(message->storage, item);
        item->usage = (struct wal__model_usage){.input = {NULL, 0}};
        item->fields = 0;
    }
    for (size_t i = 0; i < message->result_count; i++) {
        wal__opencode_emit(message->storage, &message->results[i]);
    }
    message->is_emitted |= has_content || message->result_count > 0;
    message->result_count = 0;
    message->blocks =
        (struct wal__model_blocks){.arena = message->storage->reader->scratch};
}

void wal__opencode_part_read(struct wal__opencode_message *message,
                             const struct wal__opencode_document *document)
{
    struct part part = {.is_orphan = false};

    if (wal__fields_read(document->value, part_fields, &part, NULL) !=
        WAL__JSON_OK) {
        message->is_raw = false;
        return;
    }
    message->part =
        wal__opencode_storage_id(message->storage, document, part.id);
    /* The parts of a message are read in the order of their ids. */
    message->is_raw &=
        wal__opencode_is_id(part.id, "prt_") &&
        (message->last_part.size != part.id.size ||
         memcmp(message->last_part.data, part.id.data, part.id.size) < 0);
    message->last_part = part.id;
    if (message->is_emitted && message->blocks.count == 0) {
        message->item.id = message->part; /* a new step begins */
    }
    if (wal__model_text_is(part.type, "text")) {
        read_text(message, &part);
    } else if (wal__model_text_is(part.type, "reasoning")) {
        read_reasoning(message, &part);
    } else if (wal__model_text_is(part.type, "tool")) {
        read_tool(message, &part);
    } else if (wal__model_text_is(part.type, "step-start") ||
               wal__model_text_is(part.type, "step-finish")) {
        message->item.fields++;
        if (message->result_count > 0) {
            wal__opencode_flush(message, false);
        }
    } else if (wal__model_text_is(part.type, "compaction") &&
               message->item.role == WAL__ROLE_USER) {
        message->has_compaction_part = true;
        message->storage->first_kept = part.first_kept;
    } else if (wal__model_text_is(part.type, "file")) {
        read_file(message, &part, document->value);
    } else {
        message->has_user_text = true;
        read_raw(message, document->value);
    }
}

void wal__opencode_emit_summary(struct wal__opencode_message *message)
{
    struct wal__model_item *item = &message->item;
    struct wal__arena *arena = message->storage->reader->scratch;
    size_t size = 2;
    struct raw raw;
    struct wal__json_out out = {.put = put_raw, .ctx = &raw};

    for (size_t i = 0; i < message->blocks.count; i++) {
        size += message->blocks.items[i].text.size + 2;
    }
    raw = (struct raw){wal__arena_alloc(arena, size), 0, size};
    if (raw.data == NULL) {
        message->storage->has_failed = true;
        return;
    }
    wal__json_out_string_begin(&out);
    for (size_t i = 0; i < message->blocks.count; i++) {
        const struct wal__model_block *block = &message->blocks.items[i];
        if (block->kind == WAL__BLOCK_TEXT) {
            wal__json_out_string_json(&out, block->text);
        }
    }
    wal__json_out_string_end(&out);
    *item = (struct wal__model_item){
        .kind = WAL__ITEM_COMPACTION,
        .id = item->id,
        .time = item->time,
        .text = {raw.data, raw.size},
        .target = message->storage->first_kept,
    };
    message->storage->first_kept.size = 0;
    wal__opencode_emit(message->storage, item);
}
