/*
 * opencode_export.c - messages of an export (opencode_export.h).
 *
 * The export is {"info":{...},"messages":[MESSAGE,...]}. It names sessions by
 * ids of OpenCode's form; here they have those of the store.
 */
#include "tools/serve/api/opencode_export.h"

#include <stdlib.h>
#include <string.h>

#include "agentwal/convert.h"
#include "format/json/json_out.h"
#include "format/json/json_scan.h"
#include "tools/cli/cli.h"
#include "tools/cli/json.h"

/* --- writing a message -------------------------------------------------- */

static bool put_bytes(void *ctx, const void *data, size_t size)
{
    return fwrite(data, 1, size, ctx) == size;
}

/* Writes an object with the id of the session. */
static void put_renamed(struct wal__json_out *out, const char *session,
                        struct wal__json_span object)
{
    const struct wal__json_override name = {
        .key = "sessionID",
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

void serve_messages_put(struct serve_messages *messages, FILE *file)
{
    struct wal__json_out out = {.put = put_bytes, .ctx = file};
    struct wal__json_member m[] = {{.key = "info"}, {.key = "parts"}};

    if (wal__json_members(messages->element, messages->size, m, 2, NULL) !=
            WAL__JSON_OK ||
        m[0].value.kind != WAL__JSON_OBJECT ||
        m[1].value.kind != WAL__JSON_ARRAY) {
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

/* --- finding them ------------------------------------------------------- */

static void end_element(struct serve_messages *messages)
{
    messages->count++;
    if (messages->only_last) {
        return;
    }
    if (messages->count > 1) {
        putc_unlocked(',', messages->file);
    }
    serve_messages_put(messages, messages->file);
}

static void add_byte(struct serve_messages *messages, char byte)
{
    messages->element = cli_reserve(messages->element, messages->size,
                                    &messages->capacity, sizeof(char));
    messages->element[messages->size++] = byte;
}

/* Follows strings. Returns whether the byte is outside of them. */
static bool is_outside(struct serve_messages *messages, char byte)
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

static void see_byte(struct serve_messages *messages, char byte)
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
            add_byte(messages, byte);
        }
        if (closes && messages->depth == 2) {
            end_element(messages);
        }
    }
    messages->depth += opens ? 1 : 0;
}

static int32_t see(void *ctx, const void *data, uint64_t size)
{
    struct serve_messages *messages = ctx;
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
    FILE *file = open_memstream(&text, &size);
    struct wal__json_out json;

    if (file == NULL) {
        abort();
    }
    cli_json_init(&json, file);
    cli_json_text(&json, id);
    fclose(file);
    return text;
}

enum wal_status serve_messages_open(struct serve_messages *messages,
                                    struct wal_store *store,
                                    struct wal_session *session,
                                    struct wal_error *error)
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

enum wal_status serve_messages_write(struct serve_messages *messages,
                                     struct wal_error *error)
{
    return wal_view_flush(messages->view, NULL, error);
}

void serve_messages_deinit(struct serve_messages *messages)
{
    wal_view_close(messages->view);
    free(messages->session);
    free(messages->element);
    *messages = (struct serve_messages){.view = NULL};
}
