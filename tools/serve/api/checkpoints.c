/*
 * checkpoints.c - checkpoints of a session and their differences
 * (session_parts.h).
 */
#include <string.h>

#include "tools/serve/api/session_parts.h"
#include "tools/serve/api/sessions.h"
#include "tools/shown/changes.h"

static enum wal_status write_checkpoints(struct serve_exchange *exchange,
                                         struct wal_session *session,
                                         struct wal_error *error)
{
    return shown_checkpoints_write(&exchange->shown, session, error);
}

void serve_get_checkpoints(struct serve_exchange *exchange)
{
    serve_answer_session(exchange, write_checkpoints);
}

/* Completes the two checkpoints: `after` is the newest, `before` the one before
 * it. Empty when there is none. */
static void complete(const struct shown_checkpoints *checkpoints,
                     struct wal_slice *before, struct wal_slice *after)
{
    size_t at = checkpoints->count;

    if (after->size == 0 && at > 0) {
        *after = cli_slice(checkpoints->ids[at - 1]);
    }
    if (before->size > 0) {
        return;
    }
    while (at > 0 &&
           !cli_slice_equal(cli_slice(checkpoints->ids[at - 1]), *after)) {
        at--;
    }
    if (at > 1) {
        *before = cli_slice(checkpoints->ids[at - 2]);
    }
}

static enum wal_status write_diff(struct serve_exchange *exchange,
                                  struct wal_session *session,
                                  struct wal_error *error)
{
    struct wal_slice before = serve_exchange_query(exchange, "before");
    struct wal_slice after = serve_exchange_query(exchange, "after");
    struct shown_checkpoints checkpoints = {.ids = NULL};
    struct wal__json_out *json = &exchange->json;
    enum wal_status status =
        shown_checkpoints_read(&checkpoints, session, error);

    if (status == WAL_OK) {
        complete(&checkpoints, &before, &after);
        if (before.size > 0 && after.size > 0) {
            status = shown_diff(&exchange->shown, exchange->server->store,
                                session, before, after, error);
        } else {
            wal__json_out_key(json, "files"); /* there are not two of them */
            wal__json_out_open(json, '[');
            wal__json_out_close(json, ']');
        }
    }
    shown_checkpoints_deinit(&checkpoints);
    return status;
}

void serve_get_diff(struct serve_exchange *exchange)
{
    serve_answer_session(exchange, write_diff);
}
