/*
 * changes.h - the differences between two lists of files, with counts of
 * lines (SPEC.md 5.13). One thread at a time, except wal__diffstat_file.
 */
#ifndef AGENTWAL_ENGINE_FILES_CHANGES_H
#define AGENTWAL_ENGINE_FILES_CHANGES_H

#include <pthread.h>

#include "engine/base/worktree.h"
#include "engine/files/file_set.h"
#include "engine/store/core.h"

/* A file whose states differ. */
struct wal__change {
    struct wal__span path; /* followed by a NUL; in the changes' texts */
    /* Both have the path of the change. */
    struct wal__file_record before;
    struct wal__file_record after;
    uint32_t flags; /* enum wal_file_change_flag */
    uint64_t insertions;
    uint64_t deletions;
};

/* Ordered by path. Embedded in struct wal_file_change_cursor. */
struct wal__changes {
    const struct wal__heap *heap;
    struct wal__change *items;
    uint32_t count;
    uint8_t *texts;
};

void wal__changes_init(struct wal__changes *changes, const struct wal__heap *heap);
void wal__changes_deinit(struct wal__changes *changes);

/* Lists the files that both lists name and that differ. *changes is empty on entry, and on
 * failure. */
enum wal_status wal__changes_compute(const struct wal__files *before,
                                     const struct wal__files *after, struct wal__changes *changes,
                                     struct wal_error *error) WAL_MUST_USE;

/* The source of the contents of one side: blobs, or files of a work tree. */
struct wal__content_source {
    struct wal__blob_store *blobs;
    const struct wal__worktree_io *io; /* NULL: blobs */
    struct wal__worktree *worktree;
};

/* Counts the lines of one change, and flags a binary one; any number of threads may call
 * wal__diffstat_file with different items. `after` is the content after the change where the caller
 * has it, else empty. WAL_ECORRUPT and WAL_ENOTFOUND (a blob) name the file. A file that is gone
 * from the disk counts as empty. */
struct wal__diffstat {
    struct wal__changes *changes;
    struct wal__content_source before;
    struct wal__content_source after;
    pthread_mutex_t mutex; /* serialises large files */
};

void wal__diffstat_init(struct wal__diffstat *diffstat, struct wal__changes *changes,
                        const struct wal__content_source *before,
                        const struct wal__content_source *after);
void wal__diffstat_deinit(struct wal__diffstat *diffstat);
enum wal_status wal__diffstat_file(struct wal__diffstat *diffstat, uint32_t item,
                                   struct wal__span after, struct wal_error *error) WAL_MUST_USE;

/* Sums over all changes; sets struct_size. */
void wal__changes_info(const struct wal__changes *changes, struct wal_file_changes_info *info);

enum { WAL__CHANGES_ELSEWHERE = 2 };

/* The public cursor. */
struct wal_file_change_cursor {
    struct wal__core *core;
    struct wal__changes changes;
    /* Of a rewind: what other programs changed since the interrupted rewind that it found, and
     * since the checkpoint that was expected. */
    struct wal__changes elsewhere[WAL__CHANGES_ELSEWHERE];
    uint64_t next; /* through all three */
};

/* An empty cursor. */
enum wal_status wal__change_cursor_create(struct wal__core *core,
                                          struct wal_file_change_cursor **cursor,
                                          struct wal_error *error) WAL_MUST_USE;

#endif
