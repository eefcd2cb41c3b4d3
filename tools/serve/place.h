/*
 * place.h - the files of a running server: the directory of its socket, and the
 * token of a port.
 *
 * Invariant: both are readable by their owner only.
 *
 * Threads: called by the one thread of the tool.
 */
#ifndef AGENTWAL_TOOLS_SERVE_PLACE_H
#define AGENTWAL_TOOLS_SERVE_PLACE_H

#include "tools/cli/cli.h"

/* Returns the path of a file in the user's runtime directory, in the folder
 * agentwal, which is made; the caller frees it. NULL after an error. */
char *serve_place(const struct cli *cli, const char *name);

/* Writes the token to a file that is made anew. Returns CLI_CONTINUE, or an
 * exit code after an error. */
int serve_write_token(const struct cli *cli, const char *path,
                      const char *token);

#endif
