/*
 * round.h - groups that one sync makes durable (SPEC.md 4.3): building them,
 * the sync, the answers. Called by who builds, in turn.
 */
#ifndef WAL_LOG_ROUND_H
#define WAL_LOG_ROUND_H

#include "engine/log/commit.h"

/* Builds groups of the operations and answers those that do not wait for a
 * sync; gives the others. */
struct wal__op *wal__round_build(struct wal__committer *committer,
                                 struct wal__op *list);
/* Syncs what these wait for, if there are any, and answers them; gives how
 * many they were. */
uint32_t wal__round_sync(struct wal__committer *committer,
                         struct wal__op *list);

#endif
