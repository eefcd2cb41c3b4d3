/*
 * commit_cycle.h - the leader's commit cycle (SPEC.md 4.3): dequeue what is
 * staged, write it as groups, sync once, complete the operations.
 *
 * Invariant: one leader at a time (committer->has_leader). The caller holds
 * the committer's mutex; a cycle releases it while it writes and syncs.
 */
#ifndef AGENTWAL_ENGINE_LOG_COMMIT_CYCLE_H
#define AGENTWAL_ENGINE_LOG_COMMIT_CYCLE_H

#include "engine/log/committer.h"

/*
 * Leads one cycle for everything that is staged. `expected_ops` more are
 * expected to follow one after the other: the leader waits for them at most as
 * long as a sync takes, and writes them meanwhile in groups, so that one sync
 * covers all. No other thread leads.
 */
void wal__commit_cycle_run(struct wal__committer *committer,
                           uint32_t expected_ops);

/* Ends the leader's role. Of the leader. */
void wal__commit_cycle_end(struct wal__committer *committer);

/* Whether the last sync completed more than two durable operations, whose
 * callers are then expected to return. With or without the mutex. */
bool wal__commit_cycle_is_contended(struct wal__committer *committer);

#endif
