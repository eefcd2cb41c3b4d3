/*
 * eventfd.c - eventfd(2) (eventfd.h). No section of SPEC.md. Any thread.
 */
#include "engine/os/eventfd.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "engine/base/descriptor.h"

int wal__eventfd_open(uint32_t count, int *sys_errno)
{
    int fd = eventfd(count, EFD_NONBLOCK | EFD_CLOEXEC);

    *sys_errno = fd < 0 ? errno : 0;
    return fd;
}

/* The write fails only if the counter is at its limit, and then the descriptor
 * is readable already. */
void wal__eventfd_signal(int fd)
{
    uint64_t one = 1;
    ssize_t result;

    WAL__RETRY_EINTR(result, write(fd, &one, sizeof(one)));
    (void)result;
}

void wal__eventfd_close(int fd)
{
    if (fd >= 0) {
        (void)close(fd);
    }
}
