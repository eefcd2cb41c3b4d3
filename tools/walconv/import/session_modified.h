/*
 * session_modified.h - whether somebody did anything with a session that
 * imports made: then it is not to be made anew.
 *
 * Threads: a tool is one thread.
 */
#ifndef AGENTWAL_TOOLS_WALCONV_IMPORT_SESSION_MODIFIED_H
#define AGENTWAL_TOOLS_WALCONV_IMPORT_SESSION_MODIFIED_H

#include <stdbool.h>

#include "agentwal.h"

/* Whether it has documents, checkpoints, heads or metadata that are not of an
 * import, or a title but no entries. Entries themselves are not looked at. */
enum wal_status walconv_is_modified(struct wal_session *session,
                                    bool *is_modified, struct wal_error *error);

#endif
