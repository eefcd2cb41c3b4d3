/*
 * resume.h - the verb resume, of sessions here and of other machines.
 *
 * Threads: the tools are single-threaded.
 */
#ifndef AGENTWAL_TOOLS_AGENTWAL_RESUME_H
#define AGENTWAL_TOOLS_AGENTWAL_RESUME_H

#include "tools/cli/cli.h"

/* With --remote or --take-back as tools/remote/ does it, else as tools/resume/
 * does. Returns the exit code. */
int agentwal_resume(struct cli *cli, int argc, char **argv);

#endif
