/*
 * open_lock.h - the locks of opening a store (SPEC.md 4.1): the open lock, the
 * participant lock, and bounded waits for them. One thread: that which opens or
 * closes the store. Lock order: open lock, then participant lock.
 */
#ifndef AGENTWAL_ENGINE_LOG_OPEN_LOCK_H
#define AGENTWAL_ENGINE_LOG_OPEN_LOCK_H

#include "engine/log/control.h"

/* The state of a bounded wait for these locks. */
struct wal__lock_wait {
    uint64_t deadline;   /* monotonic time at which the wait fails */
    uint32_t holder;     /* process id of the blocking holder, or 0 */
    bool stopped;        /* the holder is stopped */
    uint64_t stopped_ns; /* since when every poll found a stopped holder */
};

/* Begins a wait: 20 times the lock timeout for a holder that runs, which may be
 * recovering; one lock timeout for a stopped one. */
void wal__lock_wait_init(struct wal__lock_wait *lock_wait,
                         const struct wal__control *control);

/* Maps the control page of LOCK to control->file_page. */
enum wal_status wal__control_map_page(struct wal__control *control,
                                      int *err) WAL_MUST_USE;
/* Records device and inode of LOCK, and maps its page when it has one: the page
 * names the blocking holder. control.c */
enum wal_status wal__control_identify(struct wal__control *control,
                                      int *err) WAL_MUST_USE;

/* Acquires the open lock. WAL_ELOCKED. */
enum wal_status wal__open_lock_acquire(struct wal__control *control,
                                       struct wal__lock_wait *lock_wait,
                                       int *err) WAL_MUST_USE;
/* Publishes this process as its holder, once control->file_page is mapped. */
void wal__open_lock_publish_owner(struct wal__control *control);
/* Releases the open lock, if it is held. */
enum wal_status wal__open_lock_release(struct wal__control *control,
                                       int *err) WAL_MUST_USE;

/*
 * Acquires the participant lock, with the open lock: another holder then either
 * participates or is closing as the last one. Sets control->is_first_opener
 * when the lock could be made exclusive. Otherwise it is shared, and the failed
 * upgrade proves that other processes participate now; two separate checks
 * would not, since all could leave in between.
 */
enum wal_status
wal__participant_lock_acquire_shared(struct wal__control *control,
                                     struct wal__lock_wait *lock_wait,
                                     int *err) WAL_MUST_USE;
/* Makes the participant lock exclusive, and publishes its holder. WAL_ELOCKED:
 * other processes share it. */
enum wal_status wal__participant_lock_upgrade(struct wal__control *control,
                                              int *err) WAL_MUST_USE;
/* Shares the participant lock, or with WAL__IO_LOCK_NONE releases it. */
enum wal_status wal__participant_lock_downgrade(struct wal__control *control,
                                                enum wal__io_lock mode,
                                                int *err) WAL_MUST_USE;

/* Fills *error for a wait that failed; returns WAL_ELOCKED. */
enum wal_status wal__lock_wait_failed(const struct wal__control *control,
                                      const struct wal__lock_wait *lock_wait,
                                      struct wal_error *error);

#endif
