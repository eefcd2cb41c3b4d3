/*
 * walctl.h - the commands of walctl.
 *
 * Each takes the whole command line of the process but for the program's name,
 * so that the first operand is the command's own name, and answers the exit
 * code.
 *
 * Threads: a tool is one thread.
 */
#ifndef AGENTWAL_TOOLS_WALCTL_H
#define AGENTWAL_TOOLS_WALCTL_H

#include "tools/cli.h"

int walctl_init(struct cli *cli, int argc, char **argv);
int walctl_create(struct cli *cli, int argc, char **argv);
int walctl_append(struct cli *cli, int argc, char **argv);
int walctl_list(struct cli *cli, int argc, char **argv);
int walctl_latest(struct cli *cli, int argc, char **argv);
int walctl_show(struct cli *cli, int argc, char **argv);
int walctl_children(struct cli *cli, int argc, char **argv);
int walctl_fork(struct cli *cli, int argc, char **argv);
int walctl_stats(struct cli *cli, int argc, char **argv);
int walctl_accept_damage(struct cli *cli, int argc, char **argv);

#endif
