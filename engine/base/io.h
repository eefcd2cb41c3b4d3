/*
 * io.h - the operating system interface of the engine: a table of calls, so that a test can replace
 * it by a simulated disk. io_posix.c is the real one, io_memory.c that of files in memory; they and
 * the table for work trees (worktree.h) are the only places of the engine that make system calls on
 * files.
 *
 * Every call returns WAL_OK, or a failure with the errno in *sys_errno (never NULL). A call does
 * what one system call does: reads and writes may be short; EINTR is retried. Several threads may
 * use one handle.
 */
#ifndef AGENTWAL_ENGINE_BASE_IO_H
#define AGENTWAL_ENGINE_BASE_IO_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "agentwal.h"
#include "engine/base/heap.h"

struct wal__file; /* an open file; opaque, private to the implementation */
struct wal__worktree_io;

enum wal__io_open_flag {
    WAL__IO_WRITE = 1,     /* read and write; else read only */
    WAL__IO_CREATE = 2,    /* mode 0600 */
    WAL__IO_EXCLUSIVE = 4, /* with CREATE: fail with WAL_EEXISTS */
    WAL__IO_TRUNCATE = 8,
    WAL__IO_FOLLOW = 16 /* the path may be a symbolic link */
};

/* What a store may rely on where its files are. */
enum wal__storage {
    WAL__STORAGE_LOCAL = 0,   /* locks, maps and syncs */
    WAL__STORAGE_SHARED = 1,  /* none of them: several machines may use it */
    WAL__STORAGE_VOLATILE = 2 /* locks and maps: syncs are ignored */
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
    WAL__IO_LOCK_EXCLUSIVE,
    /* Changes nothing: tests whether EXCLUSIVE would conflict. The file may be open for reading
     * only. */
    WAL__IO_LOCK_TEST
};

struct wal__io {
    void *ctx;

    /* Files. WAL_ENOTFOUND (ENOENT, ENOTDIR), WAL_EEXISTS, WAL_EREADONLY (EACCES, EPERM, EROFS),
     * WAL_ENOSPACE (ENOSPC, EDQUOT, EFBIG), WAL_ENOMEM, else WAL_EIO. Opening anything but a
     * regular file is WAL_EIO, at once: ELOOP for a symbolic link, EISDIR for a directory, ENXIO
     * for any other (wal__fail_open). */
    enum wal_status (*open)(void *ctx, const char *path, int flags, struct wal__file **file,
                            int *sys_errno);
    void (*close)(void *ctx, struct wal__file *file);
    enum wal_status (*pread)(void *ctx, struct wal__file *file, void *data, size_t size,
                             uint64_t offset, size_t *bytes_read,
                             int *sys_errno); /* *bytes_read 0: end of file */
    enum wal_status (*pwritev)(void *ctx, struct wal__file *file, const struct iovec *iov,
                               int count, uint64_t offset, size_t *bytes_written, int *sys_errno);
    /* Writes data and size to stable storage (fdatasync). */
    enum wal_status (*sync)(void *ctx, struct wal__file *file, int *sys_errno);
    /* Starts writeback of a range and does not wait: a hint that makes the next sync shorter. Not
     * durable. NULL: not supported. */
    void (*write_back)(void *ctx, struct wal__file *file, uint64_t offset, uint64_t size);
    /* Allocates disk space for [0,size) and extends the file to `size` if it is shorter; new bytes
     * read as zeros (fallocate). In memory it only extends the file. */
    enum wal_status (*allocate)(void *ctx, struct wal__file *file, uint64_t size, int *sys_errno);
    /* Gives the disk space of a range back; its bytes then read as zeros, and the size remains (a
     * hole). Not durable. Fails where the file system has no holes. */
    enum wal_status (*punch)(void *ctx, struct wal__file *file, uint64_t offset, uint64_t size,
                             int *sys_errno);
    enum wal_status (*stat)(void *ctx, struct wal__file *file, struct wal__io_stat *out,
                            int *sys_errno);
    /* Makes `to`, which is empty, a copy of `from` that shares its blocks until one of them is
     * written (FICLONE). Fails, and changes nothing, where the file system cannot. Not durable.
     * NULL: not supported. */
    enum wal_status (*clone)(void *ctx, struct wal__file *from, struct wal__file *to,
                             int *sys_errno);
    /* Maps the file's first `size` bytes, shared; read-only unless writable. Valid until unmap,
     * also after close, rename and unlink. */
    enum wal_status (*map)(void *ctx, struct wal__file *file, uint64_t size, bool writable,
                           void **at, int *sys_errno);
    void (*unmap)(void *ctx, void *at, uint64_t size);
    /* Faults in the pages of a part of a map, so that an unreadable one is WAL_EIO now and not
     * SIGBUS later.
     * WAL_EINVAL if the system lacks the call: use pread. */
    enum wal_status (*populate)(void *ctx, const void *at, uint64_t size, int *sys_errno);
    /* Faults in the pages of a part of a writable map, so that stores to it do not fault. Fails
     * where they would raise SIGBUS. NULL: not supported. */
    enum wal_status (*populate_writable)(void *ctx, void *at, uint64_t size, int *sys_errno);
    /* Returns whether what is written in the file can be written again without space. NULL where
     * populate_writable is. */
    bool (*writes_in_place)(void *ctx, struct wal__file *file);
    /* Asks for that, of a file that is empty yet; best effort. NULL: not supported. */
    void (*set_in_place)(void *ctx, struct wal__file *file);
    /* Unmaps the pages of a part of a map, but the last unless the part ends with it, until they
     * are touched again. NULL where populate_writable is. */
    void (*evict)(void *ctx, void *at, uint64_t size);
    /* Sets the lock of one byte, owned by the open file description, not by the process. Never
     * waits: WAL_ELOCKED when another one conflicts. */
    enum wal_status (*lock)(void *ctx, struct wal__file *file, uint64_t offset,
                            enum wal__io_lock mode, int *sys_errno);

    /* Names. */
    enum wal_status (*path_stat)(void *ctx, const char *path, struct wal__io_stat *out,
                                 int *sys_errno);
    enum wal_status (*make_directory)(void *ctx, const char *path, int *sys_errno); /* mode 0700 */
    /* Calls `each` for every name but . and .., in no order; stops at the first status that is not
     * WAL_OK, and returns it. */
    enum wal_status (*list)(void *ctx, const char *path,
                            enum wal_status (*each)(void *arg, const char *name), void *arg,
                            int *sys_errno);
    enum wal_status (*rename)(void *ctx, const char *from, const char *to, int *sys_errno);
    enum wal_status (*unlink)(void *ctx, const char *path, int *sys_errno);
    /* Removes an empty directory. */
    enum wal_status (*remove_directory)(void *ctx, const char *path, int *sys_errno);
    /* Writes the directory's names to stable storage. */
    enum wal_status (*sync_directory)(void *ctx, const char *path, int *sys_errno);
    /* Finds out on what storage the path is; the name of the file system is written to name[32]. */
    enum wal_status (*storage)(void *ctx, const char *path, enum wal__storage *storage, char *name,
                               int *sys_errno);

    /* Returns the bytes that may still be allocated in a directory, or UINT64_MAX when that is
     * unknown. */
    uint64_t (*free_space)(void *ctx, const char *path);

    /* Clocks, identity, random bytes. These do not fail. */
    int64_t (*now_ms)(void *ctx);        /* Unix time */
    uint64_t (*monotonic_ns)(void *ctx); /* monotonic */
    void (*random)(void *ctx, void *data, size_t size);
    void (*boot_id)(void *ctx, uint8_t out[16]); /* zeros: unknown */
    uint32_t (*process_id)(void *ctx);
    /* A number that distinguishes a process from a later one with the same id. 0: the process does
     * not exist, or is a zombie. UINT64_MAX: unknown; treat it as alive. */
    uint64_t (*process_start_time)(void *ctx, uint32_t pid);
    /* A number of the namespace in which process ids name processes; 0: unknown. */
    uint64_t (*process_namespace)(void *ctx);
    /* Returns whether a signal or a debugger has stopped the process. False when that is
     * unknown. */
    bool (*process_is_stopped)(void *ctx, uint32_t pid);
    /* Calls `each` for every process, this one too, that has files below the directory mapped or
     * open which have no name any more, with their bytes. Leaves out those that this process may
     * not look at. NULL: not supported. */
    void (*list_mappers)(void *ctx, const char *directory,
                         void (*each)(void *arg, uint32_t pid, uint64_t bytes), void *arg);

    /* Waits until *word != expected, a wake, or the timeout; may return early. The word may be in a
     * shared map. */
    void (*futex_wait)(void *ctx, const uint32_t *word, uint32_t expected, uint64_t timeout_ns);
    /* Wakes at most `count` waiters. */
    void (*futex_wake)(void *ctx, const uint32_t *word, uint32_t count);
    /* Returns whether the library may start threads that use this table. False for the simulated
     * disk: everything runs in the caller's thread. */
    bool threads;
    /* Returns whether files are in memory and of this process only. The engine then sets no lock
     * bytes, and writes no zeros to new segments: they would take memory, and make no later write
     * faster. */
    bool in_memory;
    /* Returns whether the store keeps its sessions only: WAL_OPEN_NOOP. What a batch adds to them
     * and content are accepted, and written nowhere. */
    bool forgets;
    /* Users' work trees (worktree.h), with a separate ctx. NULL: none. */
    const struct wal__worktree_io *worktree;
};

/* The real operating system. */
extern const struct wal__io wal__io_posix;
/* The descriptor of a file that wal__io_posix opened. In io_posix.c. */
int wal__io_posix_descriptor(const struct wal__file *file);
/* As its `open`, of the file without a name that the descriptor is of. */
enum wal_status wal__io_posix_reopen(int fd, int flags, struct wal__file **file,
                                     int *sys_errno) WAL_MUST_USE;
struct stat;
struct wal__io_stat wal__io_posix_stat(const struct stat *st);

/* Reads the 32 hexadecimal digits of a UUID; zeros for another text. In io.c. */
void wal__io_parse_boot_id(const char *text, uint8_t out[16]);

/* The status of an errno, as listed at `open` above. In io.c. */
enum wal_status wal__io_status(int sys_errno);

/* Complete reads and writes: short ones are continued, EAGAIN is retried. read_full reads fewer
 * bytes only at the end of the file. A write that makes no progress in 64 attempts is WAL_EIO. In
 * io.c. */
enum wal_status wal__io_read_full(const struct wal__io *io, struct wal__file *file, void *data,
                                  size_t size, uint64_t offset, size_t *bytes_read, int *sys_errno);
enum wal_status wal__io_write_full(const struct wal__io *io, struct wal__file *file,
                                   const struct iovec *iov, int count, uint64_t offset,
                                   int *sys_errno);

/* --- files in memory ------------------------------------------------------ */

/* Creates an empty table (io_memory.c); forgets: as its field. Names are allocated from the heap,
 * which must outlive it. WAL_ENOMEM; WAL_EIO when /proc is not mounted. */
enum wal_status wal__io_memory_create(const struct wal__heap *heap, bool forgets,
                                      struct wal__io **io, struct wal_error *error) WAL_MUST_USE;

/* Destroys the table and every name. Handles must be closed; a map stays valid until it is
 * unmapped. NULL does nothing. */
void wal__io_memory_destroy(struct wal__io *io);

/* --- random bytes ------------------------------------------------------- */

/*
 * Random bytes of the system's generator, and a pool of them, so that a generated id costs no
 * system call (SPEC.md 5.1). Any thread; init and deinit one.
 *
 * Invariant: the pool hands out each byte once. A child of fork() inherits a copy of the pool and
 * must not use it: its handles are refused before they do.
 */
enum { WAL__RANDOM_POOL_SIZE = 1024 };

struct wal__random {
    pthread_mutex_t mutex;
    size_t unused_size; /* bytes at the front of `bytes`, not handed out yet */
    uint8_t bytes[WAL__RANDOM_POOL_SIZE];
};

void wal__random_init(struct wal__random *random);
void wal__random_deinit(struct wal__random *random);

/* Copies at most WAL__RANDOM_POOL_SIZE bytes from the pool, or directly from io when random is
 * NULL. */
void wal__random_bytes(struct wal__random *random, const struct wal__io *io, void *out,
                       size_t size);

/* --- the environment ------------------------------------------------------ */

/* The environment of every part of a store: its heap, its operating system interface and its
 * directory. Constant once the store is open. Any thread. */
enum { WAL__PATH_MAX = 4096 };

struct wal__time_cache;
struct wal__keyring;

struct wal__env {
    const struct wal__heap *heap;
    const struct wal__heap *large_heap; /* for arrays that grow with a session */
    const struct wal__io *io;
    struct wal__random *random;    /* for generated ids; null: io each time */
    struct wal__time_cache *times; /* null: each time is formatted */
    char root[WAL__PATH_MAX];      /* the store's directory */
    bool read_only;
    bool is_replica;  /* the store is one (SPEC.md 11.2): then read_only too */
    bool has_shadows; /* ID.next is in place of ID.seg (SPEC.md 3.11) */
    bool use_pread;   /* read by pread instead of maps: WAL_OPEN_PREAD */
    uint32_t lock_timeout_ms;
    struct wal__keyring *keyring; /* of an encrypted store (SPEC.md 8); null: it is not */
    bool is_locked; /* it may be encrypted, and what is encrypted is not read: no keyring */
};

/* Puts a file of the store in place of the one of that name: written as NAME.new, synced, renamed.
 * The name is durable once the caller has synced the directory. In io.c. */
enum wal_status wal__env_replace_file(const struct wal__env *env, const char *name,
                                      const void *data, size_t size, int *sys_errno) WAL_MUST_USE;

/* Writes the path of a file of the store. In io.c. */
void wal__env_path(const struct wal__env *env, char out[WAL__PATH_MAX], const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
