/*
 * parallel.h - one thing done for each of many items by several threads
 * (SPEC.md 5.13). On a system without threads the caller's does all of it, in
 * order.
 */
#ifndef AGENTWAL_ENGINE_OS_PARALLEL_H
#define AGENTWAL_ENGINE_OS_PARALLEL_H

#include <stddef.h>
#include <stdint.h>

#include "agentwal.h"
#include "engine/base/error.h"
#include "engine/os/env.h"

enum {
    WAL__PARALLEL_THREADS_MAX = 64,
    WAL__PARALLEL_STATE_SIZE = 128
};

/* What is to be done. */
struct wal__parallel_for {
    const struct wal__env *env;
    void *ctx;
    uint32_t count;   /* of items */
    uint32_t grain;   /* items that a thread takes at once, at least 1 */
    uint32_t threads; /* at most; 0: as many as processors, 8 at most */
    /* Of item 0 to count - 1, each once; state is the thread's own room of
     * WAL__PARALLEL_STATE_SIZE bytes, zeros at first. */
    enum wal_status (*body)(void *ctx, void *state, uint32_t item,
                            struct wal_error *error);
    void (*end)(void *ctx, void *state); /* of a thread, or null */
};

/* Stops at a failure; the one that is told is that of the first item, of those
 * that failed. */
enum wal_status wal__parallel_for(const struct wal__parallel_for *many,
                                  struct wal_error *error) WAL_MUST_USE;

#endif
