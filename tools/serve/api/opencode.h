/*
 * opencode.h - the paths of OpenCode's server that concern sessions
 * (docs/seeing.md, Paths of OpenCode).
 *
 * Threads: any.
 */
#ifndef AGENTWAL_TOOLS_SERVE_API_OPENCODE_H
#define AGENTWAL_TOOLS_SERVE_API_OPENCODE_H

#include "tools/serve/http/exchange.h"

void serve_opencode_list(struct serve_exchange *exchange);
void serve_opencode_create(struct serve_exchange *exchange);
void serve_opencode_get(struct serve_exchange *exchange);
void serve_opencode_change(struct serve_exchange *exchange);
void serve_opencode_delete(struct serve_exchange *exchange);
void serve_opencode_children(struct serve_exchange *exchange);
void serve_opencode_messages(struct serve_exchange *exchange);
void serve_opencode_append(struct serve_exchange *exchange);
void serve_opencode_projects(struct serve_exchange *exchange);
void serve_opencode_project(struct serve_exchange *exchange);

/* Answers 501, which says that only sessions are kept here. */
void serve_opencode_other(struct serve_exchange *exchange);

/* Whether the path is one of OpenCode's server. */
bool serve_opencode_has(const struct serve_exchange *exchange);

enum {
    SERVE_OPENCODE_ID_SIZE = 31 /* bytes with the NUL */
};

/* Makes an id of OpenCode's form: "ses_" or "msg_" and 26 characters. */
void serve_opencode_id(char id[SERVE_OPENCODE_ID_SIZE], const char *prefix);

#endif
