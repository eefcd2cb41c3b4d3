/*
 * process.h - the identity and the state of processes: calls of struct wal__io
 * (io.h has their contracts) on Linux. ctx is not used. Any thread.
 */
#ifndef AGENTWAL_ENGINE_BASE_PROCESS_H
#define AGENTWAL_ENGINE_BASE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

void wal__process_boot_id(void *ctx, uint8_t out[16]);
uint32_t wal__process_id(void *ctx);
uint64_t wal__process_start_time(void *ctx, uint32_t pid);
bool wal__process_is_stopped(void *ctx, uint32_t pid);
void wal__process_list_mappers(void *ctx, const char *directory,
                               void (*each)(void *arg, uint32_t pid,
                                            uint64_t bytes),
                               void *arg);

#endif
