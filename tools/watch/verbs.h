/*
 * verbs.h - the verb watch of agentwal.
 *
 * Threads: the tool has one thread.
 */
#ifndef AGENTWAL_TOOLS_WATCH_VERBS_H
#define AGENTWAL_TOOLS_WATCH_VERBS_H

#include "tools/cli/cli.h"

/* The operand is the store. Returns the exit code. */
int watch_run(struct cli *cli, int argc, char **argv);

#endif
