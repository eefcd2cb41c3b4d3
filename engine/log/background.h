/*
 * background.h - the background thread of a committer: it preallocates
 * segments (SPEC.md 3.5), syncs what no caller waits for (4.2), and each second
 * closes what compactions replaced (3.9).
 *
 * Invariant: no writer waits for this thread, except a rotation that finds
 * preallocation in progress (wal__prealloc_lock).
 */
#ifndef AGENTWAL_ENGINE_LOG_BACKGROUND_H
#define AGENTWAL_ENGINE_LOG_BACKGROUND_H

#include "engine/log/committer.h"

/* Requests what the groups just written make necessary. Of the leader, without
 * the committer's mutex. */
void wal__background_request(struct wal__committer *committer);
/* The thread's function; arg is the committer. Returns when it is stopping. */
void *wal__background_main(void *arg);

#endif
