/*
 * checkpoint_manifest.h - checkpoints as directories of files, in the layouts
 * of two designs of session stores:
 *
 *     checkpoints/ID/manifest.json     which files, and their contents' SHA-256
 *     checkpoints/ID/blobs/SHA256      the contents (layout sdk), or
 *     checkpoints/ID/files/SHA256      (layout spec11)
 *
 * Threads: one.
 */
#ifndef AGENTWAL_TOOLS_CLI_CHECKPOINT_MANIFEST_H
#define AGENTWAL_TOOLS_CLI_CHECKPOINT_MANIFEST_H

#include <stdbool.h>
#include <stdio.h>

#include "tools/cli/cli.h"

enum {
    CLI_HASH_SIZE = 2 * WAL_DIGEST_SIZE, /* digits */
    CLI_COPY_BUFFER_SIZE = 1024 * 1024   /* of content that is copied */
};

#define CLI_CHECKPOINTS "checkpoints"
#define CLI_MANIFEST    "manifest.json"

/* A layout, and what its members are called. */
struct cli_layout {
    const char *name;
    const char *contents; /* directory */
    const char *id;
    const char *created;
    const char *files;
    const char *path;
    const char *exists; /* null: an empty hash tells that a file is absent */
    const char *hash;
    const char *size; /* null: is not told */
    const char *mode; /* of files that are not 0644; readers pass over it */
};

/* Null: none of that name. */
const struct cli_layout *cli_layout_find(const char *name);

/* A file as a manifest tells it. */
struct cli_manifest_file {
    struct wal_slice path; /* may hold a zero byte */
    char hash[CLI_HASH_SIZE + 1];
    bool is_absent;
    bool has_size;
    uint64_t size;
    uint32_t mode; /* 0: not told */
};

/* Zeroed: nothing. */
struct cli_manifest {
    char *id; /* null: not told */
    int64_t created_ms;
    struct cli_manifest_file *files;
    size_t count;
    size_t capacity;
};

/* Reads a manifest of either layout; keys may be in capitals or not, with
 * underscores or not. Null, or what is wrong with it, until the next call. */
const char *cli_manifest_read(struct cli_manifest *manifest, const void *data,
                              size_t size);
void cli_manifest_deinit(struct cli_manifest *manifest);

/* Writes a digest as digits, terminated. */
void cli_hash_text(const uint8_t digest[WAL_DIGEST_SIZE],
                   char text[CLI_HASH_SIZE + 1]);

#endif
