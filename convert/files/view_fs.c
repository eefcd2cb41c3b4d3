/*
 * view_fs.c - directories and files below a view's root (view_fs.h, SPEC.md
 * 10.3).
 */
#include "convert/files/view_fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/error.h"
#include "engine/base/system.h"
#include "format/bytes/assert.h"

#define NAME_SIZE 256 /* of a path component, with its NUL */

struct wal__file_stamp wal__file_stamp_of(const struct stat *stat)
{
    return (struct wal__file_stamp){.size = (uint64_t)stat->st_size,
                                    .mtime_ns = wal__system_modified_ns(stat),
                                    .inode = (uint64_t)stat->st_ino};
}

bool wal__file_stamp_equal(const struct wal__file_stamp *one, const struct wal__file_stamp *two)
{
    return one->size == two->size && one->mtime_ns == two->mtime_ns && one->inode == two->inode;
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
        return wal__fail_at(error, WAL_ENOTFOUND, number, name, 0, "%s", strerror(number));
    case ENOSPC:
    case EDQUOT:
        return wal__fail_at(error, WAL_ENOSPACE, number, name, 0, "%s", strerror(number));
    case EACCES:
    case EPERM:
    case EROFS:
        return wal__fail_at(error, WAL_EACCESS, number, name, 0, "%s", strerror(number));
    case EISDIR:
        return wal__fail_at(error, WAL_ENOTFILE, number, name, 0, "%s", strerror(number));
    case ENOMEM:
        return wal__fail_at(error, WAL_ENOMEM, number, name, 0, "no memory");
    default:
        return wal__fail_at(error, WAL_EIO, number, name, 0, "%s", strerror(number));
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

/* Creates a directory, durably unless the one above it may not be read. One that exists was made by
 * another process, which syncs it. */
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
    is_made = wal__system_sync_whole(fd) == 0;
    number = errno;
    close(fd);
    errno = number;
    return is_made;
}

/* Creates the root and its missing parents. */
static bool create_root(const struct wal__view_env *env, const char *root)
{
    int above = wal__system_open_place(AT_FDCWD, root[0] == '/' ? "/" : ".", true);
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
            fd = wal__system_open_place(above, part, true);
            if (fd < 0 && errno == ENOENT && make_directory(above, part)) {
                fd = wal__system_open_place(above, part, true);
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

static bool is_link(int above, const char *name)
{
    struct stat stat;

    return fstatat(above, name, &stat, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(stat.st_mode);
}

/* Opens a directory below another one, and closes that. ELOOP: it is a symbolic link. */
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
    if (fd < 0 && (number == ENOTDIR || number == ELOOP) && is_link(above, name)) {
        number = ELOOP;
    }
    close(above);
    errno = number;
    return fd;
}

enum wal_status wal__view_fs_open_parent(const struct wal__view_env *env, const char *root,
                                         const char *path, bool create_missing, int *fd,
                                         const char **name, struct wal_error *error)
{
    char part[NAME_SIZE] = ".";
    const char *slash;
    int at;

    if (!view_fs_is_beneath(path)) {
        return wal__fail_at(error, WAL_EOUTSIDE, 0, path, 0,
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
    if (at < 0 && errno == ELOOP) {
        return wal__fail_at(error, WAL_EOUTSIDE, 0, root, 0,
                            "%s is a symbolic link, through which nothing is written: give the "
                            "directory with the folder that it leads to",
                            part);
    }
    if (at < 0) {
        return wal__view_fs_fail(error, root);
    }
    *fd = at;
    *name = path;
    return WAL_OK;
}

enum wal_status wal__view_fs_open(int directory, const char *name, int *fd,
                                  struct wal__file_stamp *stamp, struct wal_error *error)
{
    int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    struct stat stat;
    int opened = openat(directory, name, flags);

    if (opened < 0) {
        return wal__view_fs_fail(error, name);
    }
    if (fstat(opened, &stat) != 0 || !S_ISREG(stat.st_mode)) {
        close(opened);
        return wal__fail_at(error, WAL_ENOTFILE, 0, name, 0, "exists and is no regular file");
    }
    *stamp = wal__file_stamp_of(&stat);
    *fd = opened;
    return WAL_OK;
}

enum wal_status wal__view_fs_create(const struct wal__view_env *env, int directory,
                                    const char *name, int *fd, struct wal_error *error)
{
    int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC;
    int opened;

    (void)wal__view_fault_point(env, 0);
    opened = openat(directory, name, flags, 0600);
    /* One that was left may be another name of a file that was linked into place: it must not be
     * truncated. */
    if (opened < 0 && errno == EEXIST && wal__view_fs_remove(env, directory, name)) {
        opened = openat(directory, name, flags, 0600);
    }
    if (opened < 0) {
        return wal__view_fs_fail(error, name);
    }
    *fd = opened;
    return WAL_OK;
}

enum wal_status wal__view_fs_open_append(const struct wal__view_env *env, int directory,
                                         const char *name, int *fd, struct wal_error *error)
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

enum wal_status wal__view_fs_write(const struct wal__view_env *env, int fd, const void *data,
                                   size_t size, struct wal_error *error)
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
                                  struct wal__file_stamp *stamp, struct wal_error *error)
{
    struct stat stat;

    (void)wal__view_fault_point(env, 0);
    if (wal__system_sync(fd) != 0 || fstat(fd, &stat) != 0) {
        return wal__view_fs_fail(error, NULL);
    }
    *stamp = wal__file_stamp_of(&stat);
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

enum wal_status wal__view_fs_rename(const struct wal__view_env *env, int from, const char *old,
                                    int to, const char *name, bool is_durable,
                                    struct wal_error *error)
{
    (void)wal__view_fault_point(env, 0);
    if (renameat(from, old, to, name) != 0 || (is_durable && wal__system_sync_whole(to) != 0)) {
        return wal__view_fs_fail(error, name);
    }
    return WAL_OK;
}

enum wal_status wal__view_fs_sync_names(const struct wal__view_env *env, int directory,
                                        const char *name, struct wal_error *error)
{
    (void)wal__view_fault_point(env, 0);
    return wal__system_sync_whole(directory) == 0 ? WAL_OK : wal__view_fs_fail(error, name);
}

bool wal__view_fs_remove(const struct wal__view_env *env, int directory, const char *name)
{
    (void)wal__view_fault_point(env, 0);
    return unlinkat(directory, name, 0) == 0 || errno == ENOENT;
}

/* --- files shared with the client ----------------------------------------- */

#define SEARCH_MAX ((uint64_t)64 << 20) /* bytes of a file that are searched */

/* Gives a complete file its name unless the name is taken: *exists. A link, unlike a rename, never
 * replaces a file that the client has just made. */
static enum wal_status link_new(const struct wal__shared_file *file, int directory,
                                const char *name, bool *exists, struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    (void)wal__view_fault_point(file->env, 0);
    *exists = linkat(file->temporary_dir, file->temporary, directory, name, 0) != 0;
    if (*exists && errno != EEXIST) {
        *exists = false;
        status = wal__view_fs_rename(file->env, file->temporary_dir, file->temporary, directory,
                                     name, true, error);
    } else if (wal__system_sync_whole(directory) != 0) {
        status = wal__view_fs_fail(error, name);
    }
    (void)wal__view_fs_remove(file->env, file->temporary_dir, file->temporary);
    return status;
}

/* Creates the file unless it was made meanwhile: *exists. */
static enum wal_status create(const struct wal__shared_file *file, int directory, const char *name,
                              bool *exists, struct wal_error *error)
{
    struct wal__file_stamp stamp;
    int fd = -1;
    enum wal_status status =
        wal__view_fs_create(file->env, file->temporary_dir, file->temporary, &fd, error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__view_fs_write(file->env, fd, file->data, file->size, error);
    if (status == WAL_OK) {
        status = wal__view_fs_sync(file->env, fd, &stamp, error);
    }
    close(fd);
    if (status != WAL_OK) {
        (void)wal__view_fs_remove(file->env, file->temporary_dir, file->temporary);
        return status;
    }
    return link_new(file, directory, name, exists, error);
}

/* Creates the file unless something has its name: *exists is set then. *name is in *directory,
 * which is -1 or to be closed. */
static enum wal_status open_or_create(const struct wal__shared_file *file, int *directory,
                                      const char **name, bool *exists, struct wal_error *error)
{
    struct stat stat;
    enum wal_status status =
        wal__view_fs_open_parent(file->env, file->root, file->path, true, directory, name, error);

    if (status != WAL_OK) {
        return status;
    }
    *exists = fstatat(*directory, *name, &stat, AT_SYMLINK_NOFOLLOW) == 0;
    return *exists ? WAL_OK : create(file, *directory, *name, exists, error);
}

enum wal_status wal__shared_file_create(const struct wal__shared_file *file,
                                        struct wal_error *error)
{
    const char *name = NULL;
    int directory = -1;
    bool exists = false;
    enum wal_status status = open_or_create(file, &directory, &name, &exists, error);

    if (directory >= 0) {
        close(directory);
    }
    return status;
}

/* Whether a line of the text begins with these bytes; one without its newline may be torn. */
static bool has_line(const uint8_t *text, size_t size, const void *line, size_t line_size)
{
    const uint8_t *end = text + size;
    const uint8_t *newline;

    while ((newline = memchr(text, '\n', (size_t)(end - text))) != NULL) {
        if ((size_t)(newline - text) >= line_size && memcmp(text, line, line_size) == 0) {
            return true;
        }
        text = newline + 1;
    }
    return false;
}

/* Where the last comma of the line is, or its end without one. */
static size_t last_comma(const struct wal__shared_file *file)
{
    size_t at = file->size;

    while (at > 0 && ((const char *)file->data)[at - 1] != ',') {
        at--;
    }
    return at > 0 ? at - 1 : file->size;
}

/* Reads the file and determines whether it has the line, and whether it ends in a newline. */
static enum wal_status search(const struct wal__shared_file *file, int fd, uint64_t size,
                              bool *is_found, bool *is_ended, struct wal_error *error)
{
    size_t compared = last_comma(file);
    uint8_t *text = wal__heap_alloc(file->env->heap, (size_t)size + 1);
    size_t have = 0;
    ssize_t got = 1;

    if (text == NULL) {
        return wal__no_memory(error);
    }
    while (have < size && got > 0) {
        got = pread(fd, text + have, (size_t)size - have, (off_t)have);
        have += got > 0 ? (size_t)got : 0;
    }
    *is_found = has_line(text, have, file->data, compared);
    *is_ended = have == 0 || text[have - 1] == '\n';
    wal__heap_free(file->env->heap, text);
    return WAL_OK;
}

static enum wal_status append(const struct wal__shared_file *file, int directory, const char *name,
                              bool is_ended, struct wal_error *error)
{
    struct wal__file_stamp stamp;
    int fd = -1;
    enum wal_status status = wal__view_fs_open_append(file->env, directory, name, &fd, error);

    if (status == WAL_OK && !is_ended) {
        status = wal__view_fs_write(file->env, fd, "\n", 1, error);
    }
    if (status == WAL_OK) {
        status = wal__view_fs_write(file->env, fd, file->data, file->size, error);
    }
    if (status == WAL_OK) {
        status = wal__view_fs_sync(file->env, fd, &stamp, error);
    }
    if (fd >= 0) {
        close(fd);
    }
    return status;
}

/* Appends the line to a file that exists, unless that has it. */
static enum wal_status append_new(const struct wal__shared_file *file, int directory,
                                  const char *name, struct wal_error *error)
{
    struct wal__file_stamp stamp = {.size = 0};
    int fd = -1;
    bool is_found = false;
    bool is_ended = true;
    enum wal_status status = wal__view_fs_open(directory, name, &fd, &stamp, error);

    if (status != WAL_OK) {
        return status;
    }
    if (stamp.size <= SEARCH_MAX) {
        status = search(file, fd, stamp.size, &is_found, &is_ended, error);
    }
    if (status == WAL_OK && !is_found && stamp.size <= SEARCH_MAX) {
        status = append(file, directory, name, is_ended, error);
    }
    close(fd);
    return status;
}

enum wal_status wal__shared_file_add_line(const struct wal__shared_file *file,
                                          struct wal_error *error)
{
    const char *name = NULL;
    int directory = -1;
    bool exists = false;
    enum wal_status status = open_or_create(file, &directory, &name, &exists, error);

    if (status == WAL_OK && exists) {
        status = append_new(file, directory, name, error);
    }
    if (directory >= 0) {
        close(directory);
    }
    return status;
}
