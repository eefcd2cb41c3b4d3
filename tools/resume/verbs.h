/*
 * verbs.h - the verb resume of agentwal.
 *
 * Threads: the tool has one thread.
 */
#ifndef AGENTWAL_TOOLS_RESUME_VERBS_H
#define AGENTWAL_TOOLS_RESUME_VERBS_H

#include "tools/cli/cli.h"

/* The operands are the store and the words of a query. Returns the exit code:
 * 130 when nothing was picked. */
int resume_run(struct cli *cli, int argc, char **argv);

#endif
