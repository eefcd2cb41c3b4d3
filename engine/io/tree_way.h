/*
 * tree_way.h - from the root of a work tree to a directory below it, without
 * leaving the root and without following a link (SPEC.md 5.14). Any thread.
 */
#ifndef WAL_IO_TREE_WAY_H
#define WAL_IO_TREE_WAY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    WAL__WAYS = 2,        /* that a shelf remembers */
    WAL__WAY_SHELVES = 16 /* so that threads do not wait for each other */
};

/* A directory that was found. */
struct wal__way {
    int fd; /* for paths only, but the root's */
    atomic_uint refs;
    uint64_t found_ns;
    size_t size;
    char path[]; /* `size` bytes below the root */
};

/* What threads whose ids fall on it have found. */
struct wal__way_shelf {
    _Alignas(64) pthread_mutex_t mutex;
    struct wal__way *known[WAL__WAYS];
    size_t next; /* the place to be taken by the next one */
};

struct wal__ways {
    int root;             /* open to be read */
    atomic_bool by_parts; /* the kernel has no openat2(2) */
    struct wal__way_shelf shelves[WAL__WAY_SHELVES];
};

/* Takes the descriptor of the root. 0, or an errno. */
int wal__ways_init(struct wal__ways *ways, int root, bool by_parts);
void wal__ways_deinit(struct wal__ways *ways);

/* A descriptor of the directory at the path's first `size` bytes, for paths
 * only, to be closed by the caller; negative: see errno. ELOOP or EXDEV where
 * the way leads out or through a link. */
int wal__way_open(struct wal__ways *ways, const char *path, size_t size);

/* The names in directories whose paths stand one behind the other, each
 * followed by a NUL, on stable storage; the root is the empty one, and the
 * device its own. Several of them there are covered by one sync of the file
 * system; those on other devices are synced one by one. */
struct wal__way_synced {
    int error; /* 0, or the errno of a sync */
    int way;   /* 0, or the errno of the first that could not be found */
};

struct wal__way_synced wal__way_sync(struct wal__ways *ways, const char *paths,
                                     size_t size, dev_t device);

/* The directory for a call that only looks: it may have been found up to 10 ms
 * ago, and is found for others too. Null: see errno. Give it back. */
struct wal__way *wal__way_look(struct wal__ways *ways, const char *path,
                               size_t size);
void wal__way_give_back(struct wal__way *way);

#endif
