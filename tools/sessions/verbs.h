/*
 * verbs.h - the verbs of agentwal that read and write sessions.
 *
 * A verb gets the whole command line without the program's name: its first
 * operand is its own name, the next one the store. It returns the exit code.
 *
 * Threads: the tools are single-threaded.
 */
#ifndef AGENTWAL_TOOLS_SESSIONS_VERBS_H
#define AGENTWAL_TOOLS_SESSIONS_VERBS_H

#include "tools/cli/cli.h"

int verb_create(struct cli *cli, int argc, char **argv);
int verb_append(struct cli *cli, int argc, char **argv);
int verb_list(struct cli *cli, int argc, char **argv);
int verb_latest(struct cli *cli, int argc, char **argv);
int verb_show(struct cli *cli, int argc, char **argv);
int verb_children(struct cli *cli, int argc, char **argv);
int verb_fork(struct cli *cli, int argc, char **argv);
int verb_delete(struct cli *cli, int argc, char **argv);
int verb_undelete(struct cli *cli, int argc, char **argv);
int verb_pin(struct cli *cli, int argc, char **argv);
int verb_meta(struct cli *cli, int argc, char **argv);
int verb_title(struct cli *cli, int argc, char **argv);
int verb_head(struct cli *cli, int argc, char **argv);
int verb_doc(struct cli *cli, int argc, char **argv);
int verb_compact_session(struct cli *cli, int argc, char **argv);
int verb_redact(struct cli *cli, int argc, char **argv);
int verb_projects(struct cli *cli, int argc, char **argv);
int verb_project(struct cli *cli, int argc, char **argv);

#endif
