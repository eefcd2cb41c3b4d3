/*
 * copy_names.h - the ids that shared lines have in the file of a copy.
 *
 * Invariant: nothing is read before the first lookup.
 *
 * Threads: one thread at a time per struct.
 */
#ifndef AGENTWAL_CONVERT_IMPORT_COPY_NAMES_H
#define AGENTWAL_CONVERT_IMPORT_COPY_NAMES_H

#include "agentwal.h"
#include "convert/model/dialect.h"
#include "engine/base/heap_arena.h"

/* In an arena. NULL: not loaded yet. */
struct wal__copy_names;

/* Returns the id of the entry whose line has this id in the copy's file.
 * NULL: there is none, the session is not a copy, or there is no memory. */
const char *wal__copy_names_find(struct wal__copy_names **names,
                                 struct wal__heap_arena *arena,
                                 struct wal_store *store,
                                 struct wal_session *session,
                                 const struct wal__dialect *dialect,
                                 const char *id);
#endif
