/*
 * op.c - operations, their frames and their pool, and the failures of those that no caller waits
 * for (SPEC.md 4.3).
 *
 * Invariants: bytes.size is the sum of the frames' total sizes, a multiple of 8; the pool's list
 * has `count` operations without references. The recorded error is that of the recorded status, and
 * changes under the mutex only.
 */
#include "engine/log/op.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "format/bytes/assert.h"
#include "format/bytes/crc32.h"

enum {
    REQUEST_PREFETCH_SIZE = 256, /* bytes that the next caller sets */
    RESULT_PREFETCH_SIZE = 64,
    RESERVE_USE_MAX = 4096 /* bytes of frames that may be in the reserve */
};

/* Fetches one line for exclusive ownership. __builtin_prefetch(line, 1) emits prefetchw only if the
 * build targets processors that all have it; processors without it execute it as a no-op, so it is
 * always used here. */
static void prefetch_line_write(const uint8_t *line)
{
#ifdef __x86_64__
    __asm__ volatile("prefetchw %0" : : "m"(*line));
#else
    __builtin_prefetch(line, 1);
#endif
}

static void prefetch_write(const void *bytes, uint64_t size)
{
    size_t end = wal__prefetch_size(bytes, size);

    for (size_t i = 0; i < end; i += WAL__CACHE_LINE_SIZE) {
        prefetch_line_write((const uint8_t *)bytes + i);
    }
}

/* --- the pool ----------------------------------------------------------- */

void wal__op_pool_init(struct wal__op_pool *pool, const struct wal__heap *heap, size_t request_size)
{
    WAL__ASSERT(request_size % sizeof(void *) == 0);
    memset(pool, 0, sizeof(*pool));
    pool->heap = heap;
    pool->request_size = request_size;
}

static void destroy(struct wal__op *op)
{
    WAL__ASSERT(atomic_load_explicit(&op->references, memory_order_relaxed) == 0);
    wal__buf_deinit(&op->bytes);
    wal__heap_free(op->heap, op);
}

void wal__op_pool_deinit(struct wal__op_pool *pool)
{
    while (pool->first != NULL) {
        struct wal__op *op = pool->first;

        pool->first = op->next;
        destroy(op);
        pool->count--;
    }
    WAL__ASSERT(pool->count == 0);
}

static bool pool_try_lock(struct wal__op_pool *pool)
{
    return !atomic_exchange_explicit(&pool->busy, true, memory_order_acquire);
}

static void pool_unlock(struct wal__op_pool *pool)
{
    atomic_store_explicit(&pool->busy, false, memory_order_release);
}

/* Prefetches the operation that the next create returns. */
static void prefetch_op(struct wal__op *op)
{
    if (op != NULL) {
        prefetch_write(op, offsetof(struct wal__op, error.file));
        prefetch_write(&op->result, RESULT_PREFETCH_SIZE);
        prefetch_write(op + 1, REQUEST_PREFETCH_SIZE);
    }
}

/* Returns an operation of the pool, or NULL. */
static struct wal__op *pool_pop(struct wal__op_pool *pool)
{
    struct wal__op *op;

    if (!pool_try_lock(pool)) {
        return NULL;
    }
    op = pool->first;
    if (op != NULL) {
        WAL__ASSERT(pool->count > 0);
        pool->first = op->next;
        pool->count--;
        prefetch_op(op->next);
    }
    pool_unlock(pool);
    return op;
}

/* Returns false when the pool does not retain the operation. */
static bool pool_push(struct wal__op_pool *pool, struct wal__op *op)
{
    bool kept;

    if (op->bytes.capacity > WAL__OP_POOL_BYTES_MAX || !pool_try_lock(pool)) {
        return false;
    }
    kept = pool->count < WAL__OP_POOL_MAX;
    if (kept) {
        op->next = pool->first;
        pool->first = op;
        pool->count++;
    }
    pool_unlock(pool);
    return kept;
}

/* --- operations --------------------------------------------------------- */

struct wal__op *wal__op_create(struct wal__op_pool *pool)
{
    struct wal__op *op = pool_pop(pool);
    struct wal__buf bytes;

    wal__buf_init(&bytes, pool->heap);
    if (op != NULL) {
        bytes = op->bytes;
        bytes.size = 0;
    } else {
        op = wal__heap_alloc(pool->heap, sizeof(*op) + pool->request_size);
    }
    if (op == NULL) {
        return NULL;
    }
    memset(op, 0, offsetof(struct wal__op, error.file));
    memset(&op->result, 0, offsetof(struct wal_append_result, last_id));
    op->result.last_id[0] = '\0';
    op->pool = pool;
    op->heap = pool->heap;
    op->request = op + 1;
    op->error.struct_size = sizeof(op->error);
    op->result.struct_size = sizeof(op->result);
    op->bytes = bytes;
    atomic_store_explicit(&op->references, 1, memory_order_relaxed);
    return op;
}

void wal__op_prefetch(const struct wal__op *op, uint64_t size)
{
    const struct wal__buf *bytes = &op->bytes;
    size_t room = bytes->capacity - bytes->size;

    if (room > 0) {
        prefetch_write(bytes->data + bytes->size, size < room ? size : room);
    }
}

void wal__op_clear(struct wal__op *op)
{
    op->error.expectation = WAL_EXPECTATION_NONE;
    op->error.file[0] = '\0';
    op->error.text[0] = '\0';
    op->error.actual[0] = '\0';
}

void wal__op_retain(struct wal__op *op)
{
    uint32_t before = atomic_fetch_add(&op->references, 1);

    WAL__ASSERT(before > 0 && before < UINT32_MAX);
}

void wal__op_release(struct wal__op *op)
{
    uint32_t before;

    if (op == NULL) {
        return;
    }
    before = atomic_fetch_sub(&op->references, 1);
    WAL__ASSERT(before > 0);
    if (before != 1) {
        return;
    }
    if (op->release != NULL) {
        op->release(op);
    }
    wal__content_guard_leave(&op->guard); /* of one never submitted */
    if (op->frames != &op->first_frame) {
        wal__heap_free(op->heap, op->frames);
    }
    if (!pool_push(op->pool, op)) {
        destroy(op);
    }
}

/* Makes room for one more frame: the first one is inline, then the array doubles whenever the count
 * is a power of two. */
static enum wal_status grow_frames(struct wal__op *op)
{
    uint32_t count = op->frame_count;
    bool is_inline = op->frames == &op->first_frame;
    struct wal__op_frame *frames;

    if (count == 0) {
        op->frames = &op->first_frame;
        return WAL_OK;
    }
    if ((count & (count - 1)) != 0) {
        return WAL_OK;
    }
    frames = wal__heap_resize(op->heap, is_inline ? NULL : op->frames, (size_t)count * 2,
                              sizeof(*frames));
    if (frames == NULL) {
        return WAL_ENOMEM;
    }
    if (is_inline) {
        frames[0] = op->first_frame;
    }
    op->frames = frames;
    return WAL_OK;
}

enum wal_status wal__op_add_frame(struct wal__op *op, uint32_t size, struct wal__op_frame **frame,
                                  uint8_t **payload)
{
    uint64_t span = wal__frame_total_size(size);
    struct wal__op_frame *added;
    uint8_t *at;

    if (grow_frames(op) != WAL_OK || wal__buf_reserve(&op->bytes, span, &at) != WAL_OK) {
        return WAL_ENOMEM;
    }
    WAL__ASSERT(span >= WAL__FRAME_SIZE + (uint64_t)size && span % 8 == 0);
    WAL__ASSERT(op->bytes.size % 8 == 0 && op->bytes.size <= UINT32_MAX);
    memset(at, 0, WAL__FRAME_SIZE);
    memset(at + span - 8, 0, 8);
    added = &op->frames[op->frame_count];
    memset(added, 0, sizeof(*added));
    added->offset = (uint32_t)op->bytes.size;
    added->frame.stored_size = size;
    added->frame.raw_size = size;
    op->bytes.size += span;
    op->frame_count++;
    *frame = added;
    *payload = at + WAL__FRAME_SIZE;
    return WAL_OK;
}

/* Returns whether the operation only deletes or redacts. Each REDACT may have the entry that orders
 * it. */
static bool uses_reserve(const struct wal__op *op)
{
    uint32_t removals = 0;
    uint32_t entries = 0;

    for (uint32_t i = 0; i < op->frame_count; i++) {
        uint8_t type = op->frames[i].frame.type;

        removals += type == WAL__FRAME_TOMBSTONE || type == WAL__FRAME_REDACT;
        entries += type == WAL__FRAME_ENTRY;
    }
    return removals > 0 && entries <= removals && removals + entries == op->frame_count &&
           op->bytes.size <= RESERVE_USE_MAX;
}

void wal__op_finish(struct wal__op *op)
{
    op->reservation.uses_reserve = uses_reserve(op);
    op->reservation.size = op->bytes.size;
    op->reservation.frames = op->frame_count;
    op->reservation.sessions = 1;
    for (uint32_t i = 0; i < op->frame_count; i++) {
        struct wal__op_frame *frame = &op->frames[i];

        WAL__ASSERT(frame->offset + wal__frame_total_size(frame->frame.stored_size) <=
                    op->bytes.size);
        frame->frame.data_crc = wal__crc32(0, op->bytes.data + frame->offset + WAL__FRAME_SIZE,
                                           frame->frame.stored_size);
    }
}

/* --- asynchronous errors ------------------------------------------------ */

void wal__async_errors_init(struct wal__async_errors *async_errors)
{
    memset(async_errors, 0, sizeof(*async_errors));
    pthread_mutex_init(&async_errors->mutex, NULL);
    async_errors->error.struct_size = sizeof(async_errors->error);
    wal__completion_fd_init(&async_errors->completion_fd);
}

void wal__async_errors_deinit(struct wal__async_errors *async_errors)
{
    wal__completion_fd_close(&async_errors->completion_fd);
    pthread_mutex_destroy(&async_errors->mutex);
}

/* With the mutex. */
static void record_error(struct wal__async_errors *async_errors, const struct wal__op *op)
{
    WAL__ASSERT(op->status != WAL_OK && op->error_recorded);
    if (atomic_load(&async_errors->status) != WAL_OK) {
        async_errors->suppressed_count++;
        return;
    }
    wal__error_copy(&async_errors->error, &op->error);
    async_errors->error.status = op->status;
    async_errors->suppressed_count = 0;
    atomic_store(&async_errors->status, op->status);
}

void wal__async_errors_record(struct wal__async_errors *async_errors, struct wal__op *op)
{
    pthread_mutex_lock(&async_errors->mutex);
    WAL__ASSERT(!op->error_recorded);
    WAL__ASSERT(atomic_load(&op->state) != WAL__OP_DONE);
    op->error_recorded = true;
    if (op->detached) {
        record_error(async_errors, op);
    }
    pthread_mutex_unlock(&async_errors->mutex);
}

void wal__async_errors_drop(struct wal__async_errors *async_errors, struct wal__op *op)
{
    if (atomic_load(&op->state) == WAL__OP_DONE && op->status == WAL_OK) {
        return;
    }
    pthread_mutex_lock(&async_errors->mutex);
    if (op->error_recorded) {
        record_error(async_errors, op);
    }
    op->detached = true;
    pthread_mutex_unlock(&async_errors->mutex);
}

/* Adds the number of later failures to the text of the first. */
static void append_suppressed_count(struct wal__async_errors *async_errors)
{
    char *text = async_errors->error.text;
    size_t size = strlen(text);

    WAL__ASSERT(size < sizeof(async_errors->error.text));
    if (async_errors->suppressed_count > 0) {
        (void)snprintf(text + size, sizeof(async_errors->error.text) - size,
                       " (and %u more operations failed)", async_errors->suppressed_count);
    }
}

enum wal_status wal__async_errors_take(struct wal__async_errors *async_errors,
                                       struct wal_error *error)
{
    enum wal_status status;

    if (atomic_load(&async_errors->status) == WAL_OK) {
        return WAL_OK;
    }
    pthread_mutex_lock(&async_errors->mutex);
    status = (enum wal_status)atomic_exchange(&async_errors->status, WAL_OK);
    if (status != WAL_OK) {
        append_suppressed_count(async_errors);
        wal__error_copy(error, &async_errors->error);
    }
    pthread_mutex_unlock(&async_errors->mutex);
    return status;
}

/* --- the completion descriptor ------------------------------------------ */

/* Opens the descriptor unless it is open. With the mutex. */
static enum wal_status open_once(struct wal__async_errors *async_errors,
                                 enum wal_completion_kind kind, struct wal_error *error)
{
    static const char *const names[] = {"an eventfd", "a pipe", "a socket"};
    struct wal__completion_fd *completion = &async_errors->completion_fd;
    bool is_signalled = atomic_load(&async_errors->has_completions) != 0;
    int err = 0;

    if (completion->read_fd >= 0) {
        return completion->kind == kind
                   ? WAL_OK
                   : wal__invalid(error,
                                  "the completion descriptor of this handle is "
                                  "%s already; a handle has one descriptor",
                                  names[completion->kind]);
    }
    /* Only in the child of fork() it was open before. */
    atomic_store(&async_errors->has_completion_fd, 0);
    if (!wal__completion_fd_open(completion, kind, is_signalled, &err)) {
        if (err == ENOTSUP) {
            return wal__invalid(error, "this system cannot make %s; ask for a pipe", names[kind]);
        }
        return wal__fail_at(error, WAL_ENOMEM, err, NULL, 0,
                            "cannot create %s: no descriptor is available", names[kind]);
    }
    atomic_store(&async_errors->has_completion_fd, 1);
    if (!is_signalled && atomic_load(&async_errors->has_completions) != 0) {
        wal__completion_fd_signal(completion);
    }
    return WAL_OK;
}

enum wal_status wal__async_errors_completion_fd(struct wal__async_errors *async_errors,
                                                enum wal_completion_kind kind, int32_t *fd,
                                                struct wal_error *error)
{
    enum wal_status status;

    pthread_mutex_lock(&async_errors->mutex);
    status = open_once(async_errors, kind, error);
    if (status == WAL_OK) {
        *fd = async_errors->completion_fd.read_fd;
    }
    pthread_mutex_unlock(&async_errors->mutex);
    return status;
}

void wal__async_errors_signal(struct wal__async_errors *async_errors)
{
    /* Stored before has_completion_fd is loaded; open_once stores that before it loads this: one of
     * the two signals. */
    atomic_store(&async_errors->has_completions, 1);
    if (atomic_load(&async_errors->has_completion_fd) != 0) {
        wal__completion_fd_signal(&async_errors->completion_fd);
    }
}
