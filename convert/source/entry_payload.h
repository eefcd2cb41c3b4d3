/*
 * entry_payload.h - payloads of entries that were read with
 * WAL_ENTRY_CURSOR_OUT_OF_LINE, in line or not.
 *
 * Invariant: at most 1 MiB of an out-of-line payload is in memory. Without
 * memory the functions return WAL_ENOMEM.
 *
 * Threads: any.
 */
#ifndef AGENTWAL_CONVERT_SOURCE_ENTRY_PAYLOAD_H
#define AGENTWAL_CONVERT_SOURCE_ENTRY_PAYLOAD_H

#include <stdbool.h>

#include "agentwal.h"
#include "engine/base/heap.h"

/* Receives a piece; returns false to stop. */
typedef bool wal__entry_payload_fn(void *ctx, const void *data, size_t size);

/* Passes the payload to `visit` from its beginning. Damage is detected on the
 * way, after earlier pieces were passed. heap NULL: the C library's. */
enum wal_status wal__entry_payload_visit(const struct wal__heap *heap,
                                         struct wal_store *store,
                                         const struct wal_entry *entry,
                                         wal__entry_payload_fn *visit,
                                         void *ctx,
                                         struct wal_error *error) WAL_MUST_USE;

/* Reads and verifies every byte. */
enum wal_status wal__entry_payload_verify(const struct wal__heap *heap,
                                          struct wal_store *store,
                                          const struct wal_entry *entry,
                                          struct wal_error *error) WAL_MUST_USE;

/* Reads the whole payload into memory from the heap, *memory, which the caller
 * frees; NULL for a payload that is in line already. *entry gets the bytes. */
enum wal_status wal__entry_payload_load(const struct wal__heap *heap,
                                        struct wal_store *store,
                                        struct wal_entry *entry, char **memory,
                                        struct wal_error *error) WAL_MUST_USE;

#endif
