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

int wal__way_sync(struct wal__ways *ways, int directory, dev_t device)
{
    unsigned changes = atomic_load(&ways->changes);
    struct stat st;
    int result;

    if (changes == 0 || atomic_load(&ways->seen) != changes ||
        fstat(directory, &st) < 0 || st.st_dev != device) {
        atomic_store(&ways->seen, changes);
        return sync_directory(directory);
    }
    if (atomic_load(&ways->covered) != changes) {
        WAL__RETRY(result, syncfs(ways->root));
        if (result < 0) {
            return errno;
        }
        atomic_store(&ways->covered, changes);
    }
    return 0;
}

/* ------------------------------------------------------- remembering --- */

static uint64_t now_ns(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Under the mutex. */
static void release(struct wal__way *way)
{
    if (way != NULL && --way->refs == 0) {
        (void)close(way->fd);
        wal__heap_free(&wal__heap_libc, way);
    }
}

static struct wal__way *recall(struct wal__ways *ways, const char *path,
                               size_t size)
{
    uint64_t now = now_ns();
    struct wal__way *found = NULL;

    pthread_mutex_lock(&ways->mutex);
    for (size_t i = 0; i < WAL__WAYS && found == NULL; i++) {
        struct wal__way *way = ways->known[i];

        if (way != NULL && way->size == size &&
            memcmp(way->path, path, size) == 0 &&
            now - way->found_ns < memory_ns) {
            way->refs++;
            found = way;
        }
    }
    pthread_mutex_unlock(&ways->mutex);
    return found;
}

/* In the place of the same path, or of the one found first. */
static void remember(struct wal__ways *ways, struct wal__way *way)
{
    size_t at = 0;

    pthread_mutex_lock(&ways->mutex);
    while (at < WAL__WAYS &&
           (ways->known[at] == NULL || ways->known[at]->size != way->size ||
            memcmp(ways->known[at]->path, way->path, way->size) != 0)) {
        at++;
    }
    if (at == WAL__WAYS) {
        at = ways->next;
        ways->next = (ways->next + 1) % WAL__WAYS;
    }
    release(ways->known[at]);
    ways->known[at] = way;
    way->refs++;
    pthread_mutex_unlock(&ways->mutex);
}

struct wal__way *wal__way_look(struct wal__ways *ways, const char *path,
                               size_t size)
{
    struct wal__way *way = recall(ways, path, size);

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
    remember(ways, way);
    return way;
}

void wal__way_give_back(struct wal__ways *ways, struct wal__way *way)
{
    int error = errno;

    pthread_mutex_lock(&ways->mutex);
    release(way);
    pthread_mutex_unlock(&ways->mutex);
    errno = error;
}

/* ---------------------------------------------------------- lifetime --- */

int wal__ways_init(struct wal__ways *ways, int root, bool by_parts)
{
    memset(ways, 0, sizeof(*ways));
    atomic_init(&ways->by_parts, by_parts);
    ways->root = root;
    return pthread_mutex_init(&ways->mutex, NULL);
}

void wal__ways_deinit(struct wal__ways *ways)
{
    for (size_t i = 0; i < WAL__WAYS; i++) {
        release(ways->known[i]);
    }
    pthread_mutex_destroy(&ways->mutex);
    (void)close(ways->root);
}
