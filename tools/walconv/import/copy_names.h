/*
 * copy_names.h - what the lines of a copy are called in its file.
 *
 * Invariant: nothing is read before a name is asked for.
 *
 * Threads: a tool is one thread.
 */
#ifndef AGENTWAL_TOOLS_WALCONV_IMPORT_COPY_NAMES_H
#define AGENTWAL_TOOLS_WALCONV_IMPORT_COPY_NAMES_H

#include "agentwal.h"
#include "format/model/dialect.h"

/* Null: not loaded. */
struct walconv_copy_names;

/* The id of the entry that a line shares which has this id in the copy's file;
 * null: there is none, or the session is no copy. */
const char *walconv_copy_names_find(struct walconv_copy_names **names,
                                    struct wal_store *store,
                                    struct wal_session *session,
                                    const struct wal__dialect *dialect,
                                    const char *id);
void walconv_copy_names_destroy(struct walconv_copy_names *names);

#endif
