/*
 * search.c - words in all sessions (api.h).
 */
#include "tools/serve/api.h"

#include <stdlib.h>

#include "tools/search/search.h"

enum { SEARCH_LIMIT = 20, SEARCH_MAX = 1000 };

struct serve_index {
    pthread_mutex_t lock;
    struct wal_search *search;
};

struct serve_index *serve_index_open(struct serve_server *server)
{
    struct serve_index *index = cli_alloc(sizeof(*index));

    if (wal_search_open(server->store, NULL, &index->search, NULL) != WAL_OK) {
        free(index);
        return NULL;
    }
    pthread_mutex_init(&index->lock, NULL);
    return index;
}

void serve_index_close(struct serve_index *index)
{
    if (index != NULL) {
        wal_search_close(index->search);
        pthread_mutex_destroy(&index->lock);
        free(index);
    }
}

void serve_index_prepare(struct serve_index *index)
{
    if (index != NULL) {
        pthread_mutex_lock(&index->lock);
        (void)!wal_search_update(index->search, NULL, NULL, NULL);
        pthread_mutex_unlock(&index->lock);
    }
}

/* Begins the session of a hit. Returns false when it was deleted meanwhile. */
static bool open_session(struct serve_exchange *exchange, const struct wal_search_hit *hit)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_session *session = NULL;
    bool is_open =
        wal_session_open(exchange->server->store, hit->session_id, &session, NULL) == WAL_OK &&
        wal_session_get_info(session, &info, NULL) == WAL_OK;

    if (is_open) {
        search_session_open(exchange->server->cli, &exchange->json, &info, hit);
    }
    wal_session_close(session);
    return is_open;
}

static void write_hits(struct serve_exchange *exchange, struct wal_search_cursor *cursor)
{
    struct wal_search_hit hit = WAL_INIT(wal_search_hit);
    struct wal__json_out *json = &exchange->json;
    uint32_t rank = UINT32_MAX;
    bool is_open = false;

    wal__json_out_open(json, '{');
    wal__json_out_member_open(json, "sessions", '[');
    while (wal_search_cursor_next(cursor, &hit, NULL) == WAL_OK) {
        if (hit.rank != rank) {
            if (is_open) {
                search_session_close(json);
            }
            rank = hit.rank;
            is_open = open_session(exchange, &hit);
        }
        if (is_open) {
            search_hit_open(json, &hit);
            wal__json_out_close(json, '}');
        }
    }
    if (is_open) {
        search_session_close(json);
    }
    wal__json_out_close(json, ']');
    wal__json_out_close(json, '}');
}

enum wal_status serve_get_search(struct serve_exchange *exchange, struct wal_error *error)
{
    struct serve_index *index = exchange->server->index;
    struct wal_search_query query = WAL_INIT(wal_search_query);
    struct wal_search_cursor *cursor = NULL;
    uint64_t limit = SEARCH_LIMIT;
    enum wal_status status;

    query.text = serve_exchange_query(exchange, "q");
    query.project = serve_exchange_query(exchange, "project");
    if (!serve_exchange_number(exchange, "limit", 1, SEARCH_MAX, &limit)) {
        return WAL_OK;
    }
    query.session_limit = (uint32_t)limit;
    if (index == NULL) {
        serve_exchange_refuse(exchange, MHD_HTTP_NOT_IMPLEMENTED, "the store has no index");
        return WAL_OK;
    }
    pthread_mutex_lock(&index->lock);
    status = wal_search_find(index->search, &query, &cursor, NULL, error);
    pthread_mutex_unlock(&index->lock);
    if (status == WAL_OK) {
        write_hits(exchange, cursor);
    }
    wal_search_cursor_close(cursor);
    return status;
}
