/*
 * io_posix.c - the table of io.h on the calls of POSIX and of system.h. worktree_posix.c is the
 * table of work trees.
 *
 * Invariant: one system call per call, repeated only after EINTR. Any thread.
 */
#include "engine/base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/descriptor.h"
#include "engine/base/heap.h"
#include "engine/base/map.h"
#include "engine/base/system.h"
#include "engine/base/worktree.h"
#include "format/bytes/assert.h"

struct wal__file {
    int fd;
    struct wal__close_on_fork close_on_fork; /* listed once it has locks */
};

static enum wal_status fail(int *sys_errno, int error)
{
    *sys_errno = error;
    return wal__io_status(error);
}

/* The status of a system call that returns a negative number on failure. */
static enum wal_status result_status(int result, int *sys_errno)
{
    return result < 0 ? fail(sys_errno, errno) : WAL_OK;
}

/* --- files -------------------------------------------------------------- */

static int open_flags(int flags)
{
    /* O_NONBLOCK: opening a FIFO does not wait for its other end. O_NOFOLLOW: a link in place of a
     * store's file leads to one that is not the store's. */
    int result = O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

    result |= (flags & WAL__IO_WRITE) != 0 ? O_RDWR : O_RDONLY;
    result |= (flags & WAL__IO_CREATE) != 0 ? O_CREAT : 0;
    result |= (flags & WAL__IO_EXCLUSIVE) != 0 ? O_EXCL : 0;
    result |= (flags & WAL__IO_TRUNCATE) != 0 ? O_TRUNC : 0;
    result |= (flags & WAL__IO_FOLLOW) != 0 ? 0 : O_NOFOLLOW;
    return result;
}

/* 0 for a regular file, else an errno for the type. */
static int check_regular(int fd)
{
    struct stat st;

    if (fstat(fd, &st) != 0) {
        return errno;
    }
    if (S_ISDIR(st.st_mode)) {
        return EISDIR;
    }
    return S_ISREG(st.st_mode) ? 0 : ENXIO;
}

/* Opens the path, or without one the file that the descriptor is of. */
static enum wal_status open_file(const char *path, int from, int flags, struct wal__file **file,
                                 int *sys_errno)
{
    /* The C library's heap: a test that fails allocations can replace the whole table. Allocates
     * before open, so that no file is created when memory is exhausted. */
    const struct wal__heap *heap = &wal__heap_libc;
    struct wal__file *created = wal__heap_alloc(heap, sizeof(*created));

    if (created == NULL) {
        return fail(sys_errno, ENOMEM);
    }
    memset(created, 0, sizeof(*created));
    WAL__RETRY_EINTR(created->fd, path != NULL ? open(path, open_flags(flags), 0600)
                                               : wal__system_reopen(from, open_flags(flags)));
    created->fd = wal__descriptor_above_stdio(created->fd);

    int error = created->fd < 0 ? errno : 0;

    if (error == 0) {
        error = check_regular(created->fd);
    }
    if (error != 0) {
        if (created->fd >= 0) {
            (void)close(created->fd);
        }
        wal__heap_free(heap, created);
        return fail(sys_errno, error);
    }
    *file = created;
    return WAL_OK;
}

static enum wal_status file_open(void *ctx, const char *path, int flags, struct wal__file **file,
                                 int *sys_errno)
{
    (void)ctx;
    return open_file(path, -1, flags, file, sys_errno);
}

enum wal_status wal__io_posix_reopen(int fd, int flags, struct wal__file **file, int *sys_errno)
{
    return open_file(NULL, fd, flags, file, sys_errno);
}

static void file_close(void *ctx, struct wal__file *file)
{
    (void)ctx;
    wal__close_on_fork_remove(&file->close_on_fork);
    /* Not retried: Linux frees the descriptor even after EINTR. */
    (void)close(file->fd);
    wal__heap_free(&wal__heap_libc, file);
}

int wal__io_posix_descriptor(const struct wal__file *file)
{
    return file->fd;
}

static enum wal_status file_pread(void *ctx, struct wal__file *file, void *data, size_t size,
                                  uint64_t offset, size_t *bytes_read, int *sys_errno)
{
    (void)ctx;
    ssize_t result;

    WAL__RETRY_EINTR(result, pread(file->fd, data, size, (off_t)offset));
    if (result < 0) {
        return fail(sys_errno, errno);
    }
    *bytes_read = (size_t)result;
    return WAL_OK;
}

static enum wal_status file_pwritev(void *ctx, struct wal__file *file, const struct iovec *iov,
                                    int count, uint64_t offset, size_t *bytes_written,
                                    int *sys_errno)
{
    (void)ctx;
    ssize_t result;

    /* More pieces than the kernel accepts make a short write, not an error. */
    if (count > IOV_MAX) {
        count = IOV_MAX;
    }
    WAL__RETRY_EINTR(result, pwritev(file->fd, iov, count, (off_t)offset));
    if (result < 0) {
        return fail(sys_errno, errno);
    }
    *bytes_written = (size_t)result;
    return WAL_OK;
}

static enum wal_status file_sync(void *ctx, struct wal__file *file, int *sys_errno)
{
    (void)ctx;
    int result;

    WAL__RETRY_EINTR(result, wal__system_sync(file->fd));
    return result_status(result, sys_errno);
}

/* Appends zeros until the file has `size` bytes. 0, or the errno. */
static int write_zeros(int fd, uint64_t offset, uint64_t size)
{
    static const uint8_t zeros[65536];

    while (offset < size) {
        uint64_t left = size - offset;
        size_t part = left < sizeof(zeros) ? (size_t)left : sizeof(zeros);
        ssize_t result;

        WAL__RETRY_EINTR(result, pwrite(fd, zeros, part, (off_t)offset));
        if (result <= 0) {
            return result < 0 ? errno : EIO;
        }
        offset += (uint64_t)result;
    }
    return 0;
}

/* For file systems without fallocate: only written bytes have disk space. */
static enum wal_status allocate_by_writing(int fd, uint64_t size, int *sys_errno)
{
    struct stat st;

    if (fstat(fd, &st) != 0) {
        return fail(sys_errno, errno);
    }

    int error = write_zeros(fd, (uint64_t)st.st_size, size);

    if (error != 0) {
        int result;

        /* Frees the last bytes of a full disk; the first failure counts. */
        WAL__RETRY_EINTR(result, ftruncate(fd, st.st_size));
        return fail(sys_errno, error);
    }
    return WAL_OK;
}

static void file_write_back(void *ctx, struct wal__file *file, uint64_t offset, uint64_t size)
{
    (void)ctx;
    wal__system_write_back(file->fd, offset, size);
}

static enum wal_status file_allocate(void *ctx, struct wal__file *file, uint64_t size,
                                     int *sys_errno)
{
    (void)ctx;
    int result;

    if (size == 0) {
        return WAL_OK;
    }
    WAL__RETRY_EINTR(result, wal__system_allocate(file->fd, size));
    if (result < 0 && errno == EOPNOTSUPP) {
        return allocate_by_writing(file->fd, size, sys_errno);
    }
    return result_status(result, sys_errno);
}

static enum wal_status file_clone(void *ctx, struct wal__file *from, struct wal__file *to,
                                  int *sys_errno)
{
    (void)ctx;
    int result;

    WAL__RETRY_EINTR(result, wal__system_clone(to->fd, from->fd));
    return result_status(result, sys_errno);
}

static enum wal_status file_punch(void *ctx, struct wal__file *file, uint64_t offset, uint64_t size,
                                  int *sys_errno)
{
    (void)ctx;
    int result;

    WAL__RETRY_EINTR(result, wal__system_punch(file->fd, offset, size));
    return result_status(result, sys_errno);
}

struct wal__io_stat wal__io_posix_stat(const struct stat *st)
{
    return (struct wal__io_stat){
        .size = (uint64_t)st->st_size,
        .allocated = (uint64_t)st->st_blocks * 512,
        .device = (uint64_t)st->st_dev,
        .inode = (uint64_t)st->st_ino,
        .is_directory = S_ISDIR(st->st_mode),
    };
}

static enum wal_status file_stat(void *ctx, struct wal__file *file, struct wal__io_stat *out,
                                 int *sys_errno)
{
    (void)ctx;
    struct stat st;
    int result;

    WAL__RETRY_EINTR(result, fstat(file->fd, &st));
    if (result < 0) {
        return fail(sys_errno, errno);
    }
    *out = wal__io_posix_stat(&st);
    return WAL_OK;
}

static enum wal_status file_map(void *ctx, struct wal__file *file, uint64_t size, bool writable,
                                void **at, int *sys_errno)
{
    (void)ctx;
    if (size > SIZE_MAX) {
        return fail(sys_errno, ENOMEM);
    }

    int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
    void *map = wal__guarded_map(file->fd, 0, (size_t)size, protection, MAP_SHARED);

    if (map == NULL) {
        return fail(sys_errno, errno);
    }
    *at = map;
    return WAL_OK;
}

/* Returns what precedes the address in its page, which the system has of 4 to 64 KiB: it takes
 * no other beginning, and rounds the size up. */
static size_t before_in_page(const void *at)
{
    return (uintptr_t)at % (uintptr_t)sysconf(_SC_PAGESIZE);
}

static enum wal_status file_populate(void *ctx, const void *at, uint64_t size, int *sys_errno)
{
    size_t before = before_in_page(at);
    int result;

    (void)ctx;
    WAL__RETRY_EINTR(
        result, wal__system_populate((uint8_t *)(uintptr_t)at - before, (size_t)size + before));
    if (result == 0) {
        return WAL_OK;
    }
    *sys_errno = errno;
    return errno == ENOTSUP ? WAL_EINVAL : WAL_EIO;
}

static enum wal_status file_populate_writable(void *ctx, void *at, uint64_t size, int *sys_errno)
{
    size_t before = before_in_page(at);
    int result;

    (void)ctx;
    WAL__RETRY_EINTR(result,
                     wal__system_populate_writable((uint8_t *)at - before, (size_t)size + before));
    return result_status(result, sys_errno);
}

static bool file_writes_in_place(void *ctx, struct wal__file *file)
{
    (void)ctx;
    return wal__system_writes_in_place(file->fd);
}

static void file_set_in_place(void *ctx, struct wal__file *file)
{
    (void)ctx;
    wal__system_set_in_place(file->fd);
}

static void file_evict(void *ctx, void *at, uint64_t size)
{
    uint8_t *begin = (uint8_t *)at - before_in_page(at);
    uint8_t *end = (uint8_t *)at + size;

    (void)ctx;
    end -= before_in_page(end);
    if (begin < end) {
        wal__system_evict(begin, (size_t)(end - begin));
    }
}

static void file_unmap(void *ctx, void *at, uint64_t size)
{
    (void)ctx;
    wal__guarded_unmap(at, (size_t)size);
}

static enum wal_status file_lock(void *ctx, struct wal__file *file, uint64_t offset,
                                 enum wal__io_lock mode, int *sys_errno)
{
    int result;

    (void)ctx;
    if (mode != WAL__IO_LOCK_TEST && !wal__close_on_fork_add(&file->close_on_fork, &file->fd)) {
        return fail(sys_errno, ENOMEM);
    }
    WAL__RETRY_EINTR(result, wal__descriptor_lock(file->fd, offset, mode, false));
    if (result < 0 && (errno == EAGAIN || errno == EACCES)) {
        *sys_errno = errno;
        return WAL_ELOCKED;
    }
    return result_status(result, sys_errno);
}

/* --- names -------------------------------------------------------------- */

static enum wal_status path_stat(void *ctx, const char *path, struct wal__io_stat *out,
                                 int *sys_errno)
{
    (void)ctx;
    struct stat st;
    int result;

    WAL__RETRY_EINTR(result, stat(path, &st));
    if (result < 0) {
        return fail(sys_errno, errno);
    }
    *out = wal__io_posix_stat(&st);
    return WAL_OK;
}

static enum wal_status path_make_directory(void *ctx, const char *path, int *sys_errno)
{
    (void)ctx;
    int result;

    WAL__RETRY_EINTR(result, mkdir(path, 0700));
    return result_status(result, sys_errno);
}

static enum wal_status path_remove_directory(void *ctx, const char *path, int *sys_errno)
{
    (void)ctx;
    int result;

    WAL__RETRY_EINTR(result, rmdir(path));
    return result_status(result, sys_errno);
}

static enum wal_status path_list(void *ctx, const char *path,
                                 enum wal_status (*each)(void *arg, const char *name), void *arg,
                                 int *sys_errno)
{
    (void)ctx;
    enum wal_status status;
    int error = 0;
    int fd;

    WAL__RETRY_EINTR(fd, open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    status = wal__descriptor_list(fd, each, arg, &error);
    if (error != 0) {
        return fail(sys_errno, error);
    }
    *sys_errno = 0; /* the failure of the callback has no errno */
    return status;
}

static enum wal_status path_rename(void *ctx, const char *from, const char *to, int *sys_errno)
{
    (void)ctx;
    int result;

    WAL__RETRY_EINTR(result, rename(from, to));
    return result_status(result, sys_errno);
}

static enum wal_status path_unlink(void *ctx, const char *path, int *sys_errno)
{
    (void)ctx;
    int result;

    WAL__RETRY_EINTR(result, unlink(path));
    return result_status(result, sys_errno);
}

static enum wal_status path_sync_directory(void *ctx, const char *path, int *sys_errno)
{
    (void)ctx;
    int fd;

    WAL__RETRY_EINTR(fd, open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd < 0) {
        return fail(sys_errno, errno);
    }

    int result;

    WAL__RETRY_EINTR(result, wal__system_sync_whole(fd));

    int error = result < 0 ? errno : 0;

    (void)close(fd);
    return error == 0 ? WAL_OK : fail(sys_errno, error);
}

static enum wal_status path_storage(void *ctx, const char *path, enum wal__storage *storage,
                                    char *name, int *sys_errno)
{
    (void)ctx;
    return result_status(wal__system_storage(path, storage, name), sys_errno);
}

static uint64_t path_free_space(void *ctx, const char *path)
{
    (void)ctx;
    struct statvfs fs;
    int result;

    WAL__RETRY_EINTR(result, statvfs(path, &fs));
    return result < 0 ? UINT64_MAX : (uint64_t)fs.f_bavail * fs.f_frsize;
}

/* --- clocks ------------------------------------------------------------- */

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    int result = clock_gettime(clock, &now);

    WAL__ASSERT(result == 0);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static int64_t now_ms(void *ctx)
{
    (void)ctx;
    return (int64_t)(clock_ns(CLOCK_REALTIME) / 1000000);
}

static uint64_t monotonic_ns(void *ctx)
{
    (void)ctx;
    return clock_ns(CLOCK_MONOTONIC);
}

/* --- processes ---------------------------------------------------------- */

static void futex_wait(void *ctx, const uint32_t *word, uint32_t expected, uint64_t timeout_ns)
{
    (void)ctx;
    wal__system_wait(word, expected, timeout_ns);
}

static void futex_wake(void *ctx, const uint32_t *word, uint32_t count)
{
    (void)ctx;
    wal__system_wake(word, count);
}

static void boot_id(void *ctx, uint8_t out[16])
{
    (void)ctx;
    wal__system_boot_id(out);
}

static uint32_t process_id(void *ctx)
{
    (void)ctx;
    return wal__system_process_id();
}

static uint64_t process_start_time(void *ctx, uint32_t pid)
{
    (void)ctx;
    return wal__system_start_time(pid);
}

static uint64_t process_namespace(void *ctx)
{
    (void)ctx;
    return wal__system_process_namespace();
}

static bool process_is_stopped(void *ctx, uint32_t pid)
{
    (void)ctx;
    return wal__system_is_stopped(pid);
}

static void list_mappers(void *ctx, const char *directory,
                         void (*each)(void *arg, uint32_t pid, uint64_t bytes), void *arg)
{
    (void)ctx;
    wal__system_list_mappers(directory, each, arg);
}

/* --- the table ---------------------------------------------------------- */

static void random_bytes(void *ctx, void *data, size_t size)
{
    (void)ctx;
    wal__system_random(data, size);
}

const struct wal__io wal__io_posix = {
    .open = file_open,
    .close = file_close,
    .pread = file_pread,
    .pwritev = file_pwritev,
    .sync = file_sync,
    .write_back = file_write_back,
    .allocate = file_allocate,
    .punch = file_punch,
    .stat = file_stat,
    .clone = file_clone,
    .map = file_map,
    .unmap = file_unmap,
    .populate = file_populate,
    .populate_writable = file_populate_writable,
    .writes_in_place = file_writes_in_place,
    .set_in_place = file_set_in_place,
    .evict = file_evict,
    .lock = file_lock,
    .path_stat = path_stat,
    .make_directory = path_make_directory,
    .list = path_list,
    .rename = path_rename,
    .unlink = path_unlink,
    .remove_directory = path_remove_directory,
    .sync_directory = path_sync_directory,
    .storage = path_storage,
    .free_space = path_free_space,
    .now_ms = now_ms,
    .monotonic_ns = monotonic_ns,
    .random = random_bytes,
    .boot_id = boot_id,
    .process_id = process_id,
    .process_start_time = process_start_time,
    .process_namespace = process_namespace,
    .process_is_stopped = process_is_stopped,
    .list_mappers = list_mappers,
    .futex_wait = futex_wait,
    .futex_wake = futex_wake,
    .threads = true,
    .worktree = &wal__worktree_posix,
};
