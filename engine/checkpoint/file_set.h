/*
 * file_set.h - a list of files in memory (SPEC.md 2.21, 5.13): ascending by the
 * bytes of their paths, each path once and followed by a NUL.
 *
 * One writer; any thread may read a list that nobody changes.
 */
#ifndef AGENTWAL_ENGINE_CHECKPOINT_FILE_SET_H
#define AGENTWAL_ENGINE_CHECKPOINT_FILE_SET_H

#include "agentwal/checkpoint.h"
#include "engine/base/buf.h"
#include "engine/blob/blob.h"
#include "engine/os/io.h"
#include "format/index/file_list.h"

/* A zeroed one with a heap is an empty list. */
struct wal__files {
    const struct wal__heap *heap;
    struct wal__file_record *items; /* paths point into `texts` */
    uint32_t count;
    uint8_t *texts;
    uint8_t boot[WAL__FILE_BOOT_SIZE]; /* of what was decoded; else zeros */
};

void wal__files_init(struct wal__files *files, const struct wal__heap *heap);
void wal__files_deinit(struct wal__files *files);

/*
 * The files that a caller names, as absent ones: below the root, an absolute
 * path and as such, or relative. Parts that are empty or . are left out, and
 * each path counts once. WAL_EOUTSIDE (.. too), WAL_ENOTFILE (the root
 * itself), WAL_EINVAL (empty, or with a NUL), WAL_ETOOBIG: with the path in
 * error->file. *files is empty before.
 */
enum wal_status wal__files_from_paths(struct wal__files *files,
                                      const char *root,
                                      const struct wal_slice *paths,
                                      uint64_t count,
                                      struct wal_error *error) WAL_MUST_USE;

/* Files that a caller tells with their states: paths as above, sizes are left
 * at zero, and no time ever says that one is unchanged. WAL_EINVAL also for a
 * path that is told twice, with different states. *files is empty before. */
enum wal_status wal__files_from_states(struct wal__files *files,
                                       const char *root,
                                       const struct wal_file *told,
                                       uint64_t count,
                                       struct wal_error *error) WAL_MUST_USE;

/* A list from its bytes (WAL_ECORRUPT), and from its blob. *files is empty
 * before. */
enum wal_status wal__files_decode(struct wal__files *files,
                                  struct wal__span bytes,
                                  struct wal_error *error) WAL_MUST_USE;
enum wal_status wal__files_load(struct wal__files *files,
                                struct wal__blob_store *blobs,
                                const struct wal__digest *digest,
                                struct wal_error *error) WAL_MUST_USE;
/* Appended to out, as made in this boot. WAL_ENOMEM. */
enum wal_status wal__files_encode(const struct wal__files *files,
                                  const struct wal__io *io,
                                  struct wal__buf *out) WAL_MUST_USE;
/* Of a list that was decoded: in another boot than it was made in, the times
 * of files that were fresh tell nothing any more. */
void wal__files_invalidate_fresh(struct wal__files *files,
                                 const struct wal__io *io);

/* The file of a path, or null. */
struct wal__file_record *wal__files_find(const struct wal__files *files,
                                         struct wal__span path);

/* *out, empty before: every path of the two, as `first` has it where both
 * do. WAL_ENOMEM, WAL_ETOOBIG. */
enum wal_status wal__files_merge(struct wal__files *out,
                                 const struct wal__files *first,
                                 const struct wal__files *second,
                                 struct wal_error *error) WAL_MUST_USE;
/* *out, empty before: those of `files` whose paths `other` has, or has not. */
enum wal_status wal__files_filter(struct wal__files *out,
                                  const struct wal__files *files,
                                  const struct wal__files *other, bool has,
                                  struct wal_error *error) WAL_MUST_USE;

/* *out, empty before: the same files under absolute paths. */
enum wal_status wal__files_make_absolute(struct wal__files *out,
                                         const struct wal__files *files,
                                         struct wal__span root,
                                         struct wal_error *error) WAL_MUST_USE;

/* Bytes of all contents. */
uint64_t wal__files_total_size(const struct wal__files *files);

/* The order of paths' bytes, as of memcmp. */
int wal__file_compare_paths(struct wal__span a, struct wal__span b);

/* Whether the two are the same kind, content and permission bits; those of a
 * symbolic link do not count. Paths and times are not looked at. */
bool wal__file_state_equal(const struct wal__file_record *a,
                           const struct wal__file_record *b);

/* A failure to read a blob: what the stream said, with what it is the
 * content of; content that is missing is WAL_ECORRUPT, since a list
 * names it. */
enum wal_status wal__fail_content(struct wal_error *error,
                                  enum wal_status status,
                                  const struct wal_error *why,
                                  const char *path);

/* The path, followed by a NUL. */
static inline const char *wal__file_path(const struct wal__file_record *file)
{
    return (const char *)file->path.data;
}

#endif
