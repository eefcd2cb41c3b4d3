/*
 * worktree.h - the files of a user's work tree as checkpoints and rewinds see
 * them: a table of calls below one root directory, so that a test can put a
 * simulated disk in its place (SPEC.md 5.14). tree_posix.c is the real one.
 *
 * A path is relative to the root and plain (format/index/file_list.h),
 * terminated by NUL: another one is WAL_EINVAL. No call follows a symbolic link
 * in any part of it: a parent that is one is WAL_EOUTSIDE, as is a path that is
 * absolute or has a part "..". Every call answers WAL_OK or a failure with the
 * errno in *sys_errno (never null): WAL_ENOTFOUND, WAL_EEXISTS, WAL_EACCESS
 * (EACCES, EPERM, EROFS; EBUSY: a mount is there), WAL_ENOSPACE, WAL_ENOMEM,
 * WAL_EOUTSIDE, WAL_ENOTFILE (a directory, device, socket, pipe or, where it
 * cannot be meant, a symbolic link where a file was named), WAL_ETOOBIG (a name
 * longer than the file system has), else WAL_EIO. Outputs are untouched on
 * failure. Handles may be used by several threads.
 */
#ifndef AGENTWAL_ENGINE_WORKTREE_WORKTREE_H
#define AGENTWAL_ENGINE_WORKTREE_WORKTREE_H

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

    /* The root itself is an absolute path of the caller's, links followed.
     * Open it anew for each piece of work: calls that only look may find a
     * directory where it was up to 10 ms ago while the handle is open. */
    enum wal_status (*open_root)(void *ctx, const char *path,
                                 struct wal__worktree **tree, int *sys_errno);
    void (*close_root)(void *ctx, struct wal__worktree *tree);

    /* Of the name itself, links not followed. A name that is not there, whose
     * parent is not, or that is too long to be there, is WAL_OK and
     * WAL__WORKTREE_ABSENT. */
    enum wal_status (*stat)(void *ctx, struct wal__worktree *tree,
                            const char *path, struct wal__worktree_stat *out,
                            int *sys_errno);

    /* A regular file, to be read. Never blocks on a pipe. */
    enum wal_status (*open)(void *ctx, struct wal__worktree *tree,
                            const char *path, struct wal__worktree_file **file,
                            int *sys_errno);
    /* A new regular file, to be read and written; WAL_EEXISTS where a name
     * is. The umask takes bits off the mode. On another file system than the
     * root's, which sync_all does not reach, each write is durable. */
    enum wal_status (*create)(void *ctx, struct wal__worktree *tree,
                              const char *path, uint32_t mode,
                              struct wal__worktree_file **file, int *sys_errno);
    void (*close)(void *ctx, struct wal__worktree_file *file);
    enum wal_status (*file_stat)(void *ctx, struct wal__worktree_file *file,
                                 struct wal__worktree_stat *out,
                                 int *sys_errno);
    /* May be short; *got 0: end of file. */
    enum wal_status (*read)(void *ctx, struct wal__worktree_file *file,
                            void *data, size_t size, uint64_t offset,
                            size_t *bytes_read, int *sys_errno);
    enum wal_status (*write)(void *ctx, struct wal__worktree_file *file,
                             const void *data, size_t size, uint64_t offset,
                             size_t *bytes_written, int *sys_errno);
    /* Exactly these bits, whatever the umask. */
    enum wal_status (*set_mode)(void *ctx, struct wal__worktree_file *file,
                                uint32_t mode, int *sys_errno);

    /* The target of a symbolic link; WAL_ETOOBIG when it is longer. */
    enum wal_status (*read_link)(void *ctx, struct wal__worktree *tree,
                                 const char *path, void *data, size_t size,
                                 size_t *bytes_read, int *sys_errno);
    enum wal_status (*make_link)(void *ctx, struct wal__worktree *tree,
                                 const char *path, const char *target,
                                 int *sys_errno);

    /* What is at `from`, no directory, takes the place of what is at `to`, a
     * directory apart. */
    enum wal_status (*rename)(void *ctx, struct wal__worktree *tree,
                              const char *from, const char *to, int *sys_errno);
    enum wal_status (*unlink)(void *ctx, struct wal__worktree *tree,
                              const char *path, int *sys_errno);
    enum wal_status (*make_directory)(void *ctx, struct wal__worktree *tree,
                                      const char *path, int *sys_errno);
    /* One that is empty: WAL_EEXISTS when it is not. */
    enum wal_status (*remove_directory)(void *ctx, struct wal__worktree *tree,
                                        const char *path, int *sys_errno);
    /* Whether a file in the same directory could take the place of this name,
     * or be put there, and the directory be synced: WAL_EACCESS, WAL_ENOTFILE
     * (also: a parent is no directory), WAL_ENOTFOUND (no parent). Immutable
     * files, read-only mounts and mounts on the name count. Changes nothing.
     */
    enum wal_status (*check_replace)(void *ctx, struct wal__worktree *tree,
                                     const char *path, int *sys_errno);

    /* Data, sizes and modes of all files of the root's file system that were
     * written before, on stable storage (syncfs). */
    enum wal_status (*sync_all)(void *ctx, struct wal__worktree *tree,
                                int *sys_errno);
    /* The names in directories below the root, on stable storage: paths, each
     * followed by a NUL, `size` bytes in all; the empty one is the root. One
     * that is not there, or not to be reached, is told last: the others are
     * synced all the same. */
    enum wal_status (*sync_directories)(void *ctx, struct wal__worktree *tree,
                                        const char *paths, size_t size,
                                        int *sys_errno);

    int64_t (*now_ns)(void *ctx); /* of the clock that file times come from */
};

/* The operating system's own. */
extern const struct wal__worktree_io wal__worktree_posix;
/* The same as on kernels without openat2(2), for tests. */
extern const struct wal__worktree_io wal__worktree_posix_no_openat2;

/* A path cut at its last slash. In tree_path.c, as is all below. */
struct wal__worktree_path {
    size_t parent_size; /* bytes of the path; 0: the root is the parent */
    const char *name;   /* the path's last part */
};

/* 0, or an errno: EXDEV where the path leaves the root, EINVAL, ENAMETOOLONG
 * for a path or a part longer than any file system has. */
int wal__worktree_path_split(const char *path,
                             struct wal__worktree_path *split);
/* What an errno means: of a call on a name, and of the way to its parent. */
enum wal_status wal__worktree_status(int sys_errno);
enum wal_status wal__worktree_resolve_status(int sys_errno);

#endif
