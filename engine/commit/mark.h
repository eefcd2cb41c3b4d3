/*
 * mark.h - when a commit mark is due (SPEC.md 3.3). With the committer's mutex.
 */
#ifndef AGENTWAL_ENGINE_COMMIT_MARK_H
#define AGENTWAL_ENGINE_COMMIT_MARK_H

#include "engine/commit/committer.h"

/* Returns the monotonic time at which the mark of what was written last is due.
 */
uint64_t wal__mark_due_ns(const struct wal__committer *committer);

/* Whether a mark is due before the committer thread wakes up. */
bool wal__mark_is_overslept(const struct wal__committer *committer);

#endif
