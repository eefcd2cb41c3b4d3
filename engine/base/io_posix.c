/*
 * io_posix.c - the table of io.h on Linux: files, names, file systems (SPEC.md
 * 3.7), clocks, futexes and processes, random bytes.
 * worktree_posix.c is the table of work trees.
 *
 * Invariants: one system call per call, repeated only after EINTR. A failure to look at a process
 * is reported as "unknown", so that a live process is never taken for a dead one. A network file
 * system in the table is never reported as local. Any thread.
 */
#include "engine/base/io.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/descriptor.h"
#include "engine/base/heap.h"
#include "engine/base/map.h"
#include "engine/base/worktree.h"
#include "format/bytes/assert.h"

/* --- file systems ------------------------------------------------------- */

/* `network` includes cluster file systems, folders that a virtual machine's
 * host shares, and FUSE, whose storage is unknown. */
static const struct file_system {
    uint32_t magic;
    bool network;
    const char *name;
} file_systems[] = {
    {0x00006969, true, "nfs"},      {0x0000517B, true, "smb"},       {0xFF534D42, true, "cifs"},
    {0xFE534D42, true, "smb2"},     {0x01021997, true, "9p"},        {0x65735546, true, "fuse"},
    {0x00C36400, true, "ceph"},     {0x0BD00BD0, true, "lustre"},    {0x5346414F, true, "afs"},
    {0x6B414653, true, "afs"},      {0x47504653, true, "gpfs"},      {0x73757245, true, "coda"},
    {0x0000564C, true, "ncp"},      {0x7461636F, true, "ocfs2"},     {0x01161970, true, "gfs2"},
    {0x19830326, true, "beegfs"},   {0x20030528, true, "orangefs"},  {0x786F4256, true, "vboxsf"},
    {0xBACBACBC, true, "vmhgfs"},   {0x7C7C6673, true, "prl_fs"},    {0xAAD7AAEA, true, "panfs"},
    {0xBEEFDEAD, true, "snfs"},     {0x61636673, true, "acfs"},      {0x013111A8, true, "ibrix"},
    {0x794C7630, false, "overlay"}, {0x01021994, false, "tmpfs"},    {0x0000EF53, false, "ext4"},
    {0x58465342, false, "xfs"},     {0x9123683E, false, "btrfs"},    {0xF2F52010, false, "f2fs"},
    {0x2FC12FC1, false, "zfs"},     {0xCA451A4E, false, "bcachefs"},
};

const char *wal__file_system_name(uint32_t magic, bool *network)
{
    for (size_t i = 0; i < sizeof(file_systems) / sizeof(file_systems[0]); i++) {
        if (file_systems[i].magic == magic) {
            *network = file_systems[i].network;
            return file_systems[i].name;
        }
    }
    *network = false;
    return NULL;
}

enum { NAME_SIZE = 32 };

/* Reads a word of a line of mountinfo(5), without its end when it is longer than the buffer;
 * returns false at the end of the line. */
static bool read_word(FILE *table, char word[NAME_SIZE])
{
    (void)!fscanf(table, "%*[ ]");
    return fscanf(table, "%31[^ \n]%*[^ \n]", word) == 1;
}

/* The same for an option of the last word. */
static bool read_option(FILE *table, char option[NAME_SIZE])
{
    (void)!fscanf(table, "%*[ ,]");
    return fscanf(table, "%31[^ ,\n]%*[^ ,\n]", option) == 1;
}

/*
 * Reads one line of mountinfo(5): the device, and the storage where the table decides it; else it
 * leaves *name as it is. Returns false at the end of the table, and for a line that has another
 * form.
 */
static bool read_mount(FILE *table, dev_t *device, enum wal__storage *storage, char name[NAME_SIZE])
{
    unsigned long major_id;
    char word[NAME_SIZE] = "";
    char *end = NULL;
    bool is_overlay;

    (void)!fscanf(table, "%*[\n]");
    for (int i = 0; i < 3; i++) { /* id, parent, device */
        if (!read_word(table, word)) {
            return false;
        }
    }
    major_id = strtoul(word, &end, 10);
    if (*end != ':') {
        return false;
    }
    *device = makedev((unsigned)major_id, (unsigned)strtoul(end + 1, NULL, 10));
    while (strcmp(word, "-") != 0) {
        if (!read_word(table, word)) {
            return false;
        }
    }
    if (!read_word(table, word)) {
        return false;
    }
    if (strcmp(word, "9p") == 0) {
        *storage = WAL__STORAGE_SHARED;
        memcpy(name, word, sizeof(word));
    }
    is_overlay = strcmp(word, "overlay") == 0;
    while (read_option(table, word)) {
        /* Linux before 6.18, and since. */
        if (is_overlay && (strcmp(word, "volatile") == 0 || strcmp(word, "fsync=volatile") == 0)) {
            *storage = WAL__STORAGE_VOLATILE;
            memcpy(name, "overlay", sizeof("overlay"));
        }
    }
    return true;
}

enum wal__storage wal__file_system_storage(uint32_t magic, dev_t device, const char *mounts,
                                           char *name)
{
    bool network = false;
    const char *known = wal__file_system_name(magic, &network);
    FILE *table = NULL;

    if (!network && major(device) == 0) {
        table = fopen(mounts != NULL ? mounts : "/proc/self/mountinfo", "re");
    }
    if (table != NULL) {
        enum wal__storage storage = WAL__STORAGE_LOCAL;
        char found[NAME_SIZE] = "";
        dev_t mounted = 0;

        while (read_mount(table, &mounted, &storage, found) &&
               (storage == WAL__STORAGE_LOCAL || mounted != device)) {
            storage = WAL__STORAGE_LOCAL;
        }
        (void)fclose(table);
        if (storage != WAL__STORAGE_LOCAL) {
            memcpy(name, found, sizeof(found));
            return storage;
        }
    }
    if (known != NULL) {
        (void)snprintf(name, NAME_SIZE, "%s", known);
    } else {
        (void)snprintf(name, NAME_SIZE, "0x%08x", (unsigned)magic);
    }
    return network ? WAL__STORAGE_SHARED : WAL__STORAGE_LOCAL;
}

/* xfs does, unless a copy shares the blocks. */
bool wal__file_system_writes_in_place(uint32_t magic)
{
    bool ignored;
    const char *name = wal__file_system_name(magic, &ignored);

    return name != NULL &&
           (strcmp(name, "ext4") == 0 || strcmp(name, "xfs") == 0 || strcmp(name, "tmpfs") == 0);
}

/* No device without a disk is ext4 or xfs, whatever statfs(2) reports. */
static bool writes_in_place(int fd)
{
    struct statfs fs;
    struct stat st;
    int result;
    bool ignored;

    WAL__RETRY_EINTR(result, fstatfs(fd, &fs));
    if (result < 0 || fstat(fd, &st) < 0 ||
        !wal__file_system_writes_in_place((uint32_t)fs.f_type)) {
        return false;
    }
    return major(st.st_dev) != 0 ||
           strcmp(wal__file_system_name((uint32_t)fs.f_type, &ignored), "tmpfs") == 0;
}

/* btrfs has the flag. Others refuse it, and change nothing. */
static void set_in_place(int fd)
{
    int flags = 0;

    if (ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0 && (flags & FS_NOCOW_FL) == 0) {
        flags |= FS_NOCOW_FL;
        (void)ioctl(fd, FS_IOC_SETFLAGS, &flags);
    }
}

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

static enum wal_status file_open(void *ctx, const char *path, int flags, struct wal__file **file,
                                 int *sys_errno)
{
    (void)ctx;
    /* The C library's heap: a test that fails allocations can replace the whole table. Allocates
     * before open, so that no file is created when memory is exhausted. */
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
    (void)sync_file_range(file->fd, (off_t)offset, (off_t)size, SYNC_FILE_RANGE_WRITE);
}

static enum wal_status file_allocate(void *ctx, struct wal__file *file, uint64_t size,
                                     int *sys_errno)
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

static enum wal_status file_clone(void *ctx, struct wal__file *from, struct wal__file *to,
                                  int *sys_errno)
{
    (void)ctx;
    int result;

    WAL__RETRY_EINTR(result, ioctl(to->fd, FICLONE, from->fd));
    return result_status(result, sys_errno);
}

static enum wal_status file_punch(void *ctx, struct wal__file *file, uint64_t offset, uint64_t size,
                                  int *sys_errno)
{
    (void)ctx;
    int result;

    WAL__RETRY_EINTR(result, fallocate(file->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
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
    *out = stat_of(&st);
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

/* Returns what precedes the address in its page, which the kernel has of 4 to 64 KiB: madvise(2)
 * takes no other beginning. It rounds the size up. */
static size_t before_in_page(const void *at)
{
    return (uintptr_t)at % (uintptr_t)sysconf(_SC_PAGESIZE);
}

static enum wal_status file_populate(void *ctx, const void *at, uint64_t size, int *sys_errno)
{
    size_t before = before_in_page(at);
    int result;

    (void)ctx;
    WAL__RETRY_EINTR(result, madvise((uint8_t *)(uintptr_t)at - before, (size_t)size + before,
                                     MADV_POPULATE_READ));
    if (result == 0) {
        return WAL_OK;
    }
    *sys_errno = errno;
    return errno == EINVAL || errno == ENOMEM ? WAL_EINVAL : WAL_EIO;
}

static enum wal_status file_populate_writable(void *ctx, void *at, uint64_t size, int *sys_errno)
{
    size_t before = before_in_page(at);
    int result;

    (void)ctx;
    WAL__RETRY_EINTR(result,
                     madvise((uint8_t *)at - before, (size_t)size + before, MADV_POPULATE_WRITE));
    return result_status(result, sys_errno);
}

static bool file_writes_in_place(void *ctx, struct wal__file *file)
{
    (void)ctx;
    return writes_in_place(file->fd);
}

static void file_set_in_place(void *ctx, struct wal__file *file)
{
    (void)ctx;
    set_in_place(file->fd);
}

static void file_evict(void *ctx, void *at, uint64_t size)
{
    uint8_t *begin = (uint8_t *)at - before_in_page(at);
    uint8_t *end = (uint8_t *)at + size;

    (void)ctx;
    end -= before_in_page(end);
    if (begin < end) {
        (void)madvise(begin, (size_t)(end - begin), MADV_DONTNEED);
    }
}

static void file_unmap(void *ctx, void *at, uint64_t size)
{
    (void)ctx;
    wal__guarded_unmap(at, (size_t)size);
}

/* Replaces *lock by a conflicting lock, or by F_UNLCK. */
static enum wal_status test_lock(const struct wal__file *file, struct flock *lock, int *sys_errno)
{
    int result;

    WAL__RETRY_EINTR(result, fcntl(file->fd, F_OFD_GETLK, lock));
    if (result == 0 && lock->l_type != F_UNLCK) {
        *sys_errno = EAGAIN;
        return WAL_ELOCKED;
    }
    return result_status(result, sys_errno);
}

static enum wal_status file_lock(void *ctx, struct wal__file *file, uint64_t offset,
                                 enum wal__io_lock mode, int *sys_errno)
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
    *out = stat_of(&st);
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

    WAL__RETRY_EINTR(result, fsync(fd));

    int error = result < 0 ? errno : 0;

    (void)close(fd);
    return error == 0 ? WAL_OK : fail(sys_errno, error);
}

static enum wal_status path_storage(void *ctx, const char *path, enum wal__storage *storage,
                                    char *name, int *sys_errno)
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
    *storage = wal__file_system_storage((uint32_t)fs.f_type, st.st_dev, NULL, name);
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

/* --- futexes ------------------------------------------------------------ */

/* Not FUTEX_PRIVATE_FLAG: the word may be shared between processes. */
static void futex_wait(void *ctx, const uint32_t *word, uint32_t expected, uint64_t timeout_ns)
{
    (void)ctx;
    struct timespec timeout = {
        .tv_sec = (time_t)(timeout_ns / 1000000000),
        .tv_nsec = (long)(timeout_ns % 1000000000),
    };

    (void)syscall(SYS_futex, word, FUTEX_WAIT, expected, &timeout, NULL, 0);
}

static void futex_wake(void *ctx, const uint32_t *word, uint32_t count)
{
    int wake_max = count < INT_MAX ? (int)count : INT_MAX;

    (void)ctx;
    (void)syscall(SYS_futex, word, FUTEX_WAKE, wake_max, NULL, NULL, 0);
}

/* --- processes ---------------------------------------------------------- */

enum { STAT_SIZE = 1024 };

/* Reads the first size - 1 bytes of a file of /proc and terminates them. */
static bool read_proc_file(const char *path, char *text, size_t size)
{
    int fd;
    ssize_t bytes_read;

    WAL__RETRY_EINTR(fd, open(path, O_RDONLY | O_CLOEXEC));
    if (fd < 0) {
        return false;
    }
    WAL__RETRY_EINTR(bytes_read, read(fd, text, size - 1));
    (void)close(fd);
    if (bytes_read <= 0) {
        return false;
    }
    WAL__ASSERT((size_t)bytes_read < size);
    text[bytes_read] = '\0';
    return true;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void process_boot_id(void *ctx, uint8_t out[16])
{
    (void)ctx;
    uint8_t id[16] = {0};
    char text[64];
    size_t digits = 0;

    memset(out, 0, sizeof(id));
    if (!read_proc_file("/proc/sys/kernel/random/boot_id", text, sizeof(text))) {
        return;
    }
    for (const char *at = text; *at != '\0' && digits < 32; at++) {
        int digit = hex_digit(*at);

        if (digit >= 0) {
            id[digits / 2] = (uint8_t)(id[digits / 2] << 4 | digit);
            digits++;
        }
    }
    if (digits == 32) {
        memcpy(out, id, sizeof(id));
    }
}

/* Every public call compares the process id, and getpid(2) costs more than some of them. The id is
 * cached in a page that the kernel zeroes for every child, also one of clone(2). 0: not cached yet;
 * null: caching is not possible. */
static pthread_once_t cached_pid_once = PTHREAD_ONCE_INIT;
static _Atomic uint32_t *cached_pid;

static void init_cached_pid(void)
{
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (page == MAP_FAILED) {
        return;
    }
    if (madvise(page, size, MADV_WIPEONFORK) != 0) {
        (void)munmap(page, size);
        return;
    }
    cached_pid = page;
}

static uint32_t process_id(void *ctx)
{
    uint32_t id;

    (void)ctx;
    if (pthread_once(&cached_pid_once, init_cached_pid) != 0 || cached_pid == NULL) {
        return (uint32_t)getpid();
    }
    id = atomic_load_explicit(cached_pid, memory_order_relaxed);
    if (id == 0) {
        id = (uint32_t)getpid();
        atomic_store_explicit(cached_pid, id, memory_order_relaxed);
    }
    return id;
}

/* The start of field `number`, at least 3, of /proc/PID/stat, or null. */
static const char *stat_field(const char *text, int number)
{
    /* Field 2, the command, is in parentheses and may contain them. */
    const char *start = strrchr(text, ')');

    for (int field = 2; start != NULL && field < number; field++) {
        start = strchr(start, ' ');
        start = start == NULL ? NULL : start + 1;
    }
    return start;
}

static bool read_proc_stat(uint32_t pid, char text[STAT_SIZE])
{
    char path[32];

    (void)snprintf(path, sizeof(path), "/proc/%u/stat", (unsigned)pid);
    return read_proc_file(path, text, STAT_SIZE);
}

static uint64_t process_start_time(void *ctx, uint32_t pid)
{
    (void)ctx;
    char text[STAT_SIZE];

    if (pid == 0 || pid > INT32_MAX) {
        return 0;
    }
    if (!read_proc_stat(pid, text)) {
        bool gone = kill((pid_t)pid, 0) != 0 && errno == ESRCH;

        return gone ? 0 : UINT64_MAX;
    }

    const char *state = stat_field(text, 3);
    const char *threads = stat_field(text, 20);
    const char *start = stat_field(text, 22);

    if (start == NULL) {
        return UINT64_MAX;
    }
    /* A zombie has no descriptors and may stay for ever. If only its first thread has ended, the
     * process is alive. */
    if ((*state == 'Z' || *state == 'X') && strtoul(threads, NULL, 10) <= 1) {
        return 0;
    }
    return strtoull(start, NULL, 10);
}

static uint64_t process_namespace(void *ctx)
{
    struct stat st;

    (void)ctx;
    return stat("/proc/self/ns/pid", &st) == 0 ? (uint64_t)st.st_ino : 0;
}

static bool process_is_stopped(void *ctx, uint32_t pid)
{
    (void)ctx;
    const char *state;
    char text[STAT_SIZE];

    if (!read_proc_stat(pid, text)) {
        return false;
    }
    state = stat_field(text, 3);
    return state != NULL && (*state == 'T' || *state == 't');
}

/* --- processes that keep removed files ---------------------------------- */

static const char removed[] = " (deleted)";

/* Returns whether the path of `size` bytes is below the directory, and of a file that has no name
 * any more. */
static bool is_removed(const char *path, size_t size, const char *directory)
{
    size_t below = strlen(directory);

    return size >= below + sizeof(removed) && memcmp(path, directory, below) == 0 &&
           path[below] == '/' &&
           memcmp(path + size - (sizeof(removed) - 1), removed, sizeof(removed) - 1) == 0;
}

/* Bytes of a line of /proc/PID/maps if it is of such a file; else 0. */
static uint64_t mapped_bytes(const char *line, const char *directory)
{
    const char *path = strchr(line, '/');
    char *dash;
    uint64_t from = strtoull(line, &dash, 16);
    uint64_t to = *dash == '-' ? strtoull(dash + 1, NULL, 16) : from;

    return path != NULL && is_removed(path, strcspn(path, "\n"), directory) ? to - from : 0;
}

static uint64_t sum_maps(const char *pid, const char *directory)
{
    char line[PATH_MAX + 128];
    char path[64];
    uint64_t bytes = 0;
    FILE *maps;

    (void)snprintf(path, sizeof(path), "/proc/%.20s/maps", pid);
    maps = fopen(path, "re");
    if (maps == NULL) {
        return 0;
    }
    while (fgets(line, sizeof(line), maps) != NULL) {
        bytes += mapped_bytes(line, directory);
    }
    (void)fclose(maps);
    return bytes;
}

/* Bytes of such files that a process has open. */
static uint64_t sum_files(const char *pid, const char *directory)
{
    char target[PATH_MAX];
    char path[64];
    uint64_t bytes = 0;
    DIR *files;
    const struct dirent *entry;

    (void)snprintf(path, sizeof(path), "/proc/%.20s/fd", pid);
    files = opendir(path);
    while (files != NULL && (entry = readdir(files)) != NULL) {
        ssize_t size = readlinkat(dirfd(files), entry->d_name, target, sizeof(target));
        struct stat stat;

        if (size > 0 && is_removed(target, (size_t)size, directory) &&
            fstatat(dirfd(files), entry->d_name, &stat, 0) == 0) {
            bytes += (uint64_t)stat.st_size;
        }
    }
    if (files != NULL) {
        (void)closedir(files);
    }
    return bytes;
}

/* Most files that are open are mapped too. */
static uint64_t kept_bytes(const char *pid, const char *directory)
{
    uint64_t mapped = sum_maps(pid, directory);
    uint64_t open = sum_files(pid, directory);

    return mapped > open ? mapped : open;
}

static void process_list_mappers(void *ctx, const char *directory,
                                 void (*each)(void *arg, uint32_t pid, uint64_t bytes), void *arg)
{
    char whole[PATH_MAX];
    DIR *processes = realpath(directory, whole) == NULL ? NULL : opendir("/proc");
    const struct dirent *entry;

    (void)ctx;
    while (processes != NULL && (entry = readdir(processes)) != NULL) {
        unsigned long pid =
            isdigit((unsigned char)entry->d_name[0]) ? strtoul(entry->d_name, NULL, 10) : 0;
        uint64_t bytes = pid == 0 ? 0 : kept_bytes(entry->d_name, whole);

        if (bytes > 0) {
            each(arg, (uint32_t)pid, bytes);
        }
    }
    if (processes != NULL) {
        (void)closedir(processes);
    }
}

/* --- the table ---------------------------------------------------------- */

static void random_bytes(void *ctx, void *data, size_t size)
{
    (void)ctx;
    uint8_t *out = data;

    while (size > 0) {
        ssize_t result;

        WAL__RETRY_EINTR(result, getrandom(out, size, 0));
        WAL__ASSERT(result > 0);
        out += result;
        size -= (size_t)result;
    }
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
    .boot_id = process_boot_id,
    .process_id = process_id,
    .process_start_time = process_start_time,
    .process_namespace = process_namespace,
    .process_is_stopped = process_is_stopped,
    .list_mappers = process_list_mappers,
    .futex_wait = futex_wait,
    .futex_wake = futex_wake,
    .threads = true,
    .worktree = &wal__worktree_posix,
};
