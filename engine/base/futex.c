/*
 * futex.c - the futex of Linux (futex.h). No section of SPEC.md. Any thread.
 */
#include "engine/base/futex.h"

#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Not FUTEX_PRIVATE_FLAG: the word may be shared between processes. */
void wal__futex_wait(void *ctx, const uint32_t *word, uint32_t expected,
                     uint64_t timeout_ns)
{
    (void)ctx;
    struct timespec timeout = {
        .tv_sec = (time_t)(timeout_ns / 1000000000),
        .tv_nsec = (long)(timeout_ns % 1000000000),
    };

    (void)syscall(SYS_futex, word, FUTEX_WAIT, expected, &timeout, NULL, 0);
}

void wal__futex_wake(void *ctx, const uint32_t *word, uint32_t count)
{
    int wake_max = count < INT_MAX ? (int)count : INT_MAX;

    (void)ctx;
    (void)syscall(SYS_futex, word, FUTEX_WAKE, wake_max, NULL, NULL, 0);
}
