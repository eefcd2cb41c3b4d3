/*
 * verbs.h - the verb remote of agentwal, and resume with a remote. Where the
 * build found no libcurl, they print how to get it.
 *
 * Threads: the tool has one thread.
 */
#ifndef AGENTWAL_TOOLS_REMOTE_VERBS_H
#define AGENTWAL_TOOLS_REMOTE_VERBS_H

#include "tools/cli/cli.h"

/* The operands are the command, the store, and those of the command. Returns
 * the exit code. */
int remote_run(struct cli *cli, int argc, char **argv);

/* The verb resume with --remote or --take-back: the operands are the store and
 * the session. Returns the exit code. */
int remote_resume_run(struct cli *cli, int argc, char **argv);

#endif
