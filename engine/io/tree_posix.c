/*
 * tree_posix.c - the table of tree.h on Linux. It implements SPEC.md 5.14.
 * Invariant: a name is given to the system as the last part below a directory
 * that tree_way.c found, with the flag that keeps the system from following
 * it; what changes something goes through a directory found for this call.
 * Any thread.
 */
#include "engine/io/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/heap.h"
#include "engine/io/descriptor.h"
#include "engine/io/tree_replace.h"
#include "engine/io/tree_stat.h"
#include "engine/io/tree_way.h"

struct wal__tree {
    struct wal__ways ways;
    dev_t device; /* of the root */
};

struct wal__tree_file {
    int fd;
    bool durable; /* each change is to be, since sync_all does not reach it */
};

/* What a table is made with. */
struct manner {
    bool by_parts;
};

static enum wal_status fail(int *sys_errno, int error)
{
    *sys_errno = error;
    return wal__tree_status(error);
}

/* The status of a system call that answers 0 or less. */
static enum wal_status answer(int result, int *sys_errno)
{
    return result < 0 ? fail(sys_errno, errno) : WAL_OK;
}

static enum wal_status fail_on_way(int *sys_errno, int error)
{
    *sys_errno = error;
    return wal__tree_way_status(error);
}

/* ------------------------------------------------------------- roots --- */

static int tree_init(struct wal__tree *tree, const char *path, bool by_parts)
{
    struct stat st;
    int error;
    int fd;

    WAL__RETRY(fd, open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    fd = wal__descriptor_move(fd);
    if (fd < 0) {
        return errno;
    }
    error = fstat(fd, &st) < 0 ? errno : 0;
    if (error == 0) {
        tree->device = st.st_dev;
        error = wal__ways_init(&tree->ways, fd, by_parts);
    }
    if (error != 0) {
        (void)close(fd);
    }
    return error;
}

static enum wal_status tree_open_root(void *ctx, const char *path,
                                      struct wal__tree **tree, int *sys_errno)
{
    const struct manner *manner = ctx;
    struct wal__tree *made = wal__heap_alloc(&wal__heap_libc, sizeof(*made));
    int error;

    if (made == NULL) {
        return fail(sys_errno, ENOMEM);
    }
    error = tree_init(made, path, manner->by_parts);
    if (error != 0) {
        wal__heap_free(&wal__heap_libc, made);
        return fail(sys_errno, error);
    }
    *tree = made;
    return WAL_OK;
}

static void tree_close_root(void *ctx, struct wal__tree *tree)
{
    (void)ctx;
    wal__ways_deinit(&tree->ways);
    wal__heap_free(&wal__heap_libc, tree);
}

/* ------------------------------------------------------------ places --- */

/* A name below a directory that is open for this call alone. */
struct spot {
    int parent;
    const char *name;
};

static enum wal_status spot_open(struct wal__tree *tree, const char *path,
                                 struct spot *spot, int *sys_errno)
{
    struct wal__tree_place place;
    int error = wal__tree_path_cut(path, &place);

    if (error != 0) {
        return fail_on_way(sys_errno, error);
    }
    spot->parent = wal__way_open(&tree->ways, path, place.parent_size);
    spot->name = place.name;
    return spot->parent < 0 ? fail_on_way(sys_errno, errno) : WAL_OK;
}

/* Keeps errno. */
static void spot_close(const struct spot *spot)
{
    int error = errno;

    (void)close(spot->parent);
    errno = error;
}

/* The same below a directory that is shared: for calls that only look. */
struct view {
    struct wal__way *parent;
    const char *name;
};

static enum wal_status view_open(struct wal__tree *tree, const char *path,
                                 struct view *view, int *sys_errno)
{
    struct wal__tree_place place;
    int error = wal__tree_path_cut(path, &place);

    if (error != 0) {
        return fail_on_way(sys_errno, error);
    }
    view->parent = wal__way_look(&tree->ways, path, place.parent_size);
    view->name = place.name;
    return view->parent == NULL ? fail_on_way(sys_errno, errno) : WAL_OK;
}

/* ------------------------------------------------------------- stats --- */

static bool means_absent(enum wal_status status)
{
    return status == WAL_ENOTFOUND || status == WAL_ETOOBIG;
}

static enum wal_status tree_stat(void *ctx, struct wal__tree *tree,
                                 const char *path, struct wal__tree_stat *out,
                                 int *sys_errno)
{
    (void)ctx;
    struct view view;
    struct stat st;
    int error = 0;
    enum wal_status status = view_open(tree, path, &view, &error);

    if (status == WAL_OK) {
        int result;

        WAL__RETRY(result, fstatat(view.parent->fd, view.name, &st,
                                   AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT));
        status = answer(result, &error);
        wal__way_give_back(view.parent);
    }
    if (means_absent(status)) {
        *out = (struct wal__tree_stat){.kind = WAL__TREE_ABSENT};
        return WAL_OK;
    }
    if (status != WAL_OK) {
        *sys_errno = error;
        return status;
    }
    *out = wal__tree_stat_of(&st);
    return WAL_OK;
}

/* ------------------------------------------------------------- files --- */

/* 0 for a regular file, else the errno that says why not. */
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

static enum wal_status open_below(struct wal__tree *tree, const char *path,
                                  struct wal__tree_file *file, int *sys_errno)
{
    struct view view;
    int error;
    enum wal_status status = view_open(tree, path, &view, sys_errno);

    if (status != WAL_OK) {
        return status;
    }
    /* Does not wait for the other end of a pipe. */
    WAL__RETRY(file->fd, openat(view.parent->fd, view.name,
                                O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY |
                                    O_CLOEXEC));
    wal__way_give_back(view.parent);
    file->fd = wal__descriptor_move(file->fd);
    if (file->fd < 0) {
        return fail(sys_errno, errno);
    }
    error = check_regular(file->fd);
    if (error != 0) {
        (void)close(file->fd);
        return fail(sys_errno, error);
    }
    return WAL_OK;
}

static enum wal_status create_below(struct wal__tree *tree, const char *path,
                                    uint32_t mode, struct wal__tree_file *file,
                                    int *sys_errno)
{
    struct spot spot;
    struct stat st;
    enum wal_status status = spot_open(tree, path, &spot, sys_errno);

    if (status != WAL_OK) {
        return status;
    }
    file->fd = -1;
    if (fstat(spot.parent, &st) == 0) {
        int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;

        file->durable = st.st_dev != tree->device;
        flags |= file->durable ? O_SYNC : 0;
        WAL__RETRY(file->fd,
                   openat(spot.parent, spot.name, flags, mode & 07777));
    }
    spot_close(&spot);
    file->fd = wal__descriptor_move(file->fd);
    return answer(file->fd, sys_errno);
}

/* The memory first, so that no file is made when there is none. */
static struct wal__tree_file *new_file(void)
{
    struct wal__tree_file *file =
        wal__heap_alloc(&wal__heap_libc, sizeof(*file));

    if (file != NULL) {
        *file = (struct wal__tree_file){.fd = -1};
    }
    return file;
}

static enum wal_status tree_open(void *ctx, struct wal__tree *tree,
                                 const char *path, struct wal__tree_file **file,
                                 int *sys_errno)
{
    (void)ctx;
    struct wal__tree_file *made = new_file();
    enum wal_status status = made == NULL
                                 ? fail(sys_errno, ENOMEM)
                                 : open_below(tree, path, made, sys_errno);

    if (status != WAL_OK) {
        wal__heap_free(&wal__heap_libc, made);
        return status;
    }
    *file = made;
    return WAL_OK;
}

static enum wal_status tree_create(void *ctx, struct wal__tree *tree,
                                   const char *path, uint32_t mode,
                                   struct wal__tree_file **file, int *sys_errno)
{
    (void)ctx;
    struct wal__tree_file *made = new_file();
    enum wal_status status =
        made == NULL ? fail(sys_errno, ENOMEM)
                     : create_below(tree, path, mode, made, sys_errno);

    if (status != WAL_OK) {
        wal__heap_free(&wal__heap_libc, made);
        return status;
    }
    *file = made;
    return WAL_OK;
}

static void tree_close(void *ctx, struct wal__tree_file *file)
{
    (void)ctx;
    /* Not repeated: Linux frees the descriptor even when interrupted. */
    (void)close(file->fd);
    wal__heap_free(&wal__heap_libc, file);
}

static enum wal_status tree_file_stat(void *ctx, struct wal__tree_file *file,
                                      struct wal__tree_stat *out,
                                      int *sys_errno)
{
    (void)ctx;
    struct stat st;

    if (fstat(file->fd, &st) < 0) {
        return fail(sys_errno, errno);
    }
    *out = wal__tree_stat_of(&st);
    return WAL_OK;
}

static enum wal_status tree_read(void *ctx, struct wal__tree_file *file,
                                 void *data, size_t size, uint64_t offset,
                                 size_t *got, int *sys_errno)
{
    (void)ctx;
    ssize_t result;

    WAL__RETRY(result, pread(file->fd, data, size, (off_t)offset));
    if (result < 0) {
        return fail(sys_errno, errno);
    }
    *got = (size_t)result;
    return WAL_OK;
}

static enum wal_status tree_write(void *ctx, struct wal__tree_file *file,
                                  const void *data, size_t size,
                                  uint64_t offset, size_t *put, int *sys_errno)
{
    (void)ctx;
    ssize_t result;

    WAL__RETRY(result, pwrite(file->fd, data, size, (off_t)offset));
    if (result < 0) {
        return fail(sys_errno, errno);
    }
    *put = (size_t)result;
    return WAL_OK;
}

static enum wal_status tree_set_mode(void *ctx, struct wal__tree_file *file,
                                     uint32_t mode, int *sys_errno)
{
    (void)ctx;
    int result;

    WAL__RETRY(result, fchmod(file->fd, mode & 07777));
    if (result == 0 && file->durable) {
        WAL__RETRY(result, fsync(file->fd));
    }
    return answer(result, sys_errno);
}

/* ------------------------------------------------------------- links --- */

static enum wal_status tree_read_link(void *ctx, struct wal__tree *tree,
                                      const char *path, void *data, size_t size,
                                      size_t *got, int *sys_errno)
{
    (void)ctx;
    /* Longer than any, so that one that was cut cannot be taken for whole. */
    char target[PATH_MAX + 1];
    struct view view;
    ssize_t result;
    enum wal_status status = view_open(tree, path, &view, sys_errno);

    if (status != WAL_OK) {
        return status;
    }
    WAL__RETRY(result,
               readlinkat(view.parent->fd, view.name, target, sizeof(target)));
    wal__way_give_back(view.parent);
    if (result < 0) {
        *sys_errno = errno;
        return errno == EINVAL ? WAL_ENOTFILE : wal__tree_status(errno);
    }
    if ((size_t)result > size || (size_t)result == sizeof(target)) {
        return fail(sys_errno, ENAMETOOLONG);
    }
    memcpy(data, target, (size_t)result);
    *got = (size_t)result;
    return WAL_OK;
}

static enum wal_status tree_make_link(void *ctx, struct wal__tree *tree,
                                      const char *path, const char *target,
                                      int *sys_errno)
{
    (void)ctx;
    struct spot spot;
    int result;
    enum wal_status status = spot_open(tree, path, &spot, sys_errno);

    if (status != WAL_OK) {
        return status;
    }
    WAL__RETRY(result, symlinkat(target, spot.parent, spot.name));
    spot_close(&spot);
    return answer(result, sys_errno);
}

/* ------------------------------------------------------------- names --- */

static enum wal_status tree_rename(void *ctx, struct wal__tree *tree,
                                   const char *from, const char *to,
                                   int *sys_errno)
{
    (void)ctx;
    struct spot old;
    struct spot new;
    int result;
    enum wal_status status = spot_open(tree, from, &old, sys_errno);

    if (status != WAL_OK) {
        return status;
    }
    status = spot_open(tree, to, &new, sys_errno);
    if (status == WAL_OK) {
        WAL__RETRY(result,
                   renameat(old.parent, old.name, new.parent, new.name));
        spot_close(&new);
        status = answer(result, sys_errno);
    }
    spot_close(&old);
    return status;
}

static enum wal_status remove_name(struct wal__tree *tree, const char *path,
                                   int flags, int *sys_errno)
{
    struct spot spot;
    int result;
    enum wal_status status = spot_open(tree, path, &spot, sys_errno);

    if (status != WAL_OK) {
        return status;
    }
    WAL__RETRY(result, unlinkat(spot.parent, spot.name, flags));
    spot_close(&spot);
    return answer(result, sys_errno);
}

static enum wal_status tree_unlink(void *ctx, struct wal__tree *tree,
                                   const char *path, int *sys_errno)
{
    (void)ctx;
    return remove_name(tree, path, 0, sys_errno);
}

static enum wal_status tree_remove_directory(void *ctx, struct wal__tree *tree,
                                             const char *path, int *sys_errno)
{
    (void)ctx;
    return remove_name(tree, path, AT_REMOVEDIR, sys_errno);
}

static enum wal_status tree_make_directory(void *ctx, struct wal__tree *tree,
                                           const char *path, int *sys_errno)
{
    (void)ctx;
    struct spot spot;
    int result;
    enum wal_status status = spot_open(tree, path, &spot, sys_errno);

    if (status != WAL_OK) {
        return status;
    }
    WAL__RETRY(result, mkdirat(spot.parent, spot.name, 0777));
    spot_close(&spot);
    return answer(result, sys_errno);
}

static enum wal_status tree_may_replace(void *ctx, struct wal__tree *tree,
                                        const char *path, int *sys_errno)
{
    (void)ctx;
    struct spot spot;
    int found = 0;
    enum wal_status status = spot_open(tree, path, &spot, &found);

    if (status == WAL_OK) {
        found = wal__tree_check_replace(spot.parent, spot.name);
        spot_close(&spot);
        status = wal__tree_status(found);
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

static enum wal_status tree_sync_all(void *ctx, struct wal__tree *tree,
                                     int *sys_errno)
{
    (void)ctx;
    int result;

    /* The descriptor was open before anything was written, and so tells of
     * every write since that failed. */
    WAL__RETRY(result, syncfs(tree->ways.root));
    return answer(result, sys_errno);
}

/* 0, or why one of the paths cannot be looked for. */
static int check_paths(const char *paths, size_t size)
{
    int error = 0;

    for (size_t at = 0; at < size && error == 0; at += strlen(paths + at) + 1) {
        struct wal__tree_place place;

        if (paths[at] != '\0') {
            error = wal__tree_path_cut(paths + at, &place);
        }
    }
    return error;
}

static enum wal_status tree_sync_directories(void *ctx, struct wal__tree *tree,
                                             const char *paths, size_t size,
                                             int *sys_errno)
{
    (void)ctx;
    struct wal__way_synced synced;
    int error = check_paths(paths, size);

    if (error != 0) {
        return fail_on_way(sys_errno, error);
    }
    synced = wal__way_sync(&tree->ways, paths, size, tree->device);
    if (synced.error != 0) {
        return fail(sys_errno, synced.error);
    }
    return synced.way == 0 ? WAL_OK : fail_on_way(sys_errno, synced.way);
}

/* Files get the time of the last tick, which lies before that of the clock:
 * so does this, and what is written after the call is not older. */
static int64_t tree_now_ns(void *ctx)
{
    (void)ctx;
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_REALTIME_COARSE, &now);
    return wal__tree_time_ns(&now);
}

/* ------------------------------------------------------------- table --- */

#define TABLE(manner)                                                        \
    {                                                                        \
        .ctx = (manner), .open_root = tree_open_root,                        \
        .close_root = tree_close_root, .stat = tree_stat, .open = tree_open, \
        .create = tree_create, .close = tree_close,                          \
        .file_stat = tree_file_stat, .read = tree_read, .write = tree_write, \
        .set_mode = tree_set_mode, .read_link = tree_read_link,              \
        .make_link = tree_make_link, .rename = tree_rename,                  \
        .unlink = tree_unlink, .make_directory = tree_make_directory,        \
        .remove_directory = tree_remove_directory,                           \
        .may_replace = tree_may_replace, .sync_all = tree_sync_all,          \
        .sync_directories = tree_sync_directories, .now_ns = tree_now_ns,    \
    }

static struct manner at_once = {.by_parts = false};
static struct manner in_parts = {.by_parts = true};

const struct wal__tree_io wal__tree_posix = TABLE(&at_once);
const struct wal__tree_io wal__tree_posix_by_parts = TABLE(&in_parts);
