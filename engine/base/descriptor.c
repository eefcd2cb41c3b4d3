/*
 * descriptor.c - keeps descriptors above the standard streams (descriptor.h).
 * No section of SPEC.md. Invariant: a descriptor below 3 is closed, whether or
 * not it could be duplicated. Any thread.
 */
#include "engine/base/descriptor.h"

#include <fcntl.h>
#include <unistd.h>

int wal__descriptor_above_stdio(int fd)
{
    int moved;
    int error;

    if (fd < 0 || fd > STDERR_FILENO) {
        return fd;
    }
    moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    error = errno;
    (void)close(fd);
    errno = error;
    return moved;
}
