/*
 * checkpoints.h - import and export the checkpoints of session directories.
 *
 * The dialects sdk and spec11 keep checkpoints in the folder `checkpoints` of a
 * session's directory (layout: tools/cli/checkpoint_manifest.h).
 *
 * Threads: the tools are single-threaded.
 */
#ifndef AGENTWAL_TOOLS_WALCONV_CHECKPOINTS_H
#define AGENTWAL_TOOLS_WALCONV_CHECKPOINTS_H

#include "tools/walconv/walconv.h"

struct walconv_checkpoints {
    const struct walconv_import *import;
    struct wal_session *session;
    const char *root; /* the session's directory */
    /* Reports a directory that was not imported. */
    void (*on_skipped)(void *ctx, const char *path, const char *why);
    void *ctx;
    uint64_t count; /* out: checkpoints of the directory that the session has */
    uint64_t added; /* out: of these, new ones and ones that gained files */
};

/* Imports the directory's checkpoints into the session, with paths relative to
 * its cwd. A skipped checkpoint is reported and is not a failure. Returns an
 * exit code. */
int walconv_checkpoints_import(struct walconv_checkpoints *checkpoints);

/* Exports the session's checkpoints to the directory of its file `file`, if the
 * dialect has checkpoints. `name` is the session's name in messages. Returns an
 * exit code. */
int walconv_checkpoints_export(const struct cli *cli, struct wal_store *store,
                               struct wal_session *session, const char *name,
                               const char *dialect, const char *file);

#endif
