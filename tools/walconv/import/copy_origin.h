/*
 * copy_origin.h - the sessions that a file may be a copy of, by what its
 * first lines name.
 *
 * Invariant: what is named is looked at, and never believed: lines are compared
 * (walconv_copy.h).
 *
 * Threads: a tool is one thread.
 */
#ifndef AGENTWAL_TOOLS_WALCONV_IMPORT_COPY_ORIGIN_H
#define AGENTWAL_TOOLS_WALCONV_IMPORT_COPY_ORIGIN_H

#include "agentwal.h"
#include "format/model/dialect.h"

#define WALCONV_ORIGINS 8

/* Ids of sessions, the first named first. Zeroed: none. */
struct walconv_origins {
    char *ids[WALCONV_ORIGINS];
    size_t count;
};

/* Reads the file's beginning. 0, or -1 and errno. */
int walconv_origins_read(int fd, uint64_t size,
                         struct walconv_origins *origins);

/* Adds one; text may be null. */
void walconv_origins_add(struct walconv_origins *origins, const char *text,
                         size_t size);
void walconv_origins_deinit(struct walconv_origins *origins);

/* Whether none of those that are named, if any, is in the store. */
bool walconv_origins_are_missing(const struct walconv_origins *origins,
                                 struct wal_store *store);

#endif
