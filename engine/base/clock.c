/*
 * clock.c - the clocks of Linux (clock.h). No section of SPEC.md. Any thread.
 */
#include "engine/base/clock.h"

#include <time.h>

#include "format/bytes/assert.h"

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    int result = clock_gettime(clock, &now);

    WAL__ASSERT(result == 0);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

int64_t wal__clock_now_ms(void *ctx)
{
    (void)ctx;
    return (int64_t)(clock_ns(CLOCK_REALTIME) / 1000000);
}

uint64_t wal__clock_monotonic_ns(void *ctx)
{
    (void)ctx;
    return clock_ns(CLOCK_MONOTONIC);
}
