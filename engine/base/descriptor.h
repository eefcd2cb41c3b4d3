/*
 * descriptor.h - what every descriptor of the engine's has in common. Any
 * thread.
 */
#ifndef AGENTWAL_ENGINE_BASE_DESCRIPTOR_H
#define AGENTWAL_ENGINE_BASE_DESCRIPTOR_H

#include <errno.h>

/* Sets result to what a system call answers, whatever signals come. */
#define WAL__RETRY_EINTR(result, call) \
    do {                               \
        (result) = (call);             \
    } while ((result) < 0 && errno == EINTR)

/* Whatever a program writes to its standard streams must not land in a store
 * or a work tree: a descriptor that got the number of a closed one is moved
 * above them. Takes what open(2) answered, a failure too; answers likewise. */
int wal__descriptor_above_stdio(int fd);

#endif
