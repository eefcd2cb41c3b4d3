/*
 * checkpoint_import.h - read directories of files (layout:
 * checkpoint_manifest.h) as checkpoints of a session.
 *
 * Invariant: a checkpoint is imported only when every content that its manifest
 * names is in the store under the digest that the manifest lists; otherwise
 * nothing of it is imported. No text of a manifest makes the import open a file
 * outside the checkpoint's directory.
 *
 * Threads: the tools are single-threaded.
 */
#ifndef AGENTWAL_TOOLS_CLI_CHECKPOINT_IMPORT_H
#define AGENTWAL_TOOLS_CLI_CHECKPOINT_IMPORT_H

#include "agentwal/checkpoint.h"
#include "tools/cli/cli.h"
#include "tools/cli/progress.h"

/* A checkpoint that was imported, or was complete already. */
struct cli_checkpoint_imported {
    struct wal_checkpoint_info info;
    const char *layout;
    const char *path;
    uint64_t added; /* files that the checkpoint lacked */
    bool is_new;
};

struct cli_checkpoint_import {
    const struct cli *cli;
    struct wal_store *store;
    struct wal_session *session;
    /* Listed paths are below it; empty: the session's cwd. */
    struct wal_slice root;
    struct progress *progress;
    void (*imported)(void *ctx, const struct cli_checkpoint_imported *imported);
    /* Reports a directory of which nothing was imported; `code` is the exit
     * code. */
    void (*on_skipped)(void *ctx, int code, const char *path, const char *why);
    void *ctx;
};

/* Imports the checkpoint `name` of the directory `parent_fd`, whose path is
 * `directory`. Returns an exit code. */
int cli_checkpoint_import_one(const struct cli_checkpoint_import *in,
                              int parent_fd, const char *directory,
                              const char *name);

/* Imports every checkpoint of a directory, oldest first. *is_empty: there was
 * none. Returns an exit code. */
int cli_checkpoint_import_all(const struct cli_checkpoint_import *in,
                              const char *directory, bool *is_empty);

#endif
