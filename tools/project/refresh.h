/*
 * refresh.h - moves sessions to the project of their directory.
 *
 * Sessions of a directory in a repository may have the project "global", or an
 * id made of the directory's path. They get the repository's id at the next
 * access to the directory.
 *
 * Invariant: no session of another directory or of any other project is
 * changed. The newest session of the directory is written again even if it has
 * the project already, and so remains the newest. Repeating the update changes
 * nothing.
 *
 * Threads: the tool has one thread.
 */
#ifndef AGENTWAL_TOOLS_PROJECT_REFRESH_H
#define AGENTWAL_TOOLS_PROJECT_REFRESH_H

#include "tools/cli/cli.h"

/* Sets the project id of the sessions of a directory, and adds their number to
 * *count. Continues after a failure and returns the first one. */
enum wal_status project_refresh(struct wal_store *store, const char *directory,
                                const char *project, uint64_t *count,
                                struct wal_error *error);

/* As project_refresh, for every directory of the store's sessions. */
enum wal_status project_refresh_all(struct wal_store *store, uint64_t *count,
                                    struct wal_error *error);

/* Opens a store for reading, as cli_open_store does, after updating the
 * sessions of the directory; null: no update. A failed update is ignored. */
int project_open_updated(const struct cli *cli, const char *directory,
                         struct wal_store **store);

#endif
