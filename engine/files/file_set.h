/*
 * file_set.h - a list of files in memory (SPEC.md 2.21, 5.13): ascending by the bytes of their
 * paths, each path once and followed by a NUL; and the paths of a request that could not be
 * recorded, with the reasons.
 *
 * Threads: one writer; any thread may read a list that no thread changes.
 */
#ifndef AGENTWAL_ENGINE_FILES_FILE_SET_H
#define AGENTWAL_ENGINE_FILES_FILE_SET_H

#include "agentwal/checkpoint.h"
#include "engine/base/heap.h"
#include "engine/base/io.h"
#include "engine/store/blob.h"
#include "format/index/file_list.h"

/* A zeroed struct with a heap is an empty list. */
struct wal__file_issues {
    const struct wal__heap *heap;
    struct wal_checkpoint_issue *items; /* a text of each is path and reason */
    uint32_t count;
    uint32_t capacity;
};

void wal__file_issues_deinit(struct wal__file_issues *issues);
/* Adds a path and the reason of an error, which is none any more. */
enum wal_status wal__file_issues_add(struct wal__file_issues *issues, struct wal__span path,
                                     struct wal_error *error) WAL_MUST_USE;
/* Sorts by path; of each path one remains. */
void wal__file_issues_sort(struct wal__file_issues *issues);

/* A zeroed struct with a heap is an empty list. */
struct wal__files {
    const struct wal__heap *heap;
    struct wal__file_record *items; /* paths point into `texts` */
    uint32_t count;
    uint8_t *texts;
    uint8_t boot[WAL__FILE_BOOT_SIZE]; /* boot id of a decoded list, or zeros */
};

void wal__files_init(struct wal__files *files, const struct wal__heap *heap);
void wal__files_deinit(struct wal__files *files);

/*
 * Makes a list of absent files from a caller's paths. A path is below the root, either absolute or
 * relative to it. Empty components and "." are removed, and each path counts once. WAL_EOUTSIDE
 * (also for ".."), WAL_ENOTFILE (the root itself), WAL_EINVAL (empty, or with a NUL), WAL_ETOOBIG:
 * error->file is the path. Unless issues is NULL, a path that no file can have is added to
 * it instead; not one of WAL_EINVAL. *files is empty on entry.
 */
enum wal_status wal__files_from_paths(struct wal__files *files, const char *root,
                                      const struct wal_slice *paths, uint64_t count,
                                      struct wal__file_issues *issues,
                                      struct wal_error *error) WAL_MUST_USE;

/* Makes a list from a caller's states: paths as above; sizes remain zero, and no file counts as
 * unchanged by its times. WAL_EINVAL also for a path that has two different states. *files is empty
 * on entry. */
enum wal_status wal__files_from_states(struct wal__files *files, const char *root,
                                       const struct wal_file *states, uint64_t count,
                                       struct wal_error *error) WAL_MUST_USE;

/* Loads a list from its blob: WAL_ECORRUPT, also when there is none. *files is empty on entry. */
enum wal_status wal__files_load(struct wal__files *files, struct wal__blob_store *blobs,
                                const struct wal__digest *digest,
                                struct wal_error *error) WAL_MUST_USE;
/* Stores the list, with the current boot id, as a blob, and syncs it with the contents, which end
 * at result->end. base, which may be NULL, is a similar list. Adds to *result. */
enum wal_status wal__files_store(const struct wal__files *files, struct wal__blob_store *blobs,
                                 const struct wal__digest *base, struct wal__digest *digest,
                                 struct wal__blob_put_result *result,
                                 struct wal_error *error) WAL_MUST_USE;
/* Flags the fresh files of a decoded list as racy if the list was made in another boot: their times
 * no longer prove that they are unchanged. */
void wal__files_invalidate_fresh(struct wal__files *files, const struct wal__io *io);

/* The file with the path, or NULL. */
struct wal__file_record *wal__files_find(const struct wal__files *files, struct wal__span path);

/* The file whose path is the shortest of those that this path is below, or NULL. */
struct wal__file_record *wal__files_find_above(const struct wal__files *files,
                                               struct wal__span path);
/* Whether a path of the list is below this one. */
bool wal__files_has_below(const struct wal__files *files, struct wal__span path);

/* Merges two lists into *out, which is empty on entry; `first` wins for a path of both. WAL_ENOMEM,
 * WAL_ETOOBIG. */
enum wal_status wal__files_merge(struct wal__files *out, const struct wal__files *first,
                                 const struct wal__files *second,
                                 struct wal_error *error) WAL_MUST_USE;
/* Copies to *out, which is empty on entry, the files whose paths `other` has (has) or does not have
 * (!has). */
enum wal_status wal__files_filter(struct wal__files *out, const struct wal__files *files,
                                  const struct wal__files *other, bool has,
                                  struct wal_error *error) WAL_MUST_USE;

/* Copies the files with absolute paths to *out, which is empty on entry. */
enum wal_status wal__files_make_absolute(struct wal__files *out, const struct wal__files *files,
                                         struct wal__span root,
                                         struct wal_error *error) WAL_MUST_USE;

/* Sum of the sizes of all files. */
uint64_t wal__files_total_size(const struct wal__files *files);

/* Whether kind, content and permission bits are equal; permission bits of symbolic links are
 * ignored. Does not compare paths and times. */
bool wal__file_state_equal(const struct wal__file_record *a, const struct wal__file_record *b);

/* Fails because a blob cannot be read: the reason with the path that needs it. A missing blob is
 * WAL_ECORRUPT, since a list names it. */
enum wal_status wal__fail_content(struct wal_error *error, enum wal_status status,
                                  const struct wal_error *why, const char *path);

/* The path, followed by a NUL. */
static inline const char *wal__file_path(const struct wal__file_record *file)
{
    return (const char *)file->path.data;
}

#endif
