/*
 * opencode_storage.c - the files of a session in OpenCode's storage.
 *
 * Threads: one thread at a time per storage.
 */
#include "convert/dialect/opencode/opencode_storage.h"

#include <string.h>

#include "convert/model/dialect.h"
#include "convert/model/model_content.h"
#include "format/bytes/assert.h"
#include "format/json/json_value.h"

struct part_list {
    size_t first;
    size_t last;
};

static struct wal__opencode_document *
add(struct wal__opencode_storage *storage,
    struct wal__opencode_documents *documents)
{
    struct wal__opencode_document *items = wal__arena_grow(
        storage->reader->scratch, documents->items, documents->count,
        &documents->capacity, sizeof(items[0]));

    if (items == NULL) {
        storage->has_failed = true;
        return NULL;
    }
    documents->items = items;
    documents->items[documents->count] =
        (struct wal__opencode_document){.next = WAL__OPENCODE_NO_PART};
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

static bool set_name(struct wal__opencode_storage *storage,
                     struct wal__opencode_document *document,
                     const char *relative)
{
    const char *slash = strrchr(relative, '/');

    document->name =
        wal__arena_copy(storage->reader->scratch,
                        file_stem(slash != NULL ? slash + 1 : relative));
    storage->has_failed |= document->name.data == NULL;
    return !storage->has_failed;
}

/* Returns the hash of the string's text, equal to that of the same name. */
static uint64_t hash_id(const struct wal__opencode_storage *storage,
                        struct wal__json_span id)
{
    struct wal__json_span text =
        wal__arena_unescape(storage->reader->scratch, id);

    return text.size > 0 ? wal__model_hash(0, text) : 0;
}

static struct wal__json_span string_of(struct wal__json_span json,
                                       const char *key)
{
    struct wal__json_member member = {.key = key};
    struct wal__json_span none = {NULL, 0};

    return wal__model_members(json, &member, 1, NULL) == WAL__JSON_OK
               ? wal__member_string(&member)
               : none;
}

static void add_part(struct wal__opencode_storage *storage,
                     const char *relative, struct wal__json_span value)
{
    struct wal__opencode_document *part = add(storage, &storage->parts);
    struct wal__json_span message = string_of(value, "messageID");
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
static bool make_name(struct wal__opencode_storage *storage,
                      struct wal__opencode_document *message)
{
    uint8_t text[20];
    size_t at = sizeof(text);
    size_t number = storage->messages.count;

    do {
        text[--at] = (uint8_t)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    message->name =
        wal__arena_copy(storage->reader->scratch,
                        (struct wal__json_span){text + at, sizeof(text) - at});
    storage->has_failed |= message->name.data == NULL;
    return !storage->has_failed;
}

static void add_exported_parts(struct wal__opencode_storage *storage,
                               struct wal__json_span parts,
                               struct wal__json_span message)
{
    struct wal__json_scan scan;
    struct wal__json_token value;

    wal__model_array_begin(&scan, parts);
    while (!storage->has_failed && wal__model_array_next(&scan, &value)) {
        struct wal__opencode_document *part = add(storage, &storage->parts);
        if (part != NULL) {
            part->value = value.span;
            part->name = message;
            part->owner = wal__model_hash(0, message);
        }
    }
}

/* Adds an exported message: {info, parts}. */
static void add_exported_message(struct wal__opencode_storage *storage,
                                 struct wal__json_span value)
{
    struct wal__json_member members[2] = {{.key = "info"}, {.key = "parts"}};
    struct wal__opencode_document *message;

    if (wal__model_members(value, members, 2, NULL) != WAL__JSON_OK) {
        return;
    }
    message = add(storage, &storage->messages);
    if (message != NULL && make_name(storage, message)) {
        message->value = wal__member_raw(&members[0]);
        add_exported_parts(storage, wal__member_container(&members[1]),
                           message->name);
    }
}

/* Adds an exported session: {info, messages:[{info, parts}]}. A part belongs to
 * the message that contains it, whatever its messageID. */
static void add_exported_session(struct wal__opencode_storage *storage,
                                 struct wal__json_span value)
{
    struct wal__json_member session[2] = {{.key = "info"}, {.key = "messages"}};
    struct wal__json_scan scan;
    struct wal__json_token token;

    if (wal__model_members(value, session, 2, NULL) != WAL__JSON_OK ||
        session[0].value.kind != WAL__JSON_OBJECT ||
        session[1].value.kind != WAL__JSON_ARRAY) {
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

static bool add_document(void *ctx, const char *key,
                         struct wal__json_span value)
{
    struct wal__opencode_storage *storage = ctx;
    struct wal__opencode_document *message;
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
static bool link_parts(struct wal__opencode_storage *storage)
{
    for (size_t i = 0; i < storage->parts.count; i++) {
        struct wal__opencode_document *part = &storage->parts.items[i];
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
        part_list =
            wal__arena_alloc(storage->reader->scratch, sizeof(*part_list));
        if (part_list == NULL ||
            !wal__model_table_put(
                &storage->part_lists, part->owner,
                (struct wal__json_span){(const uint8_t *)part_list,
                                        sizeof(*part_list)})) {
            return false;
        }
        *part_list = (struct part_list){i, i};
    }
    return true;
}

struct wal__json_span
wal__opencode_storage_id(const struct wal__opencode_storage *storage,
                         const struct wal__opencode_document *document,
                         struct wal__json_span id)
{
    return id.size > 2
               ? id
               : wal__arena_escape(storage->reader->scratch, document->name);
}

size_t
wal__opencode_storage_first_part(const struct wal__opencode_storage *storage,
                                 const struct wal__opencode_document *message,
                                 struct wal__json_span id)
{
    uint64_t name = wal__model_hash(0, message->name);
    uint64_t hash = hash_id(storage, id);
    struct wal__json_span found;

    if ((hash != 0 &&
         wal__model_table_get(&storage->part_lists, hash, &found)) ||
        wal__model_table_get(&storage->part_lists, name, &found)) {
        return ((const struct part_list *)(uintptr_t)found.data)->first;
    }
    return WAL__OPENCODE_NO_PART;
}

static void init(struct wal__opencode_storage *storage,
                 struct wal__model_reader *reader)
{
    *storage = (struct wal__opencode_storage){
        .reader = reader,
        .part_lists = {.arena = reader->scratch},
        .emitted_ids = {.arena = reader->scratch},
        .deferred = {.arena = reader->scratch}};
}

bool wal__opencode_storage_read_message(struct wal__opencode_storage *storage,
                                        struct wal__model_reader *reader,
                                        struct wal__json_span message)
{
    init(storage, reader);
    add_exported_message(storage, message);
    return !storage->has_failed && link_parts(storage);
}

bool wal__opencode_storage_read(struct wal__opencode_storage *storage,
                                struct wal__model_reader *reader,
                                const struct wal__model_documents *tree)
{
    init(storage, reader);
    return tree->scan(tree->ctx, "", add_document, storage) &&
           link_parts(storage);
}
