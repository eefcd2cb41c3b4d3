/*
 * file_place.c - the directories of a remote in the file system (file_place.h).
 * Invariant: no path follows a symbolic link below the directory of the remote.
 * Any thread.
 */
#include "remote/driver/file_place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/descriptor.h"
#include "engine/base/error.h"
#include "remote/driver/object_name.h"

enum {
    DIRECTORY_FLAGS = O_RDONLY | O_DIRECTORY | O_CLOEXEC
};

enum wal_status wal__file_fail(const struct wal__file_place *place,
                               const char *name, const char *what,
                               struct wal_error *error)
{
    int code = errno;
    char url[sizeof(error->file)];
    enum wal_status status = code == ENOSPC || code == EDQUOT ? WAL_ENOSPACE
                             : code == ENOMEM                 ? WAL_ENOMEM
                             : code == EACCES || code == EPERM || code == EROFS
                                 ? WAL_EACCESS
                                 : WAL_EREMOTE;

    (void)snprintf(url, sizeof(url), "file://%s%s%s", place->directory,
                   name[0] == '\0' ? "" : "/", name);
    return wal__fail_at(error, status, code, url, 0, "%s: %s", what,
                        strerrordesc_np(code));
}

enum wal_status wal__file_root(const struct wal__file_place *place, int *fd,
                               struct wal_error *error)
{
    int opened;

    WAL__RETRY_EINTR(opened, open(place->directory, DIRECTORY_FLAGS));
    opened = wal__descriptor_above_stdio(opened);
    if (opened >= 0) {
        *fd = opened;
        return WAL_OK;
    }
    if (errno == ENOENT || errno == ENOTDIR) {
        return wal__fail_at(error, WAL_ENOTSTORE, errno, place->directory, 0,
                            "the directory of the remote does not exist");
    }
    return wal__file_fail(place, "", "cannot open the directory of the remote",
                          error);
}

/* Opens the directory `part` in *fd, and closes *fd, also on failure. */
static int step_into(int *fd, const char *part)
{
    int below;

    WAL__RETRY_EINTR(below, openat(*fd, part, DIRECTORY_FLAGS | O_NOFOLLOW));
    below = wal__descriptor_above_stdio(below);

    int code = errno;

    (void)close(*fd);
    errno = code;
    *fd = below;
    return below;
}

/* Makes the directory `part` in fd, and syncs fd also when it was there: the
 * process that made it may not have done that yet. */
static int make_in(int fd, const char *part)
{
    int result;

    if (mkdirat(fd, part, 0700) != 0 && errno != EEXIST) {
        return -1;
    }
    WAL__RETRY_EINTR(result, fsync(fd));
    return result;
}

static enum wal_status no_directory(const struct wal__file_place *place,
                                    const char *name, bool make,
                                    struct wal_error *error)
{
    if (errno == ENOENT && !make) {
        return wal__fail(error, WAL_ENOTFOUND, "there is no object %s", name);
    }
    if (errno == ENOTDIR || errno == ELOOP) {
        return make ? wal__invalid(error,
                                   "%s cannot be made: an object or a link "
                                   "has the name of one of its directories",
                                   name)
                    : wal__fail(error, WAL_ENOTFOUND, "there is no object %s",
                                name);
    }
    return wal__file_fail(place, name, "cannot open the directory of an object",
                          error);
}

static enum wal_status walk(const struct wal__file_place *place,
                            const char *name, bool make,
                            struct wal__file_at *at, struct wal_error *error)
{
    char part[WAL__OBJECT_NAME_MAX + 1];
    int fd = -1;
    enum wal_status status = wal__file_root(place, &fd, error);
    const char *slash;

    while (status == WAL_OK && (slash = strchr(name, '/')) != NULL) {
        memcpy(part, name, (size_t)(slash - name));
        part[slash - name] = '\0';
        if ((make && make_in(fd, part) != 0) || step_into(&fd, part) < 0) {
            status = no_directory(place, name, make, error);
        }
        name = slash + 1;
    }
    if (status != WAL_OK) {
        if (fd >= 0) {
            (void)close(fd);
        }
        return status;
    }
    *at = (struct wal__file_at){fd, name};
    return WAL_OK;
}

enum wal_status wal__file_find(const struct wal__file_place *place,
                               const char *name, struct wal__file_at *at,
                               struct wal_error *error)
{
    return walk(place, name, false, at, error);
}

enum wal_status wal__file_make(const struct wal__file_place *place,
                               const char *name, struct wal__file_at *at,
                               struct wal_error *error)
{
    return walk(place, name, true, at, error);
}

void wal__file_close(struct wal__file_at *at)
{
    if (at->fd >= 0) {
        (void)close(at->fd);
        at->fd = -1;
    }
}
