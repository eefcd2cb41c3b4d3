/*
 * entries.c - session entries as a file, in the form in which the tools print them.
 *
 * A line is {id, parentId?, type, timestamp, runId?, payload, meta?}; the first one is the
 * `session_header`, the parent of roots. Without parentId the parent is the head; null: a root.
 *
 * Applications define their payloads. Messages are read in the form of current APIs: role and
 * content, calls as blocks or in tool_calls, results as messages of role tool or as blocks of a
 * user's message. An item is written as an entry whose payload has the keys of pi, and members that
 * reading restores. Items without a type of entry become entries of type `custom`; their customType
 * begins with "walconv.".
 *
 * Invariant: a line moves the head if its parent is the head, as an append does; a line of
 * customType walconv.head always moves it. An entry of any other meaning is an item of kind LINE.
 *
 * Threads: one thread at a time per reader and per writer.
 */
#include "convert/model/dialect.h"

#include "convert/model/model_content.h"
#include "convert/model/model_member.h"
#include "convert/model/model_write.h"
#include "format/json/json_text.h"
#include "format/payload/timestamp.h"

/* --- vocabulary ---------------------------------------------------------- */

static const struct wal__word entries_types[] = {
    {"session_header",
     WAL__ITEM_HEADER,
     {{"sessionId", .at = WAL__SESSION_AT(id), .missing = "\"\""},
      {"cwd", .at = WAL__SESSION_AT(cwd)},
      {"parentSession", .at = WAL__SESSION_AT(parent)},
      {"title", .at = WAL__SESSION_AT(title)},
      {"provider", .at = WAL__SESSION_AT(provider)},
      {"model", .at = WAL__SESSION_AT(model)},
      {"modelId", .at = WAL__SESSION_AT(model)},
      {"thinkingLevel", .at = WAL__SESSION_AT(thinking_level)}}},
    {"model_change",
     WAL__ITEM_MODEL_CHANGE,
     {{"provider", .at = WAL__ITEM_AT(provider)},
      {"modelId", .at = WAL__ITEM_AT(model)},
      {"model", .at = WAL__ITEM_AT(model)}}},
    {"thinking_level_change",
     WAL__ITEM_THINKING_LEVEL,
     {{"thinkingLevel", .at = WAL__ITEM_AT(text)}, {"level", .at = WAL__ITEM_AT(text)}}},
    {"compaction_summary",
     WAL__ITEM_COMPACTION,
     {{"summary", .at = WAL__ITEM_AT(text), .missing = "\"\""},
      {"firstKeptEntryId", .at = WAL__ITEM_AT(target)},
      {"tokensBefore", .at = WAL__ITEM_AT(tokens), .kind = WAL__FIELD_NUMBER}}},
    {"compaction",
     WAL__ITEM_COMPACTION,
     {{"summary", .at = WAL__ITEM_AT(text)},
      {"firstKeptEntryId", .at = WAL__ITEM_AT(target)},
      {"tokensBefore", .at = WAL__ITEM_AT(tokens), .kind = WAL__FIELD_NUMBER}}},
    {"branch_summary",
     WAL__ITEM_BRANCH_SUMMARY,
     {{"sourceEntryId", .at = WAL__ITEM_AT(target)},
      {"fromId", .at = WAL__ITEM_AT(target)},
      {"summary", .at = WAL__ITEM_AT(text)}}},
    {"label",
     WAL__ITEM_LABEL,
     {{"targetEntryId", .at = WAL__ITEM_AT(target)}, {"label", .at = WAL__ITEM_AT(text)}}},
    {"session_info", WAL__ITEM_TITLE, {{"name", .at = WAL__ITEM_AT(text)}}},
    {"custom",
     WAL__ITEM_CUSTOM,
     {{"customType", .at = WAL__ITEM_AT(name)},
      {"name", .at = WAL__ITEM_AT(name)},
      {"data", .at = WAL__ITEM_AT(data), .kind = WAL__FIELD_NON_NULL}}},
    {.name = NULL},
};

static const struct wal__word entries_stops[] = {
    {"end", .value = WAL__STOP_END},
    {"end_turn", .value = WAL__STOP_END},
    {"stop", .value = WAL__STOP_END},
    {"length", .value = WAL__STOP_LENGTH},
    {"max_tokens", .value = WAL__STOP_LENGTH},
    {"toolUse", .value = WAL__STOP_TOOL},
    {"tool_use", .value = WAL__STOP_TOOL},
    {"tool_calls", .value = WAL__STOP_TOOL},
    {"stop_sequence", .value = WAL__STOP_SEQUENCE},
    {"refusal", .value = WAL__STOP_REFUSAL},
    {"error", .value = WAL__STOP_ERROR},
    {"aborted", .value = WAL__STOP_ABORTED},
    {.name = NULL},
};

static const struct wal__field entries_usage[] = {
    {"input", WAL__USAGE_AT(input), .kind = WAL__FIELD_NUMBER},
    {"output", WAL__USAGE_AT(output), .kind = WAL__FIELD_NUMBER},
    {"cacheRead", WAL__USAGE_AT(cache_read), .kind = WAL__FIELD_NUMBER},
    {"cacheWrite", WAL__USAGE_AT(cache_write), .kind = WAL__FIELD_NUMBER},
    {"reasoning", WAL__USAGE_AT(reasoning), .kind = WAL__FIELD_NUMBER},
    {"cost", WAL__USAGE_AT(cost), .kind = WAL__FIELD_NUMBER},
    {.key = NULL},
};

/* --- reading ------------------------------------------------------------- */

struct entry {
    struct wal__entry entry; /* first: offsets in it are offsets here */
    struct wal__json_span payload;
};

static bool emit_line(struct entry *entry)
{
    entry->entry.item.dialect = NULL;
    return wal__entry_emit_line(&entry->entry);
}

/* --- message ------------------------------------------------------------- */

static const struct wal__field message_fields[] = {
    {"role", .at = WAL__ENTRY_AT(role)},
    {"content", .at = WAL__ENTRY_AT(content), .kind = WAL__FIELD_TOKEN},
    {"tool_calls", .at = WAL__ENTRY_AT(calls), .kind = WAL__FIELD_TOKEN},
    {"id", .at = WAL__ITEM_AT(answer_id)},
    {"model", .at = WAL__ITEM_AT(model)},
    {"provider", .at = WAL__ITEM_AT(provider)},
    {"stop_reason", .at = WAL__ENTRY_AT(stop)},
    {"stopReason", .at = WAL__ENTRY_AT(stop)},
    {"usage", .at = WAL__ENTRY_AT(usage), .kind = WAL__FIELD_CONTAINER},
    {"blocksOf", .at = WAL__ENTRY_AT(dialect)},
    {.key = NULL},
};

static const struct wal__word roles[] = {
    {"user",
     WAL__ROLE_USER,
     {{"isMeta", .at = WAL__ITEM_AT(is_meta), .kind = WAL__FIELD_TRUE},
      {"name", .at = WAL__ITEM_AT(name)}}},
    {"assistant", .value = WAL__ROLE_ASSISTANT},
    {"system", .value = WAL__ROLE_SYSTEM},
    {"developer", .value = WAL__ROLE_SYSTEM},
    {"tool",
     WAL__ROLE_TOOL,
     {{"tool_call_id", .at = WAL__ITEM_AT(call)},
      {"toolCallId", .at = WAL__ITEM_AT(call)},
      {"toolName", .at = WAL__ITEM_AT(name)},
      {"name", .at = WAL__ITEM_AT(name)},
      {"is_error", .at = WAL__ITEM_AT(is_error), .kind = WAL__FIELD_TRUE},
      {"isError", .at = WAL__ITEM_AT(is_error), .kind = WAL__FIELD_TRUE}}},
    {"toolResult",
     WAL__ROLE_TOOL,
     {{"tool_call_id", .at = WAL__ITEM_AT(call)},
      {"toolCallId", .at = WAL__ITEM_AT(call)},
      {"toolName", .at = WAL__ITEM_AT(name)},
      {"name", .at = WAL__ITEM_AT(name)},
      {"is_error", .at = WAL__ITEM_AT(is_error), .kind = WAL__FIELD_TRUE},
      {"isError", .at = WAL__ITEM_AT(is_error), .kind = WAL__FIELD_TRUE}}},
    {.name = NULL},
};

static bool emit_message(struct entry *entry)
{
    struct wal__json_member nested = {.key = "message"};
    struct wal__content_pieces pieces = {.arena = entry->entry.reader->scratch};
    struct wal__entry *to = &entry->entry;
    struct wal__model_item *item = &to->item;
    const struct wal__word *role;

    if (wal__model_members(entry->payload, &nested, 1, NULL) != WAL__JSON_OK ||
        wal__word_read(nested.value.kind == WAL__JSON_OBJECT ? nested.value.span : entry->payload,
                       message_fields, roles, &to->role, to, &item->fields,
                       &role) != WAL__JSON_OK ||
        wal__fields_read(to->usage, wal__usage_fields, &item->usage, NULL) != WAL__JSON_OK ||
        wal__fields_read(to->usage, entries_usage, &item->usage, NULL) != WAL__JSON_OK) {
        return false;
    }
    if (role == NULL) {
        return emit_line(entry);
    }
    item->kind = WAL__ITEM_MESSAGE;
    item->role = role->value;
    item->stop = wal__word_stop(entries_stops, to->stop);
    item->dialect = wal__model_find_dialect(entry->entry.reader, to->dialect);
    if (item->role != WAL__ROLE_USER) {
        return wal__content_read_item(to->content, to->calls, entry->entry.reader->scratch, item) &&
               wal__model_emit(entry->entry.reader, item);
    }
    if (!item->is_meta) {
        item->name.size = 0;
    }
    return wal__content_split(&pieces, item, to->content) &&
           wal__content_emit(&pieces, item->parent, entry->entry.reader);
}

/* --- other entries ------------------------------------------------------- */

static const struct wal__field payload_fields[] = {
    {"dialect", .at = WAL__ENTRY_AT(dialect)},
    {"aside", .at = WAL__ENTRY_AT(is_aside), .kind = WAL__FIELD_TRUE},
    {"line", .at = WAL__ENTRY_AT(line), .kind = WAL__FIELD_RAW},
    {"time", .kind = WAL__FIELD_KNOWN},
    {"version", .kind = WAL__FIELD_KNOWN},
    {.key = NULL},
};

static bool emit_header(struct entry *entry)
{
    struct wal__model_session *session = &entry->entry.session;

    session->time = entry->entry.source->time;
    session->raw = entry->entry.source->text;
    session->dialect = entry->entry.reader->dialect;
    if (session->cwd.size == 0) {
        session->cwd = wal__model_string(entry->entry.source->text, "cwd");
    }
    if (session->id.size == 0) {
        session->id = entry->entry.source->id;
    }
    entry->entry.item.session = session;
    return wal__entry_emit(&entry->entry);
}

static void read_custom(struct entry *entry)
{
    struct wal__model_item *item = &entry->entry.item;

    if (item->name.size == 0 && item->data.size == 0) {
        item->data = entry->payload;
    }
    if (wal__model_text_is(item->name, "walconv.head")) {
        item->kind = WAL__ITEM_HEAD;
    } else if (wal__model_text_is(item->name, "walconv.line")) {
        (void)wal__entry_set_foreign(entry->entry.reader, &entry->entry);
    }
}

static bool emit_other(struct entry *entry)
{
    struct wal__entry *to = &entry->entry;
    struct wal__model_item *item = &to->item;
    const struct wal__word *type;

    if (wal__word_read(entry->payload, payload_fields, entries_types, &to->type, to, &item->fields,
                       &type) != WAL__JSON_OK) {
        return false;
    }
    if (type == NULL) {
        return emit_line(entry);
    }
    item->kind = type->value;
    if (item->kind == WAL__ITEM_HEADER) {
        return emit_header(entry);
    }
    if (item->kind == WAL__ITEM_COMPACTION && item->target.size > 0 &&
        wal__json_characters_equal(item->target, item->id)) {
        item->target.size = 0;
    }
    if (item->kind == WAL__ITEM_CUSTOM) {
        read_custom(entry);
    }
    return wal__model_emit(entry->entry.reader, item);
}

static const struct wal__field line_fields[] = {
    {"type", .at = WAL__ENTRY_AT(type)},
    {"payload", .at = offsetof(struct entry, payload), .kind = WAL__FIELD_CONTAINER},
    {"isSidechain", .parent = "meta", .at = WAL__ITEM_AT(is_sidechain), .kind = WAL__FIELD_TRUE},
    {"id", .kind = WAL__FIELD_KNOWN},
    {"parentId", .kind = WAL__FIELD_KNOWN},
    {"timestamp", .kind = WAL__FIELD_KNOWN},
    {"runId", .kind = WAL__FIELD_KNOWN},
    {.key = NULL},
};

static enum wal__json_status entries_line(struct wal__model_reader *reader,
                                          const struct wal__model_line *line)
{
    struct entry entry = {.entry = wal__entry_begin(reader, line)};
    struct wal__model_item *item = &entry.entry.item;
    enum wal__json_status status;

    status = wal__fields_read(line->text, line_fields, &entry, &item->fields);
    if (status != WAL__JSON_OK) {
        return status;
    }
    entry.payload = wal__model_or(entry.payload, "{}");
    if (line->is_exact) {
        item->raw = line->text;
    }
    return (wal__model_text_is(entry.entry.type, "message") ? emit_message(&entry)
                                                            : emit_other(&entry))
               ? WAL__JSON_OK
               : WAL__JSON_NO_SPACE;
}

static const struct wal__dialect_read_ops entries_read_ops = {.line = entries_line};

/* --- writing ------------------------------------------------------------- */

static const char *entries_path(const struct wal__model_session *session, uint32_t stream,
                                struct wal__arena *arena)
{
    struct wal__model_path path;

    (void)stream;
    wal__model_path_init(&path, arena);
    wal__model_path_add(&path, "sessions/");
    wal__model_path_add_id(&path, session->id);
    wal__model_path_add(&path, ".jsonl");
    return path.text;
}

/* Opens an entry and its payload. */
static void open_entry(struct wal__json_out *out, const char *type,
                       const struct wal__model_item *item)
{
    wal__model_print(out, "{'id':%,'parentId':?,'type':$,'timestamp':@,'payload':{", item->id,
                     item->parent, wal__model_literal(type), item->time);
}

static void close_entry(struct wal__json_out *out, const struct wal__model_item *item)
{
    wal__model_put(out, item->is_sidechain ? "},'meta':{'isSidechain':true}}\n" : "}}\n");
}

static bool entries_begin(struct wal__model_writer *writer)
{
    const struct wal__model_session *session = writer->session;
    struct wal__json_out *out = &writer->out;
    struct wal__model_item item = {.id = session->id, .time = session->time};
    const struct wal__word *type = wal__word_of(entries_types, WAL__ITEM_HEADER);
    const struct wal__entry entry = {.session = *session};
    struct wal__json_span *header = writer->state;

    if (!wal__model_write_stream(writer, 0)) {
        return false;
    }
    *header = session->id;
    if (session->raw.size > 0 && session->dialect == writer->dialect) {
        *header = wal__model_string(session->raw, "id");
        wal__json_out_line(out, session->raw);
        return true;
    }
    open_entry(out, type->name, &item);
    wal__model_put(out, "'version':1");
    wal__fields_write(out, type->fields, &entry);
    close_entry(out, &item);
    return true;
}

static void write_image(struct wal__json_out *out, const struct wal__model_block *block)
{
    wal__json_out_member_str(out, "type", "image");
    if (block->data.size > 0) {
        wal__json_out_member_text(out, "data", block->data);
    }
    if (block->media.size > 0) {
        wal__json_out_member_text(out, "mimeType", block->media);
    }
    wal__json_out_optional(out, "url", block->url);
}

static void write_content(struct wal__json_out *out, const struct wal__model_item *item)
{
    static const struct wal__block_form form = {
        .text = "text",
        .signature = "thinkingSignature",
        .call = "toolCall",
        .arguments = "arguments",
        .omits_empty = true,
        .image = write_image,
    };

    wal__content_write_blocks(out, "content", &form, item->blocks, item->block_count);
    if (wal__model_has_block(item->blocks, item->block_count, WAL__BLOCK_RAW)) {
        wal__json_out_member_str(out, "blocksOf", item->dialect->name);
    }
}

static void write_usage(struct wal__json_out *out, const struct wal__model_usage *usage)
{
    if (!wal__model_has_counts(usage) && usage->cost.size == 0) {
        return;
    }
    wal__json_out_member_open(out, "usage", '{');
    wal__fields_write(out, entries_usage, usage);
    wal__json_out_close(out, '}');
}

static void write_message(struct wal__json_out *out, const struct wal__model_item *item)
{
    const struct wal__word *stop = wal__word_of(entries_stops, item->stop);

    open_entry(out, "message", item);
    wal__json_out_member_str(out, "role", wal__role_names[item->role]);
    if (item->role == WAL__ROLE_TOOL) {
        wal__model_print(out, "'toolCallId':?,'toolName':?,'isError':%", item->call, item->name,
                         wal__model_bool(item->is_error));
    } else if (item->is_meta) {
        wal__model_print(out, "'isMeta':true,'name':?", item->name);
    }
    write_content(out, item);
    if (item->role == WAL__ROLE_ASSISTANT) {
        wal__model_print(out, "'id':?,'provider':?,'model':?", item->answer_id, item->provider,
                         item->model);
        write_usage(out, &item->usage);
        if (stop != NULL) {
            wal__json_out_member_str(out, "stopReason", stop->name);
        }
    }
    close_entry(out, item);
}

static void write_foreign(struct wal__json_out *out, const struct wal__model_item *item)
{
    open_entry(out, "custom", item);
    wal__model_print(out, "'customType':'walconv.line','dialect':$",
                     wal__model_literal(item->dialect->name));
    wal__model_put(out, item->is_off_branch ? "'aside':true" : "");
    wal__model_print(out, "'line':%", item->data);
    close_entry(out, item);
}

/* Writes an entry whose members are fields of the item. */
static void write_fields(const struct wal__model_writer *writer, struct wal__json_out *out,
                         struct wal__model_item item)
{
    const struct wal__word *type = wal__word_of(entries_types, item.kind);

    open_entry(out, type->name, &item);
    if (item.kind == WAL__ITEM_BRANCH_SUMMARY) {
        wal__json_out_member(out, "sourceSessionId", writer->session->id);
    }
    if (item.kind == WAL__ITEM_COMPACTION && item.target.size == 0) {
        item.target = item.id; /* nothing is kept */
    }
    wal__fields_write(out, type->fields, &item);
    close_entry(out, &item);
}

static bool entries_item(struct wal__model_writer *writer, const struct wal__model_item *item)
{
    const struct wal__json_span *header = writer->state;
    struct wal__json_out *out = &writer->out;
    struct wal__model_item rooted = *item;

    if (item->parent.size == 0) {
        rooted.parent = *header;
    }
    if (item->raw.size > 0) {
        wal__json_out_line(out, item->raw);
    } else if (item->kind == WAL__ITEM_MESSAGE) {
        write_message(out, &rooted);
    } else if (item->kind == WAL__ITEM_LINE) {
        if (!wal__model_write_line(writer, &rooted, rooted.parent)) {
            write_foreign(out, &rooted);
        }
    } else {
        write_fields(writer, out, rooted);
    }
    return true;
}

/* Writes an entry under the head: readers take the last entry for the head. */
static bool entries_head(struct wal__model_writer *writer, struct wal__json_span id)
{
    char text[WAL__MODEL_ID_SIZE];
    uint64_t hash[2] = {wal__model_string_hash(3, id), writer->items};
    struct wal__model_item item = {.parent = id, .time = writer->session->time};

    item.id = (struct wal__json_span){(const uint8_t *)text, wal__model_uuid(hash, text)};
    open_entry(&writer->out, "custom", &item);
    wal__model_put(&writer->out, "'customType':'walconv.head'");
    close_entry(&writer->out, &item);
    return true;
}

static const struct wal__dialect_write_ops entries_write_ops = {
    .carries = ~(WAL__CARRIES(STREAMS) | WAL__CARRIES(FIELDS) | WAL__CARRIES(DAMAGED) |
                 WAL__CARRIES(REDACTED)),
    .header_is_entry = true,
    .tip_advances_to_child = true,
    .state_size = sizeof(struct wal__json_span),
    .path = entries_path,
    .begin = entries_begin,
    .item = entries_item,
    .head = entries_head,
};

/* --- the dialect --------------------------------------------------------- */

#define VERSION 1 /* the newest known version */

struct known_line {
    struct wal__line_info info; /* first: offsets in it are offsets in the line */
    struct wal__json_token parent;
    struct wal__json_span session;
    struct wal__json_span cwd;
    struct wal__json_span title;
    struct wal__json_span starter;
    struct wal__json_span custom;
    struct wal__json_span versions[2];
};

#define KNOWN_AT(field) offsetof(struct known_line, field)

static const struct wal__field known_fields[] = {
    {"type", .at = WAL__LINE_AT(type)},
    {"id", .at = WAL__LINE_AT(id)},
    {"parentId", .at = KNOWN_AT(parent), .kind = WAL__FIELD_TOKEN},
    {"timestamp", .at = WAL__LINE_AT(time)},
    {"cwd", .parent = "payload", .at = KNOWN_AT(cwd)},
    {"cwd", .at = KNOWN_AT(cwd)},
    {"sessionId", .parent = "payload", .at = KNOWN_AT(session)},
    {"sessionId", .at = KNOWN_AT(session)},
    {"id", .at = KNOWN_AT(session)},
    {"title", .parent = "payload", .at = KNOWN_AT(title)},
    {"parentSession", .parent = "payload", .at = KNOWN_AT(starter)},
    {"customType", .parent = "payload", .at = KNOWN_AT(custom)},
    {"version", .parent = "payload", .at = KNOWN_AT(versions[0]), .kind = WAL__FIELD_NUMBER},
    {"version", .at = KNOWN_AT(versions[1]), .kind = WAL__FIELD_NUMBER},
    {"isSidechain", .parent = "meta", .at = WAL__LINE_AT(is_sidechain), .kind = WAL__FIELD_TRUE},
    {.key = NULL},
};

static bool entries_recognise(const void *text, bool is_first)
{
    const struct wal__line_info *line = text;

    return is_first && wal__model_text_is(line->type, "session_header");
}

static void entries_judge(void *text)
{
    struct known_line *line = text;
    struct wal__line_info *info = &line->info;

    info->link = WAL__LINK_HEAD;
    wal__line_set_parent(info, &line->parent);
    info->head = info->is_sidechain ? WAL__HEAD_KEEP : WAL__HEAD_EXTEND;
    if (wal__model_text_is(info->type, "session_header")) {
        info->session = line->session;
        info->cwd = line->cwd;
        info->title = line->title;
        info->starter = line->starter;
        info->is_header = true;
        info->has_newer_version = wal__line_version_above(line->versions[0], VERSION) ||
                                  wal__line_version_above(line->versions[1], VERSION);
    }
    if (wal__model_text_is(line->custom, "walconv.head")) {
        info->head = WAL__HEAD_MOVE;
    }
}

const struct wal__dialect wal__dialect_entries = {
    .name = "entries",
    .summary = "session entries, a session_header first",
    .headers = WAL__HEADERS_ONE,
    .line_fields = known_fields,
    .line_size = sizeof(struct known_line),
    .recognise = entries_recognise,
    .judge = entries_judge,
    .read_ops = &entries_read_ops,
    .write_ops = &entries_write_ops,
};
