/*
 * checkpoints.h - checkpoints of sessions that are directories.
 *
 * sdk and spec11 keep them below the session's directory, in `checkpoints`
 * (cli_layout.h).
 *
 * Threads: a tool is one thread.
 */
#ifndef AGENTWAL_TOOLS_WALCONV_CHECKPOINTS_H
#define AGENTWAL_TOOLS_WALCONV_CHECKPOINTS_H

#include "tools/walconv/walconv.h"

struct walconv_checkpoints {
    const struct walconv_import *import;
    struct wal_session *session;
    const char *root; /* the session's directory */
    /* Why there is no checkpoint of that directory. */
    void (*on_skipped)(void *ctx, const char *path, const char *why);
    void *ctx;
    uint64_t count; /* out: that the directory has and the session too */
    uint64_t added; /* out: of these, new or with new files */
};

/* Makes the directory's checkpoints the session's, paths below its cwd. One
 * that is left out is no failure. The exit code. */
int walconv_checkpoints_import(struct walconv_checkpoints *checkpoints);

/* Writes the session's checkpoints beside a file of it, where the dialect has
 * them; `name` is the session's, to people. The exit code. */
int walconv_checkpoints_export(const struct cli *cli, struct wal_store *store,
                               struct wal_session *session, const char *name,
                               const char *dialect, const char *file);

#endif
