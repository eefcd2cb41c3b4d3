/*
 * host.h - the calls of struct wal__io that are not about files: clocks,
 * chance, processes, waiting. io.h says what each does; ctx is not used. Any
 * thread.
 */
#ifndef WAL_IO_HOST_H
#define WAL_IO_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int64_t wal__host_now_ms(void *ctx);
uint64_t wal__host_ticks_ns(void *ctx);
void wal__host_random(void *ctx, void *data, size_t size);
void wal__host_boot_id(void *ctx, uint8_t out[16]);
uint32_t wal__host_process_id(void *ctx);
uint64_t wal__host_process_start(void *ctx, uint32_t pid);
bool wal__host_process_is_stopped(void *ctx, uint32_t pid);
void wal__host_wait(void *ctx, const uint32_t *word, uint32_t expected,
                    uint64_t timeout_ns);
void wal__host_wake(void *ctx, const uint32_t *word, uint32_t count);

/* A non-blocking eventfd with this count, that a child program does not get; -1
 * and the errno when there is none. */
int wal__host_event_open(uint32_t count, int *sys_errno);
void wal__host_event_ring(int fd);
void wal__host_event_close(int fd); /* negative: does nothing */

#endif
