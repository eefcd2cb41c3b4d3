/*
 * session_modified.h - detects changes to an imported session. A modified
 * session must not be created again. What is read here holds as long as the
 * session's last_sequence, which the caller reads before, and by which it
 * deletes.
 *
 * Threads: one thread at a time per struct.
 */
#ifndef AGENTWAL_CONVERT_IMPORT_SESSION_MODIFIED_H
#define AGENTWAL_CONVERT_IMPORT_SESSION_MODIFIED_H

#include <stdbool.h>
#include <stdint.h>

#include "agentwal.h"

/* *is_modified: the session has documents, checkpoints, heads or metadata that
 * an import did not write, or a title but no entries. Does not check the
 * entries. */
enum wal_status wal__session_is_modified(struct wal_session *session,
                                         bool *is_modified,
                                         struct wal_error *error);

/* Counts the entries, of all streams, that are no lines such as an import
 * writes; one at least where the session is damaged. The session is no fork. */
enum wal_status wal__session_count_others(struct wal_session *session,
                                          uint64_t *others,
                                          struct wal_error *error);

#endif
