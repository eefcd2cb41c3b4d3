/*
 * capture.h - captures the states of files below the root of a work tree; their contents are stored
 * as blobs (SPEC.md 5.13).
 *
 * Content that a baseline names is stored again only when the indexes of the store do not have it.
 * Several threads read, hash and compress; memory is bounded by a few MiB per thread, whatever the
 * number and the sizes of the files. Nothing is synced.
 *
 * Threads: any; one call at a time per struct.
 */
#ifndef AGENTWAL_ENGINE_FILES_CAPTURE_H
#define AGENTWAL_ENGINE_FILES_CAPTURE_H

#include <pthread.h>
#include <stdatomic.h>

#include "engine/base/io.h"
#include "engine/base/sha256.h"
#include "engine/base/worktree.h"
#include "engine/files/file_set.h"

enum { WAL__CAPTURE_BASELINES = 4 };

struct wal__capture {
    const struct wal__env *env;
    const struct wal__worktree_io *io;
    struct wal__worktree *worktree;
    struct wal__blob_store *blobs; /* NULL: contents are hashed, not stored */
    uint32_t threads;              /* 0: one per processor, at most 8 */
    /* Lists of the same root, newest first. A file whose size, times, inode and device equal those
     * of a baseline has the content that the baseline records. A baseline also provides the base
     * version for deltas. */
    const struct wal__files *baselines[WAL__CAPTURE_BASELINES];
    uint32_t baseline_count;
    /* The list whose paths say where a directory or a link counts as an absent file (SPEC.md 5.13);
     * NULL: the list that is captured. */
    const struct wal__files *names;
    /* Unless NULL: receives the files that cannot be captured, sorted, which are then removed from
     * the list. */
    struct wal__file_issues *issues;
    /* Unless NULL: nothing is read. One byte per file, zeros on entry; set to 1 for files that
     * would have to be read, whose digests are zeros. */
    uint8_t *needs_read;
    /* out */
    struct wal__blob_put_result result;
    uint64_t read_count; /* files whose content was read */
};

/*
 * Fills the records of `files`, whose paths are set. error->file is the first path that fails:
 * WAL_EACCESS, WAL_ENOTFILE, WAL_EOUTSIDE, WAL_EIO, WAL_ECHANGED (the file changed during each
 * attempt), which become issues if there is a list of them; or a status of writing blobs. On
 * failure the records are undefined.
 */
enum wal_status wal__capture(struct wal__capture *capture, struct wal__files *files,
                             struct wal_error *error) WAL_MUST_USE;

/* Fails with the status of a work tree call; `path` is the file, `what` names the operation. */
enum wal_status wal__worktree_fail(struct wal_error *error, enum wal_status status, int sys_errno,
                                   const char *path, const char *what);

/* The two batches of a running capture. Only a test fills them by hand. */

/* Prepared contents that are written together. */
struct wal__capture_batch {
    struct wal__blob_prepared *items;
    uint32_t count;
    uint64_t size; /* bytes of their frames, with overhead */
};

struct wal__capture_job {
    struct wal__capture *capture;
    struct wal__files *files;
    struct wal__sha256_alg sha256_alg; /* for contents that are not stored */
    atomic_uint_fast64_t read_count;
    pthread_mutex_t mutex; /* guards the members below */
    pthread_cond_t batch_written;
    struct wal__capture_batch filling;
    struct wal__capture_batch writing; /* of the writing worker */
    uint32_t capacity;                 /* items of each batch */
    bool is_writing;                   /* a worker writes a batch */
};

/* Takes ownership of prepared content, also on failure; writes a batch when it is full. Any worker;
 * takes the mutex. */
enum wal_status wal__capture_add_content(struct wal__capture_job *job,
                                         struct wal__blob_prepared *prepared,
                                         struct wal_error *error) WAL_MUST_USE;

#endif
