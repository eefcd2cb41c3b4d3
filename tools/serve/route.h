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

/* Writes the methods that the resource has, as the header Allow lists them;
 * without --write those that only read. */
void serve_list_methods(const struct serve_exchange *exchange,
                        char text[SERVE_METHODS_SIZE]);

#endif
