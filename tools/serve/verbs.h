/*
 * verbs.h - the verb serve of agentwal. Where the build found no libmicrohttpd,
 * it prints how to get it.
 *
 * Threads: called by the one thread of the tool.
 */
#ifndef AGENTWAL_TOOLS_SERVE_VERBS_H
#define AGENTWAL_TOOLS_SERVE_VERBS_H

#include "tools/cli/cli.h"

/* The operand is the store. Returns the exit code. */
int serve_run(struct cli *cli, int argc, char **argv);

#endif
