/*
 * worktree_resolve.h - resolves directories beneath the root of a work tree,
 * without leaving the root and without following a link (SPEC.md 5.14), and
 * caches them for a moment. Any thread.
 */
#ifndef AGENTWAL_ENGINE_BASE_WORKTREE_RESOLVE_H
#define AGENTWAL_ENGINE_BASE_WORKTREE_RESOLVE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    WAL__WORKTREE_SHARD_DIRS = 4, /* directories cached per shard */
    WAL__WORKTREE_SHARDS = 16     /* so that threads rarely share a mutex */
};

/* A resolved directory. */
struct wal__worktree_dir {
    int fd; /* O_PATH */
    atomic_uint refs;
    uint64_t resolved_ns;
    size_t size;
    char path[]; /* `size` bytes, relative to the root; not terminated */
};

/* The cache of the threads whose ids hash to this shard. */
struct wal__worktree_shard {
    _Alignas(64) pthread_mutex_t mutex;
    struct wal__worktree_dir *dirs[WAL__WORKTREE_SHARD_DIRS];
    size_t next_victim; /* the slot that the next path replaces */
};

struct wal__worktree_resolver {
    int root;                 /* O_RDONLY; owned */
    atomic_bool by_component; /* openat2(2) is not available */
    struct wal__worktree_shard shards[WAL__WORKTREE_SHARDS];
};

/* Takes ownership of the root's descriptor, also of closing it in deinit; on
 * failure, an errno, the caller keeps it. */
int wal__worktree_resolver_init(struct wal__worktree_resolver *resolver,
                                int root, bool by_component);
void wal__worktree_resolver_deinit(struct wal__worktree_resolver *resolver);

/* Opens the directory named by the path's first `size` bytes, as an O_PATH
 * descriptor that the caller closes; negative with errno set on failure. ELOOP
 * or EXDEV if the path leaves the root or contains a link. */
int wal__worktree_resolve(struct wal__worktree_resolver *resolver,
                          const char *path, size_t size);

/* The result of wal__worktree_sync_dirs: each is 0 or the first errno. */
struct wal__worktree_synced {
    int error;         /* of a sync */
    int resolve_error; /* of resolving a path */
};

/* Writes the names in directories to stable storage. `paths` holds plain paths,
 * each followed by a NUL, `size` bytes in total; the empty one is the root,
 * whose device is `device`. Several directories on that device are covered by
 * one syncfs; directories on other devices are synced one by one. */
struct wal__worktree_synced
wal__worktree_sync_dirs(struct wal__worktree_resolver *resolver,
                        const char *paths, size_t size, dev_t device);

/* The directory for a call that only reads. It may have been resolved up to
 * 10 ms ago, and is cached for other calls. NULL with errno set on failure. The
 * caller releases it, which preserves errno. */
struct wal__worktree_dir *
wal__worktree_dir_acquire(struct wal__worktree_resolver *resolver,
                          const char *path, size_t size);
void wal__worktree_dir_release(struct wal__worktree_dir *dir);

#endif
