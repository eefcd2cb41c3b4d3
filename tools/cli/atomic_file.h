/*
 * atomic_file.h - files below a directory that get their names when they are
 * whole.
 *
 * Threads: one.
 */
#ifndef AGENTWAL_TOOLS_CLI_ATOMIC_FILE_H
#define AGENTWAL_TOOLS_CLI_ATOMIC_FILE_H

#include <stddef.h>

/* A file without its name. */
struct cli_atomic_file {
    int fd;
    int directory; /* borrowed */
    char temporary[64];
};

/* A directory below another one, made where it is not, never through a link;
 * -1 and errno. */
int cli_make_directory_at(int above, const char *name);

/* Makes a file; 0 or errno. */
int cli_atomic_file_create(struct cli_atomic_file *place, int directory);

/* 0 or errno. */
int cli_atomic_file_write(const struct cli_atomic_file *place, const void *data,
                          size_t size);

/* Closes the file and gives it its name, or takes it away when `number` is not
 * 0; answers that, or 0 or errno. */
int cli_atomic_file_commit(struct cli_atomic_file *place, const char *name,
                           int number);

#endif
