/*
 * shared_file.h - files in a client's folder that a view has in common with the
 * client and with other views (SPEC.md 10.3).
 *
 * Invariant: no byte that exists is changed. What is there stays; a document is
 * created only where there is none, a line is only appended.
 *
 * Threads: any; several processes may write the same file.
 */
#ifndef AGENTWAL_CONVERT_FILES_SHARED_FILE_H
#define AGENTWAL_CONVERT_FILES_SHARED_FILE_H

#include "convert/files/view_fs.h"

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

/* Appends the line, durably, unless the file has a line that equals it up to
 * its last comma. Creates the file. */
enum wal_status wal__shared_file_add_line(const struct wal__shared_file *file,
                                          struct wal_error *error) WAL_MUST_USE;

#endif
