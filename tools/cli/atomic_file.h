/*
 * atomic_file.h - write a file under a temporary name, rename it when complete.
 *
 * Invariant: a file under its final name is complete.
 *
 * Threads: the tools are single-threaded.
 */
#ifndef AGENTWAL_TOOLS_CLI_ATOMIC_FILE_H
#define AGENTWAL_TOOLS_CLI_ATOMIC_FILE_H

#include <stddef.h>

/* A file that still has its temporary name. */
struct cli_atomic_file {
    int fd;
    int directory; /* borrowed; must stay open until the commit */
    char temporary[64];
};

/* Opens the directory `name` in the directory `parent`, creates it when
 * missing, and follows no symbolic link. Returns a descriptor, or -1 with errno
 * set. */
int cli_make_directory_at(int parent, const char *name);

/* Creates the temporary file. Returns 0 or an errno value. */
int cli_atomic_file_create(struct cli_atomic_file *file, int directory);

/* Appends the bytes. Returns 0 or an errno value. */
int cli_atomic_file_write(const struct cli_atomic_file *file, const void *data,
                          size_t size);

/* Closes the file. With error_number 0 renames it to `name`, else deletes it.
 * Returns error_number, or the errno value of the close or rename that failed.
 * Does not sync. */
int cli_atomic_file_commit(struct cli_atomic_file *file, const char *name,
                           int error_number);

#endif
