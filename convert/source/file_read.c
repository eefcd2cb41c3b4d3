/*
 * file_read.c - opens and reads files of sources (file_read.h).
 *
 * Threads: any.
 */
#include "convert/source/file_read.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int wal__file_open_regular(int directory, const char *name, struct stat *stat)
{
    int fd =
        openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0) {
        return -1;
    }
    if (fstat(fd, stat) != 0 || !S_ISREG(stat->st_mode)) {
        close(fd);
        errno = ELOOP;
        return -1;
    }
    return fd;
}

ssize_t wal__file_read_full(int fd, void *data, size_t size)
{
    size_t done = 0;

    while (done < size) {
        ssize_t got = read(fd, (char *)data + done, size - done);

        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return got < 0 ? -1 : (ssize_t)done;
        }
        done += (size_t)got;
    }
    return (ssize_t)done;
}
