/*
 * worktree.h - the files of a user's work tree, for checkpoints and rewinds: a table of calls below
 * one root directory, so that a test can replace it by a simulated disk (SPEC.md 5.14).
 * worktree_posix.c is the real one.
 *
 * A path is relative to the root, plain (format/index/file_list.h) and terminated by NUL; any other
 * is WAL_EINVAL. No call follows a symbolic link in any component: a parent that is one is
 * WAL_EOUTSIDE, as is a path that is absolute or has a component "..". Every call returns WAL_OK,
 * or a failure with the errno in *sys_errno (never NULL): WAL_ENOTFOUND, WAL_EEXISTS, WAL_EACCESS
 * (EACCES, EPERM, EROFS; EBUSY: the name is a mount point), WAL_ENOSPACE, WAL_ENOMEM, WAL_EOUTSIDE,
 * WAL_ENOTFILE (a directory, device, socket or pipe where a file was named; also a symbolic link in
 * calls that need a regular file), WAL_ETOOBIG (a name longer than the file system allows), else
 * WAL_EIO. Outputs are untouched on failure. Several threads may use one handle.
 */
#ifndef AGENTWAL_ENGINE_BASE_WORKTREE_H
#define AGENTWAL_ENGINE_BASE_WORKTREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agentwal.h"

struct wal__worktree;      /* an open root; defined by the implementation */
struct wal__worktree_file; /* an open file below it */

enum wal__worktree_kind {
    WAL__WORKTREE_ABSENT,
    WAL__WORKTREE_REGULAR,
    WAL__WORKTREE_SYMLINK,
    WAL__WORKTREE_DIRECTORY,
    WAL__WORKTREE_OTHER
};

struct wal__worktree_stat {
    enum wal__worktree_kind kind;
    uint32_t mode; /* permission bits, 07777 */
    uint64_t size;
    int64_t mtime_ns;
    int64_t ctime_ns;
    uint64_t inode;
    uint64_t device;
};

struct wal__worktree_io {
    void *ctx;

    /* Opens a root by an absolute path; links in it are followed. Open it again for each operation:
     * while the handle is open, calls that only read may use the directory that a path led to up to
     * 10 ms earlier. */
    enum wal_status (*open_root)(void *ctx, const char *path, struct wal__worktree **tree,
                                 int *sys_errno);
    void (*close_root)(void *ctx, struct wal__worktree *tree);

    /* The state of the name itself; a link is not followed. A name that does not exist, whose
     * parent does not exist, or that is too long to exist, is WAL_OK with WAL__WORKTREE_ABSENT. */
    enum wal_status (*stat)(void *ctx, struct wal__worktree *tree, const char *path,
                            struct wal__worktree_stat *out, int *sys_errno);

    /* Opens a regular file for reading. Never blocks on a pipe. */
    enum wal_status (*open)(void *ctx, struct wal__worktree *tree, const char *path,
                            struct wal__worktree_file **file, int *sys_errno);
    /* Creates a regular file for reading and writing; WAL_EEXISTS if the name exists. The umask
     * applies to the mode. Writes to a file on another file system than the root's, which sync_all
     * does not cover, are durable when they return. */
    enum wal_status (*create)(void *ctx, struct wal__worktree *tree, const char *path,
                              uint32_t mode, struct wal__worktree_file **file, int *sys_errno);
    void (*close)(void *ctx, struct wal__worktree_file *file);
    enum wal_status (*file_stat)(void *ctx, struct wal__worktree_file *file,
                                 struct wal__worktree_stat *out, int *sys_errno);
    /* May be short; *bytes_read 0: end of file. */
    enum wal_status (*read)(void *ctx, struct wal__worktree_file *file, void *data, size_t size,
                            uint64_t offset, size_t *bytes_read, int *sys_errno);
    enum wal_status (*write)(void *ctx, struct wal__worktree_file *file, const void *data,
                             size_t size, uint64_t offset, size_t *bytes_written, int *sys_errno);
    /* Sets exactly these permission bits; the umask does not apply. */
    enum wal_status (*set_mode)(void *ctx, struct wal__worktree_file *file, uint32_t mode,
                                int *sys_errno);

    /* The target of a symbolic link; WAL_ETOOBIG when it is longer. */
    enum wal_status (*read_link)(void *ctx, struct wal__worktree *tree, const char *path,
                                 void *data, size_t size, size_t *bytes_read, int *sys_errno);
    enum wal_status (*make_link)(void *ctx, struct wal__worktree *tree, const char *path,
                                 const char *target, int *sys_errno);

    /* Renames `from`, which is not a directory, to `to`, and replaces what exists there unless it
     * is a directory. */
    enum wal_status (*rename)(void *ctx, struct wal__worktree *tree, const char *from,
                              const char *to, int *sys_errno);
    enum wal_status (*unlink)(void *ctx, struct wal__worktree *tree, const char *path,
                              int *sys_errno);
    enum wal_status (*make_directory)(void *ctx, struct wal__worktree *tree, const char *path,
                                      int *sys_errno);
    /* Removes an empty directory; WAL_EEXISTS when it is not empty. */
    enum wal_status (*remove_directory)(void *ctx, struct wal__worktree *tree, const char *path,
                                        int *sys_errno);
    /* Calls `each` for the names in a directory, in no particular order, until it fails; *sys_errno
     * is 0 then. WAL_ENOTFOUND when it is no directory. */
    enum wal_status (*list)(void *ctx, struct wal__worktree *tree, const char *path,
                            enum wal_status (*each)(void *arg, const char *name), void *arg,
                            int *sys_errno);
    /* Checks whether a file of the same directory could be renamed to this name, and the directory
     * synced: else WAL_EACCESS, WAL_ENOTFILE (also if a parent is not a directory) or WAL_ENOTFOUND
     * (no parent). Considers immutable files, read-only mounts and mounts on the name. Changes
     * nothing. */
    enum wal_status (*check_replace)(void *ctx, struct wal__worktree *tree, const char *path,
                                     int *sys_errno);

    /* Writes data, sizes and modes of all files of the root's file system to stable storage
     * (syncfs). */
    enum wal_status (*sync_all)(void *ctx, struct wal__worktree *tree, int *sys_errno);
    /* Writes the names in directories to stable storage. `paths` holds paths, each followed by a
     * NUL, `size` bytes in total; the empty one is the root. A directory that does not exist or
     * cannot be resolved does not keep the others from being synced, and is reported only if all
     * syncs succeed. */
    enum wal_status (*sync_directories)(void *ctx, struct wal__worktree *tree, const char *paths,
                                        size_t size, int *sys_errno);

    int64_t (*now_ns)(void *ctx); /* the clock that file times come from */
};

/* The real operating system. */
extern const struct wal__worktree_io wal__worktree_posix;
/* The same as on kernels without openat2(2), for tests. */
extern const struct wal__worktree_io wal__worktree_posix_no_openat2;

/* A path split at its last slash. worktree_posix.c has the functions below. */
struct wal__worktree_path {
    size_t parent_size; /* bytes of the path; 0: the root is the parent */
    const char *name;   /* the last component; points into the path */
};

/* 0, or an errno: EXDEV if the path leaves the root, EINVAL if it is not plain, ENAMETOOLONG if the
 * path or a component is longer than any file system allows. */
int wal__worktree_path_split(const char *path, struct wal__worktree_path *split);
/* The status of an errno: of a call on a name, and of resolving the path to its parent. */
enum wal_status wal__worktree_status(int sys_errno);
enum wal_status wal__worktree_resolve_status(int sys_errno);

#endif
