/*
 * adopt_unit.h - the systemd user unit that follows clients' folders.
 *
 * Invariant: the unit is enabled by its link, so that it runs from the next
 * login on, whether systemd runs now or not.
 *
 * Threads: the tools are single-threaded.
 */
#ifndef AGENTWAL_TOOLS_CONVERT_ADOPT_UNIT_H
#define AGENTWAL_TOOLS_CONVERT_ADOPT_UNIT_H

#include "agentwal/import.h"
#include "tools/cli/cli.h"

/* Writes and enables the unit, and starts it. `store` and the folders are
 * absolute. Prints what was done and what could not be started. Returns an exit
 * code. */
int adopt_unit_install(const struct cli *cli, const char *store,
                       const struct wal_import_client *clients, size_t count);

/* Stops and removes the unit. Returns an exit code. */
int adopt_unit_uninstall(const struct cli *cli);

#endif
