/*
 * walctl_names.h - the files that a command line names, one by one or by a
 * list of them.
 *
 * Threads: one.
 */
#ifndef AGENTWAL_TOOLS_WALCTL_NAMES_H
#define AGENTWAL_TOOLS_WALCTL_NAMES_H

#include "tools/cli.h"

/* Names as the engine takes them. Zeroed: none. */
struct walctl_names {
    struct wal_slice *items;
    size_t count;
    size_t capacity;
    char *below; /* the directory that relative ones are taken from, below the
                  * root; null: the root */
};

/* Where relative names are taken from when no root is given: the current
 * directory, if it lies in the session's, which is `root`. */
void walctl_names_begin(struct walctl_names *names, struct wal_slice root);

void walctl_names_add(struct walctl_names *names, const char *name,
                      size_t size);

/* Adds the names that a file holds, `-` being standard input: one a line, or
 * each ended by a zero byte. Prints why not; CLI_GO_ON or CLI_FAILED. */
int walctl_names_read(const struct cli *cli, struct walctl_names *names,
                      const char *file, bool is_zero_ended);

void walctl_names_deinit(struct walctl_names *names);

#endif
