/*
 * api.h - the resources of the server (docs/seeing.md): their handlers, and what these have open
 * while it runs.
 *
 * Threads: any, but for the start and stop of the events.
 */
#ifndef AGENTWAL_TOOLS_SERVE_API_H
#define AGENTWAL_TOOLS_SERVE_API_H

#include "tools/serve/http.h"

/* Answers a request. A failure that it returns is the answer, in place of what was written.
 * exchange->session is that of the route, and closed when the handler returns; one that needs it
 * longer takes it, and sets it to NULL. */
typedef enum wal_status serve_handler(struct serve_exchange *exchange, struct wal_error *error);

/* Sets exchange->session to the one that a segment of the path names. For handlers that check the
 * rest of the request first. */
enum wal_status serve_open_session(struct serve_exchange *exchange, unsigned segment,
                                   struct wal_error *error);

/* sessions.c */
serve_handler serve_get_info;
serve_handler serve_get_projects;
serve_handler serve_get_sessions;
serve_handler serve_get_session;
serve_handler serve_get_checkpoints;
serve_handler serve_get_diff;
serve_handler serve_get_session_usage;
serve_handler serve_get_usage;
serve_handler serve_get_export;
serve_handler serve_get_blob;

/* entries.c */
serve_handler serve_get_entries;
serve_handler serve_get_entry;
serve_handler serve_get_tree;
serve_handler serve_get_heads;

/* The paths of OpenCode's server that concern sessions. */
serve_handler serve_opencode_list;
serve_handler serve_opencode_create;
serve_handler serve_opencode_get;
serve_handler serve_opencode_change;
serve_handler serve_opencode_delete;
serve_handler serve_opencode_children;
serve_handler serve_opencode_messages;
serve_handler serve_opencode_append;
serve_handler serve_opencode_projects;
serve_handler serve_opencode_project;

/* Answers 501, which says that only sessions are kept here. */
serve_handler serve_opencode_other;

/* Whether the path is one of OpenCode's server. */
bool serve_opencode_has(const struct serve_exchange *exchange);

/* Words in all sessions; searches take turns. Opens the search of the server's
 * store; NULL: there is none. Without libagentwal-search the resource answers
 * 501. */
struct serve_index *serve_index_open(struct serve_server *server);
void serve_index_close(struct serve_index *index);
/* Indexes what the store has, before a browser asks. index may be null. */
void serve_index_prepare(struct serve_index *index);
serve_handler serve_get_search;

/* What serve_get_usage has read; prepare reads it before a browser asks. totals may be null. */
struct serve_totals *serve_totals_open(void);
void serve_totals_close(struct serve_totals *totals);
void serve_totals_prepare(struct serve_server *server);

/* Starts following the log of the server's store. Returns NULL after an error. */
struct serve_feed *serve_feed_start(struct serve_server *server);

/* Ends the answers to all clients; after it none begins. */
void serve_feed_stop(struct serve_feed *feed);

/* Frees the feed, which has no client any more. feed may be null. */
void serve_feed_destroy(struct serve_feed *feed);

/* Answers with the stream of events. */
serve_handler serve_get_events;

#endif
