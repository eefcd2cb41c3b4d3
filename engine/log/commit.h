/*
 * commit.h - group commit: submission of operations, and the threads that commit them (SPEC.md
 * 4.3). commit.c explains it.
 *
 * Locks: `mutex` guards the queue and the leader's role; it comes before the append lock and the
 * state lock, and the leader does not hold it meanwhile. `background_mutex` comes before `mutex`.
 *
 * Invariant: an operation is completed exactly once; a durable one only after a sync that covers
 * it. completed <= dequeued <= submitted. Any thread may call; init, stop and deinit one.
 */
#ifndef AGENTWAL_ENGINE_LOG_COMMIT_H
#define AGENTWAL_ENGINE_LOG_COMMIT_H

#include "engine/log/leader.h"
#include "engine/log/log.h"
#include "engine/log/op.h"
#include "engine/log/rotate.h"

/* Makes the pack durable up to position `end`: called before the log refers to it, without the
 * append lock. ctx is that of the leader's client. */
typedef enum wal_status wal__sync_dependencies(void *ctx, uint64_t end, struct wal_error *error);

typedef enum wal_status wal__look_again(void *ctx, uint64_t *looked, bool *again,
                                        struct wal_error *error);

/* The owner of the log. */
struct wal__committer_client {
    struct wal__leader_client leader; /* its ctx is that of the others too */
    wal__sync_dependencies *sync_dependencies;
    /* Called each second by the background thread, without a lock. */
    void (*close_replaced)(void *ctx);
    /* After WAL_ECORRUPT, under the leader's locks: wal__core_invalidate_derived. *again: resolve
     * the operation again. */
    wal__look_again *look_again;
};

struct wal__committer {
    struct wal__log *log;
    struct wal__leader_client client; /* its ctx is that of resolve too */
    wal__sync_dependencies *sync_dependencies;
    void (*close_replaced)(void *ctx);
    wal__look_again *look_again;
    uint32_t queue_limit;     /* of WAL_QUEUED operations */
    uint64_t idle_mark_ns;    /* until a mark makes the end durable */
    uint64_t durable_mark_ns; /* until a mark of an end that is durable */
    /* Memory of the last group, for the next one; only the leader uses it. */
    struct wal__buf group_iov;
    struct wal__buf group_sessions;
    pthread_mutex_t mutex;
    pthread_cond_t work_available; /* an operation is staged, or stopping */
    pthread_cond_t state_changed;  /* no leader any more, or queue space */
    /* The staged operations, oldest first. */
    struct wal__op *first;
    struct wal__op *last;
    _Atomic uint32_t staged_count;
    uint32_t queued_count;  /* of these, WAL_QUEUED */
    uint32_t durable_count; /* of these, WAL_DURABLE */
    /* Durable operations that the last sync completed: their callers are expected to return. More
     * than two of them are contention. */
    _Atomic uint32_t sync_waiters;
    /* Other processes append much more than this one: processors are busy. */
    _Atomic bool is_outnumbered;
    uint64_t own_sequence; /* of the last record written here; the leader's */
    bool has_leader;
    bool stopping;
    bool running;            /* the committer thread exists */
    bool has_background;     /* the background thread exists */
    bool retain_append_lock; /* after the group being built; the leader's */
    bool needs_mark;         /* groups were written since the last mark; of
                              * the leader, while there is one */
    uint64_t last_write_ns;  /* monotonic time of the last cycle's end */
    /* Monotonic time until which the committer thread sleeps, UINT64_MAX: for ever; 0: it does
     * not. */
    uint64_t sleeps_until_ns;
    uint64_t submitted; /* operations ever staged */
    uint64_t dequeued;  /* of these, taken by a commit cycle */
    uint64_t completed; /* of these, those whose cycle has ended */
    struct wal__async_errors async_errors;
    pthread_t thread;
    /* The background thread. */
    pthread_t background_thread;
    pthread_mutex_t background_mutex;
    pthread_cond_t background_work;
    struct wal__prealloc_job prealloc_job;
    uint64_t prealloc_tail_id; /* tail segment of the last request */
    bool prealloc_requested;
    bool sync_requested;
    _Atomic uint64_t acknowledged; /* durable operations, for statistics */
};

/* Copies *client; starts the threads where the system has threads: of a store that is not writable
 * only the background thread. log outlives the committer. WAL_ENOMEM. */
enum wal_status wal__committer_init(struct wal__committer *committer, struct wal__log *log,
                                    const struct wal__committer_client *client,
                                    const struct wal_open_options *options,
                                    struct wal_error *error) WAL_MUST_USE;

/*
 * Submits an operation and retains it. It may be done on return, unless op->async. A WAL_QUEUED one
 * waits for queue space, or with no_wait fails with WAL_EBUSY. On failure the operation is not
 * submitted; the failure may be an asynchronous error of an earlier one.
 */
enum wal_status wal__committer_submit(struct wal__committer *committer, struct wal__op *op,
                                      bool no_wait, struct wal_error *error) WAL_MUST_USE;

/* Waits until the operation is done, and returns its status; WAL_EBUSY after timeout_ms, which is
 * infinite when negative. */
enum wal_status wal__committer_wait(struct wal__committer *committer, struct wal__op *op,
                                    int64_t timeout_ms) WAL_MUST_USE;

/* Waits until everything submitted before is written. Returns a recorded asynchronous error. */
enum wal_status wal__committer_flush(struct wal__committer *committer,
                                     struct wal_error *error) WAL_MUST_USE;
/* Flushes and syncs what any process has written, the latter also when there is such an error. */
enum wal_status wal__committer_sync(struct wal__committer *committer,
                                    struct wal_error *error) WAL_MUST_USE;
/* Returns the number of staged WAL_QUEUED operations. */
uint32_t wal__committer_queued_count(struct wal__committer *committer);

/* Keeps the other threads of the process from leading, until resume. Without a lock. */
void wal__committer_pause(struct wal__committer *committer);
void wal__committer_resume(struct wal__committer *committer);
/* Ends the tail segment (wal__leader_rotate) as the leader. */
enum wal_status wal__committer_rotate(struct wal__committer *committer,
                                      struct wal_error *error) WAL_MUST_USE;
/* Calls fn as the leader, under the append lock and the state lock for writing, with everything
 * applied that was published. */
enum wal_status wal__committer_call(struct wal__committer *committer, wal__leader_fn *fn, void *ctx,
                                    struct wal_error *error) WAL_MUST_USE;
/* Writes a commit mark (wal__leader_write_mark) as the leader. */
enum wal_status wal__committer_write_mark(struct wal__committer *committer,
                                          struct wal_error *error) WAL_MUST_USE;

/* Another process wrote the end that was just applied, and has to mark it. The committer thread
 * does so one idle time later, unless it is marked then. */
void wal__committer_schedule_mark(struct wal__committer *committer);

/* Commits what is staged and ends the threads; nothing is submitted after. */
void wal__committer_stop(struct wal__committer *committer);
void wal__committer_deinit(struct wal__committer *committer);

#endif
