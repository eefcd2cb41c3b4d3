/*
 * usage.c - tokens and costs of a session and of the store (session_parts.h).
 */
#include "tools/usage/usage.h"
#include "tools/serve/api/session_parts.h"
#include "tools/serve/api/sessions.h"
#include "tools/shown/session_usage.h"

static enum wal_status write_turns(struct serve_exchange *exchange,
                                   struct wal_session *session,
                                   struct wal_error *error)
{
    return shown_usage(&exchange->shown, exchange->server->store, session,
                       error);
}

void serve_get_session_usage(struct serve_exchange *exchange)
{
    serve_answer_session(exchange, write_turns);
}

static void write_groups(struct wal__json_out *json, const struct usage *usage,
                         enum usage_by by)
{
    struct usage_groups groups = {.by = by};

    usage_groups_fill(&groups, usage, 0, 0);
    wal__json_out_open(json, '{');
    wal__json_out_member_open(json, "usage", '[');
    for (size_t i = 0; i < groups.count; i++) {
        usage_group_write(json, by, &groups.items[i]);
    }
    wal__json_out_close(json, ']');
    wal__json_out_member_count(json, "damaged", usage->damaged);
    wal__json_out_close(json, '}');
    usage_groups_deinit(&groups);
}

void serve_get_usage(struct serve_exchange *exchange)
{
    struct wal_slice name = serve_exchange_query(exchange, "by");
    struct wal_error error = CLI_ERROR_INIT;
    enum usage_by by = USAGE_BY_DAY;
    struct progress progress;
    struct usage usage = {.progress = &progress};
    enum wal_status status;

    /* libmicrohttpd ends the values of parameters with NUL. */
    if (name.data != NULL && !usage_by_find(name.data, &by)) {
        serve_exchange_refuse(exchange, MHD_HTTP_BAD_REQUEST,
                              "by must be day, model, project, client or "
                              "session");
        return;
    }
    progress_init(&progress, false);
    status = usage_read(&usage, exchange->server->store, &error);
    if (status == WAL_OK) {
        write_groups(&exchange->json, &usage, by);
    } else {
        serve_exchange_fail(exchange, status, &error);
    }
    usage_deinit(&usage);
}
