/*
 * project.h - the project that a directory belongs to.
 *
 * The project of a directory in a git repository is the smallest root commit of
 * the repository, with all its digits. It is stored in the file `opencode` of
 * the repository's common directory, which OpenCode uses too. Every other
 * directory belongs to the project "global".
 *
 * Invariant: the id of a repository depends neither on the worktree nor on
 * whether its file could be written.
 *
 * Threads: the tools are single-threaded.
 */
#ifndef AGENTWAL_TOOLS_PROJECT_PROJECT_H
#define AGENTWAL_TOOLS_PROJECT_PROJECT_H

#include "agentwal.h"
#include "tools/project/git.h"

#define CLI_PROJECT_GLOBAL "global"

enum {
    CLI_PROJECT_SIZE = CLI_COMMIT_SIZE
};

/* Finds the project of an absolute directory. It is "global" when the directory
 * is missing, has no commit, or git fails. With `stores` the repository gets
 * the file, if it has none that is valid. */
void cli_project_find(const char *directory, bool stores,
                      char id[CLI_PROJECT_SIZE]);

/* Reads the project of an absolute directory: "global", or the id that its
 * repository stores. Writes nothing and runs no program; returns false if the
 * repository stores none. */
bool cli_project_read(const char *directory, char id[CLI_PROJECT_SIZE]);

/* The id that sessions had before projects were repositories: the first 16
 * hexadecimal digits of the SHA-256 of the directory's path. */
void cli_project_legacy_id(struct wal_slice directory,
                           char id[CLI_PROJECT_SIZE]);

#endif
