/*
 * search.h - words in all sessions (docs/seeing.md). Without libagentwal-search
 * the resource answers 501.
 *
 * Threads: any; searches take turns.
 */
#ifndef AGENTWAL_TOOLS_SERVE_API_SEARCH_H
#define AGENTWAL_TOOLS_SERVE_API_SEARCH_H

#include "tools/serve/http/exchange.h"

/* Opens the search of the server's store; NULL: there is none. */
struct serve_index *serve_index_open(struct serve_server *server);
void serve_index_close(struct serve_index *index);

void serve_get_search(struct serve_exchange *exchange);

#endif
