/*
 * cli_checkpoint_in.h - directories of files (cli_layout.h) as checkpoints of a
 * session.
 *
 * Invariant: a checkpoint is made when all that its manifest names is in the
 * store under the names that it gives; else nothing is made of it. What a
 * manifest says never opens a file elsewhere.
 *
 * Threads: one.
 */
#ifndef AGENTWAL_TOOLS_CLI_CHECKPOINT_IN_H
#define AGENTWAL_TOOLS_CLI_CHECKPOINT_IN_H

#include "tools/cli.h"
#include "tools/progress.h"

/* A checkpoint that was made, or had all of it already. */
struct cli_checkpoint_made {
    struct wal_checkpoint_info info;
    const char *layout;
    const char *path;
    uint64_t added; /* files that it had not */
    bool is_new;
};

struct cli_checkpoint_in {
    const struct cli *cli;
    struct wal_store *store;
    struct wal_session *session;
    struct wal_slice root; /* that paths are below; empty: the session's cwd */
    struct progress *progress;
    void (*made)(void *ctx, const struct cli_checkpoint_made *made);
    /* Why none was made of that directory; `code` is the exit code for it. */
    void (*left_out)(void *ctx, int code, const char *path, const char *why);
    void *ctx;
};

/* One checkpoint; `above` is the directory that its own is in. The exit
 * code. */
int cli_checkpoint_in_one(const struct cli_checkpoint_in *in, int above,
                          const char *directory, const char *name);

/* Those of a directory of checkpoints, the oldest first. The exit code. */
int cli_checkpoint_in_all(const struct cli_checkpoint_in *in,
                          const char *directory, bool *is_empty);

#endif
