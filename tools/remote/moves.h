/*
 * moves.h - sessions of the store that move to other machines.
 *
 * Threads: the tool has one thread.
 */
#ifndef AGENTWAL_TOOLS_REMOTE_MOVES_H
#define AGENTWAL_TOOLS_REMOTE_MOVES_H

#include "agentwal/remote.h"
#include "tools/cli/cli.h"

/* Looks once. Returns the exit code. */
int remote_check_moves(const struct cli *cli, const char *url,
                       struct wal_remote *remote, struct wal_store *store);

/* Prints what a check of `moves` finds, or its failure. Returns the exit
 * code. */
int remote_print_moves(const struct cli *cli, const char *url,
                       struct wal_remote_moves *moves);

/* Permits appends to a session that has moved away, in this store: the remote
 * does not learn of it. Returns CLI_OK, or prints the error and returns the
 * exit code. */
int remote_permit_appends(const struct cli *cli, struct wal_store *store,
                          const char *session);

#endif
