/*
 * file_place.h - the directory of a remote, and the directories and errors of
 * the objects in it. Any thread.
 */
#ifndef AGENTWAL_REMOTE_DRIVER_FILE_PLACE_H
#define AGENTWAL_REMOTE_DRIVER_FILE_PLACE_H

#include "remote/driver/driver.h"

struct wal__file_place {
    const struct wal__heap *heap;
    const char *directory; /* absolute */
};

/* Where an object is: zeroed but for fd -1, it is closed. */
struct wal__file_at {
    int fd; /* of the directory */
    const char *leaf;
};

/* Fills *error from errno for an object, or for the directory (name empty):
 * WAL_ENOSPACE, WAL_EACCESS, WAL_ENOMEM, else WAL_EREMOTE. */
enum wal_status wal__file_fail(const struct wal__file_place *place,
                               const char *name, const char *what,
                               struct wal_error *error);

/* Opens the directory of the remote. WAL_ENOTSTORE. */
enum wal_status wal__file_root(const struct wal__file_place *place, int *fd,
                               struct wal_error *error) WAL_MUST_USE;

/* Opens the directory that the object is in; at->leaf points into `name`.
 * WAL_ENOTFOUND when there is none. */
enum wal_status wal__file_find(const struct wal__file_place *place,
                               const char *name, struct wal__file_at *at,
                               struct wal_error *error) WAL_MUST_USE;

/* The same, and makes the directories that are missing, durably. WAL_EINVAL
 * when an object is where a directory must be. */
enum wal_status wal__file_make(const struct wal__file_place *place,
                               const char *name, struct wal__file_at *at,
                               struct wal_error *error) WAL_MUST_USE;

void wal__file_close(struct wal__file_at *at);

/* wal__driver_calls.list. */
enum wal_status wal__file_list(const struct wal__file_place *place,
                               const char *prefix, const char *after,
                               wal__driver_list_fn *each, void *ctx,
                               struct wal_error *error) WAL_MUST_USE;

/* The same of temporary files, in the directories of the objects whose names
 * begin with `prefix`. */
enum wal_status wal__file_list_temporary(const struct wal__file_place *place,
                                         const char *prefix,
                                         wal__driver_list_fn *each, void *ctx,
                                         struct wal_error *error) WAL_MUST_USE;

#endif
