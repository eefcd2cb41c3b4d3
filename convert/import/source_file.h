/*
 * source_file.h - the file of a source while it is imported.
 *
 * Threads: one thread at a time per descriptor.
 */
#ifndef AGENTWAL_CONVERT_IMPORT_SOURCE_FILE_H
#define AGENTWAL_CONVERT_IMPORT_SOURCE_FILE_H

#include "convert/import/import.h"

/*
 * Waits until no other import, in any process, reads the file: both would add
 * its new lines. The lock ends with the descriptor. A program that keeps the
 * lock for more than ten seconds, and a file system without locks, do not
 * prevent the import. WAL_ECALLBACK: the progress callback stopped it.
 */
enum wal_status wal__source_file_lock(struct wal__import *import, int fd,
                                      const char *name,
                                      struct wal_error *error) WAL_MUST_USE;

/* Reduces *size, that of the file, to the end of its last complete line.
 * Returns 0, or -1 with errno set. */
int wal__source_file_end(int fd, uint64_t *size);

#endif
