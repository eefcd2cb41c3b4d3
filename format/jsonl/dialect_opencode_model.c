/*
 * dialect_opencode_model: sessions of OpenCode's storage as items.
 *
 * A message and its parts are an item for what the model or the user said, and
 * one for each result of a tool, which stands in its call's part. Parts are in
 * the order of their files, messages too. A summary is a compaction.
 *
 * Invariant: a part that is kept as it is has no ids in it; its message gives
 * them.
 *
 * Threads: one thread at a time per reader.
 */
#include <string.h>

#include "format/jsonl/dialect.h"
#include "format/jsonl/json_out.h"
#include "format/jsonl/json_value.h"
#include "format/jsonl/model_content.h"
#include "format/jsonl/model_table.h"

#define NO_PART SIZE_MAX

struct document {
    struct wal__json_span value;
    uint64_t owner; /* of a part: hash of its message's id */
    size_t next;    /* part of the same message, or NO_PART */
    uint64_t name;  /* of a message: hash of its file's name */
};

struct documents {
    struct document *items;
    size_t count;
    size_t capacity;
};

struct chain {
    size_t first;
    size_t last;
};

struct storage {
    struct wal__model_reader *reader;
    struct documents messages;
    struct documents parts;
    struct wal__json_span info;     /* the session's own file, or empty */
    struct wal__model_table owners; /* struct chain by hash of an id */
    struct wal__json_span tip;      /* id of the item before */
    struct wal__json_span kept;     /* of a compaction to come */
    bool has_failed;
};

/* ------------------------------------------------------------- files --- */

static struct document *add(struct storage *storage,
                            struct documents *documents)
{
    if (documents->count == documents->capacity) {
        size_t capacity =
            documents->capacity > 0 ? 2 * documents->capacity : 64;
        struct document *items = wal__arena_take(storage->reader->scratch,
                                                 capacity * sizeof(items[0]));
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
    documents->items[documents->count] = (struct document){.next = NO_PART};
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

static uint64_t hash_text(const char *text, size_t size)
{
    return wal__model_hash(
        0, (struct wal__json_span){(const uint8_t *)text, size});
}

/* The hash of a part of a path, without .json. */
static uint64_t hash_name(const char *name)
{
    size_t size = strcspn(name, "/");

    if (size > 5 && memcmp(name + size - 5, ".json", 5) == 0) {
        size -= 5;
    }
    return hash_text(name, size);
}

/* The hash of the text that a string is, as of a name. */
static uint64_t hash_id(struct storage *storage, struct wal__json_span id)
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

static void take_part(struct storage *storage, const char *below,
                      struct wal__json_span value)
{
    struct document *part = add(storage, &storage->parts);
    struct wal__json_span message = string_of(value, "messageID");
    const char *last = strrchr(below, '/');
    const char *at = below;

    if (part == NULL) {
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
    part->owner = last != NULL ? hash_name(at) : 0;
}

static bool take_document(void *ctx, const char *key,
                          struct wal__json_span value)
{
    struct storage *storage = ctx;
    struct document *message;
    const char *below;

    if ((below = folder(key, "part")) != NULL) {
        take_part(storage, below, value);
    } else if ((below = folder(key, "message")) != NULL) {
        message = add(storage, &storage->messages);
        if (message != NULL) {
            message->value = value;
            message->name = hash_name(strrchr(key, '/') + 1);
        }
    } else if (folder(key, "session") != NULL && storage->info.size == 0) {
        storage->info = value;
    }
    return !storage->has_failed;
}

/* Chains the parts of each message. */
static bool link_parts(struct storage *storage)
{
    for (size_t i = 0; i < storage->parts.count; i++) {
        struct document *part = &storage->parts.items[i];
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

static size_t first_part(const struct storage *storage, uint64_t id,
                         uint64_t name)
{
    struct wal__json_span found;

    if ((id != 0 && wal__model_table_get(&storage->owners, id, &found)) ||
        (name != 0 && wal__model_table_get(&storage->owners, name, &found))) {
        return ((const struct chain *)(uintptr_t)found.data)->first;
    }
    return NO_PART;
}

/* ----------------------------------------------------------- session --- */

static bool give_session(struct storage *storage)
{
    enum {
        ID,
        DIRECTORY,
        TITLE,
        PROJECT,
        PARENT,
        CREATED,
        UPDATED,
        COUNT
    };
    struct wal__json_member members[COUNT] = {
        [ID] = {.key = "id"},
        [DIRECTORY] = {.key = "directory"},
        [TITLE] = {.key = "title"},
        [PROJECT] = {.key = "projectID"},
        [PARENT] = {.key = "parentID"},
        [CREATED] = {.parent = "time", .key = "created"},
        [UPDATED] = {.parent = "time", .key = "updated"},
    };
    struct wal__model_session session = {.raw = storage->info,
                                         .dialect = storage->reader->dialect};
    struct wal__model_item item = {.kind = WAL__MODEL_HEADER,
                                   .session = &session};

    if (storage->info.size == 0 ||
        wal__model_members(storage->info, members, COUNT, NULL) !=
            WAL__JSON_OK) {
        return true;
    }
    session.id = wal__model_string(&members[ID]);
    session.cwd = wal__model_string(&members[DIRECTORY]);
    session.title = wal__model_string(&members[TITLE]);
    session.project = wal__model_string(&members[PROJECT]);
    session.parent = wal__model_string(&members[PARENT]);
    session.time = wal__model_number(&members[CREATED]);
    session.updated = wal__model_number(&members[UPDATED]);
    return wal__model_give(storage->reader, &item);
}

/* ---------------------------------------------------------- messages --- */

enum {
    M_ID,
    M_ROLE,
    M_SUMMARY,
    M_PROVIDER,
    M_MODEL,
    M_COST,
    M_FINISH,
    M_TIME,
    M_INPUT,
    M_OUTPUT,
    M_REASONING,
    M_TOKENS,
    M_ERROR,
    M_WALCONV_ROLE,
    M_WALCONV_NAME,
    M_COUNT
};

static const struct wal__json_member message_wanted[M_COUNT] = {
    [M_ID] = {.key = "id"},
    [M_ROLE] = {.key = "role"},
    [M_SUMMARY] = {.key = "summary"},
    [M_PROVIDER] = {.key = "providerID"},
    [M_MODEL] = {.key = "modelID"},
    [M_COST] = {.key = "cost"},
    [M_FINISH] = {.key = "finish"},
    [M_TIME] = {.parent = "time", .key = "created"},
    [M_INPUT] = {.parent = "tokens", .key = "input"},
    [M_OUTPUT] = {.parent = "tokens", .key = "output"},
    [M_REASONING] = {.parent = "tokens", .key = "reasoning"},
    [M_TOKENS] = {.parent = "tokens", .key = "cache"},
    [M_ERROR] = {.parent = "error", .key = "name"},
    [M_WALCONV_ROLE] = {.parent = "walconv", .key = "role"},
    [M_WALCONV_NAME] = {.parent = "walconv", .key = "name"},
};

enum {
    P_ID,
    P_TYPE,
    P_TEXT,
    P_SYNTHETIC,
    P_METADATA,
    P_CALL,
    P_TOOL,
    P_STATE,
    P_MIME,
    P_URL,
    P_TAIL,
    P_COUNT
};

static const struct wal__json_member part_wanted[P_COUNT] = {
    [P_ID] = {.key = "id"},
    [P_TYPE] = {.key = "type"},
    [P_TEXT] = {.key = "text"},
    [P_SYNTHETIC] = {.key = "synthetic"},
    [P_METADATA] = {.key = "metadata"},
    [P_CALL] = {.key = "callID"},
    [P_TOOL] = {.key = "tool"},
    [P_STATE] = {.key = "state"},
    [P_MIME] = {.key = "mime"},
    [P_URL] = {.key = "url"},
    [P_TAIL] = {.key = "tail_start_id"},
};

/* A message being read. */
struct message {
    struct storage *storage;
    struct wal__json_member members[M_COUNT];
    struct wal__model_blocks blocks;
    struct wal__model_item item;
    struct wal__model_item *results; /* that wait for the end of a step */
    size_t result_count;
    size_t result_capacity;
    bool is_typed; /* a text is no synthetic one */
    bool is_given; /* an item of it was */
    bool has_mark; /* of a compaction */
};

static struct wal__json_span known(struct wal__json_span name)
{
    if (wal__model_is(name, "unknown")) {
        name.size = 0;
    }
    return name;
}

static enum wal__model_stop read_stop(const struct wal__json_member *members)
{
    static const struct {
        const char *name;
        enum wal__model_stop stop;
    } stops[] = {
        {"stop", WAL__STOP_END},
        {"end_turn", WAL__STOP_END},
        {"length", WAL__STOP_LENGTH},
        {"tool-calls", WAL__STOP_TOOL},
        {"content-filter", WAL__STOP_REFUSAL},
        {"error", WAL__STOP_ERROR},
    };
    struct wal__json_span finish = wal__model_string(&members[M_FINISH]);
    struct wal__json_span error = wal__model_string(&members[M_ERROR]);

    if (wal__model_is(error, "MessageAbortedError")) {
        return WAL__STOP_ABORTED;
    }
    if (error.size > 0) {
        return WAL__STOP_ERROR;
    }
    for (size_t i = 0; i < sizeof(stops) / sizeof(stops[0]); i++) {
        if (wal__model_is(finish, stops[i].name)) {
            return stops[i].stop;
        }
    }
    return finish.size > 0 ? WAL__STOP_OTHER : WAL__STOP_NONE;
}

static bool read_usage(struct message *message)
{
    struct wal__json_member cache[2] = {{.key = "read"}, {.key = "write"}};
    struct wal__model_usage *usage = &message->item.usage;
    const struct wal__json_member *members = message->members;

    if (members[M_TOKENS].value.kind == WAL__JSON_OBJECT &&
        wal__model_members(members[M_TOKENS].value.span, cache, 2, NULL) !=
            WAL__JSON_OK) {
        return false;
    }
    usage->input = wal__model_number(&members[M_INPUT]);
    usage->output = wal__model_number(&members[M_OUTPUT]);
    usage->reasoning = wal__model_number(&members[M_REASONING]);
    usage->cache_read = wal__model_number(&cache[0]);
    usage->cache_write = wal__model_number(&cache[1]);
    usage->cost = wal__model_number(&members[M_COST]);
    return true;
}

/* ------------------------------------------------------------- parts --- */

static struct wal__model_block *add_block(struct message *message,
                                          enum wal__model_block_kind kind)
{
    const struct wal__json_span none = {NULL, 0};
    struct wal__model_block *block =
        wal__model_blocks_add(&message->blocks, kind, none);

    message->storage->has_failed |= block == NULL;
    return block;
}

struct raw {
    uint8_t *data;
    size_t size;
};

static bool put_raw(void *ctx, const void *data, size_t size)
{
    struct raw *raw = ctx;

    memcpy(raw->data + raw->size, data, size);
    raw->size += size;
    return true;
}

/* A part of the client's own, without its ids. */
static void take_raw(struct message *message, struct wal__json_span part)
{
    static const struct wal__json_swap ids[] = {
        {"id", {NULL, 0}}, {"sessionID", {NULL, 0}}, {"messageID", {NULL, 0}}};
    struct wal__arena *arena = message->storage->reader->scratch;
    struct raw raw = {wal__arena_take(arena, part.size + 2), 0};
    struct wal__json_out out = {.put = put_raw, .ctx = &raw};
    struct wal__model_block *block = add_block(message, WAL__BLOCK_RAW);

    if (raw.data == NULL || block == NULL) {
        message->storage->has_failed = true;
        return;
    }
    wal__json_out_swapped(&out, part, ids, 3);
    block->raw = (struct wal__json_span){raw.data, raw.size};
}

static void take_text(struct message *message,
                      const struct wal__json_member *members)
{
    struct wal__model_block *block = add_block(message, WAL__BLOCK_TEXT);

    message->is_typed |= !wal__model_true(&members[P_SYNTHETIC]);
    if (block != NULL) {
        block->text = wal__model_string(&members[P_TEXT]);
        if (block->text.size == 0) {
            block->text = wal__model_literal("\"\"");
        }
    }
}

static void take_reasoning(struct message *message,
                           const struct wal__json_member *members)
{
    struct wal__json_member signs[2] = {
        {.parent = "anthropic", .key = "signature"},
        {.parent = "anthropic", .key = "redactedData"}};
    struct wal__model_block *block = add_block(message, WAL__BLOCK_THINKING);

    if (block == NULL) {
        return;
    }
    block->text = wal__model_string(&members[P_TEXT]);
    if (members[P_METADATA].value.kind == WAL__JSON_OBJECT &&
        wal__model_members(members[P_METADATA].value.span, signs, 2, NULL) ==
            WAL__JSON_OK) {
        block->signature = wal__model_string(&signs[0]);
        if (signs[1].value.kind == WAL__JSON_STRING) {
            block->signature = signs[1].value.span;
            block->is_redacted = true;
        }
    }
}

static void read_image(struct message *message,
                       const struct wal__json_member *members,
                       struct wal__model_block *block)
{
    struct wal__arena *arena = message->storage->reader->scratch;

    if (!wal__model_image_url(arena, block,
                              wal__model_string(&members[P_URL]))) {
        message->storage->has_failed = true;
    }
}

static bool is_image(const struct wal__json_member *members)
{
    struct wal__json_span mime = wal__model_string(&members[P_MIME]);

    return mime.size > 7 && memcmp(mime.data, "\"image/", 7) == 0 &&
           members[P_URL].value.kind == WAL__JSON_STRING;
}

static void take_file(struct message *message,
                      const struct wal__json_member *members,
                      struct wal__json_span part)
{
    struct wal__model_block *block;

    if (!is_image(members)) {
        take_raw(message, part);
        return;
    }
    block = add_block(message, WAL__BLOCK_IMAGE);
    if (block != NULL) {
        read_image(message, members, block);
    }
}

enum {
    S_STATUS,
    S_INPUT,
    S_OUTPUT,
    S_ERROR,
    S_START,
    S_END,
    S_ATTACHMENTS,
    S_CONTENT,
    S_ALONE,
    S_COUNT
};

/* What a result has beside its text. */
static bool read_attachments(struct message *message,
                             struct wal__model_blocks *blocks,
                             struct wal__json_span attachments)
{
    const struct wal__json_span none = {NULL, 0};
    struct wal__json_scan scan;
    struct wal__json_token value;

    wal__model_values(&scan, attachments);
    while (wal__model_values_next(&scan, &value)) {
        struct wal__json_member members[P_COUNT];
        struct wal__model_block *block;
        memcpy(members, part_wanted, sizeof(members));
        if (wal__model_members(value.span, members, P_COUNT, NULL) !=
            WAL__JSON_OK) {
            return false;
        }
        block = wal__model_blocks_add(
            blocks, is_image(members) ? WAL__BLOCK_IMAGE : WAL__BLOCK_RAW,
            none);
        if (block == NULL) {
            return false;
        }
        if (block->kind == WAL__BLOCK_IMAGE) {
            read_image(message, members, block);
        } else {
            block->raw = value.span;
        }
    }
    return true;
}

static bool read_result(struct message *message,
                        const struct wal__json_member *state,
                        struct wal__model_item *result)
{
    struct wal__model_blocks blocks = {.arena =
                                           message->storage->reader->scratch};
    const struct wal__json_member *text =
        &state[result->is_error ? S_ERROR : S_OUTPUT];

    if (state[S_CONTENT].value.kind == WAL__JSON_ARRAY) {
        if (!wal__content_read(state[S_CONTENT].value, &blocks,
                               &result->fields)) {
            return false;
        }
    } else if (!wal__content_read(text->value, &blocks, &result->fields) ||
               !read_attachments(message, &blocks,
                                 wal__model_nested(&state[S_ATTACHMENTS]))) {
        return false;
    }
    result->blocks = blocks.items;
    result->block_count = blocks.count;
    return true;
}

static struct wal__model_item *add_result(struct message *message)
{
    if (message->result_count == message->result_capacity) {
        size_t capacity =
            message->result_capacity > 0 ? 2 * message->result_capacity : 8;
        struct wal__model_item *items = wal__arena_take(
            message->storage->reader->scratch, capacity * sizeof(items[0]));
        if (items == NULL) {
            return NULL;
        }
        if (message->result_count > 0) {
            memcpy(items, message->results,
                   message->result_count * sizeof(items[0]));
        }
        message->results = items;
        message->result_capacity = capacity;
    }
    return &message->results[message->result_count++];
}

static void take_result(struct message *message,
                        const struct wal__json_member *members,
                        const struct wal__json_member *state)
{
    bool is_error = wal__line_string_is(&state[S_STATUS], "error");
    struct wal__model_item *result;

    if (!is_error && !wal__line_string_is(&state[S_STATUS], "completed") &&
        !wal__line_string_is(&state[S_STATUS], "success")) {
        return;
    }
    result = add_result(message);
    if (result == NULL) {
        message->storage->has_failed = true;
        return;
    }
    *result = (struct wal__model_item){
        .kind = WAL__MODEL_MESSAGE,
        .role = WAL__ROLE_TOOL,
        .is_error = is_error,
        .id = wal__model_string(&members[P_ID]),
        .call = wal__model_string(&members[P_CALL]),
        .name = wal__model_string(&members[P_TOOL]),
        .time = wal__model_number(&state[S_END]),
    };
    if (result->time.size == 0) {
        result->time = message->item.time;
    }
    message->storage->has_failed |= !read_result(message, state, result);
}

static void take_tool(struct message *message,
                      const struct wal__json_member *members)
{
    struct wal__json_member state[S_COUNT] = {
        [S_STATUS] = {.key = "status"},
        [S_INPUT] = {.key = "input"},
        [S_OUTPUT] = {.key = "output"},
        [S_ERROR] = {.key = "error"},
        [S_START] = {.parent = "time", .key = "start"},
        [S_END] = {.parent = "time", .key = "end"},
        [S_ATTACHMENTS] = {.key = "attachments"},
        [S_CONTENT] = {.parent = "metadata", .key = "walconvContent"},
        [S_ALONE] = {.parent = "metadata", .key = "walconvAlone"},
    };
    struct wal__model_block *block;

    if (members[P_STATE].value.kind == WAL__JSON_OBJECT &&
        wal__model_members(members[P_STATE].value.span, state, S_COUNT, NULL) !=
            WAL__JSON_OK) {
        return;
    }
    if (!wal__model_true(&state[S_ALONE])) {
        block = add_block(message, WAL__BLOCK_TOOL_CALL);
        if (block == NULL) {
            return;
        }
        block->id = wal__model_string(&members[P_CALL]);
        block->name = wal__model_string(&members[P_TOOL]);
        block->arguments = wal__model_value(&state[S_INPUT]);
    }
    take_result(message, members, state);
}

/* Gives an item under the one before it. */
static void give(struct storage *storage, struct wal__model_item *item)
{
    item->parent = storage->tip;
    if (!wal__model_give(storage->reader, item)) {
        storage->has_failed = true;
    }
    storage->tip = item->id;
}

/* Gives what there is of a message: a step, or all. */
static void flush(struct message *message, bool is_end)
{
    struct wal__model_item *item = &message->item;
    bool has_more = message->blocks.count > 0 ||
                    (is_end && !message->is_given &&
                     message->result_count == 0 && !message->has_mark);

    if (has_more) {
        item->blocks = message->blocks.items;
        item->block_count = message->blocks.count;
        if (item->role == WAL__ROLE_USER && !item->is_meta) {
            item->is_meta = item->block_count > 0 && !message->is_typed;
        }
        give(message->storage, item);
        item->usage = (struct wal__model_usage){.input = {NULL, 0}};
        item->fields = 0;
    }
    for (size_t i = 0; i < message->result_count; i++) {
        give(message->storage, &message->results[i]);
    }
    message->is_given |= has_more || message->result_count > 0;
    message->result_count = 0;
    message->blocks =
        (struct wal__model_blocks){.arena = message->storage->reader->scratch};
}

static void take_message_part(struct message *message,
                              struct wal__json_span part)
{
    struct wal__json_member members[P_COUNT];
    struct wal__json_span type;

    memcpy(members, part_wanted, sizeof(members));
    if (wal__model_members(part, members, P_COUNT, NULL) != WAL__JSON_OK) {
        return;
    }
    type = wal__model_string(&members[P_TYPE]);
    if (message->is_given && message->blocks.count == 0 &&
        members[P_ID].value.kind == WAL__JSON_STRING) {
        message->item.id = members[P_ID].value.span; /* of the next step */
    }
    if (wal__model_is(type, "text")) {
        take_text(message, members);
    } else if (wal__model_is(type, "reasoning")) {
        take_reasoning(message, members);
    } else if (wal__model_is(type, "tool")) {
        take_tool(message, members);
    } else if (wal__model_is(type, "step-start") ||
               wal__model_is(type, "step-finish")) {
        message->item.fields++;
        if (message->result_count > 0) {
            flush(message, false);
        }
    } else if (wal__model_is(type, "compaction") &&
               message->item.role == WAL__ROLE_USER) {
        message->has_mark = true;
        message->storage->kept = wal__model_string(&members[P_TAIL]);
    } else if (wal__model_is(type, "file")) {
        take_file(message, members, part);
    } else {
        message->is_typed = true;
        take_raw(message, part);
    }
}

/* A summary: its texts are those of a compaction. */
static void make_compaction(struct message *message)
{
    struct wal__model_item *item = &message->item;
    struct wal__arena *arena = message->storage->reader->scratch;
    size_t size = 2;
    struct raw raw;
    struct wal__json_out out = {.put = put_raw, .ctx = &raw};

    for (size_t i = 0; i < message->blocks.count; i++) {
        size += message->blocks.items[i].text.size + 2;
    }
    raw = (struct raw){wal__arena_take(arena, size), 0};
    if (raw.data == NULL) {
        message->storage->has_failed = true;
        return;
    }
    wal__json_out_quote(&out);
    for (size_t i = 0; i < message->blocks.count; i++) {
        const struct wal__model_block *block = &message->blocks.items[i];
        if (block->kind == WAL__BLOCK_TEXT) {
            wal__json_out_joined(&out, block->text);
        }
    }
    wal__json_out_unquote(&out);
    *item = (struct wal__model_item){
        .kind = WAL__MODEL_COMPACTION,
        .id = item->id,
        .time = item->time,
        .text = {raw.data, raw.size},
        .target = message->storage->kept,
    };
    message->storage->kept.size = 0;
    give(message->storage, item);
}

static void set_role(struct message *message)
{
    const struct wal__json_member *members = message->members;
    struct wal__model_item *item = &message->item;

    if (wal__line_string_is(&members[M_ROLE], "assistant")) {
        item->role = WAL__ROLE_ASSISTANT;
        item->provider = known(wal__model_string(&members[M_PROVIDER]));
        item->model = known(wal__model_string(&members[M_MODEL]));
        item->stop = read_stop(members);
        message->storage->has_failed |= !read_usage(message);
    } else if (wal__line_string_is(&members[M_WALCONV_ROLE], "system")) {
        item->role = WAL__ROLE_SYSTEM;
    } else if (wal__line_string_is(&members[M_WALCONV_ROLE], "meta")) {
        item->is_meta = true;
        item->name = wal__model_string(&members[M_WALCONV_NAME]);
    }
}

static void read_message(struct storage *storage,
                         const struct document *document)
{
    struct message message = {.storage = storage,
                              .blocks = {.arena = storage->reader->scratch}};
    struct wal__model_item *item = &message.item;
    size_t part;

    memcpy(message.members, message_wanted, sizeof(message.members));
    item->kind = WAL__MODEL_MESSAGE;
    if (wal__model_members(document->value, message.members, M_COUNT,
                           &item->fields) != WAL__JSON_OK) {
        return;
    }
    item->id = wal__model_string(&message.members[M_ID]);
    item->time = wal__model_number(&message.members[M_TIME]);
    set_role(&message);
    part = first_part(storage, hash_id(storage, item->id), document->name);
    while (part != NO_PART && !storage->has_failed) {
        take_message_part(&message, storage->parts.items[part].value);
        part = storage->parts.items[part].next;
    }
    if (message.members[M_SUMMARY].value.kind == WAL__JSON_TRUE) {
        make_compaction(&message);
    } else {
        flush(&message, true);
    }
}

static enum wal__json_status opencode_tree(struct wal__model_reader *reader,
                                           const struct wal__model_tree *tree)
{
    struct storage storage = {.reader = reader};

    storage.owners.arena = reader->scratch;
    if (!tree->scan(tree->ctx, "", take_document, &storage) ||
        !link_parts(&storage) || !give_session(&storage)) {
        return WAL__JSON_NO_SPACE;
    }
    for (size_t i = 0; i < storage.messages.count && !storage.has_failed; i++) {
        read_message(&storage, &storage.messages.items[i]);
    }
    return storage.has_failed ? WAL__JSON_NO_SPACE : WAL__JSON_OK;
}

const struct wal__dialect_reading wal__reading_opencode = {.tree =
                                                               opencode_tree};
