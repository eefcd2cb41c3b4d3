/*
 * upkeep.h - makes a base of the remote after many parts, as `remote compact`
 * does, so that a pull stays short without a timer.
 *
 * Threads: the tool has one thread.
 */
#ifndef AGENTWAL_TOOLS_REMOTE_UPKEEP_H
#define AGENTWAL_TOOLS_REMOTE_UPKEEP_H

#include "agentwal/remote.h"
#include "tools/cli/cli.h"

/* So many parts were stored, the last one is number `part`. Does
 * nothing most of the time. A failure is printed, and is none of the push. */
void remote_upkeep(const struct cli *cli, const char *url,
                   struct wal_remote *remote, struct wal_store *store,
                   uint64_t parts, uint64_t part);

#endif
