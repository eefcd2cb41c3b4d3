/*
 * page.h - the page that shows sessions (docs/seeing.md).
 *
 * Threads: any.
 */
#ifndef AGENTWAL_TOOLS_SERVE_PAGE_H
#define AGENTWAL_TOOLS_SERVE_PAGE_H

#include "tools/serve/http/exchange.h"

void serve_get_page(struct serve_exchange *exchange);

#endif
