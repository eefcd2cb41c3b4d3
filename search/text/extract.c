/*
 * extract.c - the texts of entries, documents and sessions (extract.h).
 *
 * Invariant: the fields of a unit are in the arena, in the record, or constant.
 */
#include "search/text/extract.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/json/json_text.h"
#include "format/payload/first_text.h"
#include "format/payload/message_text.h"
#include "format/payload/timestamp.h"

enum {
    WAL__EXTRACT_ARGUMENTS_MAX = 512 /* bytes of the arguments of a call */
};

/* --- messages of OpenCode ------------------------------------------------- */

enum { KEY_SIZE = 1024 };

void wal__message_columns_deinit(struct wal__message_columns *columns)
{
    wal_session_close(columns->session);
    columns->session = NULL;
}

static bool open_session(struct wal__message_columns *columns, const struct wal_record *record)
{
    if (columns->session != NULL && columns->session_number == record->session_number) {
        return true;
    }
    wal__message_columns_deinit(columns);
    columns->session_number = record->session_number;
    return wal_session_open(columns->store, record->session_id, &columns->session, NULL) == WAL_OK;
}

/* Reads the document of a message. */
static void read_message(struct wal__message_columns *columns, const char *key)
{
    const struct wal_slice name = {key, strlen(key)};
    struct wal_doc doc = WAL_INIT(wal_doc);
    struct wal__json_member m[] = {{.key = "role"}, {.parent = "time", .key = "created"}};

    columns->column = WAL__COLUMN_NONE;
    columns->time_ms = 0;
    if (wal_doc_get(columns->store, columns->session, name, 0, &doc, NULL) == WAL_OK &&
        wal__json_members(doc.value.data, (size_t)doc.value.size, m, 2, NULL) == WAL__JSON_OK &&
        m[0].value.kind == WAL__JSON_STRING) {
        columns->column =
            wal__json_string_is(m[0].value.span, "user") ? WAL__COLUMN_USER : WAL__COLUMN_ASSISTANT;
        (void)wal__model_time_read(m[1].value.span, &columns->time_ms);
    }
}

/* The text of a record's key before "part/": the folder of the storage. */
static int root_size(struct wal_slice key)
{
    static const char part[] = "part/";
    const char *text = key.data;

    for (uint64_t i = 0; i + sizeof(part) - 1 <= key.size; i++) {
        if (memcmp(text + i, part, sizeof(part) - 1) == 0 && (i == 0 || text[i - 1] == '/')) {
            return (int)i;
        }
    }
    return 0;
}

enum wal__column wal__message_column(void *ctx, const struct wal_record *record,
                                     struct wal_slice message_id, int64_t *time_ms)
{
    struct wal__message_columns *columns = ctx;
    int root = root_size(record->doc->key);
    char key[KEY_SIZE];
    bool is_known = columns->session_number == record->session_number && message_id.size > 0 &&
                    message_id.size == strlen(columns->message_id) &&
                    memcmp(message_id.data, columns->message_id, (size_t)message_id.size) == 0;

    if (!is_known) {
        columns->message_id[0] = '\0';
        if (message_id.size >= sizeof(columns->message_id) || !open_session(columns, record)) {
            return WAL__COLUMN_NONE;
        }
        snprintf(key, sizeof(key), "%.*smessage/%.*s/%.*s.json", root,
                 (const char *)record->doc->key.data, WAL_ARG(record->session_id),
                 WAL_ARG(message_id));
        read_message(columns, key);
        memcpy(columns->message_id, message_id.data, (size_t)message_id.size);
        columns->message_id[message_id.size] = '\0';
    }
    if (columns->time_ms != 0) {
        *time_ms = columns->time_ms;
    }
    return columns->column;
}

/* Adds a text to the unit. */
static void extract_add(struct wal__extractor *extractor, enum wal__column column,
                        struct wal__json_span text, struct wal__json_span tool)
{
    if (text.size == 0) {
        return;
    }
    if (extractor->count == extractor->capacity) {
        size_t capacity = extractor->capacity * 2 + 16;
        void *grown = realloc(extractor->fields, capacity * sizeof(*extractor->fields));

        if (grown == NULL) {
            extractor->has_failed = true;
            return;
        }
        extractor->fields = grown;
        extractor->capacity = capacity;
    }
    extractor->fields[extractor->count++] = (struct wal__text_field){
        .column = column, .text = {text.data, text.size}, .tool = {tool.data, tool.size}};
}

/* --- calls of tools ------------------------------------------------------- */

struct call {
    struct wal__extractor *extractor;
    struct wal__json_span tool; /* decoded */
    size_t left;                /* bytes of arguments that may be added */
};

static bool is_path_key(const struct wal__json_token *key)
{
    static const char *const keys[] = {"path",      "file_path",     "filePath",   "file",
                                       "filename",  "notebook_path", "paths",      "files",
                                       "directory", "workdir",       "old_path",   "new_path",
                                       "source",    "destination",   "target_file"};

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (wal__json_string_is(key->span, keys[i])) {
            return true;
        }
    }
    return false;
}

/* The first bytes of a text, cut at a character. */
static size_t cut(struct wal__json_span text, size_t limit)
{
    size_t size = text.size < limit ? text.size : limit;

    while (size > 0 && size < text.size && (text.data[size] & 0xc0) == 0x80) {
        size--;
    }
    return size;
}

static void add_argument(struct call *call, struct wal__json_span text)
{
    text.size = cut(text, call->left);
    if (text.size > 0) {
        extract_add(call->extractor, WAL__COLUMN_TOOL, text, call->tool);
        call->left -= text.size;
    }
}

static void add_path(const struct call *call, struct wal__json_span text)
{
    text.size = cut(text, 4096);
    extract_add(call->extractor, WAL__COLUMN_PATH, text, call->tool);
}

/* Adds the paths of a patch of Codex: "*** Update File: PATH". */
static void add_patch_paths(const struct call *call, struct wal__json_span text)
{
    static const char *const heads[] = {
        "*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: "};
    const uint8_t *at = text.data;
    const uint8_t *end = text.data + text.size;

    while (at < end) {
        const uint8_t *newline = memchr(at, '\n', (size_t)(end - at));
        const uint8_t *line_end = newline == NULL ? end : newline;

        for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
            size_t size = strlen(heads[i]);

            if ((size_t)(line_end - at) > size && memcmp(at, heads[i], size) == 0) {
                add_path(call, (struct wal__json_span){at + size, (size_t)(line_end - at) - size});
            }
        }
        at = newline == NULL ? end : newline + 1;
    }
}

/* Adds the strings of a JSON value. */
static void add_value(struct call *call, struct wal__json_span json)
{
    struct wal__json_scan scan;
    struct wal__json_token token;
    bool is_path = false;

    wal__json_scan_init(&scan, json.data, json.size);
    while (call->left > 0 && wal__json_scan_next(&scan, &token) == WAL__JSON_OK &&
           token.kind != WAL__JSON_END) {
        if (token.kind == WAL__JSON_KEY) {
            is_path = is_path_key(&token);
        } else if (token.kind == WAL__JSON_STRING) {
            struct wal__json_span text =
                wal__arena_unescape(&call->extractor->arena.arena, token.span);

            if (text.data == NULL) {
                call->extractor->has_failed = true;
                return;
            }
            if (is_path) {
                add_path(call, text);
            } else {
                add_argument(call, text);
            }
        }
    }
}

/* Adds a call of a tool: its name, the texts of its arguments and the paths in them. */
static void extract_call(struct wal__extractor *extractor, const struct wal__json_token *name,
                         const struct wal__json_token *arguments)
{
    struct call call = {.extractor = extractor, .left = WAL__EXTRACT_ARGUMENTS_MAX};
    struct wal__json_span text;

    if (name->kind != WAL__JSON_STRING) {
        return;
    }
    call.tool = wal__arena_unescape(&extractor->arena.arena, name->span);
    if (call.tool.data == NULL) {
        extractor->has_failed = true;
        return;
    }
    extract_add(extractor, WAL__COLUMN_TOOL, call.tool, call.tool);
    if (arguments->kind != WAL__JSON_STRING) {
        if (arguments->kind != WAL__JSON_NONE) {
            add_value(&call, arguments->span);
        }
        return;
    }
    /* A text that is JSON, or free text. */
    text = wal__arena_unescape(&extractor->arena.arena, arguments->span);
    if (text.data == NULL) {
        extractor->has_failed = true;
    } else if (wal__json_validate(text.data, text.size, NULL) == WAL__JSON_OK) {
        add_value(&call, text);
    } else {
        add_argument(&call, text);
        add_patch_paths(&call, text);
    }
}

/* --- units ---------------------------------------------------------------- */

void wal__extractor_init(struct wal__extractor *extractor, wal__message_column_fn *message_column,
                         void *ctx)
{
    memset(extractor, 0, sizeof(*extractor));
    extractor->message_column = message_column;
    extractor->ctx = ctx;
    wal__heap_arena_init(&extractor->arena, &wal__heap_libc);
}

void wal__extractor_deinit(struct wal__extractor *extractor)
{
    wal__heap_arena_deinit(&extractor->arena);
    free(extractor->fields);
    extractor->fields = NULL;
}

/* --- fields ------------------------------------------------------------- */

/* Adds a text that is a JSON string. */
static void add_string(struct wal__extractor *extractor, enum wal__column column,
                       struct wal__json_span string)
{
    const struct wal__json_span none = {NULL, 0};
    struct wal__json_span text = wal__arena_unescape(&extractor->arena.arena, string);

    if (text.data == NULL) {
        extractor->has_failed |= string.size > 0;
        return;
    }
    extract_add(extractor, column, text, none);
}

/* --- messages ----------------------------------------------------------- */

/* Adds a string of a part. */
static void add_part_string(struct wal__extractor *extractor, enum wal__column column,
                            const struct wal__message_part *part,
                            const struct wal__json_token *string)
{
    const struct wal__json_span none = {NULL, 0};
    struct wal__json_span text = {NULL, 0};
    uint8_t *buffer;

    if (string->kind != WAL__JSON_STRING || wal__message_is_plain(part, string)) {
        add_string(extractor, column, string->span);
        return;
    }
    buffer = wal__arena_alloc(&extractor->arena.arena, string->span.size + 1);
    if (buffer == NULL) {
        extractor->has_failed = true;
        return;
    }
    text.data = buffer;
    text.size = wal__message_decode(part, string, buffer);
    extract_add(extractor, column, text, none);
}

struct parts {
    struct wal__extractor *extractor;
    enum wal__column column; /* of texts; NONE: they are left out */
};

static void add_result_text(void *ctx, const struct wal__message_part *part)
{
    add_part_string(ctx, WAL__COLUMN_RESULT, part, &part->text);
}

/* The column of the texts of a message with this role, a JSON string. */
static enum wal__column column_of(struct wal__json_span role)
{
    static const struct {
        const char *role;
        enum wal__column column;
    } roles[] = {
        {"user", WAL__COLUMN_USER},         {"tool", WAL__COLUMN_RESULT},
        {"toolResult", WAL__COLUMN_RESULT}, {"system", WAL__COLUMN_NONE},
        {"developer", WAL__COLUMN_NONE},
    };

    for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++) {
        if (wal__json_string_is(role, roles[i].role)) {
            return roles[i].column;
        }
    }
    return WAL__COLUMN_ASSISTANT;
}

static void add_part(void *ctx, const struct wal__message_part *part)
{
    const struct parts *parts = ctx;
    enum wal__column column = parts->column;

    if (column != WAL__COLUMN_NONE && part->author.kind == WAL__JSON_STRING) {
        column = column_of(part->author.span);
    }
    switch (part->kind) {
    case WAL__PART_TEXT:
        if (column != WAL__COLUMN_NONE && !part->is_synthetic &&
            !(column == WAL__COLUMN_USER && wal__first_text_is_injected(part->text.span))) {
            add_part_string(parts->extractor, column, part, &part->text);
        }
        break;
    case WAL__PART_COMMAND:
        if (parts->column != WAL__COLUMN_NONE) {
            add_part_string(parts->extractor, parts->column, part, &part->text);
            add_part_string(parts->extractor, parts->column, part, &part->value);
        }
        break;
    case WAL__PART_CALL:
        extract_call(parts->extractor, &part->text, &part->value);
        break;
    case WAL__PART_RESULT:
        wal__message_visit_result(&part->value, add_result_text, parts->extractor);
        break;
    case WAL__PART_NOTE:
    case WAL__PART_THINKING:
    case WAL__PART_OTHER:
        break;
    }
}

/* Adds the texts of a message; false when the payload has none. */
static bool add_message(struct wal__extractor *extractor, struct wal__json_span payload)
{
    struct parts parts = {.extractor = extractor};
    struct wal__message message;

    if (!wal__message_find(payload, &message)) {
        return false;
    }
    parts.column = column_of(message.role.span);
    if (parts.column == WAL__COLUMN_USER) {
        parts.column = message.is_meta      ? WAL__COLUMN_NONE
                       : message.is_summary ? WAL__COLUMN_SUMMARY
                                            : WAL__COLUMN_USER;
    }
    wal__message_visit(&message, add_part, &parts);
    return true;
}

static bool is_type(const struct wal_entry *entry, const char *type)
{
    return entry->type.size == strlen(type) && memcmp(entry->type.data, type, strlen(type)) == 0;
}

/* Adds the text of an entry that is not a message. */
static void add_note(struct wal__extractor *extractor, const struct wal_entry *entry,
                     struct wal__json_span payload)
{
    struct wal__json_member compacted = {.parent = "payload", .key = "message"};
    struct wal__json_token note;
    const char *key;

    if (is_type(entry, "compacted")) { /* of Codex */
        if (wal__json_members(payload.data, payload.size, &compacted, 1, NULL) == WAL__JSON_OK &&
            compacted.value.kind == WAL__JSON_STRING) {
            add_string(extractor, WAL__COLUMN_SUMMARY, compacted.value.span);
        }
    } else if (wal__message_find_note(payload, &note, &key)) {
        if (strcmp(key, "summary") == 0) {
            add_string(extractor, WAL__COLUMN_SUMMARY, note.span);
        } else if (strcmp(key, "name") == 0 && is_type(entry, "session_info")) {
            add_string(extractor, WAL__COLUMN_TITLE, note.span);
        }
    }
}

/* --- units -------------------------------------------------------------- */

static void begin_unit(struct wal__extractor *extractor)
{
    wal__heap_arena_reset(&extractor->arena);
    extractor->count = 0;
}

/* Passes the unit on, if it has a text; false when it is the last one. */
static bool end_unit(struct wal__extractor *extractor, struct wal__unit *unit, wal__unit_fn *each,
                     void *ctx)
{
    extractor->has_failed |= extractor->arena.has_failed;
    if (extractor->has_failed) {
        return false;
    }
    unit->fields = extractor->fields;
    unit->count = extractor->count;
    return extractor->count == 0 || each(ctx, unit);
}

/* The payload without white space around it and byte order mark; false when it cannot be an
 * object. */
static bool trim(struct wal_slice payload, struct wal__json_span *json)
{
    const uint8_t *at = payload.data;
    const uint8_t *end = at + payload.size;

    if (payload.size >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0) {
        at += 3;
    }
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r')) {
        at++;
    }
    while (end > at && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\n' || end[-1] == '\r')) {
        end--;
    }
    *json = (struct wal__json_span){at, (size_t)(end - at)};
    return json->size > 1 && *at == '{';
}

/* Whether the client wrote an earlier line again. */
static bool is_replay(const struct wal_entry *entry)
{
    struct wal__json_token mark;

    return entry->meta.size > 0 &&
           wal__json_find(entry->meta.data, (size_t)entry->meta.size, "replay", &mark) ==
               WAL__JSON_OK &&
           mark.kind == WAL__JSON_TRUE;
}

static void extract_entry(struct wal__extractor *extractor, const struct wal_entry *entry,
                          wal__unit_fn *each, void *ctx)
{
    struct wal__unit unit = {.entry_id = entry->id, .timestamp = entry->timestamp};
    const struct wal__json_span time = {entry->timestamp.data, (size_t)entry->timestamp.size};
    struct wal__json_span payload;

    if (is_replay(entry) || !trim(entry->payload, &payload)) {
        return;
    }
    (void)wal__model_time_read_text(time, &unit.time_ms);
    begin_unit(extractor);
    if (!add_message(extractor, payload)) {
        add_note(extractor, entry, payload);
    }
    (void)end_unit(extractor, &unit, each, ctx);
}

static void extract_session(struct wal__extractor *extractor, const struct wal_session_info *info,
                            wal__unit_fn *each, void *ctx)
{
    const struct wal__json_span none = {NULL, 0};
    const struct wal__json_span title = {info->title.data, (size_t)info->title.size};
    struct wal__unit unit = {.time_ms = info->created_ms};

    begin_unit(extractor);
    extract_add(extractor, WAL__COLUMN_TITLE, title, none);
    (void)end_unit(extractor, &unit, each, ctx);
}

/* --- documents ---------------------------------------------------------- */

/* Decodes a member that is a string; empty for others. */
static struct wal_slice decode(struct wal__extractor *extractor,
                               const struct wal__json_member *member)
{
    struct wal__json_span text = {NULL, 0};

    if (member->value.kind == WAL__JSON_STRING) {
        text = wal__arena_unescape(&extractor->arena.arena, member->value.span);
        extractor->has_failed |= text.data == NULL;
    }
    return (struct wal_slice){text.data, text.size};
}

/* Sets the unit's id and time from {"id","time":{"created"}} of a message. */
static void read_info(struct wal__extractor *extractor, struct wal__json_span info,
                      struct wal__unit *unit)
{
    struct wal__json_member m[] = {{.key = "id"}, {.parent = "time", .key = "created"}};

    if (wal__json_members(info.data, info.size, m, 2, NULL) == WAL__JSON_OK) {
        unit->entry_id = decode(extractor, &m[0]);
        (void)wal__model_time_read(m[1].value.span, &unit->time_ms);
    }
}

/* A part of a message, which is a document. */
static bool extract_part(struct wal__extractor *extractor, const struct wal_record *record,
                         struct wal__json_span value, wal__unit_fn *each, void *ctx)
{
    struct wal__json_member m[] = {{.key = "messageID"}, {.key = "type"}};
    struct parts parts = {.extractor = extractor};
    struct wal__unit unit = {.time_ms = record->doc->modified_ms};

    begin_unit(extractor);
    if (wal__json_members(value.data, value.size, m, 2, NULL) != WAL__JSON_OK ||
        m[0].value.kind != WAL__JSON_STRING || m[1].value.kind != WAL__JSON_STRING) {
        return false;
    }
    unit.entry_id = decode(extractor, &m[0]);
    parts.column =
        extractor->message_column == NULL
            ? WAL__COLUMN_NONE
            : extractor->message_column(extractor->ctx, record, unit.entry_id, &unit.time_ms);
    wal__message_visit_block(value, add_part, &parts);
    (void)end_unit(extractor, &unit, each, ctx);
    return true;
}

/* The messages of a session that is one document: {info,messages}. */
static void extract_messages(struct wal__extractor *extractor, const struct wal_doc *doc,
                             const struct wal__json_token *messages, wal__unit_fn *each, void *ctx)
{
    struct wal__json_scan scan;
    struct wal__json_token token;
    struct wal__json_token info;
    struct wal__unit unit = {.time_ms = doc->modified_ms};
    bool goes_on = true;

    wal__json_scan_init(&scan, messages->span.data, messages->span.size);
    if (wal__json_scan_next(&scan, &token) != WAL__JSON_OK) {
        return;
    }
    while (goes_on && wal__json_scan_skip(&scan, &token) == WAL__JSON_OK &&
           token.kind != WAL__JSON_ARRAY_END) {
        begin_unit(extractor);
        if (wal__json_find(token.span.data, token.span.size, "info", &info) == WAL__JSON_OK) {
            read_info(extractor, info.span, &unit);
        }
        (void)add_message(extractor, token.span);
        goes_on = end_unit(extractor, &unit, each, ctx);
        unit.number++;
    }
}

static void extract_doc(struct wal__extractor *extractor, const struct wal_record *record,
                        wal__unit_fn *each, void *ctx)
{
    struct wal__json_token messages;
    struct wal__json_span value;
    struct wal__unit unit = {.time_ms = record->doc->modified_ms};

    if (!trim(record->doc->value, &value) || extract_part(extractor, record, value, each, ctx)) {
        return;
    }
    if (wal__json_find(value.data, value.size, "messages", &messages) == WAL__JSON_OK &&
        messages.kind == WAL__JSON_ARRAY) {
        extract_messages(extractor, record->doc, &messages, each, ctx);
        return;
    }
    begin_unit(extractor);
    if (add_message(extractor, value)) {
        read_info(extractor, value, &unit);
        (void)end_unit(extractor, &unit, each, ctx);
    }
}

enum wal_status wal__extract(struct wal__extractor *extractor, const struct wal_record *record,
                             wal__unit_fn *each, void *ctx)
{
    extractor->has_failed = false;
    if (record->kind == WAL_RECORD_ENTRY) {
        extract_entry(extractor, record->entry, each, ctx);
    } else if (record->kind == WAL_RECORD_DOC && (record->doc->flags & WAL_DOC_DELETE) == 0) {
        extract_doc(extractor, record, each, ctx);
    } else if (record->kind == WAL_RECORD_SESSION) {
        extract_session(extractor, record->session, each, ctx);
    }
    return extractor->has_failed ? WAL_ENOMEM : WAL_OK;
}
