/*
 * session_parts.h - checkpoints of a session and their differences, usage,
 * exports; and contents by their digest (docs/seeing.md).
 *
 * Threads: any.
 */
#ifndef AGENTWAL_TOOLS_SERVE_API_SESSION_PARTS_H
#define AGENTWAL_TOOLS_SERVE_API_SESSION_PARTS_H

#include "tools/serve/http/exchange.h"

void serve_get_checkpoints(struct serve_exchange *exchange);
void serve_get_diff(struct serve_exchange *exchange);
void serve_get_session_usage(struct serve_exchange *exchange);
void serve_get_usage(struct serve_exchange *exchange);
void serve_get_export(struct serve_exchange *exchange);
void serve_get_blob(struct serve_exchange *exchange);

#endif
