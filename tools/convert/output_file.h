/*
 * output_file.h - create files below the output directory.
 *
 * Invariant: nothing is written outside the output directory: a path that
 * leaves it is rejected, and symbolic links below it are not followed. A file
 * is replaced as a whole, by rename.
 *
 * Threads: the tools are single-threaded.
 */
#ifndef AGENTWAL_TOOLS_CONVERT_OUTPUT_FILE_H
#define AGENTWAL_TOOLS_CONVERT_OUTPUT_FILE_H

#include "tools/cli/cli.h"

/* Returns true if the relative path has no empty, "." or ".." component. */
bool convert_path_is_beneath(const char *path);

/* A file being written. Zeroed: none. */
struct convert_output_file {
    int directory;       /* open descriptor of its directory; owned */
    const char *name;    /* final name; borrowed */
    char *temporary;     /* temporary name */
    char *buffer;        /* of the stream */
    FILE *stream;        /* the caller writes here */
    int64_t modified_ms; /* the caller may set the file's time; 0: now */
};

/*
 * Opens the directory that contains the file. Missing directories are created
 * with mode 0700, unless `is_read_only`. Returns a descriptor, or -1 with errno
 * set. *name points to the last component of path.
 */
int convert_open_parent(const char *root, const char *path, bool is_read_only,
                        const char **name);

/* Creates the temporary file, mode 0600. Takes ownership of `directory`.
 * Returns 0, or -1 with errno set. */
int convert_output_file_begin(struct convert_output_file *file, int directory,
                              const char *name);

/* Syncs the file, renames it to its name and syncs the directory. Returns 0, or
 * -1 with errno set; the previous file is then unchanged, unless only the sync
 * of the directory failed. */
int convert_output_file_commit(struct convert_output_file *file);

/* Deletes the temporary file; does nothing after a commit. */
void convert_output_file_abort(struct convert_output_file *file);

/* Returns CLI_CONTINUE if root is a directory, does not exist, or is NULL for
 * standard output; else prints an error and returns its exit code. */
int convert_check_root(const struct cli *cli, const char *root);

#endif
