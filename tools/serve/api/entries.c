/*
 * entries.c - parts of a branch, one entry, and heads (entries.h).
 */
#include "tools/serve/api/entries.h"

#include <stdlib.h>

#include "tools/cli/cli.h"
#include "tools/serve/api/sessions.h"
#include "tools/serve/http/stream.h"
#include "tools/serve/model/branch.h"
#include "tools/shown/entries.h"
#include "tools/shown/entry_json.h"
#include "tools/shown/session_json.h"

enum {
    PART_LIMIT = 100,
    PART_MAX = 1000
};

/* Writes the entries, and counts those that are damaged. */
static enum wal_status write_entries(struct shown *shown,
                                     struct serve_branch *branch,
                                     uint64_t *damaged, char **before,
                                     struct wal_error *error)
{
    struct wal_entry entry = WAL_INIT(wal_entry);
    bool is_first = true;
    enum wal_status status;

    while ((status = serve_branch_next(branch, &entry, error)) != WAL_END) {
        if (status == WAL_OK && is_first) {
            *before = entry.parent_id.size > 0
                          ? cli_copy_text(entry.id.data, (size_t)entry.id.size)
                          : NULL;
            is_first = false;
        }
        if (status == WAL_OK) {
            status = shown_entry(shown, branch->store, &entry, error);
        }
        if (cli_is_damage(status)) {
            ++*damaged;
        } else if (status != WAL_OK) {
            return status;
        }
    }
    return WAL_OK;
}

static enum wal_status write_part(struct shown *shown,
                                  struct serve_branch *branch,
                                  struct wal_error *error)
{
    struct wal__json_out *json = shown->json;
    uint64_t damaged = 0;
    char *before = NULL;
    enum wal_status status;

    wal__json_out_open(json, '{');
    wal__json_out_member_open(json, "entries", '[');
    status = write_entries(shown, branch, &damaged, &before, error);
    wal__json_out_close(json, ']');
    shown_member(shown, "before", cli_slice(before));
    wal__json_out_member_count(shown->json, "damaged", damaged);
    wal__json_out_close(json, '}');
    free(before);
    return status;
}

void serve_get_entries(struct serve_exchange *exchange)
{
    struct serve_branch branch = {.cursor = NULL};
    struct serve_range range = {
        .head = serve_exchange_query(exchange, "head"),
        .leaf = serve_exchange_query(exchange, "leaf"),
        .before = serve_exchange_query(exchange, "before"),
        .after = UINT64_MAX,
        .limit = PART_LIMIT,
    };
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_session *session;
    enum wal_status status;

    if (!serve_exchange_number(exchange, "limit", 1, PART_MAX, &range.limit) ||
        !serve_exchange_number(exchange, "after", 0, INT64_MAX, &range.after)) {
        return;
    }
    session = serve_open_session(exchange, 3);
    if (session == NULL) {
        return;
    }
    status = serve_branch_open(&branch, exchange->server->store, session,
                               &range, &error);
    if (status == WAL_OK) {
        status = write_part(&exchange->shown, &branch, &error);
    }
    if (status != WAL_OK) {
        serve_exchange_fail(exchange, status, &error);
    }
    serve_branch_deinit(&branch);
    wal_session_close(session);
}

void serve_get_entry(struct serve_exchange *exchange)
{
    struct serve_branch branch = {.cursor = NULL};
    struct wal_entry entry = WAL_INIT(wal_entry);
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_session *session = serve_open_session(exchange, 3);
    enum wal_status status;

    if (session == NULL) {
        return;
    }
    status = serve_branch_get(&branch, exchange->server->store, session,
                              exchange->segments[5], &entry, &error);
    if (status == WAL_OK) {
        exchange->shown.limit = 0;
        status = shown_entry_with_payload(
            &exchange->shown, exchange->server->store, &entry, &error);
    }
    if (status != WAL_OK) {
        serve_exchange_fail(
            exchange, status == WAL_EINVAL ? WAL_ENOTFOUND : status, &error);
    }
    serve_branch_deinit(&branch);
    wal_session_close(session);
}

/* --- heads and the tree ------------------------------------------------- */

static enum wal_status write_heads(struct serve_exchange *exchange,
                                   struct wal_session *session,
                                   struct wal_error *error)
{
    return shown_heads(&exchange->shown, session, error);
}

void serve_get_heads(struct serve_exchange *exchange)
{
    serve_answer_session(exchange, write_heads);
}

struct tree {
    struct wal_store *store;
    struct wal_session *session;
};

static void release_tree(void *ctx)
{
    struct tree *tree = ctx;

    wal_session_close(tree->session);
    free(tree);
}

static bool produce_tree(void *ctx, FILE *file)
{
    const struct tree *tree = ctx;
    struct wal__json_out json;
    struct shown shown = {.json = &json, .limit = SHOWN_LIMIT};
    enum wal_status status;

    cli_json_init(&json, file);
    wal__json_out_open(&json, '{');
    status = shown_tree(&shown, tree->store, tree->session, NULL);
    wal__json_out_close(&json, '}');
    return status == WAL_OK;
}

void serve_get_tree(struct serve_exchange *exchange)
{
    struct wal_session *session = serve_open_session(exchange, 3);
    struct tree *tree;

    if (session == NULL) {
        return;
    }
    tree = cli_alloc(sizeof(*tree));
    *tree = (struct tree){exchange->server->store, session};
    serve_exchange_stream(exchange, "application/json; charset=utf-8",
                          MHD_SIZE_UNKNOWN, produce_tree, release_tree, tree);
}
