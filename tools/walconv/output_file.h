/*
 * output_file.h - where the files of an export lie, and putting them there.
 *
 * Invariant: nothing is written outside the output directory: a path that
 * leaves it is refused, and symbolic links below it are not followed. A file
 * is replaced whole, by rename.
 *
 * Threads: a tool is one thread.
 */
#ifndef AGENTWAL_TOOLS_WALCONV_OUTPUT_FILE_H
#define AGENTWAL_TOOLS_WALCONV_OUTPUT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Whether the path stays below the directory it is taken from. */
bool walconv_path_is_beneath(const char *path);

/* A file being put in place. Zeroed: none. */
struct walconv_output_file {
    int directory; /* that holds it, open */
    const char *name;
    char *temporary;
    char *buffer; /* of the stream */
    FILE *stream; /* to be written to */
};

/*
 * Opens the directories above the path, made 0700 where they are missing, and
 * answers the open directory that holds the file, or -1 and errno. *name is
 * then the last part of path. With `is_reading`, nothing is made.
 */
int walconv_open_parent(const char *root, const char *path, bool is_reading,
                        const char **name);

/* Begins a new file, of mode 0600, in an open directory, which it takes over.
 * 0, or -1 and errno. */
int walconv_output_file_begin(struct walconv_output_file *file, int directory,
                              const char *name);

/* Makes the file durable under its name. 0, or -1 and errno; then what was
 * there before is still there. */
int walconv_output_file_commit(struct walconv_output_file *file);

/* Drops what was begun; does nothing after a commit. */
void walconv_output_file_abort(struct walconv_output_file *file);

#endif
