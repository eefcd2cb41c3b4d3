/*
 * entry_json.h - entries as JSON (docs/seeing.md, Entries).
 *
 * Threads: no shared state; any thread may call any function.
 */
#ifndef AGENTWAL_TOOLS_SHOWN_ENTRY_JSON_H
#define AGENTWAL_TOOLS_SHOWN_ENTRY_JSON_H

#include "tools/shown/shown.h"

/* Writes an entry as a value. A payload that is out of line is read; when it
 * cannot be, the entry has `damaged` and no parts. Fails only without
 * memory. */
enum wal_status shown_entry(struct shown *shown, struct wal_store *store,
                            const struct wal_entry *entry,
                            struct wal_error *error);

/* As shown_entry, with the member "payload": null of a redacted entry. */
enum wal_status shown_entry_with_payload(struct shown *shown,
                                         struct wal_store *store,
                                         const struct wal_entry *entry,
                                         struct wal_error *error);

/* Writes an entry as a node of a tree. */
enum wal_status shown_node(struct shown *shown, struct wal_store *store,
                           const struct wal_entry *entry,
                           struct wal_error *error);

/* Returns the time of an entry in milliseconds; 0: unknown. */
int64_t shown_entry_time(const struct wal_entry *entry);

#endif
