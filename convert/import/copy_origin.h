/*
 * copy_origin.h - the sessions that a file may be a copy of, as named by its
 * first lines.
 *
 * Invariant: a name is only a hint; copy_import.h compares the lines.
 *
 * Threads: one thread at a time per struct.
 */
#ifndef AGENTWAL_CONVERT_IMPORT_COPY_ORIGIN_H
#define AGENTWAL_CONVERT_IMPORT_COPY_ORIGIN_H

#include "agentwal.h"
#include "engine/base/heap_arena.h"

#define WAL__COPY_ORIGINS 8

/* Ids of sessions in the order in which they were found. Zeroed: none. */
struct wal__copy_origins {
    char *ids[WAL__COPY_ORIGINS];
    size_t count;
};

/* Reads the beginning of the file. Returns 0, or -1 with errno set. */
int wal__copy_origins_read(struct wal__heap_arena *arena, int fd, uint64_t size,
                           struct wal__copy_origins *origins);

/* Adds an id, copied to the arena, unless it is a duplicate or too long; text
 * may be NULL. */
void wal__copy_origins_add(struct wal__heap_arena *arena,
                           struct wal__copy_origins *origins, const char *text,
                           size_t size);

/* Returns true if ids were found and none of them is in the store. */
bool wal__copy_origins_are_missing(const struct wal__copy_origins *origins,
                                   struct wal_store *store);

#endif
