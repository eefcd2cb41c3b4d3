/*
 * text.c - prints entries as readable text.
 *
 * The dialects keep a message in the payload itself, in its `message`, in its
 * `payload`, or in the `message` of that. Its content is a string, or a list
 * of blocks with text, thinking, tool calls and results; calls may also be in
 * its `tool_calls`. A message of OpenCode has its role in `info`, and `parts`.
 *
 * Invariant: a payload reaches the terminal only as plain text.
 *
 * Threads: the tool has one thread.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/convert/source/entry_payload.h"
#include "format/json/json_scan.h"
#include "format/json/json_value.h"
#include "tools/cli/entry.h"
#include "tools/walcat/walcat.h"

struct message {
    struct wal__json_token role;
    struct wal__json_token content;
    struct wal__json_token calls; /* an array, or anything else */
};

struct writer {
    size_t columns; /* limit of a preview; 0: no limit, and newlines */
    size_t used;
};

/* Prints a string. */
static void put_string(struct writer *writer,
                       const struct wal__json_token *token)
{
    struct cli_texts texts = {.items = NULL};
    struct wal_slice text = cli_unescape(token, &texts);

    if (writer->columns == 0) {
        cli_print_text(stdout, text, 0, true);
    } else if (writer->used < writer->columns) {
        writer->used +=
            cli_print_text(stdout, text, writer->columns - writer->used, false);
    }
    cli_texts_deinit(&texts);
}

static void put_literal(struct writer *writer, const char *text)
{
    size_t size = strlen(text);

    if (writer->columns == 0 || writer->used < writer->columns) {
        fputs(text, stdout);
        writer->used += size;
    }
}

/* Whether an object has a role, and content or calls; sets them. */
static bool is_message(struct wal__json_span object, struct message *message)
{
    enum {
        ROLE,
        CONTENT,
        CALLS,
        INFO_ROLE,
        PARTS,
        COUNT
    };
    struct wal__json_member m[COUNT] = {
        [ROLE] = {.key = "role"},
        [CONTENT] = {.key = "content"},
        [CALLS] = {.key = "tool_calls"},
        [INFO_ROLE] = {.parent = "info", .key = "role"},
        [PARTS] = {.key = "parts"},
    };
    bool is_opencode;

    if (wal__json_members(object.data, object.size, m, COUNT, NULL) !=
        WAL__JSON_OK) {
        return false;
    }
    is_opencode = m[INFO_ROLE].value.kind == WAL__JSON_STRING &&
                  m[PARTS].value.kind == WAL__JSON_ARRAY;
    message->role = m[is_opencode ? INFO_ROLE : ROLE].value;
    message->content = m[is_opencode ? PARTS : CONTENT].value;
    message->calls = m[CALLS].value;
    return message->role.kind == WAL__JSON_STRING &&
           (message->content.kind != WAL__JSON_NONE ||
            message->calls.kind == WAL__JSON_ARRAY);
}

static bool find_message(struct wal__json_span object, struct message *message)
{
    static const char *const paths[][2] = {
        {NULL, NULL},
        {"message", NULL},
        {"payload", NULL},
        {"payload", "message"},
    };
    struct wal__json_token value;

    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        struct wal__json_span at = object;
        bool exists = true;
        for (size_t step = 0; step < 2 && paths[i][step] != NULL; step++) {
            exists = exists && wal__json_find(at.data, at.size, paths[i][step],
                                              &value) == WAL__JSON_OK;
            at = exists ? value.span : at;
        }
        if (exists && is_message(at, message)) {
            return true;
        }
    }
    return false;
}

/* Prints a tool's result: a string, or the texts of a list of blocks. */
static void put_result(struct writer *writer,
                       const struct wal__json_token *content)
{
    struct wal__json_scan scan;
    struct wal__json_token token;
    struct wal__json_token text;

    if (content->kind == WAL__JSON_STRING) {
        put_string(writer, content);
        return;
    }
    if (content->kind != WAL__JSON_ARRAY) {
        return;
    }
    wal__json_scan_init(&scan, content->span.data, content->span.size);
    if (wal__json_scan_next(&scan, &token) != WAL__JSON_OK) {
        return;
    }
    while (wal__json_scan_skip(&scan, &token) == WAL__JSON_OK &&
           token.kind != WAL__JSON_ARRAY_END) {
        if (token.kind == WAL__JSON_OBJECT &&
            wal__json_find(token.span.data, token.span.size, "text", &text) ==
                WAL__JSON_OK) {
            put_string(writer, &text);
        }
    }
}

static void put_call(struct writer *writer, const struct wal__json_member *name,
                     const struct wal__json_member *arguments)
{
    struct wal_slice text = {arguments->value.span.data,
                             arguments->value.span.size};

    put_literal(writer, "[call ");
    put_string(writer, &name->value);
    if (arguments->value.kind != WAL__JSON_NONE) {
        put_literal(writer, " ");
        if (writer->columns == 0 && arguments->value.kind == WAL__JSON_STRING) {
            struct cli_texts texts = {.items = NULL};
            text = cli_unescape(&arguments->value, &texts);
            cli_print_text(stdout, text, 200, false);
            cli_texts_deinit(&texts);
        } else if (writer->columns == 0) {
            cli_print_text(stdout, text, 200, false);
        }
    }
    put_literal(writer, "]");
}

/* Prints the calls of a list `tool_calls`: of a function, or of a tool with
 * free text as its input. */
static void put_calls(struct writer *writer, const struct wal__json_token *list)
{
    enum {
        NAME,
        ARGUMENTS,
        CUSTOM_NAME,
        INPUT,
        COUNT
    };
    struct wal__json_scan scan;
    struct wal__json_token call;

    if (list->kind != WAL__JSON_ARRAY) {
        return;
    }
    wal__json_scan_init(&scan, list->span.data, list->span.size);
    if (wal__json_scan_next(&scan, &call) != WAL__JSON_OK) {
        return;
    }
    while (wal__json_scan_skip(&scan, &call) == WAL__JSON_OK &&
           call.kind != WAL__JSON_ARRAY_END) {
        struct wal__json_member m[COUNT] = {
            [NAME] = {.parent = "function", .key = "name"},
            [ARGUMENTS] = {.parent = "function", .key = "arguments"},
            [CUSTOM_NAME] = {.parent = "custom", .key = "name"},
            [INPUT] = {.parent = "custom", .key = "input"}};
        size_t at;
        if (wal__json_members(call.span.data, call.span.size, m, COUNT, NULL) !=
            WAL__JSON_OK) {
            continue;
        }
        at = m[NAME].value.kind == WAL__JSON_STRING ? NAME : CUSTOM_NAME;
        if (m[at].value.kind == WAL__JSON_STRING) {
            put_call(writer, &m[at], &m[at + 1]);
            put_literal(writer, writer->columns == 0 ? "\n" : " ");
        }
    }
}

static void put_block(struct writer *writer, struct wal__json_span block)
{
    enum {
        TYPE,
        TEXT,
        THINKING,
        NAME,
        ARGUMENTS,
        INPUT,
        CONTENT,
        COUNT
    };
    struct wal__json_member m[COUNT] = {
        [TYPE] = {.key = "type"},           [TEXT] = {.key = "text"},
        [THINKING] = {.key = "thinking"},   [NAME] = {.key = "name"},
        [ARGUMENTS] = {.key = "arguments"}, [INPUT] = {.key = "input"},
        [CONTENT] = {.key = "content"},
    };

    if (wal__json_members(block.data, block.size, m, COUNT, NULL) !=
        WAL__JSON_OK) {
        return;
    }
    if (m[TEXT].value.kind == WAL__JSON_STRING) {
        put_string(writer, &m[TEXT].value);
    } else if (m[THINKING].value.kind == WAL__JSON_STRING) {
        put_literal(writer, "[thinking] ");
        put_string(writer, &m[THINKING].value);
    } else if (m[NAME].value.kind == WAL__JSON_STRING) {
        put_call(writer, &m[NAME],
                 m[ARGUMENTS].value.kind != WAL__JSON_NONE ? &m[ARGUMENTS]
                                                           : &m[INPUT]);
    } else if (m[CONTENT].value.kind != WAL__JSON_NONE) {
        put_literal(writer, "[result] ");
        put_result(writer, &m[CONTENT].value);
    } else if (m[TYPE].value.kind == WAL__JSON_STRING) {
        put_literal(writer, "[");
        put_string(writer, &m[TYPE].value);
        put_literal(writer, "]");
    }
    put_literal(writer, writer->columns == 0 ? "\n" : " ");
}

static void put_content(struct writer *writer,
                        const struct wal__json_token *content)
{
    struct wal__json_scan scan;
    struct wal__json_token token;

    if (content->kind == WAL__JSON_STRING) {
        put_string(writer, content);
        put_literal(writer, writer->columns == 0 ? "\n" : "");
        return;
    }
    if (content->kind != WAL__JSON_ARRAY) {
        return;
    }
    wal__json_scan_init(&scan, content->span.data, content->span.size);
    if (wal__json_scan_next(&scan, &token) != WAL__JSON_OK) {
        return;
    }
    while (wal__json_scan_skip(&scan, &token) == WAL__JSON_OK &&
           token.kind != WAL__JSON_ARRAY_END) {
        if (token.kind == WAL__JSON_STRING) {
            put_string(writer, &token);
        } else if (token.kind == WAL__JSON_OBJECT) {
            put_block(writer, token.span);
        }
    }
}

/* Finds the text of an entry that is not a message: a summary or a note. */
static bool find_notice(struct wal__json_span object,
                        struct wal__json_token *note)
{
    static const char *const names[] = {"summary", "text", "content", "name"};
    struct wal__json_member m[8];

    for (size_t i = 0; i < 4; i++) {
        m[i] = (struct wal__json_member){.key = names[i]};
        m[i + 4] =
            (struct wal__json_member){.parent = "payload", .key = names[i]};
    }
    if (wal__json_members(object.data, object.size, m, 8, NULL) !=
        WAL__JSON_OK) {
        return false;
    }
    for (size_t i = 0; i < 8; i++) {
        if (m[i].value.kind == WAL__JSON_STRING) {
            *note = m[i].value;
            return true;
        }
    }
    return false;
}

/* Prints "[redacted]" and the reason, if there is one. */
static void put_redaction(struct writer *writer, struct wal__json_span payload)
{
    struct wal__json_token reason;

    put_literal(writer, "[redacted]");
    if (wal__json_find(payload.data, payload.size, "reason", &reason) ==
            WAL__JSON_OK &&
        reason.kind == WAL__JSON_STRING && reason.span.size > 2) {
        put_literal(writer, " ");
        put_string(writer, &reason);
    }
}

static void put_text(const struct wal_entry *entry)
{
    struct writer writer = {.columns = 0};
    struct wal__json_span object;
    struct wal__json_token note;
    struct message message;

    if (!cli_entry_json(entry, &object)) {
        return;
    }
    if ((entry->flags & WAL_ENTRY_REDACTED) != 0) {
        cli_print_text(stdout, entry->type, 0, false);
        printf("  ");
        cli_print_text(stdout, entry->timestamp, 0, false);
        putchar('\n');
        put_redaction(&writer, object);
        printf("\n\n");
    } else if (find_message(object, &message)) {
        put_string(&writer, &message.role);
        printf("  ");
        cli_print_text(stdout, entry->timestamp, 0, false);
        putchar('\n');
        put_content(&writer, &message.content);
        put_calls(&writer, &message.calls);
        putchar('\n');
    } else if (find_notice(object, &note)) {
        putchar('[');
        cli_print_text(stdout, entry->type, 0, false);
        printf("]  ");
        cli_print_text(stdout, entry->timestamp, 0, false);
        putchar('\n');
        put_string(&writer, &note);
        printf("\n\n");
    }
}

enum wal_status walcat_print_text(struct wal_store *store,
                                  const struct wal_entry *entry,
                                  struct wal_error *error)
{
    struct wal_entry loaded = *entry;
    char *memory = NULL;
    enum wal_status status =
        wal__entry_payload_load(NULL, store, &loaded, &memory, error);

    if (status == WAL_OK) {
        put_text(&loaded);
    }
    free(memory);
    return status;
}

static void put_preview(const struct wal_entry *entry, size_t columns)
{
    struct writer writer = {.columns = columns};
    struct wal__json_span object;
    struct wal__json_token note;
    struct message message;

    if (!cli_entry_json(entry, &object)) {
        fputs("  ", stdout);
        cli_print_text(stdout, entry->payload, columns, false);
    } else if ((entry->flags & WAL_ENTRY_REDACTED) != 0) {
        fputs("  ", stdout);
        put_redaction(&writer, object);
    } else if (find_message(object, &message)) {
        fputs("  ", stdout);
        put_string(&writer, &message.role);
        put_literal(&writer, ": ");
        put_content(&writer, &message.content);
        put_calls(&writer, &message.calls);
    } else if (find_notice(object, &note)) {
        fputs("  ", stdout);
        put_string(&writer, &note);
    }
}

void walcat_print_preview(struct wal_store *store,
                          const struct wal_entry *entry, size_t columns)
{
    struct wal_entry loaded = *entry;
    char *memory = NULL;

    if (wal__entry_payload_load(NULL, store, &loaded, &memory, NULL) ==
        WAL_OK) {
        put_preview(&loaded, columns);
    }
    free(memory);
}
