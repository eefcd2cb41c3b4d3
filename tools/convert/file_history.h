/*
 * file_history.h - the backups of files that transcripts of Claude Code name.
 *
 * The client rewinds files from file-history/SESSION/NAME next to projects/,
 * where SESSION is the name of the transcript and NAME is in a row of it. Where
 * the store has these files, each is a separate session, with its path as the
 * source; an import with --all-files brings them.
 *
 * Invariant: no existing file is changed, and nothing is written outside
 * file-history/SESSION.
 *
 * Threads: the tools are single-threaded.
 */
#ifndef AGENTWAL_TOOLS_CONVERT_FILE_HISTORY_H
#define AGENTWAL_TOOLS_CONVERT_FILE_HISTORY_H

#include "tools/convert/view.h"

/* Writes the backups that the session's view names and the store has. *missing:
 * the number of those that are neither in the store nor in the view's place.
 * Returns an exit code. Does nothing for views in other dialects. */
int convert_file_history_export(const struct convert_view *target,
                                struct wal_session *session,
                                struct wal_view *view, const char *name,
                                uint64_t *missing);

#endif
