/*
 * futex.h - waiting on a word that may be shared between processes: the futex
 * calls of struct wal__io (io.h) on Linux. ctx is not used. Any thread.
 */
#ifndef AGENTWAL_ENGINE_BASE_FUTEX_H
#define AGENTWAL_ENGINE_BASE_FUTEX_H

#include <stdint.h>

/* Sleeps until *word != expected, a wake, or the timeout; may return early. */
void wal__futex_wait(void *ctx, const uint32_t *word, uint32_t expected,
                     uint64_t timeout_ns);
/* Wakes at most `count` waiters. */
void wal__futex_wake(void *ctx, const uint32_t *word, uint32_t count);

#endif
