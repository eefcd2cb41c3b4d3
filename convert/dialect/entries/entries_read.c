/*
 * entries_read.c - converts session entries to items.
 *
 * Applications define their payloads. Messages are read in the form of current
 * APIs: role and content, calls as blocks or in tool_calls, results as messages
 * of role tool or as blocks of a user's message. entries_write.c adds members
 * that this file reads.
 *
 * Invariant: an entry of any other meaning is an item of kind LINE.
 *
 * Threads: one thread at a time per reader.
 */
#include "convert/dialect/entries/entries_vocabulary.h"
#include "convert/model/dialect.h"
#include "convert/model/model_content.h"
#include "convert/model/model_write.h"
#include "format/json/json_character.h"

struct entry {
    struct wal__entry entry; /* first: offsets in it are offsets here */
    struct wal__model_reader *reader;
    const struct wal__model_line *line;
    struct wal__json_span payload;
};

static bool emit_line(struct entry *entry)
{
    entry->entry.item.kind = WAL__ITEM_LINE;
    entry->entry.item.dialect = NULL;
    entry->entry.item.data = entry->line->text;
    return wal__model_emit(entry->reader, &entry->entry.item);
}

/* ----------------------------------------------------------- message --- */

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

/* Other names for wal__entries_usage. */
static const struct wal__field api_usage[] = {
    {"input_tokens", WAL__USAGE_AT(input), .kind = WAL__FIELD_NUMBER},
    {"output_tokens", WAL__USAGE_AT(output), .kind = WAL__FIELD_NUMBER},
    {"cache_read_input_tokens", WAL__USAGE_AT(cache_read),
     .kind = WAL__FIELD_NUMBER},
    {"cache_creation_input_tokens", WAL__USAGE_AT(cache_write),
     .kind = WAL__FIELD_NUMBER},
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
    struct wal__content_pieces pieces = {.arena = entry->reader->scratch};
    struct wal__entry *to = &entry->entry;
    struct wal__model_item *item = &to->item;
    const struct wal__word *role;

    if (wal__model_members(entry->payload, &nested, 1, NULL) != WAL__JSON_OK ||
        wal__word_read(nested.value.kind == WAL__JSON_OBJECT ? nested.value.span
                                                             : entry->payload,
                       message_fields, roles, &to->role, to, &item->fields,
                       &role) != WAL__JSON_OK ||
        wal__fields_read(to->usage, api_usage, &item->usage, NULL) !=
            WAL__JSON_OK ||
        wal__fields_read(to->usage, wal__entries_usage, &item->usage, NULL) !=
            WAL__JSON_OK) {
        return false;
    }
    if (role == NULL) {
        return emit_line(entry);
    }
    item->kind = WAL__ITEM_MESSAGE;
    item->role = role->value;
    item->stop = wal__word_stop(wal__entries_stops, to->stop);
    item->dialect = wal__model_find_dialect(entry->reader, to->dialect);
    if (item->role != WAL__ROLE_USER) {
        return wal__content_read_item(to->content, to->calls,
                                      entry->reader->scratch, item) &&
               wal__model_emit(entry->reader, item);
    }
    if (!item->is_meta) {
        item->name.size = 0;
    }
    return wal__content_split(&pieces, item, to->content) &&
           wal__content_emit(&pieces, item->parent, entry->reader);
}

/* ----------------------------------------------------- other entries --- */

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
    struct wal__json_member cwd = {.key = "cwd"};
    struct wal__model_session *session = &entry->entry.session;

    session->time = entry->line->time;
    session->raw = entry->line->text;
    session->dialect = entry->reader->dialect;
    if (session->cwd.size == 0 &&
        wal__model_members(entry->line->text, &cwd, 1, NULL) == WAL__JSON_OK) {
        session->cwd = wal__member_string(&cwd);
    }
    if (session->id.size == 0) {
        session->id = entry->line->id;
    }
    entry->entry.item.session = session;
    return wal__model_emit(entry->reader, &entry->entry.item);
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
        (void)wal__entry_set_foreign(entry->reader, &entry->entry);
    }
}

static bool emit_other(struct entry *entry)
{
    struct wal__entry *to = &entry->entry;
    struct wal__model_item *item = &to->item;
    const struct wal__word *type;

    if (wal__word_read(entry->payload, payload_fields, wal__entries_types,
                       &to->type, to, &item->fields, &type) != WAL__JSON_OK) {
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
    return wal__model_emit(entry->reader, item);
}

static const struct wal__field line_fields[] = {
    {"type", .at = WAL__ENTRY_AT(type)},
    {"payload", .at = offsetof(struct entry, payload),
     .kind = WAL__FIELD_CONTAINER},
    {"isSidechain", .parent = "meta", .at = WAL__ITEM_AT(is_sidechain),
     .kind = WAL__FIELD_TRUE},
    {"id", .kind = WAL__FIELD_KNOWN},
    {"parentId", .kind = WAL__FIELD_KNOWN},
    {"timestamp", .kind = WAL__FIELD_KNOWN},
    {"runId", .kind = WAL__FIELD_KNOWN},
    {.key = NULL},
};

static enum wal__json_status entries_line(struct wal__model_reader *reader,
                                          const struct wal__model_line *line)
{
    struct entry entry = {.reader = reader, .line = line};
    struct wal__model_item *item = &entry.entry.item;
    enum wal__json_status status;

    item->stream = line->stream;
    item->id = line->id;
    item->parent = line->parent;
    item->time = line->time;
    status = wal__fields_read(line->text, line_fields, &entry, &item->fields);
    if (status != WAL__JSON_OK) {
        return status;
    }
    entry.payload = wal__model_or(entry.payload, "{}");
    if (line->is_exact) {
        item->raw = line->text;
    }
    return (wal__model_text_is(entry.entry.type, "message")
                ? emit_message(&entry)
                : emit_other(&entry))
               ? WAL__JSON_OK
               : WAL__JSON_NO_SPACE;
}

const struct wal__dialect_read_ops wal__entries_read_ops = {.line =
                                                                entries_line};
