/*
 * shipping.h - ships the store until a signal comes: `remote push --follow`.
 *
 * Threads: the tool has one thread; the library's shipper has others.
 */
#ifndef AGENTWAL_TOOLS_REMOTE_SHIPPING_H
#define AGENTWAL_TOOLS_REMOTE_SHIPPING_H

#include "agentwal/remote.h"
#include "tools/cli/cli.h"

/* Blocks the signals that end it; before the writer is opened. */
void remote_ship_init(void);

/* Ships what becomes durable, at most parts_per_second (0: the default), until
 * SIGINT, SIGTERM or SIGHUP, or until the writer is fenced. Prints failures,
 * and each 30 s the sessions that have moved to other machines since.
 * Returns the exit code. */
int remote_ship(const struct cli *cli, const char *url,
                struct wal_remote *remote, struct wal_store *store,
                struct wal_remote_writer *writer, uint32_t parts_per_second);

#endif
