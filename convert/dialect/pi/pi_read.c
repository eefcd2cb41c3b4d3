/*
 * pi_read.c - converts session files of pi, versions 1 to 3, to items.
 *
 * A line is an item. Messages of role `custom` (version 2: `hookMessage`),
 * custom_message entries and bashExecution messages become meta messages with
 * their kind as name. Version 1 identifies the first line that a compaction
 * keeps by its index, later versions by its id.
 *
 * Invariant: a line of version 3 that has its ids in the log can be written
 * unchanged.
 *
 * Threads: one thread at a time per reader.
 */
#include <string.h>

#include "convert/dialect/pi/pi_vocabulary.h"
#include "convert/model/dialect.h"
#include "convert/model/model_content.h"
#include "convert/model/model_write.h"
#include "format/bytes/assert.h"
#include "format/json/json_value.h"

struct pi {
    struct wal__json_span *ids; /* of the lines so far */
    size_t count;
    size_t capacity;
    int64_t version;
};

struct line {
    struct wal__entry entry; /* first: offsets in it are offsets in the line */
    struct wal__model_reader *reader;
    const struct wal__model_line *line;
    struct pi *pi;
    struct wal__json_span version;
    struct wal__json_token first_kept_index;
    struct wal__json_span message;
    struct wal__json_span bash[2]; /* a command and its output */
    bool has_no_provider;          /* those of the answer are not its own */
    bool has_no_model;
    bool is_excluded; /* they are not in the model's context */
};

#define LINE_AT(field) offsetof(struct line, field)

static const struct wal__field line_fields[] = {
    {"type", .at = WAL__ENTRY_AT(type)},
    {"version", .at = LINE_AT(version), .kind = WAL__FIELD_NUMBER},
    {"parentId", .kind = WAL__FIELD_KNOWN},
    {"message", .at = LINE_AT(message), .kind = WAL__FIELD_CONTAINER},
    {"firstKeptEntryIndex", .at = LINE_AT(first_kept_index),
     .kind = WAL__FIELD_TOKEN},
    {.key = NULL},
};

static const struct wal__field message_fields[] = {
    {"role", .at = WAL__ENTRY_AT(role)},
    {"content", .at = WAL__ENTRY_AT(content), .kind = WAL__FIELD_TOKEN},
    {"usage", .at = WAL__ENTRY_AT(usage), .kind = WAL__FIELD_CONTAINER},
    {"timestamp", .kind = WAL__FIELD_KNOWN},
    {"api", .kind = WAL__FIELD_KNOWN},
    {"display", .kind = WAL__FIELD_KNOWN},
    {.key = NULL},
};

/* Of an entry with a line of another dialect, as an export writes it. */
static const struct wal__field foreign_fields[] = {
    {"dialect", .at = WAL__ENTRY_AT(dialect)},
    {"aside", .at = WAL__ENTRY_AT(is_aside), .kind = WAL__FIELD_TRUE},
    {"line", .at = WAL__ENTRY_AT(line), .kind = WAL__FIELD_RAW},
    {.key = NULL},
};

static const struct wal__word roles[] = {
    {"user", .value = WAL__ROLE_USER},
    {"assistant",
     WAL__ROLE_ASSISTANT,
     {{"provider", .at = WAL__ITEM_AT(provider)},
      {"model", .at = WAL__ITEM_AT(model)},
      {"walconvNoProvider", .at = LINE_AT(has_no_provider),
       .kind = WAL__FIELD_TRUE},
      {"walconvNoModel", .at = LINE_AT(has_no_model), .kind = WAL__FIELD_TRUE},
      {"stopReason", .at = WAL__ENTRY_AT(stop)}}},
    {"toolResult",
     WAL__ROLE_TOOL,
     {{"toolCallId", .at = WAL__ITEM_AT(call)},
      {"toolName", .at = WAL__ITEM_AT(name)},
      {"isError", .at = WAL__ITEM_AT(is_error), .kind = WAL__FIELD_TRUE}}},
    {"system", .value = WAL__ROLE_SYSTEM},
    {"custom", WAL__ROLE_USER, {{"customType", .at = WAL__ITEM_AT(name)}}},
    {"hookMessage", WAL__ROLE_USER, {{"customType", .at = WAL__ITEM_AT(name)}}},
    {"bashExecution",
     WAL__ROLE_USER,
     {{"command", .at = LINE_AT(bash[0])},
      {"output", .at = LINE_AT(bash[1])},
      {"excludeFromContext", .at = LINE_AT(is_excluded),
       .kind = WAL__FIELD_TRUE}}},
    {.name = NULL},
};

static bool record_id(struct wal__model_reader *reader, struct pi *pi,
                      struct wal__json_span id)
{
    struct wal__json_span *ids = wal__arena_grow(
        reader->arena, pi->ids, pi->count, &pi->capacity, sizeof(ids[0]));

    if (ids == NULL) {
        return false;
    }
    pi->ids = ids;
    id = wal__arena_copy(reader->arena, id);
    WAL__ASSERT(pi->count < pi->capacity);
    pi->ids[pi->count++] = id;
    return id.data != NULL;
}

static bool read_content(struct line *line)
{
    return wal__content_read_item(line->entry.content, line->entry.calls,
                                  line->reader->scratch, &line->entry.item);
}

static void set_line(struct line *line)
{
    line->entry.item.kind = WAL__ITEM_LINE;
    line->entry.item.data = line->line->text;
}

/* "unknown" is written for an empty name. */
static void drop_unknown(struct wal__json_span *name)
{
    if (wal__model_text_is(*name, "unknown")) {
        name->size = 0;
    }
}

/* Reads a command that the user ran, and its output. */
static bool read_bash(struct line *line)
{
    struct wal__model_item *item = &line->entry.item;
    struct wal__model_blocks blocks = {.arena = line->reader->scratch};
    struct wal__json_span none = {NULL, 0};

    for (size_t i = 0; i < 2; i++) {
        struct wal__model_block *block =
            wal__model_blocks_add(&blocks, WAL__BLOCK_TEXT, none);
        if (block == NULL) {
            return false;
        }
        block->text = wal__model_or(line->bash[i], "\"\"");
    }
    item->is_meta = true;
    item->name = wal__model_literal("\"bashExecution\"");
    item->blocks = blocks.items;
    item->block_count = blocks.count;
    return true;
}

static bool read_message(struct line *line)
{
    struct wal__entry *entry = &line->entry;
    struct wal__model_item *item = &entry->item;
    const struct wal__word *role;
    bool is_hook;

    if (wal__word_read(line->message, message_fields, roles, &entry->role, line,
                       &item->fields, &role) != WAL__JSON_OK) {
        return false;
    }
    if (role == NULL) {
        set_line(line);
        return true;
    }
    if (line->is_excluded) {
        set_line(line); /* no other client can hide it from its model */
        return true;
    }
    if (wal__model_text_is(entry->role, "bashExecution")) {
        return read_bash(line);
    }
    is_hook = wal__model_text_is(entry->role, "hookMessage");
    item->is_meta = is_hook || wal__model_text_is(entry->role, "custom");
    item->raw.size = is_hook ? 0 : item->raw.size;
    item->role = role->value;
    item->stop = wal__word_stop(wal__pi_stops, entry->stop);
    drop_unknown(&item->provider);
    drop_unknown(&item->model);
    item->provider.size = line->has_no_provider ? 0 : item->provider.size;
    item->model.size = line->has_no_model ? 0 : item->model.size;
    if (item->role == WAL__ROLE_TOOL) {
        drop_unknown(&item->name);
    }
    return read_content(line) &&
           wal__fields_read(entry->usage, wal__pi_usage, &item->usage, NULL) ==
               WAL__JSON_OK;
}

/* Finds the first entry that a compaction keeps; empty if it is the
 * compaction itself. */
static void set_first_kept(const struct line *line,
                           struct wal__model_item *item)
{
    struct wal__json_token number = line->first_kept_index;
    int64_t index = 0;

    if (item->target.size == 0 && number.kind == WAL__JSON_NUMBER &&
        wal__json_integer(number.span, &index) == WAL__JSON_OK && index >= 0 &&
        (uint64_t)index < line->pi->count) {
        /* Index 0 is the header: all entries after it are kept. */
        item->target =
            line->pi->ids[index == 0 && line->pi->count > 1 ? 1 : index];
    }
    if (item->target.size == item->id.size &&
        memcmp(item->target.data, item->id.data, item->id.size) == 0) {
        item->target.size = 0;
    }
}

static bool read_custom(struct line *line)
{
    struct wal__entry *entry = &line->entry;
    struct wal__model_item *item = &entry->item;

    if (wal__model_text_is(item->name, "walconv.head")) {
        item->kind = WAL__ITEM_HEAD;
    } else if (wal__model_text_is(item->name, "walconv.line")) {
        if (wal__fields_read(item->data, foreign_fields, entry, NULL) !=
            WAL__JSON_OK) {
            return false;
        }
        (void)wal__entry_set_foreign(line->reader, entry);
    }
    return true;
}

static bool read_custom_message(struct line *line)
{
    struct wal__model_item *item = &line->entry.item;

    if (wal__model_text_is(item->name, "walconv.system")) {
        item->role = WAL__ROLE_SYSTEM;
        item->name.size = 0;
    } else {
        item->is_meta = true;
        if (wal__model_text_is(item->name, "walconv.meta")) {
            item->name.size = 0;
        }
    }
    return read_content(line);
}

/* Reads an entry; an unknown type becomes a LINE. False: no memory. */
static bool read_entry(struct line *line, const struct wal__word *type)
{
    struct wal__model_item *item = &line->entry.item;

    if (type == NULL || type->value == WAL__ITEM_HEADER) {
        set_line(line);
        return true;
    }
    item->kind = type->value;
    if (item->kind == WAL__ITEM_MESSAGE) {
        return wal__model_text_is(line->entry.type, "message")
                   ? read_message(line)
                   : read_custom_message(line);
    }
    if (item->kind == WAL__ITEM_COMPACTION) {
        set_first_kept(line, item);
    }
    return item->kind != WAL__ITEM_CUSTOM || read_custom(line);
}

static bool emit_header(struct line *line)
{
    struct wal__entry *entry = &line->entry;

    if (line->version.size > 0 &&
        wal__json_integer(line->version, &line->pi->version) != WAL__JSON_OK) {
        line->pi->version = 1;
    }
    if (line->pi->version == 3) {
        entry->session.raw = line->line->text;
        entry->session.dialect = line->reader->dialect;
    }
    entry->item.kind = WAL__ITEM_HEADER;
    entry->item.session = &entry->session;
    return wal__model_emit(line->reader, &entry->item);
}

static enum wal__json_status pi_line(struct wal__model_reader *reader,
                                     const struct wal__model_line *text)
{
    struct line line = {.reader = reader, .line = text, .pi = reader->state};
    struct wal__model_item *item = &line.entry.item;
    const struct wal__word *type;
    enum wal__json_status status;

    if (line.pi == NULL) {
        line.pi = wal__arena_calloc(reader->arena, sizeof(*line.pi));
        if (line.pi == NULL) {
            return WAL__JSON_NO_SPACE;
        }
        line.pi->version = 1;
        reader->state = line.pi;
    }
    item->id = text->id;
    item->parent = text->parent;
    item->time = text->time;
    status = wal__word_read(text->text, line_fields, wal__pi_entries,
                            &line.entry.type, &line, &item->fields, &type);
    if (status != WAL__JSON_OK) {
        return status;
    }
    if (!record_id(reader, line.pi, text->id)) {
        return WAL__JSON_NO_SPACE;
    }
    if (line.pi->count == 1 && type != NULL &&
        type->value == WAL__ITEM_HEADER) {
        return emit_header(&line) ? WAL__JSON_OK : WAL__JSON_NO_SPACE;
    }
    if (text->is_exact && line.pi->version == 3 &&
        line.first_kept_index.kind == WAL__JSON_NONE) {
        item->raw = text->text;
    }
    return read_entry(&line, type) && wal__model_emit(reader, item)
               ? WAL__JSON_OK
               : WAL__JSON_NO_SPACE;
}

const struct wal__dialect_read_ops wal__pi_read_ops = {
    .line = pi_line,
    .header = "{\"type\":\"session\",\"version\":3}",
};
