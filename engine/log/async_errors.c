/*
 * async_errors.c - asynchronous errors and the completion descriptor
 * (SPEC.md 4.3).
 *
 * Invariant: `error` is that of `status`, and changes under the mutex only.
 */
#include "engine/log/async_errors.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/log/op.h"
#include "format/bytes/assert.h"

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

/* --- failures ----------------------------------------------------------- */

/* With the mutex. */
static void record_error(struct wal__async_errors *async_errors,
                         const struct wal__op *op)
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

void wal__async_errors_record(struct wal__async_errors *async_errors,
                              struct wal__op *op)
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

void wal__async_errors_drop(struct wal__async_errors *async_errors,
                            struct wal__op *op)
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
                       " (and %u more operations failed)",
                       async_errors->suppressed_count);
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
                                 enum wal_completion_kind kind,
                                 struct wal_error *error)
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
        return wal__fail_at(error, WAL_ENOMEM, err, NULL, 0,
                            "cannot create %s: no descriptor is available",
                            names[kind]);
    }
    atomic_store(&async_errors->has_completion_fd, 1);
    if (!is_signalled && atomic_load(&async_errors->has_completions) != 0) {
        wal__completion_fd_signal(completion);
    }
    return WAL_OK;
}

enum wal_status
wal__async_errors_completion_fd(struct wal__async_errors *async_errors,
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
    /* Stored before has_completion_fd is loaded; open_once stores that before
     * it loads this: one of the two signals. */
    atomic_store(&async_errors->has_completions, 1);
    if (atomic_load(&async_errors->has_completion_fd) != 0) {
        wal__completion_fd_signal(&async_errors->completion_fd);
    }
}
