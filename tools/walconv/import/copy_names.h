/*
 * copy_names.h - the ids that shared lines have in the file of a copy.
 *
 * Invariant: nothing is read before the first lookup.
 *
 * Threads: the tools are single-threaded.
 */
#ifndef AGENTWAL_TOOLS_WALCONV_IMPORT_COPY_NAMES_H
#define AGENTWAL_TOOLS_WALCONV_IMPORT_COPY_NAMES_H

#include "agentwal.h"
#include "format/model/dialect.h"

/* NULL: not loaded yet. */
struct walconv_copy_names;

/* Returns the id of the entry whose line has this id in the copy's file.
 * NULL: there is none, or the session is not a copy. Valid until *names is
 * destroyed. */
const char *walconv_copy_names_find(struct walconv_copy_names **names,
                                    struct wal_store *store,
                                    struct wal_session *session,
                                    const struct wal__dialect *dialect,
                                    const char *id);
void walconv_copy_names_destroy(struct walconv_copy_names *names);

#endif
