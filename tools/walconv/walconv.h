/*
 * walconv.h - the commands of walconv.
 *
 * A command receives the command line without the program's name: the first
 * operand is the name of the command. It returns an exit code.
 *
 * Threads: the tools are single-threaded.
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

/* Returns CLI_CONTINUE if root is a directory, does not exist, or is NULL for
 * standard output; else prints an error and returns its exit code. */
int walconv_check_root(const struct cli *cli, const char *root);

struct walconv_deferred;

/* The options of one import. */
struct walconv_import {
    const struct cli *cli;
    struct wal_store *store;
    /* NULL: detect the dialect from the content */
    const struct wal__dialect *forced;
    struct progress *progress;
    struct walconv_deferred *deferred; /* files that wait for another session */
};

/*
 * Imports an open regular file. `name` is the path as the user gave it, `path`
 * is relative to the argument of the import. Prints the result. Returns an exit
 * code.
 */
int walconv_import_file(const struct walconv_import *import, int fd,
                        const char *name, const char *path);

/* Opens the session of a source; WAL_ENOTFOUND: no session has it. */
enum wal_status walconv_open_source(struct wal_store *store, const char *source,
                                    struct wal_session **session,
                                    struct wal_error *error);

/* Imports a file of lines into a stream of a session directory's session;
 * the stream must be a prefix of the file. Prints the result. Returns an
 * exit code. */
int walconv_import_stream(const struct walconv_import *import, int fd,
                          const char *name, struct wal_session *session,
                          const struct wal__dialect *dialect, uint32_t stream);

/* Imports a session directory: files of lines and files of JSON (see
 * import_dir/session_dir.h). `path` is relative to the argument of the import,
 * and empty for the argument itself. Returns an exit code. */
int walconv_import_dir(const struct walconv_import *import, const char *name,
                       const char *path, const struct wal__dialect *dialect);

/* Imports a file that contains a complete session of OpenCode, in the format
 * that its client exports, as a document of that session. Returns false if it
 * is not such a file; else *code is the exit code. */
bool walconv_import_exported(const struct walconv_import *import,
                             const char *name, const char *path, int *code);

#endif
