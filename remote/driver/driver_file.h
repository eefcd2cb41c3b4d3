/*
 * driver_file.h - objects as the files of a local directory (driver.h). A name
 * is a path below it, so that no object can have the name of a directory that
 * another one is in: such a put is WAL_EINVAL.
 */
#ifndef AGENTWAL_REMOTE_DRIVER_DRIVER_FILE_H
#define AGENTWAL_REMOTE_DRIVER_DRIVER_FILE_H

#include "remote/driver/driver_url.h"

/* Opens the directory of the URL, which need not exist yet. */
enum wal_status wal__driver_file_open(const struct wal__driver_url *url,
                                      const struct wal__heap *heap,
                                      struct wal__driver **driver,
                                      struct wal_error *error) WAL_MUST_USE;

#endif
