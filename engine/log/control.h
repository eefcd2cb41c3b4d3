/*
 * control.h - the control page: the first page of the file LOCK, mapped by all processes of a store
 * (SPEC.md 4.1). Locks are bytes of the same file (locks.h).
 *
 * Invariant: the page is valid only while a process holds the participant lock, and the page has
 * this boot's id, and the device and inode of LOCK.
 *
 * Memory order: an access is seq_cst unless it says otherwise. The comment of a field, after
 * "order:", says what its store has to follow and its load has to precede, so that the page is
 * right on a processor that reorders (arm64). What is changed only under a lock byte is ordered by
 * the kernel's lock, and what is only reported needs no order.
 *
 * Threads: open, finish_open and close by one; the rest by any.
 */
#ifndef AGENTWAL_ENGINE_LOG_CONTROL_H
#define AGENTWAL_ENGINE_LOG_CONTROL_H

#include <pthread.h>
#include <stdatomic.h>

#include "engine/base/io.h"

enum { WAL__CONTROL_SIZE = 4096, WAL__LOG_COUNT = 2, WAL__CLAIMS = 128 };

/* What a process can wait for: a rising end of a log. */
enum wal__log_event {
    WAL__LOG_EVENT_WRITTEN = 0,
    WAL__LOG_EVENT_DURABLE = 1,
    WAL__LOG_EVENT_COUNT = 2
};

/* The wait queues of a log: one per lock byte. */
enum wal__wait_queue {
    WAL__WAIT_APPEND = 0,
    WAL__WAIT_SYNC = 1,
    WAL__WAIT_PREALLOC = 2,
    WAL__WAIT_COUNT = 3
};

/* Where the waiters for one lock sleep: woken when the lock is released, or is no longer needed. */
struct wal__wait_word {
    /* A futex. Order: raised after the lock is released; loaded before the lock is tried. */
    _Atomic uint32_t word;
    /* Order: raised before the lock is tried, loaded after it is released, both seq_cst. */
    _Atomic uint32_t waiters;
};

/* Why a log is poisoned: a kind and its detail. */
enum wal__poison_kind {
    WAL__POISON_NONE = 0,
    WAL__POISON_UNKNOWN = 1, /* the page of an earlier process is void */
    WAL__POISON_WRITE = 2,   /* a write failed; detail: errno */
    WAL__POISON_SYNC = 3,    /* a sync failed; detail: errno */
    WAL__POISON_DEATH = 4,   /* a process died while it synced; its id */
    WAL__POISON_STOPPED = 5  /* a process did not run while it synced; its id,
                              * or 0 */
};

/* The page's part for one log. Ends are positions, and only rise while the page is in use. */
struct wal__control_log {
    /* End of the last published group; it also names the newest segment. Order: stored after the
     * bytes before it, which are read after its load; stored before an eventcount is loaded. */
    _Atomic uint64_t written;
    /* Everything before it is synced. Order: raised after the sync. */
    _Atomic uint64_t durable;
    /* Of a running sync; 0: none. Order: set before the sync, cleared after durable or poison. */
    _Atomic uint64_t syncing_pid;
    _Atomic uint64_t closed_segment_id; /* it takes no more groups; order: append lock */
    /* A tail that has an index file. Order: stored after the file has its name. */
    _Atomic uint64_t indexed_tail_id;
    _Atomic uint64_t epoch;               /* of the last process that joined; order: none */
    _Atomic uint64_t last_appender_epoch; /* of the last writer; order: append lock */
    /* kind << 32 | detail; 0: not poisoned. Order: set before syncing_pid is cleared. */
    _Atomic uint64_t poison;
    /* Takeovers of the sync lock. Order: loaded again after the byte of the round is locked. */
    _Atomic uint32_t sync_round;
    _Atomic uint32_t append_holder;    /* process id, or 0; reported */
    _Atomic uint64_t holder_start;     /* start time of append_holder; reported */
    _Atomic uint32_t rotation_waiting; /* for the preallocation lock; a hint */
    /* Of log 0: recovery is done. Order: cleared before the ends are reset, set after all of the
     * page is valid; a follower loads it after the ends. */
    _Atomic uint32_t is_recovered;
    _Atomic uint32_t prealloc_holder; /* process id, or 0; reported */
    _Atomic uint32_t sync_holder;     /* process id, or 0; reported */
    /* Of a running sync of OPEN; 0: none. Order: as syncing_pid. */
    _Atomic uint32_t open_syncing_pid;
    /* Raised when compaction replaced segments. Order: after the renames. A reader that sees it
     * late reads the segments that it has open, which are right, and looks again under its lock. */
    _Atomic uint32_t rewrites;
    /* Renames by compaction that were not synced: one is under way, or was cut short in this boot,
     * or its sync failed. Order: raised before the rename, lowered after the sync. */
    _Atomic uint32_t unsynced_renames;
    uint32_t unused;
    struct wal__wait_word wait_words[WAL__WAIT_COUNT];
};

/* The holder of a session claim. Diagnostic only; the lock byte is authoritative. */
struct wal__control_claim {
    /* Of the process; 0: the slot is free. Order: taken before session_and_pid is set, and freed
     * after it is cleared. */
    _Atomic uint64_t start;
    _Atomic uint64_t session_and_pid; /* session number << 32 | process id; order: see start */
};

/* The holder of the open lock, of the exclusive participant lock, or of the compaction lock.
 * Diagnostic only. */
struct wal__lock_owner {
    _Atomic uint64_t start;   /* of the process; order: stored before its id, loaded after it */
    _Atomic uint32_t process; /* its id; 0: none; order: see start */
    uint32_t reserved;
};

/* How far the log is shipped (wal__shipping_report). */
struct wal__control_shipping {
    /* Everything up to it is stored elsewhere. Order: stored before `word` is loaded. */
    _Atomic uint64_t sequence;
    _Atomic uint32_t failures; /* raised by each failure to store more; order: after status */
    _Atomic int32_t status;    /* of the last failure; order: before failures */
    /* Eventcount: odd while a thread sleeps. Order: made odd before the others are loaded. */
    _Atomic uint32_t word;
    uint32_t unused;
};

struct wal__control_page {
    _Atomic uint64_t magic; /* order: stored after, and loaded before, the identity */
    uint32_t version;
    uint32_t reserved;
    uint8_t boot_id[16];
    uint64_t device;
    uint64_t inode;
    /* Of the ids below; 0: processes of several namespaces use the page. Order: open lock. */
    _Atomic uint64_t process_namespace;
    uint8_t rest[512 - 56]; /* the rest of a sector that is constant while in use */
    struct wal__control_log logs[WAL__LOG_COUNT];
    struct wal__control_claim claims[WAL__CLAIMS];
    /* Futex words, odd while a thread sleeps on them. A reset does not clear them: readers keep the
     * page mapped and sleep until writers return. Order: made odd before the ends are loaded,
     * loaded after an end is stored, both seq_cst, or a wake is lost. */
    _Atomic uint32_t eventcounts[WAL__LOG_COUNT][WAL__LOG_EVENT_COUNT];
    /* Valid also while the page is not. */
    struct wal__lock_owner open_lock_owner;
    struct wal__lock_owner exclusive_owner;
    struct wal__lock_owner compact_owner;
    /* Segments of the pack up to this id are condemned (wal__content_condemn); 0: none. The round
     * rises with each compaction. Order: the id is stored before the round; a guard loads the round
     * again after it has locked the byte of it, and the id after that. */
    _Atomic uint64_t condemned_id;
    _Atomic uint32_t content_round;
    /* 1: a wal__control_sync_directory failed in this boot. Order: none, it is never cleared. */
    _Atomic uint32_t has_lost_names;
    struct wal__control_shipping shipping;
};

enum wal__lock_byte {
    WAL__LOCK_PARTICIPANT = 4096, /* shared by every process */
    WAL__LOCK_CATALOGUE = 4097,   /* writing the catalogue */
    WAL__LOCK_OPEN = 4098,        /* opening the store */
    WAL__LOCK_REWIND = 4099,      /* rewinding files */
    WAL__LOCK_COMPACT = 4100,     /* compacting */
    WAL__LOCK_SHIPPING = 4101,    /* shipping the log */
    WAL__LOCK_CONTENT = 4102,     /* + round & 1: about to name content */
    WAL__LOCK_APPEND = 4104,      /* + log_id: appending */
    WAL__LOCK_INDEX = 4106,       /* + log_id: writing the index of a segment */
    WAL__LOCK_SYNC = 4112,        /* + log_id: syncing, in round 0 */
    WAL__LOCK_PREALLOC = 4120     /* + log_id: preallocating */
};

/* The sync lock is a byte for each round: a takeover begins the next. */
enum {
    WAL__LOCK_SYNC_STRIDE = 1024,
    WAL__SYNC_ROUNDS = 1 << 20 /* after them the bytes repeat */
};

/* + session number: claiming it. */
#define WAL__LOCK_CLAIM (UINT64_C(1) << 32)

struct wal__control {
    const struct wal__env *env;
    struct wal__file *file;
    struct wal__control_page *page;
    /* The mapped page of LOCK: `page`, or used for lock owners only; NULL: LOCK has none yet. */
    struct wal__control_page *file_page;
    struct wal__control_page private_page; /* without live processes */
    char path[WAL__PATH_MAX];
    uint64_t device; /* of LOCK, when it was opened */
    uint64_t inode;
    uint32_t process_id;
    uint64_t process_start_time;
    uint64_t process_namespace;
    /* No other process was live when this one opened: it recovers, until
     * wal__control_finish_open. */
    bool is_first_opener;
    /* No valid page: LOCK may be new while processes lock its predecessor. */
    bool lock_file_replaced;
    /* The round of the sync lock that this process holds; with the log's sync_mutex. */
    uint32_t sync_round[WAL__LOG_COUNT];
    /* The highest written ends that a reader has followed. */
    _Atomic uint64_t followed[WAL__LOG_COUNT];
    bool holds_open_lock;
    bool is_exclusive;           /* it holds the participant lock exclusively */
    _Atomic uint64_t checked_ns; /* when LOCK was last checked */
    pthread_mutex_t guard_mutex; /* of guards */
    uint32_t guards[2];          /* that this process holds, by round */
};

/*
 * Opens LOCK and acquires the participant lock. control->is_first_opener: the page was reset, and
 * the caller recovers, then calls wal__control_finish_open; otherwise the page is live. A reset
 * keeps the durable end of each log, and poison when what is beyond it may be in the page cache
 * only; recovery clears both. A read-only opener that finds no live process, or cannot use LOCK,
 * gets a private page, with the durable ends that are known; UINT64_MAX: the former boot left
 * nothing to sync. WAL_ELOCKED: error->holder blocks the open for too long, or is stopped; 0: it is
 * unknown.
 */
enum wal_status wal__control_open(struct wal__control *control, const struct wal__env *env,
                                  struct wal_error *error) WAL_MUST_USE;

/*
 * Writes to LOCK, where it has no page, the page of a boot that has ended: for a store whose files
 * are all durable, so that the first opener need not doubt what is beyond the last COMMIT. No
 * process has the store open.
 */
enum wal_status wal__control_write_former(const struct wal__io *io, struct wal__file *file,
                                          int *sys_errno) WAL_MUST_USE;

/* Recovery is done: other processes may join. A reader releases its locks. */
enum wal_status wal__control_finish_open(struct wal__control *control,
                                         struct wal_error *error) WAL_MUST_USE;
void wal__control_close(struct wal__control *control);

/* Poisons a log, unless it is poisoned: the first cause remains until the log is healed. */
void wal__control_poison(struct wal__control_log *shared, enum wal__poison_kind kind,
                         uint32_t detail);

/*
 * Syncs a directory of the store. When that fails, the page says so as long as this boot lasts:
 * what was removed from the directory may be back after a loss of power, whatever is synced later.
 * control: NULL: no page says so.
 */
enum wal_status wal__control_sync_directory(const struct wal__control *control,
                                            const struct wal__io *io, const char *path,
                                            int *sys_errno) WAL_MUST_USE;

/* Tries once to lock, share or unlock any byte. WAL_ELOCKED: another process holds it. */
enum wal_status wal__control_set_lock(struct wal__control *control, uint64_t byte,
                                      enum wal__io_lock mode, int *err) WAL_MUST_USE;

/* As the calls of io, of a process that the page names. In another namespace an id is of nobody, or
 * of another process: the start is unknown then, and the process not stopped. */
uint64_t wal__control_start_time(const struct wal__control *control, uint32_t process);
bool wal__control_is_stopped(const struct wal__control *control, uint32_t process);

/* Publishes this process as the holder. */
void wal__lock_owner_publish(const struct wal__control *control, struct wal__lock_owner *owner);
/* Returns the process id of a live holder, or 0. */
uint32_t wal__lock_owner_find(const struct wal__control *control, struct wal__lock_owner *owner);

/* Tries to make the participant lock exclusive. True: this process is the only one, and holds the
 * lock until wal__control_finish_open or close. */
bool wal__control_try_exclusive(struct wal__control *control);

/*
 * Checks that the path still leads to the file that this process locks. Otherwise other processes
 * may lock a different file, and an append could conflict with theirs: WAL_ELOCKFILE. WAL_OK when a
 * relative path leads nowhere since the working directory changed.
 */
enum wal_status wal__control_check_lock_file(const struct wal__control *control,
                                             struct wal_error *error) WAL_MUST_USE;

/* As wal__control_check_lock_file, at most every 10 ms. */
enum wal_status wal__control_check_ratelimited(struct wal__control *control,
                                               struct wal_error *error) WAL_MUST_USE;

/* For a reader with a private page: attaches to the page of processes that have opened the store
 * since. True: the caller reloads everything, then calls wal__control_finish_open. */
bool wal__control_attach_live_page(struct wal__control *control);

/*
 * Eventcounts. A process notifies after it raises an end; that costs one load
 * while no thread sleeps. A waiter prepares, checks the ends, then sleeps on
 * *word while it has the returned value. A waiter that is killed leaves nothing
 * to clean up. A writer may be killed before it notifies, so a waiter must also
 * check from time to time.
 */
void wal__control_notify(struct wal__control *control, uint32_t log_id, enum wal__log_event event);
uint32_t wal__control_prepare_wait(struct wal__control *control, uint32_t log_id,
                                   enum wal__log_event event, const uint32_t **word);

/* Returns whether the calling process opened it, and is not a child of fork().
 * */
bool wal__control_is_same_process(const struct wal__control *control);

#endif
