/*
 * worktree_posix.c - the table of worktree.h on Linux. It implements SPEC.md
 * 5.14. Invariant: the system gets every name as the last component below a
 * directory that worktree_resolve.c opened, with the flag that forbids to
 * follow it; a call that changes something opens that directory itself, a call
 * that only reads may use a cached one. Any thread.
 */
#include "engine/base/worktree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/descriptor.h"
#include "engine/base/heap.h"
#include "engine/base/worktree_leaf.h"
#include "engine/base/worktree_replace.h"
#include "engine/base/worktree_stat.h"

struct wal__worktree_file {
    int fd;
    bool durable; /* sync each change: sync_all does not cover this device */
    bool created; /* by this handle */
};

/* The ctx of a table. */
struct options {
    bool by_component; /* do not use openat2(2) */
};

/* The status of a system call that returns a negative number on failure. */
static enum wal_status result_status(int result, int *sys_errno)
{
    return result < 0 ? wal__worktree_report_errno(sys_errno, errno) : WAL_OK;
}

/* ------------------------------------------------------------- roots --- */

static int worktree_init(struct wal__worktree *tree, const char *path,
                         bool by_component)
{
    struct stat st;
    int error;
    int fd;

    WAL__RETRY_EINTR(fd, open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    fd = wal__descriptor_above_stdio(fd);
    if (fd < 0) {
        return errno;
    }
    error = fstat(fd, &st) < 0 ? errno : 0;
    if (error == 0) {
        tree->device = st.st_dev;
        error = wal__worktree_resolver_init(&tree->resolver, fd, by_component);
    }
    if (error != 0) {
        (void)close(fd);
    }
    return error;
}

static enum wal_status worktree_open_root(void *ctx, const char *path,
                                          struct wal__worktree **tree,
                                          int *sys_errno)
{
    const struct options *options = ctx;
    struct wal__worktree *created =
        wal__heap_alloc(&wal__heap_libc, sizeof(*created));
    int error;

    if (created == NULL) {
        return wal__worktree_report_errno(sys_errno, ENOMEM);
    }
    error = worktree_init(created, path, options->by_component);
    if (error != 0) {
        wal__heap_free(&wal__heap_libc, created);
        return wal__worktree_report_errno(sys_errno, error);
    }
    *tree = created;
    return WAL_OK;
}

static void worktree_close_root(void *ctx, struct wal__worktree *tree)
{
    (void)ctx;
    wal__worktree_resolver_deinit(&tree->resolver);
    wal__heap_free(&wal__heap_libc, tree);
}

/* ------------------------------------------------------------- stats --- */

static bool means_absent(enum wal_status status)
{
    return status == WAL_ENOTFOUND || status == WAL_ETOOBIG;
}

static enum wal_status worktree_stat(void *ctx, struct wal__worktree *tree,
                                     const char *path,
                                     struct wal__worktree_stat *out,
                                     int *sys_errno)
{
    (void)ctx;
    struct wal__worktree_cached_leaf leaf;
    struct stat st;
    int error = 0;
    enum wal_status status =
        wal__worktree_cached_leaf_open(tree, path, &leaf, &error);

    if (status == WAL_OK) {
        int result;

        WAL__RETRY_EINTR(result,
                         fstatat(leaf.parent->fd, leaf.name, &st,
                                 AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT));
        status = result_status(result, &error);
        wal__worktree_dir_release(leaf.parent);
    }
    if (means_absent(status)) {
        *out = (struct wal__worktree_stat){.kind = WAL__WORKTREE_ABSENT};
        return WAL_OK;
    }
    if (status != WAL_OK) {
        *sys_errno = error;
        return status;
    }
    *out = wal__worktree_stat_of(&st);
    return WAL_OK;
}

/* ------------------------------------------------------------- files --- */

/* 0 for a regular file, else an errno for the type. */
static int check_regular(int fd)
{
    struct stat st;

    if (fstat(fd, &st) < 0) {
        return errno;
    }
    if (S_ISDIR(st.st_mode)) {
        return EISDIR;
    }
    return S_ISREG(st.st_mode) ? 0 : ENXIO;
}

static enum wal_status open_regular(struct wal__worktree *tree,
                                    const char *path,
                                    struct wal__worktree_file *file,
                                    int *sys_errno)
{
    struct wal__worktree_cached_leaf leaf;
    int error;
    enum wal_status status =
        wal__worktree_cached_leaf_open(tree, path, &leaf, sys_errno);

    if (status != WAL_OK) {
        return status;
    }
    /* O_NONBLOCK: do not wait for the other end of a pipe. */
    WAL__RETRY_EINTR(file->fd, openat(leaf.parent->fd, leaf.name,
                                      O_RDONLY | O_NOFOLLOW | O_NONBLOCK |
                                          O_NOCTTY | O_CLOEXEC));
    wal__worktree_dir_release(leaf.parent);
    file->fd = wal__descriptor_above_stdio(file->fd);
    if (file->fd < 0) {
        return wal__worktree_report_errno(sys_errno, errno);
    }
    error = check_regular(file->fd);
    if (error != 0) {
        (void)close(file->fd);
        return wal__worktree_report_errno(sys_errno, error);
    }
    return WAL_OK;
}

static enum wal_status create_regular(struct wal__worktree *tree,
                                      const char *path, uint32_t mode,
                                      struct wal__worktree_file *file,
                                      int *sys_errno)
{
    struct wal__worktree_leaf leaf;
    struct stat st;
    enum wal_status status =
        wal__worktree_leaf_open(tree, path, &leaf, sys_errno);

    if (status != WAL_OK) {
        return status;
    }
    file->fd = -1;
    if (fstat(leaf.parent, &st) == 0) {
        int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;

        file->created = true;
        file->durable = st.st_dev != tree->device;
        flags |= file->durable ? O_SYNC : 0;
        WAL__RETRY_EINTR(file->fd,
                         openat(leaf.parent, leaf.name, flags, mode & 07777));
    }
    wal__worktree_leaf_close(&leaf);
    file->fd = wal__descriptor_above_stdio(file->fd);
    return result_status(file->fd, sys_errno);
}

/* Called before the file is created, so that none is left over when memory is
 * exhausted. */
static struct wal__worktree_file *new_file(void)
{
    struct wal__worktree_file *file =
        wal__heap_alloc(&wal__heap_libc, sizeof(*file));

    if (file != NULL) {
        *file = (struct wal__worktree_file){.fd = -1};
    }
    return file;
}

static enum wal_status worktree_open(void *ctx, struct wal__worktree *tree,
                                     const char *path,
                                     struct wal__worktree_file **file,
                                     int *sys_errno)
{
    (void)ctx;
    struct wal__worktree_file *created = new_file();
    enum wal_status status = created == NULL
                                 ? wal__worktree_report_errno(sys_errno, ENOMEM)
                                 : open_regular(tree, path, created, sys_errno);

    if (status != WAL_OK) {
        wal__heap_free(&wal__heap_libc, created);
        return status;
    }
    *file = created;
    return WAL_OK;
}

static enum wal_status worktree_create(void *ctx, struct wal__worktree *tree,
                                       const char *path, uint32_t mode,
                                       struct wal__worktree_file **file,
                                       int *sys_errno)
{
    (void)ctx;
    struct wal__worktree_file *created = new_file();
    enum wal_status status =
        created == NULL ? wal__worktree_report_errno(sys_errno, ENOMEM)
                        : create_regular(tree, path, mode, created, sys_errno);

    if (status != WAL_OK) {
        wal__heap_free(&wal__heap_libc, created);
        return status;
    }
    *file = created;
    return WAL_OK;
}

static void worktree_close(void *ctx, struct wal__worktree_file *file)
{
    (void)ctx;
    if (file->created && !file->durable) {
        /* Starts to write the content, so that the disk is not idle until
         * sync_all, which reports what fails. */
        (void)sync_file_range(file->fd, 0, 0, SYNC_FILE_RANGE_WRITE);
    }
    /* Not retried: Linux frees the descriptor even after EINTR. */
    (void)close(file->fd);
    wal__heap_free(&wal__heap_libc, file);
}

static enum wal_status worktree_file_stat(void *ctx,
                                          struct wal__worktree_file *file,
                                          struct wal__worktree_stat *out,
                                          int *sys_errno)
{
    (void)ctx;
    struct stat st;

    if (fstat(file->fd, &st) < 0) {
        return wal__worktree_report_errno(sys_errno, errno);
    }
    *out = wal__worktree_stat_of(&st);
    return WAL_OK;
}

static enum wal_status worktree_read(void *ctx, struct wal__worktree_file *file,
                                     void *data, size_t size, uint64_t offset,
                                     size_t *bytes_read, int *sys_errno)
{
    (void)ctx;
    ssize_t result;

    WAL__RETRY_EINTR(result, pread(file->fd, data, size, (off_t)offset));
    if (result < 0) {
        return wal__worktree_report_errno(sys_errno, errno);
    }
    *bytes_read = (size_t)result;
    return WAL_OK;
}

static enum wal_status worktree_write(void *ctx,
                                      struct wal__worktree_file *file,
                                      const void *data, size_t size,
                                      uint64_t offset, size_t *bytes_written,
                                      int *sys_errno)
{
    (void)ctx;
    ssize_t result;

    WAL__RETRY_EINTR(result, pwrite(file->fd, data, size, (off_t)offset));
    if (result < 0) {
        return wal__worktree_report_errno(sys_errno, errno);
    }
    *bytes_written = (size_t)result;
    return WAL_OK;
}

static enum wal_status worktree_set_mode(void *ctx,
                                         struct wal__worktree_file *file,
                                         uint32_t mode, int *sys_errno)
{
    (void)ctx;
    int result;

    WAL__RETRY_EINTR(result, fchmod(file->fd, mode & 07777));
    if (result == 0 && file->durable) {
        WAL__RETRY_EINTR(result, fsync(file->fd));
    }
    return result_status(result, sys_errno);
}

/* ------------------------------------------------------------- links --- */

static enum wal_status worktree_read_link(void *ctx, struct wal__worktree *tree,
                                          const char *path, void *data,
                                          size_t size, size_t *bytes_read,
                                          int *sys_errno)
{
    (void)ctx;
    /* One byte longer than any target, so that a cut one is detected. */
    char target[PATH_MAX + 1];
    struct wal__worktree_cached_leaf leaf;
    ssize_t result;
    enum wal_status status =
        wal__worktree_cached_leaf_open(tree, path, &leaf, sys_errno);

    if (status != WAL_OK) {
        return status;
    }
    WAL__RETRY_EINTR(
        result, readlinkat(leaf.parent->fd, leaf.name, target, sizeof(target)));
    wal__worktree_dir_release(leaf.parent);
    if (result < 0) {
        *sys_errno = errno;
        return errno == EINVAL ? WAL_ENOTFILE : wal__worktree_status(errno);
    }
    if ((size_t)result > size || (size_t)result == sizeof(target)) {
        return wal__worktree_report_errno(sys_errno, ENAMETOOLONG);
    }
    memcpy(data, target, (size_t)result);
    *bytes_read = (size_t)result;
    return WAL_OK;
}

static enum wal_status worktree_make_link(void *ctx, struct wal__worktree *tree,
                                          const char *path, const char *target,
                                          int *sys_errno)
{
    (void)ctx;
    struct wal__worktree_leaf leaf;
    int result;
    enum wal_status status =
        wal__worktree_leaf_open(tree, path, &leaf, sys_errno);

    if (status != WAL_OK) {
        return status;
    }
    WAL__RETRY_EINTR(result, symlinkat(target, leaf.parent, leaf.name));
    wal__worktree_leaf_close(&leaf);
    return result_status(result, sys_errno);
}

/* ------------------------------------------------------------- names --- */

static enum wal_status worktree_rename(void *ctx, struct wal__worktree *tree,
                                       const char *from, const char *to,
                                       int *sys_errno)
{
    (void)ctx;
    struct wal__worktree_leaf old;
    struct wal__worktree_leaf new;
    int result;
    enum wal_status status =
        wal__worktree_leaf_open(tree, from, &old, sys_errno);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__worktree_leaf_open(tree, to, &new, sys_errno);
    if (status != WAL_OK) {
        goto done;
    }
    WAL__RETRY_EINTR(result,
                     renameat(old.parent, old.name, new.parent, new.name));
    wal__worktree_leaf_close(&new);
    status = result_status(result, sys_errno);
done:
    wal__worktree_leaf_close(&old);
    return status;
}

static enum wal_status remove_name(struct wal__worktree *tree, const char *path,
                                   int flags, int *sys_errno)
{
    struct wal__worktree_leaf leaf;
    int result;
    enum wal_status status =
        wal__worktree_leaf_open(tree, path, &leaf, sys_errno);

    if (status != WAL_OK) {
        return status;
    }
    WAL__RETRY_EINTR(result, unlinkat(leaf.parent, leaf.name, flags));
    wal__worktree_leaf_close(&leaf);
    return result_status(result, sys_errno);
}

static enum wal_status worktree_unlink(void *ctx, struct wal__worktree *tree,
                                       const char *path, int *sys_errno)
{
    (void)ctx;
    return remove_name(tree, path, 0, sys_errno);
}

static enum wal_status worktree_remove_directory(void *ctx,
                                                 struct wal__worktree *tree,
                                                 const char *path,
                                                 int *sys_errno)
{
    (void)ctx;
    return remove_name(tree, path, AT_REMOVEDIR, sys_errno);
}

static enum wal_status worktree_make_directory(void *ctx,
                                               struct wal__worktree *tree,
                                               const char *path, int *sys_errno)
{
    (void)ctx;
    struct wal__worktree_leaf leaf;
    int result;
    enum wal_status status =
        wal__worktree_leaf_open(tree, path, &leaf, sys_errno);

    if (status != WAL_OK) {
        return status;
    }
    WAL__RETRY_EINTR(result, mkdirat(leaf.parent, leaf.name, 0777));
    wal__worktree_leaf_close(&leaf);
    return result_status(result, sys_errno);
}

static enum wal_status worktree_check_replace(void *ctx,
                                              struct wal__worktree *tree,
                                              const char *path, int *sys_errno)
{
    (void)ctx;
    struct wal__worktree_leaf leaf;
    int found = 0;
    enum wal_status status = wal__worktree_leaf_open(tree, path, &leaf, &found);

    if (status == WAL_OK) {
        found = wal__worktree_check_replace(leaf.parent, leaf.name);
        wal__worktree_leaf_close(&leaf);
        status = wal__worktree_status(found);
    }
    if (found == ENOTDIR) {
        status = WAL_ENOTFILE;
    }
    if (status != WAL_OK) {
        *sys_errno = found;
    }
    return status;
}

/* ----------------------------------------------------------- syncing --- */

static enum wal_status worktree_sync_all(void *ctx, struct wal__worktree *tree,
                                         int *sys_errno)
{
    (void)ctx;
    int result;

    /* The descriptor was open before the first write, so syncfs reports every
     * write that failed since. */
    WAL__RETRY_EINTR(result, syncfs(tree->resolver.root));
    return result_status(result, sys_errno);
}

/* 0, or the errno of the first path that is not plain. */
static int check_paths(const char *paths, size_t size)
{
    int error = 0;

    for (size_t at = 0; at < size && error == 0; at += strlen(paths + at) + 1) {
        struct wal__worktree_path split;

        if (paths[at] != '\0') {
            error = wal__worktree_path_split(paths + at, &split);
        }
    }
    return error;
}

static enum wal_status worktree_sync_directories(void *ctx,
                                                 struct wal__worktree *tree,
                                                 const char *paths, size_t size,
                                                 int *sys_errno)
{
    (void)ctx;
    struct wal__worktree_synced synced;
    int error = check_paths(paths, size);

    if (error != 0) {
        return wal__worktree_report_resolve_errno(sys_errno, error);
    }
    synced =
        wal__worktree_sync_dirs(&tree->resolver, paths, size, tree->device);
    if (synced.error != 0) {
        return wal__worktree_report_errno(sys_errno, synced.error);
    }
    return synced.resolve_error == 0 ? WAL_OK
                                     : wal__worktree_report_resolve_errno(
                                           sys_errno, synced.resolve_error);
}

/* The coarse clock, which file times come from: a file that is written after
 * the call does not get an earlier time. */
static int64_t worktree_now_ns(void *ctx)
{
    (void)ctx;
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_REALTIME_COARSE, &now);
    return wal__worktree_time_ns(&now);
}

/* ------------------------------------------------------------- table --- */

#define TABLE(options)                                                        \
    {                                                                         \
        .ctx = (options), .open_root = worktree_open_root,                    \
        .close_root = worktree_close_root, .stat = worktree_stat,             \
        .open = worktree_open, .create = worktree_create,                     \
        .close = worktree_close, .file_stat = worktree_file_stat,             \
        .read = worktree_read, .write = worktree_write,                       \
        .set_mode = worktree_set_mode, .read_link = worktree_read_link,       \
        .make_link = worktree_make_link, .rename = worktree_rename,           \
        .unlink = worktree_unlink, .make_directory = worktree_make_directory, \
        .remove_directory = worktree_remove_directory,                        \
        .check_replace = worktree_check_replace,                              \
        .sync_all = worktree_sync_all,                                        \
        .sync_directories = worktree_sync_directories,                        \
        .now_ns = worktree_now_ns,                                            \
    }

static struct options openat2_options = {.by_component = false};
static struct options component_options = {.by_component = true};

const struct wal__worktree_io wal__worktree_posix = TABLE(&openat2_options);
const struct wal__worktree_io wal__worktree_posix_no_openat2 =
    TABLE(&component_options);
