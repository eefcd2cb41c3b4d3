/*
 * clock.h - the clocks of struct wal__io (io.h) on Linux. ctx is not used. Any
 * thread. The calls do not fail.
 */
#ifndef AGENTWAL_ENGINE_BASE_CLOCK_H
#define AGENTWAL_ENGINE_BASE_CLOCK_H

#include <stdint.h>

/* Unix time in milliseconds. */
int64_t wal__clock_now_ms(void *ctx);
/* Monotonic time in nanoseconds, from an arbitrary start. */
uint64_t wal__clock_monotonic_ns(void *ctx);

#endif
