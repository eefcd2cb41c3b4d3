/*
 * capture.h - looks at files below the root of a work tree and makes a list of
 * their states, their contents kept as blobs (SPEC.md 5.13).
 *
 * Content that an earlier list tells is recorded only when the indexes of the
 * store have it. Several threads read, digest and compress; memory is bounded
 * by a few MiB a thread, whatever the number and the sizes of the files.
 * Nothing is synced.
 */
#ifndef AGENTWAL_ENGINE_CHECKPOINT_CAPTURE_H
#define AGENTWAL_ENGINE_CHECKPOINT_CAPTURE_H

#include "engine/checkpoint/file_set.h"
#include "engine/os/env.h"
#include "engine/worktree/worktree.h"

enum {
    WAL__CAPTURE_BASELINES = 4
};

struct wal__capture {
    const struct wal__env *env;
    const struct wal__worktree_io *io;
    struct wal__worktree *worktree;
    struct wal__blob_store *blobs; /* null: contents are digested, not kept */
    uint32_t threads;              /* 0: as many as processors, 8 at most */
    /* Lists of the same root, newest first: a file whose size, times, inode
     * and device are as one of them says has the content that it says. They
     * are also where the version before comes from. */
    const struct wal__files *baselines[WAL__CAPTURE_BASELINES];
    uint32_t baseline_count;
    /* If not null, nothing is read: a byte for each file, zeros before, 1 for
     * those that would have to be; their digests are zeros. */
    uint8_t *needs_read;
    /* out */
    struct wal__blob_put_result result;
    uint64_t read_count; /* files whose content was read */
};

/*
 * Fills the records of `files`, whose paths it has. The first path that
 * cannot be told is in error->file: WAL_EACCESS, WAL_ENOTFILE, WAL_EOUTSIDE,
 * WAL_EIO, WAL_ECHANGED (it changed each time it was read), or what writing
 * blobs answers. On failure the records are undefined.
 */
enum wal_status wal__capture(struct wal__capture *collect,
                             struct wal__files *files,
                             struct wal_error *error) WAL_MUST_USE;

/* A failure of a call on a work tree, told with the path. */
enum wal_status wal__worktree_fail(struct wal_error *error,
                                   enum wal_status status, int sys_errno,
                                   const char *path, const char *what);

#endif
