/*
 * descriptor.h - rules for every file descriptor of the engine: system calls
 * are retried after EINTR, and no descriptor is below 3. Any thread.
 */
#ifndef AGENTWAL_ENGINE_BASE_DESCRIPTOR_H
#define AGENTWAL_ENGINE_BASE_DESCRIPTOR_H

#include <errno.h>

/* Sets result to the result of a system call, repeated while it is EINTR. */
#define WAL__RETRY_EINTR(result, call) \
    do {                               \
        (result) = (call);             \
    } while ((result) < 0 && errno == EINTR)

/* Moves a descriptor that got the number of a closed standard stream above 2,
 * so that output to that stream does not land in a store or a work tree. Takes
 * the result of open(2), a failure included; returns the descriptor, or a
 * negative number with errno set. The descriptor passed in is closed when it
 * is not returned. */
int wal__descriptor_above_stdio(int fd);

#endif
