/*
 * codex.c - recognises and reads lines of the rollout files of Codex.
 *
 * Tagged: every line is {timestamp, type, payload}; the first is session_meta.
 * Untagged, as in 2025: the first line is {id, timestamp, instructions, git?},
 * then bare items and {"record_type":"state"} lines follow.
 *
 * Invariant: lines have no ids; the parent is the previous line. Every line
 * moves the head.
 *
 * Threads: no shared state; any thread may call any function.
 */
#include "convert/model/dialect.h"

#include "format/json/json_value.h"

enum {
    LINE_TYPE,
    LINE_TIME,
    LINE_CREATED,
    LINE_ID,
    LINE_INSTRUCTIONS,
    LINE_ROLE,
    LINE_PAYLOAD,
    LINE_PAYLOAD_TYPE,
    LINE_PAYLOAD_ID,
    LINE_PAYLOAD_CWD,
    LINE_PAYLOAD_NAME,
    LINE_COUNT
};

static const struct wal__json_member line_wanted[LINE_COUNT] = {
    [LINE_TYPE] = {.key = "type"},
    [LINE_TIME] = {.key = "timestamp"},
    [LINE_CREATED] = {.key = "created_at"},
    [LINE_ID] = {.key = "id"},
    [LINE_INSTRUCTIONS] = {.key = "instructions"},
    [LINE_ROLE] = {.key = "role"},
    [LINE_PAYLOAD] = {.key = "payload"},
    [LINE_PAYLOAD_TYPE] = {.parent = "payload", .key = "type"},
    [LINE_PAYLOAD_ID] = {.parent = "payload", .key = "id"},
    [LINE_PAYLOAD_CWD] = {.parent = "payload", .key = "cwd"},
    [LINE_PAYLOAD_NAME] = {.parent = "payload", .key = "thread_name"},
};

static enum wal__json_status line_members(const void *data, size_t size,
                                          struct wal__json_member *members,
                                          size_t *error_offset)
{
    for (size_t i = 0; i < LINE_COUNT; i++) {
        members[i] = line_wanted[i];
    }
    return wal__line_members(data, size, members, LINE_COUNT, error_offset);
}

static bool has(const struct wal__json_member *members, size_t key,
                enum wal__json_kind kind)
{
    return members[key].value.kind == kind;
}

static bool is_untagged_header(const struct wal__json_member *members)
{
    return has(members, LINE_TYPE, WAL__JSON_NONE) &&
           has(members, LINE_ID, WAL__JSON_STRING) &&
           has(members, LINE_TIME, WAL__JSON_STRING) &&
           !has(members, LINE_INSTRUCTIONS, WAL__JSON_NONE);
}

static bool codex_recognise(const void *data, size_t size, bool is_first)
{
    static const char *const types[] = {"session_meta", "response_item",
                                        "event_msg",    "turn_context",
                                        "compacted",    "world_state"};
    struct wal__json_member members[LINE_COUNT];

    if (line_members(data, size, members, NULL) != WAL__JSON_OK) {
        return false;
    }
    if (is_first && is_untagged_header(members)) {
        return true;
    }
    if (!has(members, LINE_PAYLOAD, WAL__JSON_OBJECT) ||
        !has(members, LINE_TIME, WAL__JSON_STRING) ||
        !has(members, LINE_TYPE, WAL__JSON_STRING) ||
        !has(members, LINE_ID, WAL__JSON_NONE)) {
        return false;
    }
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (wal__json_string_is(members[LINE_TYPE].value.span, types[i])) {
            return true;
        }
    }
    return false;
}

static enum wal__json_status codex_read(const void *data, size_t size,
                                        struct wal__line_info *line,
                                        size_t *error_offset)
{
    struct wal__json_member members[LINE_COUNT];
    enum wal__json_status status;

    status = line_members(data, size, members, error_offset);
    if (status != WAL__JSON_OK) {
        return status;
    }
    *line = (struct wal__line_info){
        .type = wal__line_string(&members[LINE_TYPE]),
        .time = wal__line_string(&members[LINE_TIME]),
        .link = WAL__LINK_PREVIOUS,
        .head = WAL__HEAD_MOVE,
        .is_in_conversation = true,
        .has_duplicate_key = wal__line_has_duplicate_key(members, LINE_COUNT),
        .is_message = has(members, LINE_ROLE, WAL__JSON_STRING),
    };
    if (line->time.size == 0) {
        line->time = wal__line_string(&members[LINE_CREATED]);
    }
    if (wal__line_string_is(&members[LINE_TYPE], "session_meta")) {
        line->session = wal__line_string(&members[LINE_PAYLOAD_ID]);
        line->cwd = wal__line_string(&members[LINE_PAYLOAD_CWD]);
        line->is_header = true;
    } else if (is_untagged_header(members)) {
        line->session = wal__line_string(&members[LINE_ID]);
        line->is_header = true;
    } else if (wal__line_string_is(&members[LINE_PAYLOAD_TYPE],
                                   "thread_name_updated")) {
        line->title = wal__line_string(&members[LINE_PAYLOAD_NAME]);
    }
    return WAL__JSON_OK;
}

const struct wal__dialect wal__dialect_codex = {
    .name = "codex",
    .summary = "rollout files of Codex, tagged and untagged",
    .headers = WAL__HEADERS_MANY,
    .recognise = codex_recognise,
    .read = codex_read,
    .read_ops = &wal__codex_read_ops,
    .write_ops = &wal__codex_write_ops,
};
