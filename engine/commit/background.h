/*
 * background.h - the thread that helps the writers of a log.
 *
 * Invariant: nothing that it does is waited for but by a rotation that finds a
 * spare being made. ask: who builds; main: the thread.
 */
#ifndef AGENTWAL_ENGINE_COMMIT_BACKGROUND_H
#define AGENTWAL_ENGINE_COMMIT_BACKGROUND_H

#include "engine/commit/commit.h"

/* Asks for what is wanted after a group. */
void wal__background_request(struct wal__committer *committer);
/* arg is the committer; ends when it is stopping. */
void *wal__background_main(void *arg);

#endif
