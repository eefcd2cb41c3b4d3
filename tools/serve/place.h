/*
 * place.h - the files of a running server: the directory of its socket, and the
 * token of a port.
 *
 * Invariant: both are readable by their owner only. A running server holds a
 * lock on the file of its token. What is not the token of a server that has
 * ended is not replaced.
 *
 * Threads: called by the one thread of the tool.
 */
#ifndef AGENTWAL_TOOLS_SERVE_PLACE_H
#define AGENTWAL_TOOLS_SERVE_PLACE_H

#include <sys/types.h>

#include "tools/cli/cli.h"

/* A file that the server made. Zeroed: none. */
struct serve_file {
    char *path; /* or NULL */
    int lock;   /* a descriptor, while is_made: of a token */
    bool is_made;
    dev_t device;
    ino_t inode;
};

/* Returns the path of a file in the user's runtime directory, in the folder
 * agentwal, which is made; the caller frees it. NULL after an error. */
char *serve_place(const struct cli *cli, const char *name);

/* Writes the token to a file that is made anew, and notes it. Returns
 * CLI_CONTINUE, or an exit code after an error. */
int serve_write_token(const struct cli *cli, struct serve_file *file,
                      const char *token);

/* Notes which file is at the path now: the server has made it. */
void serve_file_note(struct serve_file *file);

/* Removes the file if it is still the one that was noted. */
void serve_file_remove(const struct serve_file *file);

#endif
