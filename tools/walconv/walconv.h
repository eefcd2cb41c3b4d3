/*
 * walconv.h - the commands of walconv.
 *
 * Each takes the whole command line of the process but for the program's name,
 * so that the first operand is the command's own name, and answers the exit
 * code.
 *
 * Threads: a tool is one thread.
 */
#ifndef AGENTWAL_TOOLS_WALCONV_WALCONV_H
#define AGENTWAL_TOOLS_WALCONV_WALCONV_H

#include "format/model/dialect.h"
#include "tools/cli/cli.h"
#include "tools/cli/progress.h"

int walconv_import(struct cli *cli, int argc, char **argv);
int walconv_export(struct cli *cli, int argc, char **argv);
int walconv_path(struct cli *cli, int argc, char **argv);
int walconv_follow(struct cli *cli, int argc, char **argv);

/* Fails unless that is a directory, or is not there; else CLI_CONTINUE. Null is
 * standard output. */
int walconv_check_root(const struct cli *cli, const char *root);

struct walconv_deferred;

/* One import of files, as the command line wants it. */
struct walconv_import {
    const struct cli *cli;
    struct wal_store *store;
    const struct wal__dialect *forced; /* null: told by content */
    struct progress *progress;
    struct walconv_deferred *deferred; /* files that wait for another */
};

/*
 * Imports an open regular file. `name` is what the user calls it, `path` what
 * it is called below the import's argument. Prints what was done; answers the
 * exit code.
 */
int walconv_import_file(const struct walconv_import *import, int fd,
                        const char *name, const char *path);

/* Opens the session of a source; WAL_ENOTFOUND when there is none. */
enum wal_status walconv_open_source(struct wal_store *store, const char *source,
                                    struct wal_session **session,
                                    struct wal_error *error);

/* Imports a file of lines into a stream of a session that is a tree, of which
 * the stream is the beginning. Prints and answers the same. */
int walconv_import_stream(const struct walconv_import *import, int fd,
                          const char *name, struct wal_session *session,
                          const struct wal__dialect *dialect, uint32_t stream);

/* The files of a tree, of form line and JSON; see walconv_tree.h. `path` is the
 * directory below the import's argument, empty for that itself. */
int walconv_import_dir(const struct walconv_import *import, const char *name,
                       const char *path, const struct wal__dialect *dialect);

/* A file that has a whole session of OpenCode in it, as its client exports
 * them: a document of that session. False: it is none; else the exit code. */
bool walconv_import_exported(const struct walconv_import *import,
                             const char *name, const char *path, int *code);

#endif
