/*
 * commit_cycle.h - groups that one sync makes durable (SPEC.md 4.3): building
 * them, the sync, the answers. Called by who builds, in turn.
 */
#ifndef AGENTWAL_ENGINE_COMMIT_COMMIT_CYCLE_H
#define AGENTWAL_ENGINE_COMMIT_COMMIT_CYCLE_H

#include "engine/commit/commit.h"

/* Builds groups of the operations and answers those that do not wait for a
 * sync; gives the others. */
struct wal__op *wal__commit_cycle_build(struct wal__committer *committer,
                                        struct wal__op *list);
/* Syncs what these wait for, if there are any, and answers them; gives how
 * many they were. */
uint32_t wal__commit_cycle_sync(struct wal__committer *committer,
                                struct wal__op *list);

#endif
