/*
 * memory_tree.c - names and contents in memory (memory_tree.h). No section of
 * SPEC.md. Invariant: content that is mapped or being copied does not move,
 * and is zeros behind the file's size. Any thread that holds the mutex.
 */
#include "engine/io/memory_tree.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "engine/base/assert.h"

enum {
    page_size = 4096
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t unused = PTHREAD_COND_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool watching; /* the system calls us when the process forks */

void wal__memory_lock(void)
{
    pthread_mutex_lock(&mutex);
}

void wal__memory_unlock(void)
{
    pthread_mutex_unlock(&mutex);
}

/* A child goes on reading (agentwal.h), and must not find the mutex held by a
 * thread that it does not have. */
static void watch(void)
{
    watching = pthread_atfork(wal__memory_lock, wal__memory_unlock,
                              wal__memory_unlock) == 0;
}

bool wal__memory_tree_init(struct wal__memory_tree *tree,
                           const struct wal__heap *heap)
{
    if (pthread_once(&once, watch) != 0 || !watching) {
        return false;
    }
    *tree = (struct wal__memory_tree){
        .heap = heap,
        .root = {.inode = 1, .is_directory = true},
        .last_inode = 1,
    };
    return true;
}

/* ---------------------------------------------------------- contents --- */

static void drop_bytes(struct wal__memory_node *node)
{
    if (node->bytes != NULL) {
        (void)munmap(node->bytes, (size_t)node->capacity);
    }
    node->bytes = NULL;
    node->capacity = 0;
}

/* Memory that is there when it is written: zeros cost nothing. */
static int move_bytes(struct wal__memory_node *node, uint64_t capacity)
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
    if (node->size > 0) {
        memcpy(bytes, node->bytes, (size_t)node->size);
    }
    drop_bytes(node);
    node->bytes = bytes;
    node->capacity = capacity;
    return 0;
}

int wal__memory_reserve(struct wal__memory_node *node, uint64_t size)
{
    uint64_t wanted;

    WAL__ASSERT(size <= INT64_MAX);
    wanted = (size + page_size - 1) & ~(uint64_t)(page_size - 1);
    while (node->capacity < size) {
        if (node->maps > 0) {
            return ENOMEM;
        }
        if (node->users > 0) {
            pthread_cond_wait(&unused, &mutex);
            continue;
        }
        /* What grows once grows again. */
        if (wanted < 2 * node->capacity) {
            wanted = 2 * node->capacity;
        }
        return move_bytes(node, wanted);
    }
    return 0;
}

void wal__memory_cut(struct wal__memory_node *node)
{
    while (node->users > 0) {
        pthread_cond_wait(&unused, &mutex);
    }
    if (node->maps == 0) {
        drop_bytes(node);
    } else if (node->size > 0) {
        memset(node->bytes, 0, (size_t)node->size);
    }
    node->size = 0;
}

void wal__memory_use(struct wal__memory_node *node)
{
    node->users++;
}

void wal__memory_unuse(struct wal__memory_node *node)
{
    node->users--;
    if (node->users == 0) {
        pthread_cond_broadcast(&unused);
    }
}

/* ------------------------------------------------------------- nodes --- */

static bool is_named(const struct wal__memory_tree *tree,
                     const struct wal__memory_node *node)
{
    return node == &tree->root || node->directory != NULL;
}

void wal__memory_release(struct wal__memory_tree *tree,
                         struct wal__memory_node *node)
{
    struct wal__memory_node *before = &tree->root;

    if (is_named(tree, node) || node->handles > 0 || node->maps > 0) {
        return;
    }
    while (before->next != node) {
        before = before->next;
        WAL__ASSERT(before != NULL);
    }
    before->next = node->next;
    drop_bytes(node);
    wal__heap_free(tree->heap, node);
}

void wal__memory_tree_deinit(struct wal__memory_tree *tree)
{
    struct wal__memory_node *node = tree->root.next;

    while (node != NULL) {
        struct wal__memory_node *next = node->next;

        drop_bytes(node);
        wal__heap_free(tree->heap, node);
        node = next;
    }
    tree->root.next = NULL;
}

struct wal__memory_node *wal__memory_mapped(struct wal__memory_tree *tree,
                                            const void *at)
{
    struct wal__memory_node *node = tree->root.next;

    while (node != NULL && node->bytes != at) {
        node = node->next;
    }
    WAL__ASSERT(node != NULL && node->maps > 0);
    return node;
}

const struct wal__memory_node *
wal__memory_next(const struct wal__memory_tree *tree,
                 const struct wal__memory_node *directory, uint64_t inode)
{
    const struct wal__memory_node *node = tree->root.next;

    while (node != NULL &&
           (node->directory != directory || node->inode <= inode)) {
        node = node->next;
    }
    return node;
}

/* ------------------------------------------------------------- names --- */

static struct wal__memory_node *look_up(struct wal__memory_tree *tree,
                                        const struct wal__memory_place *place)
{
    struct wal__memory_node *node = tree->root.next;

    while (node != NULL &&
           (node->directory != place->directory ||
            strlen(node->name) != place->name_size ||
            memcmp(node->name, place->name, place->name_size) != 0)) {
        node = node->next;
    }
    return node;
}

/* One step of a walk, from place->node. */
static int step(struct wal__memory_tree *tree, const char *name, size_t size,
                struct wal__memory_place *place)
{
    if (place->node == NULL) {
        return ENOENT;
    }
    if (!place->node->is_directory) {
        return ENOTDIR;
    }
    if (size > NAME_MAX) {
        return ENAMETOOLONG;
    }
    if (size == 1 && name[0] == '.') {
        return 0;
    }
    place->directory = place->node;
    place->name = name;
    place->name_size = size;
    place->node = look_up(tree, place);
    return 0;
}

int wal__memory_walk(struct wal__memory_tree *tree, const char *path,
                     struct wal__memory_place *place)
{
    *place = (struct wal__memory_place){.node = &tree->root};
    if (*path == '\0') {
        return ENOENT;
    }
    while (*path != '\0') {
        size_t size = strcspn(path, "/");
        int error = size == 0 ? 0 : step(tree, path, size, place);

        if (error != 0) {
            return error;
        }
        path += size;
        path += *path == '/';
    }
    return 0;
}

int wal__memory_find(struct wal__memory_tree *tree, const char *path,
                     struct wal__memory_node **node)
{
    struct wal__memory_place place;
    int error = wal__memory_walk(tree, path, &place);

    if (error == 0 && place.node == NULL) {
        error = ENOENT;
    }
    if (error == 0) {
        *node = place.node;
    }
    return error;
}

static void set_name(struct wal__memory_node *node,
                     const struct wal__memory_place *place)
{
    node->directory = place->directory;
    memcpy(node->name, place->name, place->name_size);
    node->name[place->name_size] = '\0';
}

int wal__memory_make(struct wal__memory_tree *tree,
                     struct wal__memory_place *place, bool is_directory)
{
    struct wal__memory_node *last = &tree->root;
    struct wal__memory_node *node = wal__heap_zalloc(tree->heap, sizeof(*node));

    if (node == NULL) {
        return ENOMEM;
    }
    while (last->next != NULL) {
        last = last->next;
    }
    last->next = node;
    node->is_directory = is_directory;
    node->inode = ++tree->last_inode;
    set_name(node, place);
    place->node = node;
    return 0;
}

/* Whether `to` may take the name away from what has it now. */
static int check_rename(const struct wal__memory_tree *tree,
                        const struct wal__memory_node *moved,
                        const struct wal__memory_place *to)
{
    const struct wal__memory_node *above = to->directory;

    if (moved->directory == NULL || to->directory == NULL) {
        return EBUSY;
    }
    while (above != NULL && above != moved) {
        above = above->directory;
    }
    if (above == moved) {
        return EINVAL;
    }
    if (to->node == NULL) {
        return 0;
    }
    if (to->node->is_directory != moved->is_directory) {
        return moved->is_directory ? ENOTDIR : EISDIR;
    }
    return to->node->is_directory && wal__memory_next(tree, to->node, 0) != NULL
               ? ENOTEMPTY
               : 0;
}

int wal__memory_rename(struct wal__memory_tree *tree, const char *from,
                       const char *to)
{
    struct wal__memory_node *moved;
    struct wal__memory_place place;
    int error = wal__memory_find(tree, from, &moved);

    if (error == 0) {
        error = wal__memory_walk(tree, to, &place);
    }
    if (error == 0 && place.node == moved) {
        return 0;
    }
    if (error == 0) {
        error = check_rename(tree, moved, &place);
    }
    if (error != 0) {
        return error;
    }
    set_name(moved, &place);
    if (place.node != NULL) {
        place.node->directory = NULL;
        wal__memory_release(tree, place.node);
    }
    return 0;
}

int wal__memory_unlink(struct wal__memory_tree *tree, const char *path)
{
    struct wal__memory_node *node;
    int error = wal__memory_find(tree, path, &node);

    if (error == 0 && node->is_directory) {
        error = EISDIR;
    }
    if (error == 0) {
        node->directory = NULL;
        wal__memory_release(tree, node);
    }
    return error;
}
