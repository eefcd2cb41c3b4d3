/*
 * atomic_file.c - write a file under a temporary name, rename it when complete.
 *
 * Threads: the tools are single-threaded.
 */
#include "tools/cli/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

int cli_make_directory_at(int parent, const char *name)
{
    if (mkdirat(parent, name, 0700) != 0 && errno != EEXIST) {
        return -1;
    }
    return openat(parent, name,
                  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

int cli_atomic_file_create(struct cli_atomic_file *file, int directory)
{
    int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;

    *file = (struct cli_atomic_file){.fd = -1, .directory = directory};
    for (unsigned i = 0; file->fd < 0 && i < 1000; i++) {
        snprintf(file->temporary, sizeof(file->temporary), ".checkpoint-%ld-%u",
                 (long)getpid(), i);
        file->fd = openat(directory, file->temporary, flags, 0600);
        if (file->fd < 0 && errno != EEXIST) {
            break;
        }
    }
    return file->fd >= 0 ? 0 : errno;
}

int cli_atomic_file_write(const struct cli_atomic_file *file, const void *data,
                          size_t size)
{
    const char *next = data;

    while (size > 0) {
        ssize_t done = write(file->fd, next, size);

        if (done < 0 && errno != EINTR) {
            return errno;
        }
        next += done > 0 ? done : 0;
        size -= done > 0 ? (size_t)done : 0;
    }
    return 0;
}

int cli_atomic_file_commit(struct cli_atomic_file *file, const char *name,
                           int error_number)
{
    if (close(file->fd) != 0 && error_number == 0) {
        error_number = errno;
    }
    if (error_number == 0 && renameat(file->directory, file->temporary,
                                      file->directory, name) != 0) {
        error_number = errno;
    }
    if (error_number != 0) {
        unlinkat(file->directory, file->temporary, 0);
    }
    file->fd = -1;
    return error_number;
}
