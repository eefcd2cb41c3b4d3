/*
 * time.h - times on the command line.
 *
 * Threads: the tools are single-threaded.
 */
#ifndef AGENTWAL_TOOLS_CLI_TIME_H
#define AGENTWAL_TOOLS_CLI_TIME_H

#include "tools/cli/cli.h"

/* Reads the argument of an option: 2026-11-20, 2026-11-20T14:03 (local time), a
 * time in ISO 8601 with a zone, or an age such as 90m, 12h, 7d or 2w. NULL: *ms
 * stays as it is. Returns CLI_CONTINUE, or prints an error and returns
 * CLI_USAGE. */
int cli_parse_time(const struct cli *cli, const char *option, const char *text,
                   int64_t *ms);

#endif
