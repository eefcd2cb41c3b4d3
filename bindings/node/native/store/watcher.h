/*
 * watcher.h - threads of a store that wait for records of any process: one for
 * written and one for durable records, each started by the first that asks.
 *
 * A thread waits in wal_store_wait, with a timeout so that it sees a stop, and
 * calls the function of JavaScript that asked with the newest number; then it
 * sleeps until it is asked again.
 */
#ifndef AGENTWAL_NODE_WATCHER_H
#define AGENTWAL_NODE_WATCHER_H

#include "bindings/node/native/base/call.h"

struct store;
struct watcher;

enum {
    WATCHERS = 2 /* of a store: WAL_DURABLE and WAL_WRITTEN */
};

/* Ends the thread. Any thread; NULL is permitted. */
void watcher_stop(struct watcher *watcher);

/* Frees a watcher that was stopped. NULL is permitted. */
void watcher_destroy(struct watcher *watcher);

#endif
