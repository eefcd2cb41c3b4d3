/*
 * project.h - the project that a directory belongs to, and moving sessions to the project of their
 * directory.
 *
 * The project of a directory in a git repository is the smallest root commit of the repository,
 * with all its digits. It is stored in the file `opencode` of the repository's common directory,
 * which OpenCode uses too. Every other directory belongs to the project "global".
 *
 * Sessions of a directory in a repository may have the project "global", or an id made of the
 * directory's path. They get the repository's id at the next access to the directory.
 *
 * Invariant: the id of a repository depends neither on the worktree nor on whether its file could
 * be written. No session of another directory or of any other project is changed. The newest
 * session of the directory is written again even if it has the project already, and so remains the
 * newest. Repeating the update changes nothing.
 */
#ifndef AGENTWAL_TOOLS_PROJECT_PROJECT_H
#define AGENTWAL_TOOLS_PROJECT_PROJECT_H

#include "tools/cli/cli.h"

enum {
    CLI_COMMIT_SIZE = 65 /* hexadecimal digits of a SHA-256, and NUL */
};

enum { CLI_PROJECT_SIZE = CLI_COMMIT_SIZE };

#define CLI_PROJECT_GLOBAL "global"

/* Finds the project of an absolute directory. It is "global" when the directory is missing, has no
 * commit, or git fails. With `stores` the repository gets the file, if it has none that is
 * valid. */
void cli_project_find(const char *directory, bool stores, char id[CLI_PROJECT_SIZE]);

/* Reads the project of an absolute directory: "global", or the id that its repository stores.
 * Writes nothing and runs no program; returns false if the repository stores none. */
bool cli_project_read(const char *directory, char id[CLI_PROJECT_SIZE]);

/* Sets the project id of the sessions of a directory, and adds their number to
 * *count. Continues after a failure and returns the first one. */
enum wal_status project_refresh(struct wal_store *store, const char *directory, const char *project,
                                uint64_t *count, struct wal_error *error);

/* As project_refresh, for every directory of the store's sessions. */
enum wal_status project_refresh_all(struct wal_store *store, uint64_t *count,
                                    struct wal_error *error);

/* Opens a store for reading, as cli_use_store does, after updating the sessions of the directory;
 * null: no update. A failed update is ignored. */
void project_open_updated(struct cli *cli, const char *directory);

#endif
