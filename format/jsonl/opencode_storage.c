/*
 * opencode_storage: the files of a session in OpenCode's storage.
 *
 * Threads: one thread at a time per storage.
 */
#include "format/jsonl/opencode_storage.h"

#include <string.h>

#include "format/jsonl/dialect.h"
#include "format/jsonl/json_value.h"
#include "format/jsonl/model_content.h"

struct chain {
    size_t first;
    size_t last;
};

static struct wal__opencode_document *
add(struct wal__opencode_storage *storage,
    struct wal__opencode_documents *documents)
{
    if (documents->count == documents->capacity) {
        size_t capacity =
            documents->capacity > 0 ? 2 * documents->capacity : 64;
        struct wal__opencode_document *items = wal__arena_take(
            storage->reader->scratch, capacity * sizeof(items[0]));
        if (items == NULL) {
            storage->has_failed = true;
            return NULL;
        }
        if (documents->count > 0) {
            memcpy(items, documents->items,
                   documents->count * sizeof(items[0]));
        }
        documents->items = items;
        documents->capacity = capacity;
    }
    documents->items[documents->count] =
        (struct wal__opencode_document){.next = WAL__OPENCODE_NO_PART};
    return &documents->items[documents->count++];
}

/* The folder of that name in a path, or null. */
static const char *folder(const char *path, const char *name)
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

/* A part of a path, without .json. */
static struct wal__json_span name_at(const char *path)
{
    size_t size = strcspn(path, "/");

    if (size > 5 && memcmp(path + size - 5, ".json", 5) == 0) {
        size -= 5;
    }
    return (struct wal__json_span){(const uint8_t *)path, size};
}

static bool take_name(struct wal__opencode_storage *storage,
                      struct wal__opencode_document *document,
                      const char *below)
{
    const char *slash = strrchr(below, '/');

    document->name = wal__arena_copy(
        storage->reader->scratch, name_at(slash != NULL ? slash + 1 : below));
    storage->has_failed |= document->name.data == NULL;
    return !storage->has_failed;
}

/* The hash of the text that a string is, as of a name. */
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
               ? wal__model_string(&member)
               : none;
}

static void take_part(struct wal__opencode_storage *storage, const char *below,
                      struct wal__json_span value)
{
    struct wal__opencode_document *part = add(storage, &storage->parts);
    struct wal__json_span message = string_of(value, "messageID");
    const char *last = strrchr(below, '/');
    const char *at = below;

    if (part == NULL || !take_name(storage, part, below)) {
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
    part->owner = last != NULL ? wal__model_hash(0, name_at(at)) : 0;
}

/* A name for what has no file: a number. */
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

static void take_exported_parts(struct wal__opencode_storage *storage,
                                struct wal__json_span parts,
                                struct wal__json_span message)
{
    struct wal__json_scan scan;
    struct wal__json_token value;

    wal__model_values(&scan, parts);
    while (!storage->has_failed && wal__model_values_next(&scan, &value)) {
        struct wal__opencode_document *part = add(storage, &storage->parts);
        if (part != NULL) {
            part->value = value.span;
            part->name = message;
            part->owner = wal__model_hash(0, message);
        }
    }
}

/* Takes a session that its client exported: {info, messages:[{info, parts}]}.
 * Parts are of the message that they stand in, whatever they say. */
static void take_exported(struct wal__opencode_storage *storage,
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
    wal__model_values(&scan, session[1].value.span);
    while (!storage->has_failed && wal__model_values_next(&scan, &token)) {
        struct wal__json_member members[2] = {{.key = "info"},
                                              {.key = "parts"}};
        struct wal__opencode_document *message;
        if (wal__model_members(token.span, members, 2, NULL) != WAL__JSON_OK) {
            continue;
        }
        message = add(storage, &storage->messages);
        if (message != NULL && make_name(storage, message)) {
            message->value = wal__model_any(&members[0]);
            take_exported_parts(storage, wal__model_nested(&members[1]),
                                message->name);
        }
    }
}

static bool take_document(void *ctx, const char *key,
                          struct wal__json_span value)
{
    struct wal__opencode_storage *storage = ctx;
    struct wal__opencode_document *message;
    const char *below;

    if ((below = folder(key, "part")) != NULL) {
        take_part(storage, below, value);
    } else if ((below = folder(key, "message")) != NULL) {
        message = add(storage, &storage->messages);
        if (message != NULL && take_name(storage, message, below)) {
            message->value = value;
        }
    } else if (folder(key, "session") != NULL) {
        storage->info = storage->info.size == 0 ? value : storage->info;
    } else {
        take_exported(storage, value);
    }
    return !storage->has_failed;
}

/* Chains the parts of each message. */
static bool link_parts(struct wal__opencode_storage *storage)
{
    for (size_t i = 0; i < storage->parts.count; i++) {
        struct wal__opencode_document *part = &storage->parts.items[i];
        struct wal__json_span found;
        struct chain *chain;
        if (part->owner == 0) {
            continue;
        }
        if (wal__model_table_get(&storage->owners, part->owner, &found)) {
            chain = (struct chain *)(uintptr_t)found.data;
            storage->parts.items[chain->last].next = i;
            chain->last = i;
            continue;
        }
        chain = wal__arena_take(storage->reader->scratch, sizeof(*chain));
        if (chain == NULL || !wal__model_table_put(
                                 &storage->owners, part->owner,
                                 (struct wal__json_span){(const uint8_t *)chain,
                                                         sizeof(*chain)})) {
            return false;
        }
        *chain = (struct chain){i, i};
    }
    return true;
}

struct wal__json_span
wal__opencode_storage_id(const struct wal__opencode_storage *storage,
                         const struct wal__opencode_document *document,
                         const struct wal__json_member *id)
{
    struct wal__json_span own = wal__model_string(id);

    return own.size > 2
               ? own
               : wal__arena_escape(storage->reader->scratch, document->name);
}

size_t wal__opencode_storage_first(const struct wal__opencode_storage *storage,
                                   const struct wal__opencode_document *message,
                                   struct wal__json_span id)
{
    uint64_t name = wal__model_hash(0, message->name);
    uint64_t hash = hash_id(storage, id);
    struct wal__json_span found;

    if ((hash != 0 && wal__model_table_get(&storage->owners, hash, &found)) ||
        wal__model_table_get(&storage->owners, name, &found)) {
        return ((const struct chain *)(uintptr_t)found.data)->first;
    }
    return WAL__OPENCODE_NO_PART;
}

bool wal__opencode_storage_read(struct wal__opencode_storage *storage,
                                struct wal__model_reader *reader,
                                const struct wal__model_tree *tree)
{
    *storage =
        (struct wal__opencode_storage){.reader = reader,
                                       .owners = {.arena = reader->scratch},
                                       .given = {.arena = reader->scratch}};
    return tree->scan(tree->ctx, "", take_document, storage) &&
           link_parts(storage);
}
