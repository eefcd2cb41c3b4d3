/*
 * view_fs.c - directories and files below a view's root (view_fs.h, SPEC.md
 * 10.3).
 *
 * Threads: any thread.
 */
#include "convert/files/view_fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/error.h"
#include "format/bytes/assert.h"

#define NAME_SIZE 256 /* of a path component, with its NUL */

bool wal__file_stamp_equal(const struct wal__file_stamp *one,
                           const struct wal__file_stamp *two)
{
    return one->size == two->size && one->mtime_ns == two->mtime_ns &&
           one->inode == two->inode;
}

enum wal_status wal__view_fs_fail(struct wal_error *error, const char *name)
{
    int number = errno;

    switch (number) {
    case ELOOP:
    case ENOTDIR:
        return wal__fail_at(error, WAL_EIO, number, name, 0,
                            "a component of the path is no directory");
    case ENOENT:
        return wal__fail_at(error, WAL_ENOTFOUND, number, name, 0, "%s",
                            strerror(number));
    case ENOSPC:
    case EDQUOT:
        return wal__fail_at(error, WAL_ENOSPACE, number, name, 0, "%s",
                            strerror(number));
    case EACCES:
    case EPERM:
    case EROFS:
        return wal__fail_at(error, WAL_EACCESS, number, name, 0, "%s",
                            strerror(number));
    case EISDIR:
        return wal__fail_at(error, WAL_ENOTFILE, number, name, 0, "%s",
                            strerror(number));
    case ENOMEM:
        return wal__fail_at(error, WAL_ENOMEM, number, name, 0, "no memory");
    default:
        return wal__fail_at(error, WAL_EIO, number, name, 0, "%s",
                            strerror(number));
    }
}

/* Whether the relative path stays below its directory. */
static bool view_fs_is_beneath(const char *path)
{
    const char *part = path;

    for (;;) {
        size_t size = strcspn(part, "/");
        if (size == 0 || size >= NAME_SIZE || (size == 1 && part[0] == '.') ||
            (size == 2 && part[0] == '.' && part[1] == '.')) {
            return false;
        }
        if (part[size] == '\0') {
            return true;
        }
        part += size + 1;
    }
}

/* Creates a directory, durably unless the one above it may not be read. One
 * that exists was made by another process, which syncs it. */
static bool make_directory(int above, const char *name)
{
    bool is_made;
    int number;
    int fd;

    if (mkdirat(above, name, 0700) != 0) {
        return errno == EEXIST;
    }
    fd = openat(above, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return errno == EACCES;
    }
    is_made = fsync(fd) == 0;
    number = errno;
    close(fd);
    errno = number;
    return is_made;
}

/* Creates the root and its missing parents. */
static bool create_root(const struct wal__view_env *env, const char *root)
{
    int flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
    int above = open(root[0] == '/' ? "/" : ".", flags);
    bool is_made = above >= 0;
    int number;

    (void)wal__view_fault_point(env, 0);
    while (is_made && *(root += strspn(root, "/")) != '\0') {
        char part[NAME_SIZE];
        size_t size = strcspn(root, "/");
        int fd = -1;

        if (size >= sizeof(part)) {
            errno = ENAMETOOLONG;
        } else {
            memcpy(part, root, size);
            part[size] = '\0';
            fd = openat(above, part, flags);
            if (fd < 0 && errno == ENOENT && make_directory(above, part)) {
                fd = openat(above, part, flags);
            }
        }
        number = errno;
        close(above);
        errno = number;
        is_made = fd >= 0;
        above = fd;
        root += size;
    }
    number = errno;
    if (above >= 0) {
        close(above);
    }
    errno = number;
    return is_made;
}

/* Opens a directory below another one, and closes that. */
static int descend(const struct wal__view_env *env, int above, const char *name,
                   bool create_missing)
{
    int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int fd = openat(above, name, flags);
    int number;

    if (fd < 0 && errno == ENOENT && create_missing) {
        (void)wal__view_fault_point(env, 0);
        if (make_directory(above, name)) {
            fd = openat(above, name, flags);
        }
    }
    number = errno;
    close(above);
    errno = number;
    return fd;
}

enum wal_status wal__view_fs_open_parent(const struct wal__view_env *env,
                                         const char *root, const char *path,
                                         bool create_missing, int *fd,
                                         const char **name,
                                         struct wal_error *error)
{
    char part[NAME_SIZE];
    const char *slash;
    int at;

    if (!view_fs_is_beneath(path)) {
        return wal__fail_at(
            error, WAL_EOUTSIDE, 0, path, 0,
            "the path leaves the output directory; not written");
    }
    at = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (at < 0 && errno == ENOENT && create_missing && create_root(env, root)) {
        at = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    while (at >= 0 && (slash = strchr(path, '/')) != NULL) {
        snprintf(part, sizeof(part), "%.*s", (int)(slash - path), path);
        at = descend(env, at, part, create_missing);
        path = slash + 1;
    }
    if (at < 0) {
        return wal__view_fs_fail(error, root);
    }
    *fd = at;
    *name = path;
    return WAL_OK;
}

static void fill_stamp(const struct stat *stat, struct wal__file_stamp *stamp)
{
    stamp->size = (uint64_t)stat->st_size;
    stamp->mtime_ns =
        (int64_t)stat->st_mtim.tv_sec * 1000000000 + stat->st_mtim.tv_nsec;
    stamp->inode = (uint64_t)stat->st_ino;
}

enum wal_status wal__view_fs_open(int directory, const char *name, int *fd,
                                  struct wal__file_stamp *stamp,
                                  struct wal_error *error)
{
    int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    struct stat stat;
    int opened = openat(directory, name, flags);

    if (opened < 0) {
        return wal__view_fs_fail(error, name);
    }
    if (fstat(opened, &stat) != 0 || !S_ISREG(stat.st_mode)) {
        close(opened);
        return wal__fail_at(error, WAL_ENOTFILE, 0, name, 0,
                            "exists and is no regular file");
    }
    fill_stamp(&stat, stamp);
    *fd = opened;
    return WAL_OK;
}

enum wal_status wal__view_fs_create(const struct wal__view_env *env,
                                    int directory, const char *name, int *fd,
                                    struct wal_error *error)
{
    int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC;
    int opened;

    (void)wal__view_fault_point(env, 0);
    opened = openat(directory, name, flags, 0600);
    /* One that was left may be another name of a file that was linked into
     * place: it must not be truncated. */
    if (opened < 0 && errno == EEXIST &&
        wal__view_fs_remove(env, directory, name)) {
        opened = openat(directory, name, flags, 0600);
    }
    if (opened < 0) {
        return wal__view_fs_fail(error, name);
    }
    *fd = opened;
    return WAL_OK;
}

enum wal_status wal__view_fs_open_append(const struct wal__view_env *env,
                                         int directory, const char *name,
                                         int *fd, struct wal_error *error)
{
    int flags = O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    int opened;

    (void)wal__view_fault_point(env, 0);
    opened = openat(directory, name, flags);
    if (opened < 0) {
        return wal__view_fs_fail(error, name);
    }
    *fd = opened;
    return WAL_OK;
}

enum wal_status wal__view_fs_write(const struct wal__view_env *env, int fd,
                                   const void *data, size_t size,
                                   struct wal_error *error)
{
    const char *at = data;

    while (size > 0) {
        ssize_t put = write(fd, at, wal__view_fault_point(env, size));

        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put < 0) {
            return wal__view_fs_fail(error, NULL);
        }
        WAL__ASSERT((size_t)put <= size);
        at += put;
        size -= (size_t)put;
    }
    return WAL_OK;
}

enum wal_status wal__view_fs_sync(const struct wal__view_env *env, int fd,
                                  struct wal__file_stamp *stamp,
                                  struct wal_error *error)
{
    struct stat stat;

    (void)wal__view_fault_point(env, 0);
    if (fdatasync(fd) != 0 || fstat(fd, &stat) != 0) {
        return wal__view_fs_fail(error, NULL);
    }
    fill_stamp(&stat, stamp);
    return WAL_OK;
}

void wal__view_fs_set_time(int fd, int64_t ms)
{
    const struct timespec times[2] = {
        {.tv_nsec = UTIME_OMIT},
        {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000 * 1000000)},
    };

    if (ms > 0) {
        (void)futimens(fd, times); /* a file without it is complete as well */
    }
}

enum wal_status wal__view_fs_rename(const struct wal__view_env *env, int from,
                                    const char *old, int to, const char *name,
                                    bool is_durable, struct wal_error *error)
{
    (void)wal__view_fault_point(env, 0);
    if (renameat(from, old, to, name) != 0 || (is_durable && fsync(to) != 0)) {
        return wal__view_fs_fail(error, name);
    }
    return WAL_OK;
}

enum wal_status wal__view_fs_sync_names(const struct wal__view_env *env,
                                        int directory, const char *name,
                                        struct wal_error *error)
{
    (void)wal__view_fault_point(env, 0);
    return fsync(directory) == 0 ? WAL_OK : wal__view_fs_fail(error, name);
}

bool wal__view_fs_remove(const struct wal__view_env *env, int directory,
                         const char *name)
{
    (void)wal__view_fault_point(env, 0);
    return unlinkat(directory, name, 0) == 0 || errno == ENOENT;
}
