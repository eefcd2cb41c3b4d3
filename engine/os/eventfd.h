/*
 * eventfd.h - a descriptor that becomes readable when it is signalled, for
 * event loops of the caller. Any thread.
 */
#ifndef AGENTWAL_ENGINE_OS_EVENTFD_H
#define AGENTWAL_ENGINE_OS_EVENTFD_H

#include <stdint.h>

/* Returns a non-blocking, close-on-exec eventfd with this count; on failure -1
 * with the errno in *sys_errno. */
int wal__eventfd_open(uint32_t count, int *sys_errno);
/* Adds one to the count. */
void wal__eventfd_signal(int fd);
/* Does nothing for a negative descriptor. */
void wal__eventfd_close(int fd);

#endif
