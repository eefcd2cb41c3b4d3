/*
 * memfs.h - the names and contents behind io_memory.c. Every call but
 * lock and unlock themselves needs the mutex, which is one for all trees, so
 * that it can be held while the process forks. Fallible calls answer 0 or an
 * errno.
 */
#ifndef AGENTWAL_ENGINE_OS_MEMFS_H
#define AGENTWAL_ENGINE_OS_MEMFS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/heap.h"

struct wal__memfs_lock; /* io_memory.c */

/* A file or directory. It goes when it has no name, handle or map. */
struct wal__memfs_node {
    struct wal__memfs_node *next;      /* of the fs, in order of inode */
    struct wal__memfs_node *directory; /* null: the root, or no name */
    uint64_t inode;
    bool is_directory;
    char name[NAME_MAX + 1];
    uint8_t *bytes; /* zeros from size on; null: capacity is 0 */
    uint64_t size;
    uint64_t capacity;
    uint32_t handles;
    uint32_t maps;      /* while there are any, bytes stay where they are */
    uint32_t pin_count; /* copying now, without the mutex: the same */
    struct wal__memfs_lock *locks;
};

struct wal__memfs {
    const struct wal__heap *heap;
    struct wal__memfs_node root; /* the first of the list */
    uint64_t last_inode;
};

/* Where a path leads. */
struct wal__memfs_dentry {
    struct wal__memfs_node *directory; /* null: the path is the root */
    struct wal__memfs_node *node;      /* null: there is none of that name */
    const char *name;
    size_t name_size;
};

/* False without memory. */
bool wal__memfs_init(struct wal__memfs *fs, const struct wal__heap *heap);
void wal__memfs_deinit(struct wal__memfs *fs);

void wal__memfs_lock(void);
void wal__memfs_unlock(void);

/* ENOENT, ENOTDIR: on the way there. */
int wal__memfs_walk(struct wal__memfs *fs, const char *path,
                    struct wal__memfs_dentry *dentry);
/* What the path names. */
int wal__memfs_find(struct wal__memfs *fs, const char *path,
                    struct wal__memfs_node **node);
/* Makes the place's node. */
int wal__memfs_create(struct wal__memfs *fs, struct wal__memfs_dentry *dentry,
                      bool is_directory);
int wal__memfs_rename(struct wal__memfs *fs, const char *from, const char *to);
int wal__memfs_unlink(struct wal__memfs *fs, const char *path);
/* The directory's name with the smallest inode above this one, or null. */
const struct wal__memfs_node *
wal__memfs_next_child(const struct wal__memfs *fs,
                      const struct wal__memfs_node *directory, uint64_t inode);
/* The node whose content is mapped at this address; it is there. */
struct wal__memfs_node *wal__memfs_find_mapped(struct wal__memfs *fs,
                                               const void *at);

/* Room for size bytes. Lets go of the mutex while others copy. ENOMEM, also
 * when the file is mapped and would have to move. */
int wal__memfs_reserve(struct wal__memfs_node *node, uint64_t size);
/* Makes the file empty; likewise. */
void wal__memfs_truncate(struct wal__memfs_node *node);
/* Keeps the content in its place while it is copied without the mutex. */
void wal__memfs_pin(struct wal__memfs_node *node);
void wal__memfs_unpin(struct wal__memfs_node *node);
/* Frees the node when nothing has it any more. */
void wal__memfs_release(struct wal__memfs *fs, struct wal__memfs_node *node);

#endif
