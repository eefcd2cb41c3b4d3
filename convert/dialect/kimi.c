/*
 * kimi.c - the sessions of Kimi Code, and of Kimi CLI before it, which are read only.
 *
 * A session is a folder with a file of records for each agent, {type, time, ...}: the main one is
 * the session's, the others are those of its subagents. Which session a file is of is in its path.
 * Records have no ids; the parent is the previous line. Kimi CLI wrote the records as {timestamp,
 * message: {type, payload}}, of other types with the same content.
 *
 * A step is one request to a model. Its parts and calls are records, which are parts of one answer
 * here, with the token counts of the record after them. A prompt is a record of its turn, and a
 * message of the context again: the first of both is the message. A compaction, and a context that
 * was cleared, replace all before them. Other records are of the client alone, and on no branch.
 *
 * Images that the client keeps in separate files are known by the name of the file only.
 *
 * A written answer is a step with a record for each block and, before these, one with its counts;
 * the results of its calls are before its end. The files by which the client finds a session, its
 * state and a line of its index, are written where there are none. The client lists the sessions of
 * a directory by their folder, whose name has the directory's digest.
 *
 * Invariant: every line moves the head; the parent of an item is the item before it.
 *
 * Threads: one thread at a time per reader.
 */
#include "convert/model/dialect.h"

#include <string.h>

#include "convert/model/model_content.h"
#include "convert/model/model_member.h"
#include "convert/model/model_table.h"
#include "convert/model/model_write.h"
#include "format/json/json_text.h"
#include "format/payload/timestamp.h"

/* --- lines --------------------------------------------------------------- */

struct known_line {
    struct wal__line_info info; /* first: offsets in it are offsets in the line */
    struct wal__json_span time;
    struct wal__json_span created;
    struct wal__json_span version;
    struct wal__json_span cwd;
    struct wal__json_span stamp; /* the following are of Kimi CLI */
    struct wal__json_span old_type;
    struct wal__json_span payload;
    bool has_type;
};

#define KNOWN_AT(field) offsetof(struct known_line, field)

static const struct wal__field known_fields[] = {
    {"type", .at = WAL__LINE_AT(type)},
    {"type", .at = KNOWN_AT(has_type), .kind = WAL__FIELD_IS_THERE},
    {"time", .at = KNOWN_AT(time), .kind = WAL__FIELD_NUMBER},
    {"created_at", .at = KNOWN_AT(created), .kind = WAL__FIELD_NUMBER},
    {"protocol_version", .at = KNOWN_AT(version)},
    {"cwd", .at = KNOWN_AT(cwd)},
    {"timestamp", .at = KNOWN_AT(stamp), .kind = WAL__FIELD_NUMBER},
    {"type", .parent = "message", .at = KNOWN_AT(old_type)},
    {"payload", .parent = "message", .at = KNOWN_AT(payload), .kind = WAL__FIELD_CONTAINER},
    {.key = NULL},
};

#define VERSION_NEWEST 5 /* 1.5 */

static bool kimi_recognise(const void *text, bool is_first)
{
    static const char *const types[] = {"turn.prompt", "turn.steer", "context.append_message",
                                        "context.append_loop_event", "config.update"};
    const struct known_line *line = text;

    if (is_first && wal__model_text_is(line->info.type, "metadata")) {
        return line->version.size > 0;
    }
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (wal__model_text_is(line->info.type, types[i])) {
            return true;
        }
    }
    return !line->has_type && line->stamp.size > 0 && line->old_type.size > 0 &&
           line->payload.size > 0 && line->payload.data[0] == '{';
}

/* Whether the version is "1.N" with a greater N than is known, or another one. */
static bool is_newer(struct wal__json_span span)
{
    unsigned number = 0;

    if (span.size == 0) {
        return false;
    }
    if (span.size < 5 || memcmp(span.data, "\"1.", 3) != 0) {
        return true;
    }
    for (size_t i = 3; i + 1 < span.size; i++) {
        if (span.data[i] < '0' || span.data[i] > '9' || number > 1000) {
            return true;
        }
        number = number * 10 + (unsigned)(span.data[i] - '0');
    }
    return number > VERSION_NEWEST;
}

/* Returns a time in seconds with a fraction as milliseconds; 0 if it is none. */
static int64_t read_seconds(struct wal__json_span number)
{
    int64_t ms = 0;
    size_t at = 0;
    unsigned decimals = 0;

    for (; at < number.size && number.data[at] >= '0' && number.data[at] <= '9'; at++) {
        ms = ms * 10 + (number.data[at] - '0');
        if (ms > INT64_C(253402300799)) {
            return 0;
        }
    }
    if (at < number.size && number.data[at] != '.') {
        return 0;
    }
    for (at++; decimals < 3; decimals++, at++) {
        ms = ms * 10 + (at < number.size && number.data[at] >= '0' && number.data[at] <= '9'
                            ? number.data[at] - '0'
                            : 0);
    }
    return ms;
}

static void kimi_judge(void *text)
{
    struct known_line *line = text;
    struct wal__line_info *info = &line->info;

    if (wal__model_text_is(info->type, "config.update")) {
        info->cwd = line->cwd;
    }
    if (info->type.size == 0) {
        info->type = line->old_type;
    }
    if (!wal__model_time_read(line->time, &info->time_ms) &&
        !wal__model_time_read(line->created, &info->time_ms)) {
        info->time_ms = read_seconds(line->stamp);
    }
    info->has_newer_version = is_newer(line->version);
}

/* --- content ------------------------------------------------------------- */

struct part {
    struct wal__model_block block; /* first: offsets in it are offsets here */
    struct wal__json_span type;
    struct wal__json_span image;
};

#define PART_AT(field) offsetof(struct part, field)

static const struct wal__field part_fields[] = {
    {"type", .at = PART_AT(type)},
    {"think", .at = WAL__BLOCK_AT(text)},
    {"text", .at = WAL__BLOCK_AT(text)},
    {"encrypted", .at = WAL__BLOCK_AT(signature)},
    {"url", .parent = "imageUrl", .at = PART_AT(image)},
    {"url", .parent = "image_url", .at = PART_AT(image)},
    {.key = NULL},
};

static bool add_part(struct wal__model_blocks *blocks, struct wal__json_span raw, uint32_t *fields)
{
    struct part part = {.block = {.kind = WAL__BLOCK_RAW, .raw = raw}};

    if (wal__fields_read(raw, part_fields, &part, fields) != WAL__JSON_OK) {
        return false;
    }
    if (wal__model_text_is(part.type, "text") && part.block.text.size > 0) {
        part.block.kind = WAL__BLOCK_TEXT;
        part.block.signature.size = 0;
    } else if (wal__model_text_is(part.type, "think") &&
               part.block.text.size + part.block.signature.size > 0) {
        part.block.kind = WAL__BLOCK_THINKING;
        part.block.is_redacted = part.block.text.size == 0;
    } else if (wal__model_text_is(part.type, "image_url") && part.image.size > 0) {
        part.block.kind = WAL__BLOCK_IMAGE;
        if (!wal__model_set_image_url(blocks->arena, &part.block, part.image)) {
            return false;
        }
    }
    return wal__model_blocks_append(blocks, &part.block);
}

/* Reads content: a text, or an array of parts. */
static bool read_content(struct wal__json_token content, struct wal__model_blocks *blocks,
                         uint32_t *fields)
{
    struct wal__json_scan scan;
    struct wal__json_token value;

    if (content.kind == WAL__JSON_STRING) {
        return content.span.size <= 2 ||
               wal__model_blocks_add_text(blocks, WAL__BLOCK_TEXT, content.span);
    }
    if (content.kind == WAL__JSON_OBJECT) {
        return add_part(blocks, content.span, fields);
    }
    if (content.kind != WAL__JSON_ARRAY) {
        return true;
    }
    wal__model_array_begin(&scan, content.span);
    while (wal__model_array_next(&scan, &value)) {
        if (!add_part(blocks, value.span, fields)) {
            return false;
        }
    }
    return true;
}

/* --- records ------------------------------------------------------------- */

enum {
    PROMPTS_MAX = 16 /* that may still come as messages of the context */
};

/* State of a reader. */
struct kimi {
    struct wal__json_span line;     /* id of the line before */
    struct wal__json_span item;     /* id of the last item that is on a branch; or empty */
    struct wal__json_span step;     /* that is open; or empty */
    struct wal__model_item counted; /* the usage and the model of the step, for its calls */
    uint64_t prompts[PROMPTS_MAX];
    size_t prompt_count;
};

enum kind {
    KIND_PROMPT,
    KIND_MESSAGE,
    KIND_STEP,
    KIND_REQUEST,
    KIND_PART,
    KIND_CALL,
    KIND_RESULT,
    KIND_USAGE,
    KIND_COMPACTION,
    KIND_CLEAR
};

struct record {
    struct wal__entry entry; /* first: offsets in it are offsets in the record */
    struct kimi *kimi;
    struct wal__json_span event;
    struct wal__json_span event_type;
    struct wal__json_span message;
    struct wal__json_span payload; /* of a record of Kimi CLI */
    struct wal__json_span old_type;
    struct wal__json_span origin; /* who made a message */
    struct wal__json_span step;
    struct wal__model_block call;
};

#define RECORD_AT(field) offsetof(struct record, field)
#define CALL_AT(field)   offsetof(struct record, call.field)

static const struct wal__field record_fields[] = {
    {"type", .at = WAL__ENTRY_AT(type)},
    {"time", .kind = WAL__FIELD_KNOWN},
    {"timestamp", .kind = WAL__FIELD_KNOWN},
    {"event", .at = RECORD_AT(event), .kind = WAL__FIELD_CONTAINER},
    {"type", .parent = "event", .at = RECORD_AT(event_type)},
    {"message", .at = RECORD_AT(message), .kind = WAL__FIELD_CONTAINER},
    {"type", .parent = "message", .at = RECORD_AT(old_type)},
    {"payload", .parent = "message", .at = RECORD_AT(payload), .kind = WAL__FIELD_CONTAINER},
    {"kind", .parent = "origin", .at = RECORD_AT(origin)},
    {"input", .at = WAL__ENTRY_AT(content), .kind = WAL__FIELD_TOKEN},
    {"model", .at = WAL__ITEM_AT(model)},
    {"usage", .at = WAL__ENTRY_AT(usage), .kind = WAL__FIELD_CONTAINER},
    {"summary", .at = WAL__ITEM_AT(text)},
    {"tokensBefore", .at = WAL__ITEM_AT(tokens), .kind = WAL__FIELD_NUMBER},
    {.key = NULL},
};

static const struct wal__field message_fields[] = {
    {"role", .at = WAL__ENTRY_AT(role)},
    {"content", .at = WAL__ENTRY_AT(content), .kind = WAL__FIELD_TOKEN},
    {"toolCalls", .at = WAL__ENTRY_AT(calls), .kind = WAL__FIELD_TOKEN},
    {"toolCallId", .at = WAL__ITEM_AT(call)},
    {"name", .at = WAL__ITEM_AT(name)},
    {"isError", .at = WAL__ITEM_AT(is_error), .kind = WAL__FIELD_TRUE},
    {"kind", .parent = "origin", .at = RECORD_AT(origin)},
    {.key = NULL},
};

/* Of an event, and of the payload of Kimi CLI. */
static const struct wal__field event_fields[] = {
    {"type", .kind = WAL__FIELD_KNOWN},
    {"uuid", .at = RECORD_AT(step)},
    {"part", .at = WAL__ENTRY_AT(content), .kind = WAL__FIELD_TOKEN},
    {"user_input", .at = WAL__ENTRY_AT(content), .kind = WAL__FIELD_TOKEN},
    {"output", .parent = "result", .at = WAL__ENTRY_AT(content), .kind = WAL__FIELD_TOKEN},
    {"output", .parent = "return_value", .at = WAL__ENTRY_AT(content), .kind = WAL__FIELD_TOKEN},
    {"message", .parent = "result", .at = WAL__ITEM_AT(text)},
    {"message", .parent = "return_value", .at = WAL__ITEM_AT(text)},
    {"isError", .parent = "result", .at = WAL__ITEM_AT(is_error), .kind = WAL__FIELD_TRUE},
    {"is_error", .parent = "return_value", .at = WAL__ITEM_AT(is_error), .kind = WAL__FIELD_TRUE},
    {"toolCallId", .at = WAL__ITEM_AT(call)},
    {"tool_call_id", .at = WAL__ITEM_AT(call)},
    {"id", .at = WAL__ITEM_AT(call)},
    {"name", .at = CALL_AT(name)},
    {"name", .parent = "function", .at = CALL_AT(name)},
    {"args", .at = CALL_AT(arguments), .kind = WAL__FIELD_NON_NULL},
    {"arguments", .parent = "function", .at = CALL_AT(arguments), .kind = WAL__FIELD_NON_NULL},
    {"token_usage", .at = WAL__ENTRY_AT(usage), .kind = WAL__FIELD_CONTAINER},
    {"turnId", .kind = WAL__FIELD_KNOWN},
    {"step", .kind = WAL__FIELD_KNOWN},
    {"stepUuid", .kind = WAL__FIELD_KNOWN},
    {.key = NULL},
};

static const struct wal__field usage_fields[] = {
    {"inputOther", WAL__USAGE_AT(input), .kind = WAL__FIELD_NUMBER},
    {"input_other", WAL__USAGE_AT(input), .kind = WAL__FIELD_NUMBER},
    {"output", WAL__USAGE_AT(output), .kind = WAL__FIELD_NUMBER},
    {"inputCacheRead", WAL__USAGE_AT(cache_read), .kind = WAL__FIELD_NUMBER},
    {"input_cache_read", WAL__USAGE_AT(cache_read), .kind = WAL__FIELD_NUMBER},
    {"inputCacheCreation", WAL__USAGE_AT(cache_write), .kind = WAL__FIELD_NUMBER},
    {"input_cache_creation", WAL__USAGE_AT(cache_write), .kind = WAL__FIELD_NUMBER},
    {.key = NULL},
};

static const struct wal__word kinds[] = {
    {"turn.prompt", .value = KIND_PROMPT},
    {"turn.steer", .value = KIND_PROMPT},
    {"TurnBegin", .value = KIND_PROMPT},
    {"SteerInput", .value = KIND_PROMPT},
    {"context.append_message", .value = KIND_MESSAGE},
    {"step.begin", .value = KIND_STEP},
    {"llm.request", .value = KIND_REQUEST},
    {"StepBegin", .value = KIND_STEP},
    {"content.part", .value = KIND_PART},
    {"ContentPart", .value = KIND_PART},
    {"tool.call", .value = KIND_CALL},
    {"ToolCall", .value = KIND_CALL},
    {"tool.result", .value = KIND_RESULT},
    {"ToolResult", .value = KIND_RESULT},
    {"usage.record", .value = KIND_USAGE},
    {"StatusUpdate", .value = KIND_USAGE},
    {"context.apply_compaction", .value = KIND_COMPACTION},
    {"context.clear", .value = KIND_CLEAR},
    {.name = NULL},
};

static const struct wal__word roles[] = {
    {"user", .value = WAL__ROLE_USER},
    {"assistant", .value = WAL__ROLE_ASSISTANT},
    {"system", .value = WAL__ROLE_SYSTEM},
    {"tool", .value = WAL__ROLE_TOOL},
    {.name = NULL},
};

/* --- items --------------------------------------------------------------- */

/* Emits the item, which the next one follows. */
static bool emit_item(struct record *record)
{
    struct wal__model_item *item = &record->entry.item;

    record->kimi->item = wal__arena_copy(record->entry.reader->arena, item->id);
    return record->kimi->item.data != NULL && wal__model_emit(record->entry.reader, item);
}

/* Emits a record that means nothing to others. */
static bool emit_own(struct record *record)
{
    record->entry.item.is_off_branch = true;
    record->entry.item.is_echo = true;
    return wal__entry_emit_line(&record->entry);
}

/* Hash of the texts of a message; 0: it has none. */
static uint64_t hash_texts(const struct wal__model_item *item)
{
    uint64_t hash = 0;

    for (size_t i = 0; i < item->block_count; i++) {
        if (item->blocks[i].kind == WAL__BLOCK_TEXT) {
            hash = wal__model_string_hash(hash, item->blocks[i].text);
        }
    }
    return hash;
}

/* Whether the message is a prompt that came as one of its turn; forgets that. */
static bool take_prompt(struct kimi *kimi, uint64_t hash)
{
    for (size_t i = 0; hash != 0 && i < kimi->prompt_count; i++) {
        if (kimi->prompts[i] == hash) {
            kimi->prompts[i] = kimi->prompts[--kimi->prompt_count];
            return true;
        }
    }
    return false;
}

static bool emit_user(struct record *record, bool is_prompt)
{
    struct wal__model_item *item = &record->entry.item;
    struct kimi *kimi = record->kimi;

    item->role = WAL__ROLE_USER;
    if (record->origin.size > 0 && !wal__model_text_is(record->origin, "user")) {
        item->is_meta = true;
        item->name = record->origin;
    }
    if (!is_prompt) {
        return take_prompt(kimi, hash_texts(item)) ? emit_own(record) : emit_item(record);
    }
    if (item->block_count == 0) {
        return emit_own(record);
    }
    if (kimi->prompt_count == PROMPTS_MAX) {
        memmove(kimi->prompts, kimi->prompts + 1, sizeof(kimi->prompts) - sizeof(uint64_t));
        kimi->prompt_count--;
    }
    kimi->prompts[kimi->prompt_count++] = hash_texts(item);
    return emit_item(record);
}

static bool emit_message(struct record *record)
{
    struct wal__model_item *item = &record->entry.item;
    struct wal__model_blocks blocks = {.arena = record->entry.reader->scratch};
    const struct wal__word *role;

    if (wal__fields_read(record->message, message_fields, record, &item->fields) != WAL__JSON_OK) {
        return false;
    }
    role = wal__word_find(roles, record->entry.role);
    if (role == NULL) {
        return emit_own(record);
    }
    if (!read_content(record->entry.content, &blocks, &item->fields) ||
        !wal__content_read_calls(record->entry.calls, &blocks)) {
        return false;
    }
    item->kind = WAL__ITEM_MESSAGE;
    item->blocks = blocks.items;
    item->block_count = blocks.count;
    item->role = role->value;
    item->name.size = item->role == WAL__ROLE_TOOL ? item->name.size : 0;
    return item->role == WAL__ROLE_USER ? emit_user(record, false) : emit_item(record);
}

/* Emits a part, a call or a result of a step, or a prompt of Kimi CLI. */
static bool emit_event(struct record *record, enum kind kind)
{
    struct wal__model_item *item = &record->entry.item;
    struct wal__model_blocks blocks = {.arena = record->entry.reader->scratch};
    bool is_old_part = kind == KIND_PART && record->payload.size > 0;

    if (kind == KIND_RESULT && record->entry.content.span.size <= 2 && item->text.size > 0) {
        /* What the client says of a call without output. */
        record->entry.content =
            (struct wal__json_token){.kind = WAL__JSON_STRING, .span = item->text};
    }
    item->text.size = 0;
    if (is_old_part ? !add_part(&blocks, record->payload, &item->fields)
                    : !read_content(record->entry.content, &blocks, &item->fields)) {
        return false;
    }
    if (kind == KIND_CALL) {
        struct wal__model_block *block = &record->call;

        block->kind = WAL__BLOCK_TOOL_CALL;
        block->id = item->call;
        block->raw = record->payload.size > 0 ? record->payload : record->event;
        item->call.size = 0;
        block->arguments = wal__content_unwrap_arguments(block->arguments);
        if (block->arguments.size > 0 && block->arguments.data[0] == '"') {
            struct wal__json_span text =
                wal__arena_unescape(record->entry.reader->scratch, block->arguments);
            if (text.size > 0 && wal__json_validate(text.data, text.size, NULL) == WAL__JSON_OK) {
                block->arguments = text;
            }
        }
        if (!wal__model_blocks_append(&blocks, block)) {
            return false;
        }
    }
    item->kind = WAL__ITEM_MESSAGE;
    item->blocks = blocks.items;
    item->block_count = blocks.count;
    if (kind == KIND_PROMPT) {
        return emit_user(record, true);
    }
    item->role = kind == KIND_RESULT ? WAL__ROLE_TOOL : WAL__ROLE_ASSISTANT;
    if (kind != KIND_RESULT) {
        item->answer_id = record->kimi->step;
        item->usage = record->kimi->counted.usage;
        item->model = record->kimi->counted.model;
    }
    return emit_item(record);
}

/* Keeps the counts of a step for its calls, which are later parts of the same answer. */
static bool keep_counts(struct record *record)
{
    const struct wal__model_item *item = &record->entry.item;
    struct wal__model_item *kept = &record->kimi->counted;
    const struct wal__json_span from[] = {item->model, item->usage.input, item->usage.output,
                                          item->usage.cache_read, item->usage.cache_write};
    struct wal__json_span *const to[] = {&kept->model, &kept->usage.input, &kept->usage.output,
                                         &kept->usage.cache_read, &kept->usage.cache_write};

    for (size_t i = 0; i < sizeof(from) / sizeof(from[0]); i++) {
        *to[i] = from[i];
        if (from[i].size > 0) {
            *to[i] = wal__arena_copy(record->entry.reader->arena, from[i]);
            if (to[i]->data == NULL) {
                return false;
            }
        }
    }
    return true;
}

/* Emits the token counts of a step as its part. */
static bool emit_usage(struct record *record)
{
    struct wal__model_item *item = &record->entry.item;

    if (wal__fields_read(record->entry.usage, usage_fields, &item->usage, NULL) != WAL__JSON_OK) {
        return false;
    }
    if (record->kimi->step.size == 0 || item->usage.input.size + item->usage.output.size == 0) {
        return emit_own(record);
    }
    item->kind = WAL__ITEM_MESSAGE;
    item->role = WAL__ROLE_ASSISTANT;
    item->answer_id = record->kimi->step;
    if (record->kimi->counted.model.size > 0) {
        item->model = record->kimi->counted.model; /* as the parts before */
    }
    return keep_counts(record) && emit_item(record);
}

static bool emit_record(struct record *record)
{
    struct wal__json_span name = record->entry.type;
    struct wal__json_span inner = record->event;
    struct wal__model_item *item = &record->entry.item;
    const struct wal__word *kind;

    if (name.size == 0) {
        name = record->old_type;
        inner = record->payload;
    } else if (wal__model_text_is(name, "context.append_loop_event")) {
        name = record->event_type;
    } else {
        inner.size = 0;
    }
    kind = wal__word_find(kinds, name);
    if (kind == NULL) {
        return emit_own(record);
    }
    if (inner.size > 0 && wal__fields_read(inner, event_fields, record, NULL) != WAL__JSON_OK) {
        return false;
    }
    switch ((enum kind)kind->value) {
    case KIND_MESSAGE:
        return emit_message(record);
    case KIND_STEP:
        record->kimi->counted = (struct wal__model_item){.kind = WAL__ITEM_MESSAGE};
        record->kimi->step = wal__arena_copy(record->entry.reader->arena,
                                             record->step.size > 2 ? record->step : item->id);
        return record->kimi->step.data != NULL && emit_own(record);
    case KIND_REQUEST:
        record->kimi->counted.model = wal__arena_copy(record->entry.reader->arena, item->model);
        item->model.size = 0;
        return record->kimi->counted.model.data != NULL && emit_own(record);
    case KIND_PROMPT:
    case KIND_PART:
    case KIND_CALL:
    case KIND_RESULT:
        return emit_event(record, kind->value);
    case KIND_USAGE:
        return emit_usage(record);
    case KIND_COMPACTION:
    case KIND_CLEAR:
        break;
    }
    item->kind = WAL__ITEM_COMPACTION;
    if (kind->value == KIND_CLEAR) {
        item->text = wal__model_literal("\"The context was cleared.\"");
    }
    return emit_item(record);
}

static enum wal__json_status kimi_line(struct wal__model_reader *reader,
                                       const struct wal__model_line *line)
{
    struct record record = {.entry = wal__entry_begin(reader, line),
                            .kimi = wal__reader_state(reader, sizeof(*record.kimi))};
    struct wal__model_item *item = &record.entry.item;
    enum wal__json_status status;

    if (record.kimi == NULL) {
        return WAL__JSON_NO_SPACE;
    }
    item->raw = line->text;
    if (line->parent.size > 0 && record.kimi->line.size > 0 &&
        wal__json_characters_equal(line->parent, record.kimi->line)) {
        item->parent = record.kimi->item;
    }
    status = wal__fields_read(line->text, record_fields, &record, &item->fields);
    if (status != WAL__JSON_OK) {
        return status;
    }
    if (!emit_record(&record)) {
        return WAL__JSON_NO_SPACE;
    }
    record.kimi->line = wal__arena_copy(reader->arena, line->id);
    return record.kimi->line.data != NULL ? WAL__JSON_OK : WAL__JSON_NO_SPACE;
}

static const struct wal__dialect_read_ops kimi_read_ops = {.line = kimi_line};

/* --- writing ------------------------------------------------------------- */

#define TITLE_MAX 200 /* characters of a prompt in a title */

struct writer {
    uint64_t turns;
    uint64_t steps;
    bool has_step;                /* one is open */
    bool has_begun;               /* a record was written */
    struct wal__json_span prompt; /* the beginning of the first one; or empty */
};

/* Returns sessions/wd_SLUG_HASH/ID/ and a name; NULL: no memory. */
static const char *make_path(const struct wal__model_session *session, const char *name,
                             struct wal__arena *arena)
{
    const char *given = wal__model_client_path(session, 0, "kimi");
    const char *end = given != NULL ? strstr(given, "/agents/") : NULL;
    struct wal__model_path path;
    char digest[] = "_000000000000/";

    wal__model_path_init(&path, arena);
    if (end != NULL) {
        char *folder = wal__arena_alloc(arena, (size_t)(end - given) + 2);

        if (folder == NULL) {
            return NULL;
        }
        memcpy(folder, given, (size_t)(end - given) + 1);
        folder[end - given + 1] = '\0';
        wal__model_path_add(&path, folder);
    } else {
        if (session->cwd_digest[0] != '\0') {
            memcpy(digest + 1, session->cwd_digest, 12);
        }
        wal__model_path_add(&path, "sessions/wd_");
        wal__model_path_add_slug(&path, session->cwd, "._-", 40, "workspace");
        wal__model_path_add(&path, digest);
        wal__model_path_add_id(&path, session->id);
        wal__model_path_add(&path, "/");
    }
    wal__model_path_add(&path, name);
    return path.text;
}

static const char *kimi_path(const struct wal__model_session *session, uint32_t stream,
                             struct wal__arena *arena)
{
    const char *given = wal__model_client_path(session, stream, "kimi");

    return given != NULL ? given : make_path(session, "agents/main/wire.jsonl", arena);
}

static int64_t read_ms(struct wal__json_span time)
{
    int64_t ms = 0;

    (void)wal__model_time_read(time, &ms);
    return ms;
}

static void open_record(struct wal__model_writer *writer, const char *type,
                        struct wal__json_span time)
{
    wal__model_print(&writer->out, "{'type':$", wal__model_literal(type));
    wal__json_out_member_int(&writer->out, "time", read_ms(time));
}

/* Opens the record of an event of the open step. */
static void open_event(struct wal__model_writer *writer, const char *type,
                       struct wal__json_span time)
{
    const struct writer *to = writer->state;
    struct wal__json_out *out = &writer->out;
    bool is_step = strncmp(type, "step.", 5) == 0;

    open_record(writer, "context.append_loop_event", time);
    wal__model_print(out, "'event':{'type':$", wal__model_literal(type));
    wal__json_out_member_count(out, "step", to->steps);
    wal__model_write_numbered(out, is_step ? "uuid" : "stepUuid", "step_", to->steps);
    wal__model_write_numbered(out, "turnId", "turn_", to->turns);
}

static void close_event(struct wal__model_writer *writer)
{
    wal__model_put(&writer->out, "}}\n");
}

static bool kimi_begin(struct wal__model_writer *writer)
{
    return wal__model_write_stream(writer, 0);
}

/* Writes the first records, unless the first item is a record of the client. */
static void begin_records(struct wal__model_writer *writer, const struct wal__model_item *item)
{
    const struct wal__model_session *session = writer->session;
    struct wal__json_out *out = &writer->out;
    struct writer *to = writer->state;

    if (!to->has_begun && (item == NULL || item->raw.size + item->data.size == 0)) {
        wal__model_put(out, "{'type':'metadata','protocol_version':'1.4'");
        wal__json_out_member_int(out, "created_at", read_ms(session->time));
        wal__model_put(out, "}\n");
        open_record(writer, "config.update", session->time);
        wal__model_print(out, "'cwd':%}\n", wal__model_or(session->cwd, "\"/\""));
    }
    to->has_begun = true;
}

static void end_step(struct wal__model_writer *writer, struct wal__json_span time)
{
    struct writer *to = writer->state;

    if (to->has_step) {
        open_event(writer, "step.end", time);
        wal__model_put(&writer->out, "'finishReason':'end_turn'");
        close_event(writer);
    }
    to->has_step = false;
}

/* Writes a value of content. */
static void write_part(struct wal__json_out *out, const struct wal__model_block *block)
{
    const struct wal__json_span text = wal__model_or(block->text, "\"\"");
    const struct wal__json_span none = {NULL, 0};

    if (block->kind == WAL__BLOCK_RAW) {
        wal__json_out_compact(out, block->raw);
    } else if (block->kind == WAL__BLOCK_THINKING) {
        wal__model_print(out, "{'type':'think','think':?,'encrypted':?}",
                         block->is_redacted ? none : text, block->signature);
    } else if (block->kind == WAL__BLOCK_IMAGE) {
        wal__model_put(out, "{'type':'image_url','imageUrl':{");
        wal__content_write_url(out, "url", block);
        wal__model_put(out, "}}");
    } else {
        wal__model_print(out, "{'type':'text','text':%}", text);
    }
}

static void write_parts(struct wal__json_out *out, const char *key,
                        const struct wal__model_item *item)
{
    wal__json_out_member_open(out, key, '[');
    for (size_t i = 0; i < item->block_count; i++) {
        write_part(out, &item->blocks[i]);
    }
    wal__json_out_close(out, ']');
}

/* Writes a message of the context. */
static void write_message(struct wal__model_writer *writer, const struct wal__model_item *item)
{
    struct writer *to = writer->state;
    struct wal__json_out *out = &writer->out;
    bool is_user = item->role == WAL__ROLE_USER;

    end_step(writer, item->time);
    to->turns += is_user && !item->is_meta ? 1 : 0;
    open_record(writer, "context.append_message", item->time);
    wal__model_put(out, is_user ? "'message':{'role':'user'" : "'message':{'role':'system'");
    write_parts(out, "content", item);
    wal__model_put(out, "'toolCalls':[]");
    if (is_user) {
        wal__model_put(out, item->is_meta ? "'origin':{'kind':'injection'}"
                                          : "'origin':{'kind':'user'}");
    }
    wal__model_put(out, "}}\n");
}

/* An answer without content has an empty text. */
static void write_answer(struct wal__model_writer *writer, const struct wal__model_item *item)
{
    const struct wal__model_block empty = {.kind = WAL__BLOCK_TEXT};
    size_t count = item->block_count > 0 ? item->block_count : 1;
    struct writer *to = writer->state;
    struct wal__json_out *out = &writer->out;

    end_step(writer, item->time);
    to->has_step = true;
    to->steps++;
    open_event(writer, "step.begin", item->time);
    close_event(writer);
    if (item->model.size > 0) {
        open_record(writer, "llm.request", item->time);
        wal__model_print(out, "'model':%}\n", item->model);
    }
    if (wal__model_has_counts(&item->usage)) {
        open_record(writer, "usage.record", item->time);
        wal__model_print(out, "'model':?,'usage':{", item->model);
        wal__fields_write(out, usage_fields, &item->usage);
        wal__model_put(out, "}}\n");
    }
    for (size_t i = 0; i < count; i++) {
        const struct wal__model_block *block = item->block_count > 0 ? &item->blocks[i] : &empty;

        if (block->kind == WAL__BLOCK_TOOL_CALL) {
            open_event(writer, "tool.call", item->time);
            wal__model_print(out, "'toolCallId':%,'name':%", wal__model_or(block->id, "\"\""),
                             wal__model_or(block->name, "\"\""));
            wal__content_write_arguments(out, "args", block->arguments);
        } else {
            open_event(writer, "content.part", item->time);
            wal__json_out_key(out, "part");
            write_part(out, block);
        }
        close_event(writer);
    }
}

static void write_result(struct wal__model_writer *writer, const struct wal__model_item *item)
{
    struct wal__json_out *out = &writer->out;
    const struct wal__model_block *text = item->blocks;
    bool is_text = item->block_count == 1 && text->kind == WAL__BLOCK_TEXT && text->text.size > 2;

    open_event(writer, "tool.result", item->time);
    wal__model_print(out, "'toolCallId':%,'result':{", wal__model_or(item->call, "\"\""));
    if (is_text) {
        wal__json_out_member(out, "output", text->text);
    } else {
        write_parts(out, "output", item);
    }
    wal__model_put(out, item->is_error ? "'isError':true}" : "}");
    close_event(writer);
}

/* Keeps the beginning of the first prompt, of which the client makes a title. */
static bool keep_prompt(struct wal__model_writer *writer, const struct wal__model_item *item)
{
    struct writer *to = writer->state;
    struct wal__json_span text;
    const uint8_t *end;
    const uint8_t *at;
    uint32_t character;

    if (to->prompt.size > 0 || item->kind != WAL__ITEM_MESSAGE || item->role != WAL__ROLE_USER ||
        item->is_meta || item->block_count == 0 || item->blocks[0].text.size <= 2) {
        return true;
    }
    text = (struct wal__json_span){item->blocks[0].text.data + 1, 0};
    end = text.data + item->blocks[0].text.size - 2;
    at = text.data;
    for (unsigned i = 0; i < TITLE_MAX && at < end; i++) {
        if (!wal__json_character_read(&at, end, &character)) {
            break;
        }
    }
    text.size = (size_t)(at - text.data);
    to->prompt = wal__arena_quote(writer->arena, text);
    return to->prompt.data != NULL;
}

static bool kimi_item(struct wal__model_writer *writer, const struct wal__model_item *item)
{
    struct writer *to = writer->state;
    struct wal__json_out *out = &writer->out;

    begin_records(writer, item);
    if (!keep_prompt(writer, item)) {
        return false;
    }
    if (item->raw.size > 0 || item->kind == WAL__ITEM_LINE) {
        to->has_step = false; /* lines of the client end its steps */
        wal__json_out_line(out, item->raw.size > 0 ? item->raw : item->data);
    } else if (item->kind == WAL__ITEM_COMPACTION) {
        end_step(writer, item->time);
        open_record(writer, "context.apply_compaction", item->time);
        wal__model_print(out, "'summary':%,'tokensBefore':?}\n", wal__model_or(item->text, "\"\""),
                         item->tokens);
    } else if (item->kind == WAL__ITEM_MESSAGE && item->role == WAL__ROLE_ASSISTANT) {
        write_answer(writer, item);
    } else if (item->kind == WAL__ITEM_MESSAGE && item->role == WAL__ROLE_TOOL) {
        write_result(writer, item);
    } else if (item->kind == WAL__ITEM_MESSAGE) {
        write_message(writer, item);
    }
    return true;
}

/* Writes a member with a path below the directory that the files are written to. */
static void write_place(struct wal__model_writer *writer, const char *key, const char *path)
{
    struct wal__json_out *out = &writer->out;
    const char *root = writer->session->root;

    wal__json_out_key(out, key);
    wal__json_out_string_begin(out);
    if (root != NULL) {
        wal__json_out_string_text(out, wal__model_literal(root));
        wal__json_out_string_text(out, wal__model_literal("/"));
    }
    wal__json_out_string_text(out, wal__model_literal(path));
    wal__json_out_string_end(out);
}

/* Writes the files by which the client finds the session, where there are none: the client changes
 * its state whenever it works. A title that was given is one that the client does not replace. A
 * subagent is not found by these files, nor is a session of Kimi CLI. */
static bool kimi_end(struct wal__model_writer *writer)
{
    const struct wal__model_session *session = writer->session;
    const struct writer *to = writer->state;
    const char *given = wal__model_client_path(session, 0, "kimi");
    struct wal__json_out *out = &writer->out;
    struct wal__json_span cwd = wal__model_or(session->cwd, "\"/\"");
    bool has_title = session->title.size > 2;
    struct wal__json_span title = has_title ? session->title : to->prompt;
    const char *state = make_path(session, "state.json", writer->scratch);
    const char *main = make_path(session, "agents/main", writer->scratch);
    char *folder = state != NULL ? wal__arena_copy_text(writer->scratch, state) : NULL;

    begin_records(writer, NULL);
    end_step(writer, session->updated);
    if (given != NULL && strstr(given, "/agents/main/") == NULL) {
        return true;
    }
    if (folder == NULL || main == NULL ||
        !wal__model_write_file(writer, state, WAL__OUTPUT_SHARED_DOCUMENT)) {
        return false;
    }
    *strrchr(folder, '/') = '\0';
    wal__model_print(out,
                     "{'createdAt':@,'updatedAt':@,'title':%,'isCustomTitle':%,"
                     "'workDir':%,'agents':{'main':{",
                     session->time, session->time, wal__model_or(title, "\"New Session\""),
                     wal__model_bool(has_title), cwd);
    write_place(writer, "homedir", main);
    wal__model_put(out, "'type':'main','parentAgentId':null}}}");
    if (out->has_failed ||
        !wal__model_write_file(writer, "session_index.jsonl", WAL__OUTPUT_SHARED_LINE)) {
        return false;
    }
    wal__model_print(out, "{'sessionId':%", session->id);
    write_place(writer, "sessionDir", folder);
    wal__model_print(out, "'workDir':%}\n", cwd);
    return !out->has_failed;
}

static const struct wal__dialect_write_ops kimi_write_ops = {
    .carries = WAL__CARRIES(TIMES) | WAL__CARRIES(THINKING) | WAL__CARRIES(SIGNATURES) |
               WAL__CARRIES(IMAGES) | WAL__CARRIES(RESULT_IMAGES) | WAL__CARRIES(TEXT_BOUNDARIES) |
               WAL__CARRIES(EMPTY) | WAL__CARRIES(TOOL_ERRORS) | WAL__CARRIES(MODELS) |
               WAL__CARRIES(USAGE) | WAL__CARRIES(COMPACTIONS) | WAL__CARRIES(TOKENS_BEFORE) |
               WAL__CARRIES(META),
    .merges_parts = true,
    .has_title = true,
    .path = kimi_path,
    .begin = kimi_begin,
    .item = kimi_item,
    .end = kimi_end,
    .state_size = sizeof(struct writer),
};

const struct wal__dialect wal__dialect_kimi = {
    .name = "kimi",
    .summary = "sessions of Kimi Code and Kimi CLI, subagents too",
    .line_fields = known_fields,
    .line_size = sizeof(struct known_line),
    .recognise = kimi_recognise,
    .judge = kimi_judge,
    .read_ops = &kimi_read_ops,
    .write_ops = &kimi_write_ops,
};
