/*
 * sdk_read.c - converts session directories of sdk and spec11 to items.
 *
 * metadata.json is the header. A line of messages.jsonl is a message, with its
 * fields at the top level or in `message`. transcript.jsonl has the same
 * conversation as events; its lines are items of kind LINE on no branch.
 *
 * Invariant: a message that has its id in the log can be written unchanged.
 *
 * Threads: one thread at a time per reader.
 */
#include <string.h>

#include "convert/model/dialect.h"
#include "convert/model/model_content.h"
#include "convert/model/vocabulary.h"

/* Returns the last component of a path. */
static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

/* Files of a checkpoint may have any name, for example metadata.json. */
static bool is_checkpoint_file(const char *path)
{
    return strncmp(path, "checkpoints/", 12) == 0 ||
           strstr(path, "/checkpoints/") != NULL;
}

static bool sdk_stream(const char *path, uint32_t *stream)
{
    const char *name = base_name(path);

    if (is_checkpoint_file(path)) {
        return false;
    }
    if (strcmp(name, "messages.jsonl") == 0) {
        *stream = 0;
        return true;
    }
    if (strcmp(name, "transcript.jsonl") == 0) {
        *stream = 1;
        return true;
    }
    return false;
}

/* ---------------------------------------------------------- metadata --- */

static const struct wal__field metadata_fields[] = {
    {"session_id", .at = WAL__SESSION_AT(id)},
    {"id", .at = WAL__SESSION_AT(id)},
    {"cwd", .at = WAL__SESSION_AT(cwd)},
    {"created_at", .at = WAL__SESSION_AT(time)},
    {"updated_at", .at = WAL__SESSION_AT(updated)},
    {"model", .at = WAL__SESSION_AT(model)},
    {"agent_name", .at = WAL__SESSION_AT(agent)},
    {"exit_reason", .at = WAL__SESSION_AT(exit_reason)},
    {"parent_id", .at = WAL__SESSION_AT(parent)},
    {"parent_session_id", .at = WAL__SESSION_AT(parent)},
    {"project_hash", .at = WAL__SESSION_AT(project)},
    {"title", .at = WAL__SESSION_AT(title)},
    {.key = NULL},
};

struct metadata_search {
    struct wal__model_reader *reader;
    bool is_found;
    bool has_stopped;
};

static bool emit_metadata(void *ctx, const char *key,
                          struct wal__json_span value)
{
    struct metadata_search *search = ctx;
    struct wal__entry entry = {
        .item = {.kind = WAL__ITEM_HEADER},
        .session = {.raw = value, .dialect = search->reader->dialect}};

    if (strcmp(base_name(key), "metadata.json") != 0 ||
        is_checkpoint_file(key) ||
        wal__fields_read(value, metadata_fields, &entry, NULL) !=
            WAL__JSON_OK) {
        return true;
    }
    entry.item.session = &entry.session;
    search->is_found = true;
    search->has_stopped = !wal__model_emit(search->reader, &entry.item);
    return false;
}

static enum wal__json_status sdk_tree(struct wal__model_reader *reader,
                                      const struct wal__model_documents *tree)
{
    struct metadata_search search = {.reader = reader};

    if (!tree->scan(tree->ctx, "", emit_metadata, &search) &&
        !search.is_found) {
        return WAL__JSON_NO_SPACE;
    }
    return search.has_stopped ? WAL__JSON_NO_SPACE : WAL__JSON_OK;
}

/* ---------------------------------------------------------- messages --- */

static const struct wal__field message_fields[] = {
    {"role", .at = WAL__ENTRY_AT(role)},
    {"content", .at = WAL__ENTRY_AT(content), .kind = WAL__FIELD_TOKEN},
    {"tool_calls", .at = WAL__ENTRY_AT(calls), .kind = WAL__FIELD_TOKEN},
    {"uuid", .kind = WAL__FIELD_KNOWN},
    {"id", .kind = WAL__FIELD_KNOWN},
    {"timestamp", .kind = WAL__FIELD_KNOWN},
    {.key = NULL},
};

static const struct wal__word roles[] = {
    {"user", .value = WAL__ROLE_USER},
    {"assistant", .value = WAL__ROLE_ASSISTANT},
    {"system", .value = WAL__ROLE_SYSTEM},
    {"developer", .value = WAL__ROLE_SYSTEM},
    {"tool",
     WAL__ROLE_TOOL,
     {{"tool_call_id", .at = WAL__ITEM_AT(call)},
      {"name", .at = WAL__ITEM_AT(name)}}},
    {.name = NULL},
};

static bool emit_message(struct wal__model_reader *reader,
                         struct wal__entry *entry,
                         struct wal__json_span message,
                         struct wal__json_span line)
{
    struct wal__content_pieces pieces = {.arena = reader->scratch};
    struct wal__model_item *item = &entry->item;
    const struct wal__word *role;

    if (wal__word_read(message, message_fields, roles, &entry->role, entry,
                       &item->fields, &role) != WAL__JSON_OK) {
        return false;
    }
    if (role == NULL) {
        item->kind = WAL__ITEM_LINE;
        item->data = line;
        return wal__model_emit(reader, item);
    }
    item->kind = WAL__ITEM_MESSAGE;
    item->role = role->value;
    if (item->role == WAL__ROLE_USER) {
        return wal__content_split(&pieces, item, entry->content) &&
               wal__content_emit(&pieces, item->parent, reader);
    }
    return wal__content_read_item(entry->content, entry->calls, reader->scratch,
                                  item) &&
           wal__model_emit(reader, item);
}

static enum wal__json_status sdk_line(struct wal__model_reader *reader,
                                      const struct wal__model_line *line)
{
    struct wal__json_member nested = {.key = "message"};
    struct wal__entry entry = {.item = {.stream = line->stream,
                                        .id = line->id,
                                        .parent = line->parent,
                                        .time = line->time}};
    struct wal__model_item *item = &entry.item;
    enum wal__json_status status;
    bool is_done;

    status = wal__model_members(line->text, &nested, 1, NULL);
    if (status != WAL__JSON_OK) {
        return status;
    }
    if (line->is_exact) {
        item->raw = line->text;
    }
    if (line->stream != 0) {
        item->kind = WAL__ITEM_LINE;
        item->raw = line->text;
        item->is_off_branch = true;
        item->data = line->text;
        is_done = wal__model_emit(reader, item);
    } else {
        is_done = emit_message(reader, &entry,
                               nested.value.kind == WAL__JSON_OBJECT
                                   ? nested.value.span
                                   : line->text,
                               line->text);
    }
    return is_done ? WAL__JSON_OK : WAL__JSON_NO_SPACE;
}

const struct wal__dialect_read_ops wal__sdk_read_ops = {
    .documents = sdk_tree, .line = sdk_line, .stream = sdk_stream};

const struct wal__dialect_read_ops wal__spec11_read_ops = {
    .documents = sdk_tree, .line = sdk_line, .stream = sdk_stream};
