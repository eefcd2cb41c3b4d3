/*
 * libc_calls.h - defines the calls of the C library by which views change files, in the program
 * that includes this, once: they also change the disk of view_disk.h, or fail. No sync reaches the
 * real disk, which loses no power.
 */
#ifndef AGENTWAL_TESTS_SIM_VIEW_LIBC_CALLS_H
#define AGENTWAL_TESTS_SIM_VIEW_LIBC_CALLS_H

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/sim/view/view_disk.h"

/* NOLINTBEGIN(readability-inconsistent-declaration-parameter-name) */

static bool fails_before(enum view_disk_change change, const char *path, size_t *size)
{
    int error = view_disk_before(change, path, size);

    errno = error;
    return error != 0;
}

int openat(int directory, const char *name, int flags, ...)
{
    char path[VIEW_DISK_PATH];
    bool makes = (flags & O_CREAT) != 0 && view_disk_find_at(directory, name, path) &&
                 ((flags & O_TRUNC) != 0 || faccessat(directory, name, F_OK, 0) != 0);
    mode_t mode = 0;
    va_list arguments;
    int fd;

    va_start(arguments, flags);
    if ((flags & O_CREAT) != 0) {
        mode = va_arg(arguments, mode_t);
    }
    va_end(arguments);
    if (makes && fails_before(VIEW_DISK_CREATE, path, NULL)) {
        return -1;
    }
    fd = (int)syscall(SYS_openat, directory, name, flags, mode);
    if (makes && fd >= 0) {
        view_disk_repeat(VIEW_DISK_CREATE, path, NULL);
        view_disk_note(path, fd);
    }
    return fd;
}

ssize_t write(int fd, const void *data, size_t size)
{
    char path[VIEW_DISK_PATH];
    bool is_repeated = view_disk_find(fd, path);
    ssize_t put;

    if (is_repeated && fails_before(VIEW_DISK_WRITE, path, &size)) {
        return -1;
    }
    put = syscall(SYS_write, fd, data, size);
    if (is_repeated && put > 0) {
        view_disk_repeat_write(path, fd, data, (size_t)put);
    }
    return put;
}

/* Files are copied by reading and writing, which is repeated. */
ssize_t copy_file_range(int from, off_t *offset, int to, off_t *to_offset, size_t size,
                        unsigned flags)
{
    char path[VIEW_DISK_PATH];

    if (view_disk_find(to, path)) {
        errno = EXDEV;
        return -1;
    }
    return syscall(SYS_copy_file_range, from, offset, to, to_offset, size, flags);
}

int fdatasync(int fd)
{
    char path[VIEW_DISK_PATH];

    if (view_disk_find(fd, path)) {
        if (fails_before(VIEW_DISK_SYNC, path, NULL)) {
            return -1;
        }
        view_disk_repeat(VIEW_DISK_SYNC, path, NULL);
    }
    return 0;
}

int fsync(int fd)
{
    char path[VIEW_DISK_PATH];

    if (view_disk_find(fd, path)) {
        if (fails_before(VIEW_DISK_SYNC_DIRECTORY, path, NULL)) {
            return -1;
        }
        view_disk_repeat(VIEW_DISK_SYNC_DIRECTORY, path, NULL);
    }
    return 0;
}

int futimens(int fd, const struct timespec times[2])
{
    char path[VIEW_DISK_PATH];
    int result = (int)syscall(SYS_utimensat, fd, NULL, times, 0);

    if (result == 0 && view_disk_find(fd, path)) {
        view_disk_note(path, fd);
    }
    return result;
}

int mkdirat(int directory, const char *name, mode_t mode)
{
    char path[VIEW_DISK_PATH];
    bool makes =
        view_disk_find_at(directory, name, path) && faccessat(directory, name, F_OK, 0) != 0;
    int result;

    if (makes && fails_before(VIEW_DISK_MAKE_DIRECTORY, path, NULL)) {
        return -1;
    }
    result = (int)syscall(SYS_mkdirat, directory, name, mode);
    if (makes && result == 0) {
        view_disk_repeat(VIEW_DISK_MAKE_DIRECTORY, path, NULL);
    }
    return result;
}

int mkdir(const char *name, mode_t mode)
{
    return mkdirat(AT_FDCWD, name, mode);
}

int renameat(int from, const char *old, int to, const char *name)
{
    char path[VIEW_DISK_PATH];
    char target[VIEW_DISK_PATH];
    bool is_repeated = view_disk_find_at(from, old, path) && view_disk_find_at(to, name, target);
    int result;

    if (is_repeated && fails_before(VIEW_DISK_RENAME, path, NULL)) {
        return -1;
    }
    result = (int)syscall(SYS_renameat, from, old, to, name);
    if (is_repeated && result == 0) {
        view_disk_repeat(VIEW_DISK_RENAME, path, target);
    }
    return result;
}

int linkat(int from, const char *old, int to, const char *name, int flags)
{
    char path[VIEW_DISK_PATH];
    char target[VIEW_DISK_PATH];
    bool is_repeated = view_disk_find_at(from, old, path) && view_disk_find_at(to, name, target) &&
                       faccessat(to, name, F_OK, 0) != 0;
    int result;

    if (is_repeated && fails_before(VIEW_DISK_LINK, path, NULL)) {
        return -1;
    }
    result = (int)syscall(SYS_linkat, from, old, to, name, flags);
    if (is_repeated && result == 0) {
        view_disk_repeat(VIEW_DISK_LINK, path, target);
    }
    return result;
}

int unlinkat(int directory, const char *name, int flags)
{
    char path[VIEW_DISK_PATH];
    bool is_repeated =
        view_disk_find_at(directory, name, path) && faccessat(directory, name, F_OK, 0) == 0;
    enum view_disk_change change =
        (flags & AT_REMOVEDIR) != 0 ? VIEW_DISK_REMOVE_DIRECTORY : VIEW_DISK_REMOVE;
    int result;

    if (is_repeated && fails_before(change, path, NULL)) {
        return -1;
    }
    result = (int)syscall(SYS_unlinkat, directory, name, flags);
    if (is_repeated && result == 0) {
        view_disk_repeat(change, path, NULL);
    }
    return result;
}

int fstat(int fd, struct stat *stat)
{
    int result = (int)syscall(SYS_fstat, fd, stat);

    if (result == 0) {
        view_disk_translate(stat);
    }
    return result;
}

int fstatat(int directory, const char *name, struct stat *stat, int flags)
{
    int result = (int)syscall(SYS_newfstatat, directory, name, stat, flags);

    if (result == 0) {
        view_disk_translate(stat);
    }
    return result;
}

/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */

#endif
