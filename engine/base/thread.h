/*
 * thread.h - the threads of the library, and a parallel for (SPEC.md 5.13).
 */
#ifndef AGENTWAL_ENGINE_BASE_THREAD_H
#define AGENTWAL_ENGINE_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agentwal.h"
#include "engine/base/error.h"
#include "engine/base/io.h"

/* As pthread_create() without attributes. The thread takes no signal of the program, and can meet
 * SIGBUS, whose handler continues a read of a file that was cut (map.h, SPEC.md 4.6). Any
 * thread. */
int wal__thread_start(pthread_t *thread, void *(*run)(void *), void *arg);

/* What a spinning thread does between two looks: it leaves the processor's shared parts to others
 * for some cycles. Any thread. */
static inline void wal__cpu_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

/* --- a parallel for ----------------------------------------------------- */

/* Applies a function to each item of a range with several threads. With an io table without threads
 * the caller's thread processes all items in order. */

enum { WAL__PARALLEL_THREADS_MAX = 64, WAL__PARALLEL_STATE_SIZE = 128 };

/* A loop over the items 0 to count - 1. */
struct wal__parallel_for {
    const struct wal__env *env;
    void *ctx;
    uint32_t count; /* of items */
    uint32_t grain; /* items that a thread claims at once, at least 1 */
    /* Claim a quarter of the items that are left per thread, if that is more than the grain:
     * neighbours stay in one thread. */
    bool guided;
    uint32_t threads; /* at most; 0: one per usable processor, at most 8 */
    /* Called once per item. `state` is private to the thread: WAL__PARALLEL_STATE_SIZE bytes, zeros
     * at first. */
    enum wal_status (*body)(void *ctx, void *state, uint32_t item, struct wal_error *error);
    void (*end)(void *ctx, void *state); /* as a thread ends, or null */
};

/* Returns when all threads have ended. A failure stops the claiming of further items; of several
 * failures, that of the lowest item is reported. */
enum wal_status wal__parallel_for(const struct wal__parallel_for *loop,
                                  struct wal_error *error) WAL_MUST_USE;

#endif
