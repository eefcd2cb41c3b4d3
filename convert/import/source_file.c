/*
 * source_file.c - locks and measures the file of a source (source_file.h).
 *
 * Threads: one thread at a time per descriptor.
 */
#include "convert/import/source_file.h"

#include <errno.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

/* 10 seconds */
#define LOCK_DELAY_NS 10000000
#define LOCK_TRIES    1000

enum wal_status wal__source_file_lock(struct wal__import *import, int fd,
                                      const char *name, struct wal_error *error)
{
    const struct timespec delay = {.tv_nsec = LOCK_DELAY_NS};
    enum wal_status status = WAL_OK;

    for (unsigned i = 0; status == WAL_OK && i < LOCK_TRIES &&
                         flock(fd, LOCK_EX | LOCK_NB) != 0 &&
                         (errno == EWOULDBLOCK || errno == EINTR);
         i++) {
        nanosleep(&delay, NULL);
        status = wal__import_progress(import, name, 0, 0, error);
    }
    return status;
}

int wal__source_file_end(int fd, uint64_t *size)
{
    char bytes[4096];

    while (*size > 0) {
        size_t part = *size < sizeof(bytes) ? (size_t)*size : sizeof(bytes);
        ssize_t got = pread(fd, bytes, part, (off_t)(*size - part));
        const char *newline;

        if (got < 0 || (size_t)got != part) {
            errno = got < 0 ? errno : ESTALE;
            return -1;
        }
        newline = memrchr(bytes, '\n', part);
        if (newline != NULL) {
            *size -= part - (size_t)(newline + 1 - bytes);
            return 0;
        }
        *size -= part;
    }
    return 0;
}
