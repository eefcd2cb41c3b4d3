/*
 * group_builder.h - turning operations into groups of the log (SPEC.md 4.3).
 *
 * Called by the leader of a commit cycle only, without the committer's mutex.
 */
#ifndef AGENTWAL_ENGINE_LOG_GROUP_BUILDER_H
#define AGENTWAL_ENGINE_LOG_GROUP_BUILDER_H

#include "engine/log/committer.h"

/*
 * Acquires the append lock, catches up, resolves the operations of the list
 * `first`, and writes them as one group, or as several where they do not fit
 * one. Sets status and position of each; completes none and syncs none.
 */
void wal__group_build(struct wal__committer *committer, struct wal__op *first);

#endif
