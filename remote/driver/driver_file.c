/*
 * driver_file.c - objects as the files of a local directory (driver.h, SPEC.md
 * 11.3).
 *
 * An object is written to a temporary file in its directory, which is synced and then linked
 * (put_if_absent) or renamed (put) to its name; the directory is synced last. The names of
 * temporary files begin with '~', which no object has in its name: those that a killed process left
 * are never listed or read.
 *
 * Invariant: a file with the name of an object is whole and does not change. Any thread.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/descriptor.h"
#include "engine/base/error.h"
#include "engine/base/system.h"
#include "format/bytes/assert.h"
#include "remote/driver/driver.h"

struct file_place {
    const struct wal__heap *heap;
    const char *directory; /* absolute */
};

/* Where an object is: zeroed but for fd -1, it is closed. */
struct file_at {
    int fd; /* of the directory */
    const char *leaf;
};

/* --- directories ---------------------------------------------------------- */

enum { DIRECTORY_FLAGS = O_RDONLY | O_DIRECTORY | O_CLOEXEC };

/* Fills *error from errno for an object, or for the directory (name empty): WAL_ENOSPACE,
 * WAL_EACCESS, WAL_ENOMEM, else WAL_EREMOTE. */
static enum wal_status file_fail(const struct file_place *place, const char *name, const char *what,
                                 struct wal_error *error)
{
    int code = errno;
    char url[sizeof(error->file)];
    enum wal_status status = code == ENOSPC || code == EDQUOT                   ? WAL_ENOSPACE
                             : code == ENOMEM                                   ? WAL_ENOMEM
                             : code == EACCES || code == EPERM || code == EROFS ? WAL_EACCESS
                                                                                : WAL_EREMOTE;

    (void)snprintf(url, sizeof(url), "file://%s%s%s", place->directory, name[0] == '\0' ? "" : "/",
                   name);
    return wal__fail_at(error, status, code, url, 0, "%s: %s", what, strerror(code));
}

/* Opens the directory of the remote. WAL_ENOTSTORE. */
static enum wal_status file_root(const struct file_place *place, int *fd, struct wal_error *error)
{
    int opened;

    WAL__RETRY_EINTR(opened, open(place->directory, DIRECTORY_FLAGS));
    opened = wal__descriptor_above_stdio(opened);
    if (opened >= 0) {
        *fd = opened;
        return WAL_OK;
    }
    if (errno == ENOENT || errno == ENOTDIR) {
        return wal__fail_at(error, WAL_ENOTSTORE, errno, place->directory, 0,
                            "the directory of the remote does not exist");
    }
    return file_fail(place, "", "cannot open the directory of the remote", error);
}

/* Opens the directory `part` in *fd, and closes *fd, also on failure. */
static int step_into(int *fd, const char *part)
{
    int below;

    WAL__RETRY_EINTR(below, openat(*fd, part, DIRECTORY_FLAGS | O_NOFOLLOW));
    below = wal__descriptor_above_stdio(below);

    int code = errno;

    (void)close(*fd);
    errno = code;
    *fd = below;
    return below;
}

/* Makes the directory `part` in fd, and syncs fd also when it was there: the process that made it
 * may not have done that yet. */
static int make_in(int fd, const char *part)
{
    int result;

    if (mkdirat(fd, part, 0700) != 0 && errno != EEXIST) {
        return -1;
    }
    WAL__RETRY_EINTR(result, wal__system_sync_whole(fd));
    return result;
}

static enum wal_status no_directory(const struct file_place *place, const char *name, bool make,
                                    struct wal_error *error)
{
    if (errno == ENOENT && !make) {
        return wal__fail(error, WAL_ENOTFOUND, "there is no object %s", name);
    }
    if (errno == ENOTDIR || errno == ELOOP) {
        return make ? wal__invalid(error,
                                   "%s cannot be made: an object or a link "
                                   "has the name of one of its directories",
                                   name)
                    : wal__fail(error, WAL_ENOTFOUND, "there is no object %s", name);
    }
    return file_fail(place, name, "cannot open the directory of an object", error);
}

static enum wal_status walk(const struct file_place *place, const char *name, bool make,
                            struct file_at *at, struct wal_error *error)
{
    char part[WAL__OBJECT_NAME_MAX + 1];
    int fd = -1;
    enum wal_status status = file_root(place, &fd, error);
    const char *slash;

    while (status == WAL_OK && (slash = strchr(name, '/')) != NULL) {
        memcpy(part, name, (size_t)(slash - name));
        part[slash - name] = '\0';
        if ((make && make_in(fd, part) != 0) || step_into(&fd, part) < 0) {
            status = no_directory(place, name, make, error);
        }
        name = slash + 1;
    }
    if (status != WAL_OK) {
        if (fd >= 0) {
            (void)close(fd);
        }
        return status;
    }
    *at = (struct file_at){fd, name};
    return WAL_OK;
}

/* Opens the directory that the object is in; at->leaf points into `name`. WAL_ENOTFOUND when there
 * is none. */
static enum wal_status file_find(const struct file_place *place, const char *name,
                                 struct file_at *at, struct wal_error *error)
{
    return walk(place, name, false, at, error);
}

static void file_close(struct file_at *at)
{
    if (at->fd >= 0) {
        (void)close(at->fd);
        at->fd = -1;
    }
}

/* --- listing -------------------------------------------------------------- */

/*
 * Directories are read whole and sorted, with a '/' at the end of the names of directories, so that
 * visiting each in its place gives the byte order of the whole names. What cannot be an object's
 * name is left out: temporary files, links, devices.
 *
 * Invariant: the frames on the stack are the directories on the path to what is visited. Any
 * thread.
 */

enum { DEPTH_MAX = WAL__OBJECT_NAME_MAX / 2 + 1 };

/* A directory that is being visited. */
struct frame {
    struct wal__buf text; /* names, terminated */
    char **names;         /* into text; sorted */
    uint32_t count;
    uint32_t next;
    size_t path_size; /* of the path of the directory, with its '/' */
};

struct listing {
    const struct file_place *place;
    const char *prefix;
    const char *after;
    bool is_temporary;                   /* temporary files are listed, in place of objects */
    char path[WAL__OBJECT_NAME_MAX + 2]; /* of what is visited */
    struct frame frames[DEPTH_MAX];
    uint32_t depth;
};

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool has_prefix(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Whether the path, which has a '/' at its end, may have objects to list. */
static bool is_wanted_directory(const struct listing *listing)
{
    const char *path = listing->path;

    return (has_prefix(path, listing->prefix) || has_prefix(listing->prefix, path)) &&
           (strcmp(path, listing->after) > 0 || has_prefix(listing->after, path));
}

static bool is_temporary_name(const char *name)
{
    return name[0] == '~';
}

static bool is_wanted_object(const struct listing *listing)
{
    const char *slash = strrchr(listing->path, '/');
    const char *name = slash == NULL ? listing->path : slash + 1;

    return has_prefix(listing->path, listing->prefix) &&
           strcmp(listing->path, listing->after) > 0 &&
           (listing->is_temporary ? is_temporary_name(name)
                                  : wal__object_name_is_valid(listing->path));
}

/* Opens the directory of the path; -1 with errno. */
static int open_path(const struct listing *listing, int root)
{
    size_t size = listing->frames[listing->depth].path_size;
    char path[WAL__OBJECT_NAME_MAX + 3] = ".";
    int fd;

    if (size > 0) {
        memcpy(path, listing->path, size);
        path[size] = '\0';
    }
    WAL__RETRY_EINTR(fd, openat(root, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    return wal__descriptor_above_stdio(fd);
}

enum kind {
    KIND_OTHER, /* or just removed */
    KIND_FILE,
    KIND_DIRECTORY
};

static enum kind kind_of(int fd, const struct dirent *entry)
{
    struct stat found;

    if (entry->d_type != DT_UNKNOWN) {
        return entry->d_type == DT_DIR   ? KIND_DIRECTORY
               : entry->d_type == DT_REG ? KIND_FILE
                                         : KIND_OTHER;
    }
    if (fstatat(fd, entry->d_name, &found, AT_SYMLINK_NOFOLLOW) != 0) {
        return KIND_OTHER;
    }
    return S_ISDIR(found.st_mode)   ? KIND_DIRECTORY
           : S_ISREG(found.st_mode) ? KIND_FILE
                                    : KIND_OTHER;
}

/* Adds the names of a directory to the frame. -1 with errno, which is 0 when there is no memory. */
static int read_names(DIR *dir, bool is_temporary, struct frame *frame)
{
    struct dirent *entry;

    for (errno = 0; (entry = readdir(dir)) != NULL; errno = 0) {
        size_t size = strlen(entry->d_name);
        enum kind kind = (wal__object_name_is_valid(entry->d_name) ||
                          (is_temporary && is_temporary_name(entry->d_name))) &&
                                 frame->path_size + size <= WAL__OBJECT_NAME_MAX
                             ? kind_of(dirfd(dir), entry)
                             : KIND_OTHER;

        if (kind == KIND_OTHER) {
            continue;
        }
        errno = 0;
        if (wal__buf_append(&frame->text, entry->d_name, size) != WAL_OK ||
            wal__buf_append(&frame->text, kind == KIND_DIRECTORY ? "/" : "",
                            kind == KIND_DIRECTORY ? 2 : 1) != WAL_OK) {
            return -1;
        }
        frame->count++;
    }
    return errno == 0 ? 0 : -1;
}

static enum wal_status sort_names(const struct listing *listing, struct frame *frame,
                                  struct wal_error *error)
{
    char *at = (char *)frame->text.data;

    frame->names =
        wal__heap_resize(listing->place->heap, NULL, frame->count, sizeof(frame->names[0]));
    if (frame->names == NULL) {
        return wal__no_memory(error);
    }
    for (uint32_t i = 0; i < frame->count; i++) {
        frame->names[i] = at;
        at += strlen(at) + 1;
    }
    if (frame->count > 0) {
        qsort(frame->names, frame->count, sizeof(frame->names[0]), compare_names);
    }
    return WAL_OK;
}

static void pop(struct listing *listing)
{
    struct frame *frame = &listing->frames[--listing->depth];

    wal__buf_deinit(&frame->text);
    wal__heap_free(listing->place->heap, frame->names);
    *frame = (struct frame){0};
}

/* Begins to visit the directory of the path, whose size is `path_size`. One that is gone is
 * empty. */
static enum wal_status push(struct listing *listing, int root, size_t path_size,
                            struct wal_error *error)
{
    struct frame *frame = &listing->frames[listing->depth];
    enum wal_status status = WAL_OK;
    DIR *dir;
    int fd;

    WAL__ASSERT(listing->depth < DEPTH_MAX);
    *frame = (struct frame){.path_size = path_size};
    wal__buf_init(&frame->text, listing->place->heap);
    fd = open_path(listing, root);
    listing->depth++;
    dir = fd < 0 ? NULL : fdopendir(fd);
    if (dir == NULL && (errno == ENOENT || errno == ENOTDIR)) {
        return WAL_OK;
    }
    if (dir == NULL || read_names(dir, listing->is_temporary, frame) != 0) {
        status = errno == 0 ? wal__no_memory(error)
                            : file_fail(listing->place, "", "cannot list a directory of the remote",
                                        error);
    }
    if (dir != NULL) {
        (void)closedir(dir);
    } else if (fd >= 0) {
        (void)close(fd);
    }
    return status == WAL_OK ? sort_names(listing, frame, error) : status;
}

/* Visits the object of the path. *more: go on. */
static enum wal_status visit(struct listing *listing, int root, wal__driver_list_fn *each,
                             void *ctx, bool *more, struct wal_error *error)
{
    struct stat found;

    if (fstatat(root, listing->path, &found, AT_SYMLINK_NOFOLLOW) != 0) {
        return errno == ENOENT ? WAL_OK
                               : file_fail(listing->place, listing->path,
                                           "cannot read the size of the object", error);
    }
    *more = each(ctx, listing->path, (uint64_t)found.st_size);
    return WAL_OK;
}

/* The next name of the innermost directory. */
static enum wal_status step(struct listing *listing, int root, wal__driver_list_fn *each, void *ctx,
                            bool *more, struct wal_error *error)
{
    struct frame *frame = &listing->frames[listing->depth - 1];

    if (frame->next == frame->count) {
        pop(listing);
        return WAL_OK;
    }

    const char *name = frame->names[frame->next++];
    size_t size = strlen(name);

    memcpy(listing->path + frame->path_size, name, size + 1);
    if (name[size - 1] != '/') {
        return is_wanted_object(listing) ? visit(listing, root, each, ctx, more, error) : WAL_OK;
    }
    return is_wanted_directory(listing) ? push(listing, root, frame->path_size + size, error)
                                        : WAL_OK;
}

static enum wal_status run(const struct file_place *place, const char *prefix, const char *after,
                           bool is_temporary, wal__driver_list_fn *each, void *ctx,
                           struct wal_error *error)
{
    int root = -1;
    bool more = true;
    enum wal_status status = file_root(place, &root, error);
    struct listing *listing;

    if (status != WAL_OK) {
        return status;
    }
    listing = wal__heap_zalloc(place->heap, sizeof(*listing));
    if (listing == NULL) {
        (void)close(root);
        return wal__no_memory(error);
    }
    listing->place = place;
    listing->prefix = prefix;
    listing->after = after;
    listing->is_temporary = is_temporary;
    status = push(listing, root, 0, error);
    while (status == WAL_OK && more && listing->depth > 0) {
        status = step(listing, root, each, ctx, &more, error);
    }
    while (listing->depth > 0) {
        pop(listing);
    }
    wal__heap_free(place->heap, listing);
    (void)close(root);
    return status;
}

/* --- the calls ------------------------------------------------------------ */

struct driver_file {
    struct wal__driver driver; /* first: what callers have */
    const struct wal__heap *heap;
    struct file_place place;
    char directory[]; /* of the place */
};

static struct driver_file *of(struct wal__driver *driver)
{
    return (struct driver_file *)driver;
}

static int write_all(int fd, const uint8_t *data, size_t size)
{
    while (size > 0) {
        ssize_t written;

        WAL__RETRY_EINTR(written, write(fd, data, size));
        if (written < 0) {
            return -1;
        }
        data += written;
        size -= (size_t)written;
    }
    return 0;
}

/* Creates a file that no other thread or process has. */
static int create_temporary(int directory, char *name, size_t capacity)
{
    static _Atomic uint64_t last;
    int fd;

    do {
        (void)snprintf(name, capacity, "~%ld.%llu", (long)getpid(),
                       (unsigned long long)atomic_fetch_add(&last, 1));
        WAL__RETRY_EINTR(fd, openat(directory, name,
                                    O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    } while (fd < 0 && errno == EEXIST);
    return wal__descriptor_above_stdio(fd);
}

/* Writes and syncs a temporary file in `directory`. On failure there is none, and errno is set. */
static int write_temporary(int directory, struct wal_slice bytes, char *name, size_t capacity)
{
    int fd = create_temporary(directory, name, capacity);
    int result;

    if (fd < 0) {
        return -1;
    }
    result = write_all(fd, bytes.data, bytes.size);
    if (result == 0) {
        WAL__RETRY_EINTR(result, wal__system_sync_whole(fd));
    }

    int code = errno;

    if (close(fd) != 0 && result == 0) {
        result = -1;
        code = errno;
    }
    if (result != 0) {
        (void)unlinkat(directory, name, 0);
        errno = code;
    }
    return result;
}

static bool is_directory(const struct file_at *at)
{
    struct stat found;

    return fstatat(at->fd, at->leaf, &found, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(found.st_mode);
}

/* Reports that the temporary file could not get the name of the object. */
static enum wal_status fail_name(const struct file_place *place, const char *name,
                                 const struct file_at *at, struct wal_error *error)
{
    int code = errno;

    if ((code == EEXIST || code == EISDIR) && is_directory(at)) {
        return wal__invalid(error,
                            "%s cannot be made: other objects are in a "
                            "directory of that name",
                            name);
    }
    if (code == EEXIST) {
        return wal__fail(error, WAL_EEXISTS, "the object %s exists", name);
    }
    errno = code;
    return file_fail(place, name, "cannot name the object", error);
}

static enum wal_status put_file(const struct file_place *place, const char *name,
                                struct wal_slice bytes, bool replace, struct wal_error *error)
{
    char temporary[64];
    struct file_at at = {-1, NULL};
    enum wal_status status = wal__object_check(name, bytes, error);
    int result;

    if (status == WAL_OK) {
        /* Makes the directories that are missing, durably. */
        status = walk(place, name, true, &at, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    if (write_temporary(at.fd, bytes, temporary, sizeof(temporary)) != 0) {
        status = file_fail(place, name, "cannot write the object", error);
        file_close(&at);
        return status;
    }
    result = replace ? renameat(at.fd, temporary, at.fd, at.leaf)
                     : linkat(at.fd, temporary, at.fd, at.leaf, 0);
    if (result != 0 && (errno == EPERM || errno == EOPNOTSUPP)) {
        status = file_fail(place, name,
                           "cannot create the object: the file system "
                           "has no hard links, by which one of several "
                           "that create it succeeds",
                           error);
    } else if (result != 0) {
        status = fail_name(place, name, &at, error);
    }
    if (result != 0 || !replace) {
        (void)unlinkat(at.fd, temporary, 0);
    }
    /* Also after WAL_EEXISTS: the caller may now rely on the other object. */
    if (status == WAL_OK || status == WAL_EEXISTS) {
        WAL__RETRY_EINTR(result, wal__system_sync_whole(at.fd));
        if (result != 0) {
            status = file_fail(place, name, "cannot sync the directory of the object", error);
        }
    }
    file_close(&at);
    return status;
}

static enum wal_status put_if_absent(struct wal__driver *driver, const char *name,
                                     struct wal_slice bytes, struct wal_error *error)
{
    return put_file(&of(driver)->place, name, bytes, false, error);
}

static enum wal_status put(struct wal__driver *driver, const char *name, struct wal_slice bytes,
                           struct wal_error *error)
{
    return put_file(&of(driver)->place, name, bytes, true, error);
}

/* Opens the file of an object, to be read. WAL_ENOTFOUND. */
static enum wal_status open_object(const struct file_place *place, const char *name, int *fd,
                                   uint64_t *size, struct wal_error *error)
{
    struct file_at at = {-1, NULL};
    struct stat found = {0};
    enum wal_status status = wal__object_name_check(name, error);
    int opened;

    if (status == WAL_OK) {
        status = file_find(place, name, &at, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    WAL__RETRY_EINTR(opened,
                     openat(at.fd, at.leaf, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    opened = wal__descriptor_above_stdio(opened);
    if (opened < 0 ? errno == ENOENT || errno == ELOOP || errno == ENXIO
                   : fstat(opened, &found) != 0 || !S_ISREG(found.st_mode)) {
        status = wal__fail(error, WAL_ENOTFOUND, "there is no object %s", name);
    } else if (opened < 0) {
        status = file_fail(place, name, "cannot open the object", error);
    }
    file_close(&at);
    if (status == WAL_OK) {
        *fd = opened;
        *size = (uint64_t)found.st_size;
    } else if (opened >= 0) {
        (void)close(opened);
    }
    return status;
}

/* Appends what the file has of the range; errno is 0 when there is no memory.
 */
static int read_range(int fd, uint64_t offset, uint64_t size, struct wal__buf *bytes)
{
    uint8_t *end;
    size_t done = 0;

    errno = 0;
    if (wal__buf_reserve(bytes, (size_t)size, &end) != WAL_OK) {
        return -1;
    }
    while (done < size) {
        ssize_t got;

        WAL__RETRY_EINTR(got, pread(fd, end + done, (size_t)size - done, (off_t)(offset + done)));
        if (got < 0) {
            return -1;
        }
        if (got == 0) {
            break;
        }
        done += (size_t)got;
    }
    bytes->size += done;
    return 0;
}

static enum wal_status get(struct wal__driver *driver, const char *name, uint64_t offset,
                           uint64_t size, struct wal__buf *bytes, struct wal_error *error)
{
    const struct file_place *place = &of(driver)->place;
    uint64_t total = 0;
    int fd = -1;
    enum wal_status status = open_object(place, name, &fd, &total, error);

    if (status != WAL_OK) {
        return status;
    }
    offset = offset < total ? offset : total;
    size = size < total - offset ? size : total - offset;
    if (size > WAL__OBJECT_MAX) {
        errno = EFBIG;
        status = file_fail(place, name, "the object is too big", error);
    } else if (read_range(fd, offset, size, bytes) != 0) {
        status = errno == 0 ? wal__no_memory(error)
                            : file_fail(place, name, "cannot read the object", error);
    }
    (void)close(fd);
    return status;
}

static enum wal_status head(struct wal__driver *driver, const char *name, uint64_t *size,
                            struct wal_error *error)
{
    int fd = -1;
    enum wal_status status = open_object(&of(driver)->place, name, &fd, size, error);

    if (status == WAL_OK) {
        (void)close(fd);
    }
    return status;
}

static enum wal_status list(struct wal__driver *driver, const char *prefix, const char *after,
                            wal__driver_list_fn *each, void *ctx, struct wal_error *error)
{
    return run(&of(driver)->place, prefix, after, false, each, ctx, error);
}

/* Whether the call failed because there is no object of that name. */
static bool is_absent(const struct file_at *at, int code)
{
    return code == ENOENT || ((code == EISDIR || code == EPERM) && is_directory(at));
}

static enum wal_status remove_object(struct wal__driver *driver, const char *name,
                                     struct wal_error *error)
{
    const struct file_place *place = &of(driver)->place;
    struct wal_error detail = {.struct_size = sizeof(detail)};
    struct file_at at = {-1, NULL};
    enum wal_status status = wal__object_name_check(name, error);
    int result;

    if (status != WAL_OK) {
        return status;
    }
    status = file_find(place, name, &at, &detail);
    if (status == WAL_ENOTFOUND) {
        return WAL_OK;
    }
    if (status != WAL_OK) {
        wal__error_copy(error, &detail);
        return status;
    }
    result = unlinkat(at.fd, at.leaf, 0);
    if (result == 0 || !is_absent(&at, errno)) {
        if (result == 0) {
            WAL__RETRY_EINTR(result, wal__system_sync_whole(at.fd));
        }
        if (result != 0) {
            status = file_fail(place, name, "cannot remove the object", error);
        }
    }
    file_close(&at);
    return status;
}

/* A sweep of temporary files; status: of the first that failed. */
struct sweep {
    const struct file_place *place;
    struct wal_error *error;
    enum wal_status status;
};

static bool remove_temporary(void *ctx, const char *name, uint64_t size)
{
    struct sweep *sweep = ctx;
    struct file_at at = {-1, NULL};
    int result;

    (void)size;
    sweep->status = file_find(sweep->place, name, &at, sweep->error);
    if (sweep->status == WAL_OK) {
        result = unlinkat(at.fd, at.leaf, 0);
        if (result == 0) {
            WAL__RETRY_EINTR(result, wal__system_sync_whole(at.fd));
        }
        if (result != 0 && errno != ENOENT) {
            sweep->status =
                file_fail(sweep->place, name, "cannot remove a temporary file", sweep->error);
        }
        file_close(&at);
    }
    return sweep->status == WAL_OK;
}

static enum wal_status sweep(struct wal__driver *driver, const char *prefix,
                             struct wal_error *error)
{
    struct sweep sweep = {&of(driver)->place, error, WAL_OK};
    enum wal_status status = run(sweep.place, prefix, "", true, remove_temporary, &sweep, error);

    return status == WAL_OK ? sweep.status : status;
}

static void close_driver(struct wal__driver *driver)
{
    struct driver_file *self = of(driver);

    wal__heap_free(self->heap, self);
}

static const struct wal__driver_calls calls = {.put_if_absent = put_if_absent,
                                               .put = put,
                                               .get = get,
                                               .head = head,
                                               .list = list,
                                               .remove = remove_object,
                                               .sweep = sweep,
                                               .close = close_driver};

enum wal_status wal__driver_file_open(const struct wal__driver_url *url,
                                      const struct wal__heap *heap, struct wal__driver **driver,
                                      struct wal_error *error)
{
    size_t size = strlen(url->directory) + 1;
    struct driver_file *self = wal__heap_zalloc(heap, sizeof(*self) + size);

    if (self == NULL) {
        return wal__no_memory(error);
    }
    memcpy(self->directory, url->directory, size);
    self->driver.calls = &calls;
    self->heap = heap;
    self->place = (struct file_place){heap, self->directory};
    *driver = &self->driver;
    return WAL_OK;
}
