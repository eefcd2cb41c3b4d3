/*
 * walconv.h - the commands of walconv.
 *
 * Each takes the whole command line of the process but for the program's name,
 * so that the first operand is the command's own name, and answers the exit
 * code.
 *
 * Threads: a tool is one thread.
 */
#ifndef AGENTWAL_TOOLS_WALCONV_H
#define AGENTWAL_TOOLS_WALCONV_H

#include "format/jsonl/dialect.h"
#include "tools/cli.h"
#include "tools/progress.h"

int walconv_import(struct cli *cli, int argc, char **argv);
int walconv_export(struct cli *cli, int argc, char **argv);
int walconv_path(struct cli *cli, int argc, char **argv);

/* One import of files, as the command line wants it. */
struct walconv_import {
    const struct cli *cli;
    struct wal_store *store;
    const struct wal__dialect *forced; /* null: told by content */
    struct progress *progress;
};

/*
 * Imports an open regular file. `name` is what the user calls it, `path` what
 * it is called below the import's argument. Prints what was done; answers the
 * exit code.
 */
int walconv_import_file(const struct walconv_import *import, int fd,
                        const char *name, const char *path);

#endif
