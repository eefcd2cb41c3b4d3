/*
 * opencode_part_read.c - converts the parts of a message of OpenCode to items.
 *
 * Threads: one thread at a time per message.
 */
#include "format/dialect/opencode/opencode_part_read.h"

#include <string.h>

#include "format/bytes/assert.h"
#include "format/json/json_out.h"
#include "format/json/json_value.h"
#include "format/model/model_content.h"

enum {
    P_ID,
    P_TYPE,
    P_TEXT,
    P_SYNTHETIC,
    P_METADATA,
    P_CALL,
    P_TOOL,
    P_STATE,
    P_MIME,
    P_URL,
    P_TAIL,
    P_COUNT
};

static const struct wal__json_member part_wanted[P_COUNT] = {
    [P_ID] = {.key = "id"},
    [P_TYPE] = {.key = "type"},
    [P_TEXT] = {.key = "text"},
    [P_SYNTHETIC] = {.key = "synthetic"},
    [P_METADATA] = {.key = "metadata"},
    [P_CALL] = {.key = "callID"},
    [P_TOOL] = {.key = "tool"},
    [P_STATE] = {.key = "state"},
    [P_MIME] = {.key = "mime"},
    [P_URL] = {.key = "url"},
    [P_TAIL] = {.key = "tail_start_id"},
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
                      const struct wal__json_member *members)
{
    struct wal__model_block *block = add_block(message, WAL__BLOCK_TEXT);

    message->has_user_text |= !wal__member_is_true(&members[P_SYNTHETIC]);
    if (block != NULL) {
        block->text = wal__member_string(&members[P_TEXT]);
        if (block->text.size == 0) {
            block->text = wal__model_literal("\"\"");
        }
    }
}

static void read_reasoning(struct wal__opencode_message *message,
                           const struct wal__json_member *members)
{
    struct wal__json_member signatures[2] = {
        {.parent = "anthropic", .key = "signature"},
        {.parent = "anthropic", .key = "redactedData"}};
    struct wal__model_block *block = add_block(message, WAL__BLOCK_THINKING);

    if (block == NULL) {
        return;
    }
    block->text = wal__member_string(&members[P_TEXT]);
    if (members[P_METADATA].value.kind == WAL__JSON_OBJECT &&
        wal__model_members(members[P_METADATA].value.span, signatures, 2,
                           NULL) == WAL__JSON_OK) {
        block->signature = wal__member_string(&signatures[0]);
        if (signatures[1].value.kind == WAL__JSON_STRING) {
            block->signature = signatures[1].value.span;
            block->is_redacted = true;
        }
    }
}

static void read_image(struct wal__opencode_message *message,
                       const struct wal__json_member *members,
                       struct wal__model_block *block)
{
    struct wal__arena *arena = message->storage->reader->scratch;

    if (!wal__model_set_image_url(arena, block,
                                  wal__member_string(&members[P_URL]))) {
        message->storage->has_failed = true;
    }
}

static bool is_image(const struct wal__json_member *members)
{
    struct wal__json_span mime = wal__member_string(&members[P_MIME]);

    return mime.size > 7 && memcmp(mime.data, "\"image/", 7) == 0 &&
           members[P_URL].value.kind == WAL__JSON_STRING;
}

static void read_file(struct wal__opencode_message *message,
                      const struct wal__json_member *members,
                      struct wal__json_span part)
{
    struct wal__model_block *block;

    if (!is_image(members)) {
        read_raw(message, part);
        return;
    }
    block = add_block(message, WAL__BLOCK_IMAGE);
    if (block != NULL) {
        read_image(message, members, block);
    }
}

enum {
    S_STATUS,
    S_INPUT,
    S_OUTPUT,
    S_ERROR,
    S_START,
    S_END,
    S_ATTACHMENTS,
    S_CONTENT,
    S_ORPHAN,
    S_COUNT
};

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
        struct wal__json_member members[P_COUNT];
        struct wal__model_block *block;
        memcpy(members, part_wanted, sizeof(members));
        if (wal__model_members(value.span, members, P_COUNT, NULL) !=
            WAL__JSON_OK) {
            return false;
        }
        block = wal__model_blocks_add(
            blocks, is_image(members) ? WAL__BLOCK_IMAGE : WAL__BLOCK_RAW,
            none);
        if (block == NULL) {
            return false;
        }
        if (block->kind == WAL__BLOCK_IMAGE) {
            read_image(message, members, block);
        } else {
            block->raw = value.span;
        }
    }
    return true;
}

static bool read_result_content(struct wal__opencode_message *message,
                                const struct wal__json_member *state,
                                struct wal__model_item *result)
{
    struct wal__model_blocks blocks = {.arena =
                                           message->storage->reader->scratch};
    const struct wal__json_member *text =
        &state[result->is_error ? S_ERROR : S_OUTPUT];

    if (state[S_CONTENT].value.kind == WAL__JSON_ARRAY) {
        if (!wal__content_read(state[S_CONTENT].value, &blocks,
                               &result->fields)) {
            return false;
        }
    } else if (!wal__content_read(text->value, &blocks, &result->fields) ||
               !read_attachments(
                   message, &blocks,
                   wal__member_container(&state[S_ATTACHMENTS]))) {
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

static void read_tool_result(struct wal__opencode_message *message,
                             const struct wal__json_member *members,
                             const struct wal__json_member *state)
{
    bool is_error = wal__line_string_is(&state[S_STATUS], "error");
    struct wal__model_item *result;

    if (!is_error && !wal__line_string_is(&state[S_STATUS], "completed") &&
        !wal__line_string_is(&state[S_STATUS], "success")) {
        return;
    }
    result = add_result(message);
    if (result == NULL) {
        message->storage->has_failed = true;
        return;
    }
    *result = (struct wal__model_item){
        .kind = WAL__ITEM_MESSAGE,
        .role = WAL__ROLE_TOOL,
        .is_error = is_error,
        .id = message->part,
        .call = wal__member_string(&members[P_CALL]),
        .name = wal__member_string(&members[P_TOOL]),
        .time = wal__member_number(&state[S_END]),
    };
    if (result->time.size == 0) {
        result->time = message->item.time;
    }
    message->storage->has_failed |=
        !read_result_content(message, state, result);
}

static void read_tool(struct wal__opencode_message *message,
                      const struct wal__json_member *members)
{
    struct wal__json_member state[S_COUNT] = {
        [S_STATUS] = {.key = "status"},
        [S_INPUT] = {.key = "input"},
        [S_OUTPUT] = {.key = "output"},
        [S_ERROR] = {.key = "error"},
        [S_START] = {.parent = "time", .key = "start"},
        [S_END] = {.parent = "time", .key = "end"},
        [S_ATTACHMENTS] = {.key = "attachments"},
        [S_CONTENT] = {.parent = "metadata", .key = "walconvContent"},
        [S_ORPHAN] = {.parent = "metadata", .key = "walconvAlone"},
    };
    struct wal__model_block *block;

    if (members[P_STATE].value.kind == WAL__JSON_OBJECT &&
        wal__model_members(members[P_STATE].value.span, state, S_COUNT, NULL) !=
            WAL__JSON_OK) {
        return;
    }
    if (!wal__member_is_true(&state[S_ORPHAN])) {
        block = add_block(message, WAL__BLOCK_TOOL_CALL);
        if (block == NULL) {
            return;
        }
        block->id = wal__member_string(&members[P_CALL]);
        block->name = wal__member_string(&members[P_TOOL]);
        block->arguments = wal__content_unwrap_arguments(
            wal__member_non_null(&state[S_INPUT]));
    }
    read_tool_result(message, members, state);
}

/* Returns the id with a number appended; data is NULL if there is no memory. */
static struct wal__json_span append_number(struct wal__arena *arena,
                                           struct wal__json_span id, size_t n)
{
    uint8_t *text = wal__arena_alloc(arena, id.size + 21);
    size_t size = id.size - 1;
    size_t unit = 1;

    if (text == NULL) {
        return (struct wal__json_span){NULL, 0};
    }
    memcpy(text, id.data, size);
    text[size++] = '~';
    while (n / unit >= 10) {
        unit *= 10;
    }
    for (; unit > 0; unit /= 10) {
        text[size++] = (uint8_t)('0' + n / unit % 10);
    }
    text[size++] = '"';
    return (struct wal__json_span){text, size};
}

/* Changes the item's id if an earlier item has it. */
static bool assign_unique_id(struct wal__opencode_storage *storage,
                             struct wal__model_item *item)
{
    struct wal__json_span own =
        item->id.size > 2 ? item->id : wal__model_literal("\"item\"");
    struct wal__json_span found;
    size_t n = storage->emitted_ids.count;

    item->id = own;
    while (item->id.data != NULL &&
           wal__model_table_get(&storage->emitted_ids,
                                wal__model_string_hash(0, item->id), &found)) {
        item->id = append_number(storage->reader->scratch, own, ++n);
    }
    return item->id.data != NULL &&
           wal__model_table_put(&storage->emitted_ids,
                                wal__model_string_hash(0, item->id), item->id);
}

/* Emits an item as a child of the previous one. */
static void emit(struct wal__opencode_storage *storage,
                 struct wal__model_item *item)
{
    item->parent = storage->tip;
    if (!assign_unique_id(storage, item) ||
        !wal__model_emit(storage->reader, item)) {
        storage->has_failed = true;
    }
    storage->tip = item->id;
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
        emit(message->storage, item);
        item->usage = (struct wal__model_usage){.input = {NULL, 0}};
        item->fields = 0;
    }
    for (size_t i = 0; i < message->result_count; i++) {
        emit(message->storage, &message->results[i]);
    }
    message->is_emitted |= has_content || message->result_count > 0;
    message->result_count = 0;
    message->blocks =
        (struct wal__model_blocks){.arena = message->storage->reader->scratch};
}

void wal__opencode_part_read(struct wal__opencode_message *message,
                             const struct wal__opencode_document *part)
{
    struct wal__json_member members[P_COUNT];
    struct wal__json_span type;

    memcpy(members, part_wanted, sizeof(members));
    if (wal__model_members(part->value, members, P_COUNT, NULL) !=
        WAL__JSON_OK) {
        return;
    }
    type = wal__member_string(&members[P_TYPE]);
    message->part =
        wal__opencode_storage_id(message->storage, part, &members[P_ID]);
    if (message->is_emitted && message->blocks.count == 0) {
        message->item.id = message->part; /* a new step begins */
    }
    if (wal__model_text_is(type, "text")) {
        read_text(message, members);
    } else if (wal__model_text_is(type, "reasoning")) {
        read_reasoning(message, members);
    } else if (wal__model_text_is(type, "tool")) {
        read_tool(message, members);
    } else if (wal__model_text_is(type, "step-start") ||
               wal__model_text_is(type, "step-finish")) {
        message->item.fields++;
        if (message->result_count > 0) {
            wal__opencode_flush(message, false);
        }
    } else if (wal__model_text_is(type, "compaction") &&
               message->item.role == WAL__ROLE_USER) {
        message->has_compaction_part = true;
        message->storage->first_kept = wal__member_string(&members[P_TAIL]);
    } else if (wal__model_text_is(type, "file")) {
        read_file(message, members, part->value);
    } else {
        message->has_user_text = true;
        read_raw(message, part->value);
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
    emit(message->storage, item);
}
