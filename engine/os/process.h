/*
 * process.h - the calls of struct wal__io that are not about files: clocks,
 * chance, processes, waiting. io.h says what each does; ctx is not used. Any
 * thread.
 */
#ifndef AGENTWAL_ENGINE_OS_PROCESS_H
#define AGENTWAL_ENGINE_OS_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int64_t wal__clock_now_ms(void *ctx);
uint64_t wal__clock_monotonic_ns(void *ctx);
void wal__random_system(void *ctx, void *data, size_t size);
void wal__process_boot_id(void *ctx, uint8_t out[16]);
uint32_t wal__process_id(void *ctx);
uint64_t wal__process_start_time(void *ctx, uint32_t pid);
bool wal__process_is_stopped(void *ctx, uint32_t pid);
void wal__futex_wait(void *ctx, const uint32_t *word, uint32_t expected,
                     uint64_t timeout_ns);
void wal__futex_wake(void *ctx, const uint32_t *word, uint32_t count);

/* A non-blocking eventfd with this count, that a child program does not get; -1
 * and the errno when there is none. */
int wal__eventfd_open(uint32_t count, int *sys_errno);
void wal__eventfd_signal(int fd);
void wal__eventfd_close(int fd); /* negative: does nothing */

#endif
