/*
 * verbs.h - the verb remote of agentwal. Where the build found no libcurl, it
 * prints how to get it.
 *
 * Threads: the tool has one thread.
 */
#ifndef AGENTWAL_TOOLS_REMOTE_VERBS_H
#define AGENTWAL_TOOLS_REMOTE_VERBS_H

#include "tools/cli/cli.h"

/* The operands are the command, the store, and those of the command. Returns
 * the exit code. */
int remote_run(struct cli *cli, int argc, char **argv);

#endif
