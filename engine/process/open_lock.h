/*
 * open_lock.h - coming in (SPEC.md 4.1): the door, the member lock behind
 * it, and how long to wait for who has them. Of one thread: who opens or closes
 * the store.
 */
#ifndef AGENTWAL_ENGINE_PROCESS_OPEN_LOCK_H
#define AGENTWAL_ENGINE_PROCESS_OPEN_LOCK_H

#include "engine/process/control.h"

/* Somebody who comes in. */
struct wal__lock_wait {
    uint64_t deadline;   /* until when who is in the way is waited for */
    uint32_t holder;     /* process id of that one, or 0 */
    bool stopped;        /* it is stopped */
    uint64_t stopped_ns; /* since when who was in the way was, at every look */
};

/* The time for waiting begins: 20 times the lock timeout for a process that
 * runs, which may be recovering, once the lock timeout for one that is
 * stopped. */
void wal__lock_wait_init(struct wal__lock_wait *lock_wait,
                         const struct wal__control *control);

/* Notes which file it is, and maps its page when it has one: who is in the way
 * has its name there. control.c */
enum wal_status wal__control_identify(struct wal__control *control,
                                      int *err) WAL_MUST_USE;

/* Takes the door. WAL_ELOCKED. */
enum wal_status wal__open_lock_acquire(struct wal__control *control,
                                       struct wal__lock_wait *lock_wait,
                                       int *err) WAL_MUST_USE;
/* Says who holds it, once control->shown is there. */
void wal__open_lock_publish_owner(struct wal__control *control);
/* Lets others in; does nothing when the door is not held. */
enum wal_status wal__open_lock_release(struct wal__control *control,
                                       int *err) WAL_MUST_USE;

/*
 * Inside the door, so that whoever else holds the member lock takes part, or
 * leaves as the last one. control->alone: the member lock is held exclusively.
 * Else it is shared; that it cannot be made exclusive says that others take
 * part now: between two looks all may have gone, and left a page that nobody
 * answers for.
 */
enum wal_status
wal__participant_lock_acquire_shared(struct wal__control *control,
                                     struct wal__lock_wait *lock_wait,
                                     int *err) WAL_MUST_USE;
/* Makes the member lock exclusive, and says whose it is. WAL_ELOCKED: others
 * share it. */
enum wal_status wal__participant_lock_upgrade(struct wal__control *control,
                                              int *err) WAL_MUST_USE;
/* Shares the member lock, or with WAL__IO_LOCK_NONE lets go of it. */
enum wal_status wal__participant_lock_downgrade(struct wal__control *control,
                                                enum wal__io_lock mode,
                                                int *err) WAL_MUST_USE;

/* What a lock_wait that ended with WAL_ELOCKED says. */
enum wal_status wal__lock_wait_failed(const struct wal__control *control,
                                      const struct wal__lock_wait *lock_wait,
                                      struct wal_error *error);

#endif
