/*
 * view_fs.h - directories and files below a view's root, and files in a client's folder that a view
 * has in common with the client and with other views (SPEC.md 10.3).
 *
 * Invariant: nothing outside the root is changed: a path that leaves the root is refused, and
 * symbolic links below it are not followed. Of a shared file no byte that exists is changed: a
 * document is created only where there is none, a line is only appended.
 *
 * Threads: any; several processes may write the same shared file.
 */
#ifndef AGENTWAL_CONVERT_FILES_VIEW_FS_H
#define AGENTWAL_CONVERT_FILES_VIEW_FS_H

#include <stdbool.h>
#include <sys/stat.h>

#include "agentwal.h"
#include "engine/base/heap.h"

struct wal__view_env {
    const struct wal__heap *heap;
    /* Called before each change of the file system with the number of bytes to write, or 0; returns
     * how many of them to write. May be NULL. */
    size_t (*fault_hook)(void *ctx, size_t size);
    void *ctx;
};

static inline size_t wal__view_fault_point(const struct wal__view_env *env, size_t size)
{
    return env->fault_hook != NULL ? env->fault_hook(env->ctx, size) : size;
}

#define WAL__VIEW_STATE_DIR ".agentwal" /* directory of the library's own files */

/* The attributes that identify an unchanged file. */
struct wal__file_stamp {
    uint64_t size;
    int64_t mtime_ns;
    uint64_t inode;
};

struct wal__file_stamp wal__file_stamp_of(const struct stat *stat);
bool wal__file_stamp_equal(const struct wal__file_stamp *one, const struct wal__file_stamp *two);

/*
 * Opens the parent directory of the path; with `create_missing` creates missing directories with
 * mode 0700, durably. *name is the last component of the path. WAL_ENOTFOUND: a directory is
 * missing.
 */
enum wal_status wal__view_fs_open_parent(const struct wal__view_env *env, const char *root,
                                         const char *path, bool create_missing, int *fd,
                                         const char **name, struct wal_error *error) WAL_MUST_USE;

/* Opens a regular file for reading. WAL_ENOTFOUND; WAL_ENOTFILE. */
enum wal_status wal__view_fs_open(int directory, const char *name, int *fd,
                                  struct wal__file_stamp *stamp,
                                  struct wal_error *error) WAL_MUST_USE;

/* Creates a file, in place of any of that name; opens a file for appending. */
enum wal_status wal__view_fs_create(const struct wal__view_env *env, int directory,
                                    const char *name, int *fd,
                                    struct wal_error *error) WAL_MUST_USE;
enum wal_status wal__view_fs_open_append(const struct wal__view_env *env, int directory,
                                         const char *name, int *fd,
                                         struct wal_error *error) WAL_MUST_USE;
enum wal_status wal__view_fs_write(const struct wal__view_env *env, int fd, const void *data,
                                   size_t size, struct wal_error *error) WAL_MUST_USE;

/* Completes a file: syncs it, and sets *stamp. */
enum wal_status wal__view_fs_sync(const struct wal__view_env *env, int fd,
                                  struct wal__file_stamp *stamp,
                                  struct wal_error *error) WAL_MUST_USE;

/* Sets the time of the last change of a file, in milliseconds; 0: leaves it. */
void wal__view_fs_set_time(int fd, int64_t ms);

/* Renames a file, replacing any file of that name; syncs the directory if is_durable. */
enum wal_status wal__view_fs_rename(const struct wal__view_env *env, int from, const char *old,
                                    int to, const char *name, bool is_durable,
                                    struct wal_error *error) WAL_MUST_USE;

/* Makes renames and removals in a directory durable; `name` is for the error. */
enum wal_status wal__view_fs_sync_names(const struct wal__view_env *env, int directory,
                                        const char *name, struct wal_error *error) WAL_MUST_USE;

/* Removes a file, if it exists. Not durable. False: errno says why. */
bool wal__view_fs_remove(const struct wal__view_env *env, int directory, const char *name);

/* Fails with the status for errno. */
enum wal_status wal__view_fs_fail(struct wal_error *error, const char *name);

struct wal__shared_file {
    const struct wal__view_env *env;
    const char *root;
    const char *path;      /* below root */
    int temporary_dir;     /* on the same file system */
    const char *temporary; /* name for a file in temporary_dir */
    const void *data;      /* the document, or the line with its newline */
    size_t size;
};

/* Creates the document, durably, unless something has its path. */
enum wal_status wal__shared_file_create(const struct wal__shared_file *file,
                                        struct wal_error *error) WAL_MUST_USE;

/* Appends the line, durably, unless the file has a line that equals it up to its last comma.
 * Creates the file. */
enum wal_status wal__shared_file_add_line(const struct wal__shared_file *file,
                                          struct wal_error *error) WAL_MUST_USE;

#endif
