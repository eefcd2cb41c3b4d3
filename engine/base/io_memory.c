/*
 * io_memory.c - the table of io.h for WAL_OPEN_MEMORY: names in this process over files
 * without one. What has a handle or a map goes to wal__io_posix: reads, writes, maps, locks and
 * syncs are system calls on anonymous memory. The differences:
 *
 * - Paths are relative and at most NAME_MAX bytes, without the components . and
 *   ..; "." is the root. Directories are neither renamed nor removed.
 * - A file that has a name has a descriptor, in addition to those of its
 *   handles. RLIMIT_NOFILE bounds their number, RLIMIT_FSIZE the files' size.
 * - Allocated bytes take memory when they are first written or mapped and read.
 *   When memory is exhausted a write is WAL_ENOSPACE or WAL_ENOMEM.
 * - Every handle opens its file anew, where the system can: byte locks belong to
 *   open file descriptions, and dup(2) makes none.
 *
 * In a child of fork() only a table that it creates itself may be used.
 *
 * Invariant: a node is in the list of its table as long as it has a name, and its descriptor is
 * open as long; the kernel keeps the content for handles and maps. Any thread.
 */
#include "engine/base/io.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/descriptor.h"
#include "engine/base/error.h"
#include "engine/base/system.h"
#include "format/bytes/assert.h"

struct node {
    struct node *next; /* with a lower id */
    uint64_t id;
    int fd; /* -1: a directory */
    char path[NAME_MAX + 1];
};

struct memory {
    struct wal__io io; /* ctx is this struct */
    const struct wal__heap *heap;
    pthread_mutex_t mutex; /* of the list */
    struct node *first;
    struct node root; /* the last of the list, with id 0 */
    uint64_t last_id;
};

static void lock(struct memory *memory)
{
    pthread_mutex_lock(&memory->mutex);
}

static void unlock(struct memory *memory)
{
    pthread_mutex_unlock(&memory->mutex);
}

/* Unlocks the mutex, and returns the status of an errno or 0. */
static enum wal_status unlock_status(struct memory *memory, int error, int *sys_errno)
{
    unlock(memory);
    if (error != 0) {
        *sys_errno = error;
    }
    return wal__io_status(error);
}

/* ------------------------------------------------------------- nodes --- */

static bool is_directory(const struct node *node)
{
    return node->fd < 0;
}

/* The node whose path is the first `size` bytes; NULL: there is none. */
static struct node *find_node(struct memory *memory, const char *path, size_t size)
{
    struct node *node = memory->first;

    while (node != NULL && (strncmp(node->path, path, size) != 0 || node->path[size] != '\0')) {
        node = node->next;
    }
    return node;
}

/* Returns the last component of a path; *directory and *size are the path of its directory. */
static const char *split(const char *path, const char **directory, size_t *size)
{
    const char *slash = strrchr(path, '/');

    *directory = slash == NULL ? "." : path;
    *size = slash == NULL ? 1 : (size_t)(slash - path);
    return slash == NULL ? path : slash + 1;
}

/* Sets *node to the path's node, or to NULL when only the last component does not exist. 0 or an
 * errno. */
static int look_up(struct memory *memory, const char *path, struct node **node)
{
    const struct node *parent;
    const char *directory;
    size_t size;

    WAL__ASSERT(path[0] != '\0');
    if (strlen(path) > NAME_MAX) {
        return ENAMETOOLONG;
    }
    (void)split(path, &directory, &size);
    parent = find_node(memory, directory, size);
    if (parent == NULL) {
        return ENOENT;
    }
    if (!is_directory(parent)) {
        return ENOTDIR;
    }
    *node = find_node(memory, path, strlen(path));
    return 0;
}

static int find_existing(struct memory *memory, const char *path, struct node **node)
{
    int error = look_up(memory, path, node);

    return error == 0 && *node == NULL ? ENOENT : error;
}

static int find_directory(struct memory *memory, const char *path, struct node **node)
{
    int error = find_existing(memory, path, node);

    return error == 0 && !is_directory(*node) ? ENOTDIR : error;
}

/* In memory, or on the disk of temporary files where the system keeps no files in memory. */
static int open_unnamed(void)
{
    int fd = wal__system_unnamed_file(NULL);

    return fd < 0 && errno == EOPNOTSUPP ? wal__descriptor_temporary() : fd;
}

/* Adds a node for a path that does not exist. 0 or an errno. */
static int add_node(struct memory *memory, const char *path, bool directory, struct node **added)
{
    struct node *node = wal__heap_zalloc(memory->heap, sizeof(*node));
    int error;

    WAL__ASSERT(strlen(path) < sizeof(node->path));
    if (node == NULL) {
        return ENOMEM;
    }
    node->fd = directory ? -1 : wal__descriptor_above_stdio(open_unnamed());
    if (!directory && node->fd < 0) {
        error = errno;
        wal__heap_free(memory->heap, node);
        return error;
    }
    memcpy(node->path, path, strlen(path) + 1);
    node->id = ++memory->last_id;
    node->next = memory->first;
    memory->first = node;
    *added = node;
    return 0;
}

static void remove_node(struct memory *memory, struct node *node)
{
    struct node **link = &memory->first;

    WAL__ASSERT(node != &memory->root);
    while (*link != node) {
        link = &(*link)->next;
        WAL__ASSERT(*link != NULL);
    }
    *link = node->next;
    if (!is_directory(node)) {
        (void)close(node->fd);
    }
    wal__heap_free(memory->heap, node);
}

/* ------------------------------------------------------------- files --- */

static enum wal_status open_node(const struct node *node, int flags, struct wal__file **file,
                                 int *sys_errno)
{
    enum wal_status status;

    WAL__ASSERT(!is_directory(node));
    flags = (flags & (WAL__IO_WRITE | WAL__IO_TRUNCATE)) | WAL__IO_FOLLOW;
    status = wal__io_posix_reopen(node->fd, flags, file, sys_errno);
    /* The file exists, but the system's table of descriptors does not any more. */
    return status == WAL_ENOTFOUND ? WAL_EIO : status;
}

static enum wal_status file_open(void *ctx, const char *path, int flags, struct wal__file **file,
                                 int *sys_errno)
{
    const int create_new = WAL__IO_CREATE | WAL__IO_EXCLUSIVE;
    struct memory *memory = ctx;
    struct node *created = NULL;
    struct node *node = NULL;
    enum wal_status status;
    int error;

    lock(memory);
    error = look_up(memory, path, &node);
    if (error == 0 && node == NULL) {
        error = (flags & WAL__IO_CREATE) == 0 ? ENOENT : add_node(memory, path, false, &created);
        node = created;
    } else if (error == 0 && (flags & create_new) == create_new) {
        error = EEXIST;
    } else if (error == 0 && is_directory(node)) {
        error = EISDIR;
    }
    if (error != 0) {
        return unlock_status(memory, error, sys_errno);
    }
    status = open_node(node, flags, file, sys_errno);
    if (status != WAL_OK && created != NULL) {
        remove_node(memory, created);
    }
    unlock(memory);
    return status;
}

/* Extends the file by a hole: its pages are allocated when they are used. */
static enum wal_status file_allocate(void *ctx, struct wal__file *file, uint64_t size,
                                     int *sys_errno)
{
    struct memory *memory = ctx;
    int fd = wal__io_posix_descriptor(file);
    struct stat st;
    int error = 0;

    lock(memory);
    if (fstat(fd, &st) < 0 || ((uint64_t)st.st_size < size && ftruncate(fd, (off_t)size) < 0)) {
        error = errno;
    }
    return unlock_status(memory, error, sys_errno);
}

/* ------------------------------------------------------------- names --- */

static enum wal_status path_stat(void *ctx, const char *path, struct wal__io_stat *out,
                                 int *sys_errno)
{
    struct memory *memory = ctx;
    struct node *node;
    struct stat st;
    int error;

    lock(memory);
    error = find_existing(memory, path, &node);
    if (error == 0 && is_directory(node)) {
        *out = (struct wal__io_stat){.is_directory = true};
    } else if (error == 0 && fstat(node->fd, &st) == 0) {
        *out = wal__io_posix_stat(&st);
    } else if (error == 0) {
        error = errno;
    }
    return unlock_status(memory, error, sys_errno);
}

static enum wal_status path_make_directory(void *ctx, const char *path, int *sys_errno)
{
    struct memory *memory = ctx;
    struct node *node;
    int error;

    lock(memory);
    error = look_up(memory, path, &node);
    if (error == 0) {
        error = node != NULL ? EEXIST : add_node(memory, path, true, &node);
    }
    return unlock_status(memory, error, sys_errno);
}

/* Copies the name in the directory with the highest id below *id, and sets *id. False: there is
 * none. */
static bool next_name(const struct memory *memory, const char *directory, uint64_t *id,
                      char name[NAME_MAX + 1])
{
    const struct node *node = memory->first;

    for (; node != &memory->root; node = node->next) {
        const char *parent;
        size_t size;
        const char *last = split(node->path, &parent, &size);

        if (node->id < *id && strlen(directory) == size && memcmp(directory, parent, size) == 0) {
            *id = node->id;
            memcpy(name, last, strlen(last) + 1);
            return true;
        }
    }
    return false;
}

/* The callback runs without the mutex, so that it may call the table; the id of the last name is
 * the cursor. It must not remove the directory. */
static enum wal_status path_list(void *ctx, const char *path,
                                 enum wal_status (*each)(void *arg, const char *name), void *arg,
                                 int *sys_errno)
{
    struct memory *memory = ctx;
    struct node *directory;
    char name[NAME_MAX + 1];
    uint64_t id = UINT64_MAX;
    int error;

    lock(memory);
    error = find_directory(memory, path, &directory);
    while (error == 0 && next_name(memory, path, &id, name)) {
        enum wal_status status;

        unlock(memory);
        status = each(arg, name);
        if (status != WAL_OK) {
            *sys_errno = 0;
            return status;
        }
        lock(memory);
    }
    return unlock_status(memory, error, sys_errno);
}

static int rename_file(struct memory *memory, const char *from, const char *to)
{
    struct node *moved;
    struct node *replaced;
    int error = find_existing(memory, from, &moved);

    if (error == 0) {
        error = look_up(memory, to, &replaced);
    }
    if (error != 0 || replaced == moved) {
        return error;
    }
    if (is_directory(moved) || (replaced != NULL && is_directory(replaced))) {
        return EISDIR;
    }
    if (replaced != NULL) {
        remove_node(memory, replaced);
    }
    (void)snprintf(moved->path, sizeof(moved->path), "%s", to);
    return 0;
}

static enum wal_status path_rename(void *ctx, const char *from, const char *to, int *sys_errno)
{
    struct memory *memory = ctx;

    lock(memory);
    return unlock_status(memory, rename_file(memory, from, to), sys_errno);
}

static enum wal_status path_unlink(void *ctx, const char *path, int *sys_errno)
{
    struct memory *memory = ctx;
    struct node *node;
    int error;

    lock(memory);
    error = find_existing(memory, path, &node);
    if (error == 0 && is_directory(node)) {
        error = EISDIR;
    }
    if (error == 0) {
        remove_node(memory, node);
    }
    return unlock_status(memory, error, sys_errno);
}

static enum wal_status path_remove_directory(void *ctx, const char *path, int *sys_errno)
{
    struct memory *memory = ctx;
    uint64_t id = UINT64_MAX;
    char name[NAME_MAX + 1];
    struct node *node;
    int error;

    lock(memory);
    error = find_directory(memory, path, &node);
    if (error == 0 && node == &memory->root) {
        error = EBUSY;
    } else if (error == 0 && next_name(memory, path, &id, name)) {
        error = ENOTEMPTY;
    }
    if (error == 0) {
        remove_node(memory, node);
    }
    return unlock_status(memory, error, sys_errno);
}

static enum wal_status path_sync_directory(void *ctx, const char *path, int *sys_errno)
{
    struct memory *memory = ctx;
    struct node *node;

    lock(memory);
    return unlock_status(memory, find_directory(memory, path, &node), sys_errno);
}

static enum wal_status path_storage(void *ctx, const char *path, enum wal__storage *storage,
                                    char *name, int *sys_errno)
{
    (void)ctx;
    (void)path;
    (void)sys_errno;
    *storage = WAL__STORAGE_LOCAL;
    memcpy(name, "memory", sizeof("memory"));
    return WAL_OK;
}

/* ------------------------------------------------------------- table --- */

enum wal_status wal__io_memory_create(const struct wal__heap *heap, bool forgets,
                                      struct wal__io **io, struct wal_error *error)
{
    struct memory *memory;
    const char *lacks;

    if (!wal__system_can_reopen(&lacks)) {
        return wal__fail_at(error, WAL_EIO, errno, lacks, 0, "a store in memory needs %s", lacks);
    }
    memory = wal__heap_zalloc(heap, sizeof(*memory));
    if (memory == NULL) {
        return wal__no_memory(error);
    }
    pthread_mutex_init(&memory->mutex, NULL);
    memory->heap = heap;
    memory->root = (struct node){.fd = -1, .path = "."};
    memory->first = &memory->root;
    memory->io = wal__io_posix;
    memory->io.ctx = memory;
    memory->io.open = file_open;
    memory->io.allocate = file_allocate;
    memory->io.path_stat = path_stat;
    memory->io.make_directory = path_make_directory;
    memory->io.list = path_list;
    memory->io.rename = path_rename;
    memory->io.unlink = path_unlink;
    memory->io.remove_directory = path_remove_directory;
    memory->io.sync_directory = path_sync_directory;
    memory->io.storage = path_storage;
    memory->io.in_memory = true;
    memory->io.forgets = forgets;
    *io = &memory->io;
    return WAL_OK;
}

void wal__io_memory_destroy(struct wal__io *io)
{
    struct memory *memory = io == NULL ? NULL : io->ctx;

    if (memory == NULL) {
        return;
    }
    while (memory->first != &memory->root) {
        remove_node(memory, memory->first);
    }
    pthread_mutex_destroy(&memory->mutex);
    wal__heap_free(memory->heap, memory);
}
