/*
 * memfs.c - names and contents in memory (memfs.h). No section of SPEC.md.
 * Invariant: content that is mapped or pinned does not move, and is zeros
 * after the file's size. Any thread that holds the mutex.
 */
#include "engine/os/memfs.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "format/bytes/assert.h"

enum {
    page_size = 4096
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t unpinned = PTHREAD_COND_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool is_registered; /* the fork handlers are installed */

void wal__memfs_lock(void)
{
    pthread_mutex_lock(&mutex);
}

void wal__memfs_unlock(void)
{
    pthread_mutex_unlock(&mutex);
}

/* A child continues to read (agentwal.h). The mutex is held across fork(), so
 * that it is not held in the child by a thread that the child does not have. */
static void register_atfork(void)
{
    is_registered = pthread_atfork(wal__memfs_lock, wal__memfs_unlock,
                                   wal__memfs_unlock) == 0;
}

bool wal__memfs_init(struct wal__memfs *fs, const struct wal__heap *heap)
{
    if (pthread_once(&once, register_atfork) != 0 || !is_registered) {
        return false;
    }
    *fs = (struct wal__memfs){
        .heap = heap,
        .root = {.inode = 1, .is_directory = true},
        .last_inode = 1,
    };
    return true;
}

/* ---------------------------------------------------------- contents --- */

static void free_content(struct wal__memfs_node *node)
{
    if (node->bytes != NULL) {
        (void)munmap(node->bytes, (size_t)node->capacity);
    }
    node->bytes = NULL;
    node->capacity = 0;
}

/* The kernel allocates pages when they are written: zeros cost no memory. */
static int reallocate_content(struct wal__memfs_node *node, uint64_t capacity)
{
    void *bytes;

    if (capacity > PTRDIFF_MAX) {
        return ENOMEM;
    }
    bytes = mmap(NULL, (size_t)capacity, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (bytes == MAP_FAILED) {
        return ENOMEM;
    }
    WAL__ASSERT(node->size <= capacity);
    WAL__ASSERT(node->maps == 0 && node->pin_count == 0);
    if (node->size > 0) {
        memcpy(bytes, node->bytes, (size_t)node->size);
    }
    free_content(node);
    node->bytes = bytes;
    node->capacity = capacity;
    return 0;
}

int wal__memfs_reserve(struct wal__memfs_node *node, uint64_t size)
{
    uint64_t new_capacity;

    WAL__ASSERT(size <= INT64_MAX);
    new_capacity = (size + page_size - 1) & ~(uint64_t)(page_size - 1);
    while (node->capacity < size) {
        if (node->maps > 0) {
            return ENOMEM;
        }
        if (node->pin_count > 0) {
            pthread_cond_wait(&unpinned, &mutex);
            continue;
        }
        /* Doubling makes appending n bytes O(n). */
        if (new_capacity < 2 * node->capacity) {
            new_capacity = 2 * node->capacity;
        }
        return reallocate_content(node, new_capacity);
    }
    return 0;
}

void wal__memfs_truncate(struct wal__memfs_node *node)
{
    while (node->pin_count > 0) {
        pthread_cond_wait(&unpinned, &mutex);
    }
    if (node->maps == 0) {
        free_content(node);
    } else if (node->size > 0) {
        memset(node->bytes, 0, (size_t)node->size);
    }
    node->size = 0;
}

void wal__memfs_pin(struct wal__memfs_node *node)
{
    node->pin_count++;
}

void wal__memfs_unpin(struct wal__memfs_node *node)
{
    WAL__ASSERT(node->pin_count > 0);
    node->pin_count--;
    if (node->pin_count == 0) {
        pthread_cond_broadcast(&unpinned);
    }
}

/* ------------------------------------------------------------- nodes --- */

static bool is_named(const struct wal__memfs *fs,
                     const struct wal__memfs_node *node)
{
    return node == &fs->root || node->directory != NULL;
}

void wal__memfs_release(struct wal__memfs *fs, struct wal__memfs_node *node)
{
    struct wal__memfs_node *before = &fs->root;

    if (is_named(fs, node) || node->handles > 0 || node->maps > 0) {
        return;
    }
    WAL__ASSERT(node->pin_count == 0 && node->locks == NULL);
    while (before->next != node) {
        before = before->next;
        WAL__ASSERT(before != NULL);
    }
    before->next = node->next;
    free_content(node);
    wal__heap_free(fs->heap, node);
}

void wal__memfs_deinit(struct wal__memfs *fs)
{
    struct wal__memfs_node *node = fs->root.next;

    while (node != NULL) {
        struct wal__memfs_node *next = node->next;

        free_content(node);
        wal__heap_free(fs->heap, node);
        node = next;
    }
    fs->root.next = NULL;
}

struct wal__memfs_node *wal__memfs_find_mapped(struct wal__memfs *fs,
                                               const void *at)
{
    struct wal__memfs_node *node = fs->root.next;

    while (node != NULL && node->bytes != at) {
        node = node->next;
    }
    WAL__ASSERT(node != NULL && node->maps > 0);
    return node;
}

const struct wal__memfs_node *
wal__memfs_next_child(const struct wal__memfs *fs,
                      const struct wal__memfs_node *directory, uint64_t inode)
{
    const struct wal__memfs_node *node = fs->root.next;

    while (node != NULL &&
           (node->directory != directory || node->inode <= inode)) {
        node = node->next;
    }
    return node;
}

/* ------------------------------------------------------------- names --- */

static struct wal__memfs_node *
find_child(struct wal__memfs *fs, const struct wal__memfs_dentry *dentry)
{
    struct wal__memfs_node *node = fs->root.next;

    while (node != NULL &&
           (node->directory != dentry->directory ||
            strlen(node->name) != dentry->name_size ||
            memcmp(node->name, dentry->name, dentry->name_size) != 0)) {
        node = node->next;
    }
    return node;
}

/* Resolves one component in the directory dentry->node. */
static int walk_component(struct wal__memfs *fs, const char *name, size_t size,
                          struct wal__memfs_dentry *dentry)
{
    if (dentry->node == NULL) {
        return ENOENT;
    }
    if (!dentry->node->is_directory) {
        return ENOTDIR;
    }
    if (size > NAME_MAX) {
        return ENAMETOOLONG;
    }
    if (size == 1 && name[0] == '.') {
        return 0;
    }
    dentry->directory = dentry->node;
    dentry->name = name;
    dentry->name_size = size;
    dentry->node = find_child(fs, dentry);
    return 0;
}

int wal__memfs_walk(struct wal__memfs *fs, const char *path,
                    struct wal__memfs_dentry *dentry)
{
    *dentry = (struct wal__memfs_dentry){.node = &fs->root};
    if (*path == '\0') {
        return ENOENT;
    }
    while (*path != '\0') {
        size_t size = strcspn(path, "/");
        int error = size == 0 ? 0 : walk_component(fs, path, size, dentry);

        if (error != 0) {
            return error;
        }
        path += size;
        path += *path == '/';
    }
    return 0;
}

int wal__memfs_find(struct wal__memfs *fs, const char *path,
                    struct wal__memfs_node **node)
{
    struct wal__memfs_dentry dentry;
    int error = wal__memfs_walk(fs, path, &dentry);

    if (error == 0 && dentry.node == NULL) {
        error = ENOENT;
    }
    if (error == 0) {
        *node = dentry.node;
    }
    return error;
}

static void set_name(struct wal__memfs_node *node,
                     const struct wal__memfs_dentry *dentry)
{
    WAL__ASSERT(dentry->name_size < sizeof(node->name));
    node->directory = dentry->directory;
    memcpy(node->name, dentry->name, dentry->name_size);
    node->name[dentry->name_size] = '\0';
}

int wal__memfs_create(struct wal__memfs *fs, struct wal__memfs_dentry *dentry,
                      bool is_directory)
{
    struct wal__memfs_node *last = &fs->root;
    struct wal__memfs_node *node = wal__heap_zalloc(fs->heap, sizeof(*node));

    WAL__ASSERT(dentry->node == NULL);
    if (node == NULL) {
        return ENOMEM;
    }
    while (last->next != NULL) {
        last = last->next;
    }
    last->next = node;
    node->is_directory = is_directory;
    node->inode = ++fs->last_inode;
    set_name(node, dentry);
    dentry->node = node;
    return 0;
}

/* 0, or the errno that forbids to move the node to the name `to`. */
static int check_rename(const struct wal__memfs *fs,
                        const struct wal__memfs_node *moved,
                        const struct wal__memfs_dentry *to)
{
    const struct wal__memfs_node *ancestor = to->directory;

    if (moved->directory == NULL || to->directory == NULL) {
        return EBUSY;
    }
    while (ancestor != NULL && ancestor != moved) {
        ancestor = ancestor->directory;
    }
    if (ancestor == moved) {
        return EINVAL;
    }
    if (to->node == NULL) {
        return 0;
    }
    if (to->node->is_directory != moved->is_directory) {
        return moved->is_directory ? ENOTDIR : EISDIR;
    }
    return to->node->is_directory &&
                   wal__memfs_next_child(fs, to->node, 0) != NULL
               ? ENOTEMPTY
               : 0;
}

int wal__memfs_rename(struct wal__memfs *fs, const char *from, const char *to)
{
    struct wal__memfs_node *moved;
    struct wal__memfs_dentry dentry;
    int error = wal__memfs_find(fs, from, &moved);

    if (error == 0) {
        error = wal__memfs_walk(fs, to, &dentry);
    }
    if (error == 0 && dentry.node == moved) {
        return 0;
    }
    if (error == 0) {
        error = check_rename(fs, moved, &dentry);
    }
    if (error != 0) {
        return error;
    }
    set_name(moved, &dentry);
    if (dentry.node != NULL) {
        dentry.node->directory = NULL;
        wal__memfs_release(fs, dentry.node);
    }
    return 0;
}

int wal__memfs_unlink(struct wal__memfs *fs, const char *path)
{
    struct wal__memfs_node *node;
    int error = wal__memfs_find(fs, path, &node);

    if (error == 0 && node->is_directory) {
        error = EISDIR;
    }
    if (error == 0) {
        node->directory = NULL;
        wal__memfs_release(fs, node);
    }
    return error;
}

int wal__memfs_remove_directory(struct wal__memfs *fs, const char *path)
{
    struct wal__memfs_node *node;
    int error = wal__memfs_find(fs, path, &node);

    if (error == 0 && !node->is_directory) {
        error = ENOTDIR;
    }
    if (error == 0 && wal__memfs_next_child(fs, node, 0) != NULL) {
        error = ENOTEMPTY;
    }
    if (error == 0 && node == &fs->root) {
        error = EBUSY;
    }
    if (error == 0) {
        node->directory = NULL;
        wal__memfs_release(fs, node);
    }
    return error;
}
