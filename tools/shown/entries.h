/*
 * entries.h - all entries of a session in the order of the log, with the
 * messages of one that was imported as documents before them.
 *
 * Threads: no shared state; any thread may call any function.
 */
#ifndef AGENTWAL_TOOLS_SHOWN_ENTRIES_H
#define AGENTWAL_TOOLS_SHOWN_ENTRIES_H

#include "tools/shown/shown.h"

/* Receives an entry, whose slices hold until it returns; its payload may be out
 * of line. A status other than WAL_OK ends the visit. */
typedef enum wal_status shown_entry_fn(void *ctx, const struct wal_entry *entry,
                                       struct wal_error *error);

/* Calls `each` for the entries of stream 0, without deltas, and adds the number
 * of those that cannot be read to *damaged. `flags` is 0, or
 * WAL_ENTRY_CURSOR_REDACTED to include redacted entries. */
enum wal_status shown_entries_visit(struct wal_store *store,
                                    struct wal_session *session, uint32_t flags,
                                    shown_entry_fn *each, void *ctx,
                                    uint64_t *damaged, struct wal_error *error);

/* Writes the members "nodes", "heads" and "damaged" of a session's tree. */
enum wal_status shown_tree(struct shown *shown, struct wal_store *store,
                           struct wal_session *session,
                           struct wal_error *error);

#endif
