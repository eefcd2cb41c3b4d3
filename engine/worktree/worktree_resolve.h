/*
 * worktree_resolve.h - from the root of a work tree to a directory below it,
 * without leaving the root and without following a link (SPEC.md 5.14). Any
 * thread.
 */
#ifndef AGENTWAL_ENGINE_WORKTREE_WORKTREE_RESOLVE_H
#define AGENTWAL_ENGINE_WORKTREE_WORKTREE_RESOLVE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    WAL__WORKTREE_SHARD_DIRS = 2, /* that a shelf remembers */
    WAL__WORKTREE_SHARDS = 16 /* so that threads do not wait for each other */
};

/* A directory that was found. */
struct wal__worktree_dir {
    int fd; /* for paths only, but the root's */
    atomic_uint refs;
    uint64_t resolved_ns;
    size_t size;
    char path[]; /* `size` bytes below the root */
};

/* What threads whose ids fall on it have found. */
struct wal__worktree_shard {
    _Alignas(64) pthread_mutex_t mutex;
    struct wal__worktree_dir *dirs[WAL__WORKTREE_SHARD_DIRS];
    size_t next_victim; /* the place to be taken by the next one */
};

struct wal__worktree_resolver {
    int root;                 /* open to be read */
    atomic_bool by_component; /* the kernel has no openat2(2) */
    struct wal__worktree_shard shards[WAL__WORKTREE_SHARDS];
};

/* Takes the descriptor of the root. 0, or an errno. */
int wal__worktree_resolver_init(struct wal__worktree_resolver *resolver,
                                int root, bool by_component);
void wal__worktree_resolver_deinit(struct wal__worktree_resolver *resolver);

/* A descriptor of the directory at the path's first `size` bytes, for paths
 * only, to be closed by the caller; negative: see errno. ELOOP or EXDEV where
 * the way leads out or through a link. */
int wal__worktree_resolve(struct wal__worktree_resolver *resolver,
                          const char *path, size_t size);

/* The names in directories whose paths stand one behind the other, each
 * followed by a NUL, on stable storage; the root is the empty one, and the
 * device its own. Several of them there are covered by one sync of the file
 * system; those on other devices are synced one by one. */
struct wal__worktree_synced {
    int error; /* 0, or the errno of a sync */
    /* 0, or the errno of the first that could not be found */
    int resolve_error;
};

struct wal__worktree_synced
wal__worktree_sync_dirs(struct wal__worktree_resolver *resolver,
                        const char *paths, size_t size, dev_t device);

/* The directory for a call that only looks: it may have been found up to 10 ms
 * ago, and is found for others too. Null: see errno. Give it back. */
struct wal__worktree_dir *
wal__worktree_dir_acquire(struct wal__worktree_resolver *resolver,
                          const char *path, size_t size);
void wal__worktree_dir_release(struct wal__worktree_dir *dir);

#endif
