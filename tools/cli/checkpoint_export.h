/*
 * checkpoint_export.h - write the checkpoints of a session as directories (layout:
 * checkpoint_manifest.h).
 *
 * Invariant: every file is renamed to its name when it is complete. A manifest is renamed last,
 * after the contents that it names are on stable storage. A repeated export writes only what is
 * missing.
 */
#ifndef AGENTWAL_TOOLS_CLI_CHECKPOINT_EXPORT_H
#define AGENTWAL_TOOLS_CLI_CHECKPOINT_EXPORT_H

#include "agentwal/checkpoint.h"
#include "tools/cli/cli.h"

/* A checkpoint that was exported, or was complete already. */
struct cli_checkpoint_exported {
    struct wal_checkpoint_info info;
    const char *layout;
    const char *path;
    uint64_t blobs; /* contents written by this call */
    uint64_t bytes;
    bool is_new;             /* this call wrote the manifest */
    uint64_t links;          /* skipped: the layout cannot hold them */
    uint64_t non_utf8_names; /* skipped: not UTF-8 */
};

struct cli_checkpoint_export {
    const struct cli *cli;
    struct wal_store *store;
    struct wal_session *session;
    const char *name;   /* of the session, for messages */
    const char *layout; /* must exist, see wal__checkpoint_layout_find */
    const char *root;   /* directory that contains `checkpoints` */
    struct progress *progress;
    void (*exported)(void *ctx, const struct cli_checkpoint_exported *exported);
    void *ctx;
};

/* Exports every checkpoint and reports each through `exported`. Returns an exit code. */
int cli_checkpoint_export(const struct cli_checkpoint_export *out);

/* Prints what the export skipped on standard error. */
void cli_checkpoint_export_losses(const struct cli *cli,
                                  const struct cli_checkpoint_exported *exported);

#endif
