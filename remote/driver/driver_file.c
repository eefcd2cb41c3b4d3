/*
 * driver_file.c - objects as the files of a local directory (driver_file.h,
 * SPEC.md 11.3).
 *
 * An object is written to a temporary file in its directory, which is synced
 * and then linked (put_if_absent) or renamed (put) to its name; the directory
 * is synced last. The names of temporary files begin with '~', which no object
 * has in its name: those that a killed process left are never listed or read.
 *
 * Invariant: a file with the name of an object is whole and does not change.
 * Any thread.
 */
#include "remote/driver/driver_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/descriptor.h"
#include "engine/base/error.h"
#include "remote/driver/file_place.h"
#include "remote/driver/object_name.h"

struct driver_file {
    struct wal__driver driver; /* first: what callers have */
    const struct wal__heap *heap;
    struct wal__file_place place;
    char directory[]; /* of the place */
};

static struct driver_file *of(struct wal__driver *driver)
{
    return (struct driver_file *)driver;
}

static int write_all(int fd, const uint8_t *data, size_t size)
{
    while (size > 0) {
        ssize_t written;

        WAL__RETRY_EINTR(written, write(fd, data, size));
        if (written < 0) {
            return -1;
        }
        data += written;
        size -= (size_t)written;
    }
    return 0;
}

/* Creates a file that no other thread or process has. */
static int create_temporary(int directory, char *name, size_t capacity)
{
    static _Atomic uint64_t last;
    int fd;

    do {
        (void)snprintf(name, capacity, "~%ld.%llu", (long)getpid(),
                       (unsigned long long)atomic_fetch_add(&last, 1));
        WAL__RETRY_EINTR(
            fd,
            openat(directory, name,
                   O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    } while (fd < 0 && errno == EEXIST);
    return wal__descriptor_above_stdio(fd);
}

/* Writes and syncs a temporary file in `directory`. On failure there is none,
 * and errno is set. */
static int write_temporary(int directory, struct wal_slice bytes, char *name,
                           size_t capacity)
{
    int fd = create_temporary(directory, name, capacity);
    int result;

    if (fd < 0) {
        return -1;
    }
    result = write_all(fd, bytes.data, bytes.size);
    if (result == 0) {
        WAL__RETRY_EINTR(result, fsync(fd));
    }

    int code = errno;

    if (close(fd) != 0 && result == 0) {
        result = -1;
        code = errno;
    }
    if (result != 0) {
        (void)unlinkat(directory, name, 0);
        errno = code;
    }
    return result;
}

static bool is_directory(const struct wal__file_at *at)
{
    struct stat found;

    return fstatat(at->fd, at->leaf, &found, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISDIR(found.st_mode);
}

/* Reports that the temporary file could not get the name of the object. */
static enum wal_status fail_name(const struct wal__file_place *place,
                                 const char *name,
                                 const struct wal__file_at *at,
                                 struct wal_error *error)
{
    int code = errno;

    if ((code == EEXIST || code == EISDIR) && is_directory(at)) {
        return wal__invalid(error,
                            "%s cannot be made: other objects are in a "
                            "directory of that name",
                            name);
    }
    if (code == EEXIST) {
        return wal__fail(error, WAL_EEXISTS, "the object %s exists", name);
    }
    errno = code;
    return wal__file_fail(place, name, "cannot name the object", error);
}

static enum wal_status put_file(const struct wal__file_place *place,
                                const char *name, struct wal_slice bytes,
                                bool replace, struct wal_error *error)
{
    char temporary[64];
    struct wal__file_at at = {-1, NULL};
    enum wal_status status = wal__object_check(name, bytes, error);
    int result;

    if (status == WAL_OK) {
        status = wal__file_make(place, name, &at, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    if (write_temporary(at.fd, bytes, temporary, sizeof(temporary)) != 0) {
        status = wal__file_fail(place, name, "cannot write the object", error);
        wal__file_close(&at);
        return status;
    }
    result = replace ? renameat(at.fd, temporary, at.fd, at.leaf)
                     : linkat(at.fd, temporary, at.fd, at.leaf, 0);
    if (result != 0 && (errno == EPERM || errno == EOPNOTSUPP)) {
        status = wal__file_fail(place, name,
                                "cannot create the object: the file system "
                                "has no hard links, by which one of several "
                                "that create it succeeds",
                                error);
    } else if (result != 0) {
        status = fail_name(place, name, &at, error);
    }
    if (result != 0 || !replace) {
        (void)unlinkat(at.fd, temporary, 0);
    }
    /* Also after WAL_EEXISTS: the caller may now rely on the other object. */
    if (status == WAL_OK || status == WAL_EEXISTS) {
        WAL__RETRY_EINTR(result, fsync(at.fd));
        if (result != 0) {
            status = wal__file_fail(
                place, name, "cannot sync the directory of the object", error);
        }
    }
    wal__file_close(&at);
    return status;
}

static enum wal_status put_if_absent(struct wal__driver *driver,
                                     const char *name, struct wal_slice bytes,
                                     struct wal_error *error)
{
    return put_file(&of(driver)->place, name, bytes, false, error);
}

static enum wal_status put(struct wal__driver *driver, const char *name,
                           struct wal_slice bytes, struct wal_error *error)
{
    return put_file(&of(driver)->place, name, bytes, true, error);
}

/* Opens the file of an object, to be read. WAL_ENOTFOUND. */
static enum wal_status open_object(const struct wal__file_place *place,
                                   const char *name, int *fd, uint64_t *size,
                                   struct wal_error *error)
{
    struct wal__file_at at = {-1, NULL};
    struct stat found = {0};
    enum wal_status status = wal__object_name_check(name, error);
    int opened;

    if (status == WAL_OK) {
        status = wal__file_find(place, name, &at, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    WAL__RETRY_EINTR(
        opened,
        openat(at.fd, at.leaf, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    opened = wal__descriptor_above_stdio(opened);
    if (opened < 0 ? errno == ENOENT || errno == ELOOP || errno == ENXIO
                   : fstat(opened, &found) != 0 || !S_ISREG(found.st_mode)) {
        status = wal__fail(error, WAL_ENOTFOUND, "there is no object %s", name);
    } else if (opened < 0) {
        status = wal__file_fail(place, name, "cannot open the object", error);
    }
    wal__file_close(&at);
    if (status == WAL_OK) {
        *fd = opened;
        *size = (uint64_t)found.st_size;
    } else if (opened >= 0) {
        (void)close(opened);
    }
    return status;
}

/* Appends what the file has of the range; errno is 0 when there is no memory.
 */
static int read_range(int fd, uint64_t offset, uint64_t size,
                      struct wal__buf *bytes)
{
    uint8_t *end;
    size_t done = 0;

    errno = 0;
    if (wal__buf_reserve(bytes, (size_t)size, &end) != WAL_OK) {
        return -1;
    }
    while (done < size) {
        ssize_t got;

        WAL__RETRY_EINTR(got, pread(fd, end + done, (size_t)size - done,
                                    (off_t)(offset + done)));
        if (got < 0) {
            return -1;
        }
        if (got == 0) {
            break;
        }
        done += (size_t)got;
    }
    bytes->size += done;
    return 0;
}

static enum wal_status get(struct wal__driver *driver, const char *name,
                           uint64_t offset, uint64_t size,
                           struct wal__buf *bytes, struct wal_error *error)
{
    const struct wal__file_place *place = &of(driver)->place;
    uint64_t total = 0;
    int fd = -1;
    enum wal_status status = open_object(place, name, &fd, &total, error);

    if (status != WAL_OK) {
        return status;
    }
    offset = offset < total ? offset : total;
    size = size < total - offset ? size : total - offset;
    if (size > WAL__OBJECT_MAX) {
        errno = EFBIG;
        status = wal__file_fail(place, name, "the object is too big", error);
    } else if (read_range(fd, offset, size, bytes) != 0) {
        status = errno == 0 ? wal__no_memory(error)
                            : wal__file_fail(place, name,
                                             "cannot read the object", error);
    }
    (void)close(fd);
    return status;
}

static enum wal_status head(struct wal__driver *driver, const char *name,
                            uint64_t *size, struct wal_error *error)
{
    int fd = -1;
    enum wal_status status =
        open_object(&of(driver)->place, name, &fd, size, error);

    if (status == WAL_OK) {
        (void)close(fd);
    }
    return status;
}

static enum wal_status list(struct wal__driver *driver, const char *prefix,
                            const char *after, wal__driver_list_fn *each,
                            void *ctx, struct wal_error *error)
{
    return wal__file_list(&of(driver)->place, prefix, after, each, ctx, error);
}

/* Whether the call failed because there is no object of that name. */
static bool is_absent(const struct wal__file_at *at, int code)
{
    return code == ENOENT ||
           ((code == EISDIR || code == EPERM) && is_directory(at));
}

static enum wal_status remove_object(struct wal__driver *driver,
                                     const char *name, struct wal_error *error)
{
    const struct wal__file_place *place = &of(driver)->place;
    struct wal_error detail = {.struct_size = sizeof(detail)};
    struct wal__file_at at = {-1, NULL};
    enum wal_status status = wal__object_name_check(name, error);
    int result;

    if (status != WAL_OK) {
        return status;
    }
    status = wal__file_find(place, name, &at, &detail);
    if (status == WAL_ENOTFOUND) {
        return WAL_OK;
    }
    if (status != WAL_OK) {
        wal__error_copy(error, &detail);
        return status;
    }
    result = unlinkat(at.fd, at.leaf, 0);
    if (result == 0 || !is_absent(&at, errno)) {
        if (result == 0) {
            WAL__RETRY_EINTR(result, fsync(at.fd));
        }
        if (result != 0) {
            status =
                wal__file_fail(place, name, "cannot remove the object", error);
        }
    }
    wal__file_close(&at);
    return status;
}

/* A sweep of temporary files; status: of the first that failed. */
struct sweep {
    const struct wal__file_place *place;
    struct wal_error *error;
    enum wal_status status;
};

static bool remove_temporary(void *ctx, const char *name, uint64_t size)
{
    struct sweep *sweep = ctx;
    struct wal__file_at at = {-1, NULL};
    int result;

    (void)size;
    sweep->status = wal__file_find(sweep->place, name, &at, sweep->error);
    if (sweep->status == WAL_OK) {
        result = unlinkat(at.fd, at.leaf, 0);
        if (result == 0) {
            WAL__RETRY_EINTR(result, fsync(at.fd));
        }
        if (result != 0 && errno != ENOENT) {
            sweep->status =
                wal__file_fail(sweep->place, name,
                               "cannot remove a temporary file", sweep->error);
        }
        wal__file_close(&at);
    }
    return sweep->status == WAL_OK;
}

static enum wal_status sweep(struct wal__driver *driver, const char *prefix,
                             struct wal_error *error)
{
    struct sweep sweep = {&of(driver)->place, error, WAL_OK};
    enum wal_status status = wal__file_list_temporary(
        sweep.place, prefix, remove_temporary, &sweep, error);

    return status == WAL_OK ? sweep.status : status;
}

static void close_driver(struct wal__driver *driver)
{
    struct driver_file *self = of(driver);

    wal__heap_free(self->heap, self);
}

static const struct wal__driver_calls calls = {.put_if_absent = put_if_absent,
                                               .put = put,
                                               .get = get,
                                               .head = head,
                                               .list = list,
                                               .remove = remove_object,
                                               .sweep = sweep,
                                               .close = close_driver};

enum wal_status wal__driver_file_open(const struct wal__driver_url *url,
                                      const struct wal__heap *heap,
                                      struct wal__driver **driver,
                                      struct wal_error *error)
{
    size_t size = strlen(url->directory) + 1;
    struct driver_file *self = wal__heap_zalloc(heap, sizeof(*self) + size);

    if (self == NULL) {
        return wal__no_memory(error);
    }
    memcpy(self->directory, url->directory, size);
    self->driver.calls = &calls;
    self->heap = heap;
    self->place = (struct wal__file_place){heap, self->directory};
    *driver = &self->driver;
    return WAL_OK;
}
