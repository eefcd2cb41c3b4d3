/*
 * verbs.h - the verb view of agentwal.
 *
 * Threads: the tool has one thread.
 */
#ifndef AGENTWAL_TOOLS_VIEW_VERBS_H
#define AGENTWAL_TOOLS_VIEW_VERBS_H

#include "tools/cli/cli.h"

/* The operands are the store and the session. Returns the exit code. */
int view_run(struct cli *cli, int argc, char **argv);

#endif
