/*
 * watcher.h - threads of a store that wait for records of any process: one for
 * written and one for durable records, and one for those that are stored in the
 * remote; each is started by the first that asks.
 *
 * A thread waits in wal_store_wait, with a timeout so that it sees a stop, and
 * calls the function of JavaScript that asked with the newest number; then it
 * sleeps until it is asked again.
 */
#ifndef AGENTWAL_NODE_WATCHER_H
#define AGENTWAL_NODE_WATCHER_H

#include <agentwal.h>

#include "bindings/node/native/base/call.h"

struct store;
struct watcher;

enum {
    WATCHERS = WAL_CLUSTER + 1 /* of a store, by durability; no WAL_QUEUED */
};

/* Ends the thread. Any thread; NULL is permitted. */
void watcher_stop(struct watcher *watcher);

/* Frees a watcher that was stopped. NULL is permitted. */
void watcher_destroy(struct watcher *watcher);

#endif
