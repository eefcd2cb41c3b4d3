/*
 * io.h - the operating system as the engine sees it: a table of calls, so that
 * a test can put a simulated disk in its place. io_posix.c, with host.c, is the
 * real one; it and the table for work trees (tree.h) are the only places of the
 * engine that make system calls on files. io_memory.c keeps everything in
 * memory, work trees apart.
 *
 * Every call answers WAL_OK or a failure with the errno in *sys_errno (which
 * may not be null). Calls do what one system call does: reads and writes may
 * be short, EINTR is retried inside. Handles may be used by several threads.
 */
#ifndef AGENTWAL_ENGINE_OS_IO_H
#define AGENTWAL_ENGINE_OS_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "agentwal.h"

struct wal__file; /* defined by the implementation */
struct wal__worktree_io;

enum wal__io_open_flag {
    WAL__IO_WRITE = 1,     /* read and write; else read only */
    WAL__IO_CREATE = 2,    /* mode 0600 */
    WAL__IO_EXCLUSIVE = 4, /* with CREATE: fail with WAL_EEXISTS */
    WAL__IO_TRUNCATE = 8
};

struct wal__io_stat {
    uint64_t size;
    uint64_t allocated; /* bytes of disk */
    uint64_t device;
    uint64_t inode;
    bool is_directory;
};

enum wal__io_lock {
    WAL__IO_LOCK_NONE,
    WAL__IO_LOCK_SHARED,
    WAL__IO_LOCK_EXCLUSIVE
};

struct wal__io {
    void *ctx;

    /* Files. WAL_ENOTFOUND (ENOENT, ENOTDIR), WAL_EEXISTS, WAL_EREADONLY
     * (EACCES, EPERM, EROFS), WAL_ENOSPACE (ENOSPC, EDQUOT, EFBIG),
     * WAL_ENOMEM, else WAL_EIO. Opening anything but a regular file is
     * WAL_EIO. */
    enum wal_status (*open)(void *ctx, const char *path, int flags,
                            struct wal__file **file, int *sys_errno);
    void (*close)(void *ctx, struct wal__file *file);
    enum wal_status (*pread)(void *ctx, struct wal__file *file, void *data,
                             size_t size, uint64_t offset, size_t *bytes_read,
                             int *sys_errno); /* *got 0: end of file */
    enum wal_status (*pwritev)(void *ctx, struct wal__file *file,
                               const struct iovec *iov, int count,
                               uint64_t offset, size_t *bytes_written,
                               int *sys_errno);
    /* Data and size on stable storage (fdatasync). */
    enum wal_status (*sync)(void *ctx, struct wal__file *file, int *sys_errno);
    /* Begins to put what was written on stable storage, and does not wait: a
     * hint, so that a sync that follows is shorter. Null: none. */
    void (*write_back)(void *ctx, struct wal__file *file, uint64_t offset,
                       uint64_t size);
    /* Reserves disk for [0,size) and makes the file that long; new bytes read
     * as zeros (fallocate). */
    enum wal_status (*allocate)(void *ctx, struct wal__file *file,
                                uint64_t size, int *sys_errno);
    enum wal_status (*stat)(void *ctx, struct wal__file *file,
                            struct wal__io_stat *out, int *sys_errno);
    /* The whole file's first `size` bytes, shared; read only unless writable.
     * Stays until unmap, whatever happens to the file. */
    enum wal_status (*map)(void *ctx, struct wal__file *file, uint64_t size,
                           bool writable, void **at, int *sys_errno);
    void (*unmap)(void *ctx, void *at, uint64_t size);
    /* Brings a part of a map into memory, so that what cannot be read is
     * WAL_EIO now and not a signal later. WAL_EINVAL where the system has no
     * such call: read instead. */
    enum wal_status (*populate)(void *ctx, const void *at, uint64_t size,
                                int *sys_errno);
    /* One lock byte, by open file description, not by process; never waits:
     * WAL_ELOCKED when another holds it. */
    enum wal_status (*lock)(void *ctx, struct wal__file *file, uint64_t offset,
                            enum wal__io_lock mode, int *sys_errno);

    /* Names. */
    enum wal_status (*path_stat)(void *ctx, const char *path,
                                 struct wal__io_stat *out, int *sys_errno);
    enum wal_status (*make_directory)(void *ctx, const char *path,
                                      int *sys_errno); /* mode 0700 */
    /* Calls `each` for every name but . and .. in no order, while it answers
     * WAL_OK. */
    enum wal_status (*list)(void *ctx, const char *path,
                            enum wal_status (*each)(void *arg,
                                                    const char *name),
                            void *arg, int *sys_errno);
    enum wal_status (*rename)(void *ctx, const char *from, const char *to,
                              int *sys_errno);
    enum wal_status (*unlink)(void *ctx, const char *path, int *sys_errno);
    /* The directory's names on stable storage. */
    enum wal_status (*sync_directory)(void *ctx, const char *path,
                                      int *sys_errno);
    /* Whether the path lies on a network file system; its name in name[32]. */
    enum wal_status (*is_network)(void *ctx, const char *path, bool *network,
                                  char *name, int *sys_errno);

    /* Clocks, identity, chance. These do not fail. */
    int64_t (*now_ms)(void *ctx);        /* Unix time */
    uint64_t (*monotonic_ns)(void *ctx); /* monotonic */
    void (*random)(void *ctx, void *data, size_t size);
    void (*boot_id)(void *ctx, uint8_t out[16]); /* zeros: not known */
    uint32_t (*process_id)(void *ctx);
    /* Tells a process from a later one of the same id. 0: there is none, or
     * only a zombie. UINT64_MAX: there may be one, take it as alive. */
    uint64_t (*process_start_time)(void *ctx, uint32_t pid);
    /* Whether it is stopped, by a signal or a debugger, until somebody
     * continues it. False where that cannot be told. */
    bool (*process_is_stopped)(void *ctx, uint32_t pid);

    /* Waits until *word != expected, a wake, or the time is over; may return
     * early. The word may lie in a shared map. */
    void (*futex_wait)(void *ctx, const uint32_t *word, uint32_t expected,
                       uint64_t timeout_ns);
    /* Wakes so many of them at most. */
    void (*futex_wake)(void *ctx, const uint32_t *word, uint32_t count);
    /* Whether the library may run its own threads on this table. The
     * simulated disk has none: everything happens in the caller's thread. */
    bool threads;
    /* Users' work trees (tree.h), with a context of their own. Null: none. */
    const struct wal__worktree_io *worktree;
};

/* The operating system's own. */
extern const struct wal__io wal__io_posix;

/* What an errno means, as told at `open` above. In io.c. */
enum wal_status wal__io_status(int sys_errno);

/* Whole reads and writes: short ones are continued, EAGAIN is repeated.
 * read_full gives fewer bytes only at the end of the file. A write that
 * repeatedly moves nothing is WAL_EIO. In io.c. */
enum wal_status wal__io_read_full(const struct wal__io *io,
                                  struct wal__file *file, void *data,
                                  size_t size, uint64_t offset,
                                  size_t *bytes_read, int *sys_errno);
enum wal_status wal__io_write_full(const struct wal__io *io,
                                   struct wal__file *file,
                                   const struct iovec *iov, int count,
                                   uint64_t offset, int *sys_errno);

#endif
