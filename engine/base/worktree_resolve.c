/*
 * worktree_resolve.c - resolves the path of a directory beneath a work tree's
 * root (worktree_resolve.h; SPEC.md 5.14): in one system call if the kernel has
 * openat2(2), else component by component. Invariant: every component that may
 * be a link is opened with a flag that refuses links. Any thread.
 */
#include "engine/base/worktree_resolve.h"

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
#include "format/bytes/assert.h"

/* How long a cached directory is used without resolving its path again. */
static const uint64_t cache_ttl_ns = 10000000;

enum {
    directory_flags = O_PATH | O_DIRECTORY | O_CLOEXEC
};

/* --------------------------------------------------------- resolving --- */

static int open_beneath(int root, const char *path)
{
    struct open_how how = {
        /* Without O_NOFOLLOW, which would make a link at the end ENOTDIR
         * instead of ELOOP. */
        .flags = directory_flags,
        .resolve =
            RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    long fd;

    WAL__RETRY_EINTR(fd, syscall(SYS_openat2, root, path, &how, sizeof(how)));
    return (int)fd;
}

/* The kernel reports ENOTDIR for a link and for a file; a link is changed to
 * ELOOP. */
static int open_component(int directory, const char *name)
{
    struct stat st;
    int fd;

    WAL__RETRY_EINTR(fd, openat(directory, name, directory_flags | O_NOFOLLOW));
    if (fd < 0 && errno == ENOTDIR) {
        bool is_link =
            fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISLNK(st.st_mode);

        errno = is_link ? ELOOP : ENOTDIR;
    }
    return fd;
}

/* Opens a plain path, and overwrites its slashes with NULs. */
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

        /* A seccomp filter may return EPERM for a system call that it does not
         * know. EAGAIN: a rename raced with the call. */
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

/* Directories of the root's file system that are synced together at the end. */
struct deferred {
    int first; /* descriptor of the first one; negative: none */
    size_t count;
};

/* Consumes the descriptor. */
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

/* ------------------------------------------------------------- cache --- */

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

    /* Thread ids are addresses that differ by multiples of a page; the
     * multiplication spreads them over the top 4 bits. */
    return &resolver->shards[(id >> 12) * UINT64_C(0x9e3779b97f4a7c15) >> 60];
}

static void dir_unref(struct wal__worktree_dir *dir)
{
    unsigned refs;

    if (dir == NULL) {
        return;
    }
    refs = atomic_fetch_sub(&dir->refs, 1);
    WAL__ASSERT(refs > 0);
    if (refs == 1) {
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

/* Replaces the entry of the same path, else the next victim. */
static void shard_insert(struct wal__worktree_shard *shard,
                         struct wal__worktree_dir *dir)
{
    size_t slot = 0;

    pthread_mutex_lock(&shard->mutex);
    WAL__ASSERT(shard->next_victim < WAL__WORKTREE_SHARD_DIRS);
    while (slot < WAL__WORKTREE_SHARD_DIRS &&
           (shard->dirs[slot] == NULL || shard->dirs[slot]->size != dir->size ||
            memcmp(shard->dirs[slot]->path, dir->path, dir->size) != 0)) {
        slot++;
    }
    if (slot == WAL__WORKTREE_SHARD_DIRS) {
        slot = shard->next_victim;
        shard->next_victim =
            (shard->next_victim + 1) % WAL__WORKTREE_SHARD_DIRS;
    }
    dir_unref(shard->dirs[slot]);
    shard->dirs[slot] = dir;
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
    /* The time before the path is resolved: the entry must not look newer than
     * it is. */
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
