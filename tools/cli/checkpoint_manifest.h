/*
 * checkpoint_manifest.h - checkpoints as directories, in the layouts of two
 * other session stores:
 *
 *     checkpoints/ID/manifest.json     files with the SHA-256 of their contents
 *     checkpoints/ID/blobs/SHA256      contents (layout sdk)
 *     checkpoints/ID/files/SHA256      contents (layout spec11)
 *
 * Threads: the tools are single-threaded.
 */
#ifndef AGENTWAL_TOOLS_CLI_CHECKPOINT_MANIFEST_H
#define AGENTWAL_TOOLS_CLI_CHECKPOINT_MANIFEST_H

#include <stdbool.h>
#include <stdio.h>

#include "tools/cli/cli.h"

enum {
    CLI_HASH_SIZE = 2 * WAL_DIGEST_SIZE, /* hexadecimal digits */
    /* bytes; contents are copied in pieces of this size */
    CLI_COPY_BUFFER_SIZE = 1024 * 1024
};

#define CLI_CHECKPOINTS "checkpoints"
#define CLI_MANIFEST    "manifest.json"

/* A layout and the JSON keys of its manifest. */
struct cli_layout {
    const char *name;
    const char *contents; /* directory of contents */
    const char *id;
    const char *created;
    const char *files;
    const char *path;
    const char *exists; /* NULL: an empty hash means that the file is absent */
    const char *hash;
    const char *size; /* NULL: sizes are not listed */
    /* Written for files that are not 0644; other readers ignore it. */
    const char *mode;
};

/* Returns NULL when no layout has this name. */
const struct cli_layout *cli_layout_find(const char *name);

/* A file that a manifest lists. */
struct cli_manifest_file {
    struct wal_slice path; /* may contain a zero byte */
    char hash[CLI_HASH_SIZE + 1];
    bool is_absent;
    bool has_size;
    uint64_t size;
    uint32_t mode; /* 0: not listed */
};

/* Zeroed: empty. */
struct cli_manifest {
    char *id; /* NULL: not listed */
    int64_t created_ms;
    struct cli_manifest_file *files;
    size_t count;
    size_t capacity;
};

/* Reads a manifest of either layout. Keys may be upper or lower case, with or
 * without underscores. Returns NULL, or a description of the fault that holds
 * until the next call. The caller deinitialises *manifest in any case. */
const char *cli_manifest_read(struct cli_manifest *manifest, const void *data,
                              size_t size);
void cli_manifest_deinit(struct cli_manifest *manifest);

/* Writes the digest as lower-case hexadecimal digits, NUL-terminated. */
void cli_hash_text(const uint8_t digest[WAL_DIGEST_SIZE],
                   char text[CLI_HASH_SIZE + 1]);

#endif
