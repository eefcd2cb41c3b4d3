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

#include "format/bytes/assert.h"
#include "format/json/json_value.h"
#include "format/model/dialect.h"
#include "format/model/model_content.h"

struct pi {
    struct wal__json_span *ids; /* of the lines so far */
    size_t count;
    size_t capacity;
    int64_t version;
};

struct line {
    struct wal__model_reader *reader;
    const struct wal__model_line *line;
    struct pi *pi;
    struct wal__model_item item;
};

enum {
    PI_TYPE,
    PI_VERSION,
    PI_ID,
    PI_PARENT_ID,
    PI_TIME,
    PI_CWD,
    PI_PARENT_SESSION,
    PI_BRANCHED_FROM,
    PI_PROVIDER,
    PI_MODEL_ID,
    PI_THINKING_LEVEL,
    PI_MESSAGE,
    PI_SUMMARY,
    PI_FIRST_KEPT_ID,
    PI_FIRST_KEPT_INDEX,
    PI_TOKENS_BEFORE,
    PI_FROM_ID,
    PI_CUSTOM_TYPE,
    PI_DATA,
    PI_CONTENT,
    PI_TARGET_ID,
    PI_LABEL,
    PI_NAME,
    PI_COUNT
};

static const struct wal__json_member line_wanted[PI_COUNT] = {
    [PI_TYPE] = {.key = "type"},
    [PI_VERSION] = {.key = "version"},
    [PI_ID] = {.key = "id"},
    [PI_PARENT_ID] = {.key = "parentId"},
    [PI_TIME] = {.key = "timestamp"},
    [PI_CWD] = {.key = "cwd"},
    [PI_PARENT_SESSION] = {.key = "parentSession"},
    [PI_BRANCHED_FROM] = {.key = "branchedFrom"},
    [PI_PROVIDER] = {.key = "provider"},
    [PI_MODEL_ID] = {.key = "modelId"},
    [PI_THINKING_LEVEL] = {.key = "thinkingLevel"},
    [PI_MESSAGE] = {.key = "message"},
    [PI_SUMMARY] = {.key = "summary"},
    [PI_FIRST_KEPT_ID] = {.key = "firstKeptEntryId"},
    [PI_FIRST_KEPT_INDEX] = {.key = "firstKeptEntryIndex"},
    [PI_TOKENS_BEFORE] = {.key = "tokensBefore"},
    [PI_FROM_ID] = {.key = "fromId"},
    [PI_CUSTOM_TYPE] = {.key = "customType"},
    [PI_DATA] = {.key = "data"},
    [PI_CONTENT] = {.key = "content"},
    [PI_TARGET_ID] = {.key = "targetId"},
    [PI_LABEL] = {.key = "label"},
    [PI_NAME] = {.key = "name"},
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

static bool read_content(struct line *line, struct wal__json_token content)
{
    struct wal__model_blocks blocks = {.arena = line->reader->scratch};

    if (!wal__content_read(content, &blocks, &line->item.fields)) {
        return false;
    }
    line->item.blocks = blocks.items;
    line->item.block_count = blocks.count;
    return true;
}

static enum wal__stop_reason read_stop(struct wal__json_span reason)
{
    static const struct {
        const char *name;
        enum wal__stop_reason stop;
    } stops[] = {
        {"stop", WAL__STOP_END},        {"length", WAL__STOP_LENGTH},
        {"toolUse", WAL__STOP_TOOL},    {"error", WAL__STOP_ERROR},
        {"aborted", WAL__STOP_ABORTED},
    };

    for (size_t i = 0; i < sizeof(stops) / sizeof(stops[0]); i++) {
        if (wal__model_text_is(reason, stops[i].name)) {
            return stops[i].stop;
        }
    }
    return reason.size > 0 ? WAL__STOP_OTHER : WAL__STOP_NONE;
}

static bool read_usage(struct wal__json_span json,
                       struct wal__model_usage *usage)
{
    enum {
        INPUT,
        OUTPUT,
        CACHE_READ,
        CACHE_WRITE,
        COST,
        COUNT
    };
    struct wal__json_member members[COUNT] = {
        [INPUT] = {.key = "input"},
        [OUTPUT] = {.key = "output"},
        [CACHE_READ] = {.key = "cacheRead"},
        [CACHE_WRITE] = {.key = "cacheWrite"},
        [COST] = {.parent = "cost", .key = "total"},
    };

    if (json.size == 0) {
        return true;
    }
    if (wal__model_members(json, members, COUNT, NULL) != WAL__JSON_OK) {
        return false;
    }
    usage->input = wal__member_number(&members[INPUT]);
    usage->output = wal__member_number(&members[OUTPUT]);
    usage->cache_read = wal__member_number(&members[CACHE_READ]);
    usage->cache_write = wal__member_number(&members[CACHE_WRITE]);
    usage->cost = wal__member_number(&members[COST]);
    return true;
}

/* "unknown" is written for an empty name. */
static struct wal__json_span known_or_empty(struct wal__json_span name)
{
    if (wal__model_text_is(name, "unknown")) {
        name.size = 0;
    }
    return name;
}

enum {
    M_ROLE,
    M_CONTENT,
    M_TIME,
    M_API,
    M_PROVIDER,
    M_MODEL,
    M_USAGE,
    M_STOP,
    M_CALL,
    M_TOOL,
    M_ERROR,
    M_CUSTOM_TYPE,
    M_DISPLAY,
    M_COMMAND,
    M_OUTPUT,
    M_COUNT
};

/* Reads a command that the user ran, and its output. */
static bool read_bash(struct line *line, const struct wal__json_member *members)
{
    struct wal__model_blocks blocks = {.arena = line->reader->scratch};
    struct wal__json_span none = {NULL, 0};

    for (size_t i = M_COMMAND; i <= M_OUTPUT; i++) {
        struct wal__model_block *block =
            wal__model_blocks_add(&blocks, WAL__BLOCK_TEXT, none);
        if (block == NULL) {
            return false;
        }
        block->text = wal__member_string(&members[i]);
        if (block->text.size == 0) {
            block->text = wal__model_literal("\"\"");
        }
    }
    line->item.is_meta = true;
    line->item.name = wal__model_literal("\"bashExecution\"");
    line->item.blocks = blocks.items;
    line->item.block_count = blocks.count;
    return true;
}

static bool read_role(struct line *line, const struct wal__json_member *members)
{
    struct wal__model_item *item = &line->item;
    struct wal__json_span role = wal__member_string(&members[M_ROLE]);

    if (wal__model_text_is(role, "assistant")) {
        item->role = WAL__ROLE_ASSISTANT;
        item->provider =
            known_or_empty(wal__member_string(&members[M_PROVIDER]));
        item->model = known_or_empty(wal__member_string(&members[M_MODEL]));
        item->stop = read_stop(wal__member_string(&members[M_STOP]));
    } else if (wal__model_text_is(role, "toolResult")) {
        item->role = WAL__ROLE_TOOL;
        item->call = wal__member_string(&members[M_CALL]);
        item->name = known_or_empty(wal__member_string(&members[M_TOOL]));
        item->is_error = wal__member_is_true(&members[M_ERROR]);
    } else if (wal__model_text_is(role, "system")) {
        item->role = WAL__ROLE_SYSTEM;
    } else if (wal__model_text_is(role, "custom") ||
               wal__model_text_is(role, "hookMessage")) {
        item->is_meta = true;
        item->name = wal__member_string(&members[M_CUSTOM_TYPE]);
        if (wal__model_text_is(role, "hookMessage")) {
            item->raw.size = 0;
        }
    } else if (wal__model_text_is(role, "bashExecution")) {
        return read_bash(line, members);
    } else if (!wal__model_text_is(role, "user")) {
        item->kind = WAL__ITEM_LINE;
        item->data = line->line->text;
        return true;
    }
    return read_content(line, members[M_CONTENT].value) &&
           read_usage(wal__member_container(&members[M_USAGE]), &item->usage);
}

static bool read_message(struct line *line, struct wal__json_span message)
{
    struct wal__json_member members[M_COUNT] = {
        [M_ROLE] = {.key = "role"},
        [M_CONTENT] = {.key = "content"},
        [M_TIME] = {.key = "timestamp"},
        [M_API] = {.key = "api"},
        [M_PROVIDER] = {.key = "provider"},
        [M_MODEL] = {.key = "model"},
        [M_USAGE] = {.key = "usage"},
        [M_STOP] = {.key = "stopReason"},
        [M_CALL] = {.key = "toolCallId"},
        [M_TOOL] = {.key = "toolName"},
        [M_ERROR] = {.key = "isError"},
        [M_CUSTOM_TYPE] = {.key = "customType"},
        [M_DISPLAY] = {.key = "display"},
        [M_COMMAND] = {.key = "command"},
        [M_OUTPUT] = {.key = "output"},
    };

    line->item.kind = WAL__ITEM_MESSAGE;
    return wal__model_members(message, members, M_COUNT, &line->item.fields) ==
               WAL__JSON_OK &&
           read_role(line, members);
}

/* Returns the first entry that a compaction keeps; empty if it is the
 * compaction itself. */
static struct wal__json_span first_kept(const struct line *line,
                                        const struct wal__json_member *members)
{
    struct wal__json_span none = {NULL, 0};
    struct wal__json_span id = wal__member_string(&members[PI_FIRST_KEPT_ID]);
    struct wal__json_span number =
        wal__member_number(&members[PI_FIRST_KEPT_INDEX]);
    int64_t index = 0;

    if (id.size == 0 && number.size > 0 &&
        wal__json_integer(number, &index) == WAL__JSON_OK && index >= 0 &&
        (uint64_t)index < line->pi->count) {
        /* Index 0 is the header: all entries after it are kept. */
        id = line->pi->ids[index == 0 && line->pi->count > 1 ? 1 : index];
    }
    if (id.size == line->item.id.size &&
        memcmp(id.data, line->item.id.data, id.size) == 0) {
        return none;
    }
    return id;
}

/* Reads an entry with a line of another dialect, as walconv writes it. */
static bool read_foreign(struct line *line, struct wal__json_span data)
{
    enum {
        DIALECT,
        ASIDE,
        LINE,
        COUNT
    };
    struct wal__json_member members[COUNT] = {
        [DIALECT] = {.key = "dialect"},
        [ASIDE] = {.key = "aside"},
        [LINE] = {.key = "line"},
    };
    struct wal__json_span name;
    char text[32] = "";
    size_t size = 0;

    if (wal__model_members(data, members, COUNT, NULL) != WAL__JSON_OK) {
        return false;
    }
    name = wal__member_string(&members[DIALECT]);
    if (wal__json_unescape(name, (uint8_t *)text, sizeof(text) - 1, &size,
                           NULL) != WAL__JSON_OK) {
        size = 0;
    }
    text[size] = '\0';
    line->item.dialect = wal__dialect_find(text);
    line->item.data = wal__member_raw(&members[LINE]);
    if (line->item.dialect == NULL || line->item.data.size == 0) {
        line->item.dialect = NULL;
        line->item.data = data;
        return true;
    }
    line->item.kind = WAL__ITEM_LINE;
    line->item.is_off_branch = wal__member_is_true(&members[ASIDE]);
    line->item.name.size = 0;
    line->item.raw.size = 0;
    return true;
}

static bool read_custom(struct line *line,
                        const struct wal__json_member *members)
{
    line->item.kind = WAL__ITEM_CUSTOM;
    line->item.name = wal__member_string(&members[PI_CUSTOM_TYPE]);
    line->item.data = wal__member_non_null(&members[PI_DATA]);
    if (wal__model_text_is(line->item.name, "walconv.head")) {
        line->item.kind = WAL__ITEM_HEAD;
        return true;
    }
    if (wal__model_text_is(line->item.name, "walconv.line")) {
        return read_foreign(line, line->item.data);
    }
    return true;
}

static bool read_custom_message(struct line *line,
                                const struct wal__json_member *members)
{
    struct wal__json_span name = wal__member_string(&members[PI_CUSTOM_TYPE]);

    line->item.kind = WAL__ITEM_MESSAGE;
    if (wal__model_text_is(name, "walconv.system")) {
        line->item.role = WAL__ROLE_SYSTEM;
    } else {
        line->item.is_meta = true;
        if (!wal__model_text_is(name, "walconv.meta")) {
            line->item.name = name;
        }
    }
    return read_content(line, members[PI_CONTENT].value);
}

/* Reads an entry; an unknown type becomes a LINE. False: no memory. */
static bool read_entry(struct line *line,
                       const struct wal__json_member *members)
{
    struct wal__model_item *item = &line->item;
    struct wal__json_span type = wal__member_string(&members[PI_TYPE]);

    item->provider = wal__member_string(&members[PI_PROVIDER]);
    if (wal__model_text_is(type, "message")) {
        return read_message(line, wal__member_container(&members[PI_MESSAGE]));
    }
    if (wal__model_text_is(type, "custom")) {
        return read_custom(line, members);
    }
    if (wal__model_text_is(type, "custom_message")) {
        return read_custom_message(line, members);
    }
    if (wal__model_text_is(type, "thinking_level_change")) {
        item->kind = WAL__ITEM_THINKING_LEVEL;
        item->text = wal__member_string(&members[PI_THINKING_LEVEL]);
    } else if (wal__model_text_is(type, "model_change")) {
        item->kind = WAL__ITEM_MODEL_CHANGE;
        item->model = wal__member_string(&members[PI_MODEL_ID]);
    } else if (wal__model_text_is(type, "compaction")) {
        item->kind = WAL__ITEM_COMPACTION;
        item->text = wal__member_string(&members[PI_SUMMARY]);
        item->target = first_kept(line, members);
        item->tokens = wal__member_number(&members[PI_TOKENS_BEFORE]);
    } else if (wal__model_text_is(type, "branch_summary")) {
        item->kind = WAL__ITEM_BRANCH_SUMMARY;
        item->text = wal__member_string(&members[PI_SUMMARY]);
        item->target = wal__member_string(&members[PI_FROM_ID]);
    } else if (wal__model_text_is(type, "label")) {
        item->kind = WAL__ITEM_LABEL;
        item->target = wal__member_string(&members[PI_TARGET_ID]);
        item->text = wal__member_string(&members[PI_LABEL]);
    } else if (wal__model_text_is(type, "session_info")) {
        item->kind = WAL__ITEM_TITLE;
        item->text = wal__member_string(&members[PI_NAME]);
    } else {
        item->kind = WAL__ITEM_LINE;
        item->data = line->line->text;
    }
    return true;
}

static bool emit_header(struct line *line,
                        const struct wal__json_member *members)
{
    struct wal__model_session session = {
        .id = wal__member_string(&members[PI_ID]),
        .cwd = wal__member_string(&members[PI_CWD]),
        .time = wal__member_string(&members[PI_TIME]),
        .parent = wal__member_string(&members[PI_PARENT_SESSION]),
        .provider = wal__member_string(&members[PI_PROVIDER]),
        .model = wal__member_string(&members[PI_MODEL_ID]),
        .thinking_level = wal__member_string(&members[PI_THINKING_LEVEL]),
    };
    struct wal__json_span version = wal__member_number(&members[PI_VERSION]);

    if (version.size > 0 &&
        wal__json_integer(version, &line->pi->version) != WAL__JSON_OK) {
        line->pi->version = 1;
    }
    if (session.parent.size == 0) {
        session.parent = wal__member_string(&members[PI_BRANCHED_FROM]);
    }
    if (line->pi->version == 3) {
        session.raw = line->line->text;
        session.dialect = line->reader->dialect;
    }
    line->item.kind = WAL__ITEM_HEADER;
    line->item.session = &session;
    return wal__model_emit(line->reader, &line->item);
}

static enum wal__json_status pi_line(struct wal__model_reader *reader,
                                     const struct wal__model_line *text)
{
    struct line line = {.reader = reader, .line = text, .pi = reader->state};
    struct wal__json_member members[PI_COUNT];
    enum wal__json_status status;

    if (line.pi == NULL) {
        line.pi = wal__arena_calloc(reader->arena, sizeof(*line.pi));
        if (line.pi == NULL) {
            return WAL__JSON_NO_SPACE;
        }
        line.pi->version = 1;
        reader->state = line.pi;
    }
    memcpy(members, line_wanted, sizeof(members));
    line.item = (struct wal__model_item){
        .id = text->id, .parent = text->parent, .time = text->time};
    status =
        wal__model_members(text->text, members, PI_COUNT, &line.item.fields);
    if (status != WAL__JSON_OK) {
        return status;
    }
    if (!record_id(reader, line.pi, text->id)) {
        return WAL__JSON_NO_SPACE;
    }
    if (line.pi->count == 1 &&
        wal__line_string_is(&members[PI_TYPE], "session")) {
        return emit_header(&line, members) ? WAL__JSON_OK : WAL__JSON_NO_SPACE;
    }
    if (text->is_exact && line.pi->version == 3 &&
        members[PI_FIRST_KEPT_INDEX].value.kind == WAL__JSON_NONE) {
        line.item.raw = text->text;
    }
    if (!read_entry(&line, members) || !wal__model_emit(reader, &line.item)) {
        return WAL__JSON_NO_SPACE;
    }
    return WAL__JSON_OK;
}

const struct wal__dialect_read_ops wal__pi_read_ops = {
    .line = pi_line,
    .header = "{\"type\":\"session\",\"version\":3}",
};
