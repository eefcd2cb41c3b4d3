/*
 * opencode_message.c - messages as OpenCode's server answers and takes them
 * (opencode.h).
 *
 * A message that is taken is stored in the form that all views understand
 * (docs/messages.md); the model is the caller's.
 */
#include <stdlib.h>
#include <string.h>

#include "format/json/json_scan.h"
#include "format/json/json_value.h"
#include "tools/cli/entry.h"
#include "tools/serve/api/opencode.h"
#include "tools/serve/api/opencode_export.h"
#include "tools/serve/api/sessions.h"
#include "tools/serve/http/stream.h"

/* --- reading ------------------------------------------------------------ */

static void release(void *ctx)
{
    serve_messages_deinit(ctx);
    free(ctx);
}

static bool produce(void *ctx, FILE *file)
{
    struct serve_messages *messages = ctx;
    enum wal_status status;

    messages->file = file;
    putc_unlocked('[', file);
    status = serve_messages_write(messages, NULL);
    putc_unlocked(']', file);
    return status == WAL_OK;
}

void serve_opencode_messages(struct serve_exchange *exchange)
{
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_session *session = serve_open_session(exchange, 1);
    struct serve_messages *messages;
    enum wal_status status;

    if (session == NULL) {
        return;
    }
    messages = cli_alloc(sizeof(*messages));
    status =
        serve_messages_open(messages, exchange->server->store, session, &error);
    wal_session_close(session);
    if (status != WAL_OK) {
        release(messages);
        serve_exchange_fail(exchange, status, &error);
        return;
    }
    serve_exchange_stream(exchange, "application/json; charset=utf-8",
                          MHD_SIZE_UNKNOWN, produce, release, messages);
}

/* --- taking ------------------------------------------------------------- */

enum {
    ROLE,
    MODEL,
    PROVIDER,
    INFO_MODEL,
    INFO_PROVIDER,
    MESSAGE_ID,
    PARTS,
    MEMBER_COUNT
};

static bool is_text(const struct wal__json_token *token, const char *text)
{
    return token->kind == WAL__JSON_STRING &&
           wal__json_string_is(token->span, text);
}

/* Writes a member whose value is a JSON string as it is. */
static void copy_member(struct wal__json_out *json, const char *key,
                        const struct wal__json_token *value)
{
    if (value->kind == WAL__JSON_STRING) {
        wal__json_out_key(json, key);
        cli_json_raw(json,
                     (struct wal_slice){value->span.data, value->span.size});
    }
}

static void write_image(struct wal__json_out *json,
                        const struct wal__json_token *mime,
                        const struct wal__json_token *url)
{
    struct cli_texts texts = {.items = NULL};
    struct wal_slice text = cli_unescape(url, &texts);
    const char *comma =
        text.size > 0 ? memchr(text.data, ',', (size_t)text.size) : NULL;

    wal__json_out_open(json, '{');
    wal__json_out_key(json, "type");
    if (comma != NULL && text.size > 5 && memcmp(text.data, "data:", 5) == 0) {
        uint64_t head = (uint64_t)(comma + 1 - (const char *)text.data);

        cli_json_text(json, cli_slice("image"));
        copy_member(json, "mimeType", mime);
        cli_json_member_text(json, "data",
                             (struct wal_slice){comma + 1, text.size - head});
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
    if (m[1].value.kind == WAL__JSON_STRING &&
        (is_thought || is_text(&m[0].value, "text"))) {
        wal__json_out_open(json, '{');
        cli_json_member_text(json, "type",
                             cli_slice(is_thought ? "thinking" : "text"));
        copy_member(json, is_thought ? "thinking" : "text", &m[1].value);
        wal__json_out_close(json, '}');
    } else if (is_text(&m[0].value, "file") &&
               m[3].value.kind == WAL__JSON_STRING) {
        write_image(json, &m[2].value, &m[3].value);
    } else {
        cli_json_raw(json, (struct wal_slice){part.data, part.size});
    }
}

/* Returns the payload of a message, to be freed. */
static char *make_payload(const struct wal__json_member *m, size_t *size)
{
    char *data = NULL;
    FILE *file = open_memstream(&data, size);
    bool is_answer = is_text(&m[ROLE].value, "assistant");
    struct wal__json_scan scan;
    struct wal__json_token token;
    struct wal__json_out json;

    if (file == NULL) {
        abort();
    }
    cli_json_init(&json, file);
    wal__json_out_open(&json, '{');
    cli_json_member_text(&json, "role",
                         cli_slice(is_answer ? "assistant" : "user"));
    wal__json_out_member_open(&json, "content", '[');
    wal__json_scan_init(&scan, m[PARTS].value.span.data,
                        m[PARTS].value.span.size);
    if (wal__json_scan_next(&scan, &token) == WAL__JSON_OK) {
        while (wal__json_scan_skip(&scan, &token) == WAL__JSON_OK &&
               token.kind == WAL__JSON_OBJECT) {
            write_part(&json, token.span);
        }
    }
    wal__json_out_close(&json, ']');
    copy_member(&json, "provider",
                &m[is_answer ? INFO_PROVIDER : PROVIDER].value);
    copy_member(&json, "model", &m[is_answer ? INFO_MODEL : MODEL].value);
    wal__json_out_close(&json, '}');
    fclose(file);
    return data;
}

/* Appends the message and answers with it, as the export has it. */
static void append(struct serve_exchange *exchange, struct wal_session *session,
                   const struct wal__json_member *m)
{
    struct serve_messages messages = {.only_last = true};
    struct wal_entry entry = WAL_INIT(wal_entry);
    struct cli_texts texts = {.items = NULL};
    struct wal_error error = CLI_ERROR_INIT;
    char id[SERVE_OPENCODE_ID_SIZE];
    size_t size = 0;
    char *payload = make_payload(m, &size);
    enum wal_status status;

    serve_opencode_id(id, "msg_");
    entry.id = m[MESSAGE_ID].value.kind == WAL__JSON_STRING
                   ? cli_unescape(&m[MESSAGE_ID].value, &texts)
                   : cli_slice(id);
    entry.type = cli_slice(WAL_TYPE_MESSAGE);
    entry.payload = (struct wal_slice){payload, size};
    status = wal_append(session, &entry, 1, NULL, NULL, &error);
    if (status == WAL_OK) {
        status = serve_messages_open(&messages, exchange->server->store,
                                     session, &error);
    }
    if (status == WAL_OK) {
        status = serve_messages_write(&messages, &error);
    }
    if (status == WAL_OK && messages.count > 0) {
        serve_messages_put(&messages, exchange->json.ctx);
    } else {
        serve_exchange_fail(exchange, status == WAL_OK ? WAL_ENOTFOUND : status,
                            &error);
    }
    serve_messages_deinit(&messages);
    cli_texts_deinit(&texts);
    free(payload);
}

void serve_opencode_append(struct serve_exchange *exchange)
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
    struct wal_session *session;

    if (wal__json_members(exchange->body, exchange->body_size, m, MEMBER_COUNT,
                          NULL) != WAL__JSON_OK ||
        m[PARTS].value.kind != WAL__JSON_ARRAY) {
        serve_exchange_refuse(exchange, MHD_HTTP_BAD_REQUEST,
                              "the body is no JSON object with parts");
        return;
    }
    session = serve_open_session(exchange, 1);
    if (session != NULL) {
        append(exchange, session, m);
        wal_session_close(session);
    }
}
