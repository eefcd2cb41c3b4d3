/*
 * project_update.h - bringing sessions to the project of their directory.
 *
 * Sessions of a directory in a repository that are of the project "global", or
 * of the id that was made of the directory's path, get the repository's id
 * when the directory is first worked with.
 *
 * Invariant: no session of another directory, or of any other project, is
 * changed. The newest of the directory is written again if it is of the project
 * already, and so stays the newest. Doing it all again changes nothing.
 *
 * Threads: a tool is one thread.
 */
#ifndef AGENTWAL_TOOLS_WALCTL_PROJECT_UPDATE_H
#define AGENTWAL_TOOLS_WALCTL_PROJECT_UPDATE_H

#include "tools/cli/cli.h"

/* Gives the sessions of a directory its project's id, and adds how many to
 * *count. Goes on behind a session that cannot be changed, and answers the
 * first failure. */
enum wal_status walctl_update_project(struct wal_store *store,
                                      const char *directory,
                                      const char *project, uint64_t *count,
                                      struct wal_error *error);

/* The same for every directory that the store has sessions of. */
enum wal_status walctl_update_projects(struct wal_store *store, uint64_t *count,
                                       struct wal_error *error);

/* Opens a store to read, as cli_open_store does, after the sessions of the
 * directory were adopted; null: of none. Where they cannot be, they are as they
 * were. */
int walctl_open_updated(const struct cli *cli, const char *directory,
                        struct wal_store **store);

#endif
