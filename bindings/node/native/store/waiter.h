/*
 * waiter.h - the thread of a store that waits for completed submissions and
 * rings the event loop.
 *
 * It polls the library's completion descriptor and a stop descriptor; on a ring
 * it calls a threadsafe function with a queue of one, without waiting, so that
 * rings coalesce. That calls submissions_settle in the thread of JavaScript.
 */
#ifndef AGENTWAL_NODE_WAITER_H
#define AGENTWAL_NODE_WAITER_H

#include "bindings/node/native/base/call.h"

struct store;
struct waiter;

/* Starts the waiter of a store if it has none. False: the call failed. */
bool waiter_start(struct call *call, struct store *store);

/* Whether the event loop is kept alive. */
void waiter_hold(struct waiter *waiter, bool is_held);

/* Ends the thread. Any thread; NULL is permitted. */
void waiter_stop(struct waiter *waiter);

/* Frees a waiter that was stopped. NULL is permitted. */
void waiter_destroy(struct waiter *waiter);

#endif
