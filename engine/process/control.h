/*
 * control.h - what the processes of a store share: lock bytes in the file
 * LOCK, and its first page, mapped by all (SPEC.md 4.1). The kernel frees a
 * lock with its holder; the page is believed only while some process holds the
 * member lock, and carries this boot's id, the device and the inode.
 *
 * Lock order: in-process mutex, then lock byte; the lease before the sync
 * turn; never the leases of both streams at once.
 */
#ifndef AGENTWAL_ENGINE_PROCESS_CONTROL_H
#define AGENTWAL_ENGINE_PROCESS_CONTROL_H

#include <stdatomic.h>

#include "engine/os/env.h"

enum {
    WAL__CONTROL_SIZE = 4096,
    WAL__LOG_COUNT = 2,
    WAL__CLAIMS = 128
};

/* What rises, for those who follow a stream. */
enum wal__log_event {
    WAL__LOG_EVENT_WRITTEN = 0,
    WAL__LOG_EVENT_DURABLE = 1,
    WAL__LOG_EVENT_COUNT = 2
};

/* Locks of a stream that are waited for. */
enum wal__wait_queue {
    WAL__WAIT_APPEND = 0,
    WAL__WAIT_SYNC = 1,
    WAL__WAIT_PREALLOC = 2,
    WAL__WAIT_COUNT = 3
};

/* Where waiters for one lock sleep: rung when somebody waits, and it was freed
 * or need not be had any more. */
struct wal__wait_word {
    _Atomic uint32_t word; /* a futex */
    _Atomic uint32_t waiters;
};

/* The page's part for one stream. Ends are positions and only rise. */
struct wal__control_log {
    _Atomic uint64_t written;     /* end of the last published group, and so the
                                * newest live segment */
    _Atomic uint64_t durable;     /* everything before it is synced */
    _Atomic uint64_t syncing_pid; /* process id of who syncs; 0: nobody */
    _Atomic uint64_t closed_segment_id; /* id of a segment that takes no more */
    _Atomic uint64_t
        indexed_tail_id;    /* id of a tail whose index stands beside it */
    _Atomic uint64_t epoch; /* of the last process that joined */
    _Atomic uint64_t last_appender_epoch; /* epoch of who had the lease last */
    _Atomic uint32_t poison;              /* a write or sync failed */
    _Atomic uint32_t append_holder; /* process id of the lease's holder, or 0 */
    _Atomic uint64_t holder_start;
    _Atomic uint32_t rotation_waiting; /* a rotation waits for the spare */
    _Atomic uint32_t is_recovered; /* of the first stream: recovery is done */
    _Atomic uint32_t
        prealloc_holder;          /* process id of who makes a spare, or 0 */
    _Atomic uint32_t sync_holder; /* of who holds the sync turn, or 0 */
    _Atomic uint32_t open_syncing_pid; /* of who syncs a segment's OPEN, or 0 */
    uint32_t reserved;
    struct wal__wait_word wait_words[WAL__WAIT_COUNT];
};

/* Who claims a session: a name to show, never a reason to believe that it is
 * claimed. That is the lock byte's to say. */
struct wal__control_claim {
    _Atomic uint64_t start;           /* of the process; 0: free */
    _Atomic uint64_t session_and_pid; /* session number << 32 | process id */
};

/* Who holds the door, or the member lock alone: a name to show. */
struct wal__lock_owner {
    _Atomic uint64_t start;   /* of the process */
    _Atomic uint32_t process; /* its id; 0: nobody */
    uint32_t reserved;
};

struct wal__control_page {
    _Atomic uint64_t magic; /* set last: then the rest is there */
    uint32_t version;
    uint32_t reserved;
    uint8_t boot_id[16];
    uint64_t device;
    uint64_t inode;
    uint8_t rest[512 - 48]; /* a sector that does not change while in use */
    struct wal__control_log logs[WAL__LOG_COUNT];
    struct wal__control_claim claims[WAL__CLAIMS];
    /* Futex words, odd while somebody sleeps on them. They outlast those who
     * write: who only follows stays, and sleeps until others come. */
    _Atomic uint32_t eventcounts[WAL__LOG_COUNT][WAL__LOG_EVENT_COUNT];
    /* They count also while the page is void. */
    struct wal__lock_owner open_lock_owner;
    struct wal__lock_owner exclusive_owner;
};

enum wal__lock_byte {
    WAL__LOCK_PARTICIPANT = 4096, /* shared by every live process */
    WAL__LOCK_INDEX = 4097,       /* who replaces files in index/ */
    WAL__LOCK_OPEN = 4098,        /* who comes in, until it takes part */
    WAL__LOCK_REWIND = 4099,      /* who rewinds files */
    WAL__LOCK_APPEND = 4104,      /* + stream: who appends */
    WAL__LOCK_SYNC = 4112,        /* + stream: who syncs */
    WAL__LOCK_PREALLOC = 4120     /* + stream: who makes a spare */
};

/* + session number: who claims it. */
#define WAL__LOCK_CLAIM (UINT64_C(1) << 32)

struct wal__control {
    const struct wal__env *env;
    struct wal__file *file;
    struct wal__control_page *page;
    /* that of the file: page, or for its names alone; null: the file has none
     * yet */
    struct wal__control_page *file_page;
    struct wal__control_page private_page; /* of a reader without the file */
    char path[WAL__PATH_MAX];
    uint64_t device; /* of the file, as it was opened */
    uint64_t inode;
    uint32_t process_id;
    uint64_t process_start_time;
    bool is_first_opener; /* this process found no other alive when it opened */
    /* others may lock another file that was LOCK before */
    bool lock_file_replaced;
    bool holds_open_lock;        /* it holds the door */
    bool is_exclusive;           /* it holds the member lock exclusively */
    _Atomic uint64_t checked_ns; /* when LOCK was last looked for */
};

/* One try at a lock byte. WAL_ELOCKED: another holds it. */
enum wal_status wal__control_set_lock(struct wal__control *control,
                                      uint64_t byte, enum wal__io_lock mode,
                                      int *err) WAL_MUST_USE;

/*
 * Opens LOCK and takes the member lock. control->alone tells whether the page
 * was reset (the caller recovers, then calls wal__control_finish_open) or is
 * live. A page that was reset keeps, of each stream, the durable end, and
 * poison when what is beyond it may be in memory only: recovery takes both
 * away. A read-only opener that cannot write LOCK gets a page of its own.
 * WAL_ELOCKED: error->holder is in the way, stopped or for very long; 0: it
 * cannot be named.
 */
enum wal_status wal__control_open(struct wal__control *control,
                                  const struct wal__env *env,
                                  struct wal_error *error) WAL_MUST_USE;

/* Recovery is done: others may join. Who only reads leaves the lock. */
enum wal_status wal__control_finish_open(struct wal__control *control,
                                         struct wal_error *error) WAL_MUST_USE;
void wal__control_close(struct wal__control *control);

/* Whether this process is the only live one, as of now; the member lock is
 * then held alone, until wal__control_finish_open or close. */
bool wal__control_try_exclusive(struct wal__control *control);

/*
 * Takes a lock byte, waiting at most the store's lock timeout, looking again
 * every 5 ms and when it is woken. WAL_ELOCKED names the
 * lease's holder. No other thread of this process may hold it: the caller's
 * mutex sees to that.
 */
enum wal_status wal__control_lock(struct wal__control *control, uint64_t byte,
                                  uint32_t log_id,
                                  struct wal_error *error) WAL_MUST_USE;
/* The same, unless the durable end reaches the position first: WAL_END, and
 * nothing is locked. */
enum wal_status
wal__control_lock_unless_durable(struct wal__control *control, uint64_t byte,
                                 uint32_t log_id, uint64_t position,
                                 struct wal_error *error) WAL_MUST_USE;
/* Without waiting: WAL_ELOCKED when another holds it. */
enum wal_status wal__control_try_lock(struct wal__control *control,
                                      uint64_t byte, uint32_t log_id,
                                      int *err) WAL_MUST_USE;
/* Whether somebody waits for a lock that this process holds. */
bool wal__control_has_waiters(struct wal__control *control, uint64_t byte,
                              uint32_t log_id);
void wal__control_unlock(struct wal__control *control, uint64_t byte,
                         uint32_t log_id);

/*
 * Whether the file at the path is still the one that this process locks: else
 * others lock another, and nothing may be appended beside them. WAL_ELOCKFILE.
 * A store that was named relative to a working directory which has changed is
 * taken to be where it was.
 */
enum wal_status
wal__control_check_lock_file(const struct wal__control *control,
                             struct wal_error *error) WAL_MUST_USE;

/* The same, unless it was the file some milliseconds ago: for each lease. */
enum wal_status
wal__control_check_ratelimited(struct wal__control *control,
                               struct wal_error *error) WAL_MUST_USE;

/* Of a reader with a page of its own: whether processes live by now, whose page
 * it then has. The caller loads anew, then calls wal__control_finish_open. */
bool wal__control_attach_live_page(struct wal__control *control);

/*
 * Following: whoever lets an end rise tells it afterwards; that costs nothing
 * while nobody sleeps. Who wants to sleep listens, then looks at the ends, then
 * waits on *word for as long as it is what listen answered. Who sleeps and is
 * killed leaves nothing behind. A writer that is killed before it tells is the
 * reason to look once in a while all the same.
 */
void wal__control_notify(struct wal__control *control, uint32_t log_id,
                         enum wal__log_event what);
uint32_t wal__control_prepare_wait(struct wal__control *control,
                                   uint32_t log_id, enum wal__log_event what,
                                   const uint32_t **word);

/*
 * Claims of sessions. WAL_ECLAIMED: another open file has it; error->holder is
 * its process, 0 when that is not known. WAL_ELIMIT: the page has no room
 * for another name. *slot is for giving it back. claim.c
 */
enum wal_status wal__control_claim(struct wal__control *control,
                                   uint32_t session, uint32_t *slot,
                                   struct wal_error *error) WAL_MUST_USE;
void wal__control_release_claim(struct wal__control *control, uint32_t session,
                                uint32_t slot);
/* Names the process in the error of a claim that was refused. */
enum wal_status wal__control_claim_refused(int32_t holder,
                                           struct wal_error *error);

/* Whether this is the process that opened it, and not a child of fork(). */
bool wal__control_is_same_process(const struct wal__control *control);

#endif
