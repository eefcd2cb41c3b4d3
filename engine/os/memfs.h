/*
 * memfs.h - a file system in memory: the names and contents of io_memory.c.
 * Every call but init, lock and unlock needs the mutex. One mutex serves all
 * file systems, so that it can be held across fork(). Fallible calls return 0
 * or an errno.
 */
#ifndef AGENTWAL_ENGINE_OS_MEMFS_H
#define AGENTWAL_ENGINE_OS_MEMFS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/heap.h"

struct wal__memfs_byte_lock; /* memfs_byte_lock.c */

/* A file or directory. It is freed when it has no name, handle or map. */
struct wal__memfs_node {
    struct wal__memfs_node *next;      /* of the fs, in order of inode */
    struct wal__memfs_node *directory; /* null: the root, or unlinked */
    uint64_t inode;
    bool is_directory;
    char name[NAME_MAX + 1];
    uint8_t *bytes; /* zeros from `size` on; null: capacity is 0 */
    uint64_t size;
    uint64_t capacity;
    uint32_t handles;
    uint32_t maps;      /* while not 0, `bytes` must not move */
    uint32_t pin_count; /* copies without the mutex; likewise */
    struct wal__memfs_byte_lock *locks;
};

struct wal__memfs {
    const struct wal__heap *heap;
    struct wal__memfs_node root; /* the first of the list */
    uint64_t last_inode;
};

/* The last component of a path. */
struct wal__memfs_dentry {
    struct wal__memfs_node *directory; /* null: the path is the root */
    struct wal__memfs_node *node;      /* null: the name does not exist */
    const char *name;
    size_t name_size;
};

/* False when memory is exhausted. */
bool wal__memfs_init(struct wal__memfs *fs, const struct wal__heap *heap);
void wal__memfs_deinit(struct wal__memfs *fs);

void wal__memfs_lock(void);
void wal__memfs_unlock(void);

/* Resolves all but the last component. ENOENT or ENOTDIR when a parent does not
 * exist or is a file; a missing last component is no error. */
int wal__memfs_walk(struct wal__memfs *fs, const char *path,
                    struct wal__memfs_dentry *dentry);
/* The node of the path; ENOENT when it does not exist. */
int wal__memfs_find(struct wal__memfs *fs, const char *path,
                    struct wal__memfs_node **node);
/* Creates the node of a name that does not exist. */
int wal__memfs_create(struct wal__memfs *fs, struct wal__memfs_dentry *dentry,
                      bool is_directory);
int wal__memfs_rename(struct wal__memfs *fs, const char *from, const char *to);
int wal__memfs_unlink(struct wal__memfs *fs, const char *path);
int wal__memfs_remove_directory(struct wal__memfs *fs, const char *path);
/* The directory's child with the smallest inode above this one, or null. */
const struct wal__memfs_node *
wal__memfs_next_child(const struct wal__memfs *fs,
                      const struct wal__memfs_node *directory, uint64_t inode);
/* The node whose content is mapped at this address, which must be mapped. */
struct wal__memfs_node *wal__memfs_find_mapped(struct wal__memfs *fs,
                                               const void *at);

/* Ensures a capacity of `size` bytes. Releases the mutex while it waits for
 * unpins. ENOMEM, also when the file is mapped and would have to move. */
int wal__memfs_reserve(struct wal__memfs_node *node, uint64_t size);
/* Empties the file. Releases the mutex while it waits for unpins. */
void wal__memfs_truncate(struct wal__memfs_node *node);
/* While a node is pinned its content does not move, so that it can be copied
 * without the mutex. */
void wal__memfs_pin(struct wal__memfs_node *node);
void wal__memfs_unpin(struct wal__memfs_node *node);
/* Frees the node if it has no name, handle or map. */
void wal__memfs_release(struct wal__memfs *fs, struct wal__memfs_node *node);

#endif
