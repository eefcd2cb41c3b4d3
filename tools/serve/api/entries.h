/*
 * entries.h - the entries of a session: parts of a branch, one entry, the tree,
 * the heads (docs/seeing.md, Entries).
 *
 * Threads: any.
 */
#ifndef AGENTWAL_TOOLS_SERVE_API_ENTRIES_H
#define AGENTWAL_TOOLS_SERVE_API_ENTRIES_H

#include "tools/serve/http/exchange.h"

void serve_get_entries(struct serve_exchange *exchange);
void serve_get_entry(struct serve_exchange *exchange);
void serve_get_tree(struct serve_exchange *exchange);
void serve_get_heads(struct serve_exchange *exchange);

#endif
