/*
 * worktree_resolve.c - resolves the path of a directory below a work tree's
 * root (tree_way.h; SPEC.md 5.14): in one call of the system where it has
 * openat2(2), else part by part. Invariant: no part of a path that may be a
 * link is given to the system but with the flag that refuses links. Any thread.
 */
#include "engine/worktree/worktree_resolve.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/descriptor.h"
#include "engine/base/heap.h"

/* How long a directory may be taken to be where it was found. */
static const uint64_t cache_ttl_ns = 10000000;

enum {
    directory_flags = O_PATH | O_DIRECTORY | O_CLOEXEC
};

/* ----------------------------------------------------------- finding --- */

static int open_beneath(int root, const char *path)
{
    struct open_how how = {
        /* With O_NOFOLLOW a link at the end would be no directory. */
        .flags = directory_flags,
        .resolve =
            RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    long fd;

    WAL__RETRY_EINTR(fd, syscall(SYS_openat2, root, path, &how, sizeof(how)));
    return (int)fd;
}

/* A link is refused as what is no directory; the two are told apart. */
static int open_component(int directory, const char *part)
{
    struct stat st;
    int fd;

    WAL__RETRY_EINTR(fd, openat(directory, part, directory_flags | O_NOFOLLOW));
    if (fd < 0 && errno == ENOTDIR) {
        bool is_link =
            fstatat(directory, part, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISLNK(st.st_mode);

        errno = is_link ? ELOOP : ENOTDIR;
    }
    return fd;
}

/* Cuts the path, which is plain, into its parts. */
static int open_by_component(int root, char *path)
{
    int fd = root;

    while (path != NULL) {
        char *slash = strchr(path, '/');

        if (slash != NULL) {
            *slash++ = '\0';
        }

        int next = open_component(fd, path);
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

int wal__worktree_resolve(struct wal__worktree_resolver *resolver,
                          const char *path, size_t size)
{
    char copy[PATH_MAX];

    if (size == 0) {
        int fd;

        WAL__RETRY_EINTR(fd, openat(resolver->root, ".", directory_flags));
        return wal__descriptor_above_stdio(fd);
    }
    if (size >= sizeof(copy)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(copy, path, size);
    copy[size] = '\0';
    if (!atomic_load_explicit(&resolver->by_component, memory_order_relaxed)) {
        int fd = open_beneath(resolver->root, copy);

        /* A filter of system calls answers EPERM for one it does not know. */
        if (fd >= 0 || (errno != ENOSYS && errno != EPERM && errno != EAGAIN)) {
            return wal__descriptor_above_stdio(fd);
        }
        if (errno != EAGAIN) {
            atomic_store_explicit(&resolver->by_component, true,
                                  memory_order_relaxed);
        }
    }
    return wal__descriptor_above_stdio(open_by_component(resolver->root, copy));
}

/* ----------------------------------------------------------- syncing --- */

static int sync_directory(int directory)
{
    int fd;
    int result;
    int error;

    WAL__RETRY_EINTR(
        fd, openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd < 0) {
        return errno;
    }
    WAL__RETRY_EINTR(result, fsync(fd));
    error = result < 0 ? errno : 0;
    (void)close(fd);
    return error;
}

/* Directories of the root's file system. */
struct deferred {
    int first;
    size_t count;
};

/* Takes the descriptor. */
static int sync_or_defer(int directory, dev_t device, struct deferred *deferred)
{
    struct stat st;
    int error = fstat(directory, &st) < 0 ? errno : 0;

    if (error == 0 && st.st_dev == device && deferred->count++ == 0) {
        deferred->first = directory;
        return 0;
    }
    if (error == 0 && st.st_dev != device) {
        error = sync_directory(directory);
    }
    (void)close(directory);
    return error;
}

static int sync_deferred(const struct wal__worktree_resolver *resolver,
                         const struct deferred *deferred)
{
    int result;

    if (deferred->count <= 1) {
        return deferred->count == 0 ? 0 : sync_directory(deferred->first);
    }
    WAL__RETRY_EINTR(result, syncfs(resolver->root));
    return result < 0 ? errno : 0;
}

struct wal__worktree_synced
wal__worktree_sync_dirs(struct wal__worktree_resolver *resolver,
                        const char *paths, size_t size, dev_t device)
{
    struct wal__worktree_synced synced = {0};
    struct deferred deferred = {.first = -1};
    int error;

    for (size_t at = 0; at < size; at += strlen(paths + at) + 1) {
        int fd =
            wal__worktree_resolve(resolver, paths + at, strlen(paths + at));

        if (fd < 0) {
            synced.resolve_error =
                synced.resolve_error == 0 ? errno : synced.resolve_error;
            continue;
        }
        error = sync_or_defer(fd, device, &deferred);
        synced.error = synced.error == 0 ? error : synced.error;
    }
    error = sync_deferred(resolver, &deferred);
    synced.error = synced.error == 0 ? error : synced.error;
    if (deferred.first >= 0) {
        (void)close(deferred.first);
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

static struct wal__worktree_shard *
thread_shard(struct wal__worktree_resolver *resolver)
{
    uint64_t id = (uint64_t)(uintptr_t)pthread_self();

    /* Stacks, which ids point to, lie at multiples of a page. */
    return &resolver->shards[(id >> 12) * UINT64_C(0x9e3779b97f4a7c15) >> 60];
}

static void dir_unref(struct wal__worktree_dir *dir)
{
    if (dir != NULL && atomic_fetch_sub(&dir->refs, 1) == 1) {
        (void)close(dir->fd);
        wal__heap_free(&wal__heap_libc, dir);
    }
}

static struct wal__worktree_dir *shard_lookup(struct wal__worktree_shard *shard,
                                              const char *path, size_t size)
{
    uint64_t now = now_ns();
    struct wal__worktree_dir *found = NULL;

    pthread_mutex_lock(&shard->mutex);
    for (size_t i = 0; i < WAL__WORKTREE_SHARD_DIRS && found == NULL; i++) {
        struct wal__worktree_dir *dir = shard->dirs[i];

        if (dir != NULL && dir->size == size &&
            memcmp(dir->path, path, size) == 0 &&
            now - dir->resolved_ns < cache_ttl_ns) {
            atomic_fetch_add(&dir->refs, 1);
            found = dir;
        }
    }
    pthread_mutex_unlock(&shard->mutex);
    return found;
}

/* In the place of the same path, or of the one found first. */
static void shard_insert(struct wal__worktree_shard *shard,
                         struct wal__worktree_dir *dir)
{
    size_t at = 0;

    pthread_mutex_lock(&shard->mutex);
    while (at < WAL__WORKTREE_SHARD_DIRS &&
           (shard->dirs[at] == NULL || shard->dirs[at]->size != dir->size ||
            memcmp(shard->dirs[at]->path, dir->path, dir->size) != 0)) {
        at++;
    }
    if (at == WAL__WORKTREE_SHARD_DIRS) {
        at = shard->next_victim;
        shard->next_victim =
            (shard->next_victim + 1) % WAL__WORKTREE_SHARD_DIRS;
    }
    dir_unref(shard->dirs[at]);
    shard->dirs[at] = dir;
    atomic_fetch_add(&dir->refs, 1);
    pthread_mutex_unlock(&shard->mutex);
}

struct wal__worktree_dir *
wal__worktree_dir_acquire(struct wal__worktree_resolver *resolver,
                          const char *path, size_t size)
{
    struct wal__worktree_shard *shard = thread_shard(resolver);
    struct wal__worktree_dir *dir = shard_lookup(shard, path, size);

    if (dir != NULL) {
        return dir;
    }
    dir = wal__heap_alloc(&wal__heap_libc, sizeof(*dir) + size);
    if (dir == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    /* The time before, so that it is not taken to be newer than it is. */
    *dir = (struct wal__worktree_dir){
        .refs = 1, .resolved_ns = now_ns(), .size = size};
    memcpy(dir->path, path, size);
    dir->fd = wal__worktree_resolve(resolver, path, size);
    if (dir->fd < 0) {
        int error = errno;

        wal__heap_free(&wal__heap_libc, dir);
        errno = error;
        return NULL;
    }
    shard_insert(shard, dir);
    return dir;
}

void wal__worktree_dir_release(struct wal__worktree_dir *dir)
{
    int error = errno;

    dir_unref(dir);
    errno = error;
}

/* ---------------------------------------------------------- lifetime --- */

int wal__worktree_resolver_init(struct wal__worktree_resolver *resolver,
                                int root, bool by_component)
{
    int error = 0;

    memset(resolver, 0, sizeof(*resolver));
    atomic_init(&resolver->by_component, by_component);
    resolver->root = root;
    for (size_t i = 0; i < WAL__WORKTREE_SHARDS && error == 0; i++) {
        error = pthread_mutex_init(&resolver->shards[i].mutex, NULL);
    }
    return error;
}

void wal__worktree_resolver_deinit(struct wal__worktree_resolver *resolver)
{
    for (size_t i = 0; i < WAL__WORKTREE_SHARDS; i++) {
        struct wal__worktree_shard *shard = &resolver->shards[i];

        for (size_t at = 0; at < WAL__WORKTREE_SHARD_DIRS; at++) {
            dir_unref(shard->dirs[at]);
        }
        pthread_mutex_destroy(&shard->mutex);
    }
    (void)close(resolver->root);
}
