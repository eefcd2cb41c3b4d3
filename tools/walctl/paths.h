/*
 * paths.h - the files that a command line names, one by one or by a
 * list of them.
 *
 * Threads: one.
 */
#ifndef AGENTWAL_TOOLS_WALCTL_PATHS_H
#define AGENTWAL_TOOLS_WALCTL_PATHS_H

#include "tools/cli/cli.h"

/* Names as the engine takes them. Zeroed: none. */
struct walctl_paths {
    struct wal_slice *items;
    size_t count;
    size_t capacity;
    char *below; /* the directory that relative ones are taken from, below the
                  * root; null: the root */
};

/* Where relative names are taken from when no root is given: the current
 * directory, if it lies in the session's, which is `root`. */
void walctl_paths_init(struct walctl_paths *names, struct wal_slice root);

void walctl_paths_add(struct walctl_paths *names, const char *name,
                      size_t size);

/* Adds the names that a file holds, `-` being standard input: one a line, or
 * each ended by a zero byte. Prints why not; CLI_CONTINUE or CLI_FAILED. */
int walctl_paths_read(const struct cli *cli, struct walctl_paths *names,
                      const char *file, bool is_zero_ended);

void walctl_paths_deinit(struct walctl_paths *names);

#endif
