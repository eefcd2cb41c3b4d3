/*
 * session_modified.h - detects changes to an imported session. A modified
 * session must not be created again.
 *
 * Threads: one thread at a time per struct.
 */
#ifndef AGENTWAL_ENGINE_CONVERT_IMPORT_SESSION_MODIFIED_H
#define AGENTWAL_ENGINE_CONVERT_IMPORT_SESSION_MODIFIED_H

#include <stdbool.h>

#include "agentwal.h"

/* *is_modified: the session has documents, checkpoints, heads or metadata that
 * an import did not write, or a title but no entries. Does not check the
 * entries. */
enum wal_status wal__session_is_modified(struct wal_session *session,
                                         bool *is_modified,
                                         struct wal_error *error);

#endif
