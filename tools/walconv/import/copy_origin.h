/*
 * copy_origin.h - the sessions that a file may be a copy of, as named by its
 * first lines.
 *
 * Invariant: a name is only a hint; copy_import.h compares the lines.
 *
 * Threads: the tools are single-threaded.
 */
#ifndef AGENTWAL_TOOLS_WALCONV_IMPORT_COPY_ORIGIN_H
#define AGENTWAL_TOOLS_WALCONV_IMPORT_COPY_ORIGIN_H

#include "agentwal.h"
#include "format/model/dialect.h"

#define WALCONV_ORIGINS 8

/* Ids of sessions in the order in which they were found. Zeroed: none. */
struct walconv_origins {
    char *ids[WALCONV_ORIGINS];
    size_t count;
};

/* Reads the beginning of the file. Returns 0, or -1 with errno set. */
int walconv_origins_read(int fd, uint64_t size,
                         struct walconv_origins *origins);

/* Adds an id unless it is a duplicate or too long; text may be NULL. */
void walconv_origins_add(struct walconv_origins *origins, const char *text,
                         size_t size);
void walconv_origins_deinit(struct walconv_origins *origins);

/* Returns true if ids were found and none of them is in the store. */
bool walconv_origins_are_missing(const struct walconv_origins *origins,
                                 struct wal_store *store);

#endif
