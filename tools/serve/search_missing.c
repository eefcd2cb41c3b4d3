/*
 * search_missing.c - search of a build without SQLite (api.h).
 */
#include "tools/serve/api.h"

struct serve_index *serve_index_open(struct serve_server *server)
{
    (void)server;
    return NULL;
}

void serve_index_close(struct serve_index *index)
{
    (void)index;
}

enum wal_status serve_get_search(struct serve_exchange *exchange, struct wal_error *error)
{
    (void)error;
    serve_exchange_refuse(exchange, MHD_HTTP_NOT_IMPLEMENTED,
                          "this agentwal was built without search");
    return WAL_OK;
}
