/*
 * op.h - an operation: what one call appends (SPEC.md 4.3). Its frames go into one group together.
 *
 * Life: created and filled by the caller's thread, submitted to the committer, resolved and written
 * by a leader, completed once, released by both.
 *
 * Invariant: the state becomes WAL__OP_DONE once, after status, position, error and result are set;
 * nothing of these changes afterwards.
 */
#ifndef AGENTWAL_ENGINE_LOG_OP_H
#define AGENTWAL_ENGINE_LOG_OP_H

#include <pthread.h>
#include <stdatomic.h>

#include "agentwal.h"
#include "engine/base/descriptor.h"
#include "engine/base/heap.h"
#include "engine/log/locks.h"
#include "engine/log/log.h"
#include "format/segment/frame.h"

/* Software prefetch loads bytes into the caches before they are used, while other work is done. It
 * pays for bytes that were written long ago or by another thread. Any address is allowed; a bad one
 * is ignored. */
enum {
    WAL__CACHE_LINE_SIZE = 64,
    /* Bytes per call; the hardware prefetcher covers what follows. */
    WAL__PREFETCH_MAX = 2048
};

/* A caller of the public API may pass NULL with a size. */
static inline size_t wal__prefetch_size(const void *bytes, uint64_t size)
{
    if (bytes == NULL) {
        return 0;
    }
    return size < WAL__PREFETCH_MAX ? (size_t)size : WAL__PREFETCH_MAX;
}

static inline void wal__prefetch_read(const void *bytes, uint64_t size)
{
    const uint8_t *line = bytes;
    size_t end = wal__prefetch_size(bytes, size);

    for (size_t i = 0; i < end; i += WAL__CACHE_LINE_SIZE) {
        __builtin_prefetch(&line[i], 0);
    }
}

/* The futex word of an operation. */
enum wal__op_state {
    WAL__OP_PENDING = 0,
    WAL__OP_HAS_WAITER = 1, /* a thread sleeps on the word */
    WAL__OP_DONE = 2        /* status and results are set */
};

/* One frame of an operation, encoded except for its header. */
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
    bool async;          /* the caller does not wait: only the committer thread
                          * leads for it */
    uint32_t frame_count;
    struct wal__op_frame *frames; /* &first_frame, or allocated */
    struct wal__op_frame first_frame;
    struct wal__buf bytes; /* header room, payload and padding, per frame */
    struct wal__log_reservation reservation;
    uint64_t pack_end;               /* position in the pack up to which the frames refer to
                        * blobs: durable before they are written; 0: none */
    struct wal__content_guard guard; /* of these, until it is completed */
    /*
     * Decides under the append lock and the state lock whether the operation may be appended, and
     * assigns sessions, parents and flags to its frames. A refusal changes nothing but the
     * operation.
     */
    enum wal_status (*resolve)(void *ctx, struct wal__op *op);
    void (*release)(struct wal__op *op); /* frees what the request holds */
    void *request;
    uint64_t next_sequence; /* input of resolve: that of the first frame */
    /* The result. */
    enum wal_status status;
    uint64_t position;   /* end of its group */
    bool written;        /* it has frames in the log */
    bool detached;       /* no caller reads the result: record a failure.
                          * Under the async_errors mutex once submitted */
    bool error_recorded; /* it failed, and async_errors has seen it. Under the
                          * async_errors mutex */
    /* Futex words to wake after this operation's own (commit.c). */
    const uint32_t *wake_next[2];
    _Atomic uint32_t state; /* enum wal__op_state */
    _Atomic uint32_t references;
    /* Two more parts of the result. They are large: their texts are cleared under the append lock
     * by wal__op_clear, so that submitting does not touch them. */
    struct wal_error error;
    struct wal_append_result result;
};

enum {
    WAL__OP_POOL_MAX = 256,           /* operations that a pool retains */
    WAL__OP_POOL_BYTES_MAX = 4 * 1024 /* bytes of frames that one is retained with */
};

/* Released operations, retained with their memory for reuse. A thread that finds the pool in use
 * goes to the heap instead of waiting. Any thread. */
struct wal__op_pool {
    const struct wal__heap *heap;
    size_t request_size;
    _Atomic bool busy;
    uint32_t count; /* of the list; while busy is held */
    struct wal__op *first;
};

void wal__op_pool_init(struct wal__op_pool *pool, const struct wal__heap *heap,
                       size_t request_size);
/* All operations were released before. Accepts a zeroed pool. */
void wal__op_pool_deinit(struct wal__op_pool *pool);

/* Returns an operation with one reference, or NULL without memory. Its request is
 * pool->request_size bytes after it, not zeroed, freed with it; the caller may set it to something
 * else. */
struct wal__op *wal__op_create(struct wal__op_pool *pool);
/* Prefetches the memory of `size` bytes of frames that are added soon. */
void wal__op_prefetch(const struct wal__op *op, uint64_t size);
/* Empties the texts of the result, before it is decided. */
void wal__op_clear(struct wal__op *op);
void wal__op_retain(struct wal__op *op);
/* Gives up a reference; the last one frees or pools it. op may be NULL. */
void wal__op_release(struct wal__op *op);
/* Adds a frame with room for a payload of `size` bytes and zeroed padding.
 * *frame and *payload are valid until the next add. WAL_ENOMEM. */
enum wal_status wal__op_add_frame(struct wal__op *op, uint32_t size, struct wal__op_frame **frame,
                                  uint8_t **payload) WAL_MUST_USE;
/* Computes the payload checksums and the reservation, in the caller's thread, after the last frame
 * was added. */
void wal__op_finish(struct wal__op *op);

/* --- asynchronous errors ------------------------------------------------ */

/*
 * Failures of operations that no caller waits for, and the completion descriptor of event loops. A
 * failure is returned through the operation's ticket, or recorded here until a call returns it. Any
 * thread; init and deinit one.
 */
struct wal__async_errors {
    pthread_mutex_t mutex;
    struct wal_error error;                  /* the first failure that no call returned */
    uint32_t suppressed_count;               /* failures since */
    _Atomic int32_t status;                  /* of the first, or WAL_OK */
    struct wal__completion_fd completion_fd; /* under the mutex */
    _Atomic uint32_t has_completion_fd;      /* 1: completion_fd is open */
    _Atomic uint32_t has_completions;        /* 1: an asynchronous operation is done */
};

void wal__async_errors_init(struct wal__async_errors *async_errors);
void wal__async_errors_deinit(struct wal__async_errors *async_errors);

/* Records the failure of an operation, before it is completed: for the next taker when it is
 * detached, otherwise in case its ticket is dropped. */
void wal__async_errors_record(struct wal__async_errors *async_errors, struct wal__op *op);
/* The ticket of the operation is destroyed before its result was read. */
void wal__async_errors_drop(struct wal__async_errors *async_errors, struct wal__op *op);

/* Returns the recorded failure and forgets it; WAL_OK: there is none. */
enum wal_status wal__async_errors_take(struct wal__async_errors *async_errors,
                                       struct wal_error *error) WAL_MUST_USE;

/* Returns the completion descriptor, created by the first call; it stays owned by async_errors.
 * WAL_EINVAL: it has another kind. WAL_ENOMEM: no descriptor is available. */
enum wal_status wal__async_errors_completion_fd(struct wal__async_errors *async_errors,
                                                enum wal_completion_kind kind, int32_t *fd,
                                                struct wal_error *error) WAL_MUST_USE;
/* Signals the completion descriptor: asynchronous operations were completed. */
void wal__async_errors_signal(struct wal__async_errors *async_errors);

#endif
