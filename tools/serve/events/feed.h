/*
 * feed.h - events of the store: one thread follows the log for all clients.
 *
 * A client is a position in the log. One that keeps up gets events that were
 * made once for all; one that lags, or has just come, reads the log, a piece at
 * a time.
 *
 * What was redacted, deleted or replaced is in no event that is sent after the
 * server has seen the record of that. Events that were made before are dropped
 * then, and a client of which a part of one was not sent yet is disconnected:
 * it comes back with the number of the last whole event.
 *
 * Threads: any, but for start and stop.
 */
#ifndef AGENTWAL_TOOLS_SERVE_EVENTS_FEED_H
#define AGENTWAL_TOOLS_SERVE_EVENTS_FEED_H

#include "tools/serve/http/exchange.h"

/* Starts following the log of the server's store. Returns NULL after an
 * error. */
struct serve_feed *serve_feed_start(struct serve_server *server);

/* Ends the answers to all clients; after it none begins. */
void serve_feed_stop(struct serve_feed *feed);

/* Frees the feed, which has no client any more. feed may be null. */
void serve_feed_destroy(struct serve_feed *feed);

/* Answers with the stream of events. */
void serve_get_events(struct serve_exchange *exchange);

#endif
