/*
 * async_errors.h - asynchronous errors: failures of operations that no caller
 * waits for, and the completion descriptor of event loops (SPEC.md 4.3). Any
 * thread; init and deinit one.
 *
 * Invariant: a failure is returned through the operation's ticket, or recorded
 * here until a call returns it.
 */
#ifndef AGENTWAL_ENGINE_LOG_ASYNC_ERRORS_H
#define AGENTWAL_ENGINE_LOG_ASYNC_ERRORS_H

#include <pthread.h>
#include <stdatomic.h>

#include "agentwal.h"
#include "engine/base/completion_fd.h"

struct wal__op;

struct wal__async_errors {
    pthread_mutex_t mutex;
    struct wal_error error;    /* the first failure that no call returned */
    uint32_t suppressed_count; /* failures since */
    _Atomic int32_t status;    /* of the first, or WAL_OK */
    struct wal__completion_fd completion_fd; /* under the mutex */
    _Atomic uint32_t has_completion_fd;      /* 1: completion_fd is open */
    _Atomic uint32_t has_completions; /* 1: an asynchronous operation is done */
};

void wal__async_errors_init(struct wal__async_errors *async_errors);
void wal__async_errors_deinit(struct wal__async_errors *async_errors);

/* Records the failure of an operation, before it is completed: for the next
 * taker when it is detached, otherwise in case its ticket is dropped. */
void wal__async_errors_record(struct wal__async_errors *async_errors,
                              struct wal__op *op);
/* The ticket of the operation is destroyed before its result was read. */
void wal__async_errors_drop(struct wal__async_errors *async_errors,
                            struct wal__op *op);

/* Returns the recorded failure and forgets it; WAL_OK: there is none. */
enum wal_status wal__async_errors_take(struct wal__async_errors *async_errors,
                                       struct wal_error *error) WAL_MUST_USE;

/* Returns the completion descriptor, created by the first call; it stays owned
 * by async_errors. WAL_EINVAL: it has another kind. WAL_ENOMEM: no descriptor
 * is available. */
enum wal_status
wal__async_errors_completion_fd(struct wal__async_errors *async_errors,
                                enum wal_completion_kind kind, int32_t *fd,
                                struct wal_error *error) WAL_MUST_USE;
/* Signals the completion descriptor: asynchronous operations were completed. */
void wal__async_errors_signal(struct wal__async_errors *async_errors);

#endif
