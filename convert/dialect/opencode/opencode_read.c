/*
 * opencode_read.c - converts sessions of OpenCode's storage to items.
 *
 * A message with its parts is an item, and one more for each tool result, which
 * is in the part of its call. Messages and parts are in the order of their
 * files. A summary is a compaction.
 *
 * Invariant: the items of a message are in the order of its parts.
 *
 * Threads: one thread at a time per reader.
 */
#include "convert/dialect/opencode/opencode_emit.h"
#include "convert/dialect/opencode/opencode_id.h"
#include "convert/dialect/opencode/opencode_part_read.h"
#include "convert/dialect/opencode/opencode_storage.h"
#include "convert/model/dialect.h"
#include "convert/model/vocabulary.h"

/* ----------------------------------------------------------- session --- */

static const struct wal__field session_fields[] = {
    {"id", .at = WAL__SESSION_AT(id)},
    {"directory", .at = WAL__SESSION_AT(cwd)},
    {"title", .at = WAL__SESSION_AT(title)},
    {"projectID", .at = WAL__SESSION_AT(project)},
    {"parentID", .at = WAL__SESSION_AT(parent)},
    {"created", .parent = "time", .at = WAL__SESSION_AT(time),
     .kind = WAL__FIELD_NUMBER},
    {"updated", .parent = "time", .at = WAL__SESSION_AT(updated),
     .kind = WAL__FIELD_NUMBER},
    {.key = NULL},
};

static bool emit_session(struct wal__opencode_storage *storage)
{
    struct wal__entry entry = {.item = {.kind = WAL__ITEM_HEADER}};
    struct wal__model_session *session = &entry.session;

    if (storage->info.size == 0 ||
        wal__fields_read(storage->info, session_fields, &entry, NULL) !=
            WAL__JSON_OK) {
        return true;
    }
    session->raw = storage->info;
    session->dialect = storage->reader->dialect;
    entry.item.session = session;
    /* The header may become an entry, so no item may have its id. */
    return (session->id.size == 0 ||
            wal__model_table_put(&storage->emitted_ids,
                                 wal__model_string_hash(0, session->id),
                                 session->id)) &&
           wal__model_emit(storage->reader, &entry.item);
}

/* ---------------------------------------------------------- messages --- */

struct info {
    struct wal__json_span role;
    struct wal__json_span id;
    struct wal__json_span time;
    struct wal__json_span provider[2]; /* of the message, of its model */
    struct wal__json_span model[2];
    struct wal__json_span finish;
    struct wal__json_span error;
    struct wal__json_span walconv_role;
    struct wal__json_span walconv_name;
    struct wal__json_span cache;
    struct wal__model_usage usage;
    bool is_summary;
};

#define INFO_AT(field) offsetof(struct info, field)

static const struct wal__field info_fields[] = {
    {"id", .at = INFO_AT(id)},
    {"role", .at = INFO_AT(role)},
    {"summary", .at = INFO_AT(is_summary), .kind = WAL__FIELD_TRUE},
    {"providerID", .at = INFO_AT(provider[0])},
    {"providerID", .parent = "model", .at = INFO_AT(provider[1])},
    {"modelID", .at = INFO_AT(model[0])},
    {"modelID", .parent = "model", .at = INFO_AT(model[1])},
    {"finish", .at = INFO_AT(finish)},
    {"name", .parent = "error", .at = INFO_AT(error)},
    {"role", .parent = "walconv", .at = INFO_AT(walconv_role)},
    {"name", .parent = "walconv", .at = INFO_AT(walconv_name)},
    {"created", .parent = "time", .at = INFO_AT(time),
     .kind = WAL__FIELD_NUMBER},
    {"cost", .at = INFO_AT(usage.cost), .kind = WAL__FIELD_NUMBER},
    {"input", .parent = "tokens", .at = INFO_AT(usage.input),
     .kind = WAL__FIELD_NUMBER},
    {"output", .parent = "tokens", .at = INFO_AT(usage.output),
     .kind = WAL__FIELD_NUMBER},
    {"reasoning", .parent = "tokens", .at = INFO_AT(usage.reasoning),
     .kind = WAL__FIELD_NUMBER},
    {"cache", .parent = "tokens", .at = INFO_AT(cache),
     .kind = WAL__FIELD_CONTAINER},
    {.key = NULL},
};

static const struct wal__field cache_fields[] = {
    {"read", WAL__USAGE_AT(cache_read), .kind = WAL__FIELD_NUMBER},
    {"write", WAL__USAGE_AT(cache_write), .kind = WAL__FIELD_NUMBER},
    {.key = NULL},
};

static const struct wal__word stops[] = {
    {"stop", .value = WAL__STOP_END},
    {"end_turn", .value = WAL__STOP_END},
    {"length", .value = WAL__STOP_LENGTH},
    {"tool-calls", .value = WAL__STOP_TOOL},
    {"content-filter", .value = WAL__STOP_REFUSAL},
    {"error", .value = WAL__STOP_ERROR},
    {.name = NULL},
};

/* Returns the first of two strings that is a name. */
static struct wal__json_span first_name(const struct wal__json_span names[2])
{
    struct wal__json_span name = names[names[0].size <= 2 ? 1 : 0];

    if (wal__model_text_is(name, "unknown")) {
        name.size = 0;
    }
    return name;
}

static enum wal__stop_reason read_stop(const struct info *info)
{
    if (wal__model_text_is(info->error, "MessageAbortedError")) {
        return WAL__STOP_ABORTED;
    }
    return info->error.size > 0 ? WAL__STOP_ERROR
                                : wal__word_stop(stops, info->finish);
}

static void set_role(struct wal__opencode_message *message,
                     const struct info *info)
{
    struct wal__model_item *item = &message->item;

    if (wal__model_text_is(info->role, "assistant")) {
        item->role = WAL__ROLE_ASSISTANT;
        item->provider = first_name(info->provider);
        item->model = first_name(info->model);
        item->stop = read_stop(info);
        item->usage = info->usage;
    } else if (wal__model_text_is(info->walconv_role, "system")) {
        item->role = WAL__ROLE_SYSTEM;
    } else if (wal__model_text_is(info->walconv_role, "meta")) {
        item->is_meta = true;
        item->name = info->walconv_name;
    }
}

static void read_message(struct wal__opencode_storage *storage,
                         const struct wal__opencode_document *document)
{
    struct wal__opencode_message message = {
        .storage = storage, .blocks = {.arena = storage->reader->scratch}};
    struct wal__model_item *item = &message.item;
    struct info info = {.is_summary = false};
    struct wal__json_span raw = {NULL, 0};
    struct wal__json_span id;
    size_t first_part;
    size_t part;

    item->kind = WAL__ITEM_MESSAGE;
    if (wal__fields_read(document->value, info_fields, &info, &item->fields) !=
            WAL__JSON_OK ||
        wal__fields_read(info.cache, cache_fields, &info.usage, NULL) !=
            WAL__JSON_OK) {
        return;
    }
    id = wal__opencode_storage_id(storage, document, info.id);
    item->id = id;
    item->time = info.time;
    set_role(&message, &info);
    part = wal__opencode_storage_first_part(storage, document, item->id);
    first_part = part;
    message.is_raw = wal__opencode_is_id(info.id, "msg_");
    while (part != WAL__OPENCODE_NO_PART && !storage->has_failed) {
        wal__opencode_part_read(&message, &storage->parts.items[part]);
        part = storage->parts.items[part].next;
    }
    if (info.is_summary) {
        wal__opencode_emit_summary(&message);
    } else {
        wal__opencode_flush(&message, true);
    }
    /* A summary goes with the mark before it, or both are made anew. */
    if (message.is_raw && (!info.is_summary || !storage->has_lost_mark)) {
        raw = wal__opencode_message_line(storage, document, first_part);
    } else if (info.is_summary) {
        storage->raw_prefix.size = 0;
        storage->has_lost_mark = false;
    }
    wal__opencode_emit_batch(storage, id, raw);
}

static enum wal__json_status
opencode_tree(struct wal__model_reader *reader,
              const struct wal__model_documents *tree)
{
    struct wal__opencode_storage storage;

    if (!wal__opencode_storage_read(&storage, reader, tree) ||
        !emit_session(&storage)) {
        return WAL__JSON_NO_SPACE;
    }
    for (size_t i = 0; i < storage.messages.count && !storage.has_failed; i++) {
        read_message(&storage, &storage.messages.items[i]);
    }
    wal__opencode_emit_prefix(&storage);
    wal__opencode_emit_deferred(&storage);
    return storage.has_failed ? WAL__JSON_NO_SPACE : WAL__JSON_OK;
}

/* Reads a message in one line; its last item has the line's id. */
static enum wal__json_status opencode_line(struct wal__model_reader *reader,
                                           const struct wal__model_line *line)
{
    struct wal__opencode_storage storage;

    if (!wal__opencode_storage_read_message(&storage, reader, line->text)) {
        return WAL__JSON_NO_SPACE;
    }
    storage.tip = line->parent;
    storage.line_id = line->id;
    for (size_t i = 0; i < storage.messages.count && !storage.has_failed; i++) {
        read_message(&storage, &storage.messages.items[i]);
    }
    storage.prefix_id = line->id;
    wal__opencode_emit_prefix(&storage);
    wal__opencode_emit_deferred(&storage);
    if (!storage.has_failed && storage.tip.data == line->parent.data &&
        storage.tip.size == line->parent.size) {
        /* The mark of a compaction has no item. */
        struct wal__model_item head = {
            .kind = WAL__ITEM_HEAD, .id = line->id, .parent = line->parent};
        storage.has_failed = !wal__model_emit(reader, &head);
    }
    return storage.has_failed ? WAL__JSON_NO_SPACE : WAL__JSON_OK;
}

const struct wal__dialect_read_ops wal__opencode_read_ops = {
    .documents = opencode_tree, .line = opencode_line};
