/*
 * route.h - which function answers which method and path.
 *
 * Threads: any.
 */
#ifndef AGENTWAL_TOOLS_SERVE_ROUTE_H
#define AGENTWAL_TOOLS_SERVE_ROUTE_H

#include "tools/serve/http/exchange.h"

/* Answers a request that passed the checks. */
void serve_route(struct serve_exchange *exchange);

#endif
