/*
 * rollouts.c - the session files of rollouts.
 *
 * The first line is a `session` header with id, timestamp, cwd, provider and model. The other lines
 * have no ids; the parent is the previous line: the order of lines is the conversation. A line is
 * an item: the header, a message, or a config_change, which is a change of the model. Content is a
 * string, null, or blocks: text, thinking, toolCall, image.
 *
 * Invariant: every line moves the head. A line does not refer to others, so it can be written
 * unchanged, except a message with a block that the client's reader rejects: it rejects a file with
 * a block of any other type, a blank line or an invalid line.
 *
 * Threads: one thread at a time per reader and per writer.
 */
#include "convert/model/dialect.h"

#include "convert/model/model_content.h"
#include "convert/model/model_member.h"
#include "convert/model/model_write.h"
#include "format/json/json_text.h"

/* --- reading ------------------------------------------------------------- */

struct line {
    struct wal__entry entry; /* first: offsets in it are offsets in the line */
    struct wal__json_span message;
};

static const struct wal__field line_fields[] = {
    {"type", .at = WAL__ENTRY_AT(type)},
    {"message", .at = offsetof(struct line, message), .kind = WAL__FIELD_CONTAINER},
    {.key = NULL},
};

static const struct wal__word line_words[] = {
    {"session",
     WAL__ITEM_HEADER,
     {{"id", .at = WAL__SESSION_AT(id)},
      {"timestamp", .at = WAL__SESSION_AT(time)},
      {"cwd", .at = WAL__SESSION_AT(cwd)},
      {"provider", .at = WAL__SESSION_AT(provider)},
      {"model", .at = WAL__SESSION_AT(model)}}},
    {"message", .value = WAL__ITEM_MESSAGE},
    {"config_change",
     WAL__ITEM_MODEL_CHANGE,
     {{"provider", .parent = "endpoint", .at = WAL__ITEM_AT(provider)},
      {"model", .parent = "endpoint", .at = WAL__ITEM_AT(model)}}},
    {.name = NULL},
};

static const struct wal__field message_fields[] = {
    {"role", .at = WAL__ENTRY_AT(role)},
    {"content", .at = WAL__ENTRY_AT(content), .kind = WAL__FIELD_TOKEN},
    {"tool_calls", .at = WAL__ENTRY_AT(calls), .kind = WAL__FIELD_TOKEN},
    {.key = NULL},
};

static const struct wal__word roles[] = {
    {"assistant", .value = WAL__ROLE_ASSISTANT},
    {"system", .value = WAL__ROLE_SYSTEM},
    {"tool", WAL__ROLE_TOOL, {{"tool_call_id", .at = WAL__ITEM_AT(call)}}},
    {.name = NULL},
};

struct source {
    struct wal__model_block block; /* first: offsets in it are offsets here */
    struct wal__json_span type;
    struct wal__json_span image_url;
};

static const struct wal__field block_fields[] = {
    {"type", .at = offsetof(struct source, type)},
    {.key = NULL},
};

static const struct wal__word block_words[] = {
    {"text", WAL__BLOCK_TEXT, {{"text", .at = WAL__BLOCK_AT(text)}}},
    {"thinking",
     WAL__BLOCK_THINKING,
     {{"thinking", .at = WAL__BLOCK_AT(text)},
      {"thinking_signature", .at = WAL__BLOCK_AT(signature)},
      {"redacted", .at = WAL__BLOCK_AT(is_redacted), .kind = WAL__FIELD_TRUE}}},
    {"toolCall",
     WAL__BLOCK_TOOL_CALL,
     {{"id", .at = WAL__BLOCK_AT(id)},
      {"name", .at = WAL__BLOCK_AT(name)},
      {"arguments", .at = WAL__BLOCK_AT(arguments), .kind = WAL__FIELD_NON_NULL}}},
    {"image", WAL__BLOCK_IMAGE, {{"image_url", .at = offsetof(struct source, image_url)}}},
    {.name = NULL},
};

static bool read_block(struct wal__model_blocks *blocks, struct wal__json_span raw,
                       uint32_t *fields)
{
    struct source source = {.block = {.raw = raw}};
    struct wal__model_block *block = &source.block;
    const struct wal__word *word;

    if (wal__word_read(raw, block_fields, block_words, &source.type, &source, fields, &word) !=
        WAL__JSON_OK) {
        return false;
    }
    if (word == NULL || (word->value == WAL__BLOCK_IMAGE && source.image_url.size == 0)) {
        return wal__model_blocks_add(blocks, WAL__BLOCK_RAW, raw) != NULL;
    }
    block->kind = word->value;
    block->arguments = wal__content_unwrap_arguments(block->arguments);
    if (block->kind == WAL__BLOCK_TEXT) {
        block->text = wal__model_or(block->text, "\"\"");
    }
    block->is_redacted |= block->kind == WAL__BLOCK_THINKING && block->text.size == 0;
    return (block->kind != WAL__BLOCK_IMAGE ||
            wal__model_set_image_url(blocks->arena, block, source.image_url)) &&
           wal__model_blocks_append(blocks, block);
}

static bool read_content(struct wal__json_token content, struct wal__model_blocks *blocks,
                         uint32_t *fields)
{
    struct wal__json_scan scan;
    struct wal__json_token value;

    if (content.kind != WAL__JSON_ARRAY) {
        return wal__content_read(content, blocks, fields);
    }
    wal__model_array_begin(&scan, content.span);
    while (wal__model_array_next(&scan, &value)) {
        if (!read_block(blocks, value.span, fields)) {
            return false;
        }
    }
    return true;
}

static bool read_message(struct wal__model_reader *reader, struct line *line)
{
    struct wal__model_blocks blocks = {.arena = reader->scratch};
    struct wal__entry *entry = &line->entry;
    struct wal__model_item *item = &entry->item;
    const struct wal__word *role;

    if (wal__word_read(line->message, message_fields, roles, &entry->role, line, &item->fields,
                       &role) != WAL__JSON_OK ||
        !read_content(entry->content, &blocks, &item->fields) ||
        !wal__content_read_calls(entry->calls, &blocks)) {
        return false;
    }
    item->role = role != NULL ? role->value : WAL__ROLE_USER;
    item->blocks = blocks.items;
    item->block_count = blocks.count;
    if (wal__model_has_block(blocks.items, blocks.count, WAL__BLOCK_RAW)) {
        item->raw.size = 0;
    }
    return true;
}

static enum wal__json_status rollouts_line(struct wal__model_reader *reader,
                                           const struct wal__model_line *text)
{
    struct line line = {
        .entry.item = {
            .id = text->id, .parent = text->parent, .time = text->time, .raw = text->text}};
    struct wal__model_item *item = &line.entry.item;
    const struct wal__word *word;
    enum wal__json_status status;

    status = wal__word_read(text->text, line_fields, line_words, &line.entry.type, &line,
                            &item->fields, &word);
    if (status != WAL__JSON_OK) {
        return status;
    }
    item->kind = word != NULL ? word->value : WAL__ITEM_LINE;
    if ((item->kind == WAL__ITEM_HEADER && text->parent.size > 0) ||
        (item->kind == WAL__ITEM_MESSAGE &&
         (line.message.size == 0 || line.message.data[0] != '{'))) {
        item->kind = WAL__ITEM_LINE;
    }
    if (item->kind == WAL__ITEM_HEADER) {
        line.entry.session.raw = text->text;
        line.entry.session.dialect = reader->dialect;
        item->session = &line.entry.session;
    } else if (item->kind == WAL__ITEM_LINE) {
        item->data = text->text;
    } else if (item->kind == WAL__ITEM_MESSAGE && !read_message(reader, &line)) {
        return WAL__JSON_NO_SPACE;
    }
    return wal__model_emit(reader, item) ? WAL__JSON_OK : WAL__JSON_NO_SPACE;
}

static const struct wal__dialect_read_ops rollouts_read_ops = {
    .line = rollouts_line,
};

/* --- writing ------------------------------------------------------------- */

static bool is_plain(uint8_t byte)
{
    return byte != '/' && byte != '\0';
}

static const char *rollouts_path(const struct wal__model_session *session, uint32_t stream,
                                 struct wal__arena *arena)
{
    (void)stream;
    return wal__model_dashed_path(session, is_plain, false, arena);
}

/* Writes the header that was read, with the session's present id. */
static void write_native_header(struct wal__json_out *out, const struct wal__model_session *session)
{
    const struct wal__json_override override = {"id", session->id};
    struct wal__json_span id = wal__model_string(session->raw, "id");

    if (id.size > 0 && wal__json_characters_equal(id, session->id)) {
        wal__json_out_value(out, session->raw);
    } else {
        wal__json_out_overridden(out, session->raw, &override, 1);
    }
    wal__json_out_newline(out);
}

static bool rollouts_begin(struct wal__model_writer *writer)
{
    const struct wal__model_session *session = writer->session;
    struct wal__json_out *out = &writer->out;

    if (!wal__model_write_stream(writer, 0)) {
        return false;
    }
    if (session->raw.size > 0 && session->dialect == writer->dialect) {
        write_native_header(out, session);
        return true;
    }
    wal__model_print(out,
                     "{'type':'session','id':%,'timestamp':@,'cwd':%,'provider':%,'model':%}\n",
                     session->id, session->time, wal__model_or(session->cwd, "\"/\""),
                     wal__model_or(session->provider, "\"unknown\""),
                     wal__model_or(session->model, "\"unknown\""));
    return true;
}

static void write_image(struct wal__json_out *out, const struct wal__model_block *block)
{
    wal__json_out_member_str(out, "type", "image");
    wal__content_write_url(out, "image_url", block);
}

static void write_content(struct wal__model_writer *writer, const struct wal__model_item *item)
{
    static const struct wal__block_form form = {
        .text = "text",
        .signature = "thinking_signature",
        .call = "toolCall",
        .arguments = "arguments",
        .image = write_image,
    };
    struct wal__json_out *out = &writer->out;

    if (item->block_count == 0) {
        wal__json_out_member(out, "content", wal__model_literal("null"));
        return;
    }
    if (item->block_count == 1 && item->blocks[0].kind == WAL__BLOCK_TEXT) {
        wal__json_out_member(out, "content", wal__model_or(item->blocks[0].text, "\"\""));
        return;
    }
    wal__json_out_member_open(out, "content", '[');
    for (size_t i = 0; i < item->block_count; i++) {
        if (item->blocks[i].kind == WAL__BLOCK_RAW) {
            writer->losses[WAL__FEATURE_BLOCKS]++;
        } else {
            wal__content_write_block(out, &form, &item->blocks[i]);
        }
    }
    wal__json_out_close(out, ']');
}

static void write_message(struct wal__model_writer *writer, const struct wal__model_item *item)
{
    struct wal__json_out *out = &writer->out;

    wal__model_print(out, "{'type':'message','timestamp':@,'message':{'role':$", item->time,
                     wal__model_literal(wal__role_names[item->role]));
    write_content(writer, item);
    if (item->role == WAL__ROLE_TOOL) {
        wal__json_out_member(out, "tool_call_id", wal__model_or(item->call, "\"\""));
    }
    wal__model_put(out, "}}\n");
}

static bool rollouts_item(struct wal__model_writer *writer, const struct wal__model_item *item)
{
    const bool is_native_line = item->kind == WAL__ITEM_LINE && item->dialect == writer->dialect;

    if (item->raw.size > 0 || is_native_line) {
        wal__json_out_line(&writer->out, item->raw.size > 0 ? item->raw : item->data);
    } else if (item->kind == WAL__ITEM_MESSAGE) {
        write_message(writer, item);
    }
    return true;
}

static const struct wal__dialect_write_ops rollouts_write_ops = {
    .carries = WAL__CARRIES(TIMES) | WAL__CARRIES(THINKING) | WAL__CARRIES(SIGNATURES) |
               WAL__CARRIES(IMAGES) | WAL__CARRIES(RESULT_IMAGES) | WAL__CARRIES(TEXT_BOUNDARIES) |
               WAL__CARRIES(EMPTY) | WAL__CARRIES(SURROGATES),
    .merges_parts = true,
    .path = rollouts_path,
    .begin = rollouts_begin,
    .item = rollouts_item,
};

/* --- the dialect --------------------------------------------------------- */

struct known_line {
    struct wal__line_info info; /* first: offsets in it are offsets in the line */
    struct wal__json_span id;
    struct wal__json_span cwd;
    struct wal__json_span provider;
    struct wal__json_span model;
    bool has_version;
};

#define KNOWN_AT(field) offsetof(struct known_line, field)

static const struct wal__field known_fields[] = {
    {"type", .at = WAL__LINE_AT(type)},
    {"id", .at = KNOWN_AT(id)},
    {"timestamp", .at = WAL__LINE_AT(time)},
    {"cwd", .at = KNOWN_AT(cwd)},
    {"provider", .at = KNOWN_AT(provider)},
    {"model", .at = KNOWN_AT(model)},
    {"version", .at = KNOWN_AT(has_version), .kind = WAL__FIELD_IS_THERE},
    {.key = NULL},
};

static bool rollouts_recognise(const void *text, bool is_first)
{
    const struct known_line *line = text;

    return is_first && wal__model_text_is(line->info.type, "session") && !line->has_version &&
           line->id.size > 0 && line->info.time.size > 0 && line->cwd.size > 0 &&
           line->provider.size > 0 && line->model.size > 0;
}

static void rollouts_judge(void *text)
{
    struct known_line *line = text;

    line->info.is_header = wal__model_text_is(line->info.type, "session");
    if (line->info.is_header) {
        line->info.session = line->id;
        line->info.cwd = line->cwd;
    }
}

const struct wal__dialect wal__dialect_rollouts = {
    .name = "rollouts",
    .summary = "session files of rollouts",
    .headers = WAL__HEADERS_ONE,
    .line_fields = known_fields,
    .line_size = sizeof(struct known_line),
    .recognise = rollouts_recognise,
    .judge = rollouts_judge,
    .read_ops = &rollouts_read_ops,
    .write_ops = &rollouts_write_ops,
};
