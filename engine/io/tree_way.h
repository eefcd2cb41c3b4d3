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
    WAL__WAYS = 8 /* that are remembered */
};

/* A directory that was found. */
struct wal__way {
    int fd; /* for paths only, but the root's */
    uint32_t refs;
    uint64_t found_ns;
    size_t size;
    char path[]; /* `size` bytes below the root */
};

struct wal__ways {
    int root;             /* open to be read */
    atomic_bool by_parts; /* the kernel has no openat2(2) */
    pthread_mutex_t mutex;
    struct wal__way *known[WAL__WAYS];
    size_t next; /* the place to be taken by the next one */
    /* Changes that may have been of names, each counted behind it; and how
     * many there were at the last sync of a directory, and of all. */
    atomic_uint changes;
    atomic_uint seen;
    atomic_uint covered;
};

/* Takes the descriptor of the root. 0, or an errno. */
int wal__ways_init(struct wal__ways *ways, int root, bool by_parts);
void wal__ways_deinit(struct wal__ways *ways);

/* A descriptor of the directory at the path's first `size` bytes, for paths
 * only, to be closed by the caller; negative: see errno. ELOOP or EXDEV where
 * the way leads out or through a link. */
int wal__way_open(struct wal__ways *ways, const char *path, size_t size);

/* The names in a directory that was found, on stable storage; the device is
 * the root's. After changes the first directory is synced by itself, a second
 * one with all of the file system, which costs no more, and so the others.
 * 0, or errno. */
int wal__way_sync(struct wal__ways *ways, int directory, dev_t device);

/* The directory for a call that only looks: it may have been found up to 10 ms
 * ago, and is found for others too. Null: see errno. Give it back. */
struct wal__way *wal__way_look(struct wal__ways *ways, const char *path,
                               size_t size);
void wal__way_give_back(struct wal__ways *ways, struct wal__way *way);

#endif
