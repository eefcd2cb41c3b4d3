/*
 * upkeep.h - what follows a push: the list of sessions that `remote sessions`
 * reads, and after many parts a base of the remote, as `remote compact` makes
 * one, so that a pull stays short without a timer.
 *
 * Threads: the tool has one thread.
 */
#ifndef AGENTWAL_TOOLS_REMOTE_UPKEEP_H
#define AGENTWAL_TOOLS_REMOTE_UPKEEP_H

#include "agentwal/remote.h"
#include "tools/cli/cli.h"

/* `parts` of them were stored, the last one is number `part`. A
 * failure is printed, and is none of the push. */
void remote_upkeep(const struct cli *cli, const char *url,
                   struct wal_remote *remote, struct wal_store *store,
                   uint64_t parts, uint64_t part);

#endif
