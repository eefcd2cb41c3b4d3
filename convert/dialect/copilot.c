/*
 * copilot.c - the event logs of GitHub Copilot CLI.
 *
 * A line is an event {type, id, parentId, timestamp, data}. The first one, session.start, is the
 * header. The file is one sequence: parentId names the event before, whatever it belongs to, so
 * the parent is the line before. Events of a subagent have an agentId or the id of the call that
 * started it; they are a side chain, and the next event of the main agent continues after the last
 * main one. session.snapshot_rewind goes back to before an event.
 *
 * A user's message has the text that the user typed (content) and the text that the model got
 * (transformedContent); the first one is read. A message whose source names a skill, an agent or
 * the client was written by no person. An answer has a text, the thinking before it and the calls
 * after it; tool.execution_start repeats a call, and tool.execution_complete has its result.
 *
 * One event has one text. So an answer of several texts is written as several events of one
 * apiCallId, and another message of several texts has them in walconvContent too, with a null in
 * the place of each image.
 *
 * Invariant: the writer writes one chain. The client reads no session with a line that it cannot
 * parse, so every member that it requires is written.
 *
 * Threads: one thread at a time per reader and per writer.
 */
#include "convert/model/dialect.h"

#include <string.h>

#include "convert/model/model_content.h"
#include "convert/model/model_member.h"
#include "convert/model/model_table.h"
#include "convert/model/model_write.h"
#include "format/json/json_text.h"
#include "format/payload/first_text.h"

/* --- vocabulary ---------------------------------------------------------- */

enum event_kind {
    EVENT_OTHER,
    EVENT_START,
    EVENT_USER,
    EVENT_ASSISTANT,
    EVENT_REASONING,
    EVENT_CALL, /* repeats a call of an answer */
    EVENT_RESULT,
    EVENT_SYSTEM,
    EVENT_NOTIFICATION,
    EVENT_COMPACTION,
    EVENT_MODEL,
    EVENT_TITLE,
    EVENT_REWIND
};

struct event {
    struct wal__entry entry; /* first: offsets in it are offsets in the event */
    struct copilot *copilot;
    struct wal__json_span data;
    struct wal__json_span agent;    /* that it is of: a subagent */
    struct wal__json_span agent_id; /* of a message: the same */
    struct wal__json_span context;
    struct wal__json_span source;
    struct wal__json_span content;
    struct wal__json_span reasoning;
    struct wal__json_token attachments;
    struct wal__json_token binary; /* images of a result */
    struct wal__json_token order;  /* walconvContent */
    struct wal__json_span result;
    struct wal__json_span error;
    bool has_succeeded;
};

#define EVENT_AT(field) offsetof(struct event, field)

static const struct wal__field event_fields[] = {
    {"type", .at = WAL__ENTRY_AT(type)},
    {"data", .at = EVENT_AT(data), .kind = WAL__FIELD_CONTAINER},
    {"agentId", .at = EVENT_AT(agent)},
    {"id", .kind = WAL__FIELD_KNOWN},
    {"parentId", .kind = WAL__FIELD_KNOWN},
    {"timestamp", .kind = WAL__FIELD_KNOWN},
    {.key = NULL},
};

/* Members of any event's data. */
static const struct wal__field data_fields[] = {
    {"content", .at = EVENT_AT(content)},
    {"walconvContent", .at = EVENT_AT(order), .kind = WAL__FIELD_TOKEN},
    {"attachments", .at = EVENT_AT(attachments), .kind = WAL__FIELD_TOKEN},
    {"parentToolCallId", .at = EVENT_AT(agent_id)},
    {"messageId", .kind = WAL__FIELD_KNOWN},
    {.key = NULL},
};

static const struct wal__word event_words[] = {
    {"session.start",
     EVENT_START,
     {{"sessionId", .at = WAL__SESSION_AT(id)},
      {"startTime", .at = WAL__SESSION_AT(time)},
      {"selectedModel", .at = WAL__SESSION_AT(model)},
      {"context", .at = EVENT_AT(context), .kind = WAL__FIELD_CONTAINER}}},
    {"user.message", EVENT_USER, {{"source", .at = EVENT_AT(source)}}},
    {"assistant.message",
     EVENT_ASSISTANT,
     {{"reasoningText", .at = EVENT_AT(reasoning)},
      {"toolRequests", .at = WAL__ENTRY_AT(calls), .kind = WAL__FIELD_TOKEN},
      {"model", .at = WAL__ITEM_AT(model)},
      {"apiCallId", .at = WAL__ITEM_AT(answer_id)},
      {"outputTokens", .at = WAL__ITEM_AT(usage.output), .kind = WAL__FIELD_NUMBER}}},
    {"assistant.reasoning", EVENT_REASONING, {{.key = NULL}}},
    {"tool.execution_start", EVENT_CALL, {{.key = NULL}}},
    {"tool.execution_complete",
     EVENT_RESULT,
     {{"toolCallId", .at = WAL__ITEM_AT(call)},
      {"toolName", .at = WAL__ITEM_AT(name)},
      {"success", .at = EVENT_AT(has_succeeded), .kind = WAL__FIELD_TRUE},
      {"result", .at = EVENT_AT(result), .kind = WAL__FIELD_CONTAINER},
      {"error", .at = EVENT_AT(error), .kind = WAL__FIELD_NON_NULL}}},
    {"system.message", EVENT_SYSTEM, {{"role", .kind = WAL__FIELD_KNOWN}}},
    {"system.notification", EVENT_NOTIFICATION, {{.key = NULL}}},
    {"session.compaction_complete",
     EVENT_COMPACTION,
     {{"success", .at = EVENT_AT(has_succeeded), .kind = WAL__FIELD_TRUE},
      {"summaryContent", .at = WAL__ITEM_AT(text)},
      {"preCompactionTokens", .at = WAL__ITEM_AT(tokens), .kind = WAL__FIELD_NUMBER}}},
    {"session.model_change",
     EVENT_MODEL,
     {{"newModel", .at = WAL__ITEM_AT(model)}, {"previousModel", .kind = WAL__FIELD_KNOWN}}},
    {"session.snapshot_rewind", EVENT_REWIND, {{.key = NULL}}},
    {"session.title_changed", EVENT_TITLE, {{"title", .at = WAL__ITEM_AT(text)}}},
    {.name = NULL},
};

static const struct wal__field result_fields[] = {
    {"content", .at = EVENT_AT(content)},
    {"contents", .at = EVENT_AT(attachments), .kind = WAL__FIELD_TOKEN},
    {"binaryResultsForLlm", .at = EVENT_AT(binary), .kind = WAL__FIELD_TOKEN},
    {"walconvContent", .at = EVENT_AT(order), .kind = WAL__FIELD_TOKEN},
    {.key = NULL},
};

/* The source of a message that no person wrote, as an export writes it. The client does not show
 * messages of skills. */
#define META_SOURCE "skill-walconv"

/* --- reading ------------------------------------------------------------- */

struct copilot {
    struct wal__model_table calls; /* name of the tool by hash of the call's id */
    uint64_t reasoning;            /* hash of the text of the last assistant.reasoning */
};

static bool begins_with(struct wal__json_span string, const char *text)
{
    size_t size = strlen(text);

    return string.size > size + 1 && memcmp(string.data + 1, text, size) == 0;
}

/* Adds the next image of an array. Other elements, but for those of `content` that repeat its text,
 * are counted as fields. *is_done: there was none. False: no memory. */
static bool add_image(struct wal__model_blocks *blocks, struct wal__json_scan *scan,
                      uint32_t *fields, bool *is_done)
{
    struct wal__json_token value;

    while (wal__model_array_next(scan, &value)) {
        struct wal__json_member m[] = {
            {.key = "data"}, {.key = "mimeType"}, {.key = "walconvUrl"}, {.key = "type"}};
        struct wal__json_span media;
        struct wal__model_block *block;

        if (wal__model_members(value.span, m, 4, NULL) != WAL__JSON_OK) {
            return false;
        }
        media = wal__member_string(&m[1]);
        if (!begins_with(media, "image/") ||
            (wal__member_string(&m[0]).size <= 2 && wal__member_string(&m[2]).size <= 2)) {
            *fields += wal__line_string_is(&m[3], "text") ? 0 : 1;
            continue;
        }
        block = wal__model_blocks_add(blocks, WAL__BLOCK_IMAGE, value.span);
        if (block == NULL) {
            return false;
        }
        block->url = wal__member_string(&m[2]);
        if (block->url.size > 0) {
            return true;
        }
        block->media = wal__arena_unescape(blocks->arena, media);
        block->data = wal__arena_unescape(blocks->arena, m[0].value.span);
        return block->media.data != NULL && block->data.data != NULL;
    }
    *is_done = true;
    return true;
}

/* Adds the text of an event and its images, in the order of walconvContent. */
static bool add_content(struct event *event, struct wal__model_blocks *blocks)
{
    uint32_t *fields = &event->entry.item.fields;
    struct wal__json_scan images;
    struct wal__json_scan binary;
    struct wal__json_scan order;
    struct wal__json_token value;
    bool is_done = false;

    wal__model_array_begin(&images, event->attachments.span);
    wal__model_array_begin(&binary, event->binary.span);
    if (event->order.kind == WAL__JSON_ARRAY) {
        wal__model_array_begin(&order, event->order.span);
        while (wal__model_array_next(&order, &value)) {
            if (value.kind == WAL__JSON_STRING
                    ? !wal__model_blocks_add_text(blocks, WAL__BLOCK_TEXT, value.span)
                    : !is_done && !add_image(blocks, &images, fields, &is_done)) {
                return false;
            }
        }
    } else if (event->content.size > 2 &&
               !wal__model_blocks_add_text(blocks, WAL__BLOCK_TEXT, event->content)) {
        return false;
    }
    while (!is_done) {
        if (!add_image(blocks, &images, fields, &is_done)) {
            return false;
        }
    }
    is_done = blocks->count > 1; /* the same images, in another form */
    while (!is_done) {
        if (!add_image(blocks, &binary, fields, &is_done)) {
            return false;
        }
    }
    return true;
}

/* Sets the item to a message with these blocks and emits it. */
static bool emit_message(struct event *event, enum wal__model_role role,
                         const struct wal__model_blocks *blocks)
{
    struct wal__model_item *item = &event->entry.item;

    item->kind = WAL__ITEM_MESSAGE;
    item->role = role;
    item->blocks = blocks->items;
    item->block_count = blocks->count;
    return wal__model_emit(event->entry.reader, item);
}

/* Emits an event that is a text and images. */
static bool emit_content(struct event *event, enum wal__model_role role)
{
    struct wal__model_blocks blocks = {.arena = event->entry.reader->scratch};

    return add_content(event, &blocks) && emit_message(event, role, &blocks);
}

static bool emit_answer(struct event *event)
{
    struct wal__model_blocks blocks = {.arena = event->entry.reader->scratch};
    uint64_t hash = wal__model_string_hash(0, event->reasoning);
    bool is_known = event->reasoning.size > 2 && event->copilot->reasoning == hash;

    event->copilot->reasoning = 0;
    if (!is_known && event->reasoning.size > 0 &&
        !wal__model_blocks_add_text(&blocks, WAL__BLOCK_THINKING, event->reasoning)) {
        return false;
    }
    if (!add_content(event, &blocks) || !wal__content_read_calls(event->entry.calls, &blocks)) {
        return false;
    }
    for (size_t i = 0; i < blocks.count; i++) {
        const struct wal__model_block *block = &blocks.items[i];
        struct wal__json_span name;

        if (block->kind != WAL__BLOCK_TOOL_CALL || block->id.size <= 2) {
            continue;
        }
        name = wal__arena_copy(event->entry.reader->arena, block->name);
        if (name.data == NULL ||
            !wal__model_table_put(&event->copilot->calls, wal__model_string_hash(0, block->id),
                                  name)) {
            return false;
        }
    }
    return emit_message(event, WAL__ROLE_ASSISTANT, &blocks);
}

/* Emits thinking that precedes its answer, which may have it again. */
static bool emit_reasoning(struct event *event)
{
    struct wal__model_blocks blocks = {.arena = event->entry.reader->scratch};

    if (event->content.size <= 2) {
        return wal__entry_emit_line(&event->entry);
    }
    event->copilot->reasoning = wal__model_string_hash(0, event->content);
    return wal__model_blocks_add_text(&blocks, WAL__BLOCK_THINKING, event->content) &&
           emit_message(event, WAL__ROLE_ASSISTANT, &blocks);
}

static bool emit_result(struct event *event)
{
    struct wal__model_item *item = &event->entry.item;

    if (wal__fields_read(event->result, result_fields, event, &item->fields) != WAL__JSON_OK) {
        return false;
    }
    item->is_error = !event->has_succeeded;
    if (item->name.size == 0 && item->call.size > 2) {
        (void)wal__model_table_get(&event->copilot->calls, wal__model_string_hash(0, item->call),
                                   &item->name);
    }
    if (event->content.size <= 2 && event->error.size > 0) {
        event->content =
            event->error.data[0] == '"' ? event->error : wal__model_string(event->error, "message");
    }
    item->model.size = 0;
    return emit_content(event, WAL__ROLE_TOOL);
}

static bool emit_header(struct event *event)
{
    struct wal__model_session *session = &event->entry.session;

    session->cwd = wal__model_string(event->context, "cwd");
    session->raw = event->entry.source->text;
    session->dialect = event->entry.reader->dialect;
    event->entry.item.kind = WAL__ITEM_HEADER;
    event->entry.item.session = session;
    return wal__entry_emit(&event->entry);
}

static bool emit_event(struct event *event, enum event_kind kind)
{
    struct wal__model_item *item = &event->entry.item;

    switch (kind) {
    case EVENT_START:
        return event->entry.source->parent.size > 0 ? wal__entry_emit_line(&event->entry)
                                                    : emit_header(event);
    case EVENT_USER:
        item->is_meta = wal__first_text_is_client_source(event->source) ||
                        begins_with(event->content, "<skill-context");
        if (item->is_meta && !wal__model_text_is(event->source, META_SOURCE)) {
            item->name = event->source;
        }
        return emit_content(event, WAL__ROLE_USER);
    case EVENT_ASSISTANT:
        return emit_answer(event);
    case EVENT_REASONING:
        return emit_reasoning(event);
    case EVENT_CALL:
        item->is_echo = true;
        return wal__entry_emit_line(&event->entry);
    case EVENT_RESULT:
        return emit_result(event);
    case EVENT_SYSTEM:
        return emit_content(event, WAL__ROLE_SYSTEM);
    case EVENT_NOTIFICATION:
        item->is_meta = true;
        item->name = event->entry.type;
        return emit_content(event, WAL__ROLE_USER);
    case EVENT_COMPACTION:
        item->kind = WAL__ITEM_COMPACTION;
        return event->has_succeeded && item->text.size > 2
                   ? wal__model_emit(event->entry.reader, item)
                   : wal__entry_emit_line(&event->entry);
    case EVENT_MODEL:
        item->kind = WAL__ITEM_MODEL_CHANGE;
        return item->model.size > 2 ? wal__model_emit(event->entry.reader, item)
                                    : wal__entry_emit_line(&event->entry);
    case EVENT_TITLE:
        item->kind = WAL__ITEM_TITLE;
        return wal__model_emit(event->entry.reader, item);
    case EVENT_REWIND:
        item->kind = WAL__ITEM_HEAD;
        return wal__model_emit(event->entry.reader, item);
    case EVENT_OTHER:
        break;
    }
    return wal__entry_emit_line(&event->entry);
}

static enum wal__json_status copilot_line(struct wal__model_reader *reader,
                                          const struct wal__model_line *line)
{
    struct event event = {.entry = wal__entry_begin(reader, line),
                          .copilot = wal__reader_state(reader, sizeof(*event.copilot))};
    struct wal__model_item *item = &event.entry.item;
    const struct wal__word *word;
    enum wal__json_status status;

    if (event.copilot == NULL) {
        return WAL__JSON_NO_SPACE;
    }
    event.copilot->calls.arena = reader->arena;
    item->raw = line->text;
    status = wal__fields_read(line->text, event_fields, &event, &item->fields);
    if (status != WAL__JSON_OK) {
        return status;
    }
    status = wal__word_read(event.data, data_fields, event_words, &event.entry.type, &event,
                            &item->fields, &word);
    if (status != WAL__JSON_OK) {
        return status;
    }
    item->is_sidechain = event.agent.size > 2 || event.agent_id.size > 2;
    return emit_event(&event, word != NULL ? (enum event_kind)word->value : EVENT_OTHER)
               ? WAL__JSON_OK
               : WAL__JSON_NO_SPACE;
}

static const struct wal__dialect_read_ops copilot_read_ops = {
    .line = copilot_line,
};

/* --- writing ------------------------------------------------------------- */

struct copilot_writer {
    struct wal__json_span last;  /* id of the last event */
    struct wal__json_span model; /* of the last answer or change */
    uint8_t id[WAL__MODEL_ID_SIZE];
};

static const char *copilot_path(const struct wal__model_session *session, uint32_t stream,
                                struct wal__arena *arena)
{
    const char *given = wal__model_client_path(session, stream, "copilot");
    struct wal__json_span id = wal__model_session_uuid(session->id, arena);
    struct wal__model_path path;

    if (given != NULL) {
        return given;
    }
    wal__model_path_init(&path, arena);
    wal__model_path_add(&path, "session-state/");
    wal__model_path_add_id(&path, id);
    wal__model_path_add(&path, "/events.jsonl");
    return id.data != NULL ? path.text : NULL;
}

static void keep_last(struct copilot_writer *copilot, struct wal__json_span id)
{
    if (id.size > 0 && id.size <= sizeof(copilot->id)) {
        memcpy(copilot->id, id.data, id.size);
        copilot->last = (struct wal__json_span){copilot->id, id.size};
    }
}

/* Opens an event and its data. */
static void open_event(struct wal__json_out *out, const char *type)
{
    wal__model_print(out, "{'type':$,'data':{", wal__model_literal(type));
}

/* Closes them; the event is the next one of the chain. */
static void close_event(struct wal__model_writer *writer, struct wal__json_span id,
                        struct wal__json_span time)
{
    struct copilot_writer *copilot = writer->state;

    wal__model_print(&writer->out, "},'id':%,'timestamp':@,'parentId':%}\n", id, time,
                     wal__model_or(copilot->last, "null"));
    keep_last(copilot, id);
}

static bool copilot_begin(struct wal__model_writer *writer)
{
    const struct wal__model_session *session = writer->session;
    struct wal__model_item item = {.id = session->id, .time = session->time};
    struct wal__json_out *out = &writer->out;
    struct wal__json_span id = wal__model_session_uuid(session->id, writer->scratch);

    if (id.data == NULL || !wal__model_write_stream(writer, 0)) {
        return false;
    }
    if (session->raw.size > 0 && session->dialect == writer->dialect) {
        keep_last(writer->state, wal__model_string(session->raw, "id"));
        wal__json_out_line(out, session->raw);
        return true;
    }
    open_event(out, "session.start");
    wal__model_print(out,
                     "'sessionId':%,'version':1,'producer':'agentwal','copilotVersion':'1.0.0',"
                     "'startTime':@,'selectedModel':?,'context':{'cwd':%}",
                     id, session->time, session->model, wal__model_or(session->cwd, "\"/\""));
    if (!wal__model_derive_id(writer, &item, 0, &item.id)) {
        return false;
    }
    close_event(writer, item.id, item.time);
    return true;
}

static void write_images(struct wal__json_out *out, const char *key, const char *type,
                         const struct wal__model_block *blocks, size_t count)
{
    wal__json_out_member_open(out, key, '[');
    for (size_t i = 0; i < count; i++) {
        if (blocks[i].kind != WAL__BLOCK_IMAGE) {
            continue;
        }
        wal__model_print(out, "{'type':$", wal__model_literal(type));
        if (blocks[i].url.size > 0) {
            wal__model_print(out,
                             "'mimeType':'image/png','omittedReason':'asset_unavailable',"
                             "'walconvUrl':%}",
                             blocks[i].url);
        } else {
            wal__model_print(out, "'mimeType':$,'data':$}", blocks[i].media, blocks[i].data);
        }
    }
    wal__json_out_close(out, ']');
}

/* Writes texts and images of blocks: the text as a member `content`, the images as the array
 * `key`, and their order where it is not one text before the images. */
static void write_content(struct wal__json_out *out, const char *key, const char *type,
                          const struct wal__model_block *blocks, size_t count)
{
    bool has_image = false;
    bool has_text = false;
    bool is_plain = true;

    wal__content_write_texts(out, "content", blocks, count, "\n", true);
    for (size_t i = 0; i < count; i++) {
        if (blocks[i].kind == WAL__BLOCK_TEXT) {
            is_plain &= !has_text && !has_image && blocks[i].text.size > 2;
            has_text = true;
        }
        has_image |= blocks[i].kind == WAL__BLOCK_IMAGE;
    }
    if (has_image) {
        write_images(out, key, type, blocks, count);
    }
    if (is_plain) {
        return;
    }
    wal__json_out_member_open(out, "walconvContent", '[');
    for (size_t i = 0; i < count; i++) {
        if (blocks[i].kind == WAL__BLOCK_IMAGE) {
            wal__json_out_literal(out, "null");
        } else if (blocks[i].kind == WAL__BLOCK_TEXT) {
            wal__json_out_value(out, wal__model_or(blocks[i].text, "\"\""));
        }
    }
    wal__json_out_close(out, ']');
}

/* Returns the number of blocks from `first` on that fit in one event: thinking, a text, images,
 * calls, in this order. */
static size_t count_of_event(const struct wal__model_block *blocks, size_t first, size_t count)
{
    static const unsigned ranks[] = {
        [WAL__BLOCK_THINKING] = 1, [WAL__BLOCK_TEXT] = 2,      [WAL__BLOCK_IMAGE] = 3,
        [WAL__BLOCK_RAW] = 3,      [WAL__BLOCK_TOOL_CALL] = 4,
    };
    unsigned rank = 0;
    size_t at = first;

    for (; at < count; at++) {
        unsigned next = ranks[blocks[at].kind];

        if (next < rank || (next == rank && next <= 2)) {
            break;
        }
        rank = next;
    }
    return at - first;
}

static void write_call(struct wal__json_out *out, const struct wal__model_block *call,
                       const char *name)
{
    wal__json_out_member(out, "toolCallId", wal__model_or(call->id, "\"\""));
    wal__json_out_member(out, name, wal__model_or(call->name, "\"\""));
    wal__content_write_arguments(out, "arguments", call->arguments);
}

/* Writes one event of an answer. */
static void write_answer_event(struct wal__model_writer *writer, const struct wal__model_item *item,
                               struct wal__json_span id, struct wal__json_span answer_id,
                               const struct wal__model_block *blocks, size_t count)
{
    struct wal__json_out *out = &writer->out;

    open_event(out, "assistant.message");
    wal__model_print(out, "'messageId':%,'apiCallId':?,'model':?", id, answer_id, item->model);
    if (count > 0 && blocks[0].kind == WAL__BLOCK_THINKING) {
        wal__json_out_member(out, "reasoningText", wal__model_or(blocks[0].text, "\"\""));
    }
    write_content(out, "attachments", "blob", blocks, count);
    wal__model_put(out, "'toolRequests':[");
    for (size_t i = 0; i < count; i++) {
        if (blocks[i].kind == WAL__BLOCK_TOOL_CALL) {
            wal__json_out_open(out, '{');
            write_call(out, &blocks[i], "name");
            wal__model_put(out, "'type':'function'}");
        }
    }
    wal__json_out_close(out, ']');
    close_event(writer, id, item->time);
}

/* Writes an answer, and for each call that the tool ran. */
static bool write_answer(struct wal__model_writer *writer, const struct wal__model_item *item)
{
    size_t count = count_of_event(item->blocks, 0, item->block_count);
    struct wal__json_span answer_id = item->answer_id;
    struct wal__json_span id = item->id;

    if (answer_id.size == 0 && count < item->block_count) {
        answer_id = item->id;
    }
    write_answer_event(writer, item, id, answer_id, item->blocks, count);
    for (size_t at = count; at < item->block_count; at += count) {
        count = count_of_event(item->blocks, at, item->block_count);
        if (!wal__model_derive_id(writer, item, at, &id)) {
            return false;
        }
        write_answer_event(writer, item, id, answer_id, item->blocks + at, count);
    }
    for (size_t i = 0; i < item->block_count; i++) {
        if (item->blocks[i].kind != WAL__BLOCK_TOOL_CALL) {
            continue;
        }
        if (!wal__model_derive_id(writer, item, item->block_count + i, &id)) {
            return false;
        }
        open_event(&writer->out, "tool.execution_start");
        write_call(&writer->out, &item->blocks[i], "toolName");
        close_event(writer, id, item->time);
    }
    return true;
}

static void write_result(struct wal__model_writer *writer, const struct wal__model_item *item)
{
    struct wal__json_out *out = &writer->out;

    open_event(out, "tool.execution_complete");
    wal__model_print(out, "'toolCallId':%,'toolName':?,'success':%,'result':{",
                     wal__model_or(item->call, "\"\""), item->name,
                     wal__model_bool(!item->is_error));
    write_content(out, "contents", "image", item->blocks, item->block_count);
    if (item->is_error) {
        wal__model_put(out, "},'error':{");
        wal__content_write_texts(out, "message", item->blocks, item->block_count, "\n", true);
    }
    wal__model_put(out, "}");
    close_event(writer, item->id, item->time);
}

static bool write_message(struct wal__model_writer *writer, const struct wal__model_item *item)
{
    struct wal__json_out *out = &writer->out;

    if (item->role == WAL__ROLE_ASSISTANT) {
        return write_answer(writer, item);
    }
    if (item->role == WAL__ROLE_TOOL) {
        write_result(writer, item);
        return true;
    }
    open_event(out, item->role == WAL__ROLE_SYSTEM ? "system.message" : "user.message");
    if (item->role == WAL__ROLE_SYSTEM) {
        wal__json_out_member_str(out, "role", "system");
    } else if (item->is_meta) {
        wal__json_out_member_str(out, "source", META_SOURCE);
    }
    write_content(out, "attachments", "blob", item->blocks, item->block_count);
    close_event(writer, item->id, item->time);
    return true;
}

static bool copilot_item(struct wal__model_writer *writer, const struct wal__model_item *item)
{
    struct wal__json_out *out = &writer->out;

    if (item->raw.size > 0) {
        wal__json_out_line(out, item->raw);
        keep_last(writer->state, item->id);
        return true;
    }
    switch (item->kind) {
    case WAL__ITEM_MESSAGE:
        return write_message(writer, item);
    case WAL__ITEM_COMPACTION:
        open_event(out, "session.compaction_complete");
        wal__model_print(out, "'success':true,'preCompactionTokens':?,'summaryContent':%",
                         item->tokens, wal__model_or(item->text, "\"\""));
        close_event(writer, item->id, item->time);
        break;
    case WAL__ITEM_MODEL_CHANGE:
        open_event(out, "session.model_change");
        wal__json_out_member(out, "newModel", wal__model_or(item->model, "\"unknown\""));
        close_event(writer, item->id, item->time);
        break;
    case WAL__ITEM_HEADER:
    case WAL__ITEM_THINKING_LEVEL:
    case WAL__ITEM_BRANCH_SUMMARY:
    case WAL__ITEM_LABEL:
    case WAL__ITEM_TITLE:
    case WAL__ITEM_CUSTOM:
    case WAL__ITEM_LINE:
    case WAL__ITEM_HEAD:
        break;
    }
    return true;
}

/* Whether the session was read from this dialect under this id. */
static bool copilot_can_copy_verbatim(const struct wal__model_session *session,
                                      struct wal__arena *arena)
{
    struct wal__json_member id = {.parent = "data", .key = "sessionId"};

    (void)arena;
    return wal__dialect_is(session->dialect, "copilot") &&
           wal__model_members(session->raw, &id, 1, NULL) == WAL__JSON_OK &&
           id.value.kind == WAL__JSON_STRING &&
           wal__json_characters_equal(id.value.span, session->id);
}

static bool copilot_clone(struct wal__model_writer *writer, const void *original)
{
    struct copilot_writer *copilot = writer->state;

    (void)original;
    copilot->last.data = copilot->id;
    return true;
}

static const struct wal__dialect_write_ops copilot_write_ops = {
    .carries = WAL__CARRIES(TIMES) | WAL__CARRIES(THINKING) | WAL__CARRIES(IMAGES) |
               WAL__CARRIES(RESULT_IMAGES) | WAL__CARRIES(TEXT_BOUNDARIES) | WAL__CARRIES(EMPTY) |
               WAL__CARRIES(TOOL_NAMES) | WAL__CARRIES(TOOL_ERRORS) | WAL__CARRIES(MODELS) |
               WAL__CARRIES(MODEL_CHANGES) | WAL__CARRIES(COMPACTIONS) |
               WAL__CARRIES(TOKENS_BEFORE) | WAL__CARRIES(META),
    .merges_parts = true,
    .path = copilot_path,
    .is_id = wal__model_is_uuid,
    .make_id = wal__model_make_uuid,
    .begin = copilot_begin,
    .item = copilot_item,
    .state_size = sizeof(struct copilot_writer),
    .clone = copilot_clone,
    .can_copy_verbatim = copilot_can_copy_verbatim,
};

/* --- the dialect --------------------------------------------------------- */

struct known_line {
    struct wal__line_info info; /* first: offsets in it are offsets in the line */
    struct wal__json_span agent;
    struct wal__json_span call;
    struct wal__json_span data;
    struct wal__json_span session;
    struct wal__json_span version;
    struct wal__json_span context;
    struct wal__json_span title;
    struct wal__json_span rewind;
    bool has_parent;
};

#define KNOWN_AT(field) offsetof(struct known_line, field)

static const struct wal__field known_fields[] = {
    {"type", .at = WAL__LINE_AT(type)},
    {"id", .at = WAL__LINE_AT(id)},
    {"parentId", .at = KNOWN_AT(has_parent), .kind = WAL__FIELD_IS_THERE},
    {"timestamp", .at = WAL__LINE_AT(time)},
    {"agentId", .at = KNOWN_AT(agent)},
    {"data", .at = KNOWN_AT(data), .kind = WAL__FIELD_CONTAINER},
    {"sessionId", .parent = "data", .at = KNOWN_AT(session)},
    {"version", .parent = "data", .at = KNOWN_AT(version), .kind = WAL__FIELD_NUMBER},
    {"context", .parent = "data", .at = KNOWN_AT(context), .kind = WAL__FIELD_CONTAINER},
    {"title", .parent = "data", .at = KNOWN_AT(title)},
    {"upToEventId", .parent = "data", .at = KNOWN_AT(rewind)},
    {"parentToolCallId", .parent = "data", .at = KNOWN_AT(call)},
    {.key = NULL},
};

static bool copilot_recognise(const void *text, bool is_first)
{
    static const char *const rooms[] = {"session.", "user.",     "assistant.", "tool.",   "hook.",
                                        "system.",  "subagent.", "skill.",     "command."};
    const struct known_line *line = text;

    (void)is_first;
    if (line->info.id.size == 0 || line->info.time.size == 0 || line->data.size == 0 ||
        line->data.data[0] != '{' || !line->has_parent) {
        return false;
    }
    for (size_t i = 0; i < sizeof(rooms) / sizeof(rooms[0]); i++) {
        if (begins_with(line->info.type, rooms[i])) {
            return true;
        }
    }
    return false;
}

static void copilot_judge(void *text)
{
    struct known_line *line = text;
    struct wal__line_info *info = &line->info;

    if (wal__model_text_is(info->type, "session.start")) {
        info->session = line->session;
        info->cwd = wal__model_string(line->context, "cwd");
        info->is_header = true;
        info->has_newer_version = wal__line_version_above(line->version, 1);
    } else if (wal__model_text_is(info->type, "session.title_changed")) {
        info->title = line->title;
    }
    info->is_sidechain = line->agent.size > 2 || line->call.size > 2;
    info->head = info->is_sidechain ? WAL__HEAD_KEEP : WAL__HEAD_MOVE;
    info->link = info->is_sidechain ? WAL__LINK_PREVIOUS : WAL__LINK_MAIN;
    if (wal__model_text_is(info->type, "session.snapshot_rewind")) {
        info->parent = line->rewind;
        info->link = WAL__LINK_BEFORE;
    }
}

const struct wal__dialect wal__dialect_copilot = {
    .name = "copilot",
    .summary = "event logs of GitHub Copilot CLI",
    .headers = WAL__HEADERS_ONE,
    .line_fields = known_fields,
    .line_size = sizeof(struct known_line),
    .recognise = copilot_recognise,
    .judge = copilot_judge,
    .read_ops = &copilot_read_ops,
    .write_ops = &copilot_write_ops,
};
