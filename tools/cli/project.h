/*
 * project.h - which project a directory belongs to.
 *
 * The project of a directory in a git repository is the least of the
 * repository's root commits, all its digits; it is kept in the file `opencode`
 * of the repository's common directory, where OpenCode keeps it too. Any other
 * directory is of the project "global".
 *
 * Invariant: the id of a repository does not depend on the worktree that is
 * asked for, nor on whether its file could be written.
 *
 * Threads: a tool is one thread.
 */
#ifndef AGENTWAL_TOOLS_CLI_PROJECT_H
#define AGENTWAL_TOOLS_CLI_PROJECT_H

#include <stdbool.h>

#include "agentwal.h"
#include "tools/cli/git.h"

#define CLI_PROJECT_GLOBAL "global"

enum {
    CLI_PROJECT_SIZE = CLI_COMMIT_SIZE
};

/* The project of a directory, which is absolute: of one that is not there,
 * without a commit, or of which git cannot tell, "global". */
void cli_project_find(const char *directory, char id[CLI_PROJECT_SIZE]);

/* The id that sessions of a directory had before projects were repositories:
 * the first 16 hexadecimal digits of the SHA-256 of its path. */
void cli_project_legacy_id(struct wal_slice directory,
                           char id[CLI_PROJECT_SIZE]);

#endif
