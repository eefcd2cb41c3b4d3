/*
 * key.h - keys of encrypted stores.
 */
#ifndef AGENTWAL_TOOLS_CLI_KEY_H
#define AGENTWAL_TOOLS_CLI_KEY_H

#include "tools/cli/cli.h"

/* Sets the key that opens the store at a path; none where the store is not encrypted. */
void cli_use_key(const struct cli *cli, const char *path, struct wal_open_options *options);

#endif
