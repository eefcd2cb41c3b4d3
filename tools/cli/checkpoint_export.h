/*
 * checkpoint_export.h - the checkpoints of a session as directories of files
 * (cli_layout.h).
 *
 * Invariant: every file gets its name when it is whole, and a manifest last,
 * when the contents that it names are on stable storage. Again: only what is
 * new is exported.
 *
 * Threads: one.
 */
#ifndef AGENTWAL_TOOLS_CLI_CHECKPOINT_EXPORT_H
#define AGENTWAL_TOOLS_CLI_CHECKPOINT_EXPORT_H

#include "agentwal/checkpoint.h"
#include "tools/cli/cli.h"
#include "tools/cli/progress.h"

/* A checkpoint that is there now. */
struct cli_checkpoint_exported {
    struct wal_checkpoint_info info;
    const char *layout;
    const char *path;
    uint64_t blobs; /* contents that were added */
    uint64_t bytes;
    bool is_new;             /* the manifest was exported */
    uint64_t links;          /* left out: the layout cannot hold them */
    uint64_t non_utf8_names; /* left out: not UTF-8 */
};

struct cli_checkpoint_export {
    const struct cli *cli;
    struct wal_store *store;
    struct wal_session *session;
    const char *name;   /* of the session, to people */
    const char *layout; /* one that there is */
    const char *root;   /* directory that gets `checkpoints` */
    struct progress *progress;
    void (*exported)(void *ctx, const struct cli_checkpoint_exported *exported);
    void *ctx;
};

/* The exit code. */
int cli_checkpoint_export(const struct cli_checkpoint_export *out);

/* Says what was left out, on standard error. */
void cli_checkpoint_export_losses(
    const struct cli *cli, const struct cli_checkpoint_exported *exported);

#endif
