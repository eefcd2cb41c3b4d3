/*
 * payload.h - payloads of entries that were read with
 * WAL_ENTRY_CURSOR_OUT_OF_LINE, wherever they are.
 *
 * Invariant: of a payload out of line a piece of 1 MiB is in memory, unless it
 * is brought in line.
 *
 * Threads: a tool is one thread.
 */
#ifndef AGENTWAL_TOOLS_CLI_PAYLOAD_H
#define AGENTWAL_TOOLS_CLI_PAYLOAD_H

#include <stdbool.h>

#include "agentwal.h"

/* Takes a piece; false: no more is wanted. */
typedef bool cli_payload_fn(void *ctx, const void *data, size_t size);

/* Passes the payload from its beginning on. What is damaged is met on the way,
 * pieces of it having been passed. */
enum wal_status cli_payload_visit(struct wal_store *store,
                                  const struct wal_entry *entry,
                                  cli_payload_fn *take, void *ctx,
                                  struct wal_error *error);

/* Whether all of it can be read, every byte verified. */
enum wal_status cli_payload_verify(struct wal_store *store,
                                   const struct wal_entry *entry,
                                   struct wal_error *error);

/* Brings it in line, in memory that is to be freed; *memory is null when it is
 * there already. */
enum wal_status cli_payload_load(struct wal_store *store,
                                 struct wal_entry *entry, char **memory,
                                 struct wal_error *error);

#endif
