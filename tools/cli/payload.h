/*
 * payload.h - payloads of entries that were read with
 * WAL_ENTRY_CURSOR_OUT_OF_LINE, in line or not.
 *
 * Invariant: at most 1 MiB of an out-of-line payload is in memory, except after
 * cli_payload_load.
 *
 * Threads: the tools are single-threaded.
 */
#ifndef AGENTWAL_TOOLS_CLI_PAYLOAD_H
#define AGENTWAL_TOOLS_CLI_PAYLOAD_H

#include <stdbool.h>

#include "agentwal.h"

/* Receives a piece; returns false to stop. */
typedef bool cli_payload_fn(void *ctx, const void *data, size_t size);

/* Passes the payload to `visit` from its beginning. Damage is detected on the
 * way, after earlier pieces were passed. */
enum wal_status cli_payload_visit(struct wal_store *store,
                                  const struct wal_entry *entry,
                                  cli_payload_fn *visit, void *ctx,
                                  struct wal_error *error);

/* Reads and verifies every byte. */
enum wal_status cli_payload_verify(struct wal_store *store,
                                   const struct wal_entry *entry,
                                   struct wal_error *error);

/* Loads an out-of-line payload. The caller frees *memory, which is NULL for a
 * payload that is in line already. */
enum wal_status cli_payload_load(struct wal_store *store,
                                 struct wal_entry *entry, char **memory,
                                 struct wal_error *error);

#endif
