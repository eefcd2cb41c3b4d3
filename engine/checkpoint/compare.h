/*
 * compare.h - what differs between two lists of files, with counts of lines
 * (SPEC.md 5.13). One thread at a time.
 */
#ifndef WAL_CHECKPOINT_COMPARE_H
#define WAL_CHECKPOINT_COMPARE_H

#include <pthread.h>

#include "engine/checkpoint/files.h"
#include "engine/io/tree.h"
#include "engine/session/core.h"

/* A file that differs. */
struct wal__change {
    struct wal__span path; /* followed by a NUL; in the changes' texts */
    /* Their path is the same. */
    struct wal__file_record before;
    struct wal__file_record after;
    uint32_t flags; /* enum wal_file_change_flag */
    uint64_t insertions;
    uint64_t deletions;
};

/* In the order of paths. Embedded in struct wal_file_changes. */
struct wal__changes {
    const struct wal__heap *heap;
    struct wal__change *items;
    uint32_t count;
    uint8_t *texts;
};

void wal__changes_init(struct wal__changes *changes,
                       const struct wal__heap *heap);
void wal__changes_deinit(struct wal__changes *changes);

/* The files that both name and that differ. *changes is empty before. */
enum wal_status wal__compare(const struct wal__files *before,
                             const struct wal__files *after,
                             struct wal__changes *changes,
                             struct wal_error *error) WAL_MUST_USE;

/* Where the contents of one side are: blobs, or with a tree files on disk. */
struct wal__contents {
    struct wal__blobs *blobs;
    const struct wal__tree_io *io; /* null: blobs */
    struct wal__tree *tree;
};

/*
 * Counts the lines of each change, and tells binary ones, in several threads.
 * WAL_ECORRUPT and WAL_ENOTFOUND (a blob) name the file. What is on disk and
 * is gone meanwhile counts as empty.
 */
enum wal_status wal__changes_count(const struct wal__env *env,
                                   struct wal__changes *changes,
                                   const struct wal__contents *before,
                                   const struct wal__contents *after,
                                   struct wal_error *error) WAL_MUST_USE;

/* The same of one change at a time, by any number of threads. */
struct wal__counting {
    struct wal__changes *changes;
    struct wal__contents before;
    struct wal__contents after;
    pthread_mutex_t mutex; /* of who counts large files */
};

void wal__counting_init(struct wal__counting *counting,
                        struct wal__changes *changes,
                        const struct wal__contents *before,
                        const struct wal__contents *after);
void wal__counting_deinit(struct wal__counting *counting);
enum wal_status wal__counting_one(struct wal__counting *counting, uint32_t item,
                                  struct wal_error *error) WAL_MUST_USE;

/* Sums; struct_size is set. */
void wal__changes_sum(const struct wal__changes *changes,
                      struct wal_changes_info *info);
/* A change as it is told; the path as long as the changes. */
void wal__change_tell(const struct wal__change *change,
                      struct wal_file_change *out);

/* The public reader, for engine/checkpoints.c. */
struct wal_file_changes {
    struct wal__core *core;
    struct wal__changes changes;
    uint32_t next;
};

#endif
