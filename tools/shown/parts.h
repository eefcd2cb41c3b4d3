/*
 * parts.h - the parts of an entry: texts, calls of tools, their results,
 * images, summaries (docs/seeing.md, Entries).
 *
 * Invariant: writing is total over any payload.
 *
 * Threads: no shared state; any thread may call any function.
 */
#ifndef AGENTWAL_TOOLS_SHOWN_PARTS_H
#define AGENTWAL_TOOLS_SHOWN_PARTS_H

#include "tools/shown/shown.h"

/* Writes the member "parts". The payload of the entry is in line. */
void shown_parts(struct shown *shown, const struct wal_entry *entry);

/* Returns the role of an entry in the words of docs/seeing.md, or NULL. A
 * message of a user that has nothing but results is of the role tool. */
const char *shown_role(const struct wal_entry *entry);

/* Writes the member "text": the beginning of the entry's texts. */
void shown_preview(struct shown *shown, const struct wal_entry *entry);

#endif
