/*
 * follow.h - remote pull --follow: keeps a replica up to date.
 *
 * Threads: the tool has one thread.
 */
#ifndef AGENTWAL_TOOLS_REMOTE_FOLLOW_H
#define AGENTWAL_TOOLS_REMOTE_FOLLOW_H

#include "agentwal/remote.h"
#include "tools/cli/cli.h"

/* Pulls to `path`, and goes on until SIGINT or SIGTERM: CLI_OK. Prints a line
 * whenever something new came. Returns the exit code. */
int remote_follow(const struct cli *cli, struct wal_remote *remote,
                  const char *path,
                  const struct wal_remote_pull_options *options);

#endif
