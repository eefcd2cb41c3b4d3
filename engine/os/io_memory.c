/*
 * io_memory.c - the table of io.h in memory (io_memory.h): handles and copies;
 * memfs.c has names and contents, memfs_byte_lock.c the locks. No section of
 * SPEC.md. Invariant: bytes are copied without the mutex while the node is
 * pinned, so that its content does not move, and the size is raised after the
 * bytes were copied. Any thread.
 */
#include "engine/os/io_memory.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "engine/os/clock.h"
#include "engine/os/futex.h"
#include "engine/os/memfs.h"
#include "engine/os/memfs_byte_lock.h"
#include "engine/os/process.h"
#include "engine/os/random.h"
#include "format/bytes/assert.h"

struct memory {
    struct wal__io io; /* ctx is this struct */
    struct wal__memfs fs;
    uint8_t boot_id[16];
};

/* An open file. Callers see it as the opaque struct wal__file. */
struct memory_file {
    struct wal__memfs_node *node;
    bool writable;
};

enum {
    page_size = 4096,
    device = 1,
    process_start_time = 1
};

static struct memory_file *file_of(struct wal__file *handle)
{
    return (struct memory_file *)(void *)handle;
}

/* Unlocks the mutex, and returns the status of an errno or 0. */
static enum wal_status unlock_status(int error, int *sys_errno)
{
    wal__memfs_unlock();
    if (error != 0) {
        *sys_errno = error;
    }
    return wal__io_status(error);
}

/* ------------------------------------------------------------- files --- */

static int find_or_create(struct memory *memory, const char *path, int flags,
                          struct wal__memfs_node **node)
{
    struct wal__memfs_dentry dentry;
    int error = wal__memfs_walk(&memory->fs, path, &dentry);

    if (error == 0 && dentry.node == NULL) {
        error = (flags & WAL__IO_CREATE) == 0
                    ? ENOENT
                    : wal__memfs_create(&memory->fs, &dentry, false);
    } else if (error == 0 && (flags & WAL__IO_CREATE) != 0 &&
               (flags & WAL__IO_EXCLUSIVE) != 0) {
        error = EEXIST;
    } else if (error == 0 && dentry.node->is_directory) {
        error = EISDIR;
    }
    if (error == 0) {
        *node = dentry.node;
    }
    return error;
}

static enum wal_status file_open(void *ctx, const char *path, int flags,
                                 struct wal__file **handle, int *sys_errno)
{
    struct memory *memory = ctx;
    struct memory_file *created =
        wal__heap_zalloc(memory->fs.heap, sizeof(*created));
    int error;

    if (created == NULL) {
        *sys_errno = ENOMEM;
        return WAL_ENOMEM;
    }
    created->writable = (flags & WAL__IO_WRITE) != 0;
    wal__memfs_lock();
    error = find_or_create(memory, path, flags, &created->node);
    if (error == 0) {
        created->node->handles++;
        if ((flags & WAL__IO_TRUNCATE) != 0) {
            wal__memfs_truncate(created->node);
        }
        *handle = (struct wal__file *)(void *)created;
    } else {
        wal__heap_free(memory->fs.heap, created);
    }
    return unlock_status(error, sys_errno);
}

static void file_close(void *ctx, struct wal__file *handle)
{
    struct memory *memory = ctx;
    struct memory_file *file = file_of(handle);

    wal__memfs_lock();
    wal__memfs_byte_lock_release_all(&memory->fs, file->node, file);
    WAL__ASSERT(file->node->handles > 0);
    file->node->handles--;
    wal__memfs_release(&memory->fs, file->node);
    wal__memfs_unlock();
    wal__heap_free(memory->fs.heap, file);
}

static enum wal_status file_pread(void *ctx, struct wal__file *handle,
                                  void *data, size_t size, uint64_t offset,
                                  size_t *bytes_read, int *sys_errno)
{
    struct wal__memfs_node *node = file_of(handle)->node;

    (void)ctx;
    wal__memfs_lock();
    if (offset > INT64_MAX) {
        return unlock_status(EINVAL, sys_errno);
    }
    if (offset >= node->size || size == 0) {
        *bytes_read = 0;
        return unlock_status(0, sys_errno);
    }
    if (size > node->size - offset) {
        size = (size_t)(node->size - offset);
    }
    WAL__ASSERT(offset + size <= node->capacity);
    wal__memfs_pin(node);
    wal__memfs_unlock();
    memcpy(data, node->bytes + offset, size);
    wal__memfs_lock();
    wal__memfs_unpin(node);
    *bytes_read = size;
    return unlock_status(0, sys_errno);
}

static bool is_zero(const uint8_t *bytes, size_t size)
{
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0;
}

/* Copies page by page and skips pages that are zeros on both sides, so that the
 * kernel need not allocate them. */
static void copy_sparse(uint8_t *to, const uint8_t *from, size_t size)
{
    while (size > 0) {
        size_t part = page_size - (size_t)((uintptr_t)to % page_size);

        part = part < size ? part : size;
        if (!is_zero(from, part) || !is_zero(to, part)) {
            memcpy(to, from, part);
        }
        to += part;
        from += part;
        size -= part;
    }
}

/* The total size of the pieces, or UINT64_MAX when it exceeds INT64_MAX. */
static uint64_t iov_size(const struct iovec *iov, int count)
{
    uint64_t size = 0;

    for (int i = 0; i < count; i++) {
        if (iov[i].iov_len > INT64_MAX - size) {
            return UINT64_MAX;
        }
        size += iov[i].iov_len;
    }
    return size;
}

static int check_write(const struct memory_file *file, uint64_t offset,
                       uint64_t size)
{
    if (!file->writable) {
        return EBADF;
    }
    if (offset > INT64_MAX || size > INT64_MAX) {
        return EINVAL;
    }
    return size > INT64_MAX - offset ? EFBIG : 0;
}

static enum wal_status file_pwritev(void *ctx, struct wal__file *handle,
                                    const struct iovec *iov, int count,
                                    uint64_t offset, size_t *bytes_written,
                                    int *sys_errno)
{
    struct memory_file *file = file_of(handle);
    struct wal__memfs_node *node = file->node;
    uint64_t size = iov_size(iov, count);
    int error = check_write(file, offset, size);
    uint8_t *to;

    (void)ctx;
    wal__memfs_lock();
    if (error == 0 && size > 0) {
        error = wal__memfs_reserve(node, offset + size);
    }
    if (error != 0 || size == 0) {
        *bytes_written = error == 0 ? 0 : *bytes_written;
        return unlock_status(error, sys_errno);
    }
    wal__memfs_pin(node);
    wal__memfs_unlock();
    to = node->bytes + offset;
    for (int i = 0; i < count; i++) {
        copy_sparse(to, iov[i].iov_base, iov[i].iov_len);
        to += iov[i].iov_len;
    }
    WAL__ASSERT(to == node->bytes + offset + size);
    wal__memfs_lock();
    if (node->size < offset + size) {
        node->size = offset + size;
    }
    WAL__ASSERT(node->size <= node->capacity);
    wal__memfs_unpin(node);
    *bytes_written = (size_t)size;
    return unlock_status(0, sys_errno);
}

static enum wal_status file_sync(void *ctx, struct wal__file *handle,
                                 int *sys_errno)
{
    (void)ctx;
    (void)handle;
    (void)sys_errno;
    return WAL_OK;
}

static enum wal_status file_allocate(void *ctx, struct wal__file *handle,
                                     uint64_t size, int *sys_errno)
{
    struct memory_file *file = file_of(handle);
    struct wal__memfs_node *node = file->node;
    int error = check_write(file, 0, size);

    (void)ctx;
    wal__memfs_lock();
    if (error == 0) {
        error = wal__memfs_reserve(node, size);
    }
    if (error == 0 && node->size < size) {
        node->size = size;
    }
    WAL__ASSERT(node->size <= node->capacity);
    return unlock_status(error, sys_errno);
}

static struct wal__io_stat stat_of(const struct wal__memfs_node *node)
{
    return (struct wal__io_stat){
        .size = node->size,
        .allocated = node->capacity,
        .device = device,
        .inode = node->inode,
        .is_directory = node->is_directory,
    };
}

static enum wal_status file_stat(void *ctx, struct wal__file *handle,
                                 struct wal__io_stat *out, int *sys_errno)
{
    (void)ctx;
    wal__memfs_lock();
    *out = stat_of(file_of(handle)->node);
    return unlock_status(0, sys_errno);
}

static enum wal_status file_map(void *ctx, struct wal__file *handle,
                                uint64_t size, bool writable, void **at,
                                int *sys_errno)
{
    struct memory_file *file = file_of(handle);
    int error = 0;

    (void)ctx;
    if (size == 0) {
        error = EINVAL;
    } else if (size > INT64_MAX) {
        error = ENOMEM;
    } else if (writable && !file->writable) {
        error = EACCES;
    }
    wal__memfs_lock();
    if (error == 0) {
        error = wal__memfs_reserve(file->node, size);
    }
    if (error == 0) {
        file->node->maps++;
        *at = file->node->bytes;
    }
    return unlock_status(error, sys_errno);
}

static void file_unmap(void *ctx, void *at, uint64_t size)
{
    struct memory *memory = ctx;
    struct wal__memfs_node *node;

    (void)size;
    wal__memfs_lock();
    node = wal__memfs_find_mapped(&memory->fs, at);
    node->maps--;
    wal__memfs_release(&memory->fs, node);
    wal__memfs_unlock();
}

static enum wal_status file_populate(void *ctx, const void *at, uint64_t size,
                                     int *sys_errno)
{
    (void)ctx;
    (void)at;
    (void)size;
    (void)sys_errno;
    return WAL_OK;
}

static enum wal_status file_lock(void *ctx, struct wal__file *handle,
                                 uint64_t offset, enum wal__io_lock mode,
                                 int *sys_errno)
{
    struct memory *memory = ctx;
    struct memory_file *file = file_of(handle);
    bool exclusive = mode == WAL__IO_LOCK_EXCLUSIVE;
    enum wal_status status;
    int error = 0;

    if (exclusive && !file->writable) {
        *sys_errno = EBADF;
        return WAL_EIO;
    }
    wal__memfs_lock();
    if (mode == WAL__IO_LOCK_NONE) {
        wal__memfs_byte_lock_release(&memory->fs, file->node, file, offset);
    } else {
        error = wal__memfs_byte_lock_acquire(&memory->fs, file->node, file,
                                             offset, exclusive);
    }
    status = unlock_status(error, sys_errno);
    return error == EAGAIN ? WAL_ELOCKED : status;
}

/* ------------------------------------------------------------- names --- */

static enum wal_status path_stat(void *ctx, const char *path,
                                 struct wal__io_stat *out, int *sys_errno)
{
    struct memory *memory = ctx;
    struct wal__memfs_node *node;
    int error;

    wal__memfs_lock();
    error = wal__memfs_find(&memory->fs, path, &node);
    if (error == 0) {
        *out = stat_of(node);
    }
    return unlock_status(error, sys_errno);
}

static enum wal_status path_make_directory(void *ctx, const char *path,
                                           int *sys_errno)
{
    struct memory *memory = ctx;
    struct wal__memfs_dentry dentry;
    int error;

    wal__memfs_lock();
    error = wal__memfs_walk(&memory->fs, path, &dentry);
    if (error == 0) {
        error = dentry.node != NULL
                    ? EEXIST
                    : wal__memfs_create(&memory->fs, &dentry, true);
    }
    return unlock_status(error, sys_errno);
}

static int find_directory(struct memory *memory, const char *path,
                          struct wal__memfs_node **node)
{
    int error = wal__memfs_find(&memory->fs, path, node);

    return error == 0 && !(*node)->is_directory ? ENOTDIR : error;
}

/* The callback runs without the mutex, so that it may call the table; the inode
 * of the last name is the cursor. The directory must not be removed by it. */
static enum wal_status path_list(void *ctx, const char *path,
                                 enum wal_status (*each)(void *arg,
                                                         const char *name),
                                 void *arg, int *sys_errno)
{
    struct memory *memory = ctx;
    struct wal__memfs_node *directory;
    char name[NAME_MAX + 1];
    uint64_t inode = 0;
    int error;

    wal__memfs_lock();
    error = find_directory(memory, path, &directory);
    while (error == 0) {
        const struct wal__memfs_node *node =
            wal__memfs_next_child(&memory->fs, directory, inode);
        enum wal_status status;

        if (node == NULL) {
            break;
        }
        inode = node->inode;
        memcpy(name, node->name, sizeof(name));
        wal__memfs_unlock();
        status = each(arg, name);
        if (status != WAL_OK) {
            *sys_errno = 0;
            return status;
        }
        wal__memfs_lock();
    }
    return unlock_status(error, sys_errno);
}

static enum wal_status path_rename(void *ctx, const char *from, const char *to,
                                   int *sys_errno)
{
    struct memory *memory = ctx;

    wal__memfs_lock();
    return unlock_status(wal__memfs_rename(&memory->fs, from, to), sys_errno);
}

static enum wal_status path_unlink(void *ctx, const char *path, int *sys_errno)
{
    struct memory *memory = ctx;

    wal__memfs_lock();
    return unlock_status(wal__memfs_unlink(&memory->fs, path), sys_errno);
}

static enum wal_status path_remove_directory(void *ctx, const char *path,
                                             int *sys_errno)
{
    struct memory *memory = ctx;

    wal__memfs_lock();
    return unlock_status(wal__memfs_remove_directory(&memory->fs, path),
                         sys_errno);
}

static enum wal_status path_sync_directory(void *ctx, const char *path,
                                           int *sys_errno)
{
    struct wal__memfs_node *node;

    wal__memfs_lock();
    return unlock_status(find_directory(ctx, path, &node), sys_errno);
}

static enum wal_status path_is_network(void *ctx, const char *path,
                                       bool *network, char *name,
                                       int *sys_errno)
{
    struct memory *memory = ctx;
    struct wal__memfs_node *node;
    int error;

    wal__memfs_lock();
    error = wal__memfs_find(&memory->fs, path, &node);
    if (error == 0) {
        *network = false;
        memcpy(name, "memory", sizeof("memory"));
    }
    return unlock_status(error, sys_errno);
}

/* ------------------------------------------------------------- table --- */

static void memory_boot_id(void *ctx, uint8_t out[16])
{
    const struct memory *memory = ctx;

    memcpy(out, memory->boot_id, sizeof(memory->boot_id));
}

/* The locks of the table are this process's only, so other processes count as
 * dead. */
static uint64_t memory_process_start(void *ctx, uint32_t pid)
{
    return pid == wal__process_id(ctx) ? process_start_time : 0;
}

static const struct wal__io table = {
    .open = file_open,
    .close = file_close,
    .pread = file_pread,
    .pwritev = file_pwritev,
    .sync = file_sync,
    .allocate = file_allocate,
    .stat = file_stat,
    .map = file_map,
    .unmap = file_unmap,
    .populate = file_populate,
    .lock = file_lock,
    .path_stat = path_stat,
    .make_directory = path_make_directory,
    .list = path_list,
    .rename = path_rename,
    .unlink = path_unlink,
    .remove_directory = path_remove_directory,
    .sync_directory = path_sync_directory,
    .is_network = path_is_network,
    .now_ms = wal__clock_now_ms,
    .monotonic_ns = wal__clock_monotonic_ns,
    .random = wal__random_system,
    .boot_id = memory_boot_id,
    .process_id = wal__process_id,
    .process_start_time = memory_process_start,
    .process_is_stopped = wal__process_is_stopped,
    .futex_wait = wal__futex_wait,
    .futex_wake = wal__futex_wake,
    .threads = true,
};

enum wal_status wal__io_memory_create(const struct wal__heap *heap,
                                      struct wal__io **io)
{
    struct memory *memory = wal__heap_zalloc(heap, sizeof(*memory));

    if (memory == NULL) {
        return WAL_ENOMEM;
    }
    if (!wal__memfs_init(&memory->fs, heap)) {
        wal__heap_free(heap, memory);
        return WAL_ENOMEM;
    }
    memory->io = table;
    memory->io.ctx = memory;
    memory->io.worktree = wal__io_posix.worktree;
    /* Zeros would mean that the boot id is unknown. */
    wal__random_system(NULL, memory->boot_id, sizeof(memory->boot_id));
    memory->boot_id[0] |= 1;
    *io = &memory->io;
    return WAL_OK;
}

void wal__io_memory_destroy(struct wal__io *io)
{
    struct memory *memory = io == NULL ? NULL : io->ctx;

    if (memory == NULL) {
        return;
    }
    wal__memfs_lock();
    wal__memfs_deinit(&memory->fs);
    wal__memfs_unlock();
    wal__heap_free(memory->fs.heap, memory);
}
