/*
 * atomic_file.c - files below a directory that get their names when they are
 * whole.
 *
 * Threads: one.
 */
#include "tools/cli/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

int cli_make_directory_at(int above, const char *name)
{
    if (mkdirat(above, name, 0700) != 0 && errno != EEXIST) {
        return -1;
    }
    return openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

int cli_atomic_file_create(struct cli_atomic_file *place, int directory)
{
    int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;

    *place = (struct cli_atomic_file){.fd = -1, .directory = directory};
    for (unsigned i = 0; place->fd < 0 && i < 1000; i++) {
        snprintf(place->temporary, sizeof(place->temporary),
                 ".checkpoint-%ld-%u", (long)getpid(), i);
        place->fd = openat(directory, place->temporary, flags, 0600);
        if (place->fd < 0 && errno != EEXIST) {
            break;
        }
    }
    return place->fd >= 0 ? 0 : errno;
}

int cli_atomic_file_write(const struct cli_atomic_file *place, const void *data,
                          size_t size)
{
    const char *at = data;

    while (size > 0) {
        ssize_t done = write(place->fd, at, size);

        if (done < 0 && errno != EINTR) {
            return errno;
        }
        at += done > 0 ? done : 0;
        size -= done > 0 ? (size_t)done : 0;
    }
    return 0;
}

int cli_atomic_file_commit(struct cli_atomic_file *place, const char *name,
                           int number)
{
    if (close(place->fd) != 0 && number == 0) {
        number = errno;
    }
    if (number == 0 && renameat(place->directory, place->temporary,
                                place->directory, name) != 0) {
        number = errno;
    }
    if (number != 0) {
        unlinkat(place->directory, place->temporary, 0);
    }
    place->fd = -1;
    return number;
}
