/*
 * files.c - the part of system.h that files and directories need, on Linux (SPEC.md 3.7).
 *
 * Invariant: a network file system in the table is never reported as local. Any thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "engine/base/descriptor.h"
#include "engine/base/linux/storage.h"
#include "engine/base/system.h"

/* What the headers of the kernel have, and those of musl do not. */
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif
#ifndef STATX_ATTR_IMMUTABLE
#define STATX_ATTR_IMMUTABLE  0x10
#define STATX_ATTR_APPEND     0x20
#define STATX_ATTR_MOUNT_ROOT 0x2000
#endif

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
    if (strcmp(word, "9p") == 0 || strcmp(word, "virtiofs") == 0 || strncmp(word, "fuse", 4) == 0) {
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

    if (major(device) == 0) {
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

bool wal__kernel_is_wsl1(const char *release)
{
    return strstr(release, "-Microsoft") != NULL;
}

int wal__system_storage(const char *path, enum wal__storage *storage, char *name)
{
    struct statfs fs;
    struct stat st;
    struct utsname system;
    int result;

    WAL__RETRY_EINTR(result, statfs(path, &fs));
    if (result == 0) {
        WAL__RETRY_EINTR(result, stat(path, &st));
    }
    if (result == 0) {
        *storage = wal__file_system_storage((uint32_t)fs.f_type, st.st_dev, NULL, name);
    }
    if (result == 0 && uname(&system) == 0 && wal__kernel_is_wsl1(system.release)) {
        *storage = WAL__STORAGE_SHARED;
        (void)snprintf(name, NAME_SIZE, "WSL 1");
    }
    return result;
}

/* No device without a disk is ext4 or xfs, whatever statfs(2) reports. */
bool wal__system_writes_in_place(int fd)
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
void wal__system_set_in_place(int fd)
{
    int flags = 0;

    if (ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0 && (flags & FS_NOCOW_FL) == 0) {
        flags |= FS_NOCOW_FL;
        (void)ioctl(fd, FS_IOC_SETFLAGS, &flags);
    }
}

/* --- files -------------------------------------------------------------- */

int wal__system_sync(int fd)
{
    return fdatasync(fd);
}

int wal__system_sync_whole(int fd)
{
    return fsync(fd);
}

/* Reports every write that failed since the descriptor was opened. */
int wal__system_sync_file_system(int fd)
{
    return syncfs(fd);
}

void wal__system_write_back(int fd, uint64_t offset, uint64_t size)
{
    (void)sync_file_range(fd, (off_t)offset, (off_t)size, SYNC_FILE_RANGE_WRITE);
}

int wal__system_allocate(int fd, uint64_t size)
{
    int result = fallocate(fd, 0, 0, (off_t)size);

    if (result < 0 && errno == ENOSYS) {
        errno = EOPNOTSUPP;
    }
    return result;
}

int wal__system_punch(int fd, uint64_t offset, uint64_t size)
{
    return fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)size);
}

int wal__system_clone(int to, int from)
{
    return ioctl(to, FICLONE, from);
}

ssize_t wal__system_copy(int to, int from, off_t *offset, size_t size)
{
    ssize_t copied = copy_file_range(from, offset, to, NULL, size, 0);

    if (copied < 0 && (errno == EXDEV || errno == EINVAL || errno == ENOSYS)) {
        errno = EOPNOTSUPP;
    }
    return copied;
}

/* The links of /proc/self are those of the process's first thread, which may have ended. */
#define DESCRIPTORS "/proc/thread-self/fd"

int wal__system_unnamed_file(const char *directory)
{
    int fd = directory == NULL ? memfd_create("agentwal", MFD_CLOEXEC)
                               : open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    /* Linux before 3.11, or the directory does not exist. */
    if (fd < 0 && (errno == EISDIR || errno == ENOENT)) {
        errno = EOPNOTSUPP;
    }
    return fd;
}

int wal__system_reopen(int fd, int flags)
{
    char path[sizeof(DESCRIPTORS) + 12];
    int opened;

    (void)snprintf(path, sizeof(path), DESCRIPTORS "/%d", fd);
    WAL__RETRY_EINTR(opened, open(path, flags));
    return opened;
}

bool wal__system_can_reopen(const char **lacks)
{
    *lacks = DESCRIPTORS;
    return access(DESCRIPTORS, X_OK) == 0;
}

static int64_t time_ns(const struct timespec *time)
{
    return (int64_t)time->tv_sec * 1000000000 + (int64_t)time->tv_nsec;
}

int64_t wal__system_modified_ns(const struct stat *stat)
{
    return time_ns(&stat->st_mtim);
}

int64_t wal__system_changed_ns(const struct stat *stat)
{
    return time_ns(&stat->st_ctim);
}

/* --- maps --------------------------------------------------------------- */

static pthread_once_t advice_once = PTHREAD_ONCE_INIT;
static bool takes_advice;

/* No kernel has the advice -1. */
static void try_advice(void)
{
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    takes_advice = page != MAP_FAILED && madvise(page, size, -1) != 0;
    if (page != MAP_FAILED) {
        (void)munmap(page, size);
    }
}

bool wal__linux_takes_advice(void)
{
    return pthread_once(&advice_once, try_advice) == 0 && takes_advice;
}

/* madvise(2), where it is one. */
static int advise(void *at, size_t size, int advice)
{
    if (!wal__linux_takes_advice()) {
        errno = EINVAL;
        return -1;
    }
    return madvise(at, size, advice);
}

int wal__system_populate(const void *at, size_t size)
{
    int result = advise((void *)(uintptr_t)at, size, MADV_POPULATE_READ);

    if (result < 0 && (errno == EINVAL || errno == ENOMEM)) {
        errno = ENOTSUP; /* Linux before 5.14 */
    }
    return result;
}

int wal__system_populate_writable(void *at, size_t size)
{
    return advise(at, size, MADV_POPULATE_WRITE);
}

void wal__system_evict(void *at, size_t size)
{
    (void)madvise(at, size, MADV_DONTNEED);
}

/* --- work trees --------------------------------------------------------- */

enum { PLACE_FLAGS = O_PATH | O_DIRECTORY | O_CLOEXEC };

int wal__system_open_place(int directory, const char *name, bool follows)
{
    return openat(directory, name, PLACE_FLAGS | (follows ? 0 : O_NOFOLLOW));
}

int wal__system_open_beneath(int root, const char *path)
{
    struct open_how how = {
        /* Without O_NOFOLLOW, which would make a link at the end ENOTDIR instead of ELOOP. */
        .flags = PLACE_FLAGS,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    long fd = syscall(SYS_openat2, root, path, &how, sizeof(how));

    /* A seccomp filter may return EPERM for a system call that it does not know. */
    if (fd < 0 && (errno == ENOSYS || errno == EPERM)) {
        errno = ENOTSUP;
    }
    return (int)fd;
}

int wal__system_stat_entry(int directory, const char *name, struct wal__system_entry *entry)
{
    struct statx stx;
    int result =
        statx(directory, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_BASIC_STATS, &stx);

    if (result == 0) {
        *entry = (struct wal__system_entry){
            .mode = stx.stx_mode,
            .user = stx.stx_uid,
            .is_immutable = (stx.stx_attributes & (STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND)) != 0,
            .is_mount_root = (stx.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0,
        };
    }
    return result;
}

bool wal__system_ignores_sticky(void)
{
    struct __user_cap_header_struct header = {
        .version = _LINUX_CAPABILITY_VERSION_3,
    };
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

    return syscall(SYS_capget, &header, data) == 0 &&
           (data[CAP_TO_INDEX(CAP_FOWNER)].effective & CAP_TO_MASK(CAP_FOWNER)) != 0;
}
