/*
 * sessions.c - lists of sessions, and a session (sessions.h).
 */
#include "tools/serve/api/sessions.h"

#include <string.h>
#include <strings.h>

#include "tools/shown/session_json.h"

enum {
    LIST_LIMIT = 50,
    LIST_MAX = 1000
};

void serve_get_info(struct serve_exchange *exchange)
{
    struct wal_store_info info = WAL_INIT(wal_store_info);
    struct shown *shown = &exchange->shown;
    struct wal__json_out *json = shown->json;
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status =
        wal_store_get_info(exchange->server->store, &info, &error);

    if (status != WAL_OK) {
        serve_exchange_fail(exchange, status, &error);
        return;
    }
    wal__json_out_open(json, '{');
    shown_member(shown, "version", cli_slice(wal_version()));
    shown_member(shown, "store", info.path);
    wal__json_out_member_bool(shown->json, "writable",
                              exchange->server->can_write);
    wal__json_out_member_count(shown->json, "sessions", info.sessions);
    wal__json_out_member_count(shown->json, "sequence", info.last_sequence);
    wal__json_out_member_bool(shown->json, "search",
                              exchange->server->index != NULL);
    wal__json_out_close(json, '}');
}

struct wal_session *serve_open_session(struct serve_exchange *exchange,
                                       unsigned segment)
{
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_session *session = NULL;
    struct wal_slice id = exchange->segments[segment];
    enum wal_status status =
        wal_session_open(exchange->server->store, id, &session, &error);

    if (status != WAL_OK) {
        /* An id that no session can have names no session. */
        if (status == WAL_EINVAL || status == WAL_ETOOBIG) {
            status = WAL_ENOTFOUND;
        }
        serve_exchange_fail(exchange, status, &error);
        return NULL;
    }
    return session;
}

void serve_answer_session(struct serve_exchange *exchange,
                          serve_session_fn *write)
{
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_session *session = serve_open_session(exchange, 3);
    enum wal_status status;

    if (session == NULL) {
        return;
    }
    wal__json_out_open(&exchange->json, '{');
    status = write(exchange, session, &error);
    wal__json_out_close(&exchange->json, '}');
    if (status != WAL_OK) {
        serve_exchange_fail(exchange, status, &error);
    }
    wal_session_close(session);
}

void serve_get_session(struct serve_exchange *exchange)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_session *session = serve_open_session(exchange, 3);
    enum wal_status status;

    if (session == NULL) {
        return;
    }
    status = wal_session_get_info(session, &info, &error);
    if (status == WAL_OK) {
        shown_session(&exchange->shown, &info);
    } else {
        serve_exchange_fail(exchange, status, &error);
    }
    wal_session_close(session);
}

/* --- lists -------------------------------------------------------------- */

/* The title, or the first message of a session, contains the text. */
static bool has_text(struct wal_slice in, struct wal_slice text)
{
    for (uint64_t at = 0; at + text.size <= in.size; at++) {
        if (strncasecmp((const char *)in.data + at, text.data,
                        (size_t)text.size) == 0) {
            return true;
        }
    }
    return false;
}

/* Writes at most `limit` sessions with the text, and the cursor after them. */
static enum wal_status write_list(struct shown *shown,
                                  struct wal_session_cursor *list,
                                  struct wal_slice text, uint64_t limit,
                                  struct wal_error *error)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal__json_out *json = shown->json;
    char next[WAL_CURSOR_TEXT_SIZE] = "";
    uint64_t count = 0;
    enum wal_status status;

    wal__json_out_open(json, '{');
    wal__json_out_member_open(json, "sessions", '[');
    while ((status = wal_session_cursor_next(list, &info, error)) == WAL_OK) {
        if (text.size > 0 && !has_text(info.title, text) &&
            !has_text(info.first_text, text)) {
            continue;
        }
        if (count == limit) {
            break; /* `next` is the position before this one */
        }
        shown_session(shown, &info);
        count++;
        if (count == limit) {
            status = wal_session_cursor_encode(list, next, error);
            if (status != WAL_OK) {
                return status;
            }
        }
    }
    wal__json_out_close(json, ']');
    shown_member(shown, "next", cli_slice(status == WAL_OK ? next : ""));
    wal__json_out_close(json, '}');
    return status == WAL_END ? WAL_OK : status;
}

static void list_sessions(struct serve_exchange *exchange)
{
    struct wal_session_cursor_options options =
        WAL_INIT(wal_session_cursor_options);
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_session_cursor *list = NULL;
    uint64_t limit = LIST_LIMIT;
    enum wal_status status;

    options.project = serve_exchange_query(exchange, "project");
    options.cwd = serve_exchange_query(exchange, "cwd");
    options.after = serve_exchange_query(exchange, "cursor");
    if (!serve_exchange_number(exchange, "limit", 1, LIST_MAX, &limit)) {
        return;
    }
    status = wal_session_cursor_open(exchange->server->store, &options, &list,
                                     &error);
    if (status == WAL_OK) {
        status =
            write_list(&exchange->shown, list,
                       serve_exchange_query(exchange, "title"), limit, &error);
    }
    if (status != WAL_OK) {
        serve_exchange_fail(exchange, status, &error);
    }
    wal_session_cursor_close(list);
}

void serve_get_sessions(struct serve_exchange *exchange)
{
    /* Only with a text every session may have to be looked at. */
    if (serve_exchange_query(exchange, "title").size > 0) {
        serve_exchange_run(exchange, list_sessions);
    } else {
        list_sessions(exchange);
    }
}
