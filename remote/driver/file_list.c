/*
 * file_list.c - lists the objects of a remote in a directory (file_place.h).
 *
 * Directories are read whole and sorted, with a '/' at the end of the names of
 * directories, so that visiting each in its place gives the byte order of the
 * whole names. What cannot be an object's name is left out: temporary files,
 * links, devices.
 *
 * Invariant: the frames on the stack are the directories on the path to what is
 * visited. Any thread.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/descriptor.h"
#include "engine/base/error.h"
#include "format/bytes/assert.h"
#include "remote/driver/file_place.h"
#include "remote/driver/object_name.h"

enum {
    DEPTH_MAX = WAL__OBJECT_NAME_MAX / 2 + 1
};

/* A directory that is being visited. */
struct frame {
    struct wal__buf text; /* names, terminated */
    char **names;         /* into text; sorted */
    uint32_t count;
    uint32_t next;
    size_t path_size; /* of the path of the directory, with its '/' */
};

struct listing {
    const struct wal__file_place *place;
    const char *prefix;
    const char *after;
    bool is_temporary; /* temporary files are listed, in place of objects */
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

    return (has_prefix(path, listing->prefix) ||
            has_prefix(listing->prefix, path)) &&
           (strcmp(path, listing->after) > 0 ||
            has_prefix(listing->after, path));
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
    WAL__RETRY_EINTR(
        fd,
        openat(root, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
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

/* Adds the names of a directory to the frame. -1 with errno, which is 0 when
 * there is no memory. */
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

static enum wal_status sort_names(const struct listing *listing,
                                  struct frame *frame, struct wal_error *error)
{
    char *at = (char *)frame->text.data;

    frame->names = wal__heap_resize(listing->place->heap, NULL, frame->count,
                                    sizeof(frame->names[0]));
    if (frame->names == NULL) {
        return wal__no_memory(error);
    }
    for (uint32_t i = 0; i < frame->count; i++) {
        frame->names[i] = at;
        at += strlen(at) + 1;
    }
    if (frame->count > 0) {
        qsort(frame->names, frame->count, sizeof(frame->names[0]),
              compare_names);
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

/* Begins to visit the directory of the path, whose size is `path_size`. One
 * that is gone is empty. */
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
        status = errno == 0
                     ? wal__no_memory(error)
                     : wal__file_fail(listing->place, "",
                                      "cannot list a directory of the remote",
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
static enum wal_status visit(struct listing *listing, int root,
                             wal__driver_list_fn *each, void *ctx, bool *more,
                             struct wal_error *error)
{
    struct stat found;

    if (fstatat(root, listing->path, &found, AT_SYMLINK_NOFOLLOW) != 0) {
        return errno == ENOENT
                   ? WAL_OK
                   : wal__file_fail(listing->place, listing->path,
                                    "cannot read the size of the object",
                                    error);
    }
    *more = each(ctx, listing->path, (uint64_t)found.st_size);
    return WAL_OK;
}

/* The next name of the innermost directory. */
static enum wal_status step(struct listing *listing, int root,
                            wal__driver_list_fn *each, void *ctx, bool *more,
                            struct wal_error *error)
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
        return is_wanted_object(listing)
                   ? visit(listing, root, each, ctx, more, error)
                   : WAL_OK;
    }
    return is_wanted_directory(listing)
               ? push(listing, root, frame->path_size + size, error)
               : WAL_OK;
}

static enum wal_status run(const struct wal__file_place *place,
                           const char *prefix, const char *after,
                           bool is_temporary, wal__driver_list_fn *each,
                           void *ctx, struct wal_error *error)
{
    int root = -1;
    bool more = true;
    enum wal_status status = wal__file_root(place, &root, error);
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

enum wal_status wal__file_list(const struct wal__file_place *place,
                               const char *prefix, const char *after,
                               wal__driver_list_fn *each, void *ctx,
                               struct wal_error *error)
{
    return run(place, prefix, after, false, each, ctx, error);
}

enum wal_status wal__file_list_temporary(const struct wal__file_place *place,
                                         const char *prefix,
                                         wal__driver_list_fn *each, void *ctx,
                                         struct wal_error *error)
{
    return run(place, prefix, "", true, each, ctx, error);
}
