/*
 * worktree_posix.c - the table of worktree.h on the calls of POSIX and of system.h (SPEC.md 5.14).
 *
 * Every name is given to the system as the last component below a directory that was opened beneath
 * the root, with the flag that forbids to follow it. Directories are resolved in one system call
 * where the system can (openat2(2)), else component by component, each with a flag that refuses
 * links. A call that changes something opens that directory itself; a call that only reads may use
 * one that was opened up to 10 ms ago, from a cache whose parts the threads rarely share.
 *
 * Invariants: a path that was split names nothing above the root unless a
 * component is a link. A name is refused if the system would refuse to replace
 * it, or if it could not be restored afterwards. Times are exact until the year
 * 2262. Any thread.
 */
#include "engine/base/worktree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "engine/base/descriptor.h"
#include "engine/base/heap.h"
#include "engine/base/io.h"
#include "engine/base/system.h"
#include "format/bytes/assert.h"

/* --- paths and errors --------------------------------------------------- */

/* 0, or an errno for a component that a plain path cannot have. */
static int check_component(const char *component, size_t size)
{
    if (size == 0 || (size == 1 && component[0] == '.')) {
        return EINVAL;
    }
    if (size == 2 && component[0] == '.' && component[1] == '.') {
        return EXDEV;
    }
    return size > NAME_MAX ? ENAMETOOLONG : 0;
}

int wal__worktree_path_split(const char *path, struct wal__worktree_path *split)
{
    const char *component = path;
    int error = path[0] == '/' ? EXDEV : 0;
    int too_long = 0;

    /* ENAMETOOLONG is reported only if the path is plain otherwise. */
    while (error == 0) {
        size_t size = strcspn(component, "/");

        error = check_component(component, size);
        if (error == ENAMETOOLONG) {
            too_long = error;
            error = 0;
        }
        if (component[size] == '\0') {
            break;
        }
        component += size + 1;
    }
    if (error == 0 && strlen(path) > PATH_MAX) {
        too_long = ENAMETOOLONG;
    }
    if (error != 0 || too_long != 0) {
        return error != 0 ? error : too_long;
    }
    split->parent_size = component == path ? 0 : (size_t)(component - path) - 1;
    split->name = component;
    WAL__ASSERT(split->parent_size < PATH_MAX);
    return 0;
}

enum wal_status wal__worktree_status(int sys_errno)
{
    switch (sys_errno) {
    case ENOTEMPTY:
        return WAL_EEXISTS;
    case EACCES:
    case EPERM:
    case EROFS:
    case EBUSY:
        return WAL_EACCESS;
    case EISDIR:
    case ELOOP:
    case ENODEV:
    case ENXIO:
        return WAL_ENOTFILE;
    case ENAMETOOLONG:
        return WAL_ETOOBIG;
    default:
        return wal__io_status(sys_errno);
    }
}

enum wal_status wal__worktree_resolve_status(int sys_errno)
{
    switch (sys_errno) {
    case ELOOP:
    case EXDEV:
        return WAL_EOUTSIDE;
    case EINVAL:
        return WAL_EINVAL;
    default:
        return wal__worktree_status(sys_errno);
    }
}

/* Stores the errno of a call on a name, and returns its status. */
static enum wal_status report_errno(int *sys_errno, int error)
{
    *sys_errno = error;
    return wal__worktree_status(error);
}

/* The same for resolving the path to its parent. */
static enum wal_status report_resolve_errno(int *sys_errno, int error)
{
    *sys_errno = error;
    return wal__worktree_resolve_status(error);
}

enum {
    SHARD_DIRS = 4, /* directories cached per shard */
    SHARDS = 16     /* so that threads rarely share a mutex */
};

/* A resolved directory. */
struct cached_dir {
    int fd; /* of wal__system_open_place */
    atomic_uint refs;
    uint64_t resolved_ns;
    size_t size;
    char path[]; /* `size` bytes, relative to the root; not terminated */
};

/* The cache of the threads whose ids hash to this shard. */
struct shard {
    _Alignas(64) pthread_mutex_t mutex;
    struct cached_dir *dirs[SHARD_DIRS];
    size_t next_victim; /* the slot that the next path replaces */
};

struct resolver {
    int root;                 /* O_RDONLY; owned */
    atomic_bool by_component; /* wal__system_open_beneath is not available */
    struct shard shards[SHARDS];
};

/* How long a cached directory is used without resolving its path again. */
static const uint64_t cache_ttl_ns = 10000000;

/* --------------------------------------------------------- resolving --- */

/* Linux reports ENOTDIR for a link and for a file; a link is changed to ELOOP. */
static int open_component(int directory, const char *name)
{
    struct stat st;
    int fd;

    WAL__RETRY_EINTR(fd, wal__system_open_place(directory, name, false));
    if (fd < 0 && errno == ENOTDIR) {
        bool is_link =
            fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);

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

/* Opens the directory named by the path's first `size` bytes, as a place that the caller
 * closes; negative with errno set on failure. ELOOP or EXDEV if the path leaves the root or
 * contains a link. */
static int resolve(struct resolver *resolver, const char *path, size_t size)
{
    char copy[PATH_MAX];

    if (size == 0) {
        int fd;

        WAL__RETRY_EINTR(fd, wal__system_open_place(resolver->root, ".", true));
        return wal__descriptor_above_stdio(fd);
    }
    if (size >= sizeof(copy)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(copy, path, size);
    copy[size] = '\0';
    if (!atomic_load_explicit(&resolver->by_component, memory_order_relaxed)) {
        int fd;

        WAL__RETRY_EINTR(fd, wal__system_open_beneath(resolver->root, copy));
        /* EAGAIN: a rename raced with the call. */
        if (fd >= 0 || (errno != ENOTSUP && errno != EAGAIN)) {
            return wal__descriptor_above_stdio(fd);
        }
        if (errno != EAGAIN) {
            atomic_store_explicit(&resolver->by_component, true, memory_order_relaxed);
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

    WAL__RETRY_EINTR(fd, openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd < 0) {
        return errno;
    }
    WAL__RETRY_EINTR(result, wal__system_sync_whole(fd));
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

static int sync_deferred(const struct resolver *resolver, const struct deferred *deferred)
{
    int result;

    if (deferred->count <= 1) {
        return deferred->count == 0 ? 0 : sync_directory(deferred->first);
    }
    WAL__RETRY_EINTR(result, wal__system_sync_file_system(resolver->root));
    return result < 0 ? errno : 0;
}

/* The result of sync_dirs: each is 0 or the first errno. */
struct synced {
    int error;         /* of a sync */
    int resolve_error; /* of resolving a path */
};

/* Writes the names in directories to stable storage. `paths` holds plain paths, each followed by a
 * NUL, `size` bytes in total; the empty one is the root, whose device is `device`. Several
 * directories on that device are covered by one sync of it; directories on other devices are synced
 * one by one. */
static struct synced sync_dirs(struct resolver *resolver, const char *paths, size_t size,
                               dev_t device)
{
    struct synced synced = {0};
    struct deferred deferred = {.first = -1};
    int error;

    for (size_t at = 0; at < size; at += strlen(paths + at) + 1) {
        int fd = resolve(resolver, paths + at, strlen(paths + at));

        if (fd < 0) {
            synced.resolve_error = synced.resolve_error == 0 ? errno : synced.resolve_error;
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
    return (uint64_t)wal__system_clock_ns(WAL__CLOCK_COARSE);
}

static struct shard *thread_shard(struct resolver *resolver)
{
    uint64_t id = (uint64_t)(uintptr_t)pthread_self();

    /* Thread ids are addresses that differ by multiples of a page; the multiplication spreads them
     * over the top 4 bits. */
    return &resolver->shards[(id >> 12) * UINT64_C(0x9e3779b97f4a7c15) >> 60];
}

static void dir_unref(struct cached_dir *dir)
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

static struct cached_dir *shard_lookup(struct shard *shard, const char *path, size_t size)
{
    uint64_t now = now_ns();
    struct cached_dir *found = NULL;

    pthread_mutex_lock(&shard->mutex);
    for (size_t i = 0; i < SHARD_DIRS && found == NULL; i++) {
        struct cached_dir *dir = shard->dirs[i];

        if (dir != NULL && dir->size == size && memcmp(dir->path, path, size) == 0 &&
            now - dir->resolved_ns < cache_ttl_ns) {
            atomic_fetch_add(&dir->refs, 1);
            found = dir;
        }
    }
    pthread_mutex_unlock(&shard->mutex);
    return found;
}

/* Replaces the entry of the same path, else the next victim. */
static void shard_insert(struct shard *shard, struct cached_dir *dir)
{
    size_t slot = 0;

    pthread_mutex_lock(&shard->mutex);
    WAL__ASSERT(shard->next_victim < SHARD_DIRS);
    while (slot < SHARD_DIRS &&
           (shard->dirs[slot] == NULL || shard->dirs[slot]->size != dir->size ||
            memcmp(shard->dirs[slot]->path, dir->path, dir->size) != 0)) {
        slot++;
    }
    if (slot == SHARD_DIRS) {
        slot = shard->next_victim;
        shard->next_victim = (shard->next_victim + 1) % SHARD_DIRS;
    }
    dir_unref(shard->dirs[slot]);
    shard->dirs[slot] = dir;
    atomic_fetch_add(&dir->refs, 1);
    pthread_mutex_unlock(&shard->mutex);
}

/* Returns the directory for a call that only reads. It may be resolved up to 10 ms ago, and is
 * cached for other calls. NULL with errno set on failure. The caller releases it, which preserves
 * errno. */
static struct cached_dir *acquire_dir(struct resolver *resolver, const char *path, size_t size)
{
    struct shard *shard = thread_shard(resolver);
    struct cached_dir *dir = shard_lookup(shard, path, size);

    if (dir != NULL) {
        return dir;
    }
    dir = wal__heap_alloc(&wal__heap_libc, sizeof(*dir) + size);
    if (dir == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    /* The time before the path is resolved: the entry must not look newer than it is. */
    *dir = (struct cached_dir){.refs = 1, .resolved_ns = now_ns(), .size = size};
    memcpy(dir->path, path, size);
    dir->fd = resolve(resolver, path, size);
    if (dir->fd < 0) {
        int error = errno;

        wal__heap_free(&wal__heap_libc, dir);
        errno = error;
        return NULL;
    }
    shard_insert(shard, dir);
    return dir;
}

static void release_dir(struct cached_dir *dir)
{
    int error = errno;

    dir_unref(dir);
    errno = error;
}

/* ---------------------------------------------------------- lifetime --- */

/* Takes ownership of the root's descriptor, also of closing it in deinit; on failure, an errno, the
 * caller keeps it. */
static int init_resolver(struct resolver *resolver, int root, bool by_component)
{
    int error = 0;

    memset(resolver, 0, sizeof(*resolver));
    atomic_init(&resolver->by_component, by_component);
    resolver->root = root;
    for (size_t i = 0; i < SHARDS && error == 0; i++) {
        error = pthread_mutex_init(&resolver->shards[i].mutex, NULL);
    }
    return error;
}

static void deinit_resolver(struct resolver *resolver)
{
    for (size_t i = 0; i < SHARDS; i++) {
        struct shard *shard = &resolver->shards[i];

        for (size_t at = 0; at < SHARD_DIRS; at++) {
            dir_unref(shard->dirs[at]);
        }
        pthread_mutex_destroy(&shard->mutex);
    }
    (void)close(resolver->root);
}

/* --- last components ---------------------------------------------------- */

/* An open root. */
struct wal__worktree {
    struct resolver resolver;
    dev_t device; /* of the root */
};

/* A name in a directory that was opened for this call alone. `name` points into the path. */
struct leaf {
    int parent;
    const char *name;
};

static enum wal_status open_leaf(struct wal__worktree *tree, const char *path, struct leaf *leaf,
                                 int *sys_errno)
{
    struct wal__worktree_path split;
    int error = wal__worktree_path_split(path, &split);

    if (error != 0) {
        return report_resolve_errno(sys_errno, error);
    }
    leaf->parent = resolve(&tree->resolver, path, split.parent_size);
    leaf->name = split.name;
    return leaf->parent < 0 ? report_resolve_errno(sys_errno, errno) : WAL_OK;
}

/* Preserves errno. */
static void close_leaf(const struct leaf *leaf)
{
    int error = errno;

    WAL__ASSERT(leaf->parent >= 0);
    (void)close(leaf->parent);
    errno = error;
}

/* The same in a cached directory, for calls that only read. Release the parent with release_dir. */
struct cached_leaf {
    struct cached_dir *parent;
    const char *name;
};

static enum wal_status open_cached_leaf(struct wal__worktree *tree, const char *path,
                                        struct cached_leaf *leaf, int *sys_errno)
{
    struct wal__worktree_path split;
    int error = wal__worktree_path_split(path, &split);

    if (error != 0) {
        return report_resolve_errno(sys_errno, error);
    }
    leaf->parent = acquire_dir(&tree->resolver, path, split.parent_size);
    leaf->name = split.name;
    return leaf->parent == NULL ? report_resolve_errno(sys_errno, errno) : WAL_OK;
}

/* --- stats -------------------------------------------------------------- */

static enum wal__worktree_kind kind_of(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFREG:
        return WAL__WORKTREE_REGULAR;
    case S_IFLNK:
        return WAL__WORKTREE_SYMLINK;
    case S_IFDIR:
        return WAL__WORKTREE_DIRECTORY;
    default:
        return WAL__WORKTREE_OTHER;
    }
}

static struct wal__worktree_stat stat_of(const struct stat *st)
{
    return (struct wal__worktree_stat){
        .kind = kind_of(st->st_mode),
        .mode = st->st_mode & 07777,
        .size = (uint64_t)st->st_size,
        .mtime_ns = wal__system_modified_ns(st),
        .ctime_ns = wal__system_changed_ns(st),
        .inode = (uint64_t)st->st_ino,
        .device = (uint64_t)st->st_dev,
    };
}

/* --- what a file may replace -------------------------------------------- */

/* 0, or the errno that forbids to change any name in the directory. R_OK is needed to open the
 * directory for a sync. */
static int check_parent(int parent, struct wal__system_entry *entry)
{
    struct statvfs fs;

    if (faccessat(parent, ".", R_OK | W_OK | X_OK, AT_EACCESS) < 0 || fstatvfs(parent, &fs) < 0 ||
        wal__system_stat_entry(parent, ".", entry) < 0) {
        return errno;
    }
    if ((fs.f_flag & ST_RDONLY) != 0) {
        return EROFS;
    }
    return entry->is_immutable ? EPERM : 0;
}

/* 0, or the errno that forbids to replace what exists at the name. */
static int check_existing(const struct wal__system_entry *parent,
                          const struct wal__system_entry *entry)
{
    uid_t user = geteuid();

    if (S_ISDIR(entry->mode)) {
        return EISDIR;
    }
    if (!S_ISREG(entry->mode) && !S_ISLNK(entry->mode)) {
        return ENXIO;
    }
    if (entry->is_immutable) {
        return EPERM;
    }
    if (entry->is_mount_root) {
        return EBUSY;
    }
    if ((parent->mode & S_ISVTX) != 0 && user != parent->user && user != entry->user &&
        !wal__system_ignores_sticky()) {
        return EPERM;
    }
    return 0;
}

/* Returns 0 if a file of the same directory can be renamed to `name`, which may exist or not; else
 * the errno that forbids it. */
static int check_replace(int directory, const char *name)
{
    struct wal__system_entry parent;
    struct wal__system_entry entry;
    int error = check_parent(directory, &parent);

    if (error != 0) {
        return error;
    }
    if (wal__system_stat_entry(directory, name, &entry) < 0) {
        return errno == ENOENT ? 0 : errno;
    }
    return check_existing(&parent, &entry);
}

struct wal__worktree_file {
    int fd;
    bool durable; /* sync each change: sync_all does not cover this device */
    bool created; /* by this handle */
};

/* The ctx of a table. */
struct options {
    bool by_component; /* do not use wal__system_open_beneath */
};

/* The status of a system call that returns a negative number on failure. */
static enum wal_status result_status(int result, int *sys_errno)
{
    return result < 0 ? report_errno(sys_errno, errno) : WAL_OK;
}

/* ------------------------------------------------------------- roots --- */

static int worktree_init(struct wal__worktree *tree, const char *path, bool by_component)
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
        error = init_resolver(&tree->resolver, fd, by_component);
    }
    if (error != 0) {
        (void)close(fd);
    }
    return error;
}

static enum wal_status worktree_open_root(void *ctx, const char *path, struct wal__worktree **tree,
                                          int *sys_errno)
{
    const struct options *options = ctx;
    struct wal__worktree *created = wal__heap_alloc(&wal__heap_libc, sizeof(*created));
    int error;

    if (created == NULL) {
        return report_errno(sys_errno, ENOMEM);
    }
    error = worktree_init(created, path, options->by_component);
    if (error != 0) {
        wal__heap_free(&wal__heap_libc, created);
        return report_errno(sys_errno, error);
    }
    *tree = created;
    return WAL_OK;
}

static void worktree_close_root(void *ctx, struct wal__worktree *tree)
{
    (void)ctx;
    deinit_resolver(&tree->resolver);
    wal__heap_free(&wal__heap_libc, tree);
}

/* ------------------------------------------------------------- stats --- */

static enum wal_status worktree_stat(void *ctx, struct wal__worktree *tree, const char *path,
                                     struct wal__worktree_stat *out, int *sys_errno)
{
    (void)ctx;
    struct cached_leaf leaf;
    struct stat st;
    int error = 0;
    enum wal_status status = open_cached_leaf(tree, path, &leaf, &error);

    if (status == WAL_OK) {
        int result;

        WAL__RETRY_EINTR(result, fstatat(leaf.parent->fd, leaf.name, &st, AT_SYMLINK_NOFOLLOW));
        status = result_status(result, &error);
        release_dir(leaf.parent);
    }
    if (status == WAL_ENOTFOUND || status == WAL_ETOOBIG) {
        *out = (struct wal__worktree_stat){.kind = WAL__WORKTREE_ABSENT};
        return WAL_OK;
    }
    if (status != WAL_OK) {
        *sys_errno = error;
        return status;
    }
    *out = stat_of(&st);
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

static enum wal_status open_regular(struct wal__worktree *tree, const char *path,
                                    struct wal__worktree_file *file, int *sys_errno)
{
    struct cached_leaf leaf;
    int error;
    enum wal_status status = open_cached_leaf(tree, path, &leaf, sys_errno);

    if (status != WAL_OK) {
        return status;
    }
    /* O_NONBLOCK: do not wait for the other end of a pipe. */
    WAL__RETRY_EINTR(file->fd, openat(leaf.parent->fd, leaf.name,
                                      O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    release_dir(leaf.parent);
    file->fd = wal__descriptor_above_stdio(file->fd);
    if (file->fd < 0) {
        return report_errno(sys_errno, errno);
    }
    error = check_regular(file->fd);
    if (error != 0) {
        (void)close(file->fd);
        return report_errno(sys_errno, error);
    }
    return WAL_OK;
}

static enum wal_status create_regular(struct wal__worktree *tree, const char *path, uint32_t mode,
                                      struct wal__worktree_file *file, int *sys_errno)
{
    struct leaf leaf;
    struct stat st;
    enum wal_status status = open_leaf(tree, path, &leaf, sys_errno);

    if (status != WAL_OK) {
        return status;
    }
    file->fd = -1;
    if (fstat(leaf.parent, &st) == 0) {
        file->created = true;
        file->durable = st.st_dev != tree->device;
        WAL__RETRY_EINTR(file->fd,
                         openat(leaf.parent, leaf.name,
                                O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode & 07777));
    }
    close_leaf(&leaf);
    file->fd = wal__descriptor_above_stdio(file->fd);
    return result_status(file->fd, sys_errno);
}

/* Called before the file is created, so that none is left over when memory is exhausted. */
static struct wal__worktree_file *new_file(void)
{
    struct wal__worktree_file *file = wal__heap_alloc(&wal__heap_libc, sizeof(*file));

    if (file != NULL) {
        *file = (struct wal__worktree_file){.fd = -1};
    }
    return file;
}

static enum wal_status worktree_open(void *ctx, struct wal__worktree *tree, const char *path,
                                     struct wal__worktree_file **file, int *sys_errno)
{
    (void)ctx;
    struct wal__worktree_file *created = new_file();
    enum wal_status status = created == NULL ? report_errno(sys_errno, ENOMEM)
                                             : open_regular(tree, path, created, sys_errno);

    if (status != WAL_OK) {
        wal__heap_free(&wal__heap_libc, created);
        return status;
    }
    *file = created;
    return WAL_OK;
}

static enum wal_status worktree_create(void *ctx, struct wal__worktree *tree, const char *path,
                                       uint32_t mode, struct wal__worktree_file **file,
                                       int *sys_errno)
{
    (void)ctx;
    struct wal__worktree_file *created = new_file();
    enum wal_status status = created == NULL ? report_errno(sys_errno, ENOMEM)
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
        /* Starts to write the content, so that the disk is not idle until sync_all, which reports
         * what fails. */
        wal__system_write_back(file->fd, 0, 0);
    }
    /* Not retried: Linux frees the descriptor even after EINTR. */
    (void)close(file->fd);
    wal__heap_free(&wal__heap_libc, file);
}

static enum wal_status worktree_file_stat(void *ctx, struct wal__worktree_file *file,
                                          struct wal__worktree_stat *out, int *sys_errno)
{
    (void)ctx;
    struct stat st;

    if (fstat(file->fd, &st) < 0) {
        return report_errno(sys_errno, errno);
    }
    *out = stat_of(&st);
    return WAL_OK;
}

static enum wal_status worktree_read(void *ctx, struct wal__worktree_file *file, void *data,
                                     size_t size, uint64_t offset, size_t *bytes_read,
                                     int *sys_errno)
{
    (void)ctx;
    ssize_t result;

    WAL__RETRY_EINTR(result, pread(file->fd, data, size, (off_t)offset));
    if (result < 0) {
        return report_errno(sys_errno, errno);
    }
    *bytes_read = (size_t)result;
    return WAL_OK;
}

static enum wal_status worktree_write(void *ctx, struct wal__worktree_file *file, const void *data,
                                      size_t size, uint64_t offset, size_t *bytes_written,
                                      int *sys_errno)
{
    (void)ctx;
    ssize_t result;

    WAL__RETRY_EINTR(result, pwrite(file->fd, data, size, (off_t)offset));
    if (result >= 0 && file->durable) {
        int synced;

        WAL__RETRY_EINTR(synced, wal__system_sync(file->fd));
        result = synced < 0 ? synced : result;
    }
    if (result < 0) {
        return report_errno(sys_errno, errno);
    }
    *bytes_written = (size_t)result;
    return WAL_OK;
}

static enum wal_status worktree_set_mode(void *ctx, struct wal__worktree_file *file, uint32_t mode,
                                         int *sys_errno)
{
    (void)ctx;
    int result;

    WAL__RETRY_EINTR(result, fchmod(file->fd, mode & 07777));
    if (result == 0 && file->durable) {
        WAL__RETRY_EINTR(result, wal__system_sync_whole(file->fd));
    }
    return result_status(result, sys_errno);
}

/* ------------------------------------------------------------- links --- */

static enum wal_status worktree_read_link(void *ctx, struct wal__worktree *tree, const char *path,
                                          void *data, size_t size, size_t *bytes_read,
                                          int *sys_errno)
{
    (void)ctx;
    /* One byte longer than any target, so that a cut one is detected. */
    char target[PATH_MAX + 1];
    struct cached_leaf leaf;
    ssize_t result;
    enum wal_status status = open_cached_leaf(tree, path, &leaf, sys_errno);

    if (status != WAL_OK) {
        return status;
    }
    WAL__RETRY_EINTR(result, readlinkat(leaf.parent->fd, leaf.name, target, sizeof(target)));
    release_dir(leaf.parent);
    if (result < 0) {
        *sys_errno = errno;
        return errno == EINVAL ? WAL_ENOTFILE : wal__worktree_status(errno);
    }
    if ((size_t)result > size || (size_t)result == sizeof(target)) {
        return report_errno(sys_errno, ENAMETOOLONG);
    }
    memcpy(data, target, (size_t)result);
    *bytes_read = (size_t)result;
    return WAL_OK;
}

static enum wal_status worktree_make_link(void *ctx, struct wal__worktree *tree, const char *path,
                                          const char *target, int *sys_errno)
{
    (void)ctx;
    struct leaf leaf;
    int result;
    enum wal_status status = open_leaf(tree, path, &leaf, sys_errno);

    if (status != WAL_OK) {
        return status;
    }
    WAL__RETRY_EINTR(result, symlinkat(target, leaf.parent, leaf.name));
    close_leaf(&leaf);
    return result_status(result, sys_errno);
}

/* ------------------------------------------------------------- names --- */

static enum wal_status worktree_rename(void *ctx, struct wal__worktree *tree, const char *from,
                                       const char *to, int *sys_errno)
{
    (void)ctx;
    struct leaf old;
    struct leaf new;
    int result;
    enum wal_status status = open_leaf(tree, from, &old, sys_errno);

    if (status != WAL_OK) {
        return status;
    }
    status = open_leaf(tree, to, &new, sys_errno);
    if (status != WAL_OK) {
        goto done;
    }
    WAL__RETRY_EINTR(result, renameat(old.parent, old.name, new.parent, new.name));
    close_leaf(&new);
    status = result_status(result, sys_errno);
done:
    close_leaf(&old);
    return status;
}

static enum wal_status remove_name(struct wal__worktree *tree, const char *path, int flags,
                                   int *sys_errno)
{
    struct leaf leaf;
    int result;
    enum wal_status status = open_leaf(tree, path, &leaf, sys_errno);

    if (status != WAL_OK) {
        return status;
    }
    WAL__RETRY_EINTR(result, unlinkat(leaf.parent, leaf.name, flags));
    close_leaf(&leaf);
    return result_status(result, sys_errno);
}

static enum wal_status worktree_unlink(void *ctx, struct wal__worktree *tree, const char *path,
                                       int *sys_errno)
{
    (void)ctx;
    return remove_name(tree, path, 0, sys_errno);
}

static enum wal_status worktree_remove_directory(void *ctx, struct wal__worktree *tree,
                                                 const char *path, int *sys_errno)
{
    (void)ctx;
    return remove_name(tree, path, AT_REMOVEDIR, sys_errno);
}

static enum wal_status worktree_make_directory(void *ctx, struct wal__worktree *tree,
                                               const char *path, int *sys_errno)
{
    (void)ctx;
    struct leaf leaf;
    int result;
    enum wal_status status = open_leaf(tree, path, &leaf, sys_errno);

    if (status != WAL_OK) {
        return status;
    }
    WAL__RETRY_EINTR(result, mkdirat(leaf.parent, leaf.name, 0777));
    close_leaf(&leaf);
    return result_status(result, sys_errno);
}

static enum wal_status worktree_list(void *ctx, struct wal__worktree *tree, const char *path,
                                     enum wal_status (*each)(void *arg, const char *name),
                                     void *arg, int *sys_errno)
{
    (void)ctx;
    struct leaf leaf;
    enum wal_status status = open_leaf(tree, path, &leaf, sys_errno);
    int fd;

    if (status != WAL_OK) {
        return status;
    }
    WAL__RETRY_EINTR(
        fd, openat(leaf.parent, leaf.name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    close_leaf(&leaf);
    status = wal__descriptor_list(wal__descriptor_above_stdio(fd), each, arg, sys_errno);
    return *sys_errno == 0 ? status : wal__worktree_status(*sys_errno);
}

static enum wal_status worktree_check_replace(void *ctx, struct wal__worktree *tree,
                                              const char *path, int *sys_errno)
{
    (void)ctx;
    struct leaf leaf;
    int found = 0;
    enum wal_status status = open_leaf(tree, path, &leaf, &found);

    if (status == WAL_OK) {
        found = check_replace(leaf.parent, leaf.name);
        close_leaf(&leaf);
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

static enum wal_status worktree_sync_all(void *ctx, struct wal__worktree *tree, int *sys_errno)
{
    (void)ctx;
    int result;

    /* The descriptor was open before the first write, so the sync reports every write that failed
     * since. */
    WAL__RETRY_EINTR(result, wal__system_sync_file_system(tree->resolver.root));
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

static enum wal_status worktree_sync_directories(void *ctx, struct wal__worktree *tree,
                                                 const char *paths, size_t size, int *sys_errno)
{
    (void)ctx;
    struct synced synced;
    int error = check_paths(paths, size);

    if (error != 0) {
        return report_resolve_errno(sys_errno, error);
    }
    synced = sync_dirs(&tree->resolver, paths, size, tree->device);
    if (synced.error != 0) {
        return report_errno(sys_errno, synced.error);
    }
    return synced.resolve_error == 0 ? WAL_OK
                                     : report_resolve_errno(sys_errno, synced.resolve_error);
}

/* A file that is written after the call does not get an earlier time. */
static int64_t worktree_now_ns(void *ctx)
{
    (void)ctx;
    return wal__system_clock_ns(WAL__CLOCK_FILES);
}

/* ------------------------------------------------------------- table --- */

#define TABLE(options)                                                                            \
    {                                                                                             \
        .ctx = (options), .open_root = worktree_open_root, .close_root = worktree_close_root,     \
        .stat = worktree_stat, .open = worktree_open, .create = worktree_create,                  \
        .close = worktree_close, .file_stat = worktree_file_stat, .read = worktree_read,          \
        .write = worktree_write, .set_mode = worktree_set_mode, .read_link = worktree_read_link,  \
        .make_link = worktree_make_link, .rename = worktree_rename, .unlink = worktree_unlink,    \
        .make_directory = worktree_make_directory, .remove_directory = worktree_remove_directory, \
        .list = worktree_list, .check_replace = worktree_check_replace,                           \
        .sync_all = worktree_sync_all, .sync_directories = worktree_sync_directories,             \
        .now_ns = worktree_now_ns,                                                                \
    }

static struct options openat2_options = {.by_component = false};
static struct options component_options = {.by_component = true};

const struct wal__worktree_io wal__worktree_posix = TABLE(&openat2_options);
const struct wal__worktree_io wal__worktree_posix_no_openat2 = TABLE(&component_options);
