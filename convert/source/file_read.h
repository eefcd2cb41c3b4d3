/*
 * file_read.h - opens and reads files of sources.
 *
 * Threads: any.
 */
#ifndef AGENTWAL_CONVERT_SOURCE_FILE_READ_H
#define AGENTWAL_CONVERT_SOURCE_FILE_READ_H

#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Opens a regular file in a directory (or AT_FDCWD) without following a
 * symbolic link. Returns -1 with errno set, ELOOP when it is not a regular
 * file. */
int wal__file_open_regular(int directory, const char *name, struct stat *stat);

/* Reads `size` bytes, or up to the end of the file. Returns the count, or -1
 * with errno set. */
ssize_t wal__file_read_full(int fd, void *data, size_t size);

#endif
