/*
 * view_fs.h - directories and files below a view's root.
 *
 * Invariant: nothing is touched outside the root: a path that leaves it is
 * refused, and symbolic links below it are not followed.
 *
 * Threads: any thread.
 */
#ifndef AGENTWAL_ENGINE_CONVERT_RENDER_VIEW_FS_H
#define AGENTWAL_ENGINE_CONVERT_RENDER_VIEW_FS_H

#include <stdbool.h>

#include "agentwal.h"
#include "engine/convert/render/view_env.h"

#define WAL__VIEW_STATE_DIR ".agentwal" /* of what is the library's own */

/* What tells that a file is as it was left. */
struct wal__file_stamp {
    uint64_t size;
    int64_t mtime_ns;
    uint64_t inode;
};

bool wal__file_stamp_equal(const struct wal__file_stamp *one,
                           const struct wal__file_stamp *two);

/* Whether the path stays below the directory it is taken from. */
bool wal__view_fs_is_beneath(const char *path);

/*
 * Opens the directories above the path, and with `create_missing`
 * create_missing those that are missing, 0700. *name is then the last part of
 * the path. WAL_ENOTFOUND: one is missing.
 */
enum wal_status wal__view_fs_open_parent(const struct wal__view_env *env,
                                         const char *root, const char *path,
                                         bool create_missing, int *fd,
                                         const char **name,
                                         struct wal_error *error) WAL_MUST_USE;

/* Opens a regular file in the directory for reading. WAL_ENOTFOUND: none. */
enum wal_status wal__view_fs_open(int directory, const char *name, int *fd,
                                  struct wal__file_stamp *stamp,
                                  struct wal_error *error) WAL_MUST_USE;

/* Opens a new, empty file, whatever stood there, and one to be appended to. */
enum wal_status wal__view_fs_create(const struct wal__view_env *env,
                                    int directory, const char *name, int *fd,
                                    struct wal_error *error) WAL_MUST_USE;
enum wal_status wal__view_fs_open_append(const struct wal__view_env *env,
                                         int directory, const char *name,
                                         int *fd,
                                         struct wal_error *error) WAL_MUST_USE;

enum wal_status wal__view_fs_write(const struct wal__view_env *env, int fd,
                                   const void *data, size_t size,
                                   struct wal_error *error) WAL_MUST_USE;

/* The file has all that it is to have, on stable storage if it is to be
 * durable; *stamp is how it is then. */
enum wal_status wal__view_fs_sync(const struct wal__view_env *env, int fd,
                                  bool is_durable,
                                  struct wal__file_stamp *stamp,
                                  struct wal_error *error) WAL_MUST_USE;

/* Gives a file another name, whatever had it. */
enum wal_status wal__view_fs_rename(const struct wal__view_env *env, int from,
                                    const char *old, int to, const char *name,
                                    bool is_durable,
                                    struct wal_error *error) WAL_MUST_USE;

/* Removes a file; one that is not there is no failure. */
void wal__view_fs_remove(const struct wal__view_env *env, int directory,
                         const char *name);

/* A failure of the system, by errno. */
enum wal_status wal__view_fs_fail(struct wal_error *error, const char *name);

#endif
