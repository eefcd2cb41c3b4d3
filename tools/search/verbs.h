/*
 * verbs.h - the verbs search and index of agentwal. Where the build found no
 * SQLite, they print how to get it.
 *
 * Threads: the tool has one thread.
 */
#ifndef AGENTWAL_TOOLS_SEARCH_VERBS_H
#define AGENTWAL_TOOLS_SEARCH_VERBS_H

#include "tools/cli/cli.h"

/* The operands are the store, and of search the words. Return the exit code. */
int search_run(struct cli *cli, int argc, char **argv);
int search_run_index(struct cli *cli, int argc, char **argv);

#endif
