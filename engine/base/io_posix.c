/*
 * io_posix.c - the table of io.h on Linux: files and names; clock.c, futex.c,
 * process.c and random.c have the other calls. No section of SPEC.md.
 * Invariant: one system call per call, repeated only after EINTR. Any thread.
 */
#include "engine/base/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/base/close_on_fork.h"
#include "engine/base/descriptor.h"
#include "engine/base/file_system.h"
#include "engine/base/futex.h"
#include "engine/base/guarded_map.h"
#include "engine/base/heap.h"
#include "engine/base/process.h"
#include "engine/base/random.h"
#include "engine/base/worktree.h"

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

/* ------------------------------------------------------------- files --- */

static int open_flags(int flags)
{
    /* O_NONBLOCK: opening a FIFO does not wait for its other end. O_NOFOLLOW: a
     * link in place of a store's file leads to one that is not the store's. */
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

static enum wal_status file_open(void *ctx, const char *path, int flags,
                                 struct wal__file **file, int *sys_errno)
{
    (void)ctx;
    /* The C library's heap: a test that fails allocations can replace the whole
     * table. Allocates before open, so that no file is created when memory is
     * exhausted. */
    const struct wal__heap *heap = &wal__heap_libc;
    struct wal__file *created = wal__heap_alloc(heap, sizeof(*created));

    if (created == NULL) {
        return fail(sys_errno, ENOMEM);
    }
    memset(created, 0, sizeof(*created));
    WAL__RETRY_EINTR(created->fd, open(path, open_flags(flags), 0600));
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

static enum wal_status file_pread(void *ctx, struct wal__file *file, void *data,
                                  size_t size, uint64_t offset,
                                  size_t *bytes_read, int *sys_errno)
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

static enum wal_status file_pwritev(void *ctx, struct wal__file *file,
                                    const struct iovec *iov, int count,
                                    uint64_t offset, size_t *bytes_written,
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

static enum wal_status file_sync(void *ctx, struct wal__file *file,
                                 int *sys_errno)
{
    (void)ctx;
    int result;

    WAL__RETRY_EINTR(result, fdatasync(file->fd));
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
static enum wal_status allocate_by_writing(int fd, uint64_t size,
                                           int *sys_errno)
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

static void file_write_back(void *ctx, struct wal__file *file, uint64_t offset,
                            uint64_t size)
{
    (void)ctx;
    (void)sync_file_range(file->fd, (off_t)offset, (off_t)size,
                          SYNC_FILE_RANGE_WRITE);
}

static enum wal_status file_allocate(void *ctx, struct wal__file *file,
                                     uint64_t size, int *sys_errno)
{
    (void)ctx;
    int result;

    if (size == 0) {
        return WAL_OK;
    }
    WAL__RETRY_EINTR(result, fallocate(file->fd, 0, 0, (off_t)size));
    if (result < 0 && (errno == EOPNOTSUPP || errno == ENOSYS)) {
        return allocate_by_writing(file->fd, size, sys_errno);
    }
    return result_status(result, sys_errno);
}

static enum wal_status file_clone(void *ctx, struct wal__file *from,
                                  struct wal__file *to, int *sys_errno)
{
    (void)ctx;
    int result;

    WAL__RETRY_EINTR(result, ioctl(to->fd, FICLONE, from->fd));
    return result_status(result, sys_errno);
}

static enum wal_status file_punch(void *ctx, struct wal__file *file,
                                  uint64_t offset, uint64_t size,
                                  int *sys_errno)
{
    (void)ctx;
    int result;

    WAL__RETRY_EINTR(
        result, fallocate(file->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                          (off_t)offset, (off_t)size));
    return result_status(result, sys_errno);
}

static struct wal__io_stat stat_of(const struct stat *st)
{
    return (struct wal__io_stat){
        .size = (uint64_t)st->st_size,
        .allocated = (uint64_t)st->st_blocks * 512,
        .device = (uint64_t)st->st_dev,
        .inode = (uint64_t)st->st_ino,
        .is_directory = S_ISDIR(st->st_mode),
    };
}

static enum wal_status file_stat(void *ctx, struct wal__file *file,
                                 struct wal__io_stat *out, int *sys_errno)
{
    (void)ctx;
    struct stat st;
    int result;

    WAL__RETRY_EINTR(result, fstat(file->fd, &st));
    if (result < 0) {
        return fail(sys_errno, errno);
    }
    *out = stat_of(&st);
    return WAL_OK;
}

static enum wal_status file_map(void *ctx, struct wal__file *file,
                                uint64_t size, bool writable, void **at,
                                int *sys_errno)
{
    (void)ctx;
    if (size > SIZE_MAX) {
        return fail(sys_errno, ENOMEM);
    }

    int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
    void *map =
        wal__guarded_map(file->fd, 0, (size_t)size, protection, MAP_SHARED);

    if (map == NULL) {
        return fail(sys_errno, errno);
    }
    *at = map;
    return WAL_OK;
}

static enum wal_status file_populate(void *ctx, const void *at, uint64_t size,
                                     int *sys_errno)
{
    int result;

    (void)ctx;
    WAL__RETRY_EINTR(result, madvise((void *)(uintptr_t)at, (size_t)size,
                                     MADV_POPULATE_READ));
    if (result == 0) {
        return WAL_OK;
    }
    *sys_errno = errno;
    return errno == EINVAL || errno == ENOMEM ? WAL_EINVAL : WAL_EIO;
}

static enum wal_status file_populate_writable(void *ctx, void *at,
                                              uint64_t size, int *sys_errno)
{
    int result;

    (void)ctx;
    WAL__RETRY_EINTR(result, madvise(at, (size_t)size, MADV_POPULATE_WRITE));
    return result_status(result, sys_errno);
}

static bool file_writes_in_place(void *ctx, struct wal__file *file)
{
    (void)ctx;
    return wal__descriptor_writes_in_place(file->fd);
}

static void file_set_in_place(void *ctx, struct wal__file *file)
{
    (void)ctx;
    wal__descriptor_set_in_place(file->fd);
}

static void file_evict(void *ctx, void *at, uint64_t size)
{
    (void)ctx;
    (void)madvise(at, (size_t)size, MADV_DONTNEED);
}

static void file_unmap(void *ctx, void *at, uint64_t size)
{
    (void)ctx;
    wal__guarded_unmap(at, (size_t)size);
}

/* Replaces *lock by a conflicting lock, or by F_UNLCK. */
static enum wal_status test_lock(const struct wal__file *file,
                                 struct flock *lock, int *sys_errno)
{
    int result;

    WAL__RETRY_EINTR(result, fcntl(file->fd, F_OFD_GETLK, lock));
    if (result == 0 && lock->l_type != F_UNLCK) {
        *sys_errno = EAGAIN;
        return WAL_ELOCKED;
    }
    return result_status(result, sys_errno);
}

static enum wal_status file_lock(void *ctx, struct wal__file *file,
                                 uint64_t offset, enum wal__io_lock mode,
                                 int *sys_errno)
{
    static const short types[] = {
        [WAL__IO_LOCK_NONE] = F_UNLCK,
        [WAL__IO_LOCK_SHARED] = F_RDLCK,
        [WAL__IO_LOCK_EXCLUSIVE] = F_WRLCK,
        [WAL__IO_LOCK_TEST] = F_WRLCK,
    };
    struct flock lock = {
        .l_type = types[mode],
        .l_whence = SEEK_SET,
        .l_start = (off_t)offset,
        .l_len = 1,
    };
    int result;

    (void)ctx;
    if (mode == WAL__IO_LOCK_TEST) {
        return test_lock(file, &lock, sys_errno);
    }
    if (!wal__close_on_fork_add(&file->close_on_fork, &file->fd)) {
        return fail(sys_errno, ENOMEM);
    }
    WAL__RETRY_EINTR(result, fcntl(file->fd, F_OFD_SETLK, &lock));
    if (result < 0 && (errno == EAGAIN || errno == EACCES)) {
        *sys_errno = errno;
        return WAL_ELOCKED;
    }
    return result_status(result, sys_errno);
}

/* ------------------------------------------------------------- names --- */

static enum wal_status path_stat(void *ctx, const char *path,
                                 struct wal__io_stat *out, int *sys_errno)
{
    (void)ctx;
    struct stat st;
    int result;

    WAL__RETRY_EINTR(result, stat(path, &st));
    if (result < 0) {
        return fail(sys_errno, errno);
    }
    *out = stat_of(&st);
    return WAL_OK;
}

static enum wal_status path_make_directory(void *ctx, const char *path,
                                           int *sys_errno)
{
    (void)ctx;
    int result;

    WAL__RETRY_EINTR(result, mkdir(path, 0700));
    return result_status(result, sys_errno);
}

static enum wal_status path_remove_directory(void *ctx, const char *path,
                                             int *sys_errno)
{
    (void)ctx;
    int result;

    WAL__RETRY_EINTR(result, rmdir(path));
    return result_status(result, sys_errno);
}

/* The next name; NULL at the end, and on failure with the errno in *error. */
static const char *next_name(DIR *directory, int *error)
{
    const struct dirent *entry;

    do {
        errno = 0;
        entry = readdir(directory);
    } while (entry != NULL && (strcmp(entry->d_name, ".") == 0 ||
                               strcmp(entry->d_name, "..") == 0));
    *error = entry == NULL ? errno : 0;
    return entry == NULL ? NULL : entry->d_name;
}

static enum wal_status path_list(void *ctx, const char *path,
                                 enum wal_status (*each)(void *arg,
                                                         const char *name),
                                 void *arg, int *sys_errno)
{
    (void)ctx;
    enum wal_status status = WAL_OK;
    DIR *directory = opendir(path);
    int error = 0;

    if (directory == NULL) {
        return fail(sys_errno, errno);
    }
    while (status == WAL_OK) {
        const char *name = next_name(directory, &error);

        if (name == NULL) {
            break;
        }
        status = each(arg, name);
    }
    (void)closedir(directory);
    if (status != WAL_OK) {
        /* The failure of the callback has no errno. */
        *sys_errno = 0;
        return status;
    }
    return error == 0 ? WAL_OK : fail(sys_errno, error);
}

static enum wal_status path_rename(void *ctx, const char *from, const char *to,
                                   int *sys_errno)
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

static enum wal_status path_sync_directory(void *ctx, const char *path,
                                           int *sys_errno)
{
    (void)ctx;
    int fd;

    WAL__RETRY_EINTR(fd, open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd < 0) {
        return fail(sys_errno, errno);
    }

    int result;

    WAL__RETRY_EINTR(result, fsync(fd));

    int error = result < 0 ? errno : 0;

    (void)close(fd);
    return error == 0 ? WAL_OK : fail(sys_errno, error);
}

static enum wal_status path_storage(void *ctx, const char *path,
                                    enum wal__storage *storage, char *name,
                                    int *sys_errno)
{
    (void)ctx;
    struct statfs fs;
    struct stat st;
    int result;

    WAL__RETRY_EINTR(result, statfs(path, &fs));
    if (result == 0) {
        WAL__RETRY_EINTR(result, stat(path, &st));
    }
    if (result < 0) {
        return fail(sys_errno, errno);
    }
    *storage =
        wal__file_system_storage((uint32_t)fs.f_type, st.st_dev, NULL, name);
    return WAL_OK;
}

static uint64_t path_free_space(void *ctx, const char *path)
{
    (void)ctx;
    struct statvfs fs;
    int result;

    WAL__RETRY_EINTR(result, statvfs(path, &fs));
    return result < 0 ? UINT64_MAX : (uint64_t)fs.f_bavail * fs.f_frsize;
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
    .now_ms = wal__clock_now_ms,
    .monotonic_ns = wal__clock_monotonic_ns,
    .random = wal__random_system,
    .boot_id = wal__process_boot_id,
    .process_id = wal__process_id,
    .process_start_time = wal__process_start_time,
    .process_is_stopped = wal__process_is_stopped,
    .list_mappers = wal__process_list_mappers,
    .futex_wait = wal__futex_wait,
    .futex_wake = wal__futex_wake,
    .threads = true,
    .worktree = &wal__worktree_posix,
};
