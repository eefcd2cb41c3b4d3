/*
 * checkpoint_import.h - directories of files (cli_layout.h) as checkpoints of a
 * session.
 *
 * Invariant: a checkpoint is imported when all that its manifest names is in
 * the store under the names that it gives; else nothing is imported of it. What
 * a manifest says never opens a file elsewhere.
 *
 * Threads: one.
 */
#ifndef AGENTWAL_TOOLS_CLI_CHECKPOINT_IMPORT_H
#define AGENTWAL_TOOLS_CLI_CHECKPOINT_IMPORT_H

#include "agentwal/checkpoint.h"
#include "tools/cli/cli.h"
#include "tools/cli/progress.h"

/* A checkpoint that was imported, or had all of it already. */
struct cli_checkpoint_imported {
    struct wal_checkpoint_info info;
    const char *layout;
    const char *path;
    uint64_t added; /* files that it had not */
    bool is_new;
};

struct cli_checkpoint_import {
    const struct cli *cli;
    struct wal_store *store;
    struct wal_session *session;
    struct wal_slice root; /* that paths are below; empty: the session's cwd */
    struct progress *progress;
    void (*imported)(void *ctx, const struct cli_checkpoint_imported *imported);
    /* Why none was imported of that directory; `code` is the exit code for
     * it. */
    void (*on_skipped)(void *ctx, int code, const char *path, const char *why);
    void *ctx;
};

/* One checkpoint; `parent_fd` is the directory that its own is in. The exit
 * code. */
int cli_checkpoint_import_one(const struct cli_checkpoint_import *in,
                              int parent_fd, const char *directory,
                              const char *name);

/* Those of a directory of checkpoints, the oldest first. The exit code. */
int cli_checkpoint_import_all(const struct cli_checkpoint_import *in,
                              const char *directory, bool *is_empty);

#endif
