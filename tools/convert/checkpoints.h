/*
 * checkpoints.h - export the checkpoints of session directories.
 *
 * The dialects sdk and spec11 keep checkpoints in the folder `checkpoints` of a
 * session's directory (layout: convert/source/checkpoint_manifest.h).
 *
 * Threads: the tools are single-threaded.
 */
#include "tools/cli/verbs.h"
#ifndef AGENTWAL_TOOLS_CONVERT_CHECKPOINTS_H
#define AGENTWAL_TOOLS_CONVERT_CHECKPOINTS_H

/* Exports the session's checkpoints to the directory of its file `file`, if the
 * dialect has checkpoints. `name` is the session's name in messages. Returns an
 * exit code. */
int convert_checkpoints_export(const struct cli *cli, struct wal_store *store,
                               struct wal_session *session, const char *name,
                               const char *dialect, const char *file);

#endif
