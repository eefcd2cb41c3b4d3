/*
 * verbs.h - the verb usage of agentwal.
 *
 * Threads: the tool has one thread.
 */
#ifndef AGENTWAL_TOOLS_USAGE_VERBS_H
#define AGENTWAL_TOOLS_USAGE_VERBS_H

#include "tools/cli/cli.h"

/* The operand is the store. Returns the exit code. */
int usage_run(struct cli *cli, int argc, char **argv);

#endif
