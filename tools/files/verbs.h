/*
 * verbs.h - the verbs of agentwal of the files that a session changed.
 *
 * A verb gets the whole command line without the program's name: its first
 * operand is its own name, the next one the store. It returns the exit code.
 *
 * Threads: the tools are single-threaded.
 */
#ifndef AGENTWAL_TOOLS_FILES_VERBS_H
#define AGENTWAL_TOOLS_FILES_VERBS_H

#include "tools/cli/cli.h"

int verb_checkpoint(struct cli *cli, int argc, char **argv);
int verb_checkpoints(struct cli *cli, int argc, char **argv);
int verb_checkpoint_show(struct cli *cli, int argc, char **argv);
int verb_checkpoint_diff(struct cli *cli, int argc, char **argv);
int verb_checkpoint_delete(struct cli *cli, int argc, char **argv);
int verb_checkpoint_export(struct cli *cli, int argc, char **argv);
int verb_checkpoint_import(struct cli *cli, int argc, char **argv);
int verb_checkpointing(struct cli *cli, int argc, char **argv);
int verb_rewind(struct cli *cli, int argc, char **argv);

#endif
