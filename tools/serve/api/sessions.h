/*
 * sessions.h - the resources of the store, of lists of sessions, and of a
 * session (docs/seeing.md).
 *
 * Threads: any.
 */
#ifndef AGENTWAL_TOOLS_SERVE_API_SESSIONS_H
#define AGENTWAL_TOOLS_SERVE_API_SESSIONS_H

#include "tools/serve/http/exchange.h"

void serve_get_info(struct serve_exchange *exchange);
void serve_get_projects(struct serve_exchange *exchange);
void serve_get_sessions(struct serve_exchange *exchange);
void serve_get_session(struct serve_exchange *exchange);

/* Opens the session that a segment of the path names. Returns NULL after the
 * answer. */
struct wal_session *serve_open_session(struct serve_exchange *exchange,
                                       unsigned segment);

/* Answers with an object of the session that the path names, whose members
 * `write` adds, or with its error. */
typedef enum wal_status serve_session_fn(struct serve_exchange *exchange,
                                         struct wal_session *session,
                                         struct wal_error *error);
void serve_answer_session(struct serve_exchange *exchange,
                          serve_session_fn *write);

#endif
