/*
 * tree_way.c - the way to a directory below a work tree's root (tree_way.h;
 * SPEC.md 5.14): in one call of the system where it has openat2(2), else part
 * by part. Invariant: no part of a path that may be a link is given to the
 * system but with the flag that refuses links. Any thread.
 */
#include "engine/io/tree_way.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/heap.h"
#include "engine/io/descriptor.h"

/* How long a directory may be taken to be where it was found. */
static const uint64_t memory_ns = 10000000;

enum {
    directory_flags = O_PATH | O_DIRECTORY | O_CLOEXEC
};

/* ----------------------------------------------------------- finding --- */

static int open_whole(int root, const char *path)
{
    struct open_how how = {
        /* With O_NOFOLLOW a link at the end would be no directory. */
        .flags = directory_flags,
        .resolve =
            RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    long fd;

    WAL__RETRY(fd, syscall(SYS_openat2, root, path, &how, sizeof(how)));
    return (int)fd;
}

/* A link is refused as what is no directory; the two are told apart. */
static int open_part(int directory, const char *part)
{
    struct stat st;
    int fd;

    WAL__RETRY(fd, openat(directory, part, directory_flags | O_NOFOLLOW));
    if (fd < 0 && errno == ENOTDIR) {
        bool is_link =
            fstatat(directory, part, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISLNK(st.st_mode);

        errno = is_link ? ELOOP : ENOTDIR;
    }
    return fd;
}

/* Cuts the path, which is plain, into its parts. */
static int open_by_parts(int root, char *path)
{
    int fd = root;

    while (path != NULL) {
        char *slash = strchr(path, '/');

        if (slash != NULL) {
            *slash++ = '\0';
        }

        int next = open_part(fd, path);
        int error = errno;

        if (fd != root) {
            (void)close(fd);
        }
        errno = error;
        if (next < 0) {
            return -1;
        }
        fd = next;
        path = slash;
    }
    return fd;
}

int wal__way_open(struct wal__ways *ways, const char *path, size_t size)
{
    char copy[PATH_MAX];

    if (size == 0) {
        int fd;

        WAL__RETRY(fd, openat(ways->root, ".", directory_flags));
        return wal__descriptor_move(fd);
    }
    if (size >= sizeof(copy)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(copy, path, size);
    copy[size] = '\0';
    if (!atomic_load_explicit(&ways->by_parts, memory_order_relaxed)) {
        int fd = open_whole(ways->root, copy);

        /* A filter of system calls answers EPERM for one it does not know. */
        if (fd >= 0 || (errno != ENOSYS && errno != EPERM && errno != EAGAIN)) {
            return wal__descriptor_move(fd);
        }
        if (errno != EAGAIN) {
            atomic_store_explicit(&ways->by_parts, true, memory_order_relaxed);
        }
    }
    return wal__descriptor_move(open_by_parts(ways->root, copy));
}

/* ----------------------------------------------------------- syncing --- */

static int sync_directory(int directory)
{
    int fd;
    int result;
    int error;

    WAL__RETRY(fd, openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd < 0) {
        return errno;
    }
    WAL__RETRY(result, fsync(fd));
    error = result < 0 ? errno : 0;
    (void)close(fd);
    return error;
}

/* Directories of the root's file system. */
struct covered {
    int first;
    size_t count;
};

/* Takes the descriptor. */
static int sync_or_cover(int directory, dev_t device, struct covered *covered)
{
    struct stat st;
    int error = fstat(directory, &st) < 0 ? errno : 0;

    if (error == 0 && st.st_dev == device && covered->count++ == 0) {
        covered->first = directory;
        return 0;
    }
    if (error == 0 && st.st_dev != device) {
        error = sync_directory(directory);
    }
    (void)close(directory);
    return error;
}

static int sync_covered(const struct wal__ways *ways,
                        const struct covered *covered)
{
    int result;

    if (covered->count <= 1) {
        return covered->count == 0 ? 0 : sync_directory(covered->first);
    }
    WAL__RETRY(result, syncfs(ways->root));
    return result < 0 ? errno : 0;
}

struct wal__way_synced wal__way_sync(struct wal__ways *ways, const char *paths,
                                     size_t size, dev_t device)
{
    struct wal__way_synced synced = {0};
    struct covered covered = {.first = -1};
    int error;

    for (size_t at = 0; at < size; at += strlen(paths + at) + 1) {
        int fd = wal__way_open(ways, paths + at, strlen(paths + at));

        if (fd < 0) {
            synced.way = synced.way == 0 ? errno : synced.way;
            continue;
        }
        error = sync_or_cover(fd, device, &covered);
        synced.error = synced.error == 0 ? error : synced.error;
    }
    error = sync_covered(ways, &covered);
    synced.error = synced.error == 0 ? error : synced.error;
    if (covered.first >= 0) {
        (void)close(covered.first);
    }
    return synced;
}

/* ------------------------------------------------------- remembering --- */

static uint64_t now_ns(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static struct wal__way_shelf *own_shelf(struct wal__ways *ways)
{
    uint64_t id = (uint64_t)(uintptr_t)pthread_self();

    /* Stacks, which ids point to, lie at multiples of a page. */
    return &ways->shelves[(id >> 12) * UINT64_C(0x9e3779b97f4a7c15) >> 60];
}

static void release(struct wal__way *way)
{
    if (way != NULL && atomic_fetch_sub(&way->refs, 1) == 1) {
        (void)close(way->fd);
        wal__heap_free(&wal__heap_libc, way);
    }
}

static struct wal__way *recall(struct wal__way_shelf *shelf, const char *path,
                               size_t size)
{
    uint64_t now = now_ns();
    struct wal__way *found = NULL;

    pthread_mutex_lock(&shelf->mutex);
    for (size_t i = 0; i < WAL__WAYS && found == NULL; i++) {
        struct wal__way *way = shelf->known[i];

        if (way != NULL && way->size == size &&
            memcmp(way->path, path, size) == 0 &&
            now - way->found_ns < memory_ns) {
            atomic_fetch_add(&way->refs, 1);
            found = way;
        }
    }
    pthread_mutex_unlock(&shelf->mutex);
    return found;
}

/* In the place of the same path, or of the one found first. */
static void remember(struct wal__way_shelf *shelf, struct wal__way *way)
{
    size_t at = 0;

    pthread_mutex_lock(&shelf->mutex);
    while (at < WAL__WAYS &&
           (shelf->known[at] == NULL || shelf->known[at]->size != way->size ||
            memcmp(shelf->known[at]->path, way->path, way->size) != 0)) {
        at++;
    }
    if (at == WAL__WAYS) {
        at = shelf->next;
        shelf->next = (shelf->next + 1) % WAL__WAYS;
    }
    release(shelf->known[at]);
    shelf->known[at] = way;
    atomic_fetch_add(&way->refs, 1);
    pthread_mutex_unlock(&shelf->mutex);
}

struct wal__way *wal__way_look(struct wal__ways *ways, const char *path,
                               size_t size)
{
    struct wal__way_shelf *shelf = own_shelf(ways);
    struct wal__way *way = recall(shelf, path, size);

    if (way != NULL) {
        return way;
    }
    way = wal__heap_alloc(&wal__heap_libc, sizeof(*way) + size);
    if (way == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    /* The time before, so that it is not taken to be newer than it is. */
    *way = (struct wal__way){.refs = 1, .found_ns = now_ns(), .size = size};
    memcpy(way->path, path, size);
    way->fd = wal__way_open(ways, path, size);
    if (way->fd < 0) {
        int error = errno;

        wal__heap_free(&wal__heap_libc, way);
        errno = error;
        return NULL;
    }
    remember(shelf, way);
    return way;
}

void wal__way_give_back(struct wal__way *way)
{
    int error = errno;

    release(way);
    errno = error;
}

/* ---------------------------------------------------------- lifetime --- */

int wal__ways_init(struct wal__ways *ways, int root, bool by_parts)
{
    int error = 0;

    memset(ways, 0, sizeof(*ways));
    atomic_init(&ways->by_parts, by_parts);
    ways->root = root;
    for (size_t i = 0; i < WAL__WAY_SHELVES && error == 0; i++) {
        error = pthread_mutex_init(&ways->shelves[i].mutex, NULL);
    }
    return error;
}

void wal__ways_deinit(struct wal__ways *ways)
{
    for (size_t i = 0; i < WAL__WAY_SHELVES; i++) {
        struct wal__way_shelf *shelf = &ways->shelves[i];

        for (size_t at = 0; at < WAL__WAYS; at++) {
            release(shelf->known[at]);
        }
        pthread_mutex_destroy(&shelf->mutex);
    }
    (void)close(ways->root);
}
