/*
 * codex_read.c - recognises lines of the rollout files of Codex, and converts them to items.
 *
 * Tagged: every line is {timestamp, type, payload}; the first is session_meta. Untagged, as in
 * 2025: the first line is {id, timestamp, instructions, git?}, then bare items and
 * {"record_type":"state"} lines follow. Lines have no ids; the parent is the previous line.
 *
 * response_item lines, and the bare lines of an untagged file, are items of a model's context in
 * the form of OpenAI's API: messages, thinking, calls and results. The arguments of calls that have
 * no object become one, which other clients require; an item of another type is kept as a line. A
 * turn_context is an item of kind LINE, preceded by items for a change of the model and of the
 * effort. A `compacted` line is a compaction; its summary is its replacement_history if it has one,
 * which is kept as an item of kind LINE.
 *
 * Invariant: every line moves the head. A tagged line does not refer to others, so it can be
 * written unchanged. thread_rolled_back yields no content; the turns rolled back become a branch.
 *
 * Threads: one thread at a time per reader.
 */
#include "convert/dialect/codex.h"

#include <string.h>

#include "convert/model/dialect.h"
#include "convert/model/model.h"
#include "convert/model/model_member.h"
#include "format/json/json_text.h"

/* --- lines --------------------------------------------------------------- */

struct known_line {
    struct wal__line_info info; /* first: offsets in it are offsets in the line */
    struct wal__json_span created;
    struct wal__json_span id;
    struct wal__json_span payload; /* the following are in it */
    struct wal__json_span type;
    struct wal__json_span session;
    struct wal__json_span cwd;
    struct wal__json_span name;
    struct wal__json_span starter;
    struct wal__json_span source;
    struct wal__json_span thread;
    struct wal__json_span base;
    bool has_type; /* of the line itself */
    bool has_id;
    bool has_instructions;
};

#define KNOWN_AT(field) offsetof(struct known_line, field)

static const struct wal__field known_fields[] = {
    {"type", .at = WAL__LINE_AT(type)},
    {"type", .at = KNOWN_AT(has_type), .kind = WAL__FIELD_IS_THERE},
    {"timestamp", .at = WAL__LINE_AT(time)},
    {"created_at", .at = KNOWN_AT(created)},
    {"id", .at = KNOWN_AT(id)},
    {"id", .at = KNOWN_AT(has_id), .kind = WAL__FIELD_IS_THERE},
    {"instructions", .at = KNOWN_AT(has_instructions), .kind = WAL__FIELD_IS_THERE},
    {"role", .at = WAL__LINE_AT(is_message), .kind = WAL__FIELD_IS_STRING},
    {"payload", .at = KNOWN_AT(payload), .kind = WAL__FIELD_CONTAINER},
    {"type", .parent = "payload", .at = KNOWN_AT(type)},
    {"id", .parent = "payload", .at = KNOWN_AT(session)},
    {"cwd", .parent = "payload", .at = KNOWN_AT(cwd)},
    {"thread_name", .parent = "payload", .at = KNOWN_AT(name)},
    {"forked_from_id", .parent = "payload", .at = KNOWN_AT(starter)},
    {"parent_thread_id", .parent = "payload", .at = KNOWN_AT(starter)},
    {"source", .parent = "payload", .at = KNOWN_AT(source), .kind = WAL__FIELD_CONTAINER},
    {"thread_source", .parent = "payload", .at = KNOWN_AT(thread)},
    {"history_base", .parent = "payload", .at = KNOWN_AT(base), .kind = WAL__FIELD_CONTAINER},
    {"ordinal", .at = WAL__LINE_AT(ordinal), .kind = WAL__FIELD_NUMBER},
    {.key = NULL},
};

static bool is_untagged_header(const struct known_line *line)
{
    return !line->has_type && line->id.size > 0 && line->info.time.size > 0 &&
           line->has_instructions;
}

static bool codex_recognise(const void *text, bool is_first)
{
    static const char *const types[] = {"session_meta", "response_item", "event_msg",
                                        "turn_context", "compacted",     "world_state"};
    const struct known_line *line = text;

    if (is_first && is_untagged_header(line)) {
        return true;
    }
    if (line->payload.size == 0 || line->payload.data[0] != '{' || line->info.time.size == 0 ||
        line->has_id) {
        return false;
    }
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (wal__model_text_is(line->info.type, types[i])) {
            return true;
        }
    }
    return false;
}

/* Returns the id in {subagent:{thread_spawn:{parent_thread_id}}}, or an empty span. */
static struct wal__json_span spawning_thread(struct wal__json_span source)
{
    struct wal__json_member spawn = {.parent = "subagent", .key = "thread_spawn"};

    if (wal__model_members(source, &spawn, 1, NULL) == WAL__JSON_OK) {
        source = wal__member_container(&spawn);
    }
    return wal__model_string(source, "parent_thread_id");
}

/* Reads what a header says of other threads, and of the file that its own goes on from. */
static void read_links(struct known_line *line)
{
    static const struct wal__field base_fields[] = {
        {"thread_id", .at = WAL__LINE_AT(base)},
        {"end_ordinal_exclusive", .at = WAL__LINE_AT(base_end), .kind = WAL__FIELD_NUMBER},
        {.key = NULL},
    };
    struct wal__line_info *info = &line->info;

    info->starter = spawning_thread(line->source);
    info->is_subagent = info->starter.size > 0 || wal__model_text_is(line->thread, "subagent");
    if (info->starter.size == 0) {
        info->starter = line->starter;
    }
    if (wal__fields_read(line->base, base_fields, info, NULL) != WAL__JSON_OK) {
        info->base.size = 0; /* none that is valid */
    }
}

static void codex_judge(void *text)
{
    struct known_line *line = text;
    struct wal__line_info *info = &line->info;

    if (wal__model_text_is(info->type, "session_meta")) {
        info->session = line->session;
        info->cwd = line->cwd;
        read_links(line);
        info->is_header = true;
    } else if (is_untagged_header(line)) {
        info->session = line->id;
        info->is_header = true;
    } else if (wal__model_text_is(line->type, "thread_name_updated")) {
        info->title = line->name;
    }
    if (info->time.size == 0) {
        info->time = line->created;
    }
}

/* --- items of a model's context ------------------------------------------ */

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

/* --- content ------------------------------------------------------------- */

static bool read_block(struct wal__model_blocks *blocks, struct wal__json_span raw,
                       uint32_t *fields)
{
    enum { TYPE, TEXT, URL, COUNT };
    struct wal__json_member members[COUNT] = {
        [TYPE] = {.key = "type"},
        [TEXT] = {.key = "text"},
        [URL] = {.key = "image_url"},
    };
    struct wal__model_block *block = wal__model_blocks_add(blocks, WAL__BLOCK_RAW, raw);

    if (block == NULL || wal__model_members(raw, members, COUNT, fields) != WAL__JSON_OK) {
        return false;
    }
    if (wal__line_string_is(&members[TYPE], "input_image") &&
        members[URL].value.kind == WAL__JSON_STRING) {
        block->kind = WAL__BLOCK_IMAGE;
        return wal__model_set_image_url(blocks->arena, block, members[URL].value.span);
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

static bool add_text(struct wal__model_blocks *blocks, struct wal__json_span text)
{
    return text.data != NULL && wal__model_blocks_add_text(blocks, WAL__BLOCK_TEXT, text);
}

static bool read_blocks(struct wal__model_blocks *blocks, struct wal__json_span array,
                        uint32_t *fields)
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

/* --- items --------------------------------------------------------------- */

/* Marks messages that the client inserts among a user's as meta. */
static void classify_meta(struct wal__model_item *item)
{
    static const struct {
        const char *prefix;
        const char *name;
    } prefixes[] = {
        {"<environment_context>", "\"environment_context\""},
        {"<user_instructions>", "\"user_instructions\""},
        {"# AGENTS.md instructions", "\"user_instructions\""},
        {"<turn_aborted>", "\"turn_aborted\""},
        {"<user_shell_command>", "\"user_shell_command\""},
        {"<subagent_notification>", "\"subagent_notification\""},
        {"<skill>", "\"skill\""},
    };

    if (item->block_count == 0 || item->blocks[0].kind != WAL__BLOCK_TEXT) {
        return;
    }
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
        size_t size = strlen(prefixes[i].prefix);
        if (item->blocks[0].text.size > size + 1 &&
            memcmp(item->blocks[0].text.data + 1, prefixes[i].prefix, size) == 0) {
            item->is_meta = true;
            item->name = wal__model_literal(prefixes[i].name);
        }
    }
}

static bool read_message(struct decoder *decoder, bool *is_item)
{
    struct wal__json_span role = wal__member_string(&decoder->members[I_ROLE]);
    struct wal__model_item *item = decoder->item;
    size_t key = decoder->members[I_CONTENT].value.kind == WAL__JSON_NONE ? I_MESSAGE : I_CONTENT;

    if (wal__model_text_is(role, "user")) {
        item->role = WAL__ROLE_USER;
    } else if (wal__model_text_is(role, "assistant")) {
        item->role = WAL__ROLE_ASSISTANT;
    } else if (wal__model_text_is(role, "developer") || wal__model_text_is(role, "system")) {
        item->role = WAL__ROLE_SYSTEM;
    } else {
        *is_item = false;
        return true;
    }
    return read_content(decoder, decoder->members[key].value);
}

/* Joins the contents of two JSON strings with an empty line between them. */
static bool join(struct wal__arena *arena, struct wal__json_span *text, struct wal__json_span more)
{
    if (text->size <= 2 || more.size <= 2) {
        *text = more.size > 2 || text->size == 0 ? more : *text;
        return true;
    }
    *text = wal__model_append(arena, *text, "\\n\\n", wal__model_characters(more));
    return text->data != NULL;
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
            (member.value.kind == WAL__JSON_STRING && !join(arena, text, member.value.span))) {
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
    if (block == NULL || !join_texts(arena, members[I_SUMMARY].value, &block->text) ||
        (block->text.size == 0 && !join_texts(arena, members[I_CONTENT].value, &block->text))) {
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
static bool read_arguments(struct wal__arena *arena, const struct wal__json_member *member,
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
        &members[members[I_NAME].value.kind == WAL__JSON_STRING ? I_NAME : I_FUNCTION_NAME]);
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
            ->members[decoder->members[I_OUTPUT].value.kind == WAL__JSON_NONE ? I_RESULT : I_OUTPUT]
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
               ? read_block(&decoder->blocks, value.span, &decoder->item->fields)
               : add_text(&decoder->blocks, wal__arena_escape(arena, value.span));
}

/* Sets role, blocks and related fields; sets *is_item to false if the model cannot represent the
 * item. False: no memory. */
static bool codex_item_read(struct wal__arena *arena, struct wal__json_span json,
                            struct wal__model_item *item, bool *is_item)
{
    struct decoder decoder = {.blocks = {.arena = arena}, .item = item};
    const struct wal__json_member *members = decoder.members;
    bool is_done = true;

    memcpy(decoder.members, item_wanted, sizeof(item_wanted));
    if (wal__model_members(json, decoder.members, I_COUNT, &item->fields) != WAL__JSON_OK) {
        return false;
    }
    *is_item = true;
    if (is_type(&decoder, "message") || (members[I_TYPE].value.kind == WAL__JSON_NONE &&
                                         members[I_ROLE].value.kind == WAL__JSON_STRING)) {
        is_done = read_message(&decoder, is_item);
    } else if (is_type(&decoder, "reasoning")) {
        is_done = read_reasoning(&decoder, json);
    } else if (is_type(&decoder, "function_call") || is_type(&decoder, "custom_tool_call") ||
               is_type(&decoder, "local_shell_call") || is_type(&decoder, "tool_call")) {
        is_done = read_call(&decoder, json);
    } else if (is_type(&decoder, "function_call_output") ||
               is_type(&decoder, "custom_tool_call_output") ||
               is_type(&decoder, "local_shell_call_output") || is_type(&decoder, "tool_result") ||
               is_type(&decoder, "function_result")) {
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
    return !item->is_meta && (item->role == WAL__ROLE_USER || item->role == WAL__ROLE_ASSISTANT);
}

/* Joins the texts of the messages in an array of items to one JSON string. False: no memory. */
static bool codex_history_text(struct wal__arena *arena, struct wal__json_span items,
                               struct wal__json_span *text)
{
    struct wal__json_scan scan;
    struct wal__json_token value;

    wal__model_array_begin(&scan, items);
    while (wal__model_array_next(&scan, &value)) {
        struct wal__model_item item = {.kind = WAL__ITEM_MESSAGE};
        bool is_item = false;
        if (!codex_item_read(arena, value.span, &item, &is_item)) {
            return false;
        }
        for (size_t i = 0; is_item && is_conversational(&item) && i < item.block_count; i++) {
            if (item.blocks[i].kind == WAL__BLOCK_TEXT && !join(arena, text, item.blocks[i].text)) {
                return false;
            }
        }
    }
    return true;
}

/* --- items --------------------------------------------------------------- */

struct line {
    struct wal__model_reader *reader;
    const struct wal__model_line *text;
    struct wal__codex *codex;
    struct wal__model_item item;
    struct wal__json_span payload;
};

static bool emit_line(struct line *line)
{
    line->item.kind = WAL__ITEM_LINE;
    line->item.data = line->text->text;
    line->item.fields = 0;
    wal__codex_end_answer(line->codex);
    return wal__codex_emit(line->reader, &line->item);
}

/* --- header -------------------------------------------------------------- */

enum { H_ID, H_TIME, H_CWD, H_FORKED, H_PROVIDER, H_ORIGINATOR, H_COUNT };

static bool emit_header(struct line *line, struct wal__json_span header)
{
    struct wal__json_member members[H_COUNT] = {
        [H_ID] = {.key = "id"},
        [H_TIME] = {.key = "timestamp"},
        [H_CWD] = {.key = "cwd"},
        [H_FORKED] = {.key = "forked_from_id"},
        [H_PROVIDER] = {.key = "model_provider"},
        [H_ORIGINATOR] = {.key = "originator"},
    };
    struct wal__model_session session = {.raw = line->item.raw};

    if (wal__model_members(header, members, H_COUNT, &line->item.fields) != WAL__JSON_OK) {
        return false;
    }
    session.id = wal__member_string(&members[H_ID]);
    session.time = wal__member_string(&members[H_TIME]);
    session.cwd = wal__member_string(&members[H_CWD]);
    session.parent = wal__member_string(&members[H_FORKED]);
    if (!wal__line_string_is(&members[H_ORIGINATOR], WAL__CODEX_WRITER)) {
        session.provider = wal__member_string(&members[H_PROVIDER]);
    }
    if (session.raw.size > 0) {
        session.dialect = line->reader->dialect;
    }
    line->codex->has_header = true;
    line->item.kind = WAL__ITEM_HEADER;
    line->item.session = &session;
    return wal__codex_text_set(line->reader, &line->codex->provider, session.provider) &&
           wal__codex_emit(line->reader, &line->item);
}

/* --- turn context -------------------------------------------------------- */

/* Emits an item before the last one of its line; `rest` items follow it. */
static bool emit_extra_item(struct line *line, struct wal__model_item *item, const char *mark,
                            uint32_t rest)
{
    const struct wal__json_span none = {NULL, 0};
    struct wal__json_span last = line->item.raw;

    item->id = wal__model_append(line->reader->scratch, line->text->id, mark, none);
    item->time = line->item.time;
    item->raw = last;
    item->raw_items_left = rest;
    line->item.raw.size = 0;
    return item->id.data != NULL && wal__codex_emit(line->reader, item);
}

static bool emit_context(struct line *line)
{
    enum { MODEL, EFFORT, COUNT };
    struct wal__json_member members[COUNT] = {
        [MODEL] = {.key = "model"},
        [EFFORT] = {.key = "effort"},
    };
    struct wal__codex *codex = line->codex;
    struct wal__model_item change = {.kind = WAL__ITEM_MODEL_CHANGE};
    struct wal__model_item level = {.kind = WAL__ITEM_THINKING_LEVEL};
    bool is_change;
    bool is_level;

    if (wal__model_members(line->payload, members, COUNT, NULL) != WAL__JSON_OK) {
        return false;
    }
    change.model = wal__member_string(&members[MODEL]);
    level.text = wal__member_string(&members[EFFORT]);
    is_change = change.model.size > 0 && !wal__codex_text_equals(&codex->model, change.model);
    is_level = level.text.size > 0 && !wal__codex_text_equals(&codex->effort, level.text);
    if (is_change && (!wal__codex_text_copy(line->reader, &codex->provider, &change.provider) ||
                      !wal__codex_text_set(line->reader, &codex->model, change.model) ||
                      !emit_extra_item(line, &change, "~model", is_level ? 2 : 1))) {
        return false;
    }
    if (is_level && (!wal__codex_text_set(line->reader, &codex->effort, level.text) ||
                     !emit_extra_item(line, &level, "~effort", 1))) {
        return false;
    }
    return emit_line(line);
}

/* --- compaction ---------------------------------------------------------- */

static bool emit_compacted(struct line *line)
{
    enum { MESSAGE, HISTORY, COUNT };
    struct wal__json_member members[COUNT] = {
        [MESSAGE] = {.key = "message"},
        [HISTORY] = {.key = "replacement_history"},
    };
    struct wal__model_item native_line = {.kind = WAL__ITEM_LINE, .data = line->text->text};
    struct wal__model_item *item = &line->item;

    if (wal__model_members(line->payload, members, COUNT, &item->fields) != WAL__JSON_OK ||
        !wal__codex_flush(line->reader)) {
        return false;
    }
    wal__codex_end_answer(line->codex);
    item->kind = WAL__ITEM_COMPACTION;
    item->text = wal__member_string(&members[MESSAGE]);
    if (members[HISTORY].value.kind == WAL__JSON_ARRAY) {
        struct wal__json_span text = {NULL, 0};
        item->fields = 0;
        if (!emit_extra_item(line, &native_line, "~line", 1) ||
            !codex_history_text(line->reader->scratch, members[HISTORY].value.span, &text)) {
            return false;
        }
        /* The history replaces all earlier items and includes the message. */
        item->text = text.size > 2 ? text : item->text;
    }
    return wal__codex_emit(line->reader, item);
}

/* --- events -------------------------------------------------------------- */

enum { E_TYPE, E_MESSAGE, E_TURNS, E_NAME, E_INFO, E_LIMITS, E_ITEM, E_COUNT };

/* Emits an event item_completed, with the texts of a message that people saw. */
static bool emit_completed(struct line *line, struct wal__json_span object)
{
    struct wal__json_member members[] = {{.key = "type"}, {.key = "content"}};
    struct wal__codex *codex = line->codex;
    struct wal__codex_echo *echo = NULL;
    struct wal__json_span text = {NULL, 0};

    if (wal__model_members(object, members, 2, NULL) != WAL__JSON_OK) {
        return false;
    }
    if (wal__line_string_is(&members[0], "UserMessage")) {
        echo = &codex->user;
    } else if (wal__line_string_is(&members[0], "AgentMessage")) {
        echo = &codex->agent;
    } else if (!wal__line_string_is(&members[0], "Reasoning")) {
        return emit_line(line);
    }
    if (echo != NULL && !join_texts(line->reader->scratch, members[1].value, &text)) {
        return false;
    }
    return wal__codex_emit_event(line->reader, echo, line->text, text);
}

static bool emit_event(struct line *line)
{
    struct wal__json_member members[E_COUNT] = {
        [E_TYPE] = {.key = "type"},       [E_MESSAGE] = {.key = "message"},
        [E_TURNS] = {.key = "num_turns"}, [E_NAME] = {.key = "thread_name"},
        [E_INFO] = {.key = "info"},       [E_LIMITS] = {.key = "rate_limits"},
        [E_ITEM] = {.key = "item"},
    };
    struct wal__codex *codex = line->codex;
    struct wal__json_span none = {NULL, 0};
    struct wal__json_span type;
    struct wal__json_span message;
    int64_t turns = 0;

    if (wal__model_members(line->payload, members, E_COUNT, NULL) != WAL__JSON_OK) {
        return false;
    }
    type = wal__member_string(&members[E_TYPE]);
    message = wal__member_string(&members[E_MESSAGE]);
    if (wal__model_text_is(type, "user_message") && message.size > 0) {
        return wal__codex_emit_event(line->reader, &codex->user, line->text, message);
    }
    if (wal__model_text_is(type, "agent_message") && message.size > 0) {
        return wal__codex_emit_event(line->reader, &codex->agent, line->text, message);
    }
    if (wal__model_text_is(type, "agent_reasoning") ||
        wal__model_text_is(type, "agent_reasoning_raw_content")) {
        return wal__codex_emit_event(line->reader, NULL, line->text, none);
    }
    if (wal__model_text_is(type, "item_completed") &&
        members[E_ITEM].value.kind == WAL__JSON_OBJECT) {
        return emit_completed(line, members[E_ITEM].value.span);
    }
    if (wal__model_text_is(type, "token_count") && members[E_INFO].value.kind == WAL__JSON_NULL &&
        members[E_LIMITS].value.kind == WAL__JSON_NULL) {
        /* Without counts it only marks the end of an answer. */
        wal__codex_end_answer(codex);
        return wal__codex_emit_event(line->reader, NULL, line->text, none);
    }
    if (wal__model_text_is(type, "thread_rolled_back") &&
        wal__json_integer(wal__member_number(&members[E_TURNS]), &turns) == WAL__JSON_OK &&
        turns >= 0) {
        return wal__codex_roll_back(line->reader, &line->item, (uint64_t)turns);
    }
    if (wal__model_text_is(type, "thread_name_updated") &&
        members[E_NAME].value.kind == WAL__JSON_STRING) {
        wal__codex_end_answer(codex);
        line->item.kind = WAL__ITEM_TITLE;
        line->item.text = members[E_NAME].value.span;
        return wal__codex_emit(line->reader, &line->item);
    }
    return emit_line(line);
}

/* --- lines --------------------------------------------------------------- */

static bool emit_item(struct line *line, struct wal__json_span json)
{
    bool is_item = false;

    if (!codex_item_read(line->reader->scratch, json, &line->item, &is_item)) {
        return false;
    }
    return is_item ? wal__codex_emit_message(line->reader, &line->item) : emit_line(line);
}

static bool emit_tagged(struct line *line, struct wal__json_span type)
{
    if (wal__model_text_is(type, "session_meta") && !line->codex->has_header) {
        return emit_header(line, line->payload);
    }
    if (wal__model_text_is(type, "response_item")) {
        return emit_item(line, line->payload);
    }
    if (wal__model_text_is(type, "event_msg")) {
        return emit_event(line);
    }
    if (wal__model_text_is(type, "turn_context")) {
        return emit_context(line);
    }
    if (wal__model_text_is(type, "compacted")) {
        return emit_compacted(line);
    }
    return emit_line(line);
}

static enum wal__json_status read_line(struct wal__model_reader *reader,
                                       const struct wal__model_line *text,
                                       const struct wal__model_usage *usage)
{
    enum { TYPE, ID, PAYLOAD, COUNT };
    struct wal__json_member members[COUNT] = {
        [TYPE] = {.key = "type"},
        [ID] = {.key = "id"},
        [PAYLOAD] = {.key = "payload"},
    };
    struct line line = {.reader = reader, .text = text};
    enum wal__json_status status;
    bool is_done;

    line.codex = wal__codex_state(reader);
    status = wal__model_members(text->text, members, COUNT, NULL);
    if (status != WAL__JSON_OK) {
        return status;
    }
    if (line.codex == NULL || !wal__codex_line_begin(reader, text)) {
        return WAL__JSON_NO_SPACE;
    }
    line.item = (struct wal__model_item){.id = text->id, .time = text->time};
    if (usage != NULL) {
        line.item.usage = *usage;
    }
    if (members[PAYLOAD].value.kind == WAL__JSON_OBJECT) {
        line.payload = members[PAYLOAD].value.span;
        line.item.raw = text->text;
        is_done = emit_tagged(&line, wal__member_string(&members[TYPE]));
    } else if (!line.codex->has_header && line.text->parent.size == 0 &&
               members[TYPE].value.kind == WAL__JSON_NONE &&
               members[ID].value.kind == WAL__JSON_STRING) {
        is_done = emit_header(&line, text->text);
    } else {
        is_done = emit_item(&line, text->text);
    }
    return is_done && wal__codex_line_end(reader, text) ? WAL__JSON_OK : WAL__JSON_NO_SPACE;
}

static enum wal__json_status codex_line(struct wal__model_reader *reader,
                                        const struct wal__model_line *line)
{
    struct wal__codex *codex = wal__codex_state(reader);

    if (codex == NULL) {
        return WAL__JSON_NO_SPACE;
    }
    return wal__codex_hold(reader, &codex->held, line, read_line);
}

static enum wal__json_status codex_release(struct wal__model_reader *reader)
{
    struct wal__codex *codex = wal__codex_state(reader);

    return codex != NULL ? wal__codex_release(reader, &codex->held, NULL, read_line)
                         : WAL__JSON_NO_SPACE;
}

/* Emits events without items, and lines after the last item. A head at the last line is one at the
 * message of such an event. */
static enum wal__json_status codex_finish(struct wal__model_reader *reader)
{
    struct wal__codex *codex = wal__codex_state(reader);
    struct wal__model_item head = {.kind = WAL__ITEM_HEAD, .is_off_branch = true, .is_echo = true};
    bool has_event;

    if (codex == NULL || codex_release(reader) != WAL__JSON_OK) {
        return WAL__JSON_NO_SPACE;
    }
    has_event = codex->user.is_pending || codex->agent.is_pending;
    return wal__codex_flush(reader) && wal__codex_flush_lines(reader, true) &&
                   (!has_event || (wal__codex_text_copy(reader, &codex->last_line, &head.id) &&
                                   wal__codex_emit(reader, &head)))
               ? WAL__JSON_OK
               : WAL__JSON_NO_SPACE;
}

static const struct wal__dialect_read_ops codex_read_ops = {
    .line = codex_line,
    .finish = codex_finish,
    .release = codex_release,
};

const struct wal__dialect wal__dialect_codex = {
    .name = "codex",
    .summary = "rollout files of Codex, tagged and untagged",
    .headers = WAL__HEADERS_MANY,
    .line_fields = known_fields,
    .line_size = sizeof(struct known_line),
    .recognise = codex_recognise,
    .judge = codex_judge,
    .read_ops = &codex_read_ops,
    .write_ops = &wal__codex_write_ops,
};
