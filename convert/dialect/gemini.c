/*
 * gemini.c - the sessions of Gemini CLI and of Tabnine CLI.
 *
 * The first line is metadata with the id of the session. A line with an id is a message: of type
 * user, gemini (Tabnine: tabnine), info, warning or error. It has no parent: the order of lines is
 * the conversation. A line with the id of an earlier message replaces it: the client appends an
 * answer again whenever a tool returned. {"$rewindTo": ID} goes back to before a message.
 * {"$set": {...}} changes metadata; if it has messages, these replace all before it. Older versions
 * wrote the session anew as one object each time, with all messages in it: one line here.
 *
 * An answer has thoughts, content and toolCalls, which have their results: a line is several items.
 * A list of messages of a $set repeats a result in a message of the user; it is read once.
 *
 * A written answer waits for the results of its calls, which are in its line. A result that comes
 * in another order is a message of the user with a functionResponse. Members that begin with
 * walconv hold what has no place otherwise.
 *
 * Invariant: the writer writes one branch, each message once.
 *
 * Threads: one thread at a time per reader and per writer.
 */
#include "convert/model/dialect.h"

#include <string.h>

#include "convert/model/model_content.h"
#include "convert/model/model_member.h"
#include "convert/model/model_table.h"
#include "convert/model/model_write.h"
#include "format/bytes/assert.h"
#include "format/json/json_text.h"

/* --- vocabulary ---------------------------------------------------------- */

struct message {
    struct wal__entry entry; /* first: offsets in it are offsets in the message */
    struct wal__json_span time;
    struct wal__json_token shown; /* displayContent */
    struct wal__json_token parts; /* older: of an answer */
    struct wal__json_span thoughts;
    struct wal__json_span calls;
    struct wal__json_token blocks; /* walconvBlocks: those of a result */
    bool is_system;
};

#define MESSAGE_AT(field) offsetof(struct message, field)

static const struct wal__field message_fields[] = {
    {"id", .kind = WAL__FIELD_KNOWN},
    {"timestamp", .at = MESSAGE_AT(time)},
    {"type", .at = WAL__ENTRY_AT(type)},
    {"content", .at = WAL__ENTRY_AT(content), .kind = WAL__FIELD_TOKEN},
    {"parts", .at = MESSAGE_AT(parts), .kind = WAL__FIELD_TOKEN},
    {"displayContent", .at = MESSAGE_AT(shown), .kind = WAL__FIELD_TOKEN},
    {"thoughts", .at = MESSAGE_AT(thoughts), .kind = WAL__FIELD_CONTAINER},
    {"toolCalls", .at = MESSAGE_AT(calls), .kind = WAL__FIELD_CONTAINER},
    {"tokens", .at = WAL__ENTRY_AT(usage), .kind = WAL__FIELD_CONTAINER},
    {"model", .at = WAL__ITEM_AT(model)},
    {"walconvAnswer", .at = WAL__ITEM_AT(answer_id)},
    {"walconvBlocks", .at = MESSAGE_AT(blocks), .kind = WAL__FIELD_TOKEN},
    {"walconvSystem", .at = MESSAGE_AT(is_system), .kind = WAL__FIELD_TRUE},
    {.key = NULL},
};

/* The input includes what was read from a cache or written to one; the output does not include the
 * thoughts. */
static const struct wal__field token_fields[] = {
    {"input", WAL__USAGE_AT(input), .kind = WAL__FIELD_NUMBER},
    {"output", WAL__USAGE_AT(output), .kind = WAL__FIELD_NUMBER},
    {"cached", WAL__USAGE_AT(cache_read), .kind = WAL__FIELD_NUMBER},
    {"thoughts", WAL__USAGE_AT(reasoning), .kind = WAL__FIELD_NUMBER},
    {"walconvWritten", WAL__USAGE_AT(cache_write), .kind = WAL__FIELD_NUMBER},
    {.key = NULL},
};

struct call {
    struct wal__model_block block; /* first: offsets in it are offsets in the call */
    struct wal__json_span status;
    struct wal__json_span time;
    struct wal__json_token result;
    struct wal__json_span shown;
    struct wal__json_token blocks;
};

#define CALL_AT(field) offsetof(struct call, field)

static const struct wal__field call_fields[] = {
    {"id", .at = WAL__BLOCK_AT(id)},
    {"name", .at = WAL__BLOCK_AT(name)},
    {"args", .at = WAL__BLOCK_AT(arguments), .kind = WAL__FIELD_NON_NULL},
    {"status", .at = CALL_AT(status)},
    {"timestamp", .at = CALL_AT(time)},
    {"result", .at = CALL_AT(result), .kind = WAL__FIELD_TOKEN},
    {"resultDisplay", .at = CALL_AT(shown)},
    {"walconvBlocks", .at = CALL_AT(blocks), .kind = WAL__FIELD_TOKEN},
    {.key = NULL},
};

static bool is_answer_type(struct wal__json_span type)
{
    return wal__model_text_is(type, "gemini") || wal__model_text_is(type, "tabnine") ||
           wal__model_text_is(type, "model");
}

/* --- reading ------------------------------------------------------------- */

/* The items of a line. */
struct record {
    struct wal__model_reader *reader;
    const struct wal__model_line *line;
    struct wal__content_pieces pieces;
    struct wal__model_table results; /* calls of a list of messages that have their results */
    bool is_list;
};

/* Adds the thoughts of an answer. False: no memory. */
static bool add_thoughts(struct wal__model_blocks *blocks, struct wal__json_span thoughts)
{
    struct wal__json_scan scan;
    struct wal__json_token value;

    wal__model_array_begin(&scan, thoughts);
    while (wal__model_array_next(&scan, &value)) {
        struct wal__json_member m[] = {{.key = "subject"}, {.key = "description"}};
        struct wal__model_block block = {.kind = WAL__BLOCK_THINKING, .raw = value.span};
        struct wal__json_span subject;
        struct wal__json_span text;

        if (wal__model_members(value.span, m, 2, NULL) != WAL__JSON_OK) {
            return false;
        }
        subject = wal__member_string(&m[0]);
        text = wal__member_string(&m[1]);
        if (subject.size > 2 && text.size > 2) {
            text = wal__model_append(blocks->arena, subject, "\\n", wal__model_characters(text));
            if (text.data == NULL) {
                return false;
            }
        } else if (subject.size > 2) {
            text = subject;
        }
        block.text = wal__model_or(text, "\"\"");
        if (!wal__model_blocks_append(blocks, &block)) {
            return false;
        }
    }
    return true;
}

/* Reads content as pieces; a single part counts as a list of it. */
static bool split(struct wal__content_pieces *pieces, const struct wal__model_item *item,
                  struct wal__json_token content)
{
    uint8_t *list;

    if (content.kind == WAL__JSON_OBJECT) {
        list = wal__arena_alloc(pieces->arena, content.span.size + 2);
        if (list == NULL) {
            return false;
        }
        list[0] = '[';
        memcpy(list + 1, content.span.data, content.span.size);
        list[content.span.size + 1] = ']';
        content.kind = WAL__JSON_ARRAY;
        content.span = (struct wal__json_span){list, content.span.size + 2};
    }
    return wal__content_split(pieces, item, content);
}

/* Adds the result of a call: the blocks of all that it returned. False: no memory. */
static bool add_result(struct record *record, const struct wal__model_item *answer,
                       const struct call *call)
{
    struct wal__content_pieces pieces = {.arena = record->pieces.arena};
    struct wal__model_blocks blocks = {.arena = record->pieces.arena};
    struct wal__model_item item = {.kind = WAL__ITEM_MESSAGE,
                                   .role = WAL__ROLE_TOOL,
                                   .id = answer->id,
                                   .time = call->time.size > 0 ? call->time : answer->time,
                                   .call = call->block.id,
                                   .name = call->block.name};
    struct wal__json_token content = call->result;
    struct wal__json_token none = {.kind = WAL__JSON_NONE};

    if (content.kind == WAL__JSON_NONE || content.kind == WAL__JSON_NULL) {
        if (call->shown.size == 0) {
            return true;
        }
        content.kind = WAL__JSON_STRING;
        content.span = call->shown;
    }
    if (!split(&pieces, &item, content)) {
        return false;
    }
    item.is_error = wal__model_text_is(call->status, "error");
    for (size_t i = 0; i < pieces.count; i++) {
        item.is_error |= pieces.items[i].is_error;
        item.fields += pieces.items[i].fields;
        for (size_t j = 0; j < pieces.items[i].block_count; j++) {
            if (!wal__model_blocks_append(&blocks, &pieces.items[i].blocks[j])) {
                return false;
            }
        }
    }
    item.blocks = blocks.items;
    item.block_count = blocks.count;
    if (call->blocks.kind == WAL__JSON_ARRAY &&
        !wal__content_read_item(call->blocks, none, pieces.arena, &item)) {
        return false;
    }
    if (record->is_list && call->block.id.size > 2 &&
        !wal__model_table_put(&record->results, wal__model_string_hash(0, call->block.id),
                              call->block.id)) {
        return false;
    }
    return wal__content_add(&record->pieces, &item);
}

/* Adds the calls of an answer as blocks. False: no memory. */
static bool add_calls(struct wal__model_blocks *blocks, struct wal__json_span calls,
                      uint32_t *fields)
{
    struct wal__json_scan scan;
    struct wal__json_token value;

    wal__model_array_begin(&scan, calls);
    while (wal__model_array_next(&scan, &value)) {
        struct call call = {.block = {.kind = WAL__BLOCK_TOOL_CALL, .raw = value.span}};

        if (wal__fields_read(value.span, call_fields, &call, fields) != WAL__JSON_OK) {
            return false;
        }
        call.block.arguments = wal__content_unwrap_arguments(call.block.arguments);
        if (!wal__model_blocks_append(blocks, &call.block)) {
            return false;
        }
    }
    return true;
}

/* Whether one of the last `count` blocks is a call of that id. */
static bool has_call(const struct wal__model_blocks *blocks, size_t count, struct wal__json_span id)
{
    for (size_t i = blocks->count - count; i < blocks->count; i++) {
        if (blocks->items[i].kind == WAL__BLOCK_TOOL_CALL && id.size > 2 &&
            wal__json_characters_equal(blocks->items[i].id, id)) {
            return true;
        }
    }
    return false;
}

static bool read_tokens(struct record *record, struct message *message)
{
    struct wal__model_usage *usage = &message->entry.item.usage;
    uint64_t cached;

    if (wal__fields_read(message->entry.usage, token_fields, usage, NULL) != WAL__JSON_OK ||
        !wal__model_add_reasoning(record->pieces.arena, usage)) {
        return false;
    }
    cached = wal__model_count(usage->cache_read) + wal__model_count(usage->cache_write);
    return cached == 0 || usage->input.size == 0 ||
           wal__model_number(record->pieces.arena,
                             wal__model_less(wal__model_count(usage->input), cached),
                             &usage->input);
}

/* Adds an answer and the results of its calls. False: no memory. */
static bool add_answer(struct record *record, struct message *message)
{
    struct wal__content_pieces pieces = {.arena = record->pieces.arena};
    struct wal__model_blocks blocks = {.arena = record->pieces.arena};
    struct wal__model_blocks calls = {.arena = record->pieces.arena};
    struct wal__model_item *item = &message->entry.item;
    struct wal__json_token content =
        message->entry.content.kind != WAL__JSON_NONE ? message->entry.content : message->parts;
    struct wal__json_scan scan;
    struct wal__json_token value;

    item->role = WAL__ROLE_ASSISTANT;
    if (!read_tokens(record, message) || !add_thoughts(&blocks, message->thoughts) ||
        !add_calls(&calls, message->calls, &item->fields) || !split(&pieces, item, content)) {
        return false;
    }
    for (size_t i = 0; i < pieces.count; i++) {
        item->fields =
            pieces.items[i].fields > item->fields ? pieces.items[i].fields : item->fields;
        for (size_t j = 0; j < pieces.items[i].block_count; j++) {
            const struct wal__model_block *from = &pieces.items[i].blocks[j];
            bool is_known =
                from->kind == WAL__BLOCK_TOOL_CALL && has_call(&calls, calls.count, from->id);

            if (!is_known && !wal__model_blocks_append(&blocks, from)) {
                return false;
            }
        }
    }
    for (size_t i = 0; i < calls.count; i++) {
        if (!wal__model_blocks_append(&blocks, &calls.items[i])) {
            return false;
        }
    }
    item->blocks = blocks.items;
    item->block_count = blocks.count;
    if (!wal__content_add(&record->pieces, item)) {
        return false;
    }
    wal__model_array_begin(&scan, message->calls);
    while (wal__model_array_next(&scan, &value)) {
        struct call call = {.block = {.raw = value.span}};
        if (wal__fields_read(value.span, call_fields, &call, NULL) != WAL__JSON_OK ||
            !add_result(record, item, &call)) {
            return false;
        }
    }
    return true;
}

/* Adds a message of the user, which may be results. False: no memory. */
static bool add_prompt(struct record *record, struct message *message)
{
    struct wal__content_pieces pieces = {.arena = record->pieces.arena};
    struct wal__model_item *item = &message->entry.item;
    bool is_shown =
        message->shown.kind == WAL__JSON_STRING || message->shown.kind == WAL__JSON_ARRAY;
    struct wal__json_token none = {.kind = WAL__JSON_NONE};

    item->role = message->is_system ? WAL__ROLE_SYSTEM : WAL__ROLE_USER;
    item->model.size = 0;
    if (!split(&pieces, item, is_shown ? message->shown : message->entry.content)) {
        return false;
    }
    for (size_t i = 0; i < pieces.count; i++) {
        struct wal__model_item *piece = &pieces.items[i];
        struct wal__json_span found;

        if (piece->role == WAL__ROLE_TOOL && piece->call.size > 2 && record->is_list &&
            wal__model_table_get(&record->results, wal__model_string_hash(0, piece->call),
                                 &found)) {
            continue;
        }
        if (piece->role == WAL__ROLE_TOOL && message->blocks.kind == WAL__JSON_ARRAY &&
            !wal__content_read_item(message->blocks, none, pieces.arena, piece)) {
            return false;
        }
        if (!wal__content_add(&record->pieces, piece)) {
            return false;
        }
    }
    return true;
}

/* Adds the items of a message; none if it is of another type. False: no memory. */
static bool add_message(struct record *record, struct wal__json_span object)
{
    struct message message = {.entry.item = {.kind = WAL__ITEM_MESSAGE,
                                             .id = record->line->id,
                                             .raw = record->line->text}};
    struct wal__model_item *item = &message.entry.item;

    if (wal__fields_read(object, message_fields, &message, &item->fields) != WAL__JSON_OK) {
        return false;
    }
    item->time = message.time.size > 0 ? message.time : record->line->time;
    if (is_answer_type(message.entry.type)) {
        return add_answer(record, &message);
    }
    if (!wal__model_text_is(message.entry.type, "user") && !message.is_system) {
        return true;
    }
    item->answer_id.size = 0;
    return add_prompt(record, &message);
}

static bool add_messages(struct record *record, struct wal__json_span messages)
{
    struct wal__json_scan scan;
    struct wal__json_token value;

    record->is_list = true;
    wal__model_array_begin(&scan, messages);
    while (wal__model_array_next(&scan, &value)) {
        if (!add_message(record, value.span)) {
            return false;
        }
    }
    return true;
}

/* Emits the header. Messages in its line are items of the line. */
static bool emit_header(struct record *record, struct wal__json_span id, struct wal__json_span cwd,
                        struct wal__json_span time, bool has_messages)
{
    struct wal__model_session session = {
        .id = id, .cwd = cwd, .time = time, .dialect = record->reader->dialect};
    struct wal__model_item item = {.kind = WAL__ITEM_HEADER, .session = &session};

    if (!has_messages) {
        session.raw = record->line->text;
        item.id = record->line->id;
        item.parent = record->line->parent;
    }
    return wal__model_emit(record->reader, &item);
}

/* Emits the line as an item of kind LINE or HEAD. */
static bool emit_line(struct record *record, enum wal__model_item_kind kind, bool is_echo)
{
    struct wal__model_item item = {.kind = kind,
                                   .id = record->line->id,
                                   .parent = record->line->parent,
                                   .time = record->line->time,
                                   .data = record->line->text,
                                   .raw = record->line->text,
                                   .is_echo = is_echo};

    return wal__model_emit(record->reader, &item);
}

struct known_line {
    struct wal__line_info info; /* first: offsets in it are offsets in the line */
    struct wal__json_span id;
    struct wal__json_span session;
    struct wal__json_span start;
    struct wal__json_span kind;
    struct wal__json_span directories;
    struct wal__json_span summary;
    struct wal__json_token messages;
    struct wal__json_token set; /* the following are in it */
    struct wal__json_span set_session;
    struct wal__json_span set_directories;
    struct wal__json_span set_summary;
    struct wal__json_token set_messages;
    struct wal__json_span rewind;
    bool has_type;
    bool has_content;
    bool has_project; /* or the time of its last change */
    bool has_uuid;
};

#define KNOWN_AT(field) offsetof(struct known_line, field)

static const struct wal__field known_fields[] = {
    {"id", .at = KNOWN_AT(id)},
    {"timestamp", .at = WAL__LINE_AT(time)},
    {"type", .at = WAL__LINE_AT(type)},
    {"type", .at = KNOWN_AT(has_type), .kind = WAL__FIELD_IS_THERE},
    {"content", .at = KNOWN_AT(has_content), .kind = WAL__FIELD_IS_THERE},
    {"sessionId", .at = KNOWN_AT(session)},
    {"projectHash", .at = KNOWN_AT(has_project), .kind = WAL__FIELD_IS_STRING},
    {"startTime", .at = KNOWN_AT(start)},
    {"lastUpdated", .at = KNOWN_AT(has_project), .kind = WAL__FIELD_IS_STRING},
    {"kind", .at = KNOWN_AT(kind)},
    {"directories", .at = KNOWN_AT(directories), .kind = WAL__FIELD_CONTAINER},
    {"summary", .at = KNOWN_AT(summary)},
    {"messages", .at = KNOWN_AT(messages), .kind = WAL__FIELD_TOKEN},
    {"$set", .at = KNOWN_AT(set), .kind = WAL__FIELD_TOKEN},
    {"sessionId", .parent = "$set", .at = KNOWN_AT(set_session)},
    {"directories", .parent = "$set", .at = KNOWN_AT(set_directories),
     .kind = WAL__FIELD_CONTAINER},
    {"summary", .parent = "$set", .at = KNOWN_AT(set_summary)},
    {"messages", .parent = "$set", .at = KNOWN_AT(set_messages), .kind = WAL__FIELD_TOKEN},
    {"$rewindTo", .at = KNOWN_AT(rewind)},
    {"uuid", .at = KNOWN_AT(has_uuid), .kind = WAL__FIELD_IS_THERE},
    {.key = NULL},
};

/* Returns the first of a list of directories, or an empty span. */
static struct wal__json_span first_directory(struct wal__json_span list)
{
    const struct wal__json_span none = {NULL, 0};
    struct wal__json_scan scan;
    struct wal__json_token value;

    wal__model_array_begin(&scan, list);
    return wal__model_array_next(&scan, &value) && value.kind == WAL__JSON_STRING ? value.span
                                                                                  : none;
}

/* Emits the items of the pieces, or the line if there are none. `is_whole`: it is the session, not
 * a line of it. */
static bool emit_pieces(struct record *record, bool is_whole)
{
    if (record->pieces.count == 0) {
        return emit_line(record, is_whole ? WAL__ITEM_HEAD : WAL__ITEM_LINE, is_whole);
    }
    record->pieces.items[0].raw = record->line->text;
    record->pieces.items[0].raw.size = is_whole ? 0 : record->line->text.size;
    return wal__content_number(&record->pieces, record->line->id) &&
           wal__content_emit(&record->pieces, record->line->parent, record->reader);
}

/* Emits a line that changes metadata: its title, its messages, or neither. */
static bool emit_set(struct record *record, const struct known_line *known)
{
    struct wal__model_item title = {.kind = WAL__ITEM_TITLE,
                                    .id = record->line->id,
                                    .parent = record->line->parent,
                                    .time = record->line->time,
                                    .text = known->set_summary,
                                    .raw = record->line->text};

    if (known->set_messages.kind == WAL__JSON_ARRAY) {
        return add_messages(record, known->set_messages.span) && emit_pieces(record, false);
    }
    return title.text.size > 0 ? wal__model_emit(record->reader, &title)
                               : emit_line(record, WAL__ITEM_LINE, true);
}

static enum wal__json_status gemini_line(struct wal__model_reader *reader,
                                         const struct wal__model_line *line)
{
    struct record record = {.reader = reader,
                            .line = line,
                            .pieces = {.arena = reader->scratch},
                            .results = {.arena = reader->scratch}};
    struct known_line known = {.has_type = false};
    enum wal__json_status status = wal__fields_read(line->text, known_fields, &known, NULL);
    bool is_done;

    if (status != WAL__JSON_OK) {
        return status;
    }
    if (known.rewind.size > 0) {
        is_done = emit_line(&record, WAL__ITEM_HEAD, true);
    } else if (known.id.size > 0) {
        is_done = add_message(&record, line->text) && emit_pieces(&record, false);
    } else if (known.set.kind == WAL__JSON_OBJECT) {
        is_done = emit_set(&record, &known);
    } else if (known.session.size > 0 && line->parent.size == 0) {
        bool has_messages = known.messages.kind == WAL__JSON_ARRAY;

        is_done = emit_header(&record, known.session, first_directory(known.directories),
                              known.start, has_messages) &&
                  (!has_messages ||
                   (add_messages(&record, known.messages.span) && emit_pieces(&record, true)));
    } else {
        is_done = emit_line(&record, WAL__ITEM_LINE, false);
    }
    return is_done ? WAL__JSON_OK : WAL__JSON_NO_SPACE;
}

static const struct wal__dialect_read_ops gemini_read_ops = {
    .line = gemini_line,
};

/* --- writing ------------------------------------------------------------- */

/* The last line of an answer, which waits for the results of its calls, in the writer's arena. */
struct held {
    struct wal__model_item item;
    struct wal__model_item *results; /* by block; of a call without a result the kind is LINE */
    size_t next;                     /* block from which on results may come */
    bool is_first;                   /* of its answer */
    bool is_held;
};

struct gemini_writer {
    struct held held;
};

static const char *gemini_path(const struct wal__model_session *session, uint32_t stream,
                               struct wal__arena *arena)
{
    const char *given = wal__model_client_path(session, stream, "gemini");
    struct wal__json_span id = wal__model_session_uuid(session->id, arena);
    struct wal__model_path path;

    wal__model_path_init(&path, arena);
    if (given != NULL && strlen(given) > 5 && strcmp(given + strlen(given) - 5, ".json") == 0) {
        wal__model_path_add(&path, given); /* as the client goes on in lines */
        wal__model_path_add(&path, "l");
        return path.text;
    }
    if (given != NULL || id.data == NULL) {
        return given;
    }
    wal__model_path_add(&path, "tmp/");
    wal__model_path_add_slug(&path, session->cwd, "", 200, "project");
    wal__model_path_add(&path, "/chats/session-");
    wal__model_path_add_time(&path, session->time, false);
    if (path.text == NULL) {
        return NULL;
    }
    path.size -= 3; /* the seconds */
    path.text[path.size] = '\0';
    wal__model_path_add(&path, "-"); /* the client adds 8 digits, which ids of one time share */
    wal__model_path_add_id(&path, id);
    wal__model_path_add(&path, ".jsonl");
    return path.text;
}

static bool is_native(const struct wal__model_writer *writer)
{
    const struct wal__model_session *session = writer->session;
    struct wal__json_span id = wal__model_string(session->raw, "sessionId");

    return session->dialect == writer->dialect && id.size > 0 &&
           wal__json_characters_equal(id, session->id);
}

static bool gemini_begin(struct wal__model_writer *writer)
{
    const struct wal__model_session *session = writer->session;
    struct wal__json_out *out = &writer->out;
    struct wal__json_span id = wal__model_session_uuid(session->id, writer->scratch);
    char hash[65] = "";

    if (id.data == NULL || !wal__model_write_stream(writer, 0)) {
        return false;
    }
    if (is_native(writer)) {
        wal__json_out_line(out, session->raw);
        return true;
    }
    for (size_t i = 0; i < 64; i++) {
        hash[i] = "0123456789abcdef"[wal__model_hash(i / 16, session->cwd) >> (i % 16 * 4) & 0xF];
    }
    /* The first line stays as it is when lines are appended. */
    wal__model_print(out,
                     "{'sessionId':%,'projectHash':$,'startTime':@,'lastUpdated':@,'kind':'main'",
                     id, wal__model_literal(hash), session->time, session->time);
    if (session->cwd.size > 2) {
        wal__model_print(out, "'directories':[%]", session->cwd);
    }
    wal__model_put(out, "}\n");
    return true;
}

static void open_message(struct wal__json_out *out, const struct wal__model_item *item,
                         const char *type)
{
    wal__model_print(out, "{'id':%,'timestamp':@,'type':$", item->id, item->time,
                     wal__model_literal(type));
}

/* Writes what a functionResponse does not have of a result. */
static void write_result_blocks(struct wal__json_out *out, const struct wal__model_item *result)
{
    if (!wal__content_is_response(result)) {
        wal__content_write_parts(out, "walconvBlocks", result->blocks, result->block_count);
    }
}

static bool write_tokens(struct wal__model_writer *writer, const struct wal__model_usage *usage)
{
    struct wal__model_usage counts = *usage;
    uint64_t prompt = wal__model_prompt_count(usage);
    struct wal__json_out *out = &writer->out;

    if (!wal__model_has_counts(usage)) {
        return true;
    }
    if (!wal__model_number(writer->scratch, prompt, &counts.input) ||
        !wal__model_remove_reasoning(writer->scratch, &counts)) {
        return false;
    }
    wal__json_out_member_open(out, "tokens", '{');
    wal__fields_write(out, token_fields, &counts);
    wal__json_out_member_count(out, "total",
                               prompt + wal__model_count(counts.output) +
                                   wal__model_count(counts.reasoning));
    wal__json_out_close(out, '}');
    return true;
}

static void write_thoughts(struct wal__json_out *out, const struct wal__model_item *item,
                           size_t count)
{
    wal__json_out_member_open(out, "thoughts", '[');
    for (size_t i = 0; i < count; i++) {
        wal__model_print(out, "{'subject':'','description':%,'timestamp':@}",
                         wal__model_or(item->blocks[i].text, "\"\""), item->time);
    }
    wal__json_out_close(out, ']');
}

/* Writes one line of an answer: thoughts, then content, then calls with their results. */
static bool write_answer_line(struct wal__model_writer *writer, const struct held *line)
{
    const struct wal__model_item *item = &line->item;
    struct wal__json_out *out = &writer->out;
    size_t thoughts = 0;
    size_t calls;

    while (thoughts < item->block_count && item->blocks[thoughts].kind == WAL__BLOCK_THINKING) {
        thoughts++;
    }
    for (calls = thoughts;
         calls < item->block_count && item->blocks[calls].kind != WAL__BLOCK_TOOL_CALL;) {
        calls++;
    }
    open_message(out, item, "gemini");
    wal__content_write_parts(out, "content", calls > thoughts ? &item->blocks[thoughts] : NULL,
                             calls - thoughts);
    write_thoughts(out, item, thoughts);
    if (line->is_first && !write_tokens(writer, &item->usage)) {
        return false;
    }
    wal__model_print(out, "'model':?,'walconvAnswer':?", item->model, item->answer_id);
    wal__model_put(out, calls < item->block_count ? "'toolCalls':[" : "");
    for (size_t i = calls; i < item->block_count; i++) {
        const struct wal__model_item *result = line->results != NULL ? &line->results[i] : NULL;
        bool has_result = result != NULL && result->kind == WAL__ITEM_MESSAGE;

        wal__model_print(out, "{'id':%,'name':%", wal__model_or(item->blocks[i].id, "\"\""),
                         wal__model_or(item->blocks[i].name, "\"\""));
        wal__content_write_arguments(out, "args", item->blocks[i].arguments);
        if (has_result) {
            wal__model_put(out, "'result':[");
            wal__content_write_response(out, result);
            wal__model_put(out, "]");
            write_result_blocks(out, result);
        }
        wal__model_print(out, "'status':$,'timestamp':@}",
                         wal__model_literal(has_result && result->is_error ? "error" : "success"),
                         has_result ? result->time : item->time);
    }
    wal__model_put(out, calls < item->block_count ? "]}\n" : "}\n");
    return true;
}

static bool flush(struct wal__model_writer *writer)
{
    struct gemini_writer *gemini = writer->state;
    bool is_held = gemini->held.is_held;

    gemini->held.is_held = false;
    return !is_held || write_answer_line(writer, &gemini->held);
}

static bool copy_span(struct wal__arena *arena, struct wal__json_span *span)
{
    if (span->size > 0) {
        *span = wal__arena_copy(arena, *span);
    }
    return span->size == 0 || span->data != NULL;
}

/* Copies an item with its blocks to the writer's arena. False: no memory. */
static bool copy_item(struct wal__arena *arena, struct wal__model_item *item)
{
    struct wal__json_span *fields[] = {&item->id,
                                       &item->time,
                                       &item->answer_id,
                                       &item->model,
                                       &item->call,
                                       &item->name,
                                       &item->usage.input,
                                       &item->usage.output,
                                       &item->usage.cache_read,
                                       &item->usage.cache_write,
                                       &item->usage.reasoning};
    struct wal__model_block *blocks =
        wal__arena_alloc(arena, (item->block_count + 1) * sizeof(blocks[0]));

    if (blocks == NULL) {
        return false;
    }
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        if (!copy_span(arena, fields[i])) {
            return false;
        }
    }
    for (size_t i = 0; i < item->block_count; i++) {
        struct wal__model_block *block = &blocks[i];
        *block = item->blocks[i];
        if (!copy_span(arena, &block->text) || !copy_span(arena, &block->id) ||
            !copy_span(arena, &block->name) || !copy_span(arena, &block->arguments) ||
            !copy_span(arena, &block->url) || !copy_span(arena, &block->media) ||
            !copy_span(arena, &block->data) || !copy_span(arena, &block->raw)) {
            return false;
        }
    }
    item->blocks = blocks;
    return true;
}

/* Holds the last line of an answer if it has calls, or writes it. */
static bool hold(struct wal__model_writer *writer, const struct held *line)
{
    struct gemini_writer *gemini = writer->state;
    struct held *held = &gemini->held;

    if (!wal__model_has_block(line->item.blocks, line->item.block_count, WAL__BLOCK_TOOL_CALL)) {
        return write_answer_line(writer, line);
    }
    *held = *line;
    held->results =
        wal__arena_calloc(writer->arena, line->item.block_count * sizeof(held->results[0]));
    if (held->results == NULL || !copy_item(writer->arena, &held->item)) {
        return false;
    }
    for (size_t i = 0; i < held->item.block_count; i++) {
        held->results[i].kind = WAL__ITEM_LINE;
    }
    held->is_held = true;
    return true;
}

/* Returns the number of blocks from `first` on that fit in one line. */
static size_t count_of_line(const struct wal__model_item *item, size_t first)
{
    unsigned rank = 0;
    size_t at = first;

    for (; at < item->block_count; at++) {
        unsigned next = item->blocks[at].kind == WAL__BLOCK_THINKING    ? 0
                        : item->blocks[at].kind == WAL__BLOCK_TOOL_CALL ? 2
                                                                        : 1;
        if (next < rank) {
            break;
        }
        rank = next;
    }
    return at - first;
}

static bool write_answer(struct wal__model_writer *writer, const struct wal__model_item *item)
{
    struct held line = {.item = *item, .is_first = true};
    size_t count = count_of_line(item, 0);

    if (item->answer_id.size == 0 && count < item->block_count) {
        line.item.answer_id = item->id;
    }
    line.item.block_count = count;
    for (size_t at = count; at < item->block_count; at += count) {
        if (!write_answer_line(writer, &line)) {
            return false;
        }
        count = count_of_line(item, at);
        line.is_first = false;
        line.item.blocks = item->blocks + at;
        line.item.block_count = count;
        if (!wal__model_derive_id(writer, item, at, &line.item.id)) {
            return false;
        }
    }
    return hold(writer, &line);
}

/* Adds a result to the line that waits for it. *is_added: it did. False: no memory. */
static bool add_to_held(struct wal__model_writer *writer, const struct wal__model_item *item,
                        bool *is_added)
{
    struct gemini_writer *gemini = writer->state;
    struct held *held = &gemini->held;

    *is_added = false;
    for (size_t i = held->next; held->is_held && i < held->item.block_count; i++) {
        const struct wal__model_block *block = &held->item.blocks[i];

        if (block->kind == WAL__BLOCK_TOOL_CALL && item->call.size > 2 &&
            wal__json_characters_equal(block->id, item->call) &&
            wal__json_characters_equal(wal__model_or(block->name, "\"\""),
                                       wal__model_or(item->name, "\"\""))) {
            held->results[i] = *item;
            held->next = i + 1;
            *is_added = true;
            return copy_item(writer->arena, &held->results[i]);
        }
    }
    return true;
}

static bool write_result(struct wal__model_writer *writer, const struct wal__model_item *item)
{
    struct wal__json_out *out = &writer->out;
    bool is_added;

    if (!add_to_held(writer, item, &is_added) || is_added) {
        return is_added;
    }
    if (!flush(writer)) {
        return false;
    }
    open_message(out, item, "user");
    wal__model_put(out, "'content':[");
    wal__content_write_response(out, item);
    wal__model_put(out, "]");
    write_result_blocks(out, item);
    wal__json_out_close_line(out);
    return true;
}

static bool gemini_item(struct wal__model_writer *writer, const struct wal__model_item *item)
{
    struct wal__json_out *out = &writer->out;
    bool is_system = item->role == WAL__ROLE_SYSTEM;

    if (item->kind == WAL__ITEM_MESSAGE && item->role == WAL__ROLE_TOOL && item->raw.size == 0) {
        return write_result(writer, item);
    }
    if (!flush(writer)) {
        return false;
    }
    if (item->raw.size > 0) {
        wal__json_out_line(out, item->raw);
    } else if (item->kind == WAL__ITEM_TITLE) {
        wal__model_print(out, "{'$set':{'summary':%}}\n", wal__model_or(item->text, "\"\""));
    } else if (item->kind == WAL__ITEM_MESSAGE && item->role == WAL__ROLE_ASSISTANT) {
        return write_answer(writer, item);
    } else if (item->kind == WAL__ITEM_MESSAGE) {
        open_message(out, item, is_system ? "info" : "user");
        wal__content_write_parts(out, "content", item->blocks, item->block_count);
        wal__model_put(out, is_system ? "'walconvSystem':true}\n" : "}\n");
    }
    return true;
}

static bool gemini_can_copy_verbatim(const struct wal__model_session *session,
                                     struct wal__arena *arena)
{
    struct wal__json_span id = wal__model_string(session->raw, "sessionId");

    (void)arena;
    return wal__dialect_is(session->dialect, "gemini") && id.size > 0 &&
           wal__json_characters_equal(id, session->id);
}

static const struct wal__dialect_write_ops gemini_write_ops = {
    .carries = WAL__CARRIES(TIMES) | WAL__CARRIES(THINKING) | WAL__CARRIES(IMAGES) |
               WAL__CARRIES(RESULT_IMAGES) | WAL__CARRIES(TEXT_BOUNDARIES) | WAL__CARRIES(EMPTY) |
               WAL__CARRIES(TOOL_NAMES) | WAL__CARRIES(TOOL_ERRORS) | WAL__CARRIES(MODELS) |
               WAL__CARRIES(USAGE) | WAL__CARRIES(REASONING) | WAL__CARRIES(TITLES),
    .merges_parts = true,
    .path = gemini_path,
    .is_id = wal__model_is_uuid,
    .make_id = wal__model_make_uuid,
    .off_branch_kinds = 1U << WAL__ITEM_TITLE,
    .begin = gemini_begin,
    .item = gemini_item,
    .end = flush,
    .state_size = sizeof(struct gemini_writer),
    .can_copy_verbatim = gemini_can_copy_verbatim,
};

/* --- the dialect --------------------------------------------------------- */

static bool gemini_recognise(const void *text, bool is_first)
{
    const struct known_line *line = text;

    (void)is_first;
    if (line->has_uuid) {
        return false;
    }
    if (line->set.kind == WAL__JSON_OBJECT || line->rewind.size > 0) {
        return true;
    }
    if (!line->has_type) {
        return line->session.size > 0 && line->start.size > 0 && line->has_project;
    }
    return (wal__model_text_is(line->info.type, "gemini") ||
            wal__model_text_is(line->info.type, "tabnine")) &&
           line->id.size > 0 && line->info.time.size > 0 && line->has_content;
}

static void gemini_judge(void *text)
{
    struct known_line *line = text;
    struct wal__line_info *info = &line->info;

    info->is_in_conversation = false;
    if (line->rewind.size > 0) {
        info->parent = line->rewind;
        info->link = WAL__LINK_BEFORE;
    } else if (line->id.size > 0) {
        info->id = line->id;
        info->parent = line->id;
        info->link = WAL__LINK_BEFORE;
        info->is_in_conversation = true;
    } else if (line->set.kind == WAL__JSON_OBJECT) {
        info->session = line->set_session;
        info->cwd = first_directory(line->set_directories);
        info->title = line->set_summary;
        info->link =
            line->set_messages.kind == WAL__JSON_ARRAY ? WAL__LINK_ROOT : WAL__LINK_PREVIOUS;
    } else {
        info->session = line->session;
        info->cwd = first_directory(line->directories);
        info->time = line->start;
        info->title = line->summary;
        info->is_subagent = wal__model_text_is(line->kind, "subagent");
        info->is_header = line->session.size > 0;
    }
}

/* Of a session that is one object. */
static const struct wal__json_member gemini_rewritten[] = {
    {.key = "lastUpdated"},
    {.key = "messages"},
    {.key = "summary"},
    {.key = NULL},
};

const struct wal__dialect wal__dialect_gemini = {
    .name = "gemini",
    .summary = "sessions of Gemini CLI and Tabnine CLI",
    .headers = WAL__HEADERS_MANY,
    .rewritten = gemini_rewritten,
    .line_fields = known_fields,
    .line_size = sizeof(struct known_line),
    .recognise = gemini_recognise,
    .judge = gemini_judge,
    .read_ops = &gemini_read_ops,
    .write_ops = &gemini_write_ops,
};
