/*
 * import_time.h - what an import says of a new session: its creation time, the
 * time of the import, its project; and the time of lines that have none.
 *
 * Threads: one thread at a time per import.
 */
#ifndef AGENTWAL_CONVERT_IMPORT_IMPORT_TIME_H
#define AGENTWAL_CONVERT_IMPORT_IMPORT_TIME_H

#include "convert/import/import.h"

#define WAL__IMPORT_TIME_SIZE 65 /* of a time with its terminator */

/* Sets the metadata, and if they are not set creation time and project, of a
 * session that is about to be created. `created` is the first time in the
 * source, or NULL; the cwd is set. Texts are in the arena. */
void wal__import_describe(struct wal__import *import, const char *created,
                          struct wal_session_options *options);

/* Sets the time of lines that come before the first time: `known`, of the entry
 * before them, or if that is empty `created`, or if that is NULL the session's.
 * Imports that run at the same time write the same. */
enum wal_status wal__import_first_time(struct wal_session *session,
                                       struct wal_slice known,
                                       const char *created,
                                       char time[WAL__IMPORT_TIME_SIZE],
                                       struct wal_error *error) WAL_MUST_USE;

#endif
