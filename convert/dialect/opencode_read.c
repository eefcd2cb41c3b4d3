/*
 * opencode_read.c - converts sessions of OpenCode's storage, a tree of JSON files, to items.
 *
 * A message is a file, and each of its parts is a file. A part names its message or is in the
 * folder of that name. A session that the client exported is one file. Messages, and the parts of
 * each message, are in the order of their files. They are documents and no lines, so no line is
 * recognised.
 *
 * The content of a message is one item. Each tool result, which is in the part of its call, is a
 * separate item. Results end a step, unless they name the item that they follow. A summary is a
 * compaction. The items of a message are collected and emitted together, so that the first one can
 * have the whole message as its line: {"info":...,"parts":[...]}, the form in which the client
 * exports it. The ids in a part that is kept as a raw block are removed; the writer adds them
 * again.
 *
 * Messages of version 2, and the order of messages of both versions: opencode_second.c.
 *
 * Invariant: the items of a message are in the order of its parts; each is a child of the previous
 * one, and has a unique id.
 *
 * Threads: one thread at a time per reader.
 */
#include "convert/model/dialect.h"

#include <string.h>

#include "convert/dialect/opencode.h"
#include "convert/dialect/opencode_read.h"
#include "convert/model/model_content.h"
#include "convert/model/model_member.h"
#include "convert/model/model_table.h"
#include "convert/model/model_write.h"
#include "format/bytes/assert.h"
#include "format/json/json_out.h"
#include "format/json/json_text.h"
#include "format/payload/timestamp.h"

/* --- the files ----------------------------------------------------------- */

struct part_list {
    size_t first;
    size_t last;
};

static struct opencode_document *add(struct opencode_storage *storage,
                                     struct opencode_documents *documents)
{
    struct opencode_document *items =
        wal__arena_grow(storage->reader->scratch, documents->items, documents->count,
                        &documents->capacity, sizeof(items[0]));

    if (items == NULL) {
        storage->has_failed = true;
        return NULL;
    }
    documents->items = items;
    documents->items[documents->count] = (struct opencode_document){.next = OPENCODE_NO_PART};
    return &documents->items[documents->count++];
}

/* Returns the path relative to a folder of that name in it, or NULL. */
static const char *path_below(const char *path, const char *name)
{
    size_t size = strlen(name);

    for (const char *at = path; at != NULL;) {
        if (strncmp(at, name, size) == 0 && at[size] == '/') {
            return at + size + 1;
        }
        at = strchr(at, '/');
        at = at != NULL ? at + 1 : NULL;
    }
    return NULL;
}

/* Returns the first component of a path without .json. */
static struct wal__json_span file_stem(const char *path)
{
    size_t size = strcspn(path, "/");

    if (size > 5 && memcmp(path + size - 5, ".json", 5) == 0) {
        size -= 5;
    }
    return (struct wal__json_span){(const uint8_t *)path, size};
}

static bool set_name(struct opencode_storage *storage, struct opencode_document *document,
                     const char *relative)
{
    const char *slash = strrchr(relative, '/');

    document->name =
        wal__arena_copy(storage->reader->scratch, file_stem(slash != NULL ? slash + 1 : relative));
    storage->has_failed |= document->name.data == NULL;
    return !storage->has_failed;
}

/* Returns the hash of the string's text, equal to that of the same name. */
static uint64_t hash_id(const struct opencode_storage *storage, struct wal__json_span id)
{
    struct wal__json_span text = wal__arena_unescape(storage->reader->scratch, id);

    return text.size > 0 ? wal__model_hash(0, text) : 0;
}

static void add_part(struct opencode_storage *storage, const char *relative,
                     struct wal__json_span value)
{
    struct opencode_document *part = add(storage, &storage->parts);
    struct wal__json_span message = wal__model_string(value, "messageID");
    const char *last = strrchr(relative, '/');
    const char *at = relative;

    if (part == NULL || !set_name(storage, part, relative)) {
        return;
    }
    part->value = value;
    if (message.size > 0) {
        part->owner = hash_id(storage, message);
        return;
    }
    for (const char *slash = at; (slash = strchr(at, '/')) != last;) {
        at = slash + 1;
    }
    part->owner = last != NULL ? wal__model_hash(0, file_stem(at)) : 0;
}

/* Names a message without a file by its number. */
static bool make_name(struct opencode_storage *storage, struct opencode_document *message)
{
    storage->has_failed |=
        !wal__model_number(storage->reader->scratch, storage->messages.count, &message->name);
    return !storage->has_failed;
}

static void add_exported_parts(struct opencode_storage *storage, struct wal__json_span parts,
                               struct wal__json_span message)
{
    struct wal__json_scan scan;
    struct wal__json_token value;

    wal__model_array_begin(&scan, parts);
    while (!storage->has_failed && wal__model_array_next(&scan, &value)) {
        struct opencode_document *part = add(storage, &storage->parts);
        if (part != NULL) {
            part->value = value.span;
            part->name = message;
            part->owner = wal__model_hash(0, message);
        }
    }
}

/* Adds an exported message: {info, parts}. */
static void add_exported_message(struct opencode_storage *storage, struct wal__json_span value)
{
    struct wal__json_member members[2] = {{.key = "info"}, {.key = "parts"}};
    struct opencode_document *message;

    if (wal__model_members(value, members, 2, NULL) != WAL__JSON_OK) {
        return;
    }
    message = add(storage, &storage->messages);
    if (message != NULL && make_name(storage, message)) {
        message->value = wal__member_raw(&members[0]);
        add_exported_parts(storage, wal__member_container(&members[1]), message->name);
    }
}

/* Adds an exported session: {info, messages:[{info, parts}]}. A part belongs to the message that
 * contains it, whatever its messageID. */
static void add_exported_session(struct opencode_storage *storage, struct wal__json_span value)
{
    struct wal__json_member session[2] = {{.key = "info"}, {.key = "messages"}};
    struct wal__json_scan scan;
    struct wal__json_token token;

    if (wal__model_members(value, session, 2, NULL) != WAL__JSON_OK ||
        session[0].value.kind != WAL__JSON_OBJECT || session[1].value.kind != WAL__JSON_ARRAY) {
        return;
    }
    if (storage->info.size == 0) {
        storage->info = session[0].value.span;
    }
    wal__model_array_begin(&scan, session[1].value.span);
    while (!storage->has_failed && wal__model_array_next(&scan, &token)) {
        add_exported_message(storage, token.span);
    }
}

static bool add_document(void *ctx, const char *key, struct wal__json_span value)
{
    struct opencode_storage *storage = ctx;
    struct opencode_document *message;
    const char *relative;

    if ((relative = path_below(key, "part")) != NULL) {
        add_part(storage, relative, value);
    } else if ((relative = path_below(key, "message")) != NULL) {
        message = add(storage, &storage->messages);
        if (message != NULL && set_name(storage, message, relative)) {
            message->value = value;
        }
    } else if (path_below(key, "session") != NULL) {
        storage->info = storage->info.size == 0 ? value : storage->info;
    } else {
        add_exported_session(storage, value);
    }
    return !storage->has_failed;
}

/* Links the parts of each message. */
static bool link_parts(struct opencode_storage *storage)
{
    for (size_t i = 0; i < storage->parts.count; i++) {
        struct opencode_document *part = &storage->parts.items[i];
        struct wal__json_span found;
        struct part_list *part_list;
        if (part->owner == 0) {
            continue;
        }
        if (wal__model_table_get(&storage->part_lists, part->owner, &found)) {
            part_list = (struct part_list *)(uintptr_t)found.data;
            WAL__ASSERT(part_list->last < i);
            storage->parts.items[part_list->last].next = i;
            part_list->last = i;
            continue;
        }
        part_list = wal__arena_alloc(storage->reader->scratch, sizeof(*part_list));
        if (part_list == NULL ||
            !wal__model_table_put(
                &storage->part_lists, part->owner,
                (struct wal__json_span){(const uint8_t *)part_list, sizeof(*part_list)})) {
            return false;
        }
        *part_list = (struct part_list){i, i};
    }
    return true;
}

/* Returns the first part of the message with that id, or OPENCODE_NO_PART. */
static size_t opencode_storage_first_part(const struct opencode_storage *storage,
                                          const struct opencode_document *message,
                                          struct wal__json_span id)
{
    uint64_t name = wal__model_hash(0, message->name);
    uint64_t hash = hash_id(storage, id);
    struct wal__json_span found;

    if ((hash != 0 && wal__model_table_get(&storage->part_lists, hash, &found)) ||
        wal__model_table_get(&storage->part_lists, name, &found)) {
        return ((const struct part_list *)(uintptr_t)found.data)->first;
    }
    return OPENCODE_NO_PART;
}

static void init(struct opencode_storage *storage, struct wal__model_reader *reader)
{
    *storage = (struct opencode_storage){.reader = reader,
                                         .part_lists = {.arena = reader->scratch},
                                         .emitted_ids = {.arena = reader->scratch},
                                         .deferred = {.arena = reader->scratch}};
}

/* The functions below report failures in the storage's has_failed. */

/* Returns the line of a message, in scratch. */
static struct wal__json_span opencode_message_line(struct opencode_storage *storage,
                                                   const struct opencode_document *message,
                                                   size_t first_part)
{
    size_t capacity = message->value.size + 32;
    struct wal__json_memory text = {.size = 0};
    struct wal__json_out out = {.put = wal__json_memory_put, .ctx = &text};

    for (size_t i = first_part; i != OPENCODE_NO_PART; i = storage->parts.items[i].next) {
        capacity += storage->parts.items[i].value.size + 1;
    }
    text.data = wal__arena_alloc(storage->reader->scratch, capacity);
    text.capacity = capacity;
    if (text.data == NULL) {
        storage->has_failed = true;
        return (struct wal__json_span){NULL, 0};
    }
    wal__json_out_open(&out, '{');
    wal__json_out_key(&out, "info");
    wal__json_out_bytes(&out, message->value.data, message->value.size);
    out.has_value = true;
    wal__json_out_member_open(&out, "parts", '[');
    for (size_t i = first_part; i != OPENCODE_NO_PART; i = storage->parts.items[i].next) {
        wal__json_out_value(&out, storage->parts.items[i].value);
    }
    wal__json_out_close(&out, ']');
    wal__json_out_close(&out, '}');
    return (struct wal__json_span){text.data, text.size};
}

/* --- parts --------------------------------------------------------------- */

/* The functions below report failures in the storage's has_failed. */

static const struct wal__field part_fields[] = {
    {"id", .at = PART_AT(id)},
    {"type", .at = PART_AT(type)},
    {"text", .at = PART_AT(text)},
    {"synthetic", .at = PART_AT(is_synthetic), .kind = WAL__FIELD_TRUE},
    {"metadata", .at = PART_AT(metadata), .kind = WAL__FIELD_CONTAINER},
    {"callID", .at = PART_AT(call)},
    {"tool", .at = PART_AT(tool)},
    {"state", .at = PART_AT(state), .kind = WAL__FIELD_CONTAINER},
    {"mime", .at = PART_AT(mime)},
    {"url", .at = PART_AT(url)},
    {"tail_start_id", .at = PART_AT(first_kept)},
    {.key = NULL},
};

static const struct wal__field state_fields[] = {
    {"status", .at = PART_AT(status)},
    {"input", .at = PART_AT(input), .kind = WAL__FIELD_NON_NULL},
    {"output", .at = PART_AT(output), .kind = WAL__FIELD_TOKEN},
    {"error", .at = PART_AT(error), .kind = WAL__FIELD_TOKEN},
    {"end", .parent = "time", .at = PART_AT(end), .kind = WAL__FIELD_NUMBER},
    {"attachments", .at = PART_AT(attachments), .kind = WAL__FIELD_CONTAINER},
    {"walconvContent", .parent = "metadata", .at = PART_AT(content), .kind = WAL__FIELD_TOKEN},
    {"walconvAlone", .parent = "metadata", .at = PART_AT(is_orphan), .kind = WAL__FIELD_TRUE},
    {"walconvAfter", .parent = "metadata", .at = PART_AT(after)},
    {.key = NULL},
};

/* Reads a part of an unknown type as a raw block, without its ids. */
static void read_raw(struct opencode_message *message, struct wal__json_span part)
{
    static const struct wal__json_override ids[] = {
        {"id", {NULL, 0}}, {"sessionID", {NULL, 0}}, {"messageID", {NULL, 0}}};
    struct wal__arena *arena = message->storage->reader->scratch;
    struct wal__json_memory raw = {.data = wal__arena_alloc(arena, part.size + 2),
                                   .capacity = part.size + 2};
    struct wal__json_out out = {.put = wal__json_memory_put, .ctx = &raw};
    struct wal__model_block *block = wal__opencode_add_block(message, WAL__BLOCK_RAW);

    if (raw.data == NULL || block == NULL) {
        message->storage->has_failed = true;
        return;
    }
    wal__json_out_overridden(&out, part, ids, 3);
    block->raw = (struct wal__json_span){raw.data, raw.size};
}

static void read_text(struct opencode_message *message, const struct opencode_part *part)
{
    struct wal__model_block *block = wal__opencode_add_block(message, WAL__BLOCK_TEXT);

    message->is_of_person |= !part->is_synthetic;
    if (block == NULL) {
        return;
    }
    block->text = wal__model_or(part->text, "\"\"");
    if (part->is_synthetic && message->item.role == WAL__ROLE_USER) {
        wal__opencode_add_synthetic(message, block);
    }
}

static void read_image(struct opencode_message *message, const struct opencode_part *part,
                       struct wal__model_block *block)
{
    struct wal__arena *arena = message->storage->reader->scratch;

    if (!wal__model_set_image_url(arena, block, part->url)) {
        message->storage->has_failed = true;
    }
}

static bool is_image(const struct opencode_part *part)
{
    return part->mime.size > 7 && memcmp(part->mime.data, "\"image/", 7) == 0 && part->url.size > 0;
}

static void read_file(struct opencode_message *message, const struct opencode_part *part,
                      struct wal__json_span json)
{
    struct wal__model_block *block;

    message->is_of_person = true;
    if (!is_image(part)) {
        read_raw(message, json);
        return;
    }
    block = wal__opencode_add_block(message, WAL__BLOCK_IMAGE);
    if (block != NULL) {
        read_image(message, part, block);
    }
}

/* Reads the attachments of a result. */
static bool read_attachments(struct opencode_message *message, struct wal__model_blocks *blocks,
                             struct wal__json_span attachments)
{
    const struct wal__json_span none = {NULL, 0};
    struct wal__json_scan scan;
    struct wal__json_token value;

    wal__model_array_begin(&scan, attachments);
    while (wal__model_array_next(&scan, &value)) {
        struct opencode_part part = {.is_orphan = false};
        struct wal__model_block *block;
        if (wal__fields_read(value.span, part_fields, &part, NULL) != WAL__JSON_OK) {
            return false;
        }
        block = wal__model_blocks_add(blocks, is_image(&part) ? WAL__BLOCK_IMAGE : WAL__BLOCK_RAW,
                                      none);
        if (block == NULL) {
            return false;
        }
        if (block->kind == WAL__BLOCK_IMAGE) {
            read_image(message, &part, block);
        } else {
            block->raw = value.span;
        }
    }
    return true;
}

static bool read_result_content(struct opencode_message *message, const struct opencode_part *part,
                                struct wal__model_item *result)
{
    struct wal__model_blocks blocks = {.arena = message->storage->reader->scratch};
    bool has_content = part->content.kind == WAL__JSON_ARRAY;
    struct wal__json_token text = result->is_error ? part->error : part->output;

    if (!wal__content_read(has_content ? part->content : text, &blocks, &result->fields) ||
        (!has_content && !read_attachments(message, &blocks, part->attachments))) {
        return false;
    }
    result->blocks = blocks.items;
    result->block_count = blocks.count;
    return true;
}

static void read_tool_result(struct opencode_message *message, const struct opencode_part *part)
{
    bool is_error = wal__model_text_is(part->status, "error");
    struct wal__model_item *item;
    struct wal__model_item result = {
        .kind = WAL__ITEM_MESSAGE,
        .role = WAL__ROLE_TOOL,
        .is_error = is_error,
        .id = message->part,
        .call = part->call,
        .name = part->tool,
        .time = part->end.size > 0 ? part->end : message->item.time,
    };

    if (!wal__opencode_has_result(part->status)) {
        return;
    }
    if (!read_result_content(message, part, &result)) {
        message->storage->has_failed = true;
        return;
    }
    if (part->after.size > 2 && wal__opencode_defer(message->storage, part->after, &result)) {
        message->is_raw = false; /* its items are not together */
        return;
    }
    item = wal__opencode_add_result(message);
    if (item == NULL) {
        message->storage->has_failed = true;
        return;
    }
    *item = result;
}

static void read_tool(struct opencode_message *message, struct opencode_part *part)
{
    struct wal__model_block *block;

    if (wal__fields_read(part->state, state_fields, part, NULL) != WAL__JSON_OK) {
        return;
    }
    if (!part->is_orphan) {
        block = wal__opencode_add_block(message, WAL__BLOCK_TOOL_CALL);
        if (block == NULL) {
            return;
        }
        block->id = part->call;
        block->name = part->tool;
        block->arguments = wal__content_unwrap_arguments(part->input);
    }
    read_tool_result(message, part);
}

/* Reads the next part of a message. */
static void opencode_part_read(struct opencode_message *message,
                               const struct opencode_document *document)
{
    struct opencode_part part = {.is_orphan = false};

    if (wal__fields_read(document->value, part_fields, &part, NULL) != WAL__JSON_OK) {
        message->is_raw = false;
        return;
    }
    message->part = wal__opencode_storage_id(message->storage, document, part.id);
    /* The parts of a message are read in the order of their ids. */
    message->is_raw &= wal__opencode_is_id(part.id, "prt_") &&
                       (message->last_part.size != part.id.size ||
                        memcmp(message->last_part.data, part.id.data, part.id.size) < 0);
    message->last_part = part.id;
    if (message->is_emitted && message->blocks.count == 0) {
        message->item.id = message->part; /* a new step begins */
    }
    if (wal__model_text_is(part.type, "text")) {
        read_text(message, &part);
    } else if (wal__model_text_is(part.type, "reasoning")) {
        wal__opencode_read_reasoning(message, &part);
    } else if (wal__model_text_is(part.type, "tool")) {
        read_tool(message, &part);
    } else if (wal__model_text_is(part.type, "step-start") ||
               wal__model_text_is(part.type, "step-finish")) {
        message->item.fields++;
        if (message->result_count > 0) {
            wal__opencode_flush(message, false);
        }
    } else if (wal__model_text_is(part.type, "compaction") &&
               message->item.role == WAL__ROLE_USER) {
        message->has_compaction_part = true;
        message->storage->first_kept = part.first_kept;
    } else if (wal__model_text_is(part.type, "file")) {
        read_file(message, &part, document->value);
    } else {
        message->is_of_person = true;
        read_raw(message, document->value);
    }
}

/* --- session ------------------------------------------------------------- */

static const struct wal__field session_fields[] = {
    {"id", .at = WAL__SESSION_AT(id)},
    {"directory", .at = WAL__SESSION_AT(cwd)},
    {"title", .at = WAL__SESSION_AT(title)},
    {"projectID", .at = WAL__SESSION_AT(project)},
    {"parentID", .at = WAL__SESSION_AT(parent)},
    {"created", .parent = "time", .at = WAL__SESSION_AT(time), .kind = WAL__FIELD_NUMBER},
    {"updated", .parent = "time", .at = WAL__SESSION_AT(updated), .kind = WAL__FIELD_NUMBER},
    {.key = NULL},
};

static bool emit_session(struct opencode_storage *storage)
{
    struct wal__entry entry = {.item = {.kind = WAL__ITEM_HEADER}};
    struct wal__model_session *session = &entry.session;

    if (storage->info.size == 0 ||
        wal__fields_read(storage->info, session_fields, &entry, NULL) != WAL__JSON_OK) {
        return true;
    }
    session->raw = storage->info;
    session->dialect = storage->reader->dialect;
    entry.item.session = session;
    /* The header may become an entry, so no item may have its id. */
    return (session->id.size == 0 ||
            wal__model_table_put(&storage->emitted_ids, wal__model_string_hash(0, session->id),
                                 session->id)) &&
           wal__model_emit(storage->reader, &entry.item);
}

/* --- messages ------------------------------------------------------------ */

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
    {"created", .parent = "time", .at = INFO_AT(time), .kind = WAL__FIELD_NUMBER},
    {"created", .parent = "time", .at = INFO_AT(time)},
    {"position", .kind = WAL__FIELD_KNOWN},
    {"cost", .at = INFO_AT(usage.cost), .kind = WAL__FIELD_NUMBER},
    {"input", .parent = "tokens", .at = INFO_AT(usage.input), .kind = WAL__FIELD_NUMBER},
    {"output", .parent = "tokens", .at = INFO_AT(usage.output), .kind = WAL__FIELD_NUMBER},
    {"reasoning", .parent = "tokens", .at = INFO_AT(usage.reasoning), .kind = WAL__FIELD_NUMBER},
    {"cache", .parent = "tokens", .at = INFO_AT(cache), .kind = WAL__FIELD_CONTAINER},
    {.key = NULL},
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
                                : wal__word_stop(wal__opencode_stops, info->finish);
}

static void set_role(struct opencode_message *message, const struct info *info)
{
    struct wal__model_item *item = &message->item;

    if (wal__model_text_is(info->role, "assistant")) {
        item->role = WAL__ROLE_ASSISTANT;
        item->provider = first_name(info->provider);
        item->model = first_name(info->model);
        item->stop = read_stop(info);
        item->usage = info->usage;
        message->storage->has_failed |=
            !wal__model_add_reasoning(message->storage->reader->scratch, &item->usage);
    } else if (wal__model_text_is(info->walconv_role, "system")) {
        item->role = WAL__ROLE_SYSTEM;
    } else if (wal__model_text_is(info->walconv_role, "meta")) {
        item->is_meta = true;
        item->name = info->walconv_name;
    }
}

static void read_message(struct opencode_storage *storage, const struct opencode_document *document)
{
    struct opencode_message message = {.storage = storage,
                                       .blocks = {.arena = storage->reader->scratch},
                                       .synthetic = {.arena = storage->reader->scratch}};
    struct wal__model_item *item = &message.item;
    struct info info = {.is_summary = false};
    struct wal__json_span raw = {NULL, 0};
    struct wal__json_span id;
    size_t first_part;
    size_t part;

    item->kind = WAL__ITEM_MESSAGE;
    if (wal__fields_read(document->value, info_fields, &info, &item->fields) != WAL__JSON_OK ||
        wal__fields_read(info.cache, wal__opencode_cache_fields, &info.usage, NULL) !=
            WAL__JSON_OK) {
        return;
    }
    id = wal__opencode_storage_id(storage, document, info.id);
    item->id = id;
    item->time = info.time;
    set_role(&message, &info);
    part = opencode_storage_first_part(storage, document, item->id);
    first_part = part;
    message.is_raw = wal__opencode_is_id(info.id, "msg_");
    while (part != OPENCODE_NO_PART && !storage->has_failed) {
        opencode_part_read(&message, &storage->parts.items[part]);
        part = storage->parts.items[part].next;
    }
    if (info.is_summary) {
        wal__opencode_emit_summary(&message);
    } else {
        wal__opencode_flush(&message, true);
    }
    /* A summary goes with the mark before it, or both are made anew. */
    if (message.is_raw && (!info.is_summary || !storage->has_lost_mark)) {
        raw = opencode_message_line(storage, document, first_part);
    } else if (info.is_summary) {
        storage->raw_prefix.size = 0;
        storage->has_lost_mark = false;
    }
    wal__opencode_emit_batch(storage, id, raw);
}

static void read_messages(struct opencode_storage *storage)
{
    for (size_t i = 0; i < storage->messages.count && !storage->has_failed; i++) {
        if (storage->messages.items[i].is_version_2) {
            wal__opencode_read_second(storage, &storage->messages.items[i]);
        } else {
            read_message(storage, &storage->messages.items[i]);
        }
    }
}

static enum wal__json_status opencode_tree(struct wal__model_reader *reader,
                                           const struct wal__model_documents *tree)
{
    struct opencode_storage storage;

    init(&storage, reader);
    if (!tree->scan(tree->ctx, "", add_document, &storage) || !wal__opencode_sort(&storage) ||
        !link_parts(&storage) || !emit_session(&storage)) {
        return WAL__JSON_NO_SPACE;
    }
    read_messages(&storage);
    wal__opencode_emit_prefix(&storage);
    wal__opencode_emit_deferred(&storage);
    return storage.has_failed ? WAL__JSON_NO_SPACE : WAL__JSON_OK;
}

/* Reads a message in one line; its last item has the line's id. */
static enum wal__json_status opencode_line(struct wal__model_reader *reader,
                                           const struct wal__model_line *line)
{
    struct opencode_storage storage;

    init(&storage, reader);
    add_exported_message(&storage, line->text);
    if (storage.has_failed || !wal__opencode_sort(&storage) || !link_parts(&storage)) {
        return WAL__JSON_NO_SPACE;
    }
    storage.tip = line->parent;
    storage.line_id = line->id;
    read_messages(&storage);
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

static enum wal__progress opencode_progress(struct wal__json_span message, int64_t *created_ms)
{
    enum { ROLE, TYPE, CREATED, COMPLETED, ERROR, COUNT };
    struct wal__json_member members[COUNT] = {[ROLE] = {.key = "role"},
                                              [TYPE] = {.key = "type"},
                                              [CREATED] = {.parent = "time", .key = "created"},
                                              [COMPLETED] = {.parent = "time", .key = "completed"},
                                              [ERROR] = {.key = "error"}};

    if (wal__model_members(message, members, COUNT, NULL) != WAL__JSON_OK) {
        return WAL__PROGRESS_NONE;
    }
    (void)wal__model_time_read(members[CREATED].value.span, created_ms);
    if (!wal__line_string_is(&members[ROLE], "assistant") &&
        !wal__line_string_is(&members[TYPE], "assistant")) {
        return WAL__PROGRESS_TEXT;
    }
    return members[COMPLETED].value.kind == WAL__JSON_NUMBER ||
                   members[ERROR].value.kind == WAL__JSON_OBJECT
               ? WAL__PROGRESS_DONE
               : WAL__PROGRESS_NONE;
}

static struct wal__json_span
opencode_join_line(struct wal__arena *arena, const struct wal__json_span *documents, size_t count)
{
    const struct wal__json_span none = {NULL, 0};
    struct wal__json_memory text = {.capacity = 64};
    struct wal__json_out out = {.put = wal__json_memory_put, .ctx = &text};

    for (size_t i = 0; i < count; i++) {
        text.capacity += documents[i].size + 1;
    }
    text.data = wal__arena_alloc(arena, text.capacity);
    if (text.data == NULL) {
        return none;
    }
    wal__json_out_open(&out, '{');
    wal__json_out_key(&out, "info");
    wal__json_out_compact(&out, documents[0]);
    wal__json_out_member_open(&out, "parts", '[');
    for (size_t i = 1; i < count; i++) {
        wal__json_out_compact(&out, documents[i]);
    }
    wal__json_out_close(&out, ']');
    wal__json_out_close(&out, '}');
    return (struct wal__json_span){text.data, text.size};
}

static const struct wal__dialect_read_ops opencode_read_ops = {.documents = opencode_tree,
                                                               .line = opencode_line,
                                                               .progress = opencode_progress,
                                                               .join = opencode_join_line};

/* --- the dialect --------------------------------------------------------- */

/* A message in one line, {info, parts}, as it is kept when the client added it to a session of the
 * log. */
static const struct wal__field line_fields[] = {
    {"id", .parent = "info", .at = WAL__LINE_AT(id)},
    {"sessionID", .parent = "info", .at = WAL__LINE_AT(session)},
    {.key = NULL},
};

static void opencode_judge(void *text)
{
    struct wal__line_info *line = text;

    line->is_message = true;
}

const struct wal__dialect wal__dialect_opencode = {
    .name = "opencode",
    .summary = "storage/ trees of OpenCode: session, message, part",
    .line_fields = line_fields,
    .line_size = sizeof(struct wal__line_info),
    .judge = opencode_judge,
    .read_ops = &opencode_read_ops,
    .write_ops = &wal__opencode_write_ops,
};
