/*
 * leader.h - the leader's access to a log: append lock and state lock,
 * everything that was published applied, a poisoned log healed (SPEC.md 4.1,
 * 4.2). Of the log, by the committer; of the pack, by the blob store.
 *
 * Invariant: between begin and end this process has applied everything that is published, and no
 * other process writes to the log. Lock order: append lock, then state lock. One thread of a
 * process at a time: the caller's mutex, or the committer's has_leader, ensures that.
 */
#ifndef AGENTWAL_ENGINE_LOG_LEADER_H
#define AGENTWAL_ENGINE_LOG_LEADER_H

#include "engine/log/log.h"

/* The owner of the indexes that follow the log. */
struct wal__leader_client {
    void *ctx;
    void (*lock)(void *ctx); /* acquires the state lock for writing */
    void (*unlock)(void *ctx);
    /* Rebuilds the indexes from the log, where the two differ. */
    enum wal_status (*reload)(void *ctx, struct wal_error *error);
};

/* Acquires the append lock, which serialises the writers of all processes, within the store's lock
 * timeout. One thread of a process at a time: the caller ensures it. WAL_ELOCKED: error->holder
 * holds it; WAL_ELOCKFILE: the file LOCK was replaced. Nothing is held on failure. */
enum wal_status wal__log_lock_append(struct wal__log *log, struct wal_error *error) WAL_MUST_USE;
void wal__log_unlock_append(struct wal__log *log);

/* Leaves the lock to the next leader of this process, which follows at once; releases it when
 * another process waits for it. */
void wal__log_retain_append_lock(struct wal__log *log);
/* Releases a retained lock, if there is one: no leader followed. */
void wal__log_release_retained_lock(struct wal__log *log);

/* Applies what other processes published; rebuilds the indexes where catching up cannot. Also of a
 * reader: with the state lock for writing. */
enum wal_status wal__leader_apply_published(struct wal__log *log,
                                            const struct wal__leader_client *client,
                                            struct wal_error *error) WAL_MUST_USE;

/* What a leader is to do under both locks. */
typedef enum wal_status wal__leader_fn(void *ctx, struct wal_error *error);

/* Acquires both locks and catches up. With allow_heal it heals a poisoned log, otherwise it fails
 * with WAL_EPOISONED. Holds nothing on failure. */
enum wal_status wal__leader_begin(struct wal__log *log, const struct wal__leader_client *client,
                                  bool allow_heal, struct wal_error *error) WAL_MUST_USE;
void wal__leader_end(struct wal__log *log, const struct wal__leader_client *client);

/* Ends it, but leaves the append lock to the next leader of this process, which follows at once,
 * unless another process waits for the lock. */
void wal__leader_end_retaining_lock(struct wal__log *log, const struct wal__leader_client *client);

/*
 * Makes everything before `position` durable, as wal__log_sync; heals the log where that is needed.
 * Without the append lock; of the thread that may lead. WAL_EPOISONED: healing failed, or a process
 * that runs syncs for longer than others wait for it; what was written may be durable or not.
 */
enum wal_status wal__leader_sync(struct wal__log *log, const struct wal__leader_client *client,
                                 uint64_t position, struct wal_error *error) WAL_MUST_USE;

/* Fills *error with a cause, why healing failed, and what follows for a caller whose entries may be
 * in the log: one sentence. Returns WAL_EPOISONED. */
enum wal_status wal__leader_fail_unknown(const struct wal_error *cause,
                                         const struct wal_error *healing, struct wal_error *error);

/* Makes room for a group; removes the index file of the tail segment first. Between begin and
 * end. */
enum wal_status wal__leader_reserve(struct wal__log *log,
                                    const struct wal__log_reservation *reservation,
                                    struct wal_error *error) WAL_MUST_USE;

/* Ends the tail segment (wal__log_rotate). Begins and ends by itself. */
enum wal_status wal__leader_rotate(struct wal__log *log, const struct wal__leader_client *client,
                                   struct wal_error *error) WAL_MUST_USE;

/* Writes a commit mark, which closes the ambiguous window: syncs, appends a COMMIT that records it,
 * syncs again. Does nothing when the end is marked. Begins and ends by itself. With allow_heal it
 * heals a poisoned log. */
enum wal_status wal__leader_write_mark(struct wal__log *log,
                                       const struct wal__leader_client *client, bool allow_heal,
                                       struct wal_error *error) WAL_MUST_USE;

enum {
    WAL__HEAL_ATTEMPTS = 4 /* of one caller: processes may die one after the
                            * other */
};

#endif
