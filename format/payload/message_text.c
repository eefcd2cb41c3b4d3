/*
 * message_text.c - finds messages and their texts (message_text.h).
 */
#include "format/payload/message_text.h"

#include <string.h>

#include "format/json/json_text.h"
#include "format/payload/first_text.h"

#define LITERAL(name, text)                      \
    static const struct wal__json_token name = { \
        .span = {(const uint8_t *)(text), sizeof(text) - 1}, .kind = WAL__JSON_STRING}

LITERAL(user_role, "\"user\"");
LITERAL(system_role, "\"system\"");
LITERAL(assistant_role, "\"assistant\"");
LITERAL(history_role, "\"history\"");
LITERAL(tool_role, "\"tool\"");
LITERAL(shell_name, "\"local_shell\"");
LITERAL(bash_name, "\"bash\"");
LITERAL(search_name, "\"web_search\"");

static bool is_text(const struct wal__json_member *member, const char *text)
{
    return member->value.kind == WAL__JSON_STRING && wal__json_string_is(member->value.span, text);
}

/* --- finding ------------------------------------------------------------ */

/* Whether an object has a role, and content or calls; sets them. */
static bool is_message(struct wal__json_span object, struct wal__message *message)
{
    enum {
        ROLE,
        CONTENT,
        CALLS,
        INFO_ROLE,
        INFO_TYPE, /* of OpenCode 2, with the content of the message or its text */
        INFO_CONTENT,
        INFO_TEXT,
        PARTS,
        COMMAND,
        META,
        SUMMARY,
        COUNT
    };
    struct wal__json_member m[COUNT] = {
        [ROLE] = {.key = "role"},
        [CONTENT] = {.key = "content"},
        [CALLS] = {.key = "tool_calls"},
        [INFO_ROLE] = {.parent = "info", .key = "role"},
        [PARTS] = {.key = "parts"},
        [COMMAND] = {.key = "command"},
        [INFO_TYPE] = {.parent = "info", .key = "type"},
        [INFO_CONTENT] = {.parent = "info", .key = "content"},
        [INFO_TEXT] = {.parent = "info", .key = "text"},
        [META] = {.key = "isMeta"},
        [SUMMARY] = {.key = "isCompactSummary"},
    };
    bool is_opencode;

    if (wal__json_members(object.data, object.size, m, COUNT, NULL) != WAL__JSON_OK) {
        return false;
    }
    *message = (struct wal__message){
        .is_meta = message->is_meta || m[META].value.kind == WAL__JSON_TRUE,
        .is_summary = message->is_summary || m[SUMMARY].value.kind == WAL__JSON_TRUE,
        .object = object};
    if (m[INFO_ROLE].value.kind == WAL__JSON_NONE && m[INFO_TYPE].value.kind == WAL__JSON_STRING &&
        m[PARTS].value.kind == WAL__JSON_ARRAY) {
        m[INFO_ROLE] = m[INFO_TYPE];
        m[CONTENT] = m[m[INFO_CONTENT].value.kind == WAL__JSON_ARRAY ? INFO_CONTENT : INFO_TEXT];
    }
    is_opencode =
        m[INFO_ROLE].value.kind == WAL__JSON_STRING && m[PARTS].value.kind == WAL__JSON_ARRAY;
    message->role = m[is_opencode ? INFO_ROLE : ROLE].value;
    message->content =
        m[m[PARTS].value.kind == WAL__JSON_ARRAY && m[CONTENT].value.kind == WAL__JSON_NONE
              ? PARTS
              : CONTENT]
            .value;
    message->calls = m[CALLS].value;
    if (is_text(&m[ROLE], "model") && !is_opencode) {
        message->role = assistant_role;
    }
    if (is_text(&m[ROLE], "bashExecution") && m[COMMAND].value.kind == WAL__JSON_STRING) {
        message->item = object;
        return true;
    }
    return message->role.kind == WAL__JSON_STRING &&
           (message->content.kind != WAL__JSON_NONE || message->calls.kind == WAL__JSON_ARRAY);
}

/* Whether an object is a call of Codex or its output. */
static bool is_item(struct wal__json_span object, struct wal__message *message)
{
    static const char *const calls[] = {"function_call", "custom_tool_call", "local_shell_call",
                                        "web_search_call"};
    static const char *const outputs[] = {"function_call_output", "custom_tool_call_output"};
    struct wal__json_member type = {.key = "type"};

    *message = (struct wal__message){.item = object, .object = object};
    if (wal__json_members(object.data, object.size, &type, 1, NULL) != WAL__JSON_OK) {
        return false;
    }
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        if (is_text(&type, calls[i])) {
            message->role = assistant_role;
            return true;
        }
    }
    for (size_t i = 0; i < sizeof(outputs) / sizeof(outputs[0]); i++) {
        if (is_text(&type, outputs[i])) {
            message->role = tool_role;
            return true;
        }
    }
    return false;
}

/* Removes a text that is empty. */
static void drop_empty(struct wal__json_token *text)
{
    if (text->kind == WAL__JSON_STRING && text->span.size <= 2) {
        text->kind = WAL__JSON_NONE;
    }
}

/* Whether the payload is an event of Copilot whose data is a message; sets it. */
static bool is_event(struct wal__json_span payload, struct wal__message *message)
{
    enum { TYPE, DATA, CONTENT, SOURCE, REASONING, REQUESTS, ATTACHMENTS, RESULT, ERROR, COUNT };
    struct wal__json_member m[COUNT] = {
        [TYPE] = {.key = "type"},
        [DATA] = {.key = "data"},
        [CONTENT] = {.parent = "data", .key = "content"},
        [SOURCE] = {.parent = "data", .key = "source"},
        [REASONING] = {.parent = "data", .key = "reasoningText"},
        [REQUESTS] = {.parent = "data", .key = "toolRequests"},
        [ATTACHMENTS] = {.parent = "data", .key = "attachments"},
        [RESULT] = {.parent = "data", .key = "result"},
        [ERROR] = {.parent = "data", .key = "error"},
    };
    struct wal__json_member inner[] = {{.key = "content"}, {.key = "contents"}, {.key = "message"}};

    if (wal__json_members(payload.data, payload.size, m, COUNT, NULL) != WAL__JSON_OK ||
        m[DATA].value.kind != WAL__JSON_OBJECT) {
        return false;
    }
    *message = (struct wal__message){
        .content = m[CONTENT].value, .files = m[ATTACHMENTS].value, .object = m[DATA].value.span};
    if (is_text(&m[TYPE], "user.message")) {
        message->role = m[SOURCE].value.kind == WAL__JSON_STRING &&
                                wal__first_text_is_client_source(m[SOURCE].value.span)
                            ? system_role
                            : user_role;
    } else if (is_text(&m[TYPE], "assistant.message")) {
        message->role = assistant_role;
        message->thoughts = m[REASONING].value;
        message->calls = m[REQUESTS].value;
    } else if (is_text(&m[TYPE], "system.message") || is_text(&m[TYPE], "system.notification")) {
        message->role = system_role;
    } else if (is_text(&m[TYPE], "tool.execution_complete")) {
        size_t from = m[RESULT].value.kind == WAL__JSON_OBJECT ? RESULT : ERROR;

        message->role = tool_role;
        message->content = m[ERROR].value; /* unless it is an object */
        if (m[from].value.kind == WAL__JSON_OBJECT &&
            wal__json_members(m[from].value.span.data, m[from].value.span.size, inner, 3, NULL) ==
                WAL__JSON_OK) {
            message->content = inner[from == RESULT ? 0 : 2].value;
            message->files = inner[1].value;
        }
    } else {
        return false;
    }
    drop_empty(&message->content);
    drop_empty(&message->thoughts);
    return true;
}

/* Whether the payload is a step that names its source, and is a message by that; sets it. */
static bool is_authored(struct wal__json_span payload, struct wal__message *message)
{
    enum { SOURCE, TYPE, TIME, CONTENT, THINKING, CALLS, COUNT };
    static const struct wal__json_token *const roles[] = {[WAL__STEP_PERSON] = &user_role,
                                                          [WAL__STEP_MODEL] = &assistant_role,
                                                          [WAL__STEP_TOOL] = &tool_role,
                                                          [WAL__STEP_CLIENT] = &system_role};
    struct wal__json_member m[COUNT] = {
        [SOURCE] = {.key = "source"},     [TYPE] = {.key = "type"},
        [TIME] = {.key = "created_at"},   [CONTENT] = {.key = "content"},
        [THINKING] = {.key = "thinking"}, [CALLS] = {.key = "tool_calls"},
    };
    enum wal__step_author author;

    if (wal__json_members(payload.data, payload.size, m, COUNT, NULL) != WAL__JSON_OK ||
        m[SOURCE].value.kind != WAL__JSON_STRING || m[TIME].value.kind != WAL__JSON_STRING ||
        (m[CONTENT].value.kind != WAL__JSON_STRING && m[CALLS].value.kind != WAL__JSON_ARRAY)) {
        return false;
    }
    author = wal__step_author(m[SOURCE].value.span, m[TYPE].value.kind == WAL__JSON_STRING
                                                        ? m[TYPE].value.span
                                                        : (struct wal__json_span){NULL, 0});
    if (author == WAL__STEP_UNKNOWN) {
        return false;
    }
    *message = (struct wal__message){.role = *roles[author],
                                     .content = m[CONTENT].value,
                                     .thoughts = m[THINKING].value,
                                     .calls = m[CALLS].value,
                                     .object = payload};
    drop_empty(&message->content);
    drop_empty(&message->thoughts);
    return true;
}

/* Whether the payload is a message of Gemini; sets it. */
static bool is_record(struct wal__json_span payload, struct wal__message *message)
{
    static const char *const models[] = {"gemini", "tabnine", "model"};
    enum { TYPE, ID, TIME, CONTENT, SHOWN, PARTS, THOUGHTS, CALLS, COUNT };
    struct wal__json_member m[COUNT] = {
        [TYPE] = {.key = "type"},
        [ID] = {.key = "id"},
        [TIME] = {.key = "timestamp"},
        [CONTENT] = {.key = "content"},
        [SHOWN] = {.key = "displayContent"},
        [PARTS] = {.key = "parts"},
        [THOUGHTS] = {.key = "thoughts"},
        [CALLS] = {.key = "toolCalls"},
    };

    if (wal__json_members(payload.data, payload.size, m, COUNT, NULL) != WAL__JSON_OK ||
        m[ID].value.kind != WAL__JSON_STRING || m[TIME].value.kind != WAL__JSON_STRING ||
        (m[CONTENT].value.kind == WAL__JSON_NONE && m[PARTS].value.kind != WAL__JSON_ARRAY)) {
        return false;
    }
    *message = (struct wal__message){
        .content = m[m[CONTENT].value.kind == WAL__JSON_NONE ? PARTS : CONTENT].value,
        .object = payload};
    if (is_text(&m[TYPE], "user")) {
        message->role = user_role;
        if (m[SHOWN].value.kind == WAL__JSON_STRING || m[SHOWN].value.kind == WAL__JSON_ARRAY) {
            message->content = m[SHOWN].value;
        }
        return true;
    }
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        if (is_text(&m[TYPE], models[i])) {
            message->role = assistant_role;
            message->thoughts = m[THOUGHTS].value;
            message->calls = m[CALLS].value;
            drop_empty(&message->content);
            return true;
        }
    }
    return false;
}

/* Whether the payload replaces the messages of Gemini by others, or is a session of it as a whole;
 * sets it. */
static bool is_history(struct wal__json_span payload, struct wal__message *message)
{
    struct wal__json_member m[] = {
        {.parent = "$set", .key = "messages"}, {.key = "messages"}, {.key = "projectHash"}};

    if (wal__json_members(payload.data, payload.size, m, 3, NULL) != WAL__JSON_OK) {
        return false;
    }
    if (m[2].value.kind == WAL__JSON_STRING && m[0].value.kind == WAL__JSON_NONE) {
        m[0].value = m[1].value;
    }
    *message =
        (struct wal__message){.role = history_role, .messages = m[0].value, .object = payload};
    return m[0].value.kind == WAL__JSON_ARRAY;
}

/* Whether a payload has an event of a step of a model, {event: {type, ...}}, or of what happened in
 * a turn, {message: {type, payload}}, or the prompt of a turn, {type, input}. */
static bool is_step(struct wal__json_span payload, struct wal__message *message)
{
    enum { EVENT, EVENT_TYPE, PART, RECORD_TYPE, RECORD, TYPE, INPUT, ORIGIN, COUNT };
    struct wal__json_member m[COUNT] = {
        [EVENT] = {.key = "event"},
        [EVENT_TYPE] = {.parent = "event", .key = "type"},
        [PART] = {.parent = "event", .key = "part"},
        [RECORD_TYPE] = {.parent = "message", .key = "type"},
        [RECORD] = {.parent = "message", .key = "payload"},
        [TYPE] = {.key = "type"},
        [INPUT] = {.key = "input"},
        [ORIGIN] = {.parent = "origin", .key = "kind"},
    };
    bool is_result;
    size_t at = EVENT;

    if (wal__json_members(payload.data, payload.size, m, COUNT, NULL) != WAL__JSON_OK) {
        return false;
    }
    if (is_text(&m[TYPE], "turn.prompt") || is_text(&m[TYPE], "turn.steer")) {
        *message = (struct wal__message){.is_meta = m[ORIGIN].value.kind != WAL__JSON_NONE &&
                                                    !is_text(&m[ORIGIN], "user"),
                                         .is_queued = true,
                                         .role = user_role,
                                         .content = m[INPUT].value,
                                         .object = payload};
        return m[INPUT].value.kind == WAL__JSON_STRING || m[INPUT].value.kind == WAL__JSON_ARRAY;
    }
    if (is_text(&m[RECORD_TYPE], "TurnBegin") || is_text(&m[RECORD_TYPE], "SteerInput")) {
        *message = (struct wal__message){.role = user_role, .object = m[RECORD].value.span};
        return wal__json_find(message->object.data, message->object.size, "user_input",
                              &message->content) == WAL__JSON_OK &&
               (message->content.kind == WAL__JSON_STRING ||
                message->content.kind == WAL__JSON_ARRAY);
    }
    is_result = is_text(&m[EVENT_TYPE], "tool.result") || is_text(&m[RECORD_TYPE], "ToolResult");
    if (is_text(&m[EVENT_TYPE], "content.part")) {
        at = PART;
    } else if (is_text(&m[RECORD_TYPE], "ContentPart") || is_text(&m[RECORD_TYPE], "ToolCall") ||
               is_text(&m[RECORD_TYPE], "ToolResult")) {
        at = RECORD;
    } else if (!is_result && !is_text(&m[EVENT_TYPE], "tool.call")) {
        return false;
    }
    *message = (struct wal__message){.item = m[at].value.span,
                                     .object = m[at].value.span,
                                     .role = is_result ? tool_role : assistant_role};
    return m[at].value.kind == WAL__JSON_OBJECT;
}

/* Follows a path of at most two keys. */
static bool follow(const char *const path[2], struct wal__json_span *at)
{
    for (size_t step = 0; step < 2 && path[step] != NULL; step++) {
        struct wal__json_token value;

        if (wal__json_find(at->data, at->size, path[step], &value) != WAL__JSON_OK) {
            return false;
        }
        *at = value.span;
    }
    return true;
}

/* Whether an object in `message` without a role is one by the role or the type of the row. */
static bool is_message_of_row(struct wal__json_span row, struct wal__json_span object,
                              struct wal__message *message)
{
    struct wal__json_member m[] = {{.key = "type"}, {.key = "role"}};
    const struct wal__json_member *role = &m[1];

    if (message->object.data != object.data || message->role.kind != WAL__JSON_NONE ||
        message->content.kind == WAL__JSON_NONE ||
        wal__json_members(row.data, row.size, m, 2, NULL) != WAL__JSON_OK) {
        return false;
    }
    role = role->value.kind == WAL__JSON_NONE ? &m[0] : role;
    if (!is_text(role, "user") && !is_text(role, "assistant")) {
        return false;
    }
    message->role = role->value;
    return true;
}

/* Whether a payload has what a person typed while an agent worked. */
static bool is_queued(struct wal__json_span payload, struct wal__message *message)
{
    enum { TYPE, OPERATION, CONTENT, ATTACHMENT, MODE, PROMPT, META, COUNT };
    struct wal__json_member m[COUNT] = {
        [TYPE] = {.key = "type"},
        [OPERATION] = {.key = "operation"},
        [CONTENT] = {.key = "content"},
        [ATTACHMENT] = {.parent = "attachment", .key = "type"},
        [MODE] = {.parent = "attachment", .key = "commandMode"},
        [PROMPT] = {.parent = "attachment", .key = "prompt"},
        [META] = {.parent = "attachment", .key = "isMeta"},
    };
    size_t content = PROMPT;

    *message = (struct wal__message){.role = user_role, .object = payload};
    if (wal__json_members(payload.data, payload.size, m, COUNT, NULL) != WAL__JSON_OK) {
        return false;
    }
    if (is_text(&m[TYPE], "queue-operation") && is_text(&m[OPERATION], "enqueue") &&
        m[CONTENT].value.kind == WAL__JSON_STRING) {
        content = CONTENT;
        message->is_queued = true;
    } else if (!is_text(&m[TYPE], "attachment") || !is_text(&m[ATTACHMENT], "queued_command") ||
               !is_text(&m[MODE], "prompt")) {
        return false;
    }
    message->is_meta = m[META].value.kind == WAL__JSON_TRUE;
    message->content = m[content].value;
    return message->content.kind == WAL__JSON_STRING || message->content.kind == WAL__JSON_ARRAY;
}

/* Whether a row of Qwen Code with a user's message has not the words of a person. */
static bool is_row_of_client(const struct wal__json_member *subtype,
                             const struct wal__json_member *provenance)
{
    static const char *const subtypes[] = {"notification", "cron", "background_task_completed"};
    bool is_of_client = false;

    for (size_t i = 0; i < sizeof(subtypes) / sizeof(subtypes[0]); i++) {
        is_of_client |= is_text(subtype, subtypes[i]);
    }
    return is_of_client ||
           (subtype->value.span.size > 6 && memcmp(subtype->value.span.data, "\"goal_", 6) == 0) ||
           is_text(provenance, "system") || is_text(provenance, "goal_control") ||
           is_text(provenance, "goal_runtime");
}

/* Sets what the row says of its message: who wrote it, and what the client showed in the place of
 * its texts. */
static void read_row(struct wal__json_span row, struct wal__message *message)
{
    static const char image[] = "\"inlineData\"";
    struct wal__json_member m[] = {{.key = "subtype"},
                                   {.key = "provenance"},
                                   {.parent = "systemPayload", .key = "displayText"}};

    if (!wal__json_string_is(message->role.span, "user") ||
        wal__json_members(row.data, row.size, m, 3, NULL) != WAL__JSON_OK) {
        return;
    }
    message->is_meta |= is_row_of_client(&m[0], &m[1]);
    if (m[2].value.kind == WAL__JSON_STRING && m[2].value.span.size > 2 &&
        message->content.kind == WAL__JSON_ARRAY &&
        memmem(message->content.span.data, message->content.span.size, image, sizeof(image) - 1) ==
            NULL) {
        message->content = m[2].value;
    }
}

/* Whether a row has a command of a person to Qwen Code, or what the client answered. */
static bool is_command(struct wal__json_span row, struct wal__message *message)
{
    enum { SUBTYPE, PHASE, COMMAND, HIDDEN, SENT, OUTPUT, COUNT };
    struct wal__json_member m[COUNT] = {
        [SUBTYPE] = {.key = "subtype"},
        [PHASE] = {.parent = "systemPayload", .key = "phase"},
        [COMMAND] = {.parent = "systemPayload", .key = "rawCommand"},
        [HIDDEN] = {.parent = "systemPayload", .key = "hiddenInvocation"},
        [SENT] = {.parent = "systemPayload", .key = "sentToModel"},
        [OUTPUT] = {.parent = "systemPayload", .key = "outputHistoryItems"},
    };
    bool is_result;

    if (wal__json_members(row.data, row.size, m, COUNT, NULL) != WAL__JSON_OK ||
        !is_text(&m[SUBTYPE], "slash_command")) {
        return false;
    }
    is_result = is_text(&m[PHASE], "result");
    *message = (struct wal__message){.is_meta = is_result,
                                     .role = user_role,
                                     .content = m[is_result ? OUTPUT : COMMAND].value,
                                     .object = row};
    return is_result
               ? message->content.kind == WAL__JSON_ARRAY && message->content.span.size > 2
               : message->content.kind == WAL__JSON_STRING &&
                     m[HIDDEN].value.kind != WAL__JSON_TRUE && m[SENT].value.kind != WAL__JSON_TRUE;
}

bool wal__message_is_of_request(struct wal__json_span type)
{
    static const char prefix[] = "\"api-request";

    return type.size >= sizeof(prefix) && memcmp(type.data, prefix, sizeof(prefix) - 1) == 0;
}

bool wal__message_find(struct wal__json_span payload, struct wal__message *message)
{
    static const char *const paths[][2] = {
        {NULL, NULL},
        {"message", NULL},
        {"payload", NULL},
        {"payload", "message"},
    };
    struct wal__json_token type;

    *message = (struct wal__message){.is_meta = false};
    if (wal__json_find(payload.data, payload.size, "type", &type) == WAL__JSON_OK &&
        type.kind == WAL__JSON_STRING && wal__message_is_of_request(type.span)) {
        return false;
    }
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        struct wal__json_span at = payload;

        if (follow(paths[i], &at) &&
            (is_message(at, message) || (i == 1 && is_message_of_row(payload, at, message)))) {
            if (i == 1) {
                read_row(payload, message);
            }
            return true;
        }
    }
    for (size_t i = 0; i < 3; i += 2) { /* the payload, and its `payload` */
        struct wal__json_span at = payload;

        if (follow(paths[i], &at) && is_item(at, message)) {
            return true;
        }
    }
    return is_event(payload, message) || is_record(payload, message) ||
           is_history(payload, message) || is_authored(payload, message) ||
           is_step(payload, message) || is_queued(payload, message) || is_command(payload, message);
}

bool wal__message_find_note(struct wal__json_span payload, struct wal__json_token *note,
                            const char **key)
{
    static const struct {
        const char *parent;
        const char *key;
        const char *as;
    } names[] = {
        {NULL, "summary", "summary"},          {NULL, "text", "text"},
        {NULL, "content", "content"},          {NULL, "name", "name"},
        {"payload", "summary", "summary"},     {"payload", "text", "text"},
        {"payload", "content", "content"},     {"payload", "name", "name"},
        {"data", "summaryContent", "summary"}, {"data", "message", "text"},
    };
    enum { COUNT = sizeof(names) / sizeof(names[0]) };
    struct wal__json_member m[COUNT + 1] = {[COUNT] = {.key = "type"}};

    for (size_t i = 0; i < COUNT; i++) {
        m[i] = (struct wal__json_member){.parent = names[i].parent, .key = names[i].key};
    }
    if (wal__json_members(payload.data, payload.size, m, COUNT + 1, NULL) != WAL__JSON_OK ||
        is_text(&m[COUNT], "queue-operation") || is_text(&m[COUNT], "turn_context")) {
        return false;
    }
    for (size_t i = 0; i < COUNT; i++) {
        if (m[i].value.kind == WAL__JSON_STRING) {
            *note = m[i].value;
            *key = names[i].as;
            return true;
        }
    }
    return false;
}

/* --- parts -------------------------------------------------------------- */

/* Calls `each` for the elements of an array. */
typedef void element_fn(void *ctx, const struct wal__json_token *element);

static void visit_array(const struct wal__json_token *array, element_fn *each, void *ctx)
{
    struct wal__json_scan scan;
    struct wal__json_token token;

    if (array->kind != WAL__JSON_ARRAY) {
        return;
    }
    wal__json_scan_init(&scan, array->span.data, array->span.size);
    if (wal__json_scan_next(&scan, &token) != WAL__JSON_OK) {
        return;
    }
    while (wal__json_scan_skip(&scan, &token) == WAL__JSON_OK &&
           token.kind != WAL__JSON_ARRAY_END) {
        each(ctx, &token);
    }
}

struct visit {
    wal__message_part_fn *each;
    void *ctx;
    struct wal__json_token author;
    struct wal__json_span block;
    bool is_user; /* of a user's message */
    bool is_meta;
};

/* --- texts of a user ----------------------------------------------------- */

static void pass_excerpt(const struct visit *visit, enum wal__message_part_kind kind,
                         struct wal__json_span text, struct wal__json_span value)
{
    const struct wal__message_part part = {
        .kind = kind,
        .is_excerpt = true,
        .text = {.span = text, .kind = WAL__JSON_STRING},
        .value = {.span = value, .kind = value.size > 0 ? WAL__JSON_STRING : WAL__JSON_NONE},
        .block = visit->block,
        .author = visit->author};

    visit->each(visit->ctx, &part);
}

/* Passes the parts of a text that begins with a tag; false if it does not. */
static bool pass_tagged(const struct visit *visit, const struct wal__json_token *text)
{
    const struct wal__json_span none = {NULL, 0};
    const enum wal__message_part_kind words = visit->is_meta ? WAL__PART_NOTE : WAL__PART_TEXT;
    struct wal__json_span rest = {text->span.data + 1, text->span.size - 2};
    struct wal__json_span command = none;
    struct wal__json_span arguments = none;
    struct wal__json_span inner;
    bool is_tagged = false;
    enum wal__user_tag tag;

    while ((tag = wal__user_tag_read(&rest, &inner)) != WAL__TAG_NONE) {
        if (tag == WAL__TAG_COMMAND) {
            command = inner;
        } else if (tag == WAL__TAG_ARGUMENTS) {
            arguments = inner;
        } else if (tag != WAL__TAG_REPEATED) {
            pass_excerpt(visit, tag == WAL__TAG_WORDS ? words : WAL__PART_NOTE, inner, none);
        }
        is_tagged = true;
    }
    if (command.size > 0) {
        pass_excerpt(visit, WAL__PART_COMMAND, command, arguments);
    }
    rest = wal__user_trim(rest);
    if (is_tagged && rest.size > 0) {
        pass_excerpt(visit, words, rest, none);
    }
    return is_tagged;
}

/* Whether a text is what Codex sends of the files with instructions. */
static bool is_of_instructions(struct wal__json_span text)
{
    static const char begin[] = "\"# AGENTS.md instructions";
    static const char tag[] = "<INSTRUCTIONS>";

    return text.size >= sizeof(begin) && memcmp(text.data, begin, sizeof(begin) - 1) == 0 &&
           memmem(text.data, text.size, tag, sizeof(tag) - 1) != NULL;
}

/* Passes a text, as it is or as the parts of a user's. */
static void pass_message_text(const struct visit *visit, struct wal__message_part part)
{
    if (part.kind == WAL__PART_TEXT && visit->is_user && part.text.kind == WAL__JSON_STRING) {
        if (pass_tagged(visit, &part.text)) {
            return;
        }
        part.kind =
            visit->is_meta || is_of_instructions(part.text.span) ? WAL__PART_NOTE : WAL__PART_TEXT;
    }
    visit->each(visit->ctx, &part);
}

static const uint8_t *skip_sgr(const uint8_t *at, const uint8_t *end)
{
    static const char escape[] = "\\u001b[";
    const size_t size = sizeof(escape) - 1;
    const uint8_t *code = at + size;

    if ((size_t)(end - at) <= size || memcmp(at, escape, 5) != 0 || (at[5] | 0x20) != 'b' ||
        at[6] != '[') {
        return at;
    }
    while (code < end && ((*code >= '0' && *code <= '9') || *code == ';' || *code == ':')) {
        code++;
    }
    return code < end && *code == 'm' ? code + 1 : at;
}

/* What a client showed on a terminal, where escape sequences are no text. */
static bool is_of_client(const struct wal__message_part *part)
{
    return part->kind == WAL__PART_NOTE || part->kind == WAL__PART_COMMAND;
}

size_t wal__message_decode(const struct wal__message_part *part,
                           const struct wal__json_token *string, uint8_t *buffer)
{
    const size_t quote = part->is_excerpt ? 0 : 1;
    const uint8_t *at = string->span.data + quote;
    const uint8_t *end = string->span.data + string->span.size - quote;
    uint8_t character[4];
    uint32_t code_point;
    size_t size = 0;

    while (at < end) {
        const uint8_t *next = is_of_client(part) ? skip_sgr(at, end) : at;
        size_t width;

        if (next > at) {
            at = next;
            continue;
        }
        if (!wal__json_character_read(&at, end, &code_point)) {
            break;
        }
        width = wal__json_character_write(code_point, character);
        if (width > string->span.size - size) {
            break;
        }
        memcpy(buffer + size, character, width);
        size += width;
    }
    return size;
}

bool wal__message_is_plain(const struct wal__message_part *part,
                           const struct wal__json_token *string)
{
    return !part->is_excerpt &&
           (string->kind != WAL__JSON_STRING || !string->has_escapes || !is_of_client(part) ||
            memmem(string->span.data, string->span.size, "\\u001", 5) == NULL);
}

/* --- parts -------------------------------------------------------------- */

static void pass(const struct visit *visit, enum wal__message_part_kind kind,
                 const struct wal__json_token *text, const struct wal__json_token *value)
{
    const struct wal__json_token none = {.kind = WAL__JSON_NONE};
    const struct wal__message_part part = {.kind = kind,
                                           .text = text == NULL ? none : *text,
                                           .value = value == NULL ? none : *value,
                                           .block = visit->block,
                                           .author = visit->author};

    visit->each(visit->ctx, &part);
}

enum {
    TYPE,
    TEXT,
    SYNTHETIC,
    THINKING,
    NAME,
    ARGUMENTS,
    INPUT,
    CONTENT,
    OUTPUT,
    ACTION,
    TOOL,
    TOOL_INPUT,
    TOOL_OUTPUT,
    TOOL_ERROR,
    THOUGHT,
    THINK,
    ARGS,
    FUNCTION_CALL,
    FUNCTION_TEXT,
    EVENT_OUTPUT,
    EVENT_MESSAGE,
    RECORD_OUTPUT,
    RECORD_MESSAGE,
    CALL,
    CALL_NAME,
    CALL_ARGUMENTS,
    RESULT,
    RESPONSE,
    COMMAND,
    MEMBER_COUNT
};

static void pass_text(const struct visit *visit, const struct wal__json_member *m)
{
    const struct wal__message_part part = {
        .kind = is_text(&m[TYPE], "reasoning") || is_text(&m[TYPE], "think") ||
                        m[THOUGHT].value.kind == WAL__JSON_TRUE
                    ? WAL__PART_THINKING
                    : WAL__PART_TEXT,
        .is_synthetic = m[SYNTHETIC].value.kind == WAL__JSON_TRUE,
        .text = m[TEXT].value,
        .block = visit->block,
        .author = visit->author};

    pass_message_text(visit, part);
}

/* A part of OpenCode has a call and its result. */
static void pass_tool(const struct visit *visit, const struct wal__json_member *m)
{
    size_t result = m[TOOL_OUTPUT].value.kind != WAL__JSON_NONE ? TOOL_OUTPUT : TOOL_ERROR;

    pass(visit, WAL__PART_CALL, &m[TOOL].value, &m[TOOL_INPUT].value);
    if (m[result].value.kind != WAL__JSON_NONE) {
        pass(visit, WAL__PART_RESULT, NULL, &m[result].value);
    }
}

/* A call or a result of Google's API, which is an object in its part. The response is an object
 * with the output or the error of the tool. */
static void pass_function(struct visit visit, const struct wal__json_member *m)
{
    struct wal__json_member response[] = {{.key = "output"}, {.key = "error"}};
    struct wal__json_span span = m[RESPONSE].value.span;
    const struct wal__json_token *value = &m[RESPONSE].value;

    if (m[CALL_NAME].value.kind == WAL__JSON_STRING) {
        visit.block = m[CALL].value.span;
        pass(&visit, WAL__PART_CALL, &m[CALL_NAME].value, &m[CALL_ARGUMENTS].value);
        return;
    }
    if (wal__json_members(span.data, span.size, response, 2, NULL) == WAL__JSON_OK) {
        for (size_t i = 2; i-- > 0;) {
            value = response[i].value.kind == WAL__JSON_STRING ? &response[i].value : value;
        }
    }
    visit.block = m[RESULT].value.span;
    pass(&visit, WAL__PART_RESULT, NULL, value);
}

/* Passes the output of a call, or what a client says of one without any; false if there is none. */
static bool pass_output(const struct visit *visit, const struct wal__json_member *output,
                        const struct wal__json_member *message)
{
    bool is_empty =
        output->value.kind == WAL__JSON_NONE ||
        ((output->value.kind == WAL__JSON_STRING || output->value.kind == WAL__JSON_ARRAY) &&
         output->value.span.size <= 2);
    const struct wal__json_member *shown =
        is_empty && message->value.kind == WAL__JSON_STRING ? message : output;

    if (shown->value.kind == WAL__JSON_NONE) {
        return false;
    }
    pass(visit, WAL__PART_RESULT, NULL, &shown->value);
    return true;
}

static void visit_members(const struct visit *visit, const struct wal__json_member *m)
{
    if (m[TEXT].value.kind == WAL__JSON_STRING) {
        pass_text(visit, m);
    } else if (m[THINKING].value.kind == WAL__JSON_STRING) {
        pass(visit, WAL__PART_THINKING, &m[THINKING].value, NULL);
    } else if (m[THINK].value.kind == WAL__JSON_STRING) {
        pass(visit, WAL__PART_THINKING, &m[THINK].value, NULL);
    } else if (m[FUNCTION_CALL].value.kind == WAL__JSON_STRING) {
        pass(visit, WAL__PART_CALL, &m[FUNCTION_CALL].value, &m[FUNCTION_TEXT].value);
    } else if (pass_output(visit, &m[EVENT_OUTPUT], &m[EVENT_MESSAGE]) ||
               pass_output(visit, &m[RECORD_OUTPUT], &m[RECORD_MESSAGE])) {
        return;
    } else if (m[NAME].value.kind == WAL__JSON_STRING) {
        size_t at = m[ARGUMENTS].value.kind != WAL__JSON_NONE ? ARGUMENTS
                    : m[INPUT].value.kind != WAL__JSON_NONE   ? INPUT
                                                              : ARGS;
        pass(visit, WAL__PART_CALL, &m[NAME].value, &m[at].value);
    } else if (m[CALL_NAME].value.kind == WAL__JSON_STRING ||
               m[RESPONSE].value.kind != WAL__JSON_NONE) {
        pass_function(*visit, m);
    } else if (is_text(&m[TYPE], "tool") && m[TOOL].value.kind == WAL__JSON_STRING) {
        pass_tool(visit, m);
    } else if (is_text(&m[TYPE], "local_shell_call")) {
        pass(visit, WAL__PART_CALL, &shell_name, &m[ACTION].value);
    } else if (is_text(&m[TYPE], "web_search_call")) {
        pass(visit, WAL__PART_CALL, &search_name, &m[ACTION].value);
    } else if (m[CONTENT].value.kind != WAL__JSON_NONE) {
        pass(visit, WAL__PART_RESULT, NULL, &m[CONTENT].value);
    } else if (m[OUTPUT].value.kind != WAL__JSON_NONE) {
        if (m[COMMAND].value.kind == WAL__JSON_STRING) {
            pass(visit, WAL__PART_CALL, &bash_name, &m[COMMAND].value);
        }
        pass(visit, WAL__PART_RESULT, NULL, &m[OUTPUT].value);
    } else if (m[TYPE].value.kind != WAL__JSON_STRING) {
        pass(visit, WAL__PART_OTHER, NULL, NULL);
    } else if (!is_text(&m[TYPE], "step-start") && !is_text(&m[TYPE], "step-finish")) {
        /* Those are where OpenCode called its model. */
        pass(visit, WAL__PART_OTHER, &m[TYPE].value, NULL);
    }
}

static void visit_block(struct visit visit, struct wal__json_span block)
{
    struct wal__json_member m[MEMBER_COUNT] = {
        [TYPE] = {.key = "type"},
        [TEXT] = {.key = "text"},
        [SYNTHETIC] = {.key = "synthetic"},
        [THINKING] = {.key = "thinking"},
        [NAME] = {.key = "name"},
        [ARGUMENTS] = {.key = "arguments"},
        [INPUT] = {.key = "input"},
        [CONTENT] = {.key = "content"},
        [OUTPUT] = {.key = "output"},
        [ACTION] = {.key = "action"},
        [TOOL] = {.key = "tool"},
        [TOOL_INPUT] = {.parent = "state", .key = "input"},
        [TOOL_OUTPUT] = {.parent = "state", .key = "output"},
        [TOOL_ERROR] = {.parent = "state", .key = "error"},
        [THOUGHT] = {.key = "thought"},
        [THINK] = {.key = "think"},
        [ARGS] = {.key = "args"},
        [FUNCTION_CALL] = {.parent = "function", .key = "name"},
        [FUNCTION_TEXT] = {.parent = "function", .key = "arguments"},
        [EVENT_OUTPUT] = {.parent = "result", .key = "output"},
        [EVENT_MESSAGE] = {.parent = "result", .key = "message"},
        [RECORD_OUTPUT] = {.parent = "return_value", .key = "output"},
        [RECORD_MESSAGE] = {.parent = "return_value", .key = "message"},
        [CALL] = {.key = "functionCall"},
        [CALL_NAME] = {.parent = "functionCall", .key = "name"},
        [CALL_ARGUMENTS] = {.parent = "functionCall", .key = "args"},
        [RESULT] = {.key = "functionResponse"},
        [RESPONSE] = {.parent = "functionResponse", .key = "response"},
        [COMMAND] = {.key = "command"},
    };

    visit.block = block;
    if (wal__json_members(block.data, block.size, m, MEMBER_COUNT, NULL) == WAL__JSON_OK) {
        visit_members(&visit, m);
    }
}

void wal__message_visit_block(struct wal__json_span block, wal__message_part_fn *each, void *ctx)
{
    visit_block((struct visit){.each = each, .ctx = ctx}, block);
}

/* A string or a block of a content. */
static void visit_element(void *ctx, const struct wal__json_token *element)
{
    const struct visit *visit = ctx;
    const struct wal__message_part text = {
        .kind = WAL__PART_TEXT, .is_bare = true, .text = *element};

    if (element->kind == WAL__JSON_STRING) {
        pass_message_text(visit, text);
    } else if (element->kind == WAL__JSON_OBJECT) {
        visit_block(*visit, element->span);
    }
}

/* A call of a list: of a function, of a tool with free text as its input, or a call itself, which
 * may have its result. */
static void visit_call(void *ctx, const struct wal__json_token *call)
{
    enum {
        FUNCTION_NAME,
        FUNCTION_ARGUMENTS,
        CUSTOM_NAME,
        CUSTOM_INPUT,
        OWN_NAME,
        OWN_ARGUMENTS,
        GOOGLE_ARGUMENTS,
        OWN_RESULT,
        SHOWN,
        COUNT
    };
    struct wal__json_member m[COUNT] = {
        [FUNCTION_NAME] = {.parent = "function", .key = "name"},
        [FUNCTION_ARGUMENTS] = {.parent = "function", .key = "arguments"},
        [CUSTOM_NAME] = {.parent = "custom", .key = "name"},
        [CUSTOM_INPUT] = {.parent = "custom", .key = "input"},
        [OWN_NAME] = {.key = "name"},
        [OWN_ARGUMENTS] = {.key = "arguments"},
        [GOOGLE_ARGUMENTS] = {.key = "args"},
        [OWN_RESULT] = {.key = "result"},
        [SHOWN] = {.key = "resultDisplay"}};
    const struct visit *outer = ctx;
    const struct visit visit = {.each = outer->each, .ctx = outer->ctx, .block = call->span};
    size_t at;

    if (wal__json_members(call->span.data, call->span.size, m, COUNT, NULL) != WAL__JSON_OK) {
        return;
    }
    if (m[OWN_ARGUMENTS].value.kind == WAL__JSON_NONE) {
        m[OWN_ARGUMENTS].value = m[GOOGLE_ARGUMENTS].value;
    }
    for (at = FUNCTION_NAME; at < OWN_NAME && m[at].value.kind != WAL__JSON_STRING; at += 2) {
    }
    if (m[at].value.kind == WAL__JSON_STRING) {
        pass(&visit, WAL__PART_CALL, &m[at].value, &m[at + 1].value);
    }
    at = m[OWN_RESULT].value.kind == WAL__JSON_ARRAY || m[OWN_RESULT].value.kind == WAL__JSON_STRING
             ? OWN_RESULT
             : SHOWN;
    if (m[at].value.kind == WAL__JSON_ARRAY || m[at].value.kind == WAL__JSON_STRING) {
        pass(&visit, WAL__PART_RESULT, NULL, &m[at].value);
    }
}

/* A thought of a list: what it is about, and its text. */
static void visit_thought(void *ctx, const struct wal__json_token *thought)
{
    struct wal__json_member m[] = {{.key = "subject"}, {.key = "description"}};

    if (wal__json_members(thought->span.data, thought->span.size, m, 2, NULL) != WAL__JSON_OK) {
        return;
    }
    for (size_t i = 0; i < 2; i++) {
        if (m[i].value.kind == WAL__JSON_STRING) {
            pass(ctx, WAL__PART_THINKING, &m[i].value, NULL);
        }
    }
}

/* A file with its data; what is only named was not shown in the conversation. */
static void visit_file(void *ctx, const struct wal__json_token *file)
{
    const struct visit *outer = ctx;
    const struct visit visit = {.each = outer->each, .ctx = outer->ctx, .block = file->span};
    struct wal__json_member m[] = {{.key = "type"}, {.key = "data"}};

    if (wal__json_members(file->span.data, file->span.size, m, 2, NULL) == WAL__JSON_OK &&
        m[1].value.kind == WAL__JSON_STRING) {
        pass(&visit, WAL__PART_OTHER, &m[0].value, NULL);
    }
}

/* A message of a list that replaces others. */
static void visit_record(void *ctx, const struct wal__json_token *record)
{
    const struct visit *visit = ctx;
    struct wal__message message;

    if (is_record(record->span, &message)) {
        message.author = message.role;
        wal__message_visit(&message, visit->each, visit->ctx);
    }
}

void wal__message_visit(const struct wal__message *message, wal__message_part_fn *each, void *ctx)
{
    struct visit visit = {.each = each,
                          .ctx = ctx,
                          .author = message->author,
                          .is_user = message->role.kind == WAL__JSON_STRING &&
                                     wal__json_string_is(message->role.span, "user"),
                          .is_meta = message->is_meta};
    const struct wal__message_part whole = {.kind = WAL__PART_TEXT,
                                            .is_whole = true,
                                            .text = message->content,
                                            .author = message->author};

    if (message->item.size > 0) {
        wal__message_visit_block(message->item, each, ctx);
        return;
    }
    visit_array(&message->messages, visit_record, &visit);
    if (message->thoughts.kind == WAL__JSON_STRING) {
        pass(&visit, WAL__PART_THINKING, &message->thoughts, NULL);
    }
    visit_array(&message->thoughts, visit_thought, &visit);
    if (message->content.kind == WAL__JSON_STRING) {
        pass_message_text(&visit, whole);
    } else {
        visit_array(&message->content, visit_element, &visit);
    }
    visit_array(&message->files, visit_file, &visit);
    visit_array(&message->calls, visit_call, &visit);
}

/* A block with text of a result, or a result of Google's API. */
static void visit_result_block(void *ctx, const struct wal__json_token *block)
{
    static const char *const path[] = {"functionResponse", "response"};
    static const char *const keys[] = {"text", "output", "error"};
    struct wal__json_span at = block->span;
    struct wal__json_token text;

    if (block->kind == WAL__JSON_OBJECT) {
        bool is_response = follow(path, &at);

        for (size_t i = is_response ? 1 : 0; i < (is_response ? 3 : 1); i++) {
            if (wal__json_find(at.data, at.size, keys[i], &text) == WAL__JSON_OK &&
                text.kind == WAL__JSON_STRING) {
                pass(ctx, WAL__PART_TEXT, &text, NULL);
                return;
            }
        }
    }
}

void wal__message_visit_result(const struct wal__json_token *result, wal__message_part_fn *each,
                               void *ctx)
{
    struct visit visit = {.each = each, .ctx = ctx};

    if (result->kind == WAL__JSON_STRING) {
        pass(&visit, WAL__PART_TEXT, result, NULL);
    } else if (result->kind == WAL__JSON_OBJECT) {
        visit_result_block(&visit, result);
    } else {
        visit_array(result, visit_result_block, &visit);
    }
}

/* What the parts of a message are. */
struct contents {
    bool has_note;
    bool has_other;
};

static void note_part(void *ctx, const struct wal__message_part *part)
{
    struct contents *contents = ctx;

    contents->has_note |= part->kind == WAL__PART_NOTE;
    contents->has_other |= part->kind != WAL__PART_NOTE;
}

bool wal__message_is_note(const struct wal__message *message)
{
    struct contents contents = {.has_note = false};

    wal__message_visit(message, note_part, &contents);
    return contents.has_note && !contents.has_other;
}

/* --- the queue ----------------------------------------------------------- */

/* Whether the text of one JSON string is that of another, or some lines of it. */
static bool has_lines(struct wal__json_span within, struct wal__json_span string)
{
    const uint8_t *at = within.data;
    const uint8_t *end;
    size_t size;

    if (within.size < 2 || string.size < 2) {
        return false;
    }
    end = within.data + within.size;
    size = string.size - 2;
    while (at < end && (at = memmem(at, (size_t)(end - at), string.data + 1, size)) != NULL) {
        const uint8_t *after = at + size;
        bool begins = at > within.data &&
                      (at[-1] == '"' || (at - within.data > 1 && at[-1] == 'n' && at[-2] == '\\'));

        if (begins && after < end && (*after == '"' || *after == '\\')) {
            return true;
        }
        at++;
    }
    return false;
}

/* Whether a user's text is the command with which a text begins: "/compact now". */
static bool has_command(struct wal__json_span within, struct wal__json_span string)
{
    static const char open[] = "<command-name>";
    const uint8_t *space = memchr(string.data, ' ', string.size);
    size_t size = space != NULL ? (size_t)(space - string.data) - 1 : string.size - 2;
    const uint8_t *at;

    if (within.size == 0 || string.data[1] != '/') {
        return false;
    }
    at = memmem(within.data, within.size, open, sizeof(open) - 1);
    if (at == NULL) {
        return false;
    }
    at += sizeof(open) - 1;
    return (size_t)(within.data + within.size - at) > size &&
           memcmp(at, string.data + 1, size) == 0 && at[size] == '<';
}

/* Sets a JSON string to the first text of a message, if it has none yet. */
static void take_text(void *ctx, const struct wal__message_part *part)
{
    struct wal__json_span *text = ctx;

    if (part->kind == WAL__PART_TEXT && text->size == 0 && !part->is_excerpt) {
        *text = part->text.span;
    }
}

void wal__queued_init(struct wal__queued *queued, const struct wal__message *message)
{
    *queued = (struct wal__queued){.text = message->content.span};
    if (message->content.kind == WAL__JSON_ARRAY) {
        queued->text.size = 0;
        wal__message_visit(message, take_text, &queued->text);
    }
}

enum wal__queued_fate wal__queued_read(struct wal__queued *queued, struct wal__json_span payload)
{
    enum { KIND, OPERATION, QUEUED, ATTACHMENT, PROMPT, SAID, TOOL_USE, COUNT };
    struct wal__json_member m[COUNT] = {
        [KIND] = {.key = "type"},
        [OPERATION] = {.key = "operation"},
        [QUEUED] = {.key = "content"},
        [ATTACHMENT] = {.parent = "attachment", .key = "type"},
        [PROMPT] = {.parent = "attachment", .key = "prompt"},
        [SAID] = {.parent = "message", .key = "content"},
        [TOOL_USE] = {.key = "toolUseResult"},
    };
    bool is_whole;

    if (queued->text.size <= 2) {
        return WAL__QUEUED_REPEATED;
    }
    if (wal__json_members(payload.data, payload.size, m, COUNT, NULL) != WAL__JSON_OK) {
        return WAL__QUEUED_OPEN;
    }
    is_whole =
        m[QUEUED].value.kind != WAL__JSON_STRING || has_lines(m[QUEUED].value.span, queued->text);
    if (is_text(&m[KIND], "queue-operation")) {
        queued->is_removed |= is_text(&m[OPERATION], "remove") && is_whole;
        return is_text(&m[OPERATION], "popAll") && is_whole ? WAL__QUEUED_REPEATED
                                                            : WAL__QUEUED_OPEN;
    }
    if (is_text(&m[KIND], "context.append_message")) {
        return has_lines(m[SAID].value.span, queued->text) ? WAL__QUEUED_REPEATED
                                                           : WAL__QUEUED_OPEN;
    }
    if (is_text(&m[KIND], "turn.prompt")) {
        return WAL__QUEUED_LOST;
    }
    if (is_text(&m[ATTACHMENT], "queued_command")) {
        return has_lines(m[PROMPT].value.span, queued->text) ? WAL__QUEUED_REPEATED
                                                             : WAL__QUEUED_OPEN;
    }
    if (is_text(&m[KIND], "user") && m[TOOL_USE].value.kind == WAL__JSON_NONE &&
        (has_lines(m[SAID].value.span, queued->text) ||
         has_command(m[SAID].value.span, queued->text))) {
        return WAL__QUEUED_REPEATED;
    }
    return is_text(&m[KIND], "assistant") && queued->is_removed ? WAL__QUEUED_LOST
                                                                : WAL__QUEUED_OPEN;
}
