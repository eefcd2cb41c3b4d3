/*
 * opencode.c - sessions and messages as OpenCode's server answers and takes them (docs/seeing.md,
 * Paths of OpenCode).
 *
 * Ids are those of the store. What OpenCode has and a session does not, is kept in its metadata:
 * {"archived":MS}. Messages are those of an export in OpenCode's dialect,
 * {"info":{...},"messages":[MESSAGE,...]}, one by one while it is written: one is in memory. The
 * export names sessions by ids of OpenCode's form; here they have those of the store. A message
 * that is taken is stored in the form that all views understand (docs/messages.md); the model is
 * the caller's.
 */
#include "tools/serve/api.h"

#include <stdlib.h>
#include <string.h>

#include "agentwal/convert.h"
#include "engine/base/system.h"
#include "format/json/json_merge.h"
#include "format/json/json_text.h"

#define GLOBAL_PROJECT "global"

enum {
    NUMBER_MAX = 64, /* bytes of a number that is kept */
    ID_SIZE = 31     /* bytes with the NUL */
};

/* Makes an id of OpenCode's form: "ses_" or "msg_" and 26 characters. */
static void make_id(char id[ID_SIZE], const char *prefix)
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    uint8_t bytes[26];
    size_t size = strlen(prefix);

    wal__system_random(bytes, sizeof(bytes));
    memcpy(id, prefix, size);
    for (size_t i = 0; i < sizeof(bytes); i++) {
        /* OpenCode's begin with 12 hexadecimal digits. */
        id[size + i] = digits[bytes[i] % (i < 12 ? 16 : sizeof(digits) - 1)];
    }
    id[size + sizeof(bytes)] = '\0';
}

bool serve_opencode_has(const struct serve_exchange *exchange)
{
    static const char *const names[] = {
        "agent", "app",        "auth",    "command",      "config", "event",    "file",
        "find",  "formatter",  "global",  "instance",     "log",    "lsp",      "mcp",
        "path",  "permission", "project", "provider",     "pty",    "question", "session",
        "skill", "tui",        "vcs",     "experimental",
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (exchange->segment_count > 0 &&
            cli_slice_equal(exchange->segments[0], cli_slice(names[i]))) {
            return true;
        }
    }
    return false;
}

enum wal_status serve_opencode_other(struct serve_exchange *exchange, struct wal_error *error)
{
    (void)error;
    serve_exchange_refuse(exchange, MHD_HTTP_NOT_IMPLEMENTED,
                          "this server keeps sessions; it runs no model, no "
                          "command and no terminal, and reads no files");
    return WAL_OK;
}

/* --- writing -------------------------------------------------------- */

static void write_times(struct shown *shown, const struct wal_session_info *info)
{
    struct wal__json_token archived = {.kind = WAL__JSON_NONE};

    wal__json_out_member_open(shown->json, "time", '{');
    shown_time(shown, "created", info->created_ms);
    shown_time(shown, "updated", info->updated_ms);
    if (info->metadata.size > 0 &&
        wal__json_find(info->metadata.data, (size_t)info->metadata.size, "archived", &archived) ==
            WAL__JSON_OK &&
        archived.kind == WAL__JSON_NUMBER) {
        wal__json_out_key(shown->json, "archived");
        cli_json_raw(shown->json, (struct wal_slice){archived.span.data, archived.span.size});
    }
    wal__json_out_close(shown->json, '}');
}

static void write_session(struct shown *shown, const struct wal_session_info *info)
{
    struct wal__json_out *json = shown->json;

    wal__json_out_open(json, '{');
    cli_json_member_text(json, "id", info->id);
    cli_json_member_text(json, "slug", cli_slice("session"));
    cli_json_member_text(json, "version", cli_slice(wal_version()));
    cli_json_member_text(json, "projectID",
                         info->project.size > 0 ? info->project : cli_slice(GLOBAL_PROJECT));
    cli_json_member_text(json, "directory", info->cwd);
    if (info->parent_id.size > 0) {
        cli_json_member_text(json, "parentID", info->parent_id);
    }
    cli_json_member_text(json, "title",
                         info->title.size > 0        ? info->title
                         : info->first_text.size > 0 ? info->first_text
                                                     : cli_slice("New session"));
    write_times(shown, info);
    wal__json_out_close(json, '}');
}

static enum wal_status answer_session(struct serve_exchange *exchange, struct wal_session *session,
                                      struct wal_error *error)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    enum wal_status status = wal_session_get_info(session, &info, error);

    if (status == WAL_OK) {
        write_session(&exchange->shown, &info);
    }
    return status;
}

/* --- lists ---------------------------------------------------------- */

struct list {
    struct wal_store *store;
    struct wal_session_cursor *cursor;
};

static void release_list(void *ctx)
{
    struct list *list = ctx;

    wal_session_cursor_close(list->cursor);
    free(list);
}

static bool produce_list(void *ctx, FILE *file)
{
    struct list *list = ctx;
    struct wal_session_info listed = WAL_INIT(wal_session_info);
    struct wal__json_out json;
    struct shown shown = {.json = &json};
    enum wal_status status = WAL_OK;

    cli_json_init(&json, file);
    wal__json_out_open(&json, '[');
    while (status == WAL_OK && !ferror(file)) {
        struct wal_session_info info = WAL_INIT(wal_session_info);
        struct wal_session *session = NULL;

        status = wal_session_cursor_next(list->cursor, &listed, NULL);
        /* The list has no metadata. */
        if (status == WAL_OK &&
            wal_session_open(list->store, listed.id, &session, NULL) == WAL_OK &&
            wal_session_get_info(session, &info, NULL) == WAL_OK) {
            write_session(&shown, &info);
        }
        wal_session_close(session);
    }
    wal__json_out_close(&json, ']');
    return status == WAL_END;
}

static enum wal_status answer_list(struct serve_exchange *exchange,
                                   const struct wal_session_cursor_options *options,
                                   struct wal_error *error)
{
    struct list *list = cli_alloc(sizeof(*list));
    enum wal_status status;

    list->store = exchange->server->store;
    status = wal_session_cursor_open(list->store, options, &list->cursor, error);
    if (status != WAL_OK) {
        release_list(list);
        return status;
    }
    serve_exchange_stream(exchange, "application/json; charset=utf-8", MHD_SIZE_UNKNOWN,
                          produce_list, release_list, list);
    return WAL_OK;
}

enum wal_status serve_opencode_list(struct serve_exchange *exchange, struct wal_error *error)
{
    struct wal_session_cursor_options options = WAL_INIT(wal_session_cursor_options);

    options.cwd = serve_exchange_query(exchange, "directory");
    return answer_list(exchange, &options, error);
}

enum wal_status serve_opencode_children(struct serve_exchange *exchange, struct wal_error *error)
{
    struct wal_session_cursor_options options = WAL_INIT(wal_session_cursor_options);

    options.parent = exchange->segments[1];
    return answer_list(exchange, &options, error);
}

enum wal_status serve_opencode_get(struct serve_exchange *exchange, struct wal_error *error)
{
    return answer_session(exchange, exchange->session, error);
}

/* --- changes -------------------------------------------------------- */

/* Finds members of the body. Returns false after the answer 400. */
static bool read_body(struct serve_exchange *exchange, struct wal__json_member *members,
                      size_t count)
{
    const char *body = exchange->body_size > 0 ? exchange->body : "{}";
    size_t size = exchange->body_size > 0 ? exchange->body_size : 2;

    if (wal__json_members(body, size, members, count, NULL) == WAL__JSON_OK) {
        return true;
    }
    serve_exchange_refuse(exchange, MHD_HTTP_BAD_REQUEST, "the body is no JSON object");
    return false;
}

/* Sets the project of a new session to that of the directory's last one. */
static void set_project(struct wal_store *store, struct wal_session_options *options,
                        struct wal_session **latest)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);

    options->project = cli_slice(GLOBAL_PROJECT);
    if (options->cwd.size > 0 &&
        wal_session_open_latest(store, options->cwd, latest, NULL) == WAL_OK &&
        wal_session_get_info(*latest, &info, NULL) == WAL_OK && info.project.size > 0) {
        options->project = info.project;
    }
}

enum wal_status serve_opencode_create(struct serve_exchange *exchange, struct wal_error *error)
{
    struct wal__json_member m[] = {{.key = "parentID"}, {.key = "title"}};
    struct wal_session_options options = WAL_INIT(wal_session_options);
    struct cli_texts texts = {.items = NULL};
    struct wal_session *session = NULL;
    struct wal_session *latest = NULL;
    char id[ID_SIZE];
    enum wal_status status;

    if (!read_body(exchange, m, 2)) {
        return WAL_OK;
    }
    make_id(id, "ses_");
    options.id = cli_slice(id);
    options.cwd = serve_exchange_query(exchange, "directory");
    options.parent_id = cli_unescape(&m[0].value, &texts);
    options.title = cli_unescape(&m[1].value, &texts);
    set_project(exchange->server->store, &options, &latest);
    status = wal_session_create(exchange->server->store, &options, &session, error);
    if (status == WAL_OK) {
        status = answer_session(exchange, session, error);
    }
    wal_session_close(session);
    wal_session_close(latest);
    cli_texts_deinit(&texts);
    return status;
}

struct change {
    struct wal_slice title; /* NULL data: not changed */
    struct wal__span patch; /* of the metadata; or empty */
    uint8_t *metadata;
};

/* A wal_update_fn. */
static int32_t change_session(void *ctx, const struct wal_session_info *now,
                              struct wal_session_change *to)
{
    struct change *change = ctx;
    const struct wal__span old = {now->metadata.data, (size_t)now->metadata.size};
    size_t capacity = old.size + change->patch.size;
    size_t size = 0;

    if (change->title.data != NULL) {
        to->fields |= WAL_CHANGE_TITLE;
        to->title = change->title;
    }
    if (change->patch.size > 0) {
        free(change->metadata);
        change->metadata = cli_alloc(capacity);
        if (wal__json_merge(old, change->patch, change->metadata, capacity, &size) !=
            WAL__JSON_OK) {
            return 1;
        }
        to->fields |= WAL_CHANGE_METADATA;
        to->metadata = (struct wal_slice){change->metadata, size};
    }
    return 0;
}

enum wal_status serve_opencode_change(struct serve_exchange *exchange, struct wal_error *error)
{
    struct wal__json_member m[] = {{.key = "title"}, {.parent = "time", .key = "archived"}};
    struct cli_texts texts = {.items = NULL};
    struct change change = {.metadata = NULL};
    char patch[128];
    enum wal_status status;

    if (!read_body(exchange, m, 2)) {
        return WAL_OK;
    }
    if (m[1].value.kind == WAL__JSON_NUMBER || m[1].value.kind == WAL__JSON_NULL) {
        if (m[1].value.span.size > NUMBER_MAX) {
            serve_exchange_refuse(exchange, MHD_HTTP_BAD_REQUEST,
                                  "time.archived has at most %d digits", NUMBER_MAX);
            return WAL_OK;
        }
        snprintf(patch, sizeof(patch), "{\"archived\":%.*s}", (int)m[1].value.span.size,
                 (const char *)m[1].value.span.data);
        change.patch = (struct wal__span){(const uint8_t *)patch, strlen(patch)};
    }
    if (m[0].value.kind == WAL__JSON_STRING) {
        change.title = cli_unescape(&m[0].value, &texts);
    }
    status = serve_open_session(exchange, 1, error);
    if (status == WAL_OK) {
        status = wal_session_update(exchange->session, change_session, &change, error);
    }
    if (status == WAL_OK) {
        status = answer_session(exchange, exchange->session, error);
    }
    free(change.metadata);
    cli_texts_deinit(&texts);
    return status;
}

enum wal_status serve_opencode_delete(struct serve_exchange *exchange, struct wal_error *error)
{
    wal__json_out_literal(&exchange->json, "true");
    /* The client names the session: it goes as it is, and can come back. */
    return wal_session_trash(exchange->session, error);
}

/* --- messages of an export ---------------------------------------------- */

struct messages {
    struct wal_view *view;
    char *session; /* id, as a JSON string: that of the messages */
    FILE *file;    /* where they go; each after a comma but the first */
    uint64_t count;
    bool only_last; /* keep the last one in `element` instead */
    /* Where in the export the next byte is. */
    unsigned depth;
    bool is_in_string;
    bool is_escaped;
    bool is_in_messages;
    char *element;
    size_t size;
    size_t capacity;
};

/* --- writing a message ---------------------------------------------- */

static bool put_bytes(void *ctx, const void *data, size_t size)
{
    return fwrite(data, 1, size, ctx) == size;
}

/* Writes an object with the id of the session. */
static void put_renamed(struct wal__json_out *out, const char *session,
                        struct wal__json_span object)
{
    const struct wal__json_override name = {.key = "sessionID",
                                            .json = {(const uint8_t *)session, strlen(session)}};

    wal__json_out_overridden(out, object, &name, 1);
}

static void put_parts(struct wal__json_out *out, const char *session,
                      const struct wal__json_token *parts)
{
    struct wal__json_scan scan;
    struct wal__json_token token;

    wal__json_out_open(out, '[');
    wal__json_scan_init(&scan, parts->span.data, parts->span.size);
    if (wal__json_scan_next(&scan, &token) == WAL__JSON_OK) {
        while (wal__json_scan_skip(&scan, &token) == WAL__JSON_OK &&
               token.kind == WAL__JSON_OBJECT) {
            put_renamed(out, session, token.span);
        }
    }
    wal__json_out_close(out, ']');
}

/* Writes the message in `element`, with the session's id. */
static void messages_put(struct messages *messages, FILE *file)
{
    struct wal__json_out out = {.put = put_bytes, .ctx = file};
    struct wal__json_member m[] = {{.key = "info"}, {.key = "parts"}};

    if (wal__json_members(messages->element, messages->size, m, 2, NULL) != WAL__JSON_OK ||
        m[0].value.kind != WAL__JSON_OBJECT || m[1].value.kind != WAL__JSON_ARRAY) {
        fwrite(messages->element, 1, messages->size, file);
        return;
    }
    wal__json_out_open(&out, '{');
    wal__json_out_key(&out, "info");
    put_renamed(&out, messages->session, m[0].value.span);
    wal__json_out_key(&out, "parts");
    put_parts(&out, messages->session, &m[1].value);
    wal__json_out_close(&out, '}');
}

/* --- finding them --------------------------------------------------- */

static void end_element(struct messages *messages)
{
    messages->count++;
    if (messages->only_last) {
        return;
    }
    if (messages->count > 1) {
        putc_unlocked(',', messages->file);
    }
    messages_put(messages, messages->file);
}

/* Follows strings. Returns whether the byte is outside of them. */
static bool is_outside(struct messages *messages, char byte)
{
    bool was_in_string = messages->is_in_string;

    if (messages->is_escaped) {
        messages->is_escaped = false;
    } else if (was_in_string && byte == '\\') {
        messages->is_escaped = true;
    } else if (byte == '"') {
        messages->is_in_string = !was_in_string;
    }
    return !was_in_string && byte != '"';
}

static void see_byte(struct messages *messages, char byte)
{
    bool opens = false;
    bool closes = false;

    if (is_outside(messages, byte)) {
        opens = byte == '{' || byte == '[';
        closes = byte == '}' || byte == ']';
    }
    messages->depth -= closes ? 1 : 0;
    if (messages->depth == 1 && (opens || closes)) {
        messages->is_in_messages = opens && byte == '[';
    } else if (messages->is_in_messages) {
        if (opens && messages->depth == 2) {
            messages->size = 0;
        }
        if (opens || messages->depth > 2 || closes) {
            *CLI_PUSH(messages->element, messages->size, messages->capacity) = byte;
        }
        if (closes && messages->depth == 2) {
            end_element(messages);
        }
    }
    messages->depth += opens ? 1 : 0;
}

static int32_t see(void *ctx, const void *data, uint64_t size)
{
    struct messages *messages = ctx;
    const char *bytes = data;

    for (uint64_t i = 0; i < size; i++) {
        see_byte(messages, bytes[i]);
    }
    return messages->file != NULL && ferror(messages->file) ? 1 : 0;
}

/* The id as a JSON string. */
static char *quote(struct wal_slice id)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = cli_open_memory(&text, &size);
    struct wal__json_out json;

    cli_json_init(&json, file);
    cli_json_text(&json, id);
    fclose(file);
    return text;
}

/* Opens the export of a session. */
static enum wal_status messages_open(struct messages *messages, struct wal_store *store,
                                     struct wal_session *session, struct wal_error *error)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_view_options options = WAL_INIT(wal_view_options);
    enum wal_status status = wal_session_get_info(session, &info, error);

    if (status != WAL_OK) {
        return status;
    }
    messages->session = quote(info.id);
    options.dialect = cli_slice("opencode");
    options.put = see;
    options.ctx = messages;
    return wal_view_open(store, session, &options, &messages->view, error);
}

static void messages_deinit(struct messages *messages)
{
    wal_view_close(messages->view);
    free(messages->session);
    free(messages->element);
    *messages = (struct messages){.view = NULL};
}

/* --- reading -------------------------------------------------------- */

static void release_messages(void *ctx)
{
    messages_deinit(ctx);
    free(ctx);
}

static bool produce_messages(void *ctx, FILE *file)
{
    struct messages *messages = ctx;
    enum wal_status status;

    messages->file = file;
    putc_unlocked('[', file);
    status = wal_view_flush(messages->view, NULL, NULL);
    putc_unlocked(']', file);
    return status == WAL_OK;
}

enum wal_status serve_opencode_messages(struct serve_exchange *exchange, struct wal_error *error)
{
    struct messages *messages = cli_alloc(sizeof(*messages));
    enum wal_status status =
        messages_open(messages, exchange->server->store, exchange->session, error);

    if (status != WAL_OK) {
        release_messages(messages);
        return status;
    }
    serve_exchange_stream(exchange, "application/json; charset=utf-8", MHD_SIZE_UNKNOWN,
                          produce_messages, release_messages, messages);
    return WAL_OK;
}

/* --- taking --------------------------------------------------------- */

enum { ROLE, MODEL, PROVIDER, INFO_MODEL, INFO_PROVIDER, MESSAGE_ID, PARTS, MEMBER_COUNT };

static bool is_text(const struct wal__json_token *token, const char *text)
{
    return token->kind == WAL__JSON_STRING && wal__json_string_is(token->span, text);
}

/* Writes a member whose value is a JSON string as it is. */
static void copy_member(struct wal__json_out *json, const char *key,
                        const struct wal__json_token *value)
{
    if (value->kind == WAL__JSON_STRING) {
        wal__json_out_key(json, key);
        cli_json_raw(json, (struct wal_slice){value->span.data, value->span.size});
    }
}

static void write_image(struct wal__json_out *json, const struct wal__json_token *mime,
                        const struct wal__json_token *url)
{
    struct cli_texts texts = {.items = NULL};
    struct wal_slice text = cli_unescape(url, &texts);
    const char *comma = text.size > 0 ? memchr(text.data, ',', (size_t)text.size) : NULL;

    wal__json_out_open(json, '{');
    wal__json_out_key(json, "type");
    if (comma != NULL && text.size > 5 && memcmp(text.data, "data:", 5) == 0) {
        uint64_t head = (uint64_t)(comma + 1 - (const char *)text.data);

        cli_json_text(json, cli_slice("image"));
        copy_member(json, "mimeType", mime);
        cli_json_member_text(json, "data", (struct wal_slice){comma + 1, text.size - head});
    } else {
        cli_json_text(json, cli_slice("file"));
        copy_member(json, "mime", mime);
        copy_member(json, "url", url);
    }
    wal__json_out_close(json, '}');
    cli_texts_deinit(&texts);
}

/* Writes a part as a block of the content. Other kinds are copied. */
static void write_part(struct wal__json_out *json, struct wal__json_span part)
{
    struct wal__json_member m[] = {
        {.key = "type"}, {.key = "text"}, {.key = "mime"}, {.key = "url"}};
    bool is_thought;

    if (wal__json_members(part.data, part.size, m, 4, NULL) != WAL__JSON_OK) {
        return;
    }
    is_thought = is_text(&m[0].value, "reasoning");
    if (m[1].value.kind == WAL__JSON_STRING && (is_thought || is_text(&m[0].value, "text"))) {
        wal__json_out_open(json, '{');
        cli_json_member_text(json, "type", cli_slice(is_thought ? "thinking" : "text"));
        copy_member(json, is_thought ? "thinking" : "text", &m[1].value);
        wal__json_out_close(json, '}');
    } else if (is_text(&m[0].value, "file") && m[3].value.kind == WAL__JSON_STRING) {
        write_image(json, &m[2].value, &m[3].value);
    } else {
        cli_json_raw(json, (struct wal_slice){part.data, part.size});
    }
}

/* Returns the payload of a message, to be freed. */
static char *make_payload(const struct wal__json_member *m, size_t *size)
{
    char *data = NULL;
    FILE *file = cli_open_memory(&data, size);
    bool is_answer = is_text(&m[ROLE].value, "assistant");
    struct wal__json_scan scan;
    struct wal__json_token token;
    struct wal__json_out json;

    cli_json_init(&json, file);
    wal__json_out_open(&json, '{');
    cli_json_member_text(&json, "role", cli_slice(is_answer ? "assistant" : "user"));
    wal__json_out_member_open(&json, "content", '[');
    wal__json_scan_init(&scan, m[PARTS].value.span.data, m[PARTS].value.span.size);
    if (wal__json_scan_next(&scan, &token) == WAL__JSON_OK) {
        while (wal__json_scan_skip(&scan, &token) == WAL__JSON_OK &&
               token.kind == WAL__JSON_OBJECT) {
            write_part(&json, token.span);
        }
    }
    wal__json_out_close(&json, ']');
    copy_member(&json, "provider", &m[is_answer ? INFO_PROVIDER : PROVIDER].value);
    copy_member(&json, "model", &m[is_answer ? INFO_MODEL : MODEL].value);
    wal__json_out_close(&json, '}');
    fclose(file);
    return data;
}

/* Appends the message and answers with it, as the export has it. */
static enum wal_status append_message(struct serve_exchange *exchange,
                                      const struct wal__json_member *m, struct wal_error *error)
{
    struct messages messages = {.only_last = true};
    struct wal_entry entry = WAL_INIT(wal_entry);
    struct cli_texts texts = {.items = NULL};
    char id[ID_SIZE];
    size_t size = 0;
    char *payload = make_payload(m, &size);
    enum wal_status status;

    make_id(id, "msg_");
    entry.id = m[MESSAGE_ID].value.kind == WAL__JSON_STRING
                   ? cli_unescape(&m[MESSAGE_ID].value, &texts)
                   : cli_slice(id);
    entry.type = cli_slice(WAL_TYPE_MESSAGE);
    entry.payload = (struct wal_slice){payload, size};
    status = wal_append(exchange->session, &entry, 1, NULL, NULL, error);
    if (status == WAL_OK) {
        status = messages_open(&messages, exchange->server->store, exchange->session, error);
    }
    if (status == WAL_OK) {
        status = wal_view_flush(messages.view, NULL, error);
    }
    if (status == WAL_OK && messages.count > 0) {
        messages_put(&messages, exchange->json.ctx);
    } else if (status == WAL_OK) {
        status = WAL_ENOTFOUND;
    }
    messages_deinit(&messages);
    cli_texts_deinit(&texts);
    free(payload);
    return status;
}

enum wal_status serve_opencode_append(struct serve_exchange *exchange, struct wal_error *error)
{
    struct wal__json_member m[MEMBER_COUNT] = {
        [ROLE] = {.parent = "info", .key = "role"},
        [MODEL] = {.parent = "model", .key = "modelID"},
        [PROVIDER] = {.parent = "model", .key = "providerID"},
        [INFO_MODEL] = {.parent = "info", .key = "modelID"},
        [INFO_PROVIDER] = {.parent = "info", .key = "providerID"},
        [MESSAGE_ID] = {.key = "messageID"},
        [PARTS] = {.key = "parts"},
    };
    enum wal_status status;

    if (wal__json_members(exchange->body, exchange->body_size, m, MEMBER_COUNT, NULL) !=
            WAL__JSON_OK ||
        m[PARTS].value.kind != WAL__JSON_ARRAY) {
        serve_exchange_refuse(exchange, MHD_HTTP_BAD_REQUEST,
                              "the body is no JSON object with parts");
        return WAL_OK;
    }
    status = serve_open_session(exchange, 1, error);
    return status == WAL_OK ? append_message(exchange, m, error) : status;
}
