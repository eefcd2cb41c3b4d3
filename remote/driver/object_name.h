/*
 * object_name.h - the names of objects (driver.h). Any thread.
 */
#ifndef AGENTWAL_REMOTE_DRIVER_OBJECT_NAME_H
#define AGENTWAL_REMOTE_DRIVER_OBJECT_NAME_H

#include "remote/driver/driver.h"

/* Whether the `size` bytes are parts of letters, digits, '-', '.' and '_' with
 * one '/' between two, none of them empty, "." or "..". */
bool wal__object_path_is_valid(const char *path, size_t size);

/* Whether the name is such a path of at most WAL__OBJECT_NAME_MAX bytes. */
bool wal__object_name_is_valid(const char *name);

/* WAL_EINVAL unless the name is valid. */
enum wal_status wal__object_name_check(const char *name,
                                       struct wal_error *error) WAL_MUST_USE;

/* The same, and WAL_ETOOBIG for an object above WAL__OBJECT_MAX. */
enum wal_status wal__object_check(const char *name, struct wal_slice bytes,
                                  struct wal_error *error) WAL_MUST_USE;

#endif
