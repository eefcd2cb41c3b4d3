/*
 * memory_tree.h - the names and contents behind io_memory.c. Every call but
 * lock and unlock themselves needs the mutex, which is one for all trees, so
 * that it can be held while the process forks. Fallible calls answer 0 or an
 * errno.
 */
#ifndef WAL_IO_MEMORY_TREE_H
#define WAL_IO_MEMORY_TREE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/heap.h"

struct wal__memory_lock; /* io_memory.c */

/* A file or directory. It goes when it has no name, handle or map. */
struct wal__memory_node {
    struct wal__memory_node *next;      /* of the tree, in order of inode */
    struct wal__memory_node *directory; /* null: the root, or no name */
    uint64_t inode;
    bool is_directory;
    char name[NAME_MAX + 1];
    uint8_t *bytes; /* zeros from size on; null: capacity is 0 */
    uint64_t size;
    uint64_t capacity;
    uint32_t handles;
    uint32_t maps;  /* while there are any, bytes stay where they are */
    uint32_t users; /* copying now, without the mutex: the same */
    struct wal__memory_lock *locks;
};

struct wal__memory_tree {
    const struct wal__heap *heap;
    struct wal__memory_node root; /* the first of the list */
    uint64_t last_inode;
};

/* Where a path leads. */
struct wal__memory_place {
    struct wal__memory_node *directory; /* null: the path is the root */
    struct wal__memory_node *node;      /* null: there is none of that name */
    const char *name;
    size_t name_size;
};

/* False without memory. */
bool wal__memory_tree_init(struct wal__memory_tree *tree,
                           const struct wal__heap *heap);
void wal__memory_tree_deinit(struct wal__memory_tree *tree);

void wal__memory_lock(void);
void wal__memory_unlock(void);

/* ENOENT, ENOTDIR: on the way there. */
int wal__memory_walk(struct wal__memory_tree *tree, const char *path,
                     struct wal__memory_place *place);
/* What the path names. */
int wal__memory_find(struct wal__memory_tree *tree, const char *path,
                     struct wal__memory_node **node);
/* Makes the place's node. */
int wal__memory_make(struct wal__memory_tree *tree,
                     struct wal__memory_place *place, bool is_directory);
int wal__memory_rename(struct wal__memory_tree *tree, const char *from,
                       const char *to);
int wal__memory_unlink(struct wal__memory_tree *tree, const char *path);
/* The directory's name with the smallest inode above this one, or null. */
const struct wal__memory_node *
wal__memory_next(const struct wal__memory_tree *tree,
                 const struct wal__memory_node *directory, uint64_t inode);
/* The node whose content is mapped at this address; it is there. */
struct wal__memory_node *wal__memory_mapped(struct wal__memory_tree *tree,
                                            const void *at);

/* Room for size bytes. Lets go of the mutex while others copy. ENOMEM, also
 * when the file is mapped and would have to move. */
int wal__memory_reserve(struct wal__memory_node *node, uint64_t size);
/* Makes the file empty; likewise. */
void wal__memory_cut(struct wal__memory_node *node);
/* Keeps the content in its place while it is copied without the mutex. */
void wal__memory_use(struct wal__memory_node *node);
void wal__memory_unuse(struct wal__memory_node *node);
/* Frees the node when nothing has it any more. */
void wal__memory_release(struct wal__memory_tree *tree,
                         struct wal__memory_node *node);

#endif
