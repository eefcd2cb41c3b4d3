/*
 * async_errors.h - what became of operations, for those who do not wait for
 * them: the failures that nobody was told of, and the event of event loops
 * (SPEC.md 4.3). Any thread; init and deinit one.
 *
 * Invariant: a failure is told by its ticket, or kept until a call tells it.
 */
#ifndef AGENTWAL_ENGINE_COMMIT_ASYNC_ERRORS_H
#define AGENTWAL_ENGINE_COMMIT_ASYNC_ERRORS_H

#include <pthread.h>
#include <stdatomic.h>

#include "agentwal.h"

struct wal__op;

struct wal__async_errors {
    pthread_mutex_t mutex;
    struct wal_error error;    /* the first failure that nobody was told of */
    uint32_t suppressed_count; /* failures since */
    _Atomic int32_t status;    /* of the first, or WAL_OK */
    _Atomic int32_t
        eventfd_plus_1; /* descriptor and one; 0: nobody asked for it */
    _Atomic uint32_t has_completions; /* 1: something submitted was answered */
};

void wal__async_errors_init(struct wal__async_errors *async_errors);
void wal__async_errors_deinit(struct wal__async_errors *async_errors);

/* Before a failed operation is answered: keeps its failure, now or when its
 * ticket goes unasked. */
void wal__async_errors_record(struct wal__async_errors *async_errors,
                              struct wal__op *op);
/* The operation's ticket goes, and was never answered by it. */
void wal__async_errors_drop(struct wal__async_errors *async_errors,
                            struct wal__op *op);

/* The failure that is kept, which is then told; WAL_OK: there is none. */
enum wal_status wal__async_errors_take(struct wal__async_errors *async_errors,
                                       struct wal_error *error) WAL_MUST_USE;

/* The event's descriptor, made by the first call. WAL_ENOMEM. */
enum wal_status
wal__async_errors_eventfd(struct wal__async_errors *async_errors, int32_t *fd,
                          struct wal_error *error) WAL_MUST_USE;
/* Submitted operations were answered. */
void wal__async_errors_signal(struct wal__async_errors *async_errors);

#endif
