/*
 * parts.c - the parts of an entry (parts.h).
 */
#include "tools/shown/parts.h"

#include <stdlib.h>
#include <string.h>

#include "format/json/json_value.h"
#include "format/payload/message_text.h"
#include "tools/cli/cli.h"
#include "tools/shown/image.h"

struct writer {
    struct shown *shown;
    bool is_result; /* of a message: its texts are the result of a tool */
};

/* Texts that are joined. Zeroed: none. */
struct joined {
    char *data;
    size_t size;
    size_t capacity;
};

static bool is_string(const struct wal__json_token *token, const char *text)
{
    return token->kind == WAL__JSON_STRING &&
           wal__json_string_is(token->span, text);
}

/* Finds the first of these members that is a string. */
static struct wal__json_token find_string(struct wal__json_span object,
                                          const char *const *keys)
{
    struct wal__json_token none = {.kind = WAL__JSON_NONE};
    struct wal__json_token value;

    for (size_t i = 0; keys[i] != NULL; i++) {
        if (wal__json_find(object.data, object.size, keys[i], &value) ==
                WAL__JSON_OK &&
            value.kind == WAL__JSON_STRING) {
            return value;
        }
    }
    return none;
}

static bool is_error(struct wal__json_span object)
{
    struct wal__json_member m[] = {
        {.key = "is_error"},
        {.key = "isError"},
        {.parent = "state", .key = "status"},
    };

    return wal__json_members(object.data, object.size, m, 3, NULL) ==
               WAL__JSON_OK &&
           (m[0].value.kind == WAL__JSON_TRUE ||
            m[1].value.kind == WAL__JSON_TRUE ||
            is_string(&m[2].value, "error"));
}

/* --- joining ------------------------------------------------------------ */

static void join(struct joined *joined, struct wal_slice text)
{
    while (joined->capacity - joined->size < text.size + 1) {
        joined->data = cli_reserve(joined->data, joined->capacity,
                                   &joined->capacity, sizeof(char));
    }
    if (text.size > 0) {
        memcpy(joined->data + joined->size, text.data, (size_t)text.size);
        joined->size += (size_t)text.size;
    }
}

/* Adds a text, on a separate line. */
static void join_text(void *ctx, const struct wal__message_part *part)
{
    struct joined *joined = ctx;
    struct cli_texts texts = {.items = NULL};

    if (part->kind != WAL__PART_TEXT && part->kind != WAL__PART_THINKING) {
        return;
    }
    if (joined->size > 0) {
        join(joined, cli_slice("\n"));
    }
    join(joined, cli_unescape(&part->text, &texts));
    cli_texts_deinit(&texts);
}

/* --- parts -------------------------------------------------------------- */

static void open_part(struct shown *shown, const char *kind)
{
    wal__json_out_open(shown->json, '{');
    cli_json_member_text(shown->json, "kind", cli_slice(kind));
}

static void put_string(struct shown *shown, const char *key,
                       const struct wal__json_token *string)
{
    struct cli_texts texts = {.items = NULL};

    shown_member(shown, key, cli_unescape(string, &texts));
    cli_texts_deinit(&texts);
}

static void put_text(struct shown *shown, const char *kind,
                     const struct wal__json_token *string)
{
    struct cli_texts texts = {.items = NULL};
    struct wal_slice text = cli_unescape(string, &texts);

    if (text.size > 0) {
        open_part(shown, kind);
        shown_text(shown, text);
        wal__json_out_close(shown->json, '}');
    }
    cli_texts_deinit(&texts);
}

static void put_call(struct shown *shown, const struct wal__message_part *part)
{
    static const char *const ids[] = {"call_id", "callID", "id", NULL};
    struct wal__json_token id = find_string(part->block, ids);

    open_part(shown, "call");
    put_string(shown, "id", &id);
    put_string(shown, "name", &part->text);
    shown_arguments(shown, &part->value);
    wal__json_out_close(shown->json, '}');
}

static void put_result(struct shown *shown, struct wal__json_span object,
                       const struct joined *joined)
{
    static const char *const ids[] = {"tool_use_id", "call_id",      "callID",
                                      "toolCallId",  "tool_call_id", NULL};
    struct wal__json_token id = find_string(object, ids);

    open_part(shown, "result");
    put_string(shown, "id", &id);
    if (shown->hides_results) {
        cli_json_member_text(shown->json, "text", cli_slice(""));
        wal__json_out_member_bool(shown->json, "cut", true);
        wal__json_out_member_count(shown->json, "bytes", joined->size);
    } else {
        shown_text(shown, (struct wal_slice){joined->data, joined->size});
    }
    wal__json_out_member_bool(shown->json, "error", is_error(object));
    wal__json_out_close(shown->json, '}');
}

/* Writes a result of a block, and the images in it. */
static void put_block_result(struct shown *shown,
                             const struct wal__message_part *part)
{
    struct joined joined = {.data = NULL};

    wal__message_visit_result(&part->value, join_text, &joined);
    if (joined.size == 0 && part->value.kind == WAL__JSON_OBJECT) {
        join(&joined,
             (struct wal_slice){part->value.span.data, part->value.span.size});
    }
    put_result(shown, part->block, &joined);
    free(joined.data);
    if (!shown->hides_results) {
        shown_images(shown, &part->value);
    }
}

static void put_other(struct shown *shown, const struct wal__json_token *name)
{
    open_part(shown, "other");
    put_string(shown, "name", name);
    wal__json_out_close(shown->json, '}');
}

static void put_part(void *ctx, const struct wal__message_part *part)
{
    const struct writer *writer = ctx;
    struct shown *shown = writer->shown;

    switch (part->kind) {
    case WAL__PART_TEXT:
        if (!writer->is_result) {
            put_text(shown, "text", &part->text);
        }
        break;
    case WAL__PART_THINKING:
        put_text(shown, "thinking", &part->text);
        break;
    case WAL__PART_CALL:
        put_call(shown, part);
        break;
    case WAL__PART_RESULT:
        put_block_result(shown, part);
        break;
    case WAL__PART_OTHER:
        if (writer->is_result && shown->hides_results) {
            break;
        }
        if (!shown_image(shown, part->block)) {
            put_other(shown, &part->text);
        }
        break;
    }
}

/* --- messages ----------------------------------------------------------- */

static bool is_tool(const struct wal__message *message)
{
    return message->item.size == 0 && (is_string(&message->role, "tool") ||
                                       is_string(&message->role, "toolResult"));
}

static void put_message(struct shown *shown, const struct wal__message *message)
{
    struct writer writer = {shown, is_tool(message)};
    struct joined joined = {.data = NULL};

    if (writer.is_result) {
        wal__message_visit(message, join_text, &joined);
        put_result(shown, message->object, &joined);
        free(joined.data);
    }
    wal__message_visit(message, put_part, &writer);
}

/* Whether a message is the summary with which a compaction goes on. */
static bool is_summary(struct wal__json_span payload)
{
    struct wal__json_token mark;

    return wal__json_find(payload.data, payload.size, "isCompactSummary",
                          &mark) == WAL__JSON_OK &&
           mark.kind == WAL__JSON_TRUE;
}

/* Whether the type of an entry says that its text replaces entries. */
static bool is_summary_type(struct wal_slice type)
{
    return cli_slice_equal(type, cli_slice(WAL_TYPE_COMPACTION_SUMMARY)) ||
           cli_slice_equal(type, cli_slice(WAL_TYPE_COMPACTION)) ||
           cli_slice_equal(type, cli_slice(WAL_TYPE_BRANCH_SUMMARY)) ||
           cli_slice_equal(type, cli_slice("compacted"));
}

static void put_summary(struct shown *shown, const struct wal__message *message)
{
    struct joined joined = {.data = NULL};

    wal__message_visit(message, join_text, &joined);
    open_part(shown, "summary");
    shown_text(shown, (struct wal_slice){joined.data, joined.size});
    wal__json_out_close(shown->json, '}');
    free(joined.data);
}

/* An entry without a text: its type, and that of what is in it. */
static void put_name(struct shown *shown, const struct wal_entry *entry,
                     struct wal__json_span payload)
{
    struct wal__json_member m[] = {
        {.key = "subtype"},
        {.parent = "payload", .key = "type"},
        {.parent = "attachment", .key = "type"},
    };
    char name[CLI_ID_MAX * 2 + 2];
    struct wal_slice inner = {NULL, 0};
    size_t size = (size_t)entry->type.size;
    struct cli_texts texts = {.items = NULL};

    if (wal__json_members(payload.data, payload.size, m, 3, NULL) ==
        WAL__JSON_OK) {
        for (size_t i = 0; i < 3 && inner.size == 0; i++) {
            inner = cli_unescape(&m[i].value, &texts);
        }
    }
    memcpy(name, entry->type.data, size);
    if (inner.size > 0 && inner.size <= CLI_ID_MAX) {
        name[size++] = ' ';
        memcpy(name + size, inner.data, (size_t)inner.size);
        size += (size_t)inner.size;
    }
    open_part(shown, "other");
    shown_member(shown, "name", (struct wal_slice){name, size});
    wal__json_out_close(shown->json, '}');
    cli_texts_deinit(&texts);
}

void shown_parts(struct shown *shown, const struct wal_entry *entry)
{
    struct wal__json_span payload;
    struct wal__json_token note;
    struct wal__message message;
    const char *key;

    wal__json_out_member_open(shown->json, "parts", '[');
    if ((entry->flags & WAL_ENTRY_REDACTED) != 0) {
        /* Nothing of it is shown. */
    } else if (!cli_entry_json(entry, &payload)) {
        open_part(shown, "text");
        shown_text(shown, entry->payload);
        wal__json_out_close(shown->json, '}');
    } else if (wal__message_find(payload, &message)) {
        if (is_summary(payload)) {
            put_summary(shown, &message);
        } else {
            put_message(shown, &message);
        }
    } else if (wal__message_find_note(payload, &note, &key)) {
        put_text(shown, is_summary_type(entry->type) ? "summary" : "text",
                 &note);
    } else {
        put_name(shown, entry, payload);
    }
    wal__json_out_close(shown->json, ']');
}

/* --- role --------------------------------------------------------------- */

/* What a message consists of. */
struct contents {
    bool has_result;
    bool has_other;
};

static void note_part(void *ctx, const struct wal__message_part *part)
{
    struct contents *contents = ctx;

    if (part->kind == WAL__PART_RESULT) {
        contents->has_result = true;
    } else {
        contents->has_other = true;
    }
}

const char *shown_role(const struct wal_entry *entry)
{
    static const char *const roles[][2] = {
        {"user", "user"},     {"assistant", "assistant"},
        {"tool", "tool"},     {"toolResult", "tool"},
        {"system", "system"}, {"developer", "system"},
    };
    struct contents contents = {.has_result = false};
    struct wal__json_span payload;
    struct wal__message message;

    if ((entry->flags & WAL_ENTRY_REDACTED) != 0 ||
        !cli_entry_json(entry, &payload) ||
        !wal__message_find(payload, &message)) {
        return NULL;
    }
    if (is_string(&message.role, "user")) {
        wal__message_visit(&message, note_part, &contents);
        return contents.has_result && !contents.has_other ? "tool" : "user";
    }
    for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++) {
        if (is_string(&message.role, roles[i][0])) {
            return roles[i][1];
        }
    }
    return NULL;
}

/* --- preview ------------------------------------------------------------ */

/* Adds texts, and the names of calls in brackets. */
static void preview_part(void *ctx, const struct wal__message_part *part)
{
    struct joined *joined = ctx;
    struct cli_texts texts = {.items = NULL};

    if (part->kind == WAL__PART_CALL) {
        join(joined, cli_slice(joined->size > 0 ? " [" : "["));
        join(joined, cli_unescape(&part->text, &texts));
        join(joined, cli_slice("]"));
    } else if (part->kind == WAL__PART_RESULT) {
        wal__message_visit_result(&part->value, join_text, joined);
    } else if (part->kind == WAL__PART_TEXT) {
        join_text(joined, part);
    }
    cli_texts_deinit(&texts);
}

static void join_preview(struct joined *joined, const struct wal_entry *entry,
                         bool hides_results)
{
    struct cli_texts texts = {.items = NULL};
    struct wal__json_span payload;
    struct wal__json_token note;
    struct wal__message message;
    const char *role = shown_role(entry);
    const char *key;

    if ((entry->flags & WAL_ENTRY_REDACTED) != 0 ||
        !cli_entry_json(entry, &payload) ||
        (hides_results && role != NULL && strcmp(role, "tool") == 0)) {
        return;
    }
    if (wal__message_find(payload, &message)) {
        wal__message_visit(&message, preview_part, joined);
    } else if (wal__message_find_note(payload, &note, &key)) {
        join(joined, cli_unescape(&note, &texts));
    }
    cli_texts_deinit(&texts);
}

void shown_preview(struct shown *shown, const struct wal_entry *entry)
{
    struct cli_texts texts = {.items = NULL};
    struct joined joined = {.data = NULL};
    struct wal_slice text;

    join_preview(&joined, entry, shown->hides_results);
    text = (struct wal_slice){joined.data, joined.size};
    if (shown->strike != NULL) {
        text = shown->strike(shown->ctx, cli_slice(NULL), text, &texts);
    }
    cli_json_member_text(shown->json, "text", shown_cut(text, SHOWN_PREVIEW));
    cli_texts_deinit(&texts);
    free(joined.data);
}
