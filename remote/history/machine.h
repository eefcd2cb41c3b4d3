/*
 * machine.h - what remotes ask of this machine: its name, clocks, random
 * numbers, threads.
 *
 * Threads: any.
 */
#ifndef AGENTWAL_REMOTE_HISTORY_MACHINE_H
#define AGENTWAL_REMOTE_HISTORY_MACHINE_H

#include "remote/layout/layout.h"

/* Milliseconds that pass while the machine sleeps too, from any start. */
uint64_t wal__machine_now_ms(void);
/* Milliseconds of Unix time. */
int64_t wal__machine_unix_ms(void);

/* The host's name; what is not printable in it becomes '-'. */
void wal__machine_host(char host[WAL__EPOCH_HOST_SIZE]);

/* Fills 16 bytes that no one else has: WAL_OK or WAL_EIO. */
enum wal_status wal__machine_random(uint8_t bytes[16],
                                    struct wal_error *error) WAL_MUST_USE;

#endif
