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
#include <string.h>

#include "format/json/json_character.h"
#include "format/model/dialect.h"
#include "format/model/model_content.h"

struct entry {
    struct wal__model_reader *reader;
    const struct wal__model_line *line;
    struct wal__model_item item;
    struct wal__json_span payload;
    struct wal__json_span type;
};

/* ----------------------------------------------------------- message --- */

enum {
    M_ROLE,
    M_CONTENT,
    M_CALLS,
    M_ANSWER_ID,
    M_MODEL,
    M_PROVIDER,
    M_STOP,
    M_STOP_PI,
    M_CALL,
    M_CALL_PI,
    M_TOOL,
    M_NAME,
    M_ERROR,
    M_ERROR_PI,
    M_META,
    M_BLOCKS_OF,
    M_INPUT,
    M_INPUT_PI,
    M_OUTPUT,
    M_OUTPUT_PI,
    M_READ,
    M_READ_PI,
    M_WRITE,
    M_WRITE_PI,
    M_REASONING,
    M_COST,
    M_COUNT
};

static const struct wal__json_member message_wanted[M_COUNT] = {
    [M_ROLE] = {.key = "role"},
    [M_CONTENT] = {.key = "content"},
    [M_CALLS] = {.key = "tool_calls"},
    [M_ANSWER_ID] = {.key = "id"},
    [M_MODEL] = {.key = "model"},
    [M_PROVIDER] = {.key = "provider"},
    [M_STOP] = {.key = "stop_reason"},
    [M_STOP_PI] = {.key = "stopReason"},
    [M_CALL] = {.key = "tool_call_id"},
    [M_CALL_PI] = {.key = "toolCallId"},
    [M_TOOL] = {.key = "toolName"},
    [M_NAME] = {.key = "name"},
    [M_ERROR] = {.key = "is_error"},
    [M_ERROR_PI] = {.key = "isError"},
    [M_META] = {.key = "isMeta"},
    [M_BLOCKS_OF] = {.key = "blocksOf"},
    [M_INPUT] = {.parent = "usage", .key = "input_tokens"},
    [M_INPUT_PI] = {.parent = "usage", .key = "input"},
    [M_OUTPUT] = {.parent = "usage", .key = "output_tokens"},
    [M_OUTPUT_PI] = {.parent = "usage", .key = "output"},
    [M_READ] = {.parent = "usage", .key = "cache_read_input_tokens"},
    [M_READ_PI] = {.parent = "usage", .key = "cacheRead"},
    [M_WRITE] = {.parent = "usage", .key = "cache_creation_input_tokens"},
    [M_WRITE_PI] = {.parent = "usage", .key = "cacheWrite"},
    [M_REASONING] = {.parent = "usage", .key = "reasoning"},
    [M_COST] = {.parent = "usage", .key = "cost"},
};

/* Return the first of two members that is a string, or a number. */
static struct wal__json_span
first_string(const struct wal__json_member *members, size_t key, size_t other)
{
    struct wal__json_span span = wal__member_string(&members[key]);

    return span.size > 0 ? span : wal__member_string(&members[other]);
}

static struct wal__json_span
first_number(const struct wal__json_member *members, size_t key, size_t other)
{
    struct wal__json_span span = wal__member_number(&members[key]);

    return span.size > 0 ? span : wal__member_number(&members[other]);
}

static enum wal__stop_reason read_stop(struct wal__json_span reason)
{
    static const struct {
        const char *name;
        enum wal__stop_reason stop;
    } stops[] = {
        {"end", WAL__STOP_END},           {"end_turn", WAL__STOP_END},
        {"stop", WAL__STOP_END},          {"length", WAL__STOP_LENGTH},
        {"max_tokens", WAL__STOP_LENGTH}, {"tool_use", WAL__STOP_TOOL},
        {"toolUse", WAL__STOP_TOOL},      {"tool_calls", WAL__STOP_TOOL},
        {"error", WAL__STOP_ERROR},       {"aborted", WAL__STOP_ABORTED},
        {"refusal", WAL__STOP_REFUSAL},   {"stop_sequence", WAL__STOP_SEQUENCE},
    };

    for (size_t i = 0; i < sizeof(stops) / sizeof(stops[0]); i++) {
        if (wal__model_text_is(reason, stops[i].name)) {
            return stops[i].stop;
        }
    }
    return reason.size > 0 ? WAL__STOP_OTHER : WAL__STOP_NONE;
}

static void read_fields(struct wal__model_item *item,
                        const struct wal__json_member *members)
{
    item->kind = WAL__ITEM_MESSAGE;
    item->answer_id = wal__member_string(&members[M_ANSWER_ID]);
    item->model = wal__member_string(&members[M_MODEL]);
    item->provider = wal__member_string(&members[M_PROVIDER]);
    item->stop = read_stop(first_string(members, M_STOP, M_STOP_PI));
    item->usage.input = first_number(members, M_INPUT, M_INPUT_PI);
    item->usage.output = first_number(members, M_OUTPUT, M_OUTPUT_PI);
    item->usage.cache_read = first_number(members, M_READ, M_READ_PI);
    item->usage.cache_write = first_number(members, M_WRITE, M_WRITE_PI);
    item->usage.reasoning = wal__member_number(&members[M_REASONING]);
    item->usage.cost = wal__member_number(&members[M_COST]);
    item->dialect =
        wal__dialect_find_string(wal__member_string(&members[M_BLOCKS_OF]));
}

/* Emits a message whose content has no tool results. */
static bool emit_plain(struct entry *entry,
                       const struct wal__json_member *members)
{
    struct wal__model_blocks blocks = {.arena = entry->reader->scratch};
    struct wal__model_item *item = &entry->item;

    if (!wal__content_read(members[M_CONTENT].value, &blocks, &item->fields) ||
        !wal__content_read_calls(members[M_CALLS].value, &blocks)) {
        return false;
    }
    item->blocks = blocks.items;
    item->block_count = blocks.count;
    return wal__model_emit(entry->reader, item);
}

static bool emit_message(struct entry *entry)
{
    struct wal__json_member nested = {.key = "message"};
    struct wal__json_member members[M_COUNT];
    struct wal__content_pieces pieces = {.arena = entry->reader->scratch};
    struct wal__model_item *item = &entry->item;
    struct wal__json_span role;

    memcpy(members, message_wanted, sizeof(members));
    if (wal__model_members(entry->payload, &nested, 1, NULL) != WAL__JSON_OK ||
        wal__model_members(nested.value.kind == WAL__JSON_OBJECT
                               ? nested.value.span
                               : entry->payload,
                           members, M_COUNT, &item->fields) != WAL__JSON_OK) {
        return false;
    }
    role = wal__member_string(&members[M_ROLE]);
    read_fields(item, members);
    if (wal__model_text_is(role, "assistant")) {
        item->role = WAL__ROLE_ASSISTANT;
        return emit_plain(entry, members);
    }
    if (wal__model_text_is(role, "system") ||
        wal__model_text_is(role, "developer")) {
        item->role = WAL__ROLE_SYSTEM;
        return emit_plain(entry, members);
    }
    if (wal__model_text_is(role, "tool") ||
        wal__model_text_is(role, "toolResult")) {
        item->role = WAL__ROLE_TOOL;
        item->call = first_string(members, M_CALL, M_CALL_PI);
        item->name = first_string(members, M_TOOL, M_NAME);
        item->is_error = wal__member_is_true(&members[M_ERROR]) ||
                         wal__member_is_true(&members[M_ERROR_PI]);
        return emit_plain(entry, members);
    }
    if (!wal__model_text_is(role, "user")) {
        item->kind = WAL__ITEM_LINE;
        item->dialect = NULL;
        item->data = entry->line->text;
        return wal__model_emit(entry->reader, item);
    }
    item->is_meta = wal__member_is_true(&members[M_META]);
    if (item->is_meta) {
        item->name = wal__member_string(&members[M_NAME]);
    }
    return wal__content_split(&pieces, item, members[M_CONTENT].value) &&
           wal__content_emit(&pieces, item->parent, entry->reader);
}

/* ----------------------------------------------------- other entries --- */

enum {
    P_CWD,
    P_SESSION,
    P_PARENT_SESSION,
    P_TITLE,
    P_PROVIDER,
    P_MODEL,
    P_MODEL_ID,
    P_LEVEL,
    P_THINKING_LEVEL,
    P_SUMMARY,
    P_FIRST_KEPT,
    P_TOKENS_BEFORE,
    P_SOURCE_ENTRY,
    P_FROM_ID,
    P_NAME,
    P_CUSTOM_TYPE,
    P_DATA,
    P_TARGET,
    P_LABEL,
    P_DIALECT,
    P_ASIDE,
    P_LINE,
    P_TIME,
    P_VERSION,
    P_COUNT
};

static const struct wal__json_member payload_wanted[P_COUNT] = {
    [P_CWD] = {.key = "cwd"},
    [P_SESSION] = {.key = "sessionId"},
    [P_PARENT_SESSION] = {.key = "parentSession"},
    [P_TITLE] = {.key = "title"},
    [P_PROVIDER] = {.key = "provider"},
    [P_MODEL] = {.key = "model"},
    [P_MODEL_ID] = {.key = "modelId"},
    [P_LEVEL] = {.key = "level"},
    [P_THINKING_LEVEL] = {.key = "thinkingLevel"},
    [P_SUMMARY] = {.key = "summary"},
    [P_FIRST_KEPT] = {.key = "firstKeptEntryId"},
    [P_TOKENS_BEFORE] = {.key = "tokensBefore"},
    [P_SOURCE_ENTRY] = {.key = "sourceEntryId"},
    [P_FROM_ID] = {.key = "fromId"},
    [P_NAME] = {.key = "name"},
    [P_CUSTOM_TYPE] = {.key = "customType"},
    [P_DATA] = {.key = "data"},
    [P_TARGET] = {.key = "targetEntryId"},
    [P_LABEL] = {.key = "label"},
    [P_DIALECT] = {.key = "dialect"},
    [P_ASIDE] = {.key = "aside"},
    [P_LINE] = {.key = "line"},
    [P_TIME] = {.key = "time"},
    [P_VERSION] = {.key = "version"},
};

static bool emit_header(struct entry *entry,
                        const struct wal__json_member *members)
{
    struct wal__json_member cwd = {.key = "cwd"};
    struct wal__model_session session = {
        .id = first_string(members, P_SESSION, P_SESSION),
        .cwd = wal__member_string(&members[P_CWD]),
        .title = wal__member_string(&members[P_TITLE]),
        .parent = wal__member_string(&members[P_PARENT_SESSION]),
        .provider = wal__member_string(&members[P_PROVIDER]),
        .model = first_string(members, P_MODEL, P_MODEL_ID),
        .thinking_level = wal__member_string(&members[P_THINKING_LEVEL]),
        .time = entry->line->time,
        .raw = entry->line->text,
        .dialect = entry->reader->dialect,
    };

    if (session.cwd.size == 0 &&
        wal__model_members(entry->line->text, &cwd, 1, NULL) == WAL__JSON_OK) {
        session.cwd = wal__member_string(&cwd);
    }
    if (session.id.size == 0) {
        session.id = entry->line->id;
    }
    entry->item.kind = WAL__ITEM_HEADER;
    entry->item.session = &session;
    return wal__model_emit(entry->reader, &entry->item);
}

static void read_compaction(struct entry *entry,
                            const struct wal__json_member *members)
{
    struct wal__model_item *item = &entry->item;

    item->kind = WAL__ITEM_COMPACTION;
    item->text = wal__member_string(&members[P_SUMMARY]);
    item->target = wal__member_string(&members[P_FIRST_KEPT]);
    item->tokens = wal__member_number(&members[P_TOKENS_BEFORE]);
    if (item->target.size > 0 &&
        wal__json_characters_equal(item->target, item->id)) {
        item->target.size = 0;
    }
}

static void read_custom(struct entry *entry,
                        const struct wal__json_member *members)
{
    struct wal__model_item *item = &entry->item;

    item->kind = WAL__ITEM_CUSTOM;
    item->name = first_string(members, P_CUSTOM_TYPE, P_NAME);
    item->data = wal__member_non_null(&members[P_DATA]);
    if (item->name.size == 0 && item->data.size == 0) {
        item->data = entry->payload;
    }
    if (wal__model_text_is(item->name, "walconv.head")) {
        item->kind = WAL__ITEM_HEAD;
    } else if (wal__model_text_is(item->name, "walconv.line")) {
        const struct wal__dialect *dialect =
            wal__dialect_find_string(wal__member_string(&members[P_DIALECT]));
        struct wal__json_span line = wal__member_raw(&members[P_LINE]);
        if (dialect != NULL && line.size > 0) {
            item->kind = WAL__ITEM_LINE;
            item->dialect = dialect;
            item->data = line;
            item->is_off_branch = wal__member_is_true(&members[P_ASIDE]);
            item->name.size = 0;
            item->raw.size = 0;
        }
    }
}

static bool emit_other(struct entry *entry)
{
    struct wal__json_member members[P_COUNT];
    struct wal__model_item *item = &entry->item;
    struct wal__json_span type = entry->type;

    memcpy(members, payload_wanted, sizeof(members));
    if (wal__model_members(entry->payload, members, P_COUNT, &item->fields) !=
        WAL__JSON_OK) {
        return false;
    }
    if (wal__model_text_is(type, "session_header")) {
        return emit_header(entry, members);
    }
    if (wal__model_text_is(type, "model_change")) {
        item->kind = WAL__ITEM_MODEL_CHANGE;
        item->provider = wal__member_string(&members[P_PROVIDER]);
        item->model = first_string(members, P_MODEL_ID, P_MODEL);
    } else if (wal__model_text_is(type, "thinking_level_change")) {
        item->kind = WAL__ITEM_THINKING_LEVEL;
        item->text = first_string(members, P_THINKING_LEVEL, P_LEVEL);
    } else if (wal__model_text_is(type, "compaction_summary") ||
               wal__model_text_is(type, "compaction")) {
        read_compaction(entry, members);
    } else if (wal__model_text_is(type, "branch_summary")) {
        item->kind = WAL__ITEM_BRANCH_SUMMARY;
        item->text = wal__member_string(&members[P_SUMMARY]);
        item->target = first_string(members, P_SOURCE_ENTRY, P_FROM_ID);
    } else if (wal__model_text_is(type, "label")) {
        item->kind = WAL__ITEM_LABEL;
        item->target = wal__member_string(&members[P_TARGET]);
        item->text = wal__member_string(&members[P_LABEL]);
    } else if (wal__model_text_is(type, "session_info")) {
        item->kind = WAL__ITEM_TITLE;
        item->text = wal__member_string(&members[P_NAME]);
    } else if (wal__model_text_is(type, "custom")) {
        read_custom(entry, members);
    } else {
        item->kind = WAL__ITEM_LINE;
        item->data = entry->line->text;
    }
    return wal__model_emit(entry->reader, item);
}

static enum wal__json_status entries_line(struct wal__model_reader *reader,
                                          const struct wal__model_line *line)
{
    enum {
        TYPE,
        ID,
        PARENT,
        TIME,
        RUN,
        PAYLOAD,
        SIDECHAIN,
        COUNT
    };
    struct wal__json_member members[COUNT] = {
        [TYPE] = {.key = "type"},
        [ID] = {.key = "id"},
        [PARENT] = {.key = "parentId"},
        [TIME] = {.key = "timestamp"},
        [RUN] = {.key = "runId"},
        [PAYLOAD] = {.key = "payload"},
        [SIDECHAIN] = {.parent = "meta", .key = "isSidechain"},
    };
    struct entry entry = {.reader = reader, .line = line};
    enum wal__json_status status;
    bool is_done;

    entry.item = (struct wal__model_item){.stream = line->stream,
                                          .id = line->id,
                                          .parent = line->parent,
                                          .time = line->time};
    status = wal__model_members(line->text, members, COUNT, &entry.item.fields);
    if (status != WAL__JSON_OK) {
        return status;
    }
    entry.type = wal__member_string(&members[TYPE]);
    entry.payload = wal__member_container(&members[PAYLOAD]);
    if (entry.payload.size == 0) {
        entry.payload = wal__model_literal("{}");
    }
    entry.item.is_sidechain = wal__member_is_true(&members[SIDECHAIN]);
    if (line->is_exact) {
        entry.item.raw = line->text;
    }
    is_done = wal__model_text_is(entry.type, "message") ? emit_message(&entry)
                                                        : emit_other(&entry);
    return is_done ? WAL__JSON_OK : WAL__JSON_NO_SPACE;
}

const struct wal__dialect_read_ops wal__entries_read_ops = {.line =
                                                                entries_line};
