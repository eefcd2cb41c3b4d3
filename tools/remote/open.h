/*
 * open.h - opens a remote by its URL.
 *
 * Threads: the tool has one thread.
 */
#ifndef AGENTWAL_TOOLS_REMOTE_OPEN_H
#define AGENTWAL_TOOLS_REMOTE_OPEN_H

#include "agentwal/remote.h"
#include "tools/cli/cli.h"

/* Opens it. A URL that is refused is not printed, since it may have a password:
 * `what` is. Returns CLI_CONTINUE, or prints the error and returns the exit
 * code. */
int remote_open(const struct cli *cli, const char *what, const char *url,
                struct wal_remote **remote);

#endif
