/*
 * leader.h - a turn of writing to a stream: lease and state lock, everything
 * that was published applied, a poisoned stream healed (SPEC.md 4.1, 4.2).
 *
 * Invariant: between begin and end this process has applied all that is
 * published, and nobody else writes to the stream. One thread of a process at
 * a time: the caller's mutex sees to that.
 */
#ifndef AGENTWAL_ENGINE_COMMIT_LEADER_H
#define AGENTWAL_ENGINE_COMMIT_LEADER_H

#include "engine/log/log.h"

/* Who keeps the indexes of the stream. */
struct wal__leader_client {
    void *ctx;
    void (*lock)(void *ctx); /* the state lock, for writing */
    void (*unlock)(void *ctx);
    /* The indexes and the stream differ: build them again from it. */
    enum wal_status (*reload)(void *ctx, struct wal_error *error);
};

/* Takes lease and state lock, and catches up. With `allow_heal` a poisoned
 * stream is healed, else refused. Nothing is held on failure. */
enum wal_status wal__leader_begin(struct wal__log *log,
                                  const struct wal__leader_client *client,
                                  bool allow_heal,
                                  struct wal_error *error) WAL_MUST_USE;
void wal__leader_end(struct wal__log *log,
                     const struct wal__leader_client *client);

/* Ends it, and leaves the lease to this process's next turn, which follows at
 * once, unless another process waits for it. */
void wal__leader_end_retaining_lock(struct wal__log *log,
                                    const struct wal__leader_client *client);

/* Makes room for a group. The index beside the tail is removed before. */
enum wal_status
wal__leader_reserve(struct wal__log *log,
                    const struct wal__log_reservation *reservation,
                    struct wal_error *error) WAL_MUST_USE;

/* Closes the ambiguous window: sync, a COMMIT that says so, sync. Does nothing
 * when the end is marked. Takes a turn of its own. */
enum wal_status wal__leader_write_mark(struct wal__log *log,
                                       const struct wal__leader_client *client,
                                       struct wal_error *error) WAL_MUST_USE;

#endif
