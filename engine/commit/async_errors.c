/*
 * async_errors.c - asynchronous errors and the eventfd (SPEC.md 4.3).
 *
 * Invariant: `error` is that of `status`, and changes under the mutex only.
 */
#include "engine/commit/async_errors.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/commit/op.h"
#include "engine/os/eventfd.h"
#include "format/bytes/assert.h"

void wal__async_errors_init(struct wal__async_errors *async_errors)
{
    memset(async_errors, 0, sizeof(*async_errors));
    pthread_mutex_init(&async_errors->mutex, NULL);
    async_errors->error.struct_size = sizeof(async_errors->error);
}

void wal__async_errors_deinit(struct wal__async_errors *async_errors)
{
    wal__eventfd_close(atomic_load(&async_errors->eventfd_plus_1) - 1);
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

/* --- the eventfd -------------------------------------------------------- */

/* Creates the eventfd, unless another thread did; returns its descriptor plus
 * one, or 0 when none is available. */
static int32_t create_eventfd(struct wal__async_errors *async_errors,
                              int *sys_errno)
{
    int32_t event = 0;
    int opened = wal__eventfd_open(atomic_load(&async_errors->has_completions),
                                   sys_errno);

    if (opened < 0) {
        return atomic_load(&async_errors->eventfd_plus_1);
    }
    if (!atomic_compare_exchange_strong(&async_errors->eventfd_plus_1, &event,
                                        opened + 1)) {
        wal__eventfd_close(opened);
        return event;
    }
    return opened + 1;
}

enum wal_status
wal__async_errors_eventfd(struct wal__async_errors *async_errors, int32_t *fd,
                          struct wal_error *error)
{
    int32_t event = atomic_load(&async_errors->eventfd_plus_1);
    bool signalled = atomic_load(&async_errors->has_completions) != 0;
    int err = 0;

    if (event != 0) {
        *fd = event - 1;
        return WAL_OK;
    }
    event = create_eventfd(async_errors, &err);
    if (event == 0) {
        return wal__fail_at(error, WAL_ENOMEM, err, NULL, 0,
                            "cannot create an eventfd: no descriptor is "
                            "available");
    }
    *fd = event - 1;
    if (!signalled && atomic_load(&async_errors->has_completions) != 0) {
        wal__eventfd_signal(*fd);
    }
    return WAL_OK;
}

void wal__async_errors_signal(struct wal__async_errors *async_errors)
{
    int32_t event;

    /* Stored before the descriptor is loaded; wal__async_errors_eventfd stores
     * the descriptor before it loads this: one of the two signals. */
    atomic_store(&async_errors->has_completions, 1);
    event = atomic_load(&async_errors->eventfd_plus_1);
    if (event != 0) {
        wal__eventfd_signal(event - 1);
    }
}
