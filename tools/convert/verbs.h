/*
 * verbs.h - the verbs of agentwal for the files of other programs.
 *
 * A verb gets the whole command line without the program's name: its first
 * operand is its own name, the next one the store. It returns an exit code.
 *
 * Invariant: exporting the source of an imported file gives the same bytes.
 *
 * Threads: the tools are single-threaded.
 */
#ifndef AGENTWAL_TOOLS_CONVERT_VERBS_H
#define AGENTWAL_TOOLS_CONVERT_VERBS_H

#include "convert/model/dialect.h"
#include "tools/cli/cli.h"
#include "tools/terminal/progress.h"

int verb_import(struct cli *cli, int argc, char **argv);
int verb_adopt(struct cli *cli, int argc, char **argv);
int verb_export(struct cli *cli, int argc, char **argv);
int verb_path(struct cli *cli, int argc, char **argv);
int verb_follow(struct cli *cli, int argc, char **argv);
int verb_dialects(struct cli *cli, int argc, char **argv);

/* Returns CLI_CONTINUE if root is a directory, does not exist, or is NULL for
 * standard output; else prints an error and returns its exit code. */
int convert_check_root(const struct cli *cli, const char *root);

#endif
