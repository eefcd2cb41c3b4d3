/*
 * opencode.c - sessions as OpenCode's server answers them (opencode.h).
 *
 * Ids are those of the store. What OpenCode has and a session does not, is kept
 * in its metadata: {"archived":MS}.
 */
#include "tools/serve/api/opencode.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "format/json/json_merge.h"
#include "format/json/json_scan.h"
#include "format/json/json_value.h"
#include "tools/cli/entry.h"
#include "tools/serve/api/sessions.h"
#include "tools/serve/http/stream.h"

#define GLOBAL_PROJECT "global"

enum {
    NUMBER_MAX = 64 /* bytes of a number that is kept */
};

void serve_opencode_id(char id[SERVE_OPENCODE_ID_SIZE], const char *prefix)
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz"
                                 "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    uint8_t bytes[26];
    size_t size = strlen(prefix);

    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes)) {
        abort();
    }
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
        "agent",      "app",     "auth",     "command",   "config",
        "event",      "file",    "find",     "formatter", "global",
        "instance",   "log",     "lsp",      "mcp",       "path",
        "permission", "project", "provider", "pty",       "question",
        "session",    "skill",   "tui",      "vcs",       "experimental",
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (exchange->segment_count > 0 &&
            cli_slice_equal(exchange->segments[0], cli_slice(names[i]))) {
            return true;
        }
    }
    return false;
}

void serve_opencode_other(struct serve_exchange *exchange)
{
    serve_exchange_refuse(exchange, MHD_HTTP_NOT_IMPLEMENTED,
                          "this server keeps sessions; it runs no model, no "
                          "command and no terminal, and reads no files");
}

/* --- writing ------------------------------------------------------------ */

static void write_times(struct shown *shown,
                        const struct wal_session_info *info)
{
    struct wal__json_token archived = {.kind = WAL__JSON_NONE};

    wal__json_out_member_open(shown->json, "time", '{');
    shown_time(shown, "created", info->created_ms);
    shown_time(shown, "updated", info->updated_ms);
    if (info->metadata.size > 0 &&
        wal__json_find(info->metadata.data, (size_t)info->metadata.size,
                       "archived", &archived) == WAL__JSON_OK &&
        archived.kind == WAL__JSON_NUMBER) {
        wal__json_out_key(shown->json, "archived");
        cli_json_raw(shown->json, (struct wal_slice){archived.span.data,
                                                     archived.span.size});
    }
    wal__json_out_close(shown->json, '}');
}

static void write_session(struct shown *shown,
                          const struct wal_session_info *info)
{
    struct wal__json_out *json = shown->json;

    wal__json_out_open(json, '{');
    cli_json_member_text(json, "id", info->id);
    cli_json_member_text(json, "slug", cli_slice("session"));
    cli_json_member_text(json, "version", cli_slice(wal_version()));
    cli_json_member_text(json, "projectID",
                         info->project.size > 0 ? info->project
                                                : cli_slice(GLOBAL_PROJECT));
    cli_json_member_text(json, "directory", info->cwd);
    if (info->parent_id.size > 0) {
        cli_json_member_text(json, "parentID", info->parent_id);
    }
    cli_json_member_text(json, "title",
                         info->title.size > 0 ? info->title
                         : info->first_text.size > 0
                             ? info->first_text
                             : cli_slice("New session"));
    write_times(shown, info);
    wal__json_out_close(json, '}');
}

static void answer_session(struct serve_exchange *exchange,
                           struct wal_session *session)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status = wal_session_get_info(session, &info, &error);

    if (status == WAL_OK) {
        write_session(&exchange->shown, &info);
    } else {
        serve_exchange_fail(exchange, status, &error);
    }
}

/* --- lists -------------------------------------------------------------- */

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
            wal_session_open(list->store, listed.id, &session, NULL) ==
                WAL_OK &&
            wal_session_get_info(session, &info, NULL) == WAL_OK) {
            write_session(&shown, &info);
        }
        wal_session_close(session);
    }
    wal__json_out_close(&json, ']');
    return status == WAL_END;
}

static void answer_list(struct serve_exchange *exchange,
                        const struct wal_session_cursor_options *options)
{
    struct wal_error error = CLI_ERROR_INIT;
    struct list *list = cli_alloc(sizeof(*list));
    enum wal_status status;

    list->store = exchange->server->store;
    status =
        wal_session_cursor_open(list->store, options, &list->cursor, &error);
    if (status != WAL_OK) {
        release_list(list);
        serve_exchange_fail(exchange, status, &error);
        return;
    }
    serve_exchange_stream(exchange, "application/json; charset=utf-8",
                          MHD_SIZE_UNKNOWN, produce_list, release_list, list);
}

void serve_opencode_list(struct serve_exchange *exchange)
{
    struct wal_session_cursor_options options =
        WAL_INIT(wal_session_cursor_options);

    options.cwd = serve_exchange_query(exchange, "directory");
    answer_list(exchange, &options);
}

void serve_opencode_children(struct serve_exchange *exchange)
{
    struct wal_session_cursor_options options =
        WAL_INIT(wal_session_cursor_options);
    struct wal_session *session = serve_open_session(exchange, 1);

    if (session != NULL) {
        wal_session_close(session);
        options.parent = exchange->segments[1];
        answer_list(exchange, &options);
    }
}

void serve_opencode_get(struct serve_exchange *exchange)
{
    struct wal_session *session = serve_open_session(exchange, 1);

    if (session != NULL) {
        answer_session(exchange, session);
        wal_session_close(session);
    }
}

/* --- changes ------------------------------------------------------------ */

/* Finds members of the body. Returns false after the answer 400. */
static bool read_body(struct serve_exchange *exchange,
                      struct wal__json_member *members, size_t count)
{
    const char *body = exchange->body_size > 0 ? exchange->body : "{}";
    size_t size = exchange->body_size > 0 ? exchange->body_size : 2;

    if (wal__json_members(body, size, members, count, NULL) == WAL__JSON_OK) {
        return true;
    }
    serve_exchange_refuse(exchange, MHD_HTTP_BAD_REQUEST,
                          "the body is no JSON object");
    return false;
}

/* Sets the project of a new session to that of the directory's last one. */
static void set_project(struct wal_store *store,
                        struct wal_session_options *options,
                        struct wal_session **latest)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);

    options->project = cli_slice(GLOBAL_PROJECT);
    if (options->cwd.size > 0 &&
        wal_session_open_latest(store, options->cwd, latest, NULL) == WAL_OK &&
        wal_session_get_info(*latest, &info, NULL) == WAL_OK &&
        info.project.size > 0) {
        options->project = info.project;
    }
}

void serve_opencode_create(struct serve_exchange *exchange)
{
    struct wal__json_member m[] = {{.key = "parentID"}, {.key = "title"}};
    struct wal_session_options options = WAL_INIT(wal_session_options);
    struct cli_texts texts = {.items = NULL};
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_session *session = NULL;
    struct wal_session *latest = NULL;
    char id[SERVE_OPENCODE_ID_SIZE];
    enum wal_status status;

    if (!read_body(exchange, m, 2)) {
        return;
    }
    serve_opencode_id(id, "ses_");
    options.id = cli_slice(id);
    options.cwd = serve_exchange_query(exchange, "directory");
    options.parent_id = cli_unescape(&m[0].value, &texts);
    options.title = cli_unescape(&m[1].value, &texts);
    set_project(exchange->server->store, &options, &latest);
    status =
        wal_session_create(exchange->server->store, &options, &session, &error);
    if (status == WAL_OK) {
        answer_session(exchange, session);
    } else {
        serve_exchange_fail(exchange, status, &error);
    }
    wal_session_close(session);
    wal_session_close(latest);
    cli_texts_deinit(&texts);
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
    const struct wal__span old = {now->metadata.data,
                                  (size_t)now->metadata.size};
    size_t capacity = old.size + change->patch.size;
    size_t size = 0;

    if (change->title.data != NULL) {
        to->fields |= WAL_CHANGE_TITLE;
        to->title = change->title;
    }
    if (change->patch.size > 0) {
        free(change->metadata);
        change->metadata = cli_alloc(capacity);
        if (wal__json_merge(old, change->patch, change->metadata, capacity,
                            &size) != WAL__JSON_OK) {
            return 1;
        }
        to->fields |= WAL_CHANGE_METADATA;
        to->metadata = (struct wal_slice){change->metadata, size};
    }
    return 0;
}

void serve_opencode_change(struct serve_exchange *exchange)
{
    struct wal__json_member m[] = {{.key = "title"},
                                   {.parent = "time", .key = "archived"}};
    struct cli_texts texts = {.items = NULL};
    struct wal_error error = CLI_ERROR_INIT;
    struct change change = {.metadata = NULL};
    struct wal_session *session;
    char patch[128];
    enum wal_status status;

    if (!read_body(exchange, m, 2)) {
        return;
    }
    if (m[1].value.kind == WAL__JSON_NUMBER ||
        m[1].value.kind == WAL__JSON_NULL) {
        if (m[1].value.span.size > NUMBER_MAX) {
            serve_exchange_refuse(exchange, MHD_HTTP_BAD_REQUEST,
                                  "time.archived has at most %d digits",
                                  NUMBER_MAX);
            return;
        }
        snprintf(patch, sizeof(patch), "{\"archived\":%.*s}",
                 (int)m[1].value.span.size, (const char *)m[1].value.span.data);
        change.patch =
            (struct wal__span){(const uint8_t *)patch, strlen(patch)};
    }
    session = serve_open_session(exchange, 1);
    if (session == NULL) {
        return;
    }
    if (m[0].value.kind == WAL__JSON_STRING) {
        change.title = cli_unescape(&m[0].value, &texts);
    }
    status = wal_session_update(session, change_session, &change, &error);
    if (status == WAL_OK) {
        answer_session(exchange, session);
    } else {
        serve_exchange_fail(exchange, status, &error);
    }
    free(change.metadata);
    wal_session_close(session);
    cli_texts_deinit(&texts);
}

void serve_opencode_delete(struct serve_exchange *exchange)
{
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_session *session = serve_open_session(exchange, 1);
    enum wal_status status;

    if (session == NULL) {
        return;
    }
    /* The client names the session: it goes as it is, and can come back. */
    status = wal_session_trash(session, &error);
    if (status == WAL_OK) {
        wal__json_out_literal(&exchange->json, true ? "true" : "false");
    } else {
        serve_exchange_fail(exchange, status, &error);
    }
    wal_session_close(session);
}
