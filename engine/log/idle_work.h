/*
 * idle_work.h - what the committer thread does when nothing is staged: it
 * releases the append lock that the process retains (SPEC.md 4.3), then writes
 * a commit mark (3.3). With the committer's mutex.
 */
#ifndef AGENTWAL_ENGINE_LOG_IDLE_WORK_H
#define AGENTWAL_ENGINE_LOG_IDLE_WORK_H

#include "engine/log/committer.h"

/* Returns the monotonic time at which the next of it is due; UINT64_MAX: there
 * is none. */
uint64_t wal__idle_work_due_ns(const struct wal__committer *committer);

/* Whether it is due before the committer thread wakes up. */
bool wal__idle_work_is_overslept(const struct wal__committer *committer);

#endif
