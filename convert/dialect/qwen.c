/*
 * qwen.c - the sessions of Qwen Code.
 *
 * A line is a record {uuid, parentUuid, sessionId, timestamp, cwd, type, ...}: of a user, of the
 * assistant, of results of tools, or of the system. The client goes on after the last one, so every
 * record is on a branch. Its message is a Content of Google's API, {role, parts}; the first
 * versions wrote one of Anthropic's API, {role, content}, and its names of usage. A line has what
 * one request to a model returned; what a person sees as an answer are several, with the results of
 * tools between them.
 *
 * A record of the system is an item of kind LINE, but for titles, commands that begin with a slash,
 * and compressions: the model then has the summary in the place of all that is before it. A rewind
 * names the record before those that it removes as its parent. A fork has the lines of its source
 * with another sessionId and the source's in `forkedFrom`; the file of a subagent has lines with an
 * agentId and the sessionId of the session that started it.
 *
 * Items for which the client has no record become records of the system whose subtypes begin with
 * "walconv_", which the client ignores.
 *
 * Invariant: every line outside side chains moves the head. A line that has its ids in the log can
 * be written unchanged, with the id of its session.
 *
 * Threads: one thread at a time per reader and per writer.
 */
#include "convert/model/dialect.h"

#include <string.h>

#include "convert/model/model_content.h"
#include "convert/model/model_member.h"
#include "convert/model/model_write.h"
#include "format/bytes/assert.h"
#include "format/json/json_text.h"

/* --- lines --------------------------------------------------------------- */

struct known_line {
    struct wal__line_info info; /* first: offsets in it are offsets in the line */
    struct wal__json_token parent;
    struct wal__json_token parts;
    struct wal__json_token payload;
    struct wal__json_span role;
    struct wal__json_span parent_session;
    struct wal__json_span fork;
};

#define KNOWN_AT(field) offsetof(struct known_line, field)

static const struct wal__field known_fields[] = {
    {"type", .at = WAL__LINE_AT(type)},
    {"uuid", .at = WAL__LINE_AT(id)},
    {"parentUuid", .at = KNOWN_AT(parent), .kind = WAL__FIELD_TOKEN},
    {"timestamp", .at = WAL__LINE_AT(time)},
    {"sessionId", .at = WAL__LINE_AT(session)},
    {"cwd", .at = WAL__LINE_AT(cwd)},
    {"isSidechain", .at = WAL__LINE_AT(is_subagent), .kind = WAL__FIELD_TRUE},
    {"agentId", .at = WAL__LINE_AT(is_subagent), .kind = WAL__FIELD_IS_STRING},
    {"role", .parent = "message", .at = KNOWN_AT(role)},
    {"parts", .parent = "message", .at = KNOWN_AT(parts), .kind = WAL__FIELD_TOKEN},
    {"systemPayload", .at = KNOWN_AT(payload), .kind = WAL__FIELD_TOKEN},
    {"customTitle", .parent = "systemPayload", .at = WAL__LINE_AT(title)},
    {"parentSessionId", .parent = "systemPayload", .at = KNOWN_AT(parent_session)},
    {"sessionId", .parent = "forkedFrom", .at = KNOWN_AT(fork)},
    {.key = NULL},
};

static bool qwen_recognise(const void *text, bool is_first)
{
    const struct known_line *line = text;
    struct wal__json_span type = line->info.type;
    bool has_parts = line->parts.kind == WAL__JSON_ARRAY;

    (void)is_first;
    if (line->info.session.size == 0) {
        return false;
    }
    if (wal__model_text_is(type, "system")) {
        return line->payload.kind == WAL__JSON_OBJECT || has_parts;
    }
    return wal__model_text_is(type, "tool_result") ||
           ((wal__model_text_is(type, "user") || wal__model_text_is(type, "assistant")) &&
            (has_parts || wal__model_text_is(line->role, "model")));
}

static void qwen_judge(void *text)
{
    struct known_line *line = text;
    struct wal__line_info *info = &line->info;

    info->is_sidechain = info->is_subagent;
    info->head = info->is_sidechain ? WAL__HEAD_KEEP : WAL__HEAD_MOVE;
    info->starter = info->is_subagent ? info->session : line->fork;
    if (info->starter.size == 0) {
        info->starter = line->parent_session;
    }
    wal__line_set_parent(info, &line->parent);
}

/* --- records ------------------------------------------------------------- */

struct record {
    struct wal__entry entry; /* first: offsets in it are offsets in the record */
    bool *has_header;        /* state of the reader: the header was emitted */
    struct wal__json_span subtype;
    struct wal__json_span provenance;
    struct wal__json_span uuid;
    struct wal__json_span message;
    struct wal__json_span counts;
    struct wal__json_span status;  /* of a call */
    struct wal__json_token blocks; /* of a result that an export wrote */
    struct wal__json_span history; /* of a compression */
    struct wal__json_span phase;   /* of a command */
    struct wal__json_span command;
    struct wal__json_span output;
    struct wal__json_span shown; /* in the place of the texts of a message */
    bool is_hidden;
    bool is_sent;
};

#define RECORD_AT(field) offsetof(struct record, field)

static const struct wal__field record_fields[] = {
    {"type", .at = WAL__ENTRY_AT(type)},
    {"subtype", .at = RECORD_AT(subtype)},
    {"provenance", .at = RECORD_AT(provenance)},
    {"uuid", .at = RECORD_AT(uuid)},
    {"parentUuid", .kind = WAL__FIELD_KNOWN},
    {"timestamp", .at = WAL__SESSION_AT(time)},
    {"sessionId", .at = WAL__SESSION_AT(id)},
    {"cwd", .at = WAL__SESSION_AT(cwd)},
    {"version", .kind = WAL__FIELD_KNOWN},
    {"message", .at = RECORD_AT(message), .kind = WAL__FIELD_CONTAINER},
    {"model", .at = WAL__ITEM_AT(model)},
    {"usageMetadata", .at = RECORD_AT(counts), .kind = WAL__FIELD_CONTAINER},
    {"status", .parent = "toolCallResult", .at = RECORD_AT(status)},
    {"walconvBlocks", .at = RECORD_AT(blocks), .kind = WAL__FIELD_TOKEN},
    {"customTitle", .parent = "systemPayload", .at = WAL__ITEM_AT(text)},
    {"compressedHistory", .parent = "systemPayload", .at = RECORD_AT(history),
     .kind = WAL__FIELD_CONTAINER},
    {"info", .parent = "systemPayload", .at = WAL__ITEM_AT(data), .kind = WAL__FIELD_CONTAINER},
    {"phase", .parent = "systemPayload", .at = RECORD_AT(phase)},
    {"rawCommand", .parent = "systemPayload", .at = RECORD_AT(command)},
    {"displayText", .parent = "systemPayload", .at = RECORD_AT(shown)},
    {"outputHistoryItems", .parent = "systemPayload", .at = RECORD_AT(output),
     .kind = WAL__FIELD_CONTAINER},
    {"hiddenInvocation", .parent = "systemPayload", .at = RECORD_AT(is_hidden),
     .kind = WAL__FIELD_TRUE},
    {"sentToModel", .parent = "systemPayload", .at = RECORD_AT(is_sent), .kind = WAL__FIELD_TRUE},
    {"isSidechain", .at = WAL__ITEM_AT(is_sidechain), .kind = WAL__FIELD_TRUE},
    {.key = NULL},
};

static const struct wal__field message_fields[] = {
    {"parts", .at = WAL__ENTRY_AT(content), .kind = WAL__FIELD_TOKEN},
    {"content", .at = WAL__ENTRY_AT(content), .kind = WAL__FIELD_TOKEN},
    {"id", .at = WAL__ITEM_AT(answer_id)},
    {"model", .at = WAL__ITEM_AT(model)},
    {"usage", .at = WAL__ENTRY_AT(usage), .kind = WAL__FIELD_CONTAINER},
    {"role", .kind = WAL__FIELD_KNOWN},
    {.key = NULL},
};

/* Token counts of a record: those of the prompt include what was read from a cache, or written to
 * one. */
static const struct wal__field count_fields[] = {
    {"promptTokenCount", WAL__USAGE_AT(input), .kind = WAL__FIELD_NUMBER},
    {"candidatesTokenCount", WAL__USAGE_AT(output), .kind = WAL__FIELD_NUMBER},
    {"cachedContentTokenCount", WAL__USAGE_AT(cache_read), .kind = WAL__FIELD_NUMBER},
    {"walconvCacheWrite", WAL__USAGE_AT(cache_write), .kind = WAL__FIELD_NUMBER},
    {"thoughtsTokenCount", WAL__USAGE_AT(reasoning), .kind = WAL__FIELD_NUMBER},
    {.key = NULL},
};

static bool read_usage(struct record *record)
{
    struct wal__model_usage *usage = &record->entry.item.usage;
    uint64_t cached;

    if (wal__fields_read(record->entry.usage, wal__usage_fields, usage, NULL) != WAL__JSON_OK) {
        return false;
    }
    if (record->counts.size == 0) {
        return true;
    }
    if (wal__fields_read(record->counts, count_fields, usage, NULL) != WAL__JSON_OK) {
        return false;
    }
    cached = wal__model_count(usage->cache_read) + wal__model_count(usage->cache_write);
    return cached == 0 || usage->input.size == 0 ||
           wal__model_number(record->entry.reader->scratch,
                             wal__model_less(wal__model_count(usage->input), cached),
                             &usage->input);
}

static bool emit_answer(struct record *record)
{
    struct wal__model_item *item = &record->entry.item;

    item->role = WAL__ROLE_ASSISTANT;
    return read_usage(record) &&
           wal__content_read_item(record->entry.content, record->entry.calls,
                                  record->entry.reader->scratch, item) &&
           wal__model_emit(record->entry.reader, item);
}

/* Whether a record with a user's message has not the words of a person. */
static bool is_meta(const struct record *record)
{
    static const char *const subtypes[] = {"notification", "cron", "background_task_completed"};

    for (size_t i = 0; i < sizeof(subtypes) / sizeof(subtypes[0]); i++) {
        if (wal__model_text_is(record->subtype, subtypes[i])) {
            return true;
        }
    }
    return (record->subtype.size > 5 && memcmp(record->subtype.data, "\"goal_", 6) == 0) ||
           wal__model_text_is(record->provenance, "system") ||
           wal__model_text_is(record->provenance, "goal_control") ||
           wal__model_text_is(record->provenance, "goal_runtime");
}

static bool has_image(struct wal__json_span content)
{
    static const char name[] = "\"inlineData\"";

    return content.size > 0 && memmem(content.data, content.size, name, sizeof(name) - 1) != NULL;
}

/* Emits the texts of a user and the results of tools. */
static bool emit_user(struct record *record)
{
    struct wal__content_pieces pieces = {.arena = record->entry.reader->scratch};
    struct wal__model_item *item = &record->entry.item;
    bool is_result = wal__model_text_is(record->entry.type, "tool_result");

    item->role = WAL__ROLE_USER;
    item->model.size = 0;
    if (!is_result && is_meta(record)) {
        item->is_meta = true;
        item->name = record->subtype;
    }
    if (!is_result && record->shown.size > 2 && !has_image(record->entry.content.span)) {
        record->entry.content =
            (struct wal__json_token){.kind = WAL__JSON_STRING, .span = record->shown};
        item->fields++; /* what the model got */
    }
    if (!wal__content_split(&pieces, item, record->entry.content)) {
        return false;
    }
    for (size_t i = 0; i < pieces.count; i++) {
        struct wal__model_item *piece = &pieces.items[i];
        piece->is_error |= piece->role == WAL__ROLE_TOOL && pieces.count == 1 &&
                           wal__model_text_is(record->status, "error");
        if (record->blocks.kind == WAL__JSON_ARRAY && piece->role == WAL__ROLE_TOOL) {
            struct wal__json_token none = {.kind = WAL__JSON_NONE};
            if (!wal__content_read_item(record->blocks, none, pieces.arena, piece)) {
                return false;
            }
        }
    }
    return wal__content_emit(&pieces, item->parent, record->entry.reader);
}

/* --- records of the system ------------------------------------------------ */

/* Emits a compression, with the first text of the history that replaces what is before it. */
static bool emit_compression(struct record *record)
{
    struct wal__json_member tokens = {.key = "originalTokenCount"};
    struct wal__json_member parts = {.key = "parts"};
    struct wal__model_blocks blocks = {.arena = record->entry.reader->scratch};
    struct wal__model_item *item = &record->entry.item;
    struct wal__json_scan scan;
    struct wal__json_token content;
    bool has_summary = false;

    item->kind = WAL__ITEM_COMPACTION;
    if (wal__model_members(item->data, &tokens, 1, NULL) != WAL__JSON_OK) {
        return false;
    }
    item->tokens = wal__member_number(&tokens);
    item->data.size = 0;
    wal__model_array_begin(&scan, record->history);
    while (wal__model_array_next(&scan, &content)) {
        if (has_summary) {
            item->fields++;
            continue;
        }
        has_summary = true;
        if (wal__model_members(content.span, &parts, 1, NULL) != WAL__JSON_OK ||
            !wal__content_read(parts.value, &blocks, &item->fields)) {
            return false;
        }
    }
    for (size_t i = 0; i < blocks.count && item->text.size == 0; i++) {
        item->text = blocks.items[i].text;
    }
    return wal__model_emit(record->entry.reader, item);
}

/* Emits a command that a person typed for the client, or what the client answered. */
static bool emit_command(struct record *record)
{
    struct wal__model_blocks blocks = {.arena = record->entry.reader->scratch};
    struct wal__model_item *item = &record->entry.item;
    struct wal__json_scan scan;
    struct wal__json_token shown;

    if (wal__model_text_is(record->phase, "result")) {
        wal__model_array_begin(&scan, record->output);
        while (wal__model_array_next(&scan, &shown)) {
            struct wal__json_span text = wal__model_string(shown.span, "text");
            if (text.size > 2 && !wal__model_blocks_add_text(&blocks, WAL__BLOCK_TEXT, text)) {
                return false;
            }
        }
    } else if (!record->is_hidden && !record->is_sent && record->command.size > 2 &&
               !wal__model_blocks_add_text(&blocks, WAL__BLOCK_TEXT, record->command)) {
        return false;
    }
    if (blocks.count == 0) {
        return wal__entry_emit_line(&record->entry);
    }
    item->kind = WAL__ITEM_MESSAGE;
    item->role = WAL__ROLE_USER;
    item->is_meta = true;
    item->name = record->subtype;
    item->blocks = blocks.items;
    item->block_count = blocks.count;
    return wal__model_emit(record->entry.reader, item);
}

static bool emit_system(struct record *record)
{
    struct wal__model_item *item = &record->entry.item;

    if (wal__model_text_is(record->subtype, "chat_compression")) {
        return emit_compression(record);
    }
    item->data.size = 0;
    if (wal__model_text_is(record->subtype, "slash_command")) {
        return emit_command(record);
    }
    if (wal__model_text_is(record->subtype, "custom_title") && item->text.size > 0) {
        item->kind = WAL__ITEM_TITLE;
        return wal__model_emit(record->entry.reader, item);
    }
    if (wal__model_text_is(record->subtype, "walconv_head")) {
        item->kind = WAL__ITEM_HEAD;
        return wal__model_emit(record->entry.reader, item);
    }
    if (wal__model_text_is(record->subtype, "walconv_system")) {
        item->role = WAL__ROLE_SYSTEM;
        return wal__content_read_item(record->entry.content, record->entry.calls,
                                      record->entry.reader->scratch, item) &&
               wal__model_emit(record->entry.reader, item);
    }
    if (wal__model_text_is(record->subtype, "mid_turn_user_message") && record->message.size > 0) {
        return emit_user(record);
    }
    return wal__entry_emit_line(&record->entry);
}

/* Emits the header from the first record that has a session and a directory. */
static bool emit_header(struct record *record)
{
    struct wal__model_session *session = &record->entry.session;
    struct wal__model_item item = {.kind = WAL__ITEM_HEADER, .session = session};

    if (*record->has_header || session->id.size == 0 || session->cwd.size == 0) {
        return true;
    }
    session->raw = session->id;
    session->dialect = record->entry.reader->dialect;
    *record->has_header = true;
    return wal__model_emit(record->entry.reader, &item);
}

static bool emit_record(struct record *record)
{
    struct wal__model_item *item = &record->entry.item;
    struct wal__json_span type = record->entry.type;
    bool is_message = record->message.size > 0 && record->message.data[0] == '{';

    if (!emit_header(record) ||
        wal__fields_read(is_message ? record->message : (struct wal__json_span){NULL, 0},
                         message_fields, record, &item->fields) != WAL__JSON_OK) {
        return false;
    }
    if (wal__model_text_is(type, "system")) {
        return emit_system(record);
    }
    item->text.size = 0;
    item->data.size = 0;
    if (is_message && wal__model_text_is(type, "assistant")) {
        return emit_answer(record);
    }
    return is_message &&
                   (wal__model_text_is(type, "user") || wal__model_text_is(type, "tool_result"))
               ? emit_user(record)
               : wal__entry_emit_line(&record->entry);
}

static enum wal__json_status qwen_line(struct wal__model_reader *reader,
                                       const struct wal__model_line *line)
{
    struct record record = {.entry = wal__entry_begin(reader, line),
                            .has_header = wal__reader_state(reader, sizeof(bool))};
    struct wal__model_item *item = &record.entry.item;
    enum wal__json_status status;

    if (record.has_header == NULL) {
        return WAL__JSON_NO_SPACE;
    }
    status = wal__fields_read(line->text, record_fields, &record, &item->fields);
    if (status != WAL__JSON_OK) {
        return status;
    }
    if (line->is_exact) {
        item->raw = line->text;
    }
    return emit_record(&record) ? WAL__JSON_OK : WAL__JSON_NO_SPACE;
}

static const struct wal__dialect_read_ops qwen_read_ops = {.line = qwen_line};

/* --- writing ------------------------------------------------------------- */

struct writer {
    struct wal__json_span session; /* id to write in records */
    bool session_id_changed;       /* the source's records have another id */
};

/* Returns projects/FOLDER/chats/UUID.jsonl. NULL: no memory. */
static const char *qwen_path(const struct wal__model_session *session, uint32_t stream,
                             struct wal__arena *arena)
{
    const char *given = wal__model_client_path(session, stream, "qwen");
    struct wal__json_span id = wal__model_session_uuid(session->id, arena);
    struct wal__model_path path;

    if (given != NULL || id.data == NULL) {
        return given;
    }
    wal__model_path_init(&path, arena);
    wal__model_path_add(&path, "projects/");
    wal__model_path_add_folder(&path, session->cwd, SIZE_MAX);
    wal__model_path_add(&path, "/chats/");
    wal__model_path_add_id(&path, id);
    wal__model_path_add(&path, ".jsonl");
    return path.text;
}

static bool qwen_can_copy_verbatim(const struct wal__model_session *session,
                                   struct wal__arena *arena)
{
    (void)arena;
    return wal__dialect_is(session->dialect, "qwen") && wal__model_is_uuid(session->id) &&
           wal__json_span_equal(session->raw, session->id);
}

static bool qwen_begin(struct wal__model_writer *writer)
{
    const struct wal__model_session *session = writer->session;
    struct writer *to = writer->state;

    to->session = wal__model_session_uuid(session->id, writer->arena);
    to->session_id_changed =
        session->dialect == writer->dialect && !wal__json_span_equal(session->raw, to->session);
    return to->session.data != NULL && wal__model_write_stream(writer, 0);
}

/* Opens a record and writes its first members. */
static void open_record(struct wal__model_writer *writer, const struct wal__model_item *item,
                        const char *type, const char *subtype)
{
    const struct writer *to = writer->state;
    struct wal__json_out *out = &writer->out;

    wal__model_print(out, "{'uuid':%,'parentUuid':%,'sessionId':%,'timestamp':@,'type':$", item->id,
                     wal__model_or(item->parent, "null"), to->session, item->time,
                     wal__model_literal(type));
    if (subtype != NULL) {
        wal__json_out_member_str(out, "subtype", subtype);
    }
    wal__model_print(out, "'cwd':%,'version':'0.15.0'",
                     wal__model_or(writer->session->cwd, "\"/\""));
}

static void write_parts(struct wal__json_out *out, const char *role,
                        const struct wal__model_item *item)
{
    wal__model_print(out, "'message':{'role':$", wal__model_literal(role));
    wal__content_write_parts(out, "parts", item->blocks, item->block_count);
    wal__model_put(out, "}");
}

static bool write_counts(struct wal__model_writer *writer, const struct wal__model_usage *usage)
{
    struct wal__model_usage counts = *usage;
    uint64_t prompt = wal__model_prompt_count(usage);
    struct wal__json_out *out = &writer->out;

    if (!wal__model_has_counts(usage)) {
        return true;
    }
    if (!wal__model_number(writer->scratch, prompt, &counts.input)) {
        return false;
    }
    wal__model_put(out, "'usageMetadata':{");
    wal__fields_write(out, count_fields, &counts);
    wal__json_out_member_count(out, "totalTokenCount", prompt + wal__model_count(usage->output));
    wal__json_out_close(out, '}');
    return true;
}

static bool write_answer(struct wal__model_writer *writer, const struct wal__model_item *item)
{
    struct wal__json_out *out = &writer->out;

    open_record(writer, item, "assistant", NULL);
    wal__json_out_optional(out, "model", item->model);
    write_parts(out, "model", item);
    if (!write_counts(writer, &item->usage)) {
        return false;
    }
    wal__json_out_close_line(out);
    return true;
}

static void write_result(struct wal__model_writer *writer, const struct wal__model_item *item)
{
    struct wal__json_out *out = &writer->out;

    open_record(writer, item, "tool_result", NULL);
    wal__model_put(out, "'message':{'role':'user','parts':[");
    wal__content_write_response(out, item);
    wal__model_print(out, "]},'toolCallResult':{'callId':%,'status':$}",
                     wal__model_or(item->call, "\"\""),
                     wal__model_literal(item->is_error ? "error" : "success"));
    if (!wal__content_is_response(item)) {
        wal__content_write_parts(out, "walconvBlocks", item->blocks, item->block_count);
    }
    wal__json_out_close_line(out);
}

static bool write_message(struct wal__model_writer *writer, const struct wal__model_item *item)
{
    if (item->role == WAL__ROLE_ASSISTANT) {
        return write_answer(writer, item);
    }
    if (item->role == WAL__ROLE_TOOL) {
        write_result(writer, item);
        return true;
    }
    if (item->role == WAL__ROLE_SYSTEM) {
        open_record(writer, item, "system", "walconv_system");
    } else {
        open_record(writer, item, "user", item->is_meta ? "notification" : NULL);
        wal__json_out_member_str(&writer->out, "provenance",
                                 item->is_meta ? "system" : "real_user");
    }
    write_parts(&writer->out, "user", item);
    wal__json_out_close_line(&writer->out);
    return true;
}

static void write_compression(struct wal__model_writer *writer, const struct wal__model_item *item)
{
    struct wal__json_out *out = &writer->out;

    open_record(writer, item, "system", "chat_compression");
    wal__model_print(out,
                     "'systemPayload':{'info':{'originalTokenCount':?,'compressionStatus':1},"
                     "'compressedHistory':[",
                     item->tokens);
    if (item->text.size > 0) {
        wal__model_print(out, "{'role':'user','parts':[{'text':%}]}", item->text);
    }
    wal__model_put(out, "]}}\n");
}

static void write_raw(struct wal__model_writer *writer, struct wal__json_span raw,
                      const struct wal__json_override *overrides, size_t count)
{
    wal__json_out_overridden(&writer->out, raw, overrides, count);
    wal__json_out_newline(&writer->out);
}

static bool qwen_item(struct wal__model_writer *writer, const struct wal__model_item *item)
{
    const struct writer *to = writer->state;
    const struct wal__json_override overrides[] = {
        {"sessionId", to->session},
        {"uuid", item->id},
        {"parentUuid", wal__model_or(item->parent, "null")},
    };

    if (item->raw.size > 0 && !to->session_id_changed) {
        wal__json_out_line(&writer->out, item->raw);
        return true;
    }
    if (item->raw.size > 0 || item->kind == WAL__ITEM_LINE) {
        write_raw(writer, item->raw.size > 0 ? item->raw : item->data, overrides,
                  item->raw.size > 0 ? 1 : 3);
        return true;
    }
    if (item->kind == WAL__ITEM_MESSAGE) {
        return write_message(writer, item);
    }
    if (item->kind == WAL__ITEM_COMPACTION) {
        write_compression(writer, item);
    } else if (item->kind == WAL__ITEM_TITLE) {
        open_record(writer, item, "system", "custom_title");
        wal__model_print(&writer->out,
                         "'systemPayload':{'customTitle':%,'titleSource':'manual'}}\n",
                         wal__model_or(item->text, "\"\""));
    }
    return true;
}

/* Writes a record after `id`: the client goes on after the last one. */
static bool qwen_head(struct wal__model_writer *writer, struct wal__json_span id)
{
    struct wal__model_item item = {
        .time = writer->session->time, .id = wal__model_literal("\"walconv_head\""), .parent = id};

    if (!wal__model_derive_id(writer, &item, writer->items, &item.id)) {
        return false;
    }
    open_record(writer, &item, "system", "walconv_head");
    wal__model_put(&writer->out, "'systemPayload':{}}\n");
    return true;
}

/* The client does not read an empty file. */
static bool qwen_end(struct wal__model_writer *writer)
{
    return writer->items > 0 || qwen_head(writer, (struct wal__json_span){NULL, 0});
}

static const struct wal__dialect_write_ops qwen_write_ops = {
    .carries = WAL__CARRIES(BRANCHES) | WAL__CARRIES(TIMES) | WAL__CARRIES(THINKING) |
               WAL__CARRIES(SIGNATURES) | WAL__CARRIES(IMAGES) | WAL__CARRIES(RESULT_IMAGES) |
               WAL__CARRIES(TEXT_BOUNDARIES) | WAL__CARRIES(EMPTY) | WAL__CARRIES(TOOL_NAMES) |
               WAL__CARRIES(TOOL_ERRORS) | WAL__CARRIES(MODELS) | WAL__CARRIES(USAGE) |
               WAL__CARRIES(REASONING) | WAL__CARRIES(COMPACTIONS) | WAL__CARRIES(TOKENS_BEFORE) |
               WAL__CARRIES(TITLES) | WAL__CARRIES(META),
    .merges_parts = true,
    .path = qwen_path,
    .is_id = wal__model_is_uuid,
    .make_id = wal__model_make_uuid,
    .begin = qwen_begin,
    .item = qwen_item,
    .end = qwen_end,
    .state_size = sizeof(struct writer),
    .can_copy_verbatim = qwen_can_copy_verbatim,
    .head = qwen_head,
};

const struct wal__dialect wal__dialect_qwen = {
    .name = "qwen",
    .summary = "sessions of Qwen Code, subagents too",
    .line_fields = known_fields,
    .line_size = sizeof(struct known_line),
    .recognise = qwen_recognise,
    .judge = qwen_judge,
    .read_ops = &qwen_read_ops,
    .write_ops = &qwen_write_ops,
};
