/*
 * content_guard.h - the guard that keeps content from being dropped between its
 * look-up and the record that names it (SPEC.md 3.9, 4.1).
 *
 * A thread enters before it looks content up or stores it, and leaves once the
 * record is in the log. A compaction of the pack condemns the segments that
 * there are: from then on nobody finds content there in order to name it. Then
 * it waits for the guards that were entered before, and reads which content the
 * log names.
 *
 * Guards of an even and of an odd round have a lock byte each, shared by all
 * that hold one; condemning begins the next round, so that new guards do not
 * prolong the wait. Lock order: after every other lock of a process.
 */
#ifndef AGENTWAL_ENGINE_LOG_CONTENT_GUARD_H
#define AGENTWAL_ENGINE_LOG_CONTENT_GUARD_H

#include "engine/log/control.h"

/* Zeroed: not entered. */
struct wal__content_guard {
    struct wal__control *control;
    uint32_t round;
};

/* Enters; does nothing when it is entered. Never waits for a compaction.
 * WAL_EIO: the byte cannot be locked. Any thread. */
enum wal_status wal__content_guard_enter(struct wal__content_guard *guard,
                                         struct wal__control *control,
                                         struct wal_error *error) WAL_MUST_USE;
/* Leaves; does nothing when it is not entered. Any thread, one at a time. */
void wal__content_guard_leave(struct wal__content_guard *guard);
/* Whether a thread of this process holds any. */
bool wal__content_guard_is_held(struct wal__control *control);

/*
 * Condemns the segments of the pack up to an id, and waits until every guard
 * that was entered before is left, at most 10 s. With the compaction lock.
 * WAL_ELOCKED: a guard is still held, by another process or, when
 * error->holder is this one, by another thread; nothing is condemned then.
 */
enum wal_status wal__content_condemn(struct wal__control *control,
                                     uint64_t last_id,
                                     struct wal_error *error) WAL_MUST_USE;
/* Ends that; every process finds all content again. */
void wal__content_absolve(struct wal__control *control);
/* The highest condemned id; 0: none. Any thread. */
uint64_t wal__content_condemned(const struct wal__control *control);

#endif
