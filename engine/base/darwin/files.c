/*
 * files.c - the part of system.h that files and directories need, on macOS (SPEC.md 3.7).
 *
 * What is not here: clonefile(2) makes a new name and takes no descriptor of the copy, so blocks
 * are not shared; no call faults pages in and reports those that cannot be read, so files are read
 * by pread(2), and written by pwritev(2): APFS copies on write. Any thread.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/param.h>
#include <unistd.h>

#include "engine/base/darwin/portable.h"
#include "engine/base/descriptor.h"
#include "engine/base/system.h"

static_assert(sizeof(off_t) == 8, "offsets have 64 bits");
static_assert(sizeof(((struct statfs *)0)->f_fstypename) == 16, "io.h has 32 bytes for it");

/* --- stable storage ----------------------------------------------------- */

/* fsync(2) gives the bytes to the drive, which may keep them in its memory. File systems without
 * F_FULLFSYNC have nothing better. */
int wal__system_sync(int fd)
{
    int result = fcntl(fd, F_FULLFSYNC);

    return result < 0 && (errno == ENOTSUP || errno == EINVAL || errno == ENOTTY) ? fsync(fd)
                                                                                  : result;
}

int wal__system_sync_whole(int fd)
{
    return wal__system_sync(fd);
}

int wal__system_sync_file_system(int fd)
{
    return fsync_volume_np(fd, SYNC_VOLUME_FULLSYNC | SYNC_VOLUME_WAIT);
}

void wal__system_write_back(int fd, uint64_t offset, uint64_t size)
{
    (void)fd;
    (void)offset;
    (void)size;
}

/* --- space -------------------------------------------------------------- */

int wal__system_allocate(int fd, uint64_t size)
{
    fstore_t store = {.fst_flags = F_ALLOCATEALL, .fst_posmode = F_PEOFPOSMODE};
    struct stat st;

    if (fstat(fd, &st) < 0) {
        return -1;
    }
    /* Space is added after what the file has. */
    store.fst_length = (off_t)size - (off_t)st.st_blocks * 512;
    if (store.fst_length > 0 && fcntl(fd, F_PREALLOCATE, &store) < 0) {
        errno = errno == ENOTSUP || errno == EINVAL || errno == ENOTTY ? EOPNOTSUPP : errno;
        return -1;
    }
    return (uint64_t)st.st_size < size ? ftruncate(fd, (off_t)size) : 0;
}

int wal__system_punch(int fd, uint64_t offset, uint64_t size)
{
    fpunchhole_t hole = {.fp_offset = (off_t)offset, .fp_length = (off_t)size};

    return fcntl(fd, F_PUNCHHOLE, &hole);
}

int wal__system_clone(int to, int from)
{
    (void)to;
    (void)from;
    errno = ENOTSUP;
    return -1;
}

ssize_t wal__system_copy(int to, int from, off_t *offset, size_t size)
{
    (void)to;
    (void)from;
    (void)offset;
    (void)size;
    errno = EOPNOTSUPP;
    return -1;
}

int wal__system_storage(const char *path, enum wal__storage *storage, char *name)
{
    struct statfs fs;
    int result;

    WAL__RETRY_EINTR(result, statfs(path, &fs));
    if (result == 0) {
        (void)snprintf(name, 32, "%.*s", (int)sizeof(fs.f_fstypename), fs.f_fstypename);
        *storage = wal__portable_storage(name, (fs.f_flags & MNT_LOCAL) != 0);
    }
    return result;
}

bool wal__system_writes_in_place(int fd)
{
    (void)fd;
    return false;
}

void wal__system_set_in_place(int fd)
{
    (void)fd;
}

/* --- files without a name ----------------------------------------------- */

int wal__system_unnamed_file(const char *directory)
{
    (void)directory;
    errno = EOPNOTSUPP;
    return -1;
}

/* The handles share an open file description. That suits files in memory: they are read and written
 * by offset, and no locks are set on them. */
int wal__system_reopen(int fd, int flags)
{
    int opened = fcntl(fd, F_DUPFD_CLOEXEC, 3);

    if (opened >= 0 && (flags & O_TRUNC) != 0 && ftruncate(opened, 0) < 0) {
        int error = errno;

        (void)close(opened);
        errno = error;
        return -1;
    }
    return opened;
}

bool wal__system_can_reopen(const char **lacks)
{
    *lacks = "";
    return true;
}

static int64_t time_ns(const struct timespec *time)
{
    return (int64_t)time->tv_sec * 1000000000 + (int64_t)time->tv_nsec;
}

int64_t wal__system_modified_ns(const struct stat *stat)
{
    return time_ns(&stat->st_mtimespec);
}

int64_t wal__system_changed_ns(const struct stat *stat)
{
    return time_ns(&stat->st_ctimespec);
}

/* --- maps --------------------------------------------------------------- */

int wal__system_populate(const void *at, size_t size)
{
    (void)at;
    (void)size;
    errno = ENOTSUP;
    return -1;
}

int wal__system_populate_writable(void *at, size_t size)
{
    return wal__system_populate(at, size);
}

void wal__system_evict(void *at, size_t size)
{
    (void)at;
    (void)size;
}

/* --- work trees --------------------------------------------------------- */

int wal__system_open_place(int directory, const char *name, bool follows)
{
    return openat(directory, name, O_SEARCH | O_CLOEXEC | (follows ? 0 : O_NOFOLLOW));
}

int wal__system_open_beneath(int root, const char *path)
{
    (void)root;
    (void)path;
    errno = ENOTSUP;
    return -1;
}

int wal__system_stat_entry(int directory, const char *name, struct wal__system_entry *entry)
{
    struct stat above;
    struct stat st;

    if (fstat(directory, &above) < 0 || fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        return -1;
    }
    *entry = (struct wal__system_entry){
        .mode = st.st_mode,
        .user = st.st_uid,
        .is_immutable = (st.st_flags & (UF_IMMUTABLE | UF_APPEND | SF_IMMUTABLE | SF_APPEND)) != 0,
        .is_mount_root = st.st_dev != above.st_dev,
    };
    return 0;
}

bool wal__system_ignores_sticky(void)
{
    return geteuid() == 0;
}
