/*
 * locks.h - the lock bytes of LOCK, which all processes of a store share (SPEC.md 4.1): the locks
 * of a log, the compaction lock, guards of content, claims of sessions, and the shipping of the
 * log. locks.c explains them.
 *
 * A lock byte belongs to the open file of the process, and the kernel releases it with the process.
 * No other thread of this process may hold the same byte: the caller's mutex ensures that. Any
 * thread.
 *
 * Lock order: in-process mutex, then lock byte; the append lock before the sync lock and the
 * preallocation lock; never the append locks of both logs; guards of content after every other
 * lock.
 */
#ifndef AGENTWAL_ENGINE_LOG_LOCKS_H
#define AGENTWAL_ENGINE_LOG_LOCKS_H

#include "engine/log/control.h"

/*
 * The locks of a log: append lock, sync lock and preallocation lock, each WAL__LOCK_... + log_id,
 * waited for by several processes. `log_id` names the wait words of the log.
 */

/* Acquires a lock; waits at most the store's lock timeout, or 20 times as long while the holder
 * runs. Woken by the holder, and at least every 5 ms. WAL_ELOCKED: error->holder holds it. */
enum wal_status wal__control_lock(struct wal__control *control, uint64_t byte, uint32_t log_id,
                                  struct wal_error *error) WAL_MUST_USE;
/* As wal__control_lock, unless the durable end reaches `position` first: WAL_END, and nothing is
 * held. */
enum wal_status wal__control_lock_unless_durable(struct wal__control *control, uint64_t byte,
                                                 uint32_t log_id, uint64_t position,
                                                 struct wal_error *error) WAL_MUST_USE;
/* Tries once. WAL_ELOCKED: another process holds it. */
enum wal_status wal__control_try_lock(struct wal__control *control, uint64_t byte, uint32_t log_id,
                                      int *err) WAL_MUST_USE;
/*
 * Takes the sync lock away from a holder that does not run: poisons the log and begins a round with
 * another lock byte. False when the holder runs. The former holder may continue at any time: it can
 * raise the durable end by what its sync covered, and poison; both are harmless (SPEC.md 4.2). Any
 * thread, after waiting for the lock.
 */
bool wal__control_take_over_sync_lock(struct wal__control *control, uint32_t log_id);
/* Returns whether a process waits for a lock that this one holds. */
bool wal__control_has_waiters(struct wal__control *control, uint64_t byte, uint32_t log_id);
/* Releases the lock and wakes a waiter; of the sync lock all, since one sync serves most of
 * them. */
void wal__control_unlock(struct wal__control *control, uint64_t byte, uint32_t log_id);

/* --- the compaction lock ------------------------------------------------ */

/* Tries once to acquire the compaction lock. WAL_ELOCKED: error->holder is the process that
 * compacts the store, or 0 when unknown. No other thread of this process may hold it: the caller's
 * mutex ensures that. */
enum wal_status wal__compact_lock_acquire(struct wal__control *control,
                                          struct wal_error *error) WAL_MUST_USE;
void wal__compact_lock_release(struct wal__control *control);
/* Fills *error for the process that compacts, or 0; returns WAL_ELOCKED. */
enum wal_status wal__compact_lock_refused(const struct wal__control *control, uint32_t holder,
                                          struct wal_error *error);

/* --- guards of content -------------------------------------------------- */

/*
 * The guard keeps content from being dropped between its look-up and the record that names it
 * (SPEC.md 3.9, 4.1). A thread enters before it looks content up or stores it, and leaves once the
 * record is in the log. A compaction of the pack condemns the segments that there are: from then on
 * nobody finds content there in order to name it. Then it waits for the guards that were entered
 * before, and reads which content the log names.
 *
 * Guards of an even and of an odd round have a lock byte each, shared by all that hold one;
 * condemning begins the next round, so that new guards do not prolong the wait.
 */

/* Zeroed: not entered. */
struct wal__content_guard {
    struct wal__control *control;
    uint32_t round;
};

/* Enters; does nothing when it is entered. Never waits for a compaction. WAL_EIO: the byte cannot
 * be locked. Any thread. */
enum wal_status wal__content_guard_enter(struct wal__content_guard *guard,
                                         struct wal__control *control,
                                         struct wal_error *error) WAL_MUST_USE;
/* Leaves; does nothing when it is not entered. Any thread, one at a time. */
void wal__content_guard_leave(struct wal__content_guard *guard);
/* Returns whether a thread of this process holds any. */
bool wal__content_guard_is_held(struct wal__control *control);

/*
 * Condemns the segments of the pack up to an id, and waits until every guard that was entered
 * before is left, at most 10 s. With the compaction lock. WAL_ELOCKED: a guard is still held, by
 * another process or, when error->holder is this one, by another thread; nothing is condemned then.
 */
enum wal_status wal__content_condemn(struct wal__control *control, uint64_t last_id,
                                     struct wal_error *error) WAL_MUST_USE;
/* Ends that; every process finds all content again. */
void wal__content_absolve(struct wal__control *control);
/* The highest condemned id; 0: none. Any thread. */
uint64_t wal__content_condemned(const struct wal__control *control);

/* --- claims of sessions ------------------------------------------------- */

/*
 * Session claims. WAL_ECLAIMED: another open file claims the session; error->holder is its process,
 * or 0 when unknown. WAL_ELIMIT: the page has no free slot. Pass *slot to
 * wal__control_release_claim.
 */
enum wal_status wal__control_claim(struct wal__control *control, uint32_t session, uint32_t *slot,
                                   struct wal_error *error) WAL_MUST_USE;
void wal__control_release_claim(struct wal__control *control, uint32_t session, uint32_t slot);
/* A claim that an open file holds. */
struct wal__claim_holder {
    uint32_t session;
    uint32_t process_id; /* 0: unknown */
    bool is_own;         /* the process is this one */
};

/* Lists the claims whose byte is locked, each session once, in no order. Opens LOCK for reading,
 * also for a reader that holds no lock. A claim that begins or ends meanwhile may be listed or not.
 * WAL_ELOCKFILE. */
enum wal_status wal__control_list_claims(const struct wal__control *control,
                                         struct wal__claim_holder out[WAL__CLAIMS], uint32_t *count,
                                         struct wal_error *error) WAL_MUST_USE;
/* Fills the error of a refused claim; returns WAL_ECLAIMED. */
enum wal_status wal__control_claim_refused(int32_t holder, struct wal_error *error);

/* --- shipping ----------------------------------------------------------- */

/*
 * How far the log is stored in another place too: one process ships it, and reports that to all
 * that wait. The lock byte alone says whether a process ships; everything up to the number that was
 * reported last is stored there.
 */

/* What was reported, and the futex word that changes with the next report. */
struct wal__shipping_state {
    uint64_t sequence;      /* everything up to it is stored */
    uint32_t failures;      /* raised by each report of a failure */
    enum wal_status status; /* of the last failure */
    const uint32_t *word;
    uint32_t expected;
};

/* Becomes the process that ships: nothing is known to be stored. One thread of the process at a
 * time. WAL_ELOCKED: another process ships. */
enum wal_status wal__shipping_begin(struct wal__control *control,
                                    struct wal_error *error) WAL_MUST_USE;
void wal__shipping_end(struct wal__control *control);

/* The process that ships reports: status is WAL_OK, or why no more was stored. Wakes those that
 * wait. */
void wal__shipping_report(struct wal__control *control, uint64_t sequence, enum wal_status status);

/* Reads it, and announces that this thread may sleep on state->word. */
void wal__shipping_read(struct wal__control *control, struct wal__shipping_state *state);

/* Returns whether another process, or another open of LOCK, ships. */
enum wal_status wal__shipping_test(struct wal__control *control, bool *ships,
                                   struct wal_error *error) WAL_MUST_USE;

#endif
