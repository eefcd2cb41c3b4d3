/*
 * group.h - building groups from operations (SPEC.md 4.3). Used by the
 * committer alone; one thread at a time.
 */
#ifndef AGENTWAL_ENGINE_COMMIT_GROUP_H
#define AGENTWAL_ENGINE_COMMIT_GROUP_H

#include "engine/commit/commit.h"

/*
 * Takes the lease, catches up, and writes the operations from `first` on as
 * one group, or as several where they do not fit one. Each gets its status
 * and position; none is completed yet, durable ones are not synced yet.
 */
void wal__group_build(struct wal__committer *committer, struct wal__op *first);

/* Writes the mark that closes the ambiguous window, when there is none. */
enum wal_status wal__group_write_mark(struct wal__committer *committer,
                                      struct wal_error *error) WAL_MUST_USE;

#endif
