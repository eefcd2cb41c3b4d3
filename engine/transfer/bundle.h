/*
 * bundle.h - what writing and reading a bundle share (agentwal/transfer.h,
 * docs/bundles.md): paths, the temporary directory, and pieces of files.
 *
 * Both work on the real system, also for a store in memory. Threads: one thread
 * per call.
 */
#ifndef AGENTWAL_ENGINE_TRANSFER_BUNDLE_H
#define AGENTWAL_ENGINE_TRANSFER_BUNDLE_H

#include "engine/base/env.h"
#include "engine/transfer/transfer.h"
#include "format/index/bundle_fmt.h"

enum {
    WAL__BUNDLE_PIECE = 1024 * 1024, /* bytes that are read at once */
    WAL__BUNDLE_NAME = 40            /* of a file of a store, below it */
};

struct wal__bundle_job {
    const struct wal__io *io;
    const struct wal__heap *heap;
    struct wal_store *store;
    const struct wal_transfer_options *options;
    struct wal_error *error; /* of the caller, or NULL */
    uint8_t *piece;          /* WAL__BUNDLE_PIECE bytes */
    char path[WAL__PATH_MAX];
    char directory[WAL__PATH_MAX]; /* of the temporary store; "": none */
    struct wal__file *lock;        /* its lock file, as long as it is there */
};

/* Checks the arguments and makes the directory for a temporary store, in
 * options->directory, else in `place`. */
enum wal_status wal__bundle_begin(struct wal__bundle_job *job,
                                  struct wal_slice path) WAL_MUST_USE;
enum wal_status wal__bundle_make_directory(struct wal__bundle_job *job,
                                           const char *place) WAL_MUST_USE;
/* Removes the directory, and frees. */
void wal__bundle_end(struct wal__bundle_job *job);

/* bundle_leftovers.c: creates a file that is locked until it is closed, so that
 * others know that its process lives. */
enum wal_status wal__bundle_create_locked(const struct wal__io *io,
                                          const char *path,
                                          struct wal__file **file,
                                          int *sys_errno) WAL_MUST_USE;
/* Removes what processes of this user that have ended left in a directory:
 * temporary stores, with their lock files, and unfinished bundles. What cannot
 * be removed stays. */
void wal__bundle_remove_leftovers(const struct wal__io *io, const char *place);

/* The name of a file below its store. */
void wal__bundle_name(const struct wal__bundle_file *file,
                      char out[WAL__BUNDLE_NAME]);
/* The path of a file in the temporary store; false: it is too long. */
bool wal__bundle_path(const struct wal__bundle_job *job,
                      const struct wal__bundle_file *file,
                      char out[WAL__PATH_MAX]);
/* Fails with the system's error about a file. */
enum wal_status wal__bundle_fail(const struct wal__bundle_job *job,
                                 enum wal_status status, int sys_errno,
                                 const char *file,
                                 const char *what) WAL_MUST_USE;
/* Reads just these bytes; WAL_ECORRUPT at the end of the file. */
enum wal_status wal__bundle_pread(const struct wal__bundle_job *job,
                                  struct wal__file *file, const char *name,
                                  void *data, size_t size,
                                  uint64_t offset) WAL_MUST_USE;
enum wal_status wal__bundle_pwrite(const struct wal__bundle_job *job,
                                   struct wal__file *file, const char *name,
                                   const void *data, size_t size,
                                   uint64_t offset) WAL_MUST_USE;

#endif
