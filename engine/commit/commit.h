/*
 * commit.h - operations on their way into the log: staging, groups, who
 * builds them, who waits (SPEC.md 4.3).
 *
 * A caller that finds nothing staged and nobody building commits inline;
 * otherwise its operation is staged and the committer thread takes all that is
 * staged as one group. Without threads (a simulated system) everything is
 * inline.
 *
 * Invariant: an operation is answered exactly once; a durable one only after
 * a sync that covers it. Any thread may call; init and deinit one.
 */
#ifndef AGENTWAL_ENGINE_COMMIT_COMMIT_H
#define AGENTWAL_ENGINE_COMMIT_COMMIT_H

#include "engine/commit/async_errors.h"
#include "engine/commit/leader.h"
#include "engine/log/log.h"

enum wal__op_state {
    WAL__OP_PENDING = 0,
    WAL__OP_HAS_WAITER = 1, /* somebody sleeps on it */
    WAL__OP_DONE = 2        /* status and results are set */
};

/* Of the caller of an operation that is staged. */
enum wal__op_spin {
    WAL__OP_SPINNING = 1, /* it looks again and again, and may be called */
    WAL__OP_PROMOTED = 2  /* it builds next, what is staged then */
};

/* One frame of an operation, encoded but for its header. */
struct wal__op_frame {
    struct wal__frame frame;
    uint32_t offset; /* in the operation's bytes */
    bool skipped;    /* a duplicate: not written */
};

struct wal__op {
    struct wal__op *next;
    struct wal__op_pool *pool;
    const struct wal__heap *heap;
    uint32_t durability; /* enum wal_durability */
    bool async; /* its caller does not wait: the committer thread does it */
    uint32_t frame_count;
    struct wal__op_frame *frames; /* &first_frame, or allocated */
    struct wal__op_frame first_frame;
    struct wal__buf bytes; /* header room, payload and padding, per frame */
    struct wal__log_reservation reservation;
    uint64_t pack_end; /* what the frames refer to in the blob stream: durable
                        * up to here before they are written; 0: nothing */
    /* Who knows what the frames mean: decides under the lease whether the
     * operation may be appended, and gives sessions, parents and flags to its
     * frames. A refusal leaves everything as it was. */
    enum wal_status (*resolve)(void *ctx, struct wal__op *op);
    void (*release)(struct wal__op *op); /* frees what subject holds */
    void *request;
    uint64_t next_sequence; /* for resolve: that of its first frame */
    /* The answer. */
    enum wal_status status;
    uint64_t position;   /* end of its group */
    bool written;        /* it has frames in the log */
    bool detached;       /* nobody asks for the answer: a failure is kept */
    bool error_recorded; /* it failed, and was kept if need be; as `unheard`
                        * under the news' mutex */
    /* States of others whose sleepers are to be woken by this one's. */
    const uint32_t *wake_next[2];
    _Atomic uint32_t state;
    _Atomic uint32_t spinning; /* enum wal__op_spin */
    _Atomic uint32_t references;
    /* Of the answer too. Large: their texts are set by who decides, so that
     * submitting does not touch them. */
    struct wal_error error;
    struct wal_append_result result;
};

enum {
    WAL__OP_POOL_MAX = 256, /* operations that are kept */
    WAL__OP_POOL_BYTES_MAX =
        4 * 1024 /* bytes of frames that one is kept with */
};

/* Operations that ended, kept with their memory for those that come: whoever
 * finds the pool in use goes to the heap instead of waiting. */
struct wal__op_pool {
    const struct wal__heap *heap;
    size_t request_size;
    _Atomic bool busy;
    uint32_t count;
    struct wal__op *first;
};

void wal__op_pool_init(struct wal__op_pool *pool, const struct wal__heap *heap,
                       size_t request_size);
/* All operations were released. A zeroed pool may be given too. */
void wal__op_pool_deinit(struct wal__op_pool *pool);

/* An operation with one reference. Its subject is as many bytes as the pool
 * says, not zeroed, and is freed with it; it may be set to something else.
 * Null without memory. */
struct wal__op *wal__op_create(struct wal__op_pool *pool);
/* Asks the processor for the memory of frames of so many bytes, which will be
 * added soon. */
void wal__op_prefetch(const struct wal__op *op, uint64_t size);
/* Empties the texts of the answer, before it is decided. */
void wal__op_clear(struct wal__op *op);
void wal__op_retain(struct wal__op *op);
void wal__op_release(struct wal__op *op);
/* Adds a frame with room for a payload of `size` bytes; *payload points to it
 * until the next add, *frame until then too. Zeroed padding. */
enum wal_status wal__op_add_frame(struct wal__op *op, uint32_t size,
                                  struct wal__op_frame **frame,
                                  uint8_t **payload) WAL_MUST_USE;
/* Checksums all payloads and sums up the reservation; in the caller's
 * thread. */
void wal__op_finish(struct wal__op *op);

/* Everything before `end` of what records refer to outside of the log is on
 * stable storage; ctx is that of the turn's client. Takes no part in a turn. */
typedef enum wal_status wal__sync_dependencies(void *ctx, uint64_t end,
                                               struct wal_error *error);

struct wal__committer {
    struct wal__log *log;
    struct wal__leader_client client; /* its ctx is that of resolve too */
    wal__sync_dependencies *sync_dependencies;
    uint32_t queue_limit;
    uint64_t idle_mark_ns;
    pthread_mutex_t mutex;
    pthread_cond_t work_available; /* something is staged, or it ends */
    pthread_cond_t state_changed;  /* nobody builds, or the queue has room */
    struct wal__op *first;
    struct wal__op *last;
    _Atomic uint32_t staged_count;
    uint32_t queued_count;  /* of these, WAL_QUEUED */
    uint32_t durable_count; /* of these, WAL_DURABLE */
    _Atomic uint32_t
        spinning; /* callers that stay awake for the next builder */
    /* How many the last sync answered: they are about to come again. */
    _Atomic uint32_t sync_waiters;
    bool has_leader;
    bool stopping;
    bool running;            /* the threads exist */
    bool retain_append_lock; /* what follows this group will be built at once */
    bool is_idle;            /* the thread sleeps without a time to wake */
    bool needs_mark;         /* something was written since the last mark */
    uint64_t last_write_ns;  /* when something was last written */
    uint64_t submitted;      /* operations that were ever staged */
    uint64_t dequeued;       /* of these, those that are being built, or were */
    uint64_t completed;      /* of these, those whose turn is over */
    struct wal__async_errors async_errors;
    pthread_t thread;
    /* Help comes from a thread of its own (help.h). */
    pthread_t background_thread;
    pthread_mutex_t background_mutex;
    pthread_cond_t background_work;
    struct wal__prealloc_job prealloc_job;
    uint64_t prealloc_tail_id; /* segment for which one was asked last */
    bool prealloc_requested;
    bool sync_requested;
    _Atomic uint64_t acknowledged;
};

enum wal_status wal__committer_init(struct wal__committer *committer,
                                    struct wal__log *log,
                                    const struct wal__leader_client *client,
                                    wal__sync_dependencies *sync_dependencies,
                                    const struct wal_open_options *options,
                                    struct wal_error *error) WAL_MUST_USE;

/*
 * Submits an operation, taking a reference of its own. It may be done on
 * return, unless its caller does not wait (op->async). A WAL_QUEUED one waits
 * for room, or with no_wait answers WAL_EBUSY and is not taken.
 */
enum wal_status wal__committer_submit(struct wal__committer *committer,
                                      struct wal__op *op, bool no_wait,
                                      struct wal_error *error) WAL_MUST_USE;

/* Waits until it is done; WAL_EBUSY when the time is over first. */
enum wal_status wal__committer_wait(struct wal__committer *committer,
                                    struct wal__op *op,
                                    int64_t timeout_ms) WAL_MUST_USE;

/* Everything submitted before is written. Tells a failure that nobody was
 * told of. */
enum wal_status wal__committer_flush(struct wal__committer *committer,
                                     struct wal_error *error) WAL_MUST_USE;
/* And synced, also when there is such a failure. */
enum wal_status wal__committer_sync(struct wal__committer *committer,
                                    struct wal_error *error) WAL_MUST_USE;
/* How many operations are queued. */
uint32_t wal__committer_queued_count(struct wal__committer *committer);

/* Closes the ambiguous window: sync, a COMMIT that says so, sync. Does nothing
 * when the end is marked. */
enum wal_status wal__committer_write_mark(struct wal__committer *committer,
                                          struct wal_error *error) WAL_MUST_USE;

/* An end that another process wrote was seen: whoever sees no mark on it for
 * twice the idle time writes one. */
void wal__committer_schedule_mark(struct wal__committer *committer);

/* Ends the threads after what is staged; no further submits. */
void wal__committer_stop(struct wal__committer *committer);
void wal__committer_deinit(struct wal__committer *committer);

#endif
